"""Integers of a loop body as affine expressions over the numbers of the iterations."""

from __future__ import annotations

from typing import Final, TypeAlias

from hlo.shapes.element_type import range_of
from indexing.codegen.graph import Index
from indexing.codegen.program_arrays import ProgramArray, arrays_in
from indexing.dataflow.constants import element_at
from indexing.dataflow.conversions import integer_rule
from indexing.dataflow.queries import element_reads
from indexing.ops.element import ConstantRule, CopyRule, IotaRule, element_of
from simplifier.interval import contains
from simplifier.linear import Expr
from simplifier.substitute import Substitution

MAX_DEPTH: Final = 32
"""Limit on the instructions between a start index and an induction variable."""

_Values: TypeAlias = "dict[tuple[ProgramArray, Index], Expr | None]"


def integer_value(array: ProgramArray, index: Index) -> Expr | None:
    """Return an element of an integer array as an exact expression; None if it is not affine.

    The expression is over the variables of `index` and the numbers of iterations.
    """
    return _value(array, index, {}, MAX_DEPTH)


def _value(array: ProgramArray, index: Index, values: _Values, depth: int) -> Expr | None:
    limits = range_of(array.shape.element_type)
    if limits is None or depth == 0 or not _is_inside(array, index):
        return None
    key = array, index
    if key not in values:
        value = array.known
        if value is None and array.role == "stage":
            value = _computed_element(array, index, values, depth - 1)
        values[key] = value if value is not None and contains(limits, value.bounds) else None
    return values[key]


def _computed_element(
    array: ProgramArray, index: Index, values: _Values, depth: int
) -> Expr | None:
    function = integer_rule(array.instruction, array.leaf)
    if function is not None:
        operands = [
            _value(operand, index if operand.dims else (), values, depth)
            for operand in arrays_in(array.operands)
        ]
        known = [value for value in operands if value is not None]
        cases = function(known) if len(known) == len(operands) else None
        results = dict.fromkeys([result for result, _ in cases or ()])
        return next(iter(results)) if len(results) == 1 else None
    match element_of(array.instruction, array.leaf):
        case ConstantRule():
            maps = element_at(array.ref, index)
            return maps[0].results[0] if maps else None
        case IotaRule(dimension):
            return index[dimension]
        case CopyRule(function=None) as rule if len(rule.operands) == 1:
            return _copied_element(array, index, rule.operands[0], values, depth)
    return None


def _copied_element(
    array: ProgramArray, index: Index, number: int, values: _Values, depth: int
) -> Expr | None:
    """Return an element of an array of which each element is that of one operand."""
    answer = element_reads(array.instruction, array.leaf, exact=True)
    if answer.unknown[number] is not None or len(answer.maps[number]) != 1:
        return None
    (read,) = answer.maps[number]
    if read.runtime or read.ranges or read.constraints or read.grade == "may":
        return None
    if not all(contains(d.bounds, i.bounds) for d, i in zip(read.dims, index, strict=True)):
        return None
    swap = Substitution(dict(zip(read.dims, index, strict=True)))
    at = tuple(map(swap, read.results))
    return _value(array.operand(number), at, values, depth)


def _is_inside(array: ProgramArray, index: Index) -> bool:
    return all(contains((0, size - 1), i.bounds) for i, size in zip(index, array.dims, strict=True))

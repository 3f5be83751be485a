"""The reads of an instruction's result, in the form from which sharding rules are derived."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from hlo.modules.module import Instruction
from hlo.shapes.shape import AnyShape, OpaqueShape, Shape, leaf_number, leaves
from indexing.dataflow.queries import output_to_input
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.base import MappedOp
from indexing.ops.element import ElementRule, ReductionRule, element_of
from indexing.sharding.combiners import combiner_of
from simplifier.atoms import Variable
from simplifier.linear import Expr

PASSES_LEAVES: Final = frozenset(
    {"parameter", "tuple", "get-tuple-element", "while", "conditional"}
)
"""Opcodes of instructions that only pass leaves: their rules have no factors."""


@dataclass(frozen=True, slots=True)
class ArrayRead:
    """The index of the elements of one array that an element of a result needs.

    Attributes:
        operand: number of the array among the leaves of the operands.
        indices: the index, an expression for each dimension.
        dims: the variables of the dimensions of the result.
        steps: the range variables over which the result is reduced.
        runtime: the runtime variables.
        constrained: the variables in constraints of the domain.
        is_value: the array is one that the element rule reduces or copies.
    """

    operand: int
    indices: tuple[Expr, ...]
    dims: tuple[Variable, ...]
    steps: tuple[Variable, ...]
    runtime: frozenset[Variable]
    constrained: frozenset[Variable]
    is_value: bool


@dataclass(frozen=True, slots=True)
class ResultReads:
    """The reads of an element of one array of the result.

    Attributes:
        rule: the element rule.
        combiner: the function that combines partial results, or None.
        reads: the reads of arrays whose maps are known.
        unknown: the arrays whose maps are unknown, each with the reason.
    """

    rule: ElementRule
    combiner: str | None
    reads: tuple[ArrayRead, ...]
    unknown: tuple[tuple[int, str], ...]


def arrays_of(shape: AnyShape) -> tuple[Shape | OpaqueShape, ...]:
    """Return the leaves of a shape."""
    return tuple([leaf for _, leaf in leaves(shape)])


def result_reads(instruction: Instruction) -> list[ResultReads]:
    """Return the reads of each array of the result of an instruction."""
    count = len(leaves(instruction.shape))
    if isinstance(instruction.op, MappedOp):
        return [_reads_of_op(instruction, instruction.op, output_id) for output_id in range(count)]
    return [_composed_reads(instruction, output_id) for output_id in range(count)]


def _reads_of_op(instruction: Instruction, op: MappedOp, output_id: int) -> ResultReads:
    """Return the reads by the maps to which the element rule of the op refers."""
    rule = element_of(instruction, output_id)
    shapes = tuple([operand.shape for operand in instruction.operands])
    entries = op.reads(instruction.shape, shapes, output_id)
    values = rule.values if isinstance(rule, ReductionRule) else getattr(rule, "operands", ())
    indirect = {rt.source for entry in entries for m in _maps(entry) for rt in m.runtime}
    reduces = isinstance(rule, ReductionRule)
    reads: list[ArrayRead] = []
    unknown = []
    for operand, entry in enumerate(entries):
        if not isinstance(entry, tuple):
            unknown.append((operand, str(entry.reason)))
        for m in _maps(entry):
            if operand not in indirect:
                reads.append(_read(m, operand, m.results, operand in values, reduces))
            for rt in m.runtime:
                assert isinstance(rt.source, int)
                reads.append(_read(m, rt.source, rt.index, False, reduces))
    combiner = None
    if isinstance(rule, ReductionRule):
        combiner = combiner_of(instruction, rule, output_id)
    return ResultReads(rule, combiner, tuple(reads), tuple(unknown))


def _maps(entry: object) -> Iterator[IndexingMap]:
    if isinstance(entry, tuple):
        yield from (m for m in entry if not m.is_known_empty)


def _read(
    m: IndexingMap, operand: int, indices: tuple[Expr, ...], is_value: bool, reduces: bool
) -> ArrayRead:
    steps = m.ranges if reduces else ()
    runtime = frozenset([rt.variable for rt in m.runtime])
    constrained = frozenset([v for c in m.constraints for v in c.expr.variables()])
    return ArrayRead(operand, indices, m.dims, steps, runtime, constrained, is_value)


def _composed_reads(instruction: Instruction, output_id: int) -> ResultReads:
    """Return the reads by composed maps; a reduction inside of a computation is not split."""
    answer = output_to_input(instruction, output_id)
    first = _first_leaves(instruction)
    rule = element_of(instruction, output_id)
    reads, unknown = [], []
    for k, operand in enumerate(instruction.operands):
        reason = answer.unknown[k]
        if reason is not None:
            leaf_count = len(leaves(operand.shape))
            unknown += [(first[k] + leaf, str(reason.reason)) for leaf in range(leaf_count)]
        for m, path in zip(answer.maps[k], answer.paths[k], strict=True):
            if not m.is_known_empty:
                number = first[k] + leaf_number(operand.shape, path)
                reads.append(_read(m, number, m.results, False, False))
    return ResultReads(rule, None, tuple(reads), tuple(unknown))


def _first_leaves(instruction: Instruction) -> list[int]:
    """Return the number of the first array of each operand."""
    numbers, count = [], 0
    for operand in instruction.operands:
        numbers.append(count)
        count += len(leaves(operand.shape))
    return numbers

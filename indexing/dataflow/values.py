"""Values of integer arrays that the program determines, as formulas of the index of an element.

Inside of the body of a loop, formulas may also mention the number of the iteration.  `named_values`
also give formulas of values that the program does not determine, which become runtime variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, Final

import numpy as np

from hlo.modules.module import Instruction
from hlo.shapes.element_type import range_of
from hlo.shapes.shape import Shape
from indexing.dataflow.alike import evaluated_in_calls
from indexing.dataflow.constants import is_integral
from indexing.dataflow.conversions import integer_rule
from indexing.dataflow.copies import MAX_TRACED, copied_operands, is_function, source_of
from indexing.dataflow.evaluation import evaluate_array
from indexing.dataflow.small_reductions import reduced_elements, reduction_rule
from indexing.dataflow.soundness import fault_of
from indexing.dataflow.tables import table_maps
from indexing.dataflow.value_pieces import (
    Surroundings,
    ValueMaps,
    join_pieces,
    over_dims,
    simplify_piece,
    wrap_value,
)
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.maps.shared_runtime import share_runtime
from indexing.ops.base import MappedOp
from indexing.ops.dynamic import DynamicSlice
from indexing.ops.element import CopyRule, IotaRule, element_of
from indexing.ops.integer_rules import MAX_CASES, IntegerRule, clamp_cases, identity, selection
from indexing.ops.reduce import Reduce
from simplifier.atoms import Variable
from simplifier.interval import Interval

MAX_BITS: Final = 32
"""Limit on the width of integers that become runtime variables of formulas."""


def value_maps(array: ArrayRef, around: Surroundings | None = None) -> ValueMaps | None:
    """Return the elements of an integer array as formulas of their index, or None if unknown.

    Args:
        around: what is known about the parameters of the computation of `array`.

    >>> import hlo, indexing
    >>> root = hlo.parse('''ENTRY e {
    ...   i = s32[6] iota(), iota_dimension=0
    ...   c = s32[6] constant({ 2, 2, 2, 2, 2, 2 })
    ...   m = s32[6] multiply(i, c)
    ...   ROOT r = s32[6] reverse(m), dimensions={0}
    ... }''').entry.root
    >>> for piece in value_maps(ArrayRef(root)):
    ...     print(piece)
    (d0) -> (d0 * -2 + 10), domain: d0 in [0, 5]
    """
    module = array.instruction.module
    with module.lock:
        return _trace_array(array, module.memoised((value_maps, around), lambda: _Values(around)))


def named_values(array: ArrayRef) -> ValueMaps | None:
    """Return the elements of an integer array as formulas of their index and of runtime values.

    A runtime value is an element that the program does not determine, or not by few formulas.

    Returns:
        None if an element has no name, or integers of more than `MAX_BITS` bits.

    >>> import hlo, indexing
    >>> root = hlo.parse('''ENTRY e {
    ...   n = s8[] parameter(0)
    ...   b = s8[6] broadcast(n), dimensions={}
    ...   i = s8[6] iota(), iota_dimension=0
    ...   ROOT r = s8[6] maximum(b, i)
    ... }''').entry.root
    >>> for piece in named_values(ArrayRef(root)):
    ...     print(piece)
    (d0){rt0} -> (d0), domain: d0 in [0, 5], rt0 in [-128, 4], d0 - rt0 in [1, 133]
    (d0){rt0} -> (rt0), domain: d0 in [0, 5], rt0 in [0, 127], d0 - rt0 in [-127, 0]
    """
    module = array.instruction.module
    with module.lock:
        return _trace_array(array, module.memoised((named_values,), lambda: _Values(None, True)))


def values_in_calls(array: ArrayRef, calls: int) -> ValueMaps | None:
    """Return the elements of an array that depends on constants of callers, as formulas, or None.

    Args:
        calls: see `indexing.dataflow.alike.evaluated_in_calls`.
    """
    table = evaluated_in_calls(array, calls) if calls and is_integral(array) else None
    return None if table is None else table_maps(integers(table))


def is_truth_value(array: ArrayRef) -> bool:
    """Return True for an array of predicates, or a copy of one, also in another type."""
    for _ in range(MAX_TRACED):
        shape, sources = array.array_shape, _sources(array)
        if shape is not None and shape.element_type == "pred":
            return True
        if len(sources) != 1:
            return False
        array = sources[0]
    return False


def _trace_array(array: ArrayRef, memo: _Values) -> ValueMaps | None:
    """Return the formulas of an array, after those of the arrays that determine it."""
    if (known := memo.get(array)) is not None:
        return known
    waiting = {array: _sources(array)}  # ordered, with the arrays that determine each
    visits = 0
    while waiting:
        last = next(reversed(waiting))
        visits += bool(last.calls)
        if visits > MAX_TRACED:
            return memo.setdefault(array, None)
        missing = next((source for source in waiting[last] if source not in memo), None)
        if missing is None:
            if last not in memo:
                memo[last] = _value(last, memo)
            waiting.popitem()
        elif missing in waiting:  # recursive computations
            memo[missing] = None
        else:
            waiting[missing] = _sources(missing)
    return memo[array]


def wrapping_source(
    array: ArrayRef, around: Surroundings, may_wrap: Callable[[ArrayRef], bool]
) -> ArrayRef | None:
    """Return the array that has no formula because its values may wrap around, or None.

    It is `array`, or determines it.

    Args:
        may_wrap: decides on parameters of the computation.
    """
    memo: _Values = array.instruction.module.memo.get((value_maps, around), _Values(around))
    pending, seen = [array], set[ArrayRef]()
    while pending:
        source = pending.pop()
        is_given = source.instruction.opcode == "parameter" and not source.calls
        if source in memo.wrapping or (is_given and may_wrap(source)):
            return source
        if source not in seen and memo.get(source) is None:
            seen.add(source)
            pending += _sources(source)
    return None


def _sources(array: ArrayRef) -> list[ArrayRef]:
    """Return the arrays whose values determine the value of `array`."""
    if not is_integral(array) or fault_of(array.instruction):
        return []
    forwarded = source_of(array)
    if forwarded is not None:
        return [forwarded]
    if isinstance(array.instruction.op, DynamicSlice):
        return _operands(array)
    if _arithmetic(array.instruction) is not None:
        return _operands(array)
    copies = copied_operands(array.instruction, element_of(array.instruction))
    return [ArrayRef(operand, (), array.calls) for operand, _ in copies]


def _operands(array: ArrayRef) -> list[ArrayRef]:
    return [ArrayRef(operand, (), array.calls) for operand in array.instruction.operands]


class _Values(dict[ArrayRef, ValueMaps | None]):
    """The values of arrays so far, given what is known about the parameters."""

    def __init__(self, around: Surroundings | None, names_unknown: bool = False) -> None:
        super().__init__()
        self.around = around
        self.names_unknown = names_unknown
        self.wrapping: set[ArrayRef] = set()

    def simplify(self, piece: IndexingMap) -> IndexingMap:
        """Return a simplified piece, with the same symbols in all pieces."""
        return simplify_piece(piece, self.around)


def _value(array: ArrayRef, memo: _Values) -> ValueMaps | None:
    """Return the value of `array`, given the values of its `_sources`."""
    instruction, shape = array.instruction, array.array_shape
    if shape is None or not is_integral(array) or not shape.size or fault_of(instruction):
        return None
    forwarded = source_of(array)
    value = memo[forwarded] if forwarded is not None else _computed_value(array, shape, memo)
    return _named_elements(array, shape) if value is None and memo.names_unknown else value


def _computed_value(array: ArrayRef, shape: Shape, memo: _Values) -> ValueMaps | None:
    """Return the value of an array by the element rule of its op, or by evaluation."""
    limits = range_of(shape.element_type)
    pieces = _formula(array, shape, memo)
    if pieces is not None and 0 < len(pieces) <= MAX_CASES and limits is not None:
        wrapped = [wrap_value(each, limits, memo.around) for each in join_pieces(shape, pieces)]
        parts = [part for wrapped_pieces in wrapped for part in wrapped_pieces or ()]
        if None not in wrapped and 0 < len(parts) <= MAX_CASES:
            return tuple(join_pieces(shape, parts))
        memo.wrapping.add(array)
    table = evaluate_array(array)
    if table is None:
        return memo.around.table(array) if memo.around else None
    return table_maps(integers(table))


def integers(table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return integers in a type without overflow, as differences of elements need."""
    is_wide = table.dtype.kind in "iu" and table.dtype.itemsize >= MAX_BITS // 8
    return table.astype(object if is_wide else np.int64)


def _named_elements(array: ArrayRef, shape: Shape) -> ValueMaps | None:
    """Return the elements of an array as runtime variables."""
    limits = range_of(shape.element_type)
    is_named = not array.path or array.instruction.opcode == "parameter"
    if limits is None or limits[1] - limits[0] >= 1 << MAX_BITS or array.loops or not is_named:
        return None
    variables = dims(shape)
    index = tuple([d.as_expr() for d in variables])
    rt = RuntimeVariable(Variable("rt0", *limits), array, index, limits)
    return (IndexingMap.of(variables, [rt.expr], runtime=[rt]),)


def _formula(array: ArrayRef, shape: Shape, memo: _Values) -> Sequence[IndexingMap] | None:
    """Return the value of an array by the element rule of its op."""
    if array.instruction.opcode == "parameter":
        return memo.around.value(array) if memo.around and not array.calls else None
    if isinstance(array.instruction.op, DynamicSlice):
        return _sliced_value(array, shape, memo)
    function = _arithmetic(array.instruction)
    if function is not None:
        return _elementwise_value(array, shape, function, memo)
    match element_of(array.instruction):
        case IotaRule(dimension):
            return [IndexingMap.over(shape, lambda i: [i[dimension]])]
        case CopyRule() as rule:
            return _copied_value(array, rule, memo)
    return None


def _copied_value(array: ArrayRef, rule: CopyRule, memo: _Values) -> list[IndexingMap] | None:
    """Return the value of a copy: the values of its operands at other indices."""
    result_maps: list[IndexingMap] = []
    copies = copied_operands(array.instruction, rule)
    for operand, read in copies:
        pieces = memo[ArrayRef(operand, (), array.calls)]
        if pieces is None:
            return None
        result_maps += [memo.simplify(read.then(piece)) for piece in pieces]
    return [piece for piece in result_maps if not piece.is_known_empty] if copies else None


def _sliced_value(array: ArrayRef, shape: Shape, memo: _Values) -> list[IndexingMap] | None:
    """Return the value of a dynamic-slice, whose start indices are clamped."""
    operands = _operands(array)
    values = [memo[operand] for operand in operands]
    known = [value for value in values if value is not None]
    source = operands[0].array_shape
    if len(known) < len(values) or source is None or len(values) != source.rank + 1:
        return None
    limits = [(0, n - size) for n, size in zip(source.dims, shape.dims, strict=True)]
    result_maps: list[IndexingMap] = []
    for whole, *starts in product(*known):
        for read in _slices(shape, starts, limits):
            piece = memo.simplify(read.then(whole))
            if not piece.is_known_empty:
                result_maps.append(piece)
            if len(result_maps) > MAX_CASES:
                return None
    return result_maps


def _slices(
    shape: Shape, starts: Sequence[IndexingMap], limits: Sequence[Interval]
) -> Iterator[IndexingMap]:
    """Yield the maps from a slice to its source, for each case of the clamped start indices."""
    variables = dims(shape)
    starts, runtime = share_runtime(starts)
    shared = [c for start in starts for c in start.constraints]
    pairs = zip(starts, limits, strict=True)
    for case in product(*[clamp_cases(start.results[0], limit) for start, limit in pairs]):
        yield IndexingMap.of(
            variables,
            [d + start for d, (start, _) in zip(variables, case, strict=True)],
            runtime=runtime,
            constraints=[*shared, *[c for _, conditions in case for c in conditions]],
        )


def _elementwise_value(
    array: ArrayRef, shape: Shape, rule: IntegerRule, memo: _Values
) -> list[IndexingMap] | None:
    """Return the value of an elementwise op, for each choice of pieces of its operands."""
    choices: list[ValueMaps] = []
    is_reduced = isinstance(array.instruction.op, Reduce)
    reads: list[tuple[Instruction, IndexingMap | None]]
    reads = list((reduced_elements if is_reduced else _operand_reads)(array.instruction))
    if rule is selection and (chosen := _always_selected(array, memo)) is not None:
        rule, reads = identity, [reads[chosen]]
    for operand, read in reads:
        pieces = memo[ArrayRef(operand, (), array.calls)]
        if pieces is None or read is None:
            return None
        choices.append(tuple([read.then(piece) for piece in pieces]))
    if not is_reduced:
        return _combinations(choices, rule, memo)
    folded: list[IndexingMap] | None = list(choices[0])
    for choice in choices[1:]:
        if folded is None:
            return None
        over = [over_dims(piece, dims(shape)) for piece in folded]  # simplified: of narrower dims
        folded = _combinations([over, choice], rule, memo)
    return folded


def _combinations(
    choices: Sequence[Sequence[IndexingMap]], rule: IntegerRule, memo: _Values
) -> list[IndexingMap] | None:
    """Return the values of a function for each choice of one piece of each operand."""
    if prod(map(len, choices)) > MAX_CASES**2:
        return None
    result_maps: list[IndexingMap] = []
    for combination in product(*choices):
        combined = _combine_pieces(combination, rule)
        if combined is None or len(result_maps) > MAX_CASES:
            return None
        simplified = [memo.simplify(piece) for piece in combined]
        result_maps += [piece for piece in simplified if not piece.is_known_empty]
    return result_maps


def _arithmetic(instruction: Instruction) -> IntegerRule | None:
    """Return the arithmetic of an elementwise op, or of a reduction of few elements each."""
    is_reduced = isinstance(instruction.op, Reduce)
    return (reduction_rule if is_reduced else integer_rule)(instruction)


def _combine_pieces(pieces: Sequence[IndexingMap], rule: IntegerRule) -> list[IndexingMap] | None:
    """Return the values of a function of one piece of each operand, by cases."""
    pieces, runtime = share_runtime(pieces)
    cases = rule([piece.results[0] for piece in pieces])
    if cases is None:
        return None
    shared = [c for piece in pieces for c in piece.constraints]
    return [
        IndexingMap.of(pieces[0].dims, [number], runtime=runtime, constraints=[*shared, *where])
        for number, where in cases
    ]


def _always_selected(array: ArrayRef, memo: _Values) -> int | None:
    """Return the number of the operand that a select always returns, or None."""
    predicate = memo[ArrayRef(array.instruction.operands[0], (), array.calls)]
    values = {piece.results[0] for piece in predicate or ()}
    if len(values) != 1 or not (value := values.pop()).is_constant:
        return None
    return 1 if value.constant else 2


def _operand_reads(
    instruction: Instruction,
) -> Iterator[tuple[Instruction, IndexingMap | None]]:
    """Yield each operand with its map, or None if there is not one map or it is no function."""
    op = instruction.op
    assert isinstance(op, MappedOp)
    operand_maps = op.reads(instruction.shape, tuple([o.shape for o in instruction.operands]))
    for operand, maps in zip(instruction.operands, operand_maps, strict=True):
        if not isinstance(maps, tuple) or len(maps) != 1:
            yield operand, None
            continue
        read = maps[0].simplify() if maps[0].ranges else maps[0]
        yield operand, read if is_function(read) else None

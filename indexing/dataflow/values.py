"""Values of integer arrays that the program determines, as formulas of the index of an element.

Inside of the body of a loop, formulas may also mention the number of the iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Protocol, TypeAlias

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.dataflow.constants import affine_table, is_integral
from indexing.dataflow.conversions import integer_rule
from indexing.dataflow.copies import MAX_TRACED, copied_operands, is_function, source_of
from indexing.dataflow.soundness import fault_of
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.base import MappedOp
from indexing.ops.dynamic import DynamicSlice
from indexing.ops.element import ConstantRule, CopyRule, IotaRule, element_of
from indexing.ops.integer_rules import (
    MAX_CASES,
    IntegerRule,
    clamp_cases,
    identity,
    range_of,
    selection,
)
from simplifier.bounds import KnownBounds
from simplifier.constraints import Constraint, sum_bounds
from simplifier.interval import Interval, contains, intersect

ValueMaps: TypeAlias = tuple[IndexingMap, ...]
"""Disjoint maps from the index of each element to its value; together they cover the array."""


class Surroundings(Protocol):
    """The known values of the parameters of a computation where it is called."""

    def value(self, parameter: ArrayRef) -> ValueMaps | None:
        """Return the elements of an integer array of a parameter as formulas, or None.

        Their runtime variables are symbols: equal names have equal values.
        """

    def symbol(self, name: str) -> RuntimeVariable:
        """Return a symbol of the formulas, with its bounds."""


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


def _trace_array(array: ArrayRef, memo: _Values) -> ValueMaps | None:
    """Return the formulas of an array, after those of the arrays that determine it."""
    waiting = {array: None}  # ordered
    visits = 0
    while waiting:
        last = next(reversed(waiting))
        visits += bool(last.calls)
        if visits > MAX_TRACED:
            return memo.setdefault(array, None)
        missing = [source for source in _sources(last) if source not in memo]
        if not missing:
            if last not in memo:
                memo[last] = _value(last, memo)
            waiting.popitem()
        elif missing[0] in waiting:  # recursive computations
            memo[missing[0]] = None
        else:
            waiting[missing[0]] = None
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
    if integer_rule(array.instruction) is not None:
        return _operands(array)
    copies = copied_operands(array.instruction, element_of(array.instruction))
    return [ArrayRef(operand, (), array.calls) for operand, _ in copies]


def _operands(array: ArrayRef) -> list[ArrayRef]:
    return [ArrayRef(operand, (), array.calls) for operand in array.instruction.operands]


class _Values(dict[ArrayRef, ValueMaps | None]):
    """The values of arrays so far, given what is known about the parameters."""

    def __init__(self, around: Surroundings | None) -> None:
        super().__init__()
        self.around = around
        self.wrapping: set[ArrayRef] = set()

    def simplify(self, piece: IndexingMap) -> IndexingMap:
        """Return a simplified piece, with the same symbols in all pieces."""
        return _simplify_piece(piece, self.around)


def _simplify_piece(piece: IndexingMap, around: Surroundings | None) -> IndexingMap:
    """Return a simplified piece, with the same symbols in all pieces.

    Simplification tightens the bounds of symbols; here they become constraints.
    """
    piece = piece.simplify()
    if around is None or not piece.runtime:
        return piece
    symbols = {rt.variable: around.symbol(rt.name) for rt in piece.runtime}
    results, constraints = piece.substituted({v: rt.expr for v, rt in symbols.items()})
    within = [Constraint(rt.expr, *v.bounds) for v, rt in symbols.items()]
    return IndexingMap.of(
        piece.dims,
        results,
        runtime=symbols.values(),
        constraints=[c for c in (*constraints, *within) if not c.is_true],
    )


def _value(array: ArrayRef, memo: _Values) -> ValueMaps | None:
    """Return the value of `array`, given the values of its `_sources`."""
    instruction, shape = array.instruction, array.array_shape
    limits = range_of(shape.element_type) if shape and is_integral(array) else None
    if shape is None or limits is None or not shape.size or fault_of(instruction):
        return None
    forwarded = source_of(array)
    if forwarded is not None:
        return memo[forwarded]
    pieces = _formula(array, shape, memo)
    if pieces is None or not 0 < len(pieces) <= MAX_CASES:
        return None
    parts = [
        part
        for piece in _join_pieces(shape, pieces)
        for part in wrap_value(piece, limits, memo.around)
    ]
    if not 0 < len(parts) <= MAX_CASES:
        memo.wrapping.add(array)
        return None
    return tuple(_join_pieces(shape, parts))


def wrap_value(
    piece: IndexingMap, limits: Interval, around: Surroundings | None
) -> Iterator[IndexingMap]:
    """Yield the value modulo the number of values of its type, in a piece for each multiple.

    At most `MAX_CASES` + 1 pieces are yielded.
    """
    (value,) = piece.results
    if contains(limits, value.bounds):
        yield piece
        return
    low, high = KnownBounds(sum_bounds(piece.constraints)).bounds(value)
    low, high = intersect((low, high), value.bounds)
    count = limits[1] - limits[0] + 1
    first, last = (low - limits[0]) // count, (high - limits[0]) // count
    for multiple in range(first, min(last, first + MAX_CASES) + 1):
        inside = Constraint(value, limits[0] + multiple * count, limits[1] + multiple * count)
        part = replace(
            piece,
            results=(value - multiple * count,),
            constraints=(*piece.constraints, *([] if inside.is_true else [inside])),
        )
        part = _simplify_piece(part, around)
        if not part.is_known_empty:
            yield part


def _join_pieces(shape: Shape, pieces: Sequence[IndexingMap]) -> Sequence[IndexingMap]:
    """Return one piece if all pieces, which cover the array, have the same formula."""
    (value,) = pieces[0].results
    if len(pieces) == 1 or any(piece.results != (value,) for piece in pieces):
        return pieces
    variables, symbols = dims(shape), merged_runtime(pieces)
    mentioned = set(value.variables()) - {rt.variable for rt in symbols}
    if not mentioned <= set(variables):  # bounds of dimensions differ between pieces
        return pieces
    return [IndexingMap.of(variables, [value], runtime=symbols)]


def _formula(array: ArrayRef, shape: Shape, memo: _Values) -> Sequence[IndexingMap] | None:
    """Return the value of an array by the element rule of its op."""
    if array.instruction.opcode == "parameter":
        return memo.around.value(array) if memo.around and not array.calls else None
    if isinstance(array.instruction.op, DynamicSlice):
        return _sliced_value(array, shape, memo)
    function = integer_rule(array.instruction)
    if function is not None:
        return _elementwise_value(array, shape, function, memo)
    match element_of(array.instruction):
        case ConstantRule():
            return affine_table(array)
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
    shared = [c for start in starts for c in start.constraints]
    pairs = zip(starts, limits, strict=True)
    for case in product(*[clamp_cases(start.results[0], limit) for start, limit in pairs]):
        yield IndexingMap.of(
            variables,
            [d + start for d, (start, _) in zip(variables, case, strict=True)],
            runtime=merged_runtime(starts),
            constraints=[*shared, *[c for _, conditions in case for c in conditions]],
        )


def _elementwise_value(
    array: ArrayRef, shape: Shape, rule: IntegerRule, memo: _Values
) -> list[IndexingMap] | None:
    """Return the value of an elementwise op, for each choice of pieces of its operands."""
    variables, choices = dims(shape), list[ValueMaps]()
    reads = list(_operand_reads(array.instruction))
    if rule is selection and (chosen := _always_selected(array, memo)) is not None:
        rule, reads = identity, [reads[chosen]]
    for operand, read in reads:
        pieces = memo[ArrayRef(operand, (), array.calls)]
        if pieces is None or read is None:
            return None
        choices.append(tuple([read.then(piece) for piece in pieces]))
    result_maps: list[IndexingMap] = []
    for choice in product(*choices):
        cases = rule([piece.results[0] for piece in choice])
        if cases is None or len(result_maps) > MAX_CASES:
            return None
        shared = [c for piece in choice for c in piece.constraints]
        runtime = merged_runtime(choice)
        for number, conditions in cases:
            constraints = [*shared, *conditions]
            piece = IndexingMap.of(variables, [number], runtime=runtime, constraints=constraints)
            piece = memo.simplify(piece)
            if not piece.is_known_empty:
                result_maps.append(piece)
    return result_maps


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
        is_one = isinstance(maps, tuple) and len(maps) == 1 and is_function(maps[0])
        yield operand, maps[0] if isinstance(maps, tuple) and is_one else None


def merged_runtime(maps: Iterable[IndexingMap]) -> tuple[RuntimeVariable, ...]:
    """Return the distinct runtime variables of maps."""
    return tuple({rt: None for m in maps for rt in m.runtime})

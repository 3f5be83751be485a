"""Constant folding of runtime variables: a value that the program determines becomes a formula.

A start index is often a constant, an iota, or integer arithmetic on them.  `folded` replaces such a
runtime variable by its formula, with the semantics of the HLO:

* *Clamping*: if the formula may leave the clamp of the operation, the map is split into disjoint
  pieces (below, inside and above), so no start index is out of bounds.
* *Division* of integers rounds towards zero, not down.
* *Wrap-around*: a formula that may leave the range of its type is not folded.

A runtime variable that does not fold is traced through copies (reshape, slice, the parameter of a
fusion, …) to the instruction that computes its value.  Two runtime variables with the same source
element are merged into one.

Folding belongs to composition, as in XLA.  `indexing.output_to_input` of a single instruction does
not fold its operands; a fusion or a computation folds the values computed inside it.

Source: XLA ``docs/operation_semantics.md``, "DynamicSlice", "Gather"; wrong start indices without
the clamp: openxla/xla#49120, openxla/xla#49121.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Protocol, TypeAlias

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.dataflow.constants import affine_table, element_at, is_integral
from indexing.dataflow.conversions import is_conversion, keeps_every_value
from indexing.dataflow.copies import MAX_TRACED, copied_operands, is_function, source_of
from indexing.dataflow.soundness import fault_of
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.base import MappedOp
from indexing.ops.element import (
    ConstantRule,
    CopyRule,
    ElementwiseRule,
    IotaRule,
    element_of,
)
from indexing.ops.integer_rules import MAX_CASES, Cases, IntegerRule, clamp_cases, range_of
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.interval import contains
from simplifier.linear import Expr
from simplifier.substitute import Substitution

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


# ---------------------------------------------------------------- maps


def folded(
    indexing_map: IndexingMap, around: Surroundings | None = None
) -> tuple[IndexingMap, ...]:
    """Return a map without the runtime variables that the program determines, in disjoint pieces.

    Args:
        around: what is known about the parameters of the computation.

    >>> import hlo, indexing
    >>> root = hlo.parse('''ENTRY e {
    ...   p = f32[10] parameter(0)
    ...   c = s32[] constant(9)
    ...   ROOT r = f32[4] dynamic-slice(p, c), dynamic_slice_sizes={4}
    ... }''').entry.root
    >>> (read,) = indexing.output_to_input(root).maps[0]
    >>> print(read)
    (d0){rt0} -> (d0 + rt0), domain: d0 in [0, 3], rt0 in [0, 6]
    >>> print(*folded(read))
    (d0) -> (d0 + 6), domain: d0 in [0, 3]
    """
    pieces = [indexing_map]
    for number in range(len(indexing_map.runtime)):
        # from the last, so that the remaining variables keep their positions
        at = len(indexing_map.runtime) - 1 - number
        pieces = [new for piece in pieces for new in _fold_at(piece, at, len(pieces), around)]
    return tuple([_merged(piece) for piece in pieces])


def _fold_at(
    piece: IndexingMap, at: int, pieces: int, around: Surroundings | None
) -> Iterator[IndexingMap]:
    """Yield `piece` with runtime variable `at` folded, or traced to its source.

    Args:
        pieces: the number of pieces of the whole map, for the budget.
    """
    rt = piece.runtime[at]
    if rt.is_fixed or not isinstance(rt.array, ArrayRef):
        yield piece
        return
    source, index = source_element(rt.array, rt.index)
    cases, mentioned = _cases(source, index, rt, around)
    rest = (*piece.runtime[:at], *piece.runtime[at + 1 :])
    rest += tuple([each for each in mentioned if each not in rest])
    if cases is None or pieces * len(cases) > MAX_CASES:
        rt = replace(rt, array=source, index=tuple(index))
        yield replace(piece, runtime=(*piece.runtime[:at], rt, *piece.runtime[at + 1 :]))
        return
    for value, conditions in cases:
        swap = Substitution({rt.variable: value})
        kept = [Constraint(swap(c.expr), c.lower, c.upper) for c in piece.constraints]
        yield replace(
            piece,
            runtime=tuple([replace(r, index=tuple(map(swap, r.index))) for r in rest]),
            results=tuple(map(swap, piece.results)),
            constraints=tuple([c for c in (*kept, *conditions) if not c.is_true]),
        )


def _cases(
    array: ArrayRef, index: Sequence[Expr], rt: RuntimeVariable, around: Surroundings | None
) -> tuple[Cases | None, tuple[RuntimeVariable, ...]]:
    """Return the clamped value of a runtime variable by cases, or None if it does not fold.

    If its bounds are narrower than its clamp, nothing is read outside the bounds.

    Returns:
        The cases, and the runtime variables that they mention.
    """
    cases: Cases = []
    values = element_at(array, index) or value_maps(array, around)
    for piece in values or ():
        swap = Substitution(dict(zip(piece.dims, index, strict=True)))
        in_piece = _conditions(piece, index)
        number = swap(piece.results[0])
        for clamped, in_case in clamp_cases(number, rt.clamp) if rt.clamp else [(number, ())]:
            in_bounds = Constraint(clamped, *rt.variable.bounds)
            constraints = [*in_piece, *in_case, in_bounds]
            if not any(c.is_false for c in constraints):
                cases.append((clamped, tuple([c for c in constraints if not c.is_true])))
    return cases if values else None, merged_runtime(values or ())


def _conditions(piece: IndexingMap, index: Sequence[Expr]) -> list[Constraint]:
    """Return the constraints under which `index` is in the domain of `piece`."""
    swap = Substitution(dict(zip(piece.dims, index, strict=True)))
    return [
        *[Constraint(swap(c.expr), c.lower, c.upper) for c in piece.constraints],
        *[Constraint(i, *d.bounds) for d, i in zip(piece.dims, index, strict=True)],
    ]


def merged_runtime(maps: Iterable[IndexingMap]) -> tuple[RuntimeVariable, ...]:
    """Return the distinct runtime variables of maps."""
    return tuple({rt: None for m in maps for rt in m.runtime})


def _merged(indexing_map: IndexingMap) -> IndexingMap:
    """Return a map with one runtime variable for each source element with its clamp and bounds."""
    kept: dict[object, RuntimeVariable] = {}
    same: dict[Variable, Expr] = {}
    for rt in indexing_map.runtime:
        key = rt.array, rt.index, rt.clamp, rt.variable.bounds
        if rt.array is not None and kept.setdefault(key, rt) is not rt:
            same[rt.variable] = kept[key].expr
    if not same:
        return indexing_map
    results, constraints = indexing_map.substituted(same)
    swap = Substitution(same)
    runtime = [
        replace(rt, index=tuple(map(swap, rt.index)))
        for rt in indexing_map.runtime
        if rt.variable not in same
    ]
    return replace(
        indexing_map, runtime=tuple(runtime), results=tuple(results), constraints=tuple(constraints)
    )


# ---------------------------------------------------------------- sources of values


def source_element(array: ArrayRef, index: Sequence[Expr]) -> tuple[ArrayRef, Sequence[Expr]]:
    """Trace the element at `index` of `array` through copies to the element it is a copy of.

    Runtime variables refer to instructions, so the result is never a leaf of a tuple.
    """
    sources = [(array, index), *copied_elements(array, index)]
    return next((source for source in reversed(sources) if not source[0].path), sources[0])


def copied_elements(
    array: ArrayRef, index: Sequence[Expr]
) -> Iterator[tuple[ArrayRef, Sequence[Expr]]]:
    """Yield each element that the element at `index` of `array` is a copy of, nearest first."""
    steps = 0
    while steps < MAX_TRACED:
        copied = None if fault_of(array.instruction) else _copied_from(array, index)
        if copied is None:
            return
        array, index = copied
        steps += bool(array.calls)
        yield copied


def _copied_from(array: ArrayRef, index: Sequence[Expr]) -> tuple[ArrayRef, Sequence[Expr]] | None:
    """Return the source of one copy, or None if the instruction computes the element."""
    forwarded = source_of(array)
    if forwarded is not None:
        return forwarded, index
    instruction = array.instruction
    rule = element_of(instruction)
    if is_conversion(rule) and keeps_every_value(instruction):
        return ArrayRef(instruction.operands[0], (), array.calls), index
    for operand, reads in copied_operands(instruction, rule):
        swap = Substitution(dict(zip(reads.dims, index, strict=True)))
        if all(c.is_true for c in _conditions(reads, index)):
            return ArrayRef(operand, (), array.calls), list(map(swap, reads.results))
    return None


# ---------------------------------------------------------------- values


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
    memos = array.instruction.module.memo
    memo: _Values = memos.setdefault((value_maps, around), _Values(around))
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


def _sources(array: ArrayRef) -> list[ArrayRef]:
    """Return the arrays whose values determine the value of `array`."""
    if not is_integral(array) or fault_of(array.instruction):
        return []
    forwarded = source_of(array)
    if forwarded is not None:
        return [forwarded]
    match element_of(array.instruction):
        case ElementwiseRule(function=function) if function and function.integer:
            operands = list(array.instruction.operands)
        case CopyRule() as rule:
            operands = [operand for operand, _ in copied_operands(array.instruction, rule)]
        case _:
            return []
    return [ArrayRef(operand, (), array.calls) for operand in operands]


class _Values(dict[ArrayRef, ValueMaps | None]):
    """The values of arrays so far, given what is known about the parameters."""

    def __init__(self, around: Surroundings | None) -> None:
        super().__init__()
        self.around = around

    def simplified(self, piece: IndexingMap) -> IndexingMap:
        """Return a simplified piece, with the same symbols in all pieces.

        Simplification tightens the bounds of symbols; here they become constraints.
        """
        piece = piece.simplify()
        if self.around is None or not piece.runtime:
            return piece
        symbols = {rt.variable: self.around.symbol(rt.name) for rt in piece.runtime}
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
    in_range = all(contains(limits, piece.results[0].bounds) for piece in pieces)
    return tuple(pieces) if in_range else None


def _formula(array: ArrayRef, shape: Shape, memo: _Values) -> Sequence[IndexingMap] | None:
    """Return the value of an array by the element rule of its op."""
    if array.instruction.opcode == "parameter":
        return memo.around.value(array) if memo.around and not array.calls else None
    match element_of(array.instruction):
        case ConstantRule():
            return affine_table(array)
        case IotaRule(dimension):
            return [IndexingMap.over(shape, lambda i: [i[dimension]])]
        case CopyRule() as rule:
            return _copied_value(array, rule, memo)
        case ElementwiseRule(function=function) if function and function.integer:
            return _elementwise_value(array, shape, function.integer, memo)
    return None


def _copied_value(array: ArrayRef, rule: CopyRule, memo: _Values) -> list[IndexingMap] | None:
    """Return the value of a copy: the values of its operands at other indices."""
    result_maps: list[IndexingMap] = []
    copies = copied_operands(array.instruction, rule)
    for operand, read in copies:
        pieces = memo[ArrayRef(operand, (), array.calls)]
        if pieces is None:
            return None
        result_maps += [memo.simplified(read.then(piece)) for piece in pieces]
    return [piece for piece in result_maps if not piece.is_known_empty] if copies else None


def _elementwise_value(
    array: ArrayRef, shape: Shape, rule: IntegerRule, memo: _Values
) -> list[IndexingMap] | None:
    """Return the value of an elementwise op, for each choice of pieces of its operands."""
    variables, choices = dims(shape), list[ValueMaps]()
    for operand, read in _operand_reads(array.instruction):
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
            piece = memo.simplified(piece)
            if not piece.is_known_empty:
                result_maps.append(piece)
    return result_maps


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

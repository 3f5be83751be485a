"""Constant folding of runtime variables: a value that the program determines becomes a formula.

A start index is often a constant, an iota, or integer arithmetic on them.  `fold_runtime` replaces
such a runtime variable by its formula, with the semantics of the HLO:

* *Clamping*: if the formula may leave the clamp of the operation, the map is split into disjoint
  pieces (below, inside and above), so no start index is out of bounds.
* *Division* of integers rounds towards zero, not down.
* *Wrap-around*: a formula that may leave the range of its type is split into pieces, one for each
  multiple of ``2^bits`` that is subtracted.

A runtime variable that does not fold is traced through copies (reshape, slice, the parameter of a
fusion, …) to the instruction that computes its value, which is in the body of the same loops: the
parameter of a body has another value in each iteration.  Two runtime variables with the same source
element, in the same iterations, are merged into one.

Folding belongs to composition, as in XLA.  `indexing.output_to_input` of a single instruction does
not fold its operands; a fusion or a computation folds the values computed inside it.

Source: XLA ``docs/operation_semantics.md``, "DynamicSlice", "Gather"; wrong start indices without
the clamp: openxla/xla#49120, openxla/xla#49121.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import gcd

from indexing.dataflow.constants import element_at, is_integral
from indexing.dataflow.conversions import keeps_every_value
from indexing.dataflow.copies import MAX_TRACED, copied_operands, source_of
from indexing.dataflow.soundness import fault_of
from indexing.dataflow.value_pieces import Surroundings, merged_runtime
from indexing.dataflow.values import named_values, value_maps
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.replaced_variables import with_replaced_variables
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.element import element_of
from indexing.ops.integer_rules import MAX_CASES, Cases, clamp_cases
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.domain import are_disjoint
from simplifier.interval import Interval, intersect
from simplifier.linear import Expr
from simplifier.substitute import Substitution

# ---------------------------------------------------------------- maps


def fold_runtime(
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
    >>> print(*fold_runtime(read))
    (d0) -> (d0 + 6), domain: d0 in [0, 3]
    """
    pieces = [indexing_map]
    for number in range(len(indexing_map.runtime)):
        # from the last, so that the remaining variables keep their positions
        at = len(indexing_map.runtime) - 1 - number
        pieces = [new for piece in pieces for new in _fold_at(piece, at, len(pieces), around)]
    return tuple([_merge_runtime(piece) for piece in pieces])


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
    source, index = source_element(rt.array, rt.element)
    cases, mentioned = _cases(source, index, rt, around)
    rest = (*piece.runtime[:at], *piece.runtime[at + 1 :])
    cases, mentioned = _with_variables(rest, cases, mentioned)
    rest += mentioned
    cases = _possible_cases(cases, piece) if cases and pieces * len(cases) > MAX_CASES else cases
    if cases is None or pieces * len(cases) > MAX_CASES:
        rt = replace(rt, array=source, index=(*rt.iterations, *index))
        traced = replace(piece, runtime=(*piece.runtime[:at], rt, *piece.runtime[at + 1 :]))
        yield _narrow_piece(traced, rt)
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


def _with_variables(
    own: Sequence[RuntimeVariable], cases: Cases | None, mentioned: Iterable[RuntimeVariable]
) -> tuple[Cases | None, tuple[RuntimeVariable, ...]]:
    """Return cases that mention the variables `own` of the same values, and the further variables.

    A piece may know narrower bounds of a value, such as of the iterations that execute a branch.
    """
    values: dict[Variable, Expr] = {}
    within: list[Constraint] = []
    further: list[RuntimeVariable] = []
    by_value = {_value_of(rt): rt for rt in own}
    for rt in mentioned:
        same = by_value.get(_value_of(rt))
        if same is None:
            further.append(rt)
        elif same.variable != rt.variable:
            values[rt.variable] = same.expr
            within.append(Constraint(same.expr, *rt.variable.bounds))
    if cases and values:
        swap = Substitution(values)
        cases = [
            (
                swap(value),
                (*[Constraint(swap(c.expr), c.lower, c.upper) for c in conditions], *within),
            )
            for value, conditions in cases
        ]
        further = [replace(rt, index=tuple(map(swap, rt.index))) for rt in further]
    return cases, tuple(further)


def _value_of(rt: RuntimeVariable) -> object:
    """Return a key that variables have in common if they are the same value."""
    return rt.name if rt.array is None else (rt.array, rt.index, rt.clamp)


def _possible_cases(cases: Cases, piece: IndexingMap) -> Cases:
    """Return the cases whose conditions the constraints of a piece do not exclude."""
    return [case for case in cases if not are_disjoint([*piece.constraints, *case[1]])]


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
            if not any(c.is_false for c in constraints) and not are_disjoint(constraints):
                cases.append((clamped, tuple([c for c in constraints if not c.is_true])))
    return cases if values else None, merged_runtime(values or ())


def _narrow_piece(piece: IndexingMap, rt: RuntimeVariable) -> IndexingMap:
    """Return a piece whose runtime scalar `rt` has only the values that it can have.

    They are in an interval, and may have one remainder, as ``2 * pos`` is even.
    """
    array, clamp = rt.array, rt.clamp
    if not isinstance(array, ArrayRef) or clamp is None or rt.index or not is_integral(array):
        return piece
    values = [value.results[0] for value in named_values(array) or ()]
    ends = [min(max(end, clamp[0]), clamp[1]) for value in values for end in value.bounds]
    bounds = intersect(rt.variable.bounds, (min(ends), max(ends))) if ends else rt.variable.bounds
    if bounds[0] > bounds[1]:
        return piece
    variable = Variable(rt.name, *bounds)
    if variable != rt.variable:
        replaced = {rt.variable: variable.as_expr()}
        piece = with_replaced_variables(piece, replaced, {rt.variable: variable})
    step, rest = _remainder(values, clamp) if values else (1, 0)
    if step < 2:
        return piece
    return piece.with_constraints([Constraint((variable - rest) % step, 0, 0)])


def _remainder(values: Sequence[Expr], clamp: Interval) -> tuple[int, int]:
    """Return a step and the remainder by it of all clamped values; a step of 1 if there is none."""
    low, high = clamp
    constants = [value.constant for value in values]
    constants += [low] if any(value.bounds[0] < low for value in values) else []
    constants += [high] if any(value.bounds[1] > high for value in values) else []
    factors = [factor for value in values for _, factor in value.terms]
    step = gcd(*factors, *[number - constants[0] for number in constants[1:]])
    return step, constants[0] % step if step else 0


def _conditions(piece: IndexingMap, index: Sequence[Expr]) -> list[Constraint]:
    """Return the constraints under which `index` is in the domain of `piece`."""
    swap = Substitution(dict(zip(piece.dims, index, strict=True)))
    return [
        *[Constraint(swap(c.expr), c.lower, c.upper) for c in piece.constraints],
        *[Constraint(i, *d.bounds) for d, i in zip(piece.dims, index, strict=True)],
    ]


def _merge_runtime(indexing_map: IndexingMap) -> IndexingMap:
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
        copied = None if fault_of(array.instruction) else _copy_source(array, index)
        if copied is None:
            return
        array, index = copied
        steps += bool(array.calls)
        yield copied


def _copy_source(array: ArrayRef, index: Sequence[Expr]) -> tuple[ArrayRef, Sequence[Expr]] | None:
    """Return the source of one copy, or None if the instruction computes the element."""
    forwarded = source_of(array)
    if forwarded is not None:
        return forwarded, index
    instruction = array.instruction
    if keeps_every_value(instruction):
        return ArrayRef(instruction.operands[0], (), array.calls), index
    for operand, reads in copied_operands(instruction, element_of(instruction)):
        swap = Substitution(dict(zip(reads.dims, index, strict=True)))
        if all(c.is_true for c in _conditions(reads, index)):
            return ArrayRef(operand, (), array.calls), list(map(swap, reads.results))
    return None

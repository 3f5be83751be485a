"""Runtime variables whose value follows from the program, replaced by that value.

A start index is often no secret: a constant, an iota, or integer arithmetic on them.  `folded` puts
the formula in the place of such a runtime variable.  The formula has the meaning of the HLO:

* the *clamp* of the operation stays: where the formula may leave it, the map is split into disjoint
  pieces (below, inside and above), so that no start index ever leads outside of the operand;
* integer *division* rounds towards zero, not down;
* numbers *wrap around* in their type: a formula that may leave its type's range is not folded.

What does not fold is traced through moves (reshape, slice, a fusion's parameter, …) to the
instruction that the value comes from, so that two runtime variables which are the same element of
the same instruction are one.

Folding belongs to composition, as in XLA: `indexing.output_to_input` of a single instruction takes
its operands as they come, and a fusion or a whole computation folds what stands inside of it.

Source: XLA ``docs/operation_semantics.md``, "DynamicSlice", "Gather"; wrong start indices without
the clamp: openxla/xla#49120, openxla/xla#49121.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import TypeAlias

from hlo.modules.bind import check_instruction
from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.dataflow.constants import affine_table, element_at, is_integral
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops import integer_rules
from indexing.ops.base import MappedOp, RoutingOp
from indexing.ops.element import (
    ConstantRule,
    CopyRule,
    ElementRule,
    ElementwiseRule,
    IotaRule,
    element_of,
)
from indexing.ops.integer_rules import MAX_CASES, Cases, IntegerRule, cut, range_of
from indexing.ops.structured_ops import InlineOp
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.interval import contains
from simplifier.linear import Expr
from simplifier.substitute import Substitution

Value: TypeAlias = tuple[IndexingMap, ...]
"""Disjoint maps from an element to the one number that it is, which cover all elements."""


# ---------------------------------------------------------------- maps


def folded(found: IndexingMap) -> tuple[IndexingMap, ...]:
    """`found` without the runtime variables that the program decides, in disjoint pieces.

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
    pieces = [found]
    for number in range(len(found.runtime)):
        # from the end, so that what is left to fold keeps its place
        at = len(found.runtime) - 1 - number
        pieces = [new for piece in pieces for new in _folded_at(piece, at, len(pieces))]
    return tuple([_merged(piece) for piece in pieces])


def _folded_at(found: IndexingMap, at: int, pieces: int) -> Iterator[IndexingMap]:
    """`found` with one runtime variable folded, or at least traced to where it comes from."""
    rt = found.runtime[at]
    if rt.is_fixed or not isinstance(rt.array, ArrayRef):
        yield found
        return
    place, index = origin(rt.array, rt.index)
    cases = _cases(place, index, rt)
    rest = (*found.runtime[:at], *found.runtime[at + 1 :])
    if cases is None or pieces * len(cases) > MAX_CASES:
        rt = replace(rt, array=place, index=tuple(index))
        yield replace(found, runtime=(*found.runtime[:at], rt, *found.runtime[at + 1 :]))
        return
    for value, where in cases:
        swap = Substitution({rt.variable: value})
        made = (*[Constraint(swap(c.expr), c.lower, c.upper) for c in found.constraints], *where)
        yield replace(
            found,
            runtime=tuple([replace(r, index=tuple(map(swap, r.index))) for r in rest]),
            results=tuple(map(swap, found.results)),
            constraints=tuple([c for c in made if not c.is_true]),
        )


def _cases(place: ArrayRef, index: Sequence[Expr], rt: RuntimeVariable) -> Cases | None:
    """What a runtime variable is, clamped, and under which constraints; None if it does not fold.

    Where its bounds are narrower than its clamp, nothing is read outside of them.
    """
    found: Cases = []
    values = element_at(place, index) or value(place)
    for piece in values or ():
        swap = Substitution(dict(zip(piece.dims, index, strict=True)))
        where = _conditions(piece, index)
        number = swap(piece.results[0])
        for clamped, when in cut(number, rt.clamp) if rt.clamp else [(number, ())]:
            inside = Constraint(clamped, *rt.variable.bounds)
            constraints = [*where, *when, inside]
            if not any(c.is_false for c in constraints):
                found.append((clamped, tuple([c for c in constraints if not c.is_true])))
    return found if values else None


def _conditions(piece: IndexingMap, at: Sequence[Expr]) -> list[Constraint]:
    """What holds of the place `at` if it is a point of `piece`."""
    swap = Substitution(dict(zip(piece.dims, at, strict=True)))
    return [
        *[Constraint(swap(c.expr), c.lower, c.upper) for c in piece.constraints],
        *[Constraint(i, *d.bounds) for d, i in zip(piece.dims, at, strict=True)],
    ]


def _merged(found: IndexingMap) -> IndexingMap:
    """`found` with one runtime variable for those that are the same element, clamped alike."""
    kept: dict[object, RuntimeVariable] = {}
    same: dict[Variable, Expr] = {}
    for rt in found.runtime:
        what = rt.array, rt.index, rt.clamp, rt.variable.bounds
        if rt.array is not None and kept.setdefault(what, rt) is not rt:
            same[rt.variable] = kept[what].expr
    if not same:
        return found
    results, constraints = found.substituted(same)
    swap = Substitution(same)
    runtime = [
        replace(rt, index=tuple(map(swap, rt.index)))
        for rt in found.runtime
        if rt.variable not in same
    ]
    return replace(
        found, runtime=tuple(runtime), results=tuple(results), constraints=tuple(constraints)
    )


# ---------------------------------------------------------------- where a value comes from


def origin(place: ArrayRef, index: Sequence[Expr]) -> tuple[ArrayRef, Sequence[Expr]]:
    """The instruction that makes the element at `index` of `place`, which is only moved from there.

    Runtime variables name instructions, so the answer is never a leaf of a tuple.
    """
    nameable = place, index
    while True:
        moved = _moved(place, index)
        if moved is None:
            return nameable
        place, index = moved
        if not place.path:
            nameable = moved


def _moved(place: ArrayRef, index: Sequence[Expr]) -> tuple[ArrayRef, Sequence[Expr]] | None:
    """One step of `origin`; None where the value is made."""
    inner = _passed_on(place)
    if inner is not None:
        return inner, index
    instruction = place.instruction
    element = element_of(instruction)
    if _is_conversion(element) and _keeps_every_value(instruction):
        return ArrayRef(instruction.operands[0], (), place.calls), index
    for operand, reads in _copies(instruction, element):
        swap = Substitution(dict(zip(reads.dims, index, strict=True)))
        if all(c.is_true for c in _conditions(reads, index)):
            return ArrayRef(operand, (), place.calls), list(map(swap, reads.results))
    return None


def forwarded_from(place: ArrayRef) -> ArrayRef:
    """The array that `place` is, through tuples, copies and calls that pass it on whole.

    >>> import hlo, indexing
    >>> root = hlo.parse('''ENTRY e {
    ...   p = (f32[2], s32[]) parameter(0)
    ...   x = f32[2] get-tuple-element(p), index=0
    ...   y = f32[2] copy(x)
    ...   ROOT t = (f32[2]) tuple(y)
    ... }''').entry.root
    >>> forwarded_from(ArrayRef(root, (0,)))
    ArrayRef(instruction=<parameter 'p' of 'e'>, path=(0,), calls=())
    """
    while (inner := _passed_on(place)) is not None:
        place = inner
    return place


def _passed_on(place: ArrayRef) -> ArrayRef | None:
    """The array that `place` is, whole and under another name; None where it is none."""
    instruction, path, calls = place
    op = instruction.op
    if isinstance(op, RoutingOp):
        number, inside = op.route(path)
        return ArrayRef(instruction.operands[number], inside, calls)
    if isinstance(op, InlineOp):
        return ArrayRef(instruction.called_computations[0].root, path, (*calls, instruction))
    if instruction.opcode == "parameter" and calls:
        call = calls[-1]
        if isinstance(call, Instruction) and isinstance(call.op, InlineOp):
            number = instruction.computation.parameters.index(instruction)
            return ArrayRef(call.operands[number], path, calls[:-1])
    return None


def _is_conversion(element: ElementRule) -> bool:
    """The element is an operand's value in another type."""
    function = element.function if isinstance(element, ElementwiseRule) else None
    return function is not None and function.integer is integer_rules.unchanged


def _keeps_every_value(convert: Instruction) -> bool:
    """A value-preserving integer conversion."""
    from_, to = convert.operands[0].shape, convert.shape
    if not isinstance(from_, Shape) or not isinstance(to, Shape):
        return False
    ours, theirs = range_of(from_.element_type), range_of(to.element_type)
    return ours is not None and theirs is not None and contains(theirs, ours)


def _copies(instruction: Instruction, rule: ElementRule) -> list[tuple[Instruction, IndexingMap]]:
    """The operands that the elements are copies of, with maps; none if a map is not a function."""
    op = instruction.op
    if not isinstance(op, MappedOp) or not isinstance(rule, CopyRule) or rule.function:
        return []
    maps = op.reads(instruction.shape, tuple([o.shape for o in instruction.operands]))
    found = []
    for number in rule.operands:
        reads = maps[number]
        if isinstance(reads, Unknown) or not all(map(_is_function, reads)):
            return []
        found += [(instruction.operands[number], read) for read in reads]
    return found


def _is_function(read: IndexingMap) -> bool:
    return not read.ranges and not read.runtime and read.grade == "exact"


# ---------------------------------------------------------------- values


def value(place: ArrayRef) -> Value | None:
    """The numbers of an array of integers as formulas of its elements' places; None if unknown.

    >>> import hlo, indexing
    >>> root = hlo.parse('''ENTRY e {
    ...   i = s32[6] iota(), iota_dimension=0
    ...   c = s32[6] constant({ 2, 2, 2, 2, 2, 2 })
    ...   m = s32[6] multiply(i, c)
    ...   ROOT r = s32[6] reverse(m), dimensions={0}
    ... }''').entry.root
    >>> for piece in value(ArrayRef(root)):
    ...     print(piece)
    (d0) -> (d0 * -2 + 10), domain: d0 in [0, 5]
    """
    memo: dict[ArrayRef, Value | None] = place.instruction.module.memo.setdefault(value, {})
    waiting = [place]
    while waiting:
        last = waiting[-1]
        missing = [source for source in _sources(last) if source not in memo]
        if not missing:
            if last not in memo:
                memo[last] = _value(last, memo)
            waiting.pop()
        elif missing[0] in waiting:  # computations that call each other
            memo[missing[0]] = None
        else:
            waiting.append(missing[0])
    return memo[place]


def _sources(place: ArrayRef) -> list[ArrayRef]:
    """The arrays whose values the value of `place` follows from."""
    if not is_integral(place) or check_instruction(place.instruction):
        return []
    inner = _passed_on(place)
    if inner is not None:
        return [inner]
    match element_of(place.instruction):
        case ElementwiseRule(function=function) if function and function.integer:
            operands = list(place.instruction.operands)
        case CopyRule() as element:
            operands = [operand for operand, _ in _copies(place.instruction, element)]
        case _:
            return []
    return [ArrayRef(operand, (), place.calls) for operand in operands]


def _value(place: ArrayRef, memo: dict[ArrayRef, Value | None]) -> Value | None:
    """The value of `place`, where those of its `_sources` are known."""
    instruction, shape = place.instruction, place.array_shape
    limits = range_of(shape.element_type) if shape else None
    if shape is None or limits is None or not shape.size or check_instruction(instruction):
        return None
    inner = _passed_on(place)
    if inner is not None:
        return memo[inner]
    found = _formula(place, shape, memo)
    if found is None or not 0 < len(found) <= MAX_CASES:
        return None
    in_range = all(contains(limits, piece.results[0].bounds) for piece in found)
    return tuple(found) if in_range else None


def _formula(
    place: ArrayRef, shape: Shape, memo: dict[ArrayRef, Value | None]
) -> list[IndexingMap] | None:
    """The value of an array by what its op says of an element."""
    match element_of(place.instruction):
        case ConstantRule():
            return affine_table(place)
        case IotaRule(dimension):
            return [IndexingMap.over(shape, lambda i: [i[dimension]])]
        case CopyRule() as element:
            return _put_together(place, element, memo)
        case ElementwiseRule(function=function) if function and function.integer:
            return _computed(place, shape, function.integer, memo)
    return None


def _put_together(
    place: ArrayRef, element: CopyRule, memo: dict[ArrayRef, Value | None]
) -> list[IndexingMap] | None:
    """The value of a copy: pieces of its operands' values at other indices."""
    found: list[IndexingMap] = []
    reads = _copies(place.instruction, element)
    for operand, moved in reads:
        pieces = memo[ArrayRef(operand, (), place.calls)]
        if pieces is None:
            return None
        found += [moved.then(piece).simplify() for piece in pieces]
    return [piece for piece in found if not piece.is_known_empty] if reads else None


def _computed(
    place: ArrayRef, shape: Shape, rule: IntegerRule, memo: dict[ArrayRef, Value | None]
) -> list[IndexingMap] | None:
    """The value of an elementwise operation, for each choice of pieces of its operands."""
    here, choices = dims(shape), list[Value]()
    for operand, read in _operand_reads(place.instruction):
        pieces = memo[ArrayRef(operand, (), place.calls)]
        if pieces is None or read is None:
            return None
        choices.append(tuple([read.then(piece) for piece in pieces]))
    found: list[IndexingMap] = []
    for choice in product(*choices):
        cases = rule([piece.results[0] for piece in choice])
        if cases is None or len(found) > MAX_CASES:
            return None
        shared = [c for piece in choice for c in piece.constraints]
        made = [IndexingMap.of(here, [v], constraints=[*shared, *w]).simplify() for v, w in cases]
        found += [piece for piece in made if not piece.is_known_empty]
    return found


def _operand_reads(
    instruction: Instruction,
) -> Iterator[tuple[Instruction, IndexingMap | None]]:
    """The one map to each operand; None where it is none, or no function."""
    op = instruction.op
    assert isinstance(op, MappedOp)
    every = op.reads(instruction.shape, tuple([o.shape for o in instruction.operands]))
    for operand, maps in zip(instruction.operands, every, strict=True):
        is_one = isinstance(maps, tuple) and len(maps) == 1 and _is_function(maps[0])
        yield operand, maps[0] if isinstance(maps, tuple) and is_one else None

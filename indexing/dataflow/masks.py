"""Masks: where the result of an instruction needs an operand, as constraints.

``select(c, a, b)`` needs `a` where `c` is true, and integer ``x * m`` needs `x` where `m` is not 0:
`MappedOp.decided_reads`.  The values of `c` and `m` are formulas of the index of the element, and
of runtime values: elements of arrays of integers, and of parameters of predicates, that the program
does not determine.  A predicate of other data, such as a comparison of floating-point numbers,
restricts nothing: some inputs need each operand.

Such a condition is a map of its own, the identity of the result on part of its domain, and is
composed with the map to the operand.  A runtime value that only decides whether an element is read
is called a *mask value*: it occurs in constraints only.  A computation keeps those of its
parameters, and the edge of the instruction that calls it replaces them by formulas, or drops them
with their constraints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from hlo.modules.module import Computation, Instruction
from hlo.modules.recursion import bottom_up
from hlo.shapes.shape import Shape
from indexing.dataflow.alike import calls_of
from indexing.dataflow.copies import is_function
from indexing.dataflow.equal_elements import of_two_integers, where_different
from indexing.dataflow.needed import dependencies_of, dependent_on_parameters
from indexing.dataflow.repeated_reads import repeats_decider
from indexing.dataflow.runtime import fold_runtime
from indexing.dataflow.value_pieces import Surroundings, ValueMaps
from indexing.dataflow.values import is_truth_value, named_values, value_maps, values_in_calls
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.joining import join_maps
from indexing.maps.mask_values import mask_values, without_values
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.base import MappedOp
from indexing.ops.element import DecidedRead
from indexing.ops.integer_rules import MAX_CASES
from indexing.ops.structured_ops import InlineOp
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.interval import Interval

Conditions: TypeAlias = Mapping[int, tuple[IndexingMap, ...]]
"""For operands, the disjoint parts of the identity of the result where it needs the operand."""

MAX_CONDITIONS: Final = 64
"""Limit on the parts of one condition; beyond it, the operand is not restricted."""
_EVERYWHERE: Final[Conditions] = {}


def conditions(
    instruction: Instruction,
    around: Surroundings | None = None,
    of_runtime: bool = True,
    calls: int = 0,
) -> Conditions:
    """Return where a result needs its operands, for those that it does not need everywhere.

    Args:
        around: what is known about the parameters of the computation: in the body of a loop.
        of_runtime: use conditions on runtime values, too.
        calls: the number of calls around the computation whose arguments count.

    >>> import hlo, indexing
    >>> root = hlo.parse('''ENTRY e {
    ...   x = f32[6] parameter(0)
    ...   y = f32[6] parameter(1)
    ...   i = s32[6] iota(), iota_dimension=0
    ...   c = s32[6] constant({ 2, 2, 2, 2, 2, 2 })
    ...   p = pred[6] compare(i, c), direction=GT
    ...   ROOT r = f32[6] select(p, x, y)
    ... }''').entry.root
    >>> for operand, parts in conditions(root).items():
    ...     print(operand, *parts)
    1 (d0) -> (d0), domain: d0 in [3, 5]
    2 (d0) -> (d0), domain: d0 in [0, 2]
    """
    if not can_be_decided(instruction):
        return _EVERYWHERE
    return instruction.module.memoised(
        (conditions, instruction, around, of_runtime, calls),
        lambda: _conditions(instruction, around, of_runtime, calls),
    )


def can_be_decided(instruction: Instruction) -> bool:
    """Return True if values may decide where a result needs its operands; else it is everywhere."""
    op, shape = instruction.op, instruction.shape
    if not isinstance(op, MappedOp) or not isinstance(shape, Shape):
        return False
    return bool(op.decided_reads(shape)) or of_two_integers(instruction)


def _conditions(
    instruction: Instruction, around: Surroundings | None, of_runtime: bool, calls: int
) -> Conditions:
    op, shape = instruction.op, instruction.shape
    assert isinstance(op, MappedOp)
    assert isinstance(shape, Shape)
    different = where_different(instruction, shape)
    if different is not None:
        return {0: different, 1: different}
    of_runtime = of_runtime and not _is_applied(instruction.computation)
    limits: dict[int, tuple[IndexingMap, ...]] = {}
    for read in op.decided_reads(shape):
        if not shape.dims and repeats_decider(instruction, read):
            continue
        parts = _parts(instruction, shape, read, around, of_runtime, calls)
        if parts is None:
            continue
        decide_each_other = any(part.runtime for part in limits.get(read.decider, ()))
        if not (decide_each_other and any(part.runtime for part in parts)):
            limits[read.operand] = parts
    return limits


def _is_applied(computation: Computation) -> bool:
    """Return True for a function of elements, as of a sort: only the parameters it reads matter."""
    shapes = [parameter.shape for parameter in computation.parameters]
    if computation.is_entry or any(not isinstance(s, Shape) or s.dims for s in shapes):
        return False  # without a look at the whole module
    calls = calls_of(computation)
    return bool(calls) and all(isinstance(call.op, MappedOp) for call in calls)


def _parts(
    instruction: Instruction,
    shape: Shape,
    read: DecidedRead,
    around: Surroundings | None,
    of_runtime: bool,
    calls: int,
) -> tuple[IndexingMap, ...] | None:
    """Return the parts of the result that need an operand; None if all do."""
    values = _decider_values(instruction, shape, read.decider, around, of_runtime, calls)
    if values is None:
        return None
    parts = [
        drop_mask_values(part, instruction).simplify()
        for value in values
        for part in _parts_of_value(value, read)
    ]
    joined = [part.simplify() for part in join_maps(parts)]
    joined = [part for part in joined if not part.is_known_empty]
    if any(_is_whole(part, shape) for part in joined):
        return None
    if not of_runtime and any(part.runtime for part in joined):
        return None
    return tuple(joined)


def _decider_values(
    instruction: Instruction,
    shape: Shape,
    number: int,
    around: Surroundings | None,
    of_runtime: bool,
    calls: int,
) -> ValueMaps | None:
    """Return the values of an operand that decides, by the index of the result; or None."""
    op = instruction.op
    assert isinstance(op, MappedOp)
    reads = op.reads(shape, tuple([o.shape for o in instruction.operands]))[number]
    if not isinstance(reads, tuple) or len(reads) != 1 or not is_function(reads[0]):
        return None
    decider = ArrayRef(instruction.operands[number])
    if around is not None:
        values = value_maps(decider, around)
    else:
        is_fixed = decider.instruction not in dependent_on_parameters(instruction.computation)
        values = value_maps(decider) if is_fixed else values_in_calls(decider, calls)
        if values is None and of_runtime and is_truth_value(decider):
            values = named_values(decider)
    if values is None or len(values) > MAX_CONDITIONS:
        return None
    return tuple([reads[0].then(value) for value in values])


def _parts_of_value(value: IndexingMap, read: DecidedRead) -> Iterator[IndexingMap]:
    """Yield the parts of the domain of `value` where its result decides that a read is needed."""
    (number,) = value.results
    low, high = number.bounds
    wanted: list[Interval] = [(read.value, read.value)]
    if not read.needs_value:
        wanted = [(low, read.value - 1), (read.value + 1, high)]
    for first, last in wanted:
        within = Constraint(number, first, last)
        if first <= last and not within.is_false:
            constraints = [c for c in (*value.constraints, within) if not c.is_true]
            yield replace(
                value,
                results=tuple([d.as_expr() for d in value.dims]),
                constraints=tuple(constraints),
            )


# ---------------------------------------------------------------- mask values


def drop_mask_values(m: IndexingMap, user: Instruction) -> IndexingMap:
    """Return a map without constraints on mask values that mean nothing outside of `user`."""
    return without_values(m, [rt for rt in mask_values(m) if not _is_kept(rt, user)])


def _is_kept(rt: RuntimeVariable, user: Instruction) -> bool:
    """Return True for integers with a name, and for parameters of a called computation.

    Of predicates, only parameters are kept: others follow from data.
    """
    array = rt.array
    if not isinstance(array, ArrayRef):
        return True
    if array.instruction.opcode == "parameter":
        computation = array.instruction.computation
        return computation.is_entry or computation is user.computation
    shape = array.array_shape
    return shape is not None and shape.element_type != "pred"


def folded_pieces(m: IndexingMap, around: Surroundings | None = None) -> Iterator[IndexingMap]:
    """Yield the disjoint pieces of a map with formulas for its runtime values.

    Args:
        around: in the body of a loop, what is known about its parameters; mask values keep their
            sources then.
    """
    for folded in fold_runtime(m, around):
        yield from name_mask_values(folded) if around is None else [folded]


def name_mask_values(m: IndexingMap) -> list[IndexingMap]:
    """Return a map whose mask values are formulas of values that the program does not determine.

    The pieces are disjoint.
    """
    pieces = [m]
    for rt in mask_values(m):
        assert isinstance(rt.array, ArrayRef)
        values = named_values(rt.array)
        if values is not None and len(pieces) * len(values) <= MAX_CASES:
            pieces = [new for piece in pieces for new in _replace_value(piece, rt, values)]
    return pieces


def _replace_value(m: IndexingMap, rt: RuntimeVariable, values: ValueMaps) -> Iterator[IndexingMap]:
    """Yield the pieces of a map for the values of the array of one of its mask values."""
    at = next((other for other in m.runtime if other.array == rt.array), None)
    if at is None or at not in mask_values(m):
        yield m
        return
    places = [Variable(f"p{k}", *expr.bounds) for k, expr in enumerate(m.results)]
    outer = replace(m, results=(*m.results, *at.element))
    for value in values:
        if value.runtime and value.runtime[0].array == at.array:
            yield m  # its own name
            return
        inner = replace(
            value,
            dims=(*places, *value.dims),
            results=(*[place.as_expr() for place in places], *value.results),
        )
        whole = outer.then(inner)
        *results, number = whole.results
        whole = replace(whole, results=tuple(results))
        _, constraints = whole.substituted({at.variable: number})
        within = Constraint(number, *at.variable.bounds)
        piece = replace(
            whole,
            runtime=tuple([other for other in whole.runtime if other.variable != at.variable]),
            constraints=tuple([c for c in (*constraints, within) if not c.is_true]),
        )
        if not piece.is_known_empty:
            yield piece


def _is_whole(part: IndexingMap, shape: Shape) -> bool:
    """Return True for the identity of a whole array."""
    is_restricted = part.constraints or part.runtime
    return not is_restricted and [d.bounds for d in part.dims] == [(0, n - 1) for n in shape.dims]


def has_masks(instruction: Instruction) -> bool:
    """Return True if an operation inside of a fusion or call may not need all its operands."""
    return isinstance(instruction.op, InlineOp) and any(
        map(decides_reads, instruction.called_computations)
    )


def decides_reads(computation: Computation) -> bool:
    """Return True if an op decides what is read, also in a computation that is called."""
    return bottom_up(
        computation,
        decides_reads,
        lambda c: any(
            decides(inner) or any(map(decides_reads, inner.called_computations))
            for inner in dependencies_of([c.root])
        ),
    )


def decides(instruction: Instruction) -> bool:
    """Return True if an operand of an op decides which elements of others are needed."""
    op, shape = instruction.op, instruction.shape
    return isinstance(op, MappedOp) and isinstance(shape, Shape) and bool(op.decided_reads(shape))

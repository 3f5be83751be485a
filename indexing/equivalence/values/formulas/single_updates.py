"""A scatter of one update: a conditional update of a slice, as XLA's ScatterExpander writes it.

``out[i] = to_apply(operand[i], update[i - start])`` if the whole window at `start` is within the
operand, for the indices of the window; all other elements are those of the operand.

Source: XLA ``xla/service/scatter_expander.cc``, ``ScatterLoopBody``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, dtype
from indexing.equivalence.values.folds.fold_ranges import Fold
from indexing.equivalence.values.folds.folds import fold_formula
from indexing.equivalence.values.formulas.applications import Bodies, Frame, element_at
from indexing.equivalence.values.formulas.element_algebra import own_index
from indexing.equivalence.values.formulas.numbering import NumberedArray
from indexing.equivalence.values.terms.terms import Formula
from indexing.maps.answers import Unknown
from indexing.ops.scatter import Scatter
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr

_LE: Final = ("direction", "LE"), ("type", "")


def updated_element(bodies: Bodies, array: NumberedArray, frame: Frame) -> Formula | None:
    """Return an element of a scatter of one update; None for other ops."""
    instruction = array.instruction
    assert instruction is not None
    if not bodies.expands or not is_single_update(instruction):
        return None
    leaves = [next(iter(tree.values())) for tree in array.operands]
    return _element(bodies, instruction, leaves, frame)


def is_single_update(instruction: Instruction) -> bool:
    """Return True for a scatter of one window to one array."""
    op, shapes = instruction.op, [operand.shape for operand in instruction.operands]
    if not isinstance(op, Scatter) or op.input_batching_dims or len(shapes) != 3:
        return False
    base, _, updates = shapes
    if not isinstance(base, Shape) or not isinstance(updates, Shape):
        return False
    return updates.size == math.prod(op.window_sizes(base.rank, updates.dims))


def _element(
    bodies: Bodies,
    instruction: Instruction,
    leaves: Sequence[NumberedArray],
    frame: Frame,
) -> Formula | None:
    op, (base, indices, updates) = instruction.op, leaves
    assert isinstance(op, Scatter)
    assert base.shape is not None
    assert updates.shape is not None
    window = op.window_sizes(base.shape.rank, updates.shape.dims)
    starts = _starts(bodies, op, base.shape, indices, frame)
    largest = [size - taken for size, taken in zip(base.shape.dims, window, strict=True)]
    bounds = [(0, last) for last in largest]
    clamped = list(map(bodies.algebra.index_of, starts, bounds))
    own = own_index(base.shape)
    offsets = [place - start for place, start in zip(own, clamped, strict=True)]
    index = _update_index(op, offsets, updates.shape.rank)
    inside = [v if n == 1 else e for e, v, n in zip(own, clamped, window, strict=True)]
    old = element_at(bodies, base, frame, inside)
    update = element_at(bodies, updates, frame, index)
    value = bodies.apply_computation(instruction.called_computations[0], [old, update])
    if isinstance(value, Unknown):
        return None
    guards = [Constraint(e, 0, taken - 1) for e, taken in zip(offsets, window, strict=True)]
    chosen = [_is_within(bodies, starts, largest), value, old]
    value = bodies.algebra.apply("select", (), base.shape.element_type, chosen)
    return bodies.algebra.where([g for g in guards if not g.is_true], value,
                                bodies.body(base, frame))  # fmt: skip


def _update_index(op: Scatter, offsets: Sequence[Expr], rank: int) -> list[Expr]:
    """Return the index of an update, by the offsets in the window of an element."""
    kept = [e for k, e in enumerate(offsets) if k not in op.inserted_window_dims]
    at = dict(zip(sorted(op.update_window_dims), kept, strict=True))
    return [at.get(k, as_expr(0)) for k in range(rank)]


def _starts(
    bodies: Bodies, op: Scatter, shape: Shape, indices: NumberedArray, frame: Frame
) -> list[Formula]:
    """Return the start of the window in each dimension of the operand."""
    assert indices.shape is not None
    zero = bodies.table.constant(0, indices.shape.element_type)
    starts = [zero] * shape.rank
    for number, k in enumerate(op.scatter_dims_to_operand_dims):
        index = [as_expr(number if n == op.index_vector_dim else 0)
                 for n in range(indices.shape.rank)]  # fmt: skip
        starts[k] = element_at(bodies, indices, frame, index)
    return starts


def _is_within(bodies: Bodies, starts: Sequence[Formula], largest: Sequence[int]) -> Formula:
    """Return the predicate that all starts are in bounds: a fold over the dimensions."""
    algebra, true = bodies.algebra, bodies.table.constant(True, "pred")
    if not starts:
        return true
    kind = starts[0].type
    k = Variable("s0", 0, len(starts) - 1)
    place = k.as_expr() if len(starts) > 1 else as_expr(0)
    start = algebra.choose(place, list(enumerate(starts)))
    last = algebra.table_element(np.array(largest, dtype(kind)), kind, (place,))
    zero = bodies.table.constant(0, kind)
    sides = [algebra.apply("compare", _LE, "pred", pair) for pair in ((zero, start), (start, last))]
    both = algebra.apply("and", (), "pred", sides)
    ranges = (k,) if len(starts) > 1 else ()
    return fold_formula(algebra, Fold("and", (), 0, "pred", (true,), (both,), ranges))

"""Transitive closures of relations that step back in time, such as the iterations of a loop.

Source: isl manual, "Unary Operations" (``isl_map_transitive_closure``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import islpy as isl

from simplifier.exact.context import within_budget
from simplifier.exact.decode import pieces
from simplifier.exact.encode import Relation
from simplifier.exact.enumeration import pieces_budget
from simplifier.exact.reading import PointsOf, as_map, as_set
from simplifier.unknown import Unknown

BUDGET: Final = 800_000
"""isl operations for one closure."""
_IN: Final = isl.dim_type.in_
_OUT: Final = isl.dim_type.out


class SelectedClosure(NamedTuple):
    """The reflexive transitive closure of a relation, in disjoint pieces.

    Attributes:
        is_exact: False if the pieces are a superset.
    """

    pieces: tuple[Relation, ...]
    is_exact: bool


class Slots(NamedTuple):
    """The values of the first inputs and of the first results to select, and zeros to drop.

    Attributes:
        source, target: the value of input 0 and of result 0.
        inputs, results: the number of inputs and results to keep after them; then follow zeros,
            and the time, which is kept.
    """

    source: int
    target: int
    inputs: int
    results: int


def closures_back_in_time(
    box: Sequence[Relation],
    stays: Sequence[Relation],
    moves: Sequence[Relation],
    slots: Sequence[Slots],
    budget: int = BUDGET,
) -> tuple[SelectedClosure, ...] | Unknown:
    """Return the closure of ``stays ∪ moves``, for each of `slots`.

    The last input of each relation is a time t, the last result is ``t - 1``.

    Args:
        box: the points, as results of relations without inputs.
        stays: relations that change only the time.
        moves: the other relations.
    """

    def compute(ctx: Any) -> tuple[SelectedClosure, ...]:
        points = as_set(ctx, *box, of=PointsOf.RESULTS)
        waits = _waiting(points, as_set(ctx, *stays) if stays else None)
        closure, is_exact = waits, True
        if moves:
            move = as_map(ctx, *moves)
            again = move.apply_range(waits).intersect_range(move.domain())
            if not again.is_empty():
                power, is_exact = again.coalesce().transitive_closure()
                move = move.union(power.intersect_domain(move.domain()).apply_range(move))
            closure = waits.union(waits.apply_range(move).apply_range(waits))
        closure = closure.intersect_domain(points).intersect_range(points)
        return tuple(
            [SelectedClosure(_select_leaves(closure, each), bool(is_exact)) for each in slots]
        )

    return within_budget(compute, pieces_budget(budget, *stays, *moves, may_enumerate=False))


def _waiting(points: isl.Set, stays: isl.Set | None) -> isl.Map:
    """Return ``(x, t) -> (x, k)`` for ``k <= t`` if `stays` has every step from t down to k."""
    space = points.get_space()
    later = isl.Map.lex_ge(space).intersect_domain(points).intersect_range(points)
    for k in range(points.dim(isl.dim_type.set) - 1):
        later = later.equate(_IN, k, _OUT, k)
    leaves = points if stays is None else points.subtract(stays.coalesce())
    if leaves.is_empty():
        return later
    # (x, t) -> (x, k) passes a time j with k < j <= t that leaves
    strict = later.subtract(isl.Map.identity(later.get_space()))
    return later.subtract(later.intersect_range(leaves).apply_range(strict)).coalesce()


def _select_leaves(closure: isl.Map, slot: Slots) -> tuple[Relation, ...]:
    """Return the part of a closure from one leaf to another."""
    closure = closure.fix_val(_IN, 0, slot.source).fix_val(_OUT, 0, slot.target)
    for kind, kept in ((_IN, slot.inputs), (_OUT, slot.results)):
        zeros = closure.dim(kind) - 2 - kept
        closure = closure.project_out(kind, 1 + kept, zeros).project_out(kind, 0, 1)
    return pieces(closure) if not closure.is_empty() else ()

"""Which steps of a grid give values to a step: through scratch buffers and blocks that stay.

Steps run in lexicographic order.  What a step stores may be loaded by all later steps, unless they
store there before they load.  A kernel that accumulates stores an initial value where an index is
0, so that earlier steps give it nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from indexing.kernels.mosaic.body import BodyAccess, CertainStore
from indexing.kernels.mosaic.views import Box, contains_box
from indexing.maps.indexing_map import IndexingMap
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr
from simplifier.substitute import Substitution


def first_carried(
    accesses: Sequence[BodyAccess],
    stored: Mapping[int, Sequence[CertainStore]],
    grid: Sequence[Variable],
) -> int:
    """Return the first dimension along which values are carried; the rank of the grid without one.

    Steps get values only of steps that have the same index in all dimensions before it.  Of these,
    the first has the index 0 in this dimension and in all later ones: it stores all that the others
    load, before it loads it.

    Args:
        stored: the stores to each buffer that have been executed at the end of a step.
    """
    state = {access.buffer for access in accesses if access.is_store}
    loads = [a for a in accesses if not a.is_store and a.buffer in state]
    anywhere = Substitution({})
    loads = [a for a in loads if not _is_covered(a, a.before, anywhere, anywhere)]
    if not loads:
        return len(grid)
    for first in reversed(range(len(grid))):
        start = Substitution({v: as_expr(0) for v in grid[first:]})
        if all(
            (_never(a, start) or _is_covered(a, a.before, start, start))
            and _is_covered(a, stored.get(a.buffer, ()), start, anywhere, ())
            for a in loads
        ):
            return first
    return 0


def _never(load: BodyAccess, start: Substitution) -> bool:
    return any(_at(c, start).is_false for c in load.conditions)


def _is_covered(
    load: BodyAccess,
    stores: Sequence[CertainStore],
    start: Substitution,
    place: Substitution,
    given: Sequence[Constraint] | None = None,
) -> bool:
    """True if one of the stores has, at certain steps, all elements that a load has.

    Args:
        start: the steps of the stores.
        place: those of the load.
        given: conditions of these steps; those of the load by default.
    """
    known = [_at(c, start) for c in (load.conditions if given is None else given)]
    return any(
        contains_box(_place_box(store.box, start), _place_box(load.box, place))
        and all(_at(c, start).is_true or _at(c, start) in known for c in store.conditions)
        for store in stores
    )


def _at(condition: Constraint, start: Substitution) -> Constraint:
    return condition.with_expr(start(condition.expr))


def _place_box(box: Box, start: Substitution) -> Box:
    return None if box is None else tuple([(start(first), n) for first, n in box])


def earlier_steps(grid: Sequence[Variable], first: int) -> IndexingMap:
    """Return the map from a step to those whose values it may have.

    >>> print(earlier_steps([Variable("d0", 0, 3), Variable("d1", 0, 4)], 1))
    (d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 3], d1 in [0, 4], s0 in [0, 4], d1 - s0 in [0, 4]
    """
    free = [v.renamed(f"s{k}") for k, v in enumerate(grid[first:])]
    results: list[Expr] = [v.as_expr() for v in (*grid[:first], *free)]
    pairs = zip(grid[first:], free, strict=True)
    ordered = next((pair for pair in pairs if pair[0].upper), None)
    within = [] if ordered is None else [
        Constraint(ordered[0].as_expr() - ordered[1], 0, ordered[0].upper)
    ]  # fmt: skip
    return IndexingMap.of(grid, results, ranges=free, constraints=within)

"""Variables of a map on which its relation does not depend, and the map without them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier import laws, trace
from simplifier.atoms import Variable, mentioned
from simplifier.constraints import Constraint, merged
from simplifier.refine import has_points
from simplifier.solve import projected


def without_unused(current: IndexingMap) -> IndexingMap:
    """Drops the ranges and runtime variables on which no result depends.

    Variables that share a constraint stand or fall together.  A group that no result, dimension or
    kept variable depends on is dropped if its constraints have a solution; without one the whole
    map is empty, and where that is undecided the group stays.  A range that one constraint
    mentions, and nothing else, goes where the constraint can say without it when it has a value.
    """
    return _projected(_without_all_but(current, ()))


def _projected(current: IndexingMap) -> IndexingMap:
    """Without the ranges that only one constraint mentions, which has a projection."""
    if not current.ranges:
        return current
    used = mentioned([*current.results, *[expr for rt in current.runtime for expr in rt.index]])
    for old in [v for v in current.ranges if v not in used]:
        tied = [c for c in current.constraints if old in c.expr.variables()]
        without = projected(tied[0], old) if len(tied) == 1 else None
        if without is not None:
            left = [without if c is tied[0] else c for c in current.constraints]
            ranges = tuple([v for v in current.ranges if v is not old])
            return _projected(replace(current, ranges=ranges, constraints=merged(left)))
    return current


def without_idle(current: IndexingMap) -> IndexingMap:
    """`without_unused`, but ranges stay that say how often something is reached."""
    return _without_all_but(current, [v for v in current.ranges if v.lower != v.upper])


def _without_all_but(current: IndexingMap, needed: Iterable[Variable]) -> IndexingMap:
    """Without what neither the relation nor the `needed` variables depend on."""
    if not current.ranges and not current.runtime:
        return current
    if current.is_known_empty:
        return IndexingMap.empty(current.dims, len(current.results))
    used = _used(current, needed)
    if used.issuperset(current.variables):
        return current
    loose = [c for c in current.constraints if used.isdisjoint(c.expr.variables())]
    some = has_points(loose)
    if some is False:
        return IndexingMap.empty(current.dims, len(current.results))
    if some is None:  # they may say that the domain is empty
        used |= mentioned([c.expr for c in loose])
        loose = []
    if trace.records:
        _note_dropped([v for v in current.variables if v not in used], loose)
    constraints = tuple([c for c in current.constraints if c not in loose])
    return _restricted(replace(current, constraints=constraints), used)


def _note_dropped(variables: Iterable[Variable], loose: Collection[Constraint]) -> None:
    """Record that `variables` were dropped, with the constraints on them alone."""
    bounds = [f"{v.name} in [{v.lower}, {v.upper}]" for v in variables]
    conditions = f": {' and '.join(map(str, loose))}" if loose else ""
    if bounds:
        trace.note(laws.DROP_UNUSED, f"exists {', '.join(bounds)}{conditions}", "true")


def _restricted(current: IndexingMap, kept: Collection[Variable]) -> IndexingMap:
    """The map with those of its range and runtime variables that are `kept`."""
    return replace(
        current,
        ranges=tuple([v for v in current.ranges if v in kept]),
        runtime=tuple([rt for rt in current.runtime if rt.variable in kept]),
    )


def _used(current: IndexingMap, needed: Iterable[Variable]) -> set[Variable]:
    """The variables that the relation depends on, and those that depend on the `needed`.

    A runtime variable has one value, it does not range over its bounds: what is read depends on it
    also where only a constraint, or a bound that is narrower than its clamp, mentions it.  One that
    is fixed is listed by the op that takes it, and left out by composition.  A size stays: it is
    the same in other maps, and what constraints said of it may be in its bounds.
    """
    tied = [set(c.expr.variables()) for c in current.constraints]
    used = {*current.dims, *needed, *mentioned(current.results)}
    used.update(rt.variable for rt in current.runtime if _is_kept(rt, tied))
    index_of = {rt.variable: mentioned(rt.index) for rt in current.runtime}
    while True:
        size = len(used)
        for group in tied:
            if not used.isdisjoint(group):
                used |= group
        for variable, inside in index_of.items():
            if variable in used:
                used |= inside
        if len(used) == size:
            return used


def _is_kept(rt: RuntimeVariable, tied: Iterable[set[Variable]]) -> bool:
    """Its value matters even where no result mentions it."""
    return (
        rt.is_size
        or rt.is_fixed
        or rt.clamp not in (None, rt.variable.bounds)
        or any(rt.variable in group for group in tied)
    )

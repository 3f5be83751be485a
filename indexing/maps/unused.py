"""Drop the variables of a map on which its relation does not depend."""

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
    """Return the map without the range and runtime variables on which no result depends.

    Variables that share a constraint form a group, which is kept or dropped as a whole.  A group
    without results, dimensions or kept variables is dropped if its constraints have a solution.  If
    they have none, the map is empty; if that is undecided, the group is kept.  A range variable
    that occurs in a single constraint is projected out if the projection is a constraint.
    """
    return _projected(_without_all_but(current, ()))


def _projected(current: IndexingMap) -> IndexingMap:
    """Project out range variables that occur only in one constraint, if it has a projection."""
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


def without_uncounted(current: IndexingMap) -> IndexingMap:
    """`without_unused`, but range variables that affect multiplicity are kept."""
    return _without_all_but(current, [v for v in current.ranges if v.lower != v.upper])


def _without_all_but(current: IndexingMap, needed: Iterable[Variable]) -> IndexingMap:
    """The map without the variables on which neither the relation nor `needed` depends."""
    if not current.ranges and not current.runtime:
        return current
    if current.is_known_empty:
        return IndexingMap.empty(current.dims, len(current.results))
    used = _used(current, needed)
    if used.issuperset(current.variables):
        return current
    loose = [c for c in current.constraints if used.isdisjoint(c.expr.variables())]
    satisfiable = has_points(loose)
    if satisfiable is False:
        return IndexingMap.empty(current.dims, len(current.results))
    if satisfiable is None:  # they may make the domain empty
        used |= mentioned([c.expr for c in loose])
        loose = []
    if trace.records:
        _record_dropped([v for v in current.variables if v not in used], loose)
    constraints = tuple([c for c in current.constraints if c not in loose])
    return _restricted(replace(current, constraints=constraints), used)


def _record_dropped(variables: Iterable[Variable], loose: Collection[Constraint]) -> None:
    """Record that `variables` were dropped, with the constraints on them alone."""
    bounds = [f"{v.name} in [{v.lower}, {v.upper}]" for v in variables]
    conditions = f": {' and '.join(map(str, loose))}" if loose else ""
    if bounds:
        trace.record(laws.DROP_UNUSED, f"exists {', '.join(bounds)}{conditions}", "true")


def _restricted(current: IndexingMap, kept: Collection[Variable]) -> IndexingMap:
    """The map with only those range and runtime variables that are in `kept`."""
    return replace(
        current,
        ranges=tuple([v for v in current.ranges if v in kept]),
        runtime=tuple([rt for rt in current.runtime if rt.variable in kept]),
    )


def _used(current: IndexingMap, needed: Iterable[Variable]) -> set[Variable]:
    """The variables on which the relation depends, and those connected with `needed`.

    A runtime variable has one value; it does not range over its bounds.  So the relation depends on
    it even if it occurs only in a constraint, or has bounds narrower than its clamp.  A fixed
    runtime variable is kept in the maps of its op and dropped by composition.  A symbolic size is
    kept: other maps share it, and its bounds may result from constraints.
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
    """True if the relation depends on its value even if no result does."""
    return (
        rt.is_size
        or rt.is_fixed
        or rt.clamp not in (None, rt.variable.bounds)
        or any(rt.variable in group for group in tied)
    )

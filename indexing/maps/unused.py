"""Drop the variables of a map on which its relation does not depend."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier import laws, trace
from simplifier.atoms import Variable, variables_in
from simplifier.conjunction import merge_constraints
from simplifier.constraints import Constraint
from simplifier.refine import has_points
from simplifier.solve import project


def drop_unused(indexing_map: IndexingMap) -> IndexingMap:
    """Return the map without the range and runtime variables on which no result depends.

    Variables that share a constraint form a group, which is kept or dropped as a whole.  A group
    without results, dimensions or kept variables is dropped if its constraints have a solution.  If
    they have none, the map is empty; if that is undecided, the group is kept.  A range variable
    that occurs in a single constraint is projected out if the projection is a constraint.
    """
    return _project_ranges(_without_all_but(indexing_map, ()))


def _project_ranges(m: IndexingMap) -> IndexingMap:
    """Project out range variables that occur only in one constraint, if it has a projection."""
    if not m.ranges:
        return m
    used = variables_in([*m.results, *[expr for rt in m.runtime for expr in rt.index]])
    for old in [v for v in m.ranges if v not in used]:
        connected = [c for c in m.constraints if old in c.expr.variables()]
        without = project(connected[0], old) if len(connected) == 1 else None
        if without is not None:
            left = [without if c is connected[0] else c for c in m.constraints]
            ranges = tuple([v for v in m.ranges if v is not old])
            return _project_ranges(replace(m, ranges=ranges, constraints=merge_constraints(left)))
    return m


def drop_uncounted(indexing_map: IndexingMap) -> IndexingMap:
    """`drop_unused`, but range variables that affect multiplicity are kept."""
    return _without_all_but(indexing_map, [v for v in indexing_map.ranges if v.lower != v.upper])


def _without_all_but(m: IndexingMap, needed: Iterable[Variable]) -> IndexingMap:
    """The map without the variables on which neither the relation nor `needed` depends."""
    if not m.ranges and not m.runtime:
        return m
    if m.is_known_empty:
        return IndexingMap.empty(m.dims, len(m.results))
    used = _used_variables(m, needed)
    if used.issuperset(m.variables):
        return m
    unconnected = [c for c in m.constraints if used.isdisjoint(c.expr.variables())]
    satisfiable = has_points(unconnected)
    if satisfiable is False:
        return IndexingMap.empty(m.dims, len(m.results))
    if satisfiable is None:  # they may make the domain empty
        used |= variables_in([c.expr for c in unconnected])
        unconnected = []
    if trace.records:
        _record_dropped([v for v in m.variables if v not in used], unconnected)
    constraints = tuple([c for c in m.constraints if c not in unconnected])
    return _restrict_variables(replace(m, constraints=constraints), used)


def _record_dropped(variables: Iterable[Variable], unconnected: Collection[Constraint]) -> None:
    """Record that `variables` were dropped, with the constraints on them alone."""
    bounds = [f"{v.name} in [{v.lower}, {v.upper}]" for v in variables]
    conditions = f": {' and '.join(map(str, unconnected))}" if unconnected else ""
    if bounds:
        trace.record(laws.DROP_UNUSED, f"exists {', '.join(bounds)}{conditions}", "true")


def _restrict_variables(m: IndexingMap, kept: Collection[Variable]) -> IndexingMap:
    """The map with only those range and runtime variables that are in `kept`."""
    return replace(
        m,
        ranges=tuple([v for v in m.ranges if v in kept]),
        runtime=tuple([rt for rt in m.runtime if rt.variable in kept]),
    )


def _used_variables(m: IndexingMap, needed: Iterable[Variable]) -> set[Variable]:
    """The variables on which the relation depends, and those connected with `needed`.

    A runtime variable has one value; it does not range over its bounds.  So the relation depends on
    it even if it occurs only in a constraint, or has bounds narrower than its clamp.  A start that
    is clamped to one value is kept in the maps of its op, as by XLA, unless it is a constant of the
    program; composition drops it.  A symbolic size is kept: other maps share it, and its bounds may
    result from constraints.
    """
    connected = [set(c.expr.variables()) for c in m.constraints]
    used = {*m.dims, *needed, *variables_in(m.results)}
    used.update(rt.variable for rt in m.runtime if _is_kept(rt, connected))
    index_of = {rt.variable: variables_in(rt.index) for rt in m.runtime}
    while True:
        size = len(used)
        for group in connected:
            if not used.isdisjoint(group):
                used |= group
        for variable, inside in index_of.items():
            if variable in used:
                used |= inside
        if len(used) == size:
            return used


def _is_kept(rt: RuntimeVariable, connected: Iterable[set[Variable]]) -> bool:
    """True if the relation depends on its value even if no result does."""
    return (
        rt.is_size
        or (rt.is_fixed and not rt.is_constant)
        or rt.clamp not in (None, rt.variable.bounds)
        or any(rt.variable in group for group in connected)
    )

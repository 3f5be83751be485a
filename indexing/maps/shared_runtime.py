"""Maps with the same runtime variables for the same values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace

from indexing.maps.compose import innermost_first
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.regions.runtime_values import value_key
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.interval import join
from simplifier.linear import Expr
from simplifier.substitute import Substitution


def share_runtime(
    maps: Iterable[IndexingMap],
) -> tuple[list[IndexingMap], tuple[RuntimeVariable, ...]]:
    """Return maps of the same dimensions with one variable for each runtime value.

    The bounds of a variable are its widest; narrower ones become constraints.  Variables without a
    source are the same value if they have the same name.

    Returns:
        The maps, and the variables that they mention.
    """
    maps = list(maps)
    if not any(m.runtime for m in maps):
        return maps, ()
    widest: dict[Hashable, RuntimeVariable] = {}
    renamed = [_rename(m, widest) for m in maps]
    return [_bound(m, widest) for m in renamed], tuple(widest.values())


def _rename(m: IndexingMap, widest: dict[Hashable, RuntimeVariable]) -> IndexingMap:
    """Return a map with the names of `widest`, to which it adds its values and bounds."""
    values: dict[Variable, Expr] = {}
    runtime: list[RuntimeVariable] = []
    seen: dict[Hashable, Variable] = {}
    within: list[Constraint] = []
    for rt in innermost_first(m.runtime):
        if rt.array is None:
            widest.setdefault(rt.name, rt)
            runtime.append(rt)
            continue
        index = tuple(map(Substitution(values), rt.index))
        key = value_key(replace(rt, index=index))
        if key in seen:  # twice in this map
            values[rt.variable] = seen[key].as_expr()
            within.append(Constraint(values[rt.variable], *rt.variable.bounds))
            continue
        known = widest.get(key)
        name = f"rt{len(widest)}" if known is None else known.name
        own = seen[key] = Variable(name, *rt.variable.bounds)
        bounds = own.bounds if known is None else join([known.variable.bounds, own.bounds])
        widest[key] = RuntimeVariable(Variable(name, *bounds), rt.array, index, rt.clamp)
        values[rt.variable] = own.as_expr()
        runtime.append(RuntimeVariable(own, rt.array, index, rt.clamp))
    results, constraints = m.substituted(values)
    return replace(
        m,
        runtime=tuple(runtime),
        results=tuple(results),
        constraints=(*constraints, *[c for c in within if not c.is_true]),
    )


def _bound(m: IndexingMap, widest: dict[Hashable, RuntimeVariable]) -> IndexingMap:
    """Return a map with the variables of `widest`, and its own bounds as constraints."""
    by_name = {rt.name: rt for rt in widest.values()}
    own = [rt for rt in m.runtime if by_name[rt.name].variable is not rt.variable]
    if not own:
        return m
    results, constraints = m.substituted({rt.variable: by_name[rt.name].expr for rt in own})
    within = [Constraint(by_name[rt.name].expr, *rt.variable.bounds) for rt in own]
    return replace(
        m,
        runtime=tuple([by_name[rt.name] for rt in m.runtime]),
        results=tuple(results),
        constraints=tuple([c for c in (*constraints, *within) if not c.is_true]),
    )

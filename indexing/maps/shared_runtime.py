"""Maps with the same runtime variables for the same values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from indexing.maps.compose import innermost_first
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.regions.runtime_values import value_key
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.interval import join
from simplifier.linear import Expr
from simplifier.substitute import Substitution

_ANY: Final = (-(1 << 62), 1 << 62)
"""The bounds of a variable that only its name tells apart."""


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
    if (shared := _already_shared(maps)) is not None:
        return maps, shared
    widest: dict[Hashable, RuntimeVariable] = {}
    renamed = [_rename(m, widest) for m in maps]
    by_name = {rt.name: rt.variable for rt in widest.values()}
    widen = partial(_widen_variables, by_name)
    runtime = tuple([rt.substituted(widen) if rt.index else rt for rt in widest.values()])
    return [_bind_variables(m, {rt.name: rt for rt in runtime}) for m in renamed], runtime


def _already_shared(maps: Iterable[IndexingMap]) -> tuple[RuntimeVariable, ...] | None:
    """Return the variables of maps that have the names and bounds that they would get, or None."""
    shared: dict[str, RuntimeVariable] = {}
    for m in maps:
        if any(c.is_true for c in m.constraints):
            return None
        if len(m.runtime) > 1 and tuple(innermost_first(m.runtime)) != m.runtime:
            return None
        for rt in m.runtime:
            is_named = rt.name in shared or rt.array is None or rt.name == f"rt{len(shared)}"
            if not is_named or shared.setdefault(rt.name, rt) != rt:
                return None
    arrays = [rt.array for rt in shared.values() if rt.array is not None]
    return tuple(shared.values()) if len(set(arrays)) == len(arrays) else None


def _widen_variables(by_name: Mapping[str, Variable], expr: Expr) -> Expr:
    """Return an index with the widest runtime variables of the same names."""
    named = {v: by_name[v.name].as_expr() for v in expr.variables() if v.name in by_name}
    return Substitution(named)(expr)


def _rename(m: IndexingMap, widest: dict[Hashable, RuntimeVariable]) -> IndexingMap:
    """Return a map with the names of `widest`, to which it adds its values and bounds."""
    values: dict[Variable, Expr] = {}
    names: dict[Variable, Expr] = {}
    runtime: list[RuntimeVariable] = []
    seen: dict[Hashable, Variable] = {}
    within: list[Constraint] = []
    for rt in innermost_first(m.runtime):
        if rt.array is None:
            widest.setdefault(rt.name, rt)
            runtime.append(rt)
            continue
        index = tuple(map(Substitution(values), rt.index))
        key = value_key(rt.substituted(Substitution(names)))
        if key in seen:  # twice in this map
            values[rt.variable] = seen[key].as_expr()
            names[rt.variable] = Variable(seen[key].name, *_ANY).as_expr()
            within.append(Constraint(values[rt.variable], *rt.variable.bounds))
            continue
        known = widest.get(key)
        name = f"rt{len(widest)}" if known is None else known.name
        own = seen[key] = Variable(name, *rt.variable.bounds)
        bounds = own.bounds if known is None else join([known.variable.bounds, own.bounds])
        widest[key] = RuntimeVariable(Variable(name, *bounds), rt.array, index, rt.clamp)
        values[rt.variable] = own.as_expr()
        names[rt.variable] = Variable(name, *_ANY).as_expr()
        runtime.append(RuntimeVariable(own, rt.array, index, rt.clamp))
    results, constraints = m.substituted(values)
    return replace(
        m,
        runtime=tuple(runtime),
        results=tuple(results),
        constraints=(*constraints, *[c for c in within if not c.is_true]),
    )


def _bind_variables(m: IndexingMap, by_name: Mapping[str, RuntimeVariable]) -> IndexingMap:
    """Return a map with the variables of `by_name`, and its own bounds as constraints."""
    if all(by_name[rt.name] is rt for rt in m.runtime):
        return m
    own = [rt for rt in m.runtime if by_name[rt.name].variable is not rt.variable]
    results, constraints = m.substituted({rt.variable: by_name[rt.name].expr for rt in own})
    within = [Constraint(by_name[rt.name].expr, *rt.variable.bounds) for rt in own]
    return replace(
        m,
        runtime=tuple([by_name[rt.name] for rt in m.runtime]),
        results=tuple(results),
        constraints=tuple([c for c in (*constraints, *within) if not c.is_true]),
    )

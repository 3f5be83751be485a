"""Composition: ``x -> second(first(x))``.

The first map's results replace the dimensions in the second map's expressions.  The bounds of the
second map's dimensions become constraints on the first map's results, unless the results are known
to be within bounds (`indexing.maps.result_bounds`).  A runtime variable that its operation clamps
to a single value becomes a constant.

Source: XLA ``docs/indexing.md``, "Indexing Maps for Fusion".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from dataclasses import replace
from itertools import count

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.map_fields import MapFields, closed_map
from indexing.maps.result_bounds import outside, record_last_map
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.maps.spaces import range_prefix
from simplifier.atoms import Variable
from simplifier.constraints import FALSE, Constraint, substitute_all
from simplifier.linear import Expr
from simplifier.substitute import Substitution
from simplifier.zero_divisor import ZeroDivisorError


def compose(first: IndexingMap, second: IndexingMap) -> IndexingMap:
    """Return ``x -> second(first(x))``; see `IndexingMap.then`."""
    if len(first.results) != len(second.dims):
        raise ValueError(
            f"cannot compose: the first map has {_count(first.results, 'result')}, the second "
            f"takes {_count(second.dims, 'dimension')}:\n  {first}\n  {second}"
        )
    unbounded = outside(first, second.dims)
    if not unbounded and second.is_identity and not _has_fixed(first):
        return first
    if first.dims == second.dims and first.is_identity and not _has_fixed(second):
        return second
    try:
        return _compose_fields(first, second, unbounded)
    except ZeroDivisorError:  # in the index of a runtime variable
        return IndexingMap.empty(first.dims, len(second.results))


def _compose_fields(first: MapFields, second: MapFields, unbounded: list[int]) -> IndexingMap:
    """`compose`, where the results of `first` at these indices may be out of bounds."""
    dims: tuple[Variable, ...] = second.dims
    values: dict[Variable, Expr] = {}
    for k, result in enumerate(first.results):
        values[dims[k]] = result
    ranges, runtime = first.ranges, first.runtime
    merged: list[Constraint] = []
    if second.ranges or second.runtime or runtime:
        ranges, runtime, merged = _free_variables(first, second, values)
    results, constraints = substitute_all(second.results, second.constraints, Substitution(values))
    if unbounded:
        inside = [Constraint(first.results[k], *dims[k].bounds) for k in unbounded]
        merged = [*inside, *merged]
    needed = first.constraints
    if needed or merged or constraints:
        needed = _needed_constraints((*needed, *merged, *constraints))
    composite = closed_map(
        IndexingMap,
        first.dims,
        ranges,
        runtime,
        tuple(results),
        needed,
        first.grade if first.grade == "may" else second.grade,
    )
    record_last_map(composite, second)
    return composite


def _free_variables(
    first: MapFields, second: MapFields, values: dict[Variable, Expr]
) -> tuple[tuple[Variable, ...], tuple[RuntimeVariable, ...], list[Constraint]]:
    """The range and runtime variables of both maps, and what `_runtime` returns.

    Adds to `values` the expressions for those of `second` that change.
    """
    taken = {v.name for v in first.variables}
    ranges = [_fresh(v, range_prefix(v), taken) for v in second.ranges]
    values.update(_changed_variables(second.ranges, ranges))
    runtime, merged = _runtime(first, second, values, taken)
    return (*first.ranges, *ranges), tuple(runtime), merged


def _has_fixed(m: MapFields) -> bool:
    """Return True if a runtime variable of a map is clamped to a single value."""
    return bool(m.runtime) and any(rt.is_fixed for rt in m.runtime)


def _count(items: Sized, noun: str) -> str:
    return f"{len(items)} {noun}{'s' * (len(items) != 1)}"


def _runtime(
    first: MapFields, second: MapFields, values: dict[Variable, Expr], taken: set[str]
) -> tuple[list[RuntimeVariable], list[Constraint]]:
    """The runtime variables of both maps, and constraints that merge the bounds of equal ones.

    Adds to `values` the expressions for the runtime variables of `second`.
    """
    runtime = [rt for rt in first.runtime if not rt.is_fixed]
    merged: list[Constraint] = []
    for rt in innermost_first(second.runtime):
        if rt.is_fixed:
            continue
        moved = rt.substituted(Substitution(values))
        same = _same_value(moved, runtime)
        if same is None:
            same = replace(moved, variable=_fresh(rt.variable, "rt", taken))
            runtime.append(same)
        if same.variable is not rt.variable:
            values[rt.variable] = same.expr
            merged.append(Constraint(same.expr, *rt.variable.bounds))
    return runtime, merged


def _needed_constraints(constraints: tuple[Constraint, ...]) -> tuple[Constraint, ...]:
    """Distinct constraints that are not trivially true; only `FALSE` if one is false."""
    needed = dict.fromkeys([c for c in constraints if not c.is_true])
    return (FALSE,) if any(c.is_false for c in needed) else tuple(needed)


def _fresh(variable: Variable, prefix: str, taken: set[str]) -> Variable:
    """`variable` under a name that is not in `taken`; adds the name to `taken`."""
    name = variable.name
    if name in taken:
        name = next(f"{prefix}{k}" for k in count() if f"{prefix}{k}" not in taken)
    taken.add(name)
    return variable.renamed(name)


def innermost_first(runtime: Iterable[RuntimeVariable]) -> Iterator[RuntimeVariable]:
    """Each runtime variable after those that its index mentions."""
    waiting = {rt.variable: rt for rt in runtime}
    while waiting:
        mentioned = {
            rt: {v for expr in rt.index for v in expr.variables()} for rt in waiting.values()
        }
        ready = [rt for rt in mentioned if waiting.keys().isdisjoint(mentioned[rt])]
        assert ready, "a runtime variable must not occur in its own index"
        yield from ready
        for rt in ready:
            del waiting[rt.variable]


def _changed_variables(old: Iterable[Variable], new: Iterable[Variable]) -> dict[Variable, Expr]:
    return {o: n.as_expr() for o, n in zip(old, new, strict=True) if o is not n}


def _same_value(rt: RuntimeVariable, others: Iterable[RuntimeVariable]) -> RuntimeVariable | None:
    """The runtime variable of `others` that reads the same element with the same clamp.

    Symbolic sizes of one name are the same value.
    """
    if rt.is_size:
        return next((other for other in others if other.is_size and other.name == rt.name), None)
    if rt.array is None:
        return None
    for other in others:
        if (other.array, other.index, other.clamp) == (rt.array, rt.index, rt.clamp):
            return other
    return None

"""Number variables in order of their first use, so that equal relations have equal texts.

Iteration variables ``i0, i1, …`` and the other range variables ``s0, s1, …`` are numbered
separately and listed together, in order of first use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.map_fields import closed_map
from indexing.maps.spaces import range_names
from simplifier.atoms import Atom, Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr
from simplifier.substitute import Substitution


def number_ranges(indexing_map: IndexingMap) -> IndexingMap:
    """Return the map with range variables numbered in order of their first use.

    Runtime variables are numbered in their present order.
    """
    if not indexing_map.ranges and not indexing_map.runtime:
        return indexing_map
    place = {v: k for k, v in enumerate(_order(indexing_map))}
    ranges = sorted(indexing_map.ranges, key=place.__getitem__)
    names = _new_names(indexing_map, ranges)
    if names is None:
        return indexing_map
    free = [*ranges, *[rt.variable for rt in indexing_map.runtime]]
    renamed = {v: v.renamed(names.get(v, v.name)) for v in free}
    changed = {v: new.as_expr() for v, new in renamed.items() if v is not new}
    if tuple(ranges) == indexing_map.ranges and not changed:
        return indexing_map
    swap = Substitution(changed)
    return closed_map(
        IndexingMap,
        indexing_map.dims,
        tuple([renamed[v] for v in ranges]),
        tuple([rt.substituted(swap, renamed[rt.variable]) for rt in indexing_map.runtime]),
        tuple([swap(result) for result in indexing_map.results]),
        _sort_constraints(c.with_expr(swap(c.expr)) for c in indexing_map.constraints),
        indexing_map.grade,
    )


def _new_names(m: IndexingMap, ranges: Sequence[Variable]) -> dict[Variable, str] | None:
    """Names of variables by their position; `None` if another variable has one of the names."""
    names = dict(zip(ranges, range_names(ranges), strict=True))
    runtime = [rt for rt in m.runtime if not rt.is_size]
    if all(rt.source is not None for rt in runtime):  # else the name identifies the value
        names |= {rt.variable: f"rt{k}" for k, rt in enumerate(runtime)}
    taken = {v.name for v in m.variables if v not in names}
    return names if taken.isdisjoint(names.values()) else None


def _sort_constraints(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    return tuple(sorted(constraints, key=lambda c: c.expr.key))


def _order(m: IndexingMap) -> Iterator[Variable]:
    """All variables, in order of first use: by results, source indices, constraints, the rest."""
    exprs = [*m.results, *[expr for rt in m.runtime for expr in rt.index]]
    seen: dict[Atom, None] = {}
    for expr in (*exprs, *[c.expr for c in m.constraints]):
        _add_in_order(expr, seen)
    seen.update(dict.fromkeys(m.variables))
    return (atom for atom in seen if isinstance(atom, Variable))


def _add_in_order(expr: Expr, seen: dict[Atom, None]) -> None:
    """Visit the largest coefficient first, so that previous names do not influence the order."""
    pending = _last_first(expr)
    while pending:
        atom = pending.pop()
        if atom not in seen:
            seen[atom] = None
            for operand in reversed(atom.operands):
                pending += _last_first(operand)


def _last_first(expr: Expr) -> list[Atom]:
    terms = sorted(expr.terms, key=lambda term: -abs(term[1]))
    return [atom for atom, _ in reversed(terms)]

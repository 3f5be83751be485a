"""Conditions of a map's domain in a form in which each bounds the values of one result.

* A constant result takes over a condition that fixes variables which no result has:
  ``(0), d0 - rt0 in [0, 0]`` becomes ``(d0 - rt0)`` with the same condition.
* A range variable that one condition ties to a dimension, as in the prefixes of a scan, has the
  values of a window: ``(s0), d0 - s0 in [0, 4]`` has on a tile those from 4 before its first
  element to its last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from indexing.maps.indexing_map import IndexingMap
from indexing.tiling.symbolic.progressions import Term, TiledDim
from simplifier.atoms import Variable, variables_in
from simplifier.constraints import Constraint
from simplifier.linear import Expr


class Window(NamedTuple):
    """The values of a range variable on a tile, cut to ``[lower, upper)``.

    Attributes:
        constraint: the only condition that has the variable.
    """

    term: Term
    lower: int
    upper: int
    constraint: Constraint


def with_conditions_in_results(m: IndexingMap) -> IndexingMap:
    """Return an equal map whose constant results have the conditions that no result has.

    A dimension with a single value gets the bounds ``[0, value]``, and a constraint.

    >>> from indexing.maps.text import parse_map
    >>> m = parse_map("(d0, d1) -> (d1, 3), domain: d0 in [5, 5], d1 in [0, 6]")
    >>> print(with_conditions_in_results(m))
    (d0, d1) -> (d1, d0 - 2), domain: d0 in [0, 5], d1 in [0, 6], d0 in [5, 5]
    """
    free = [k for k, result in enumerate(m.results) if result.is_constant]
    if not free:
        return m
    used = variables_in(m.results)
    dims, constraints, results = list(m.dims), list(m.constraints), list(m.results)
    for k, d in enumerate(m.dims):
        if d.lower == d.upper > 0:
            dims[k] = Variable(d.name, 0, d.upper)
            constraints.append(Constraint(dims[k].as_expr(), d.lower, d.lower))
    for c in constraints:
        own = set(c.expr.variables())
        varies = not own.isdisjoint((*dims, *m.ranges)) and own.isdisjoint(used)
        if free and c.lower == c.upper and varies and _is_linear(c.expr):
            results[free.pop(0)] += c.expr - c.lower
            used |= own
    return replace(m, dims=tuple(dims), results=tuple(results), constraints=tuple(constraints))


def _is_linear(expr: Expr) -> bool:
    return all(isinstance(atom, Variable) for atom in expr.parts)


def windows(m: IndexingMap, dims: Mapping[Variable, TiledDim]) -> dict[Variable, Window]:
    """Return the range variables that one condition ties to a dimension, with their values."""
    together = [*m.results, *[c.expr for c in m.constraints]]
    ties: dict[Variable, Window] = {}
    for c in m.constraints:
        pair = _tied_variables(c, m)
        if pair is None:
            continue
        s, d = pair
        is_tied = sum(s in e.variables() for e in together) > 2
        if is_tied or sum(d in e.variables() for e in together) > 1:
            continue
        if s.as_expr() in m.results and d.lower == 0:
            ties[s] = _window(c, s, dims[d])
    return ties


def _tied_variables(c: Constraint, m: IndexingMap) -> tuple[Variable, Variable] | None:
    """The range variable and the dimension of ``s ± d in [lower, upper]``."""
    atoms = [atom for atom in c.expr.parts if isinstance(atom, Variable)]
    if len(atoms) != 2 or len(c.expr.parts) != 2 or {abs(x) for x in c.expr.parts.values()} != {1}:
        return None
    own = [v for v in atoms if v in m.ranges]
    tiled = [v for v in atoms if v in m.dims]
    return (own[0], tiled[0]) if len(own) == len(tiled) == 1 else None


def _window(c: Constraint, s: Variable, dim: TiledDim) -> Window:
    """The values of s on a tile: ``s = sign * d + shift`` for all shifts in an interval."""
    sign = -c.expr.parts[s] * c.expr.parts[dim.variable]
    shifts = sorted([c.expr.parts[s] * (end - c.expr.constant) for end in (c.lower, c.upper)])
    full = Term.full_tile(dim).scale(sign)
    width = shifts[1] - shifts[0]
    term = Term(full.offset + shifts[0], 1, full.size + width)
    ends = sorted([0, sign * (dim.limit - 1)])
    lower = max(s.lower, ends[0] + shifts[0])
    return Window(term, lower, min(s.upper, ends[1] + shifts[1]) + 1, c)

"""Replace range variables by the box of values that they reach.

``(s0 floordiv 4, s0 mod 4)`` with s0 in [0, 11] reaches each element of ``[0:3, 0:4]``: it becomes
``(s0, s1)`` with s0 in [0, 2] and s1 in [0, 3].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from indexing.maps.independence import connected_variables
from indexing.maps.indexing_map import IndexingMap
from simplifier.atoms import Variable, variables_in
from simplifier.constraints import Constraint
from simplifier.linear import Expr, without_zero_terms

if TYPE_CHECKING:
    from indexing.maps.regions.boxes import Box

MAX_ENUMERATED: Final = 1 << 14
"""Maximum number of values of range variables to enumerate; more are counted by ISL."""
BUDGET: Final = 20_000
"""isl operations for one query, a few milliseconds; beyond, the range variables are kept."""


def with_range_boxes(m: IndexingMap) -> IndexingMap:
    """Return the same relation, with range variables replaced where they reach a box.

    Range variables that expressions connect form a group.  It is replaced if each result is a sum
    ``f(others) + g(group)``, no constraint or index of a runtime variable mixes the group with
    other variables, and the values of all ``g`` together are a box: the relation depends on the set
    of these values only.  The multiplicities of results change.

    >>> from indexing.maps.text import parse_map
    >>> text = "(d0)[s0, s1] -> (d0 + (s0 floordiv 16) * 16 + s1), domain: d0 in [0, 8], "
    >>> print(with_range_boxes(parse_map(text + "s0 in [0, 63], s1 in [0, 15]")))
    (d0)[s0_] -> (d0 + s0_), domain: d0 in [0, 8], s0_ in [0, 63]
    """
    if not m.ranges or m.is_known_empty or _is_plain(m):
        return m
    for group in _groups(m):
        smaller = _with_box(m, group)
        if smaller is not None:
            return with_range_boxes(smaller)
    return m


def _is_plain(m: IndexingMap) -> bool:
    """True if each range variable is a term of one result, the only such term, and no more."""
    ranges = set(m.ranges)
    seen: set[Variable] = set()
    for result in m.results:
        own = [atom for atom in result.parts if atom in ranges]
        if len(own) > 1 or not seen.isdisjoint(own):
            return False
        seen.update(v for v in own if isinstance(v, Variable))
        if any(ranges.intersection(variables_in(a.operands)) for a in result.parts if a.divides):
            return False
    return not any(ranges.intersection(c.expr.variables()) for c in m.constraints)


def _groups(m: IndexingMap) -> Iterator[set[Variable]]:
    """Groups of range variables that no index of a runtime variable mentions."""
    ranges = set(m.ranges)
    indices = variables_in([expr for rt in m.runtime for expr in rt.index])
    exprs = [*m.results, *[c.expr for c in m.constraints]]
    together = [ranges.intersection(expr.variables()) for expr in exprs]
    for group in connected_variables(m.ranges, together):
        if group.isdisjoint(indices):
            yield group


class _Sum(NamedTuple):
    """A result as the sum ``rest + own``, where `own` has the variables of a group."""

    rest: Expr
    own: Expr

    @classmethod
    def of(cls, result: Expr, group: set[Variable]) -> _Sum | None:
        """`None` if a term mixes variables of the group with others."""
        own, rest = {}, {}
        for atom, coefficient in result.parts.items():
            inside = {atom} if isinstance(atom, Variable) else variables_in(atom.operands)
            if inside <= group:
                own[atom] = coefficient
            elif inside.isdisjoint(group):
                rest[atom] = coefficient
            else:
                return None
        return cls(without_zero_terms(rest, result.constant), without_zero_terms(own, 0))


def _with_box(m: IndexingMap, group: set[Variable]) -> IndexingMap | None:
    """The map with other variables for a group; `None` if it is plain or reaches no box."""
    constraints = [c for c in m.constraints if not group.isdisjoint(c.expr.variables())]
    sums = _sums(m, group)
    if not sums or not all(group.issuperset(c.expr.variables()) for c in constraints):
        return None
    if not constraints and _is_plain_sum(sums, group):
        return None
    variables = tuple([v for v in m.ranges if v in group])
    box = _box(variables, tuple([each.own for each in sums.values()]), tuple(constraints))
    return None if box is None else _on_box(m, variables, sums, box)


def _on_box(
    m: IndexingMap, variables: tuple[Variable, ...], sums: dict[int, _Sum], box: Box
) -> IndexingMap:
    """The map with the sides of a box for these range variables, without their constraints."""
    results = list(m.results)
    fresh: list[Variable] = []
    for (k, each), side in zip(sums.items(), box.progressions, strict=True):
        results[k] = each.rest + side.offset
        if side.size > 1:
            name = f"{variables[0].name}{'_' * (len(fresh) + 1)}"
            fresh.append(Variable(name, 0, side.size - 1))
            results[k] += fresh[-1] * side.stride
    first = m.ranges.index(variables[0])
    ranges = [v for v in m.ranges if v not in variables]
    return replace(
        m,
        ranges=(*ranges[:first], *fresh, *ranges[first:]),
        results=tuple(results),
        constraints=tuple(
            [c for c in m.constraints if not set(variables).intersection(c.expr.variables())]
        ),
    )


def _sums(m: IndexingMap, group: set[Variable]) -> dict[int, _Sum] | None:
    """The results that depend on a group, as sums; `None` if a term mixes it with others."""
    sums: dict[int, _Sum] = {}
    for k, result in enumerate(m.results):
        each = _Sum.of(result, group)
        if each is None:
            return None
        if each.own.parts:
            sums[k] = each
    return sums


def _is_plain_sum(sums: dict[int, _Sum], group: set[Variable]) -> bool:
    """True if the group is one variable, a term of one result."""
    return len(group) == len(sums) == 1 and all(s.own.parts.keys() == group for s in sums.values())


@lru_cache(maxsize=1 << 11)
def _box(
    variables: tuple[Variable, ...], results: tuple[Expr, ...], constraints: tuple[Constraint, ...]
) -> Box | None:
    """The box of values of `results`, or `None` if they form none, or the budgets are exceeded."""
    if not all(expr.is_affine for expr in (*results, *[c.expr for c in constraints])):
        return None
    from indexing.maps.regions.images import image_box  # loads ISL
    from simplifier import exact

    return image_box(exact.Relation((), variables, results, constraints), MAX_ENUMERATED, BUDGET)

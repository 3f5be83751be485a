"""Conditions on the points of a kernel, and what they imply."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from indexing.maps.answers import Unknown
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.relation import image, is_empty
from simplifier.atoms import Floor, Variable, variables_in
from simplifier.constraints import Constraint
from simplifier.interval import contains
from simplifier.linear import Expr, as_expr, from_atom

Guards: TypeAlias = tuple[Constraint, ...]
Point: TypeAlias = dict[str, int]


class NotHandled(Exception):
    """A kernel has an op or a condition that the proof does not cover."""


@dataclass(frozen=True, slots=True)
class BrokenCondition:
    """A point at which a condition does not hold.

    Attributes:
        point: the values of the variables of the point by name.
    """

    condition: str
    point: Point


def sorted_variables(exprs: Iterable[Expr]) -> list[Variable]:
    """Return the variables of expressions by name."""
    variables = sorted(variables_in(list(exprs)), key=lambda v: v.name)
    _require_distinct(variables)
    return variables


def _require_distinct(variables: Sequence[Variable]) -> None:
    if len({v.name for v in variables}) < len(variables):
        raise NotHandled("a value that is clamped in several ways")


def is_impossible(guards: Guards) -> bool:
    """Return True if no point satisfies the conditions; False if one may."""
    return _is_empty(guards) is True


@lru_cache(4096)
def _is_empty(guards: Guards) -> bool | Unknown:
    if any(c.is_false for c in guards):
        return True
    kept = [c for c in guards if not c.is_true]
    if not kept:
        return False
    return is_empty(IndexingMap.of(sorted_variables([c.expr for c in kept]), [], constraints=kept))


def implies(guards: Guards, condition: Constraint) -> bool:
    """Return True if a condition is proved to hold at each point of the guards."""
    low, high = condition.expr.bounds
    outside = (low, condition.lower - 1), (condition.upper + 1, high)
    return condition.is_true or all(
        start > end or is_impossible((*guards, Constraint(condition.expr, start, end)))
        for start, end in outside
    )


def violation(guards: Guards, condition: Constraint) -> BrokenCondition | Unknown | None:
    """Return a point of the guards at which a condition does not hold; None if it always holds."""
    if condition.is_true:
        return None
    expr, (low, high) = condition.expr, condition.expr.bounds
    below, above = (low, condition.lower - 1), (condition.upper + 1, high)
    for start, end in (below, above):
        if start > end:
            continue
        outside = (*guards, Constraint(expr, start, end))
        empty = _is_empty(outside)
        if isinstance(empty, Unknown):
            return empty
        if not empty:
            point = point_of(outside)
            if isinstance(point, Unknown):
                return point
            text = f"{expr} in [{condition.lower}, {condition.upper}]"
            return BrokenCondition(text, point)
    return None


def point_of(guards: Guards) -> Point | Unknown:
    """Return a point that satisfies the conditions, which some point does."""
    variables = sorted_variables([c.expr for c in guards])
    m = IndexingMap.of(
        [], [v.as_expr() for v in variables], ranges=variables,
        constraints=[c for c in guards if not c.is_true],
    )  # fmt: skip
    pieces = image(m)
    if isinstance(pieces, Unknown):
        return pieces
    for piece in pieces:
        first = _first_point(piece)
        if first is not None:
            return dict(zip([v.name for v in variables], first, strict=True))
    return Unknown("no point is found")


def _first_point(piece: IndexingMap) -> tuple[int, ...] | None:
    """Return a point of the image that a map without dimensions has."""
    if not piece.ranges:
        return piece.evaluate()
    elements = piece.at() if not piece.runtime else None
    if elements is None:
        return None
    rows = elements.elements()
    if isinstance(rows, Unknown) or not len(rows):
        return None
    return tuple([int(x) for x in rows[0]])


def numerators(expr: Expr) -> list[Expr]:
    """Return the expressions that an expression divides, inner ones included."""
    inner: list[Expr] = []
    for atom in expr.parts:
        for operand in () if isinstance(atom, Variable) else atom.operands:
            inner += [operand, *numerators(operand)]
    return inner


def magnitude(expr: Expr) -> int:
    """Return a bound on the absolute value of an expression and of each partial result of it."""
    largest = 0
    total = abs(expr.constant)
    for atom, factor in expr.parts.items():
        low, high = atom.bounds
        total += abs(factor) * max(abs(low), abs(high))
        if isinstance(atom, Floor):
            largest = max(largest, magnitude(atom.numerator))
        elif not isinstance(atom, Variable):
            largest = max([largest, *[magnitude(e) for e in atom.operands]])
    return max(total, largest)


def terms_of(expr: Expr) -> list[Expr]:
    """Return the terms whose sum an expression is."""
    terms = [from_atom(atom) * factor for atom, factor in expr.parts.items()]
    return [*terms, as_expr(expr.constant)]


def partial_sums(terms: Sequence[Expr], guards: Guards = ()) -> tuple[Expr, Expr]:
    """Return two expressions between which each sum of some of the terms is, where guards hold.

    >>> i = Variable("i", 0, 7).as_expr()
    >>> [str(e) for e in partial_sums([i * 3, (i // 2) * -4, as_expr(1)])]
    ['(i floordiv 2) * -4', 'i * 3 + 1']
    """
    below = above = as_expr(0)
    for term in terms:
        low, high = term.bounds
        for guard in guards:
            if guard.expr == term:
                low, high = max(low, guard.lower), min(high, guard.upper)
        if low < 0 < high:
            below, above = below + low, above + high
        elif high <= 0:
            below += term
        else:
            above += term
    return below, above


def within(expr: Expr, limits: tuple[int, int]) -> bool:
    """Return True if interval bounds show that an expression is within limits."""
    return contains(limits, expr.bounds)


def over(variables: Sequence[Variable], results: Sequence[Expr], guards: Guards) -> IndexingMap:
    """Return the map from the points of a kernel to these results."""
    kept = [c for c in guards if not c.is_true]
    _require_distinct(list({*variables, *variables_in([*results, *[c.expr for c in kept]])}))
    return IndexingMap.of(variables, results, constraints=kept)

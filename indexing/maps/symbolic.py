"""Sizes that are symbols: ``(d0){n} -> (d0), domain: d0 in [0, n * 2 - 1], n in [1, 1024]``.

A symbolic size is a runtime variable without a source that has a name of its own: the same name
means the same value in every map.  A dimension of that size is bounded by the greatest value that
the size has, and by a constraint; intervals see the former, ISL takes the symbol as a parameter.

>>> from indexing.maps.indexing_map import IndexingMap
>>> from simplifier import variable
>>> n = variable("n", 1, 1024)
>>> split = IndexingMap.over(
...     (n * 2, 64), lambda d: [d[0] // 2, d[0] % 2 * 4 + d[1] // 16, d[1] % 16]
... )
>>> print(split)
(d0, d1){n} -> (d0 floordiv 2, d1 floordiv 16 + (d0 mod 2) * 4, d1 mod 16),
domain: d0 in [0, n * 2 - 1], d1 in [0, 63], n in [1, 1024]
>>> joined = IndexingMap.over((n, 8, 16), lambda d: [d[0] * 2 + d[1] // 4, d[1] % 4 * 16 + d[2]])
>>> print(split.then(joined).simplify())
(d0, d1){n} -> (d0, d1), domain: d0 in [0, n * 2 - 1], d1 in [0, 63], n in [1, 1024]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from simplifier.atoms import Variable, mentioned
from simplifier.constraints import Constraint, normalised
from simplifier.interval import Interval, scaled
from simplifier.linear import Affine, Expr, added, as_expr


def bounded(
    prefix: str, sizes: Sequence[Affine]
) -> tuple[tuple[Variable, ...], tuple[Constraint, ...], tuple[Variable, ...]]:
    """Variables ``d0, d1, …`` in ``[0, size − 1]``, what bounds them besides, and the symbols.

    Raises:
        ValueError: a symbol is called like one of the variables.
    """
    last = [as_expr(size) - 1 for size in sizes]
    variables = tuple([Variable(f"{prefix}{k}", 0, e.bounds[1]) for k, e in enumerate(last)])
    below = [at_most(v, e) for v, e in zip(variables, last, strict=True) if not e.is_constant]
    symbols = tuple(sorted(mentioned(last), key=lambda v: v.key))
    taken = {v.name for v in variables} & {v.name for v in symbols}
    if taken:
        raise ValueError(f"{min(taken)} is the name of a dimension; call the size something else")
    return variables, tuple(c for c in below if c is not None), symbols


def at_most(variable: Variable, upper: Expr) -> Constraint | None:
    """``variable <= upper``; `None` where that always holds."""
    slack = added(variable.as_expr(), upper, -1)
    return normalised(Constraint(slack, min(slack.bounds[0], 0), 0))


def at_least(variable: Variable, lower: Expr) -> Constraint | None:
    """``variable >= lower``; `None` where that always holds."""
    slack = added(variable.as_expr(), lower, -1)
    return normalised(Constraint(slack, 0, max(slack.bounds[1], 0)))


class Bounds(NamedTuple):
    """Symbolic bounds of a variable, `None` where a bound is a number, and which constraints of
    the map say so."""

    lower: Expr | None
    upper: Expr | None
    said_by: tuple[int, ...]

    def constraints(self, variable: Variable) -> list[Constraint]:
        """The constraints that say what these bounds say of `variable`."""
        found = (
            at_least(variable, self.lower) if self.lower is not None else None,
            at_most(variable, self.upper) if self.upper is not None else None,
        )
        return [c for c in found if c is not None]

    def interval(self, lower: int, upper: int) -> Interval:
        """The least and the greatest value; `lower` and `upper` are the bounds that are numbers."""
        return (
            lower if self.lower is None else self.lower.bounds[0],
            upper if self.upper is None else self.upper.bounds[1],
        )


def one_sided(variable: Variable, constraint: Constraint, number: int) -> Bounds | None:
    """The bound that `constraint` is, if it is one: ``variable <= e`` or ``variable >= e``."""
    sign = constraint.expr.parts.get(variable, 0)
    if abs(sign) != 1:
        return None
    rest = added(variable.as_expr(), constraint.expr, -sign)  # variable = rest ± expression
    lower, upper = scaled(constraint.bounds, sign)
    least, most = scaled(constraint.expr.bounds, sign)
    if upper < most and lower <= least:
        return Bounds(None, rest + upper, (number,))
    if lower > least and upper >= most:
        return Bounds(rest + lower, None, (number,))
    return None


def both_sides(first: Bounds | None, second: Bounds) -> Bounds:
    """A lower and an upper bound; the first where both are of one kind."""
    if first is None:
        return second
    if (first.lower is None) == (second.lower is None):
        return first
    lower, upper = (first, second) if first.upper is None else (second, first)
    return Bounds(lower.lower, upper.upper, (*lower.said_by, *upper.said_by))

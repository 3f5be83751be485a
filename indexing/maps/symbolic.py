"""Symbolic sizes: ``(d0){n} -> (d0), domain: d0 in [0, n * 2 - 1], n in [1, 1024]``.

A symbolic size is a runtime variable with a name of its own and no source; a name has the same
value in every map.  A dimension of symbolic size is bounded by the maximum of the size, for
interval arithmetic, and by a constraint.  In ISL the symbol is a parameter.

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

from simplifier.atoms import Variable, variables_in
from simplifier.constraints import Constraint, normalise
from simplifier.interval import Interval, scale
from simplifier.linear import Affine, Expr, add_multiple, as_expr


def bounded_variables(
    prefix: str, sizes: Sequence[Affine]
) -> tuple[tuple[Variable, ...], tuple[Constraint, ...], tuple[Variable, ...]]:
    """Return variables ``d0, d1, …`` in ``[0, size - 1]``, their constraints, and the symbols.

    Raises:
        ValueError: a symbol has the name of a variable.
    """
    last = [as_expr(size) - 1 for size in sizes]
    variables = tuple([Variable(f"{prefix}{k}", 0, e.bounds[1]) for k, e in enumerate(last)])
    below = [upper_bound(v, e) for v, e in zip(variables, last, strict=True) if not e.is_constant]
    symbols = tuple(sorted(variables_in(last), key=lambda v: v.key))
    taken = {v.name for v in variables} & {v.name for v in symbols}
    if taken:
        raise ValueError(f"{min(taken)} is the name of a dimension: rename the symbolic size")
    return variables, tuple(c for c in below if c is not None), symbols


def upper_bound(variable: Variable, upper: Expr) -> Constraint | None:
    """The constraint ``variable <= upper``; `None` if it always holds."""
    slack = add_multiple(variable.as_expr(), upper, -1)
    return normalise(Constraint(slack, min(slack.bounds[0], 0), 0))


def lower_bound(variable: Variable, lower: Expr) -> Constraint | None:
    """The constraint ``variable >= lower``; `None` if it always holds."""
    slack = add_multiple(variable.as_expr(), lower, -1)
    return normalise(Constraint(slack, 0, max(slack.bounds[1], 0)))


class Bounds(NamedTuple):
    """Symbolic bounds of a variable.

    Attributes:
        lower, upper: the bounds; `None` for a constant bound.
        constraint_ids: indices of the map's constraints that state the bounds.
    """

    lower: Expr | None
    upper: Expr | None
    constraint_ids: tuple[int, ...]

    def constraints(self, variable: Variable) -> list[Constraint]:
        """The constraints equivalent to these bounds of `variable`."""
        both = (
            lower_bound(variable, self.lower) if self.lower is not None else None,
            upper_bound(variable, self.upper) if self.upper is not None else None,
        )
        return [c for c in both if c is not None]

    def interval(self, lower: int, upper: int) -> Interval:
        """Constant bounds of the variable; `lower` and `upper` replace missing symbolic bounds."""
        return (
            lower if self.lower is None else self.lower.bounds[0],
            upper if self.upper is None else self.upper.bounds[1],
        )


def one_sided(variable: Variable, constraint: Constraint, number: int) -> Bounds | None:
    """The bound ``variable <= e`` or ``variable >= e`` equivalent to `constraint`, if any."""
    sign = constraint.expr.parts.get(variable, 0)
    if abs(sign) != 1:
        return None
    rest = add_multiple(variable.as_expr(), constraint.expr, -sign)  # variable = rest ± expression
    lower, upper = scale(constraint.bounds, sign)
    smallest, largest = scale(constraint.expr.bounds, sign)
    if upper < largest and lower <= smallest:
        return Bounds(None, rest + upper, (number,))
    if lower > smallest and upper >= largest:
        return Bounds(rest + lower, None, (number,))
    return None


def both_sides(first: Bounds | None, second: Bounds) -> Bounds:
    """Combine a lower and an upper bound; return `first` if both are of the same kind."""
    if first is None:
        return second
    if (first.lower is None) == (second.lower is None):
        return first
    lower, upper = (first, second) if first.upper is None else (second, first)
    return Bounds(lower.lower, upper.upper, (*lower.constraint_ids, *upper.constraint_ids))

"""Maps as SymPy's: results, limits of the variables, and relations between them.

Source: SymPy's documentation, "Functions" (``floor``, ``Mod``, ``frac``) and ``Sum`` for limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable
from simplifier.constraints import FALSE, Constraint, merged
from simplifier.linear import Affine, Expr

Limits: TypeAlias = Sequence[tuple[Any, Any, Any]]
"""``(symbol, lower, upper)`` for each variable, both bounds included, as ``sympy.Sum`` has them."""


class SympyMap(tuple[Any, ...]):
    """The results of a map as SymPy's expressions, with what they are defined on beside them.

    Attributes:
        dims, ranges, runtime: ``(symbol, lower, upper)`` for each variable, bounds included.
        constraints: relations that the variables satisfy besides; none that SymPy finds true.
    """

    dims: Limits
    ranges: Limits
    runtime: Limits
    constraints: tuple[Any, ...]

    def __new__(
        cls,
        results: Iterable[Any],
        dims: Limits = (),
        ranges: Limits = (),
        runtime: Limits = (),
        constraints: Iterable[Any] = (),
    ) -> SympyMap:
        """`results` with the limits of the variables and the constraints between them."""
        self = super().__new__(cls, results)
        self.dims, self.ranges, self.runtime = tuple(dims), tuple(ranges), tuple(runtime)
        self.constraints = tuple(constraints)
        return self

    @property
    def domain(self) -> Any:
        """Limits and constraints as one condition (``sympy.And``).

        >>> from indexing.maps.text import parse_map
        >>> even = parse_map("(d0) -> (d0), domain: d0 in [0, 9], d0 mod 2 in [0, 0]")
        >>> to_sympy(even).domain
        (d0 <= 9) & Eq(Mod(d0, 2), 0)
        """
        import sympy

        limits = (*self.dims, *self.ranges, *self.runtime)
        bounds = [bound for v, lower, upper in limits for bound in (v >= lower, v <= upper)]
        return sympy.And(*bounds, *self.constraints)


def to_sympy(shown: IndexingMap) -> SympyMap:
    """The results as SymPy's expressions of integer symbols; limits and constraints beside them.

    >>> told = to_sympy(IndexingMap.over((8,), lambda d: [d[0] // 4]))
    >>> told, told.dims
    ((floor(d0/4),), ((d0, 0, 7),))
    """
    import sympy

    from simplifier.sympy_bridge import symbol
    from simplifier.sympy_bridge import to_sympy as told

    def limits(variables: Iterable[Variable]) -> Limits:
        return [(symbol(v), v.lower, v.upper) for v in variables]

    relations: list[Any] = []
    for c in shown.constraints:
        expr = told(c.expr)
        if c.lower == c.upper:
            relations.append(sympy.Eq(expr, c.lower))
        else:
            relations += [sympy.Ge(expr, c.lower), sympy.Le(expr, c.upper)]
    return SympyMap(
        [told(result) for result in shown.results],
        limits(shown.dims),
        limits(shown.ranges),
        limits([rt.variable for rt in shown.runtime]),
        [r for r in relations if r is not sympy.true],
    )


def from_sympy(
    results: Any,
    *,
    dims: Limits = (),
    ranges: Limits = (),
    runtime: Limits = (),
    constraints: Any = (),
) -> IndexingMap:
    """The map with these results, from SymPy's expressions of symbols that `dims`, … bound.

    Args:
        results: what `to_sympy` gave, which needs nothing else; or expressions, or a single one.
        dims, ranges, runtime: ``(symbol, lower, upper)`` for each variable, bounds included. A
            bound may be an expression of symbols that come earlier, `runtime` first, so that a
            size can be a symbol: ``dims=[(i, 0, n - 1)], runtime=[(n, 1, 64)]``.
        constraints: relations (``>=``, ``>``, ``<=``, ``<``, ``Eq``) and conjunctions of them.
    Raises:
        ValueError: an expression has a function that maps do not have, a symbol that is none of the
            variables, or one whose assumptions do not fit its bounds; or a constraint is none that
            a map can have.

    >>> import sympy
    >>> i, n = sympy.symbols("i n", integer=True)
    >>> print(from_sympy([i % 4], dims=[(i, 0, n - 1)], runtime=[(n, 1, 64)]))
    (i){n} -> (i mod 4), domain: i in [0, n - 1], n in [1, 64]
    """
    import sympy

    if isinstance(results, SympyMap):
        if dims or ranges or runtime or constraints:
            raise ValueError("what to_sympy gave has its own limits and constraints")
        dims, ranges, runtime = results.dims, results.ranges, results.runtime
        constraints = results.constraints
    declared = _Declared()
    values = [declared.variable(*_limit(limit)) for limit in runtime]
    over = [declared.variable(*_limit(limit)) for limit in dims]
    along = [declared.variable(*_limit(limit)) for limit in ranges]
    single = isinstance(results, sympy.Basic | int) and not isinstance(results, sympy.Tuple)
    given = [constraints] if isinstance(constraints, sympy.Basic | bool) else constraints
    for relation in given:
        declared.constraints += _constraints(relation, declared)
    return IndexingMap.of(
        over,
        [declared.expr(result) for result in ([results] if single else results)],
        ranges=along,
        runtime=[RuntimeVariable(v) for v in values],
        constraints=merged(declared.constraints),
    )


def _limit(limit: Any) -> tuple[Any, Any, Any]:
    import sympy

    if not isinstance(limit, tuple | list | sympy.Tuple) or len(limit) != 3:
        raise ValueError(f"expected (symbol, lower, upper), found {limit}")
    return limit[0], limit[1], limit[2]


class _Declared:
    """The variables that are declared so far, and what their bounds say of them."""

    def __init__(self) -> None:
        self.names: dict[str, Affine] = {}
        self.constraints: list[Constraint] = []

    def expr(self, given: Any) -> Expr:
        from simplifier.sympy_bridge import from_sympy as told

        return told(given, self.names)

    def variable(self, symbol: Any, lower: Any, upper: Any) -> Variable:
        least, most = self.expr(lower), self.expr(upper)
        made = Variable(str(symbol), least.bounds[0], most.bounds[1])
        if str(symbol) in self.names:
            raise ValueError(f"{symbol} is bounded twice")
        self.names[str(symbol)] = made
        for gap in (made - least, most - made):
            self.constraints.append(_at_least(gap, 0))
        return made


def _at_least(expr: Expr, lower: int) -> Constraint:
    return Constraint(expr, lower, max(lower, expr.bounds[1]))


def _constraints(relation: Any, declared: _Declared) -> Iterator[Constraint]:
    import sympy

    from simplifier.sympy_bridge import fraction

    if relation in (True, sympy.true):
        return
    if relation in (False, sympy.false):
        yield FALSE
        return
    if isinstance(relation, sympy.And):
        for part in relation.args:
            yield from _constraints(part, declared)
        return
    if not isinstance(relation, sympy.Eq | sympy.Ge | sympy.Gt | sympy.Le | sympy.Lt):
        raise ValueError(
            f"{relation} is no constraint of a map: those are conjunctions of ==, >=, >, <= and <; "
            f"make a map for each alternative"
        )
    difference, denominator = fraction(relation.lhs - relation.rhs, declared.names)
    if not denominator.is_constant:
        raise ValueError(
            f"{relation} divides by an expression, whose sign decides: multiply it out"
        )
    # A denominator that is a constant is positive, and an integer above 0 is at least 1.
    if isinstance(relation, sympy.Eq):
        yield Constraint(difference, 0, 0)
    elif isinstance(relation, sympy.Ge | sympy.Gt):
        yield _at_least(difference, int(isinstance(relation, sympy.Gt)))
    else:
        yield _at_least(-difference, int(isinstance(relation, sympy.Lt)))

"""Conversion of maps to and from SymPy: results, limits of the variables, and constraints.

Source: SymPy's documentation, "Functions" (``floor``, ``Mod``, ``frac``) and ``Sum`` for limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from hlo.arguments import checked
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.printing import require_exact_text, require_shallow
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable
from simplifier.conjunction import merge_constraints
from simplifier.constraints import FALSE, Constraint
from simplifier.linear import Affine, Expr

Limits: TypeAlias = Sequence[Any]
"""``(symbol, lower, upper)`` for each variable, bounds included, as in ``sympy.Sum``: tuples, or
`sympy.Tuple`."""


class SympyMap(tuple[Any, ...]):
    """The results of a map as a tuple of SymPy expressions, with the domain as attributes.

    Attributes:
        dims, ranges, runtime: ``(symbol, lower, upper)`` for each variable, bounds included.
        constraints: further relations between the variables, without those that their bounds imply.

    >>> SympyMap([2]).constraints
    ()
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
        """Return `results` with the limits of the variables and their constraints."""
        self = super().__new__(cls, results)
        self.dims, self.ranges, self.runtime = tuple(dims), tuple(ranges), tuple(runtime)
        self.constraints = tuple(constraints)
        return self

    @property
    def domain(self) -> Any:
        """The conjunction (``sympy.And``) of limits and constraints.

        >>> from indexing.maps.text import parse_map
        >>> even = parse_map("(d0) -> (d0), domain: d0 in [0, 9], d0 mod 2 in [0, 0]")
        >>> to_sympy(even).domain
        (d0 <= 9) & Eq(Mod(d0, 2), 0)
        """
        import sympy

        limits = (*self.dims, *self.ranges, *self.runtime)
        bounds = [bound for v, lower, upper in limits for bound in (v >= lower, v <= upper)]
        return sympy.And(*bounds, *self.constraints)


def to_sympy(indexing_map: IndexingMap) -> SympyMap:
    """Return the results as SymPy expressions of integer symbols, with limits and constraints.

    Raises:
        ValueError: shared subexpressions make an expression too long (`simplifier.text.MAX_TEXT`).

    >>> results = to_sympy(IndexingMap.over((8,), lambda d: [d[0] // 4]))
    >>> results, results.dims
    ((floor(d0/4),), ((d0, 0, 7),))
    """

    from simplifier.sympy_bridge import symbol
    from simplifier.sympy_bridge import to_sympy as to_expression

    require_exact_text(indexing_map)
    require_shallow(indexing_map)

    def limits(variables: Iterable[Variable]) -> Limits:
        return [(symbol(v), v.lower, v.upper) for v in variables]

    relations = [
        relation for c in indexing_map.constraints for relation in _relations(c, to_expression)
    ]
    return SympyMap(
        [to_expression(result) for result in indexing_map.results],
        limits(indexing_map.dims),
        limits(indexing_map.ranges),
        limits([rt.variable for rt in indexing_map.runtime]),
        relations,
    )


def _relations(c: Constraint, to_expression: Callable[[Expr], Any]) -> Iterator[Any]:
    """Yield the relations of a constraint that the bounds of its variables do not imply.

    They are not evaluated: SymPy derives the sign of a sum in more than quadratic time.
    """
    import sympy

    lower, upper = c.expr.bounds
    if c.lower > upper or c.upper < lower:
        yield sympy.false
        return
    expr = to_expression(c.expr)
    if c.lower == c.upper and lower < upper:
        yield sympy.Eq(expr, c.lower, evaluate=False)
        return
    if lower < c.lower:
        yield sympy.Ge(expr, c.lower, evaluate=False)
    if c.upper < upper:
        yield sympy.Le(expr, c.upper, evaluate=False)


@checked
def from_sympy(
    results: Any,
    *,
    dims: Limits = (),
    ranges: Limits = (),
    runtime: Limits = (),
    constraints: Any = (),
) -> IndexingMap:
    """Return the map with SymPy expressions as results.

    Args:
        results: an answer of `to_sympy`, without further arguments; an expression or several.
        dims, ranges, runtime: ``(symbol, lower, upper)`` for each variable, bounds included. A
            bound may be an expression of preceding symbols, `runtime` first, so a size can be a
            symbol: ``dims=[(i, 0, n - 1)], runtime=[(n, 1, 64)]``.
        constraints: relations (``>=``, ``>``, ``<=``, ``<``, ``Eq``) and conjunctions of them.
    Raises:
        ValueError: an expression has a function without equivalent in maps, an undeclared symbol,
            or a symbol whose assumptions contradict its bounds; or a constraint has another form.

    >>> import sympy
    >>> i, n = sympy.symbols("i n", integer=True)
    >>> print(from_sympy([i % 4], dims=[(i, 0, n - 1)], runtime=[(n, 1, 64)]))
    (i){n} -> (i mod 4), domain: i in [0, n - 1], n in [1, 64]
    """
    import sympy

    if isinstance(results, SympyMap):
        if dims or ranges or runtime or constraints:
            raise ValueError("limits and constraints do not apply to a SympyMap, which has its own")
        dims, ranges, runtime = results.dims, results.ranges, results.runtime
        constraints = results.constraints
    declared = _Declared()
    values = [declared.variable(*_limit(limit, "runtime")) for limit in runtime]
    dim_variables = [declared.variable(*_limit(limit, "dims")) for limit in dims]
    range_variables = [declared.variable(*_limit(limit, "ranges")) for limit in ranges]
    single = isinstance(results, sympy.Basic | int) and not isinstance(results, sympy.Tuple)
    given = [constraints] if isinstance(constraints, sympy.Basic | bool) else constraints
    for relation in given:
        declared.constraints += _constraints(relation, declared)
    return IndexingMap.of(
        dim_variables,
        [declared.expr(result) for result in ([results] if single else results)],
        ranges=range_variables,
        runtime=[RuntimeVariable(v) for v in values],
        constraints=merge_constraints(declared.constraints),
    )


def _limit(limit: Any, name: str) -> tuple[Any, Any, Any]:
    import sympy

    if not isinstance(limit, tuple | list | sympy.Tuple) or len(limit) != 3:
        raise ValueError(f"`{name}`: expected (symbol, lower, upper), found {limit}")
    return limit[0], limit[1], limit[2]


class _Declared:
    """The variables declared so far, and constraints for their symbolic bounds."""

    def __init__(self) -> None:
        self.names: dict[str, Affine] = {}
        self.constraints: list[Constraint] = []

    def expr(self, given: Any) -> Expr:
        from simplifier.sympy_bridge import from_sympy as from_expression

        return from_expression(given, self.names)

    def variable(self, symbol: Any, lower: Any, upper: Any) -> Variable:
        low, high = self.expr(lower), self.expr(upper)
        variable = Variable(str(symbol), low.bounds[0], high.bounds[1])
        if str(symbol) in self.names:
            raise ValueError(f"the symbol {symbol} has two limits")
        self.names[str(symbol)] = variable
        for gap in (variable - low, high - variable):
            self.constraints.append(_lower_bound(gap, 0))
        return variable


def _lower_bound(expr: Expr, lower: int) -> Constraint:
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
            f"unsupported constraint {relation}: use conjunctions of ==, >=, >, <= and <, and one "
            "map for each alternative"
        )
    difference, denominator = fraction(relation.lhs - relation.rhs, declared.names)
    if not denominator.is_constant:
        raise ValueError(
            f"{relation} divides by an expression of unknown sign: multiply by the divisor"
        )
    # A constant denominator is positive, and an integer above 0 is at least 1.
    if isinstance(relation, sympy.Eq):
        yield Constraint(difference, 0, 0)
    elif isinstance(relation, sympy.Ge | sympy.Gt):
        yield _lower_bound(difference, int(isinstance(relation, sympy.Gt)))
    else:
        yield _lower_bound(-difference, int(isinstance(relation, sympy.Lt)))

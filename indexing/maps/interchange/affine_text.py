"""Parser of the contents of ``affine_map<…>`` and ``affine_set<…>``.

Source: MLIR "'affine' Dialect", "Polyhedral Structures".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, NoReturn, TypeAlias

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.maps.text import by_name, names_text, result_list, variable_names
from simplifier.atoms import Variable
from simplifier.conjunction import merge_constraints
from simplifier.constraints import Constraint
from simplifier.interval import Interval, intersect
from simplifier.linear import Expr
from simplifier.reading import Token, Tokens, parse_expr
from simplifier.substitute import Substitution

SizeOrBounds: TypeAlias = int | tuple[int, int]
"""A size, for ``[0, size - 1]``, or a pair of inclusive bounds."""


class Heads(NamedTuple):
    """The variables declared by a map or set."""

    dims: list[Token]
    symbols: list[Token]

    @classmethod
    def read(cls, tokens: Tokens) -> Heads:
        """Parse ``(d0, d1)[s0]`` at the start of a map or set."""
        heads = cls(
            variable_names(tokens, "(", ")", required=True), variable_names(tokens, "[", "]")
        )
        by_name(tokens, (*heads.dims, *heads.symbols))
        return heads


class VariableBounds(NamedTuple):
    """The bounds given by the caller."""

    dims: Sequence[SizeOrBounds] | None
    symbols: Sequence[SizeOrBounds] | None
    runtime: Sequence[SizeOrBounds]

    def bounds(self, heads: Heads) -> dict[str, Interval]:
        """The given bounds by the name of the variable."""
        by_name: dict[str, Interval] = {}
        symbols = self.symbols
        if self.runtime:
            symbols = [*(symbols or ()), *self.runtime]
        for tokens, extents, kind in (
            (heads.dims, self.dims, "dimensions"),
            (heads.symbols, symbols, "symbols"),
        ):
            if extents is None:
                continue
            if len(extents) != len(tokens):
                names = ", ".join(token.text for token in tokens) or "none"
                raise ValueError(
                    f"expected bounds of {len(tokens)} {kind}, got {len(extents)}: of {names}"
                )
            for token, extent in zip(tokens, extents, strict=True):
                by_name[token.text] = (0, extent - 1) if isinstance(extent, int) else extent
        return by_name

    def indexing_map(
        self,
        heads: Heads,
        names: dict[str, Variable],
        results: Sequence[Expr],
        constraints: Iterable[Constraint],
    ) -> IndexingMap:
        """The map; its last ``len(self.runtime)`` symbols are runtime variables."""
        symbols = [names[token.text] for token in heads.symbols]
        count = len(symbols) - len(self.runtime)
        return IndexingMap.of(
            [names[token.text] for token in heads.dims],
            results,
            ranges=symbols[:count],
            runtime=[RuntimeVariable(variable) for variable in symbols[count:]],
            constraints=merge_constraints(constraints),
        )


def affine_map(tokens: Tokens, heads: Heads, given: VariableBounds) -> IndexingMap:
    """Parse ``-> (d0 + s0, …)``: the map with these results."""
    names = _variables(tokens, heads, given.bounds(heads))
    tokens.expect("->", "after the variables")
    return given.indexing_map(heads, names, result_list(tokens, names), ())


def affine_set(tokens: Tokens, heads: Heads, given: VariableBounds) -> IndexingMap:
    """Parse ``: (d0 - 1 >= 0, …)``: the map without results with these conditions as its domain."""
    # As in a map's text, conditions are parsed over unbounded variables: the bounds come later.
    free = {t.text: Variable(t.text, -_FAR, _FAR) for t in (*heads.dims, *heads.symbols)}
    tokens.expect(":", "after the variables")
    conditions = _condition_list(tokens, free)
    bounds = given.bounds(heads)
    others: list[_Condition] = []
    for condition in conditions:
        bound = condition.as_bounds()
        if bound is None:
            others.append(condition)
        else:
            name, interval = bound
            bounds[name] = intersect(bounds.get(name, (-_FAR, _FAR)), interval)
    if any(condition.is_false for condition in others):
        bounds = {name: bounds.get(name, (0, 0)) for name in free}
    names = _variables(tokens, heads, bounds)
    swap = Substitution({free[name]: v.as_expr() for name, v in names.items()})
    return given.indexing_map(heads, names, (), [c.constraint(swap) for c in others])


_FAR: Final = 1 << 256


def _variables(tokens: Tokens, heads: Heads, bounds: Mapping[str, Interval]) -> dict[str, Variable]:
    """Return the variables with their bounds; fails if some have none."""
    variables = (*heads.dims, *heads.symbols)
    missing: dict[str, list[Token]] = {"lower": [], "upper": []}
    for token in variables:
        lower, upper = bounds.get(token.text, (-_FAR, _FAR))
        if lower == -_FAR:
            missing["lower"].append(token)
        elif upper == _FAR:
            missing["upper"].append(token)
    if any(missing.values()):
        _fail_without_bounds(tokens, heads, missing)
    return {t.text: Variable(t.text, *bounds[t.text]) for t in variables}


def _fail_without_bounds(
    tokens: Tokens, heads: Heads, missing: Mapping[str, Sequence[Token]]
) -> NoReturn:
    """Name all variables without bounds, by the missing side, and the options that give them."""
    unbounded = {token for own in missing.values() for token in own}
    parts = [
        f"{names_text([t.text for t in own])} no {side} bound"
        for side, own in missing.items()
        if own
    ]
    every = {"dims": heads.dims, "symbols": heads.symbols}
    lacking = {name: len(own) for name, own in every.items() if not unbounded.isdisjoint(own)}
    arguments = " and ".join(f"`{name}`" for name in lacking)
    options = " ".join(f"--{name} {','.join(['10'] * count)}" for name, count in lacking.items())
    variables = (*heads.dims, *heads.symbols)
    domain = ", ".join(f"{token.text} in [0, 9]" for token in variables)
    tokens.fail(
        "; ".join(parts),
        next(token for token in variables if token in unbounded),
        f"pass sizes or bounds as {arguments} ({options} of `simplify`), or write a map with a "
        f"domain: (…) -> (…), domain: {domain}",
    )


class _Condition(NamedTuple):
    """``expr >= 0``, or ``expr == 0``."""

    expr: Expr
    is_equality: bool

    @property
    def is_false(self) -> bool:
        constant = self.expr.constant
        return self.expr.is_constant and (constant < 0 or (self.is_equality and constant != 0))

    def as_bounds(self) -> tuple[str, Interval] | None:
        """The variable and its bounds, if the condition is just a bound of a variable."""
        if len(self.expr.terms) != 1:
            return None
        (atom, factor), start = self.expr.terms[0], self.expr.constant
        if not isinstance(atom, Variable) or (self.is_equality and start % factor):
            return None
        if self.is_equality:
            return atom.name, (-start // factor, -start // factor)
        # factor·v + start >= 0
        return atom.name, (-(start // factor), _FAR) if factor > 0 else (-_FAR, start // -factor)

    def constraint(self, swap: Substitution) -> Constraint:
        expr = swap(self.expr)
        return Constraint(expr, 0, 0 if self.is_equality else max(0, expr.bounds[1]))


def _condition_list(tokens: Tokens, free: dict[str, Variable]) -> list[_Condition]:
    tokens.expect("(", "before the conditions")
    conditions: list[_Condition] = []
    while not tokens.accept(")"):
        if conditions:
            tokens.expect(",", "or `)` after a condition")
        left = parse_expr(tokens, free)
        sign = tokens.take()
        if sign.text not in (">=", "<=", "=="):
            tokens.fail(f"expected `>=`, `<=` or `==`, found `{sign.text}`", sign)
        difference = left - parse_expr(tokens, free)
        conditions.append(
            _Condition(-difference if sign.text == "<=" else difference, sign.text == "==")
        )
    return conditions

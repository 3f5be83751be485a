"""Parser of maps in XLA's notation, as `str` and `pretty` print them.

``(d0, d1)[s0]{rt0} -> (d0 + rt0, s0), domain: d0 in [0, 9], d1 in [0, 1], s0 in [0, 3], rt0 in [0,
4]``

The domain starts with the bounds of every variable; further entries are constraints.

Source: XLA ``docs/indexing.md``, "Implementation".
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from typing import Final

from hlo.arguments import checked
from hlo.text.source import HloError, Source, Span
from indexing.maps.assumed_map import assumed_map
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.replaced_variables import with_replaced_variables
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.maps.spelled import MIN_DIVISIONS, spelled_map
from indexing.maps.symbolic import Bounds
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr
from simplifier.reading import TextError, Token, Tokens, parse_expr, spell_operators
from simplifier.substitute import Substitution
from simplifier.text_cost import text_cost
from simplifier.zero_divisor import ZeroDivisorError

_ASSUMING: Final = re.compile(r"\s+assuming ([\w-]+(?:, [\w-]+)*)\s*$")


@checked
def parse_map(text: str, filename: str = "<map>") -> IndexingMap:
    """Parse a map from its text, on one line or several.

    Runtime variables of a parsed map have no source.  A text that ends with ``assuming`` and names
    is that of a map of `indexing.maps.assumed_map`.

    Args:
        filename: the file name in error messages.
    Raises:
        HloError: the text is not a map, with the location.
    Source: XLA ``docs/indexing.md``, "Implementation".

    >>> print(parse_map("(d0)[s0] -> (d0, s0), domain: d0 in [0, 9], s0 in [0, 3]"))
    (d0)[s0] -> (d0, s0), domain: d0 in [0, 9], s0 in [0, 3]
    """
    if assuming := _ASSUMING.search(text):
        plain = parse_map(text[: assuming.start()], filename)
        return assumed_map(plain, tuple(assuming[1].split(", ")))
    try:
        tokens = Tokens(text)
        parsed = _map(tokens)
        if tokens.next.kind != "end":
            tokens.fail(f"expected the end of the map, found {tokens.next_text()}")
    except TextError as error:
        span = Span(Source(text, filename), error.start, error.end)
        raise HloError(error.message, span, code="map-syntax", help=error.hint) from None
    return parsed


def _map(tokens: Tokens) -> IndexingMap:
    if tokens.accept("KNOWN"):
        tokens.expect("EMPTY", "after `KNOWN`")
        return IndexingMap.empty()
    dims = variable_names(tokens, "(", ")", required=True)
    ranges = variable_names(tokens, "[", "]")
    runtime = variable_names(tokens, "{", "}")
    declared = by_name(tokens, (*dims, *ranges, *runtime))
    # Results precede the bounds of their variables.  Parse them over unbounded variables, then
    # substitute the bounded variables, which applies the simplification laws.
    free = {name: Variable(name, -_FAR, _FAR) for name in declared}
    tokens.expect("->", "after the variables")
    texts: list[tuple[Expr, str]] = []
    results = result_list(tokens, free, texts)
    tokens.accept(",")
    sizes = {t.text: free[t.text] for t in runtime}
    bounds, constraints = _domain(tokens, free, sizes, texts)
    _expect_bounds(tokens, declared, bounds)
    bounded, symbolic = _bounded_variables(tokens, declared, bounds)
    for name in symbolic.keys() & {t.text for t in runtime}:
        tokens.fail(f"the bounds of runtime variable `{name}` must be integers", declared[name])
    unbounded = IndexingMap.of(
        [free[t.text] for t in dims],
        results,
        ranges=[free[t.text] for t in ranges],
        runtime=[RuntimeVariable(free[t.text]) for t in runtime],
        constraints=constraints,
    )
    values = {free[name]: v.as_expr() for name, v in bounded.items()}
    parsed = with_replaced_variables(
        unbounded, values, {free[name]: bounded[name] for name in free}
    )
    given = {} if parsed.is_known_empty else _cheap_texts(texts, Substitution(values))
    if not symbolic:
        return spelled_map(parsed, given)
    implied = [c for name, b in symbolic.items() for c in b.constraints(bounded[name])]
    stated = sorted([*implied, *parsed.constraints], key=lambda c: c.expr.key)
    return spelled_map(replace(parsed, constraints=tuple(stated)), given)


def _cheap_texts(texts: Iterable[tuple[Expr, str]], swap: Substitution) -> dict[Expr, str]:
    """Return the texts that may be cheaper than those of their normal forms."""
    return {swap(expr): text for expr, text in texts if _may_be_cheaper(text)}


def _may_be_cheaper(text: str) -> bool:
    """Return True for several divisions without products such as ``3d0``, whose cost is unknown."""
    return text_cost(text).divisions >= MIN_DIVISIONS and not _JUXTAPOSED.search(text)


def by_name(tokens: Tokens, names: Iterable[Token]) -> dict[str, Token]:
    """The tokens by their text; fails if a name is declared twice."""
    declared: dict[str, Token] = {}
    for token in names:
        if token.text in declared:
            tokens.fail(f"`{token.text}` is declared twice", token)
        declared[token.text] = token
    return declared


def _expect_bounds(tokens: Tokens, declared: dict[str, Token], bounds: Container[str]) -> None:
    if missing := [name for name in declared if name not in bounds]:
        domain = ", ".join(f"{name} in [0, 9]" for name in missing)
        tokens.fail(
            f"{names_text(missing)} no bounds",
            declared[missing[0]],
            f"add bounds for every variable, for example `domain: {domain}`",
        )


def names_text(names: Sequence[str]) -> str:
    """Return the subject and the verb of a sentence about what variables have.

    >>> names_text(["d0"]), names_text(["d0", "d1", "s0"])
    ('`d0` has', '`d0`, `d1` and `s0` have')
    """
    quoted = [f"`{name}`" for name in names]
    if len(quoted) == 1:
        return f"{quoted[0]} has"
    return f"{', '.join(quoted[:-1])} and {quoted[-1]} have"


def _domain(
    tokens: Tokens,
    free: dict[str, Variable],
    sizes: dict[str, Variable],
    texts: list[tuple[Expr, str]],
) -> tuple[dict[str, tuple[Expr, Expr]], list[Constraint]]:
    """Parse the optional ``domain:``: the bounds of variables, and the constraints."""
    bounds: dict[str, tuple[Expr, Expr]] = {}
    constraints: list[Constraint] = []
    if tokens.accept("domain"):
        tokens.expect(":", "after `domain`")
        while tokens.next.kind != "end":
            _domain_entry(tokens, free, sizes, bounds, constraints, texts)
            tokens.accept(",")  # optional: `pretty_text` prints a newline instead
    return bounds, constraints


def _bounded_variables(
    tokens: Tokens, declared: dict[str, Token], bounds: dict[str, tuple[Expr, Expr]]
) -> tuple[dict[str, Variable], dict[str, Bounds]]:
    """The variables by name, and the symbolic bounds by name."""
    plain = {name for name, ends in bounds.items() if all(end.is_constant for end in ends)}
    bounded = {name: Variable(name, *[end.constant for end in bounds[name]]) for name in plain}
    swap = Substitution({Variable(name, -_FAR, _FAR): v.as_expr() for name, v in bounded.items()})
    symbolic: dict[str, Bounds] = {}
    for name, ends in bounds.items():
        if name not in plain:
            try:
                lower, upper = [None if end.is_constant else swap(end) for end in ends]
            except ZeroDivisorError as error:
                tokens.fail(f"in the bounds of `{name}`, {error}", declared[name])
            symbolic[name] = Bounds(lower, upper, ())
            interval = symbolic[name].interval(ends[0].constant, ends[1].constant)
            bounded[name] = Variable(name, *interval)
    return bounded, symbolic


_FAR = 1 << 256
_JUXTAPOSED = re.compile(r"\d[A-Za-z_]")


def variable_names(
    tokens: Tokens, opening: str, closing: str, required: bool = False
) -> list[Token]:
    """Parse comma-separated names in brackets; optional unless `required`."""
    if required:
        tokens.expect(opening, "before the dimensions")
    elif not tokens.accept(opening):
        return []
    names: list[Token] = []
    while not tokens.accept(closing):
        if names:
            tokens.expect(",", f"or `{closing}` after a variable")
        if tokens.next.kind != "name":
            tokens.fail(f"expected a variable name, found {tokens.next_text()}")
        names.append(tokens.take())
    return names


def result_list(
    tokens: Tokens, free: dict[str, Variable], texts: list[tuple[Expr, str]] | None = None
) -> list[Expr]:
    """Parse the results after the arrow, over the variables `free`; add their texts to `texts`."""
    tokens.expect("(", "before the results")
    results: list[Expr] = []
    while not tokens.accept(")"):
        if results:
            tokens.expect(",", "or `)` after a result")
        results.append(_spelled_expr(tokens, free, texts))
    return results


def _spelled_expr(
    tokens: Tokens, free: dict[str, Variable], texts: list[tuple[Expr, str]] | None
) -> Expr:
    """Parse an expression, and add its text to `texts`."""
    start = tokens.next.start
    expr = parse_expr(tokens, free)
    if texts is not None:
        spelled = spell_operators(tokens.text[start : tokens.next.start])
        texts.append((expr, " ".join(spelled.split())))
    return expr


def _domain_entry(
    tokens: Tokens,
    free: dict[str, Variable],
    sizes: dict[str, Variable],
    bounds: dict[str, tuple[Expr, Expr]],
    constraints: list[Constraint],
    texts: list[tuple[Expr, str]],
) -> None:
    """Parse ``expression in [lower, upper]``: the bounds of a variable, or a constraint.

    The first entry of a variable is its bounds, which may be expressions of symbolic sizes.
    """
    start = tokens.next
    expr = _spelled_expr(tokens, free, texts)
    tokens.expect("in", "after an expression of the domain")
    hint = "bounds are inclusive: write `[`, and add 1 to the lower bound"
    _expect_closed(tokens, "[", "after `in`", "(", hint)
    variable = expr.as_variable
    if variable is not None and variable.name == start.text and variable.name not in bounds:
        lowest = _read_bound(tokens, sizes, "as the lower bound")
        tokens.expect(",", "between the bounds")
        bounds[variable.name] = lowest, _read_bound(tokens, sizes, "as the upper bound")
    else:
        lower = tokens.integer("as the lower bound")
        tokens.expect(",", "between the bounds")
        constraints.append(Constraint(expr, lower, tokens.integer("as the upper bound")))
    hint = "bounds are inclusive: write `]`, and subtract 1 from the upper bound"
    _expect_closed(tokens, "]", "after the bounds", ")", hint)


def _expect_closed(tokens: Tokens, bracket: str, where: str, half_open: str, hint: str) -> None:
    """Parse the bracket of inclusive bounds; the error of a half-open interval explains them."""
    if tokens.next.text == half_open:
        tokens.fail(f"expected `{bracket}` {where}, found `{half_open}`", hint=hint)
    tokens.expect(bracket, where)


def _read_bound(tokens: Tokens, names: dict[str, Variable], where: str) -> Expr:
    """Parse an integer, or an expression of symbolic sizes."""
    if tokens.next.kind in ("number", "name") or tokens.next.text in ("-", "("):
        return parse_expr(tokens, names)
    return as_expr(tokens.integer(where))  # fails with a message

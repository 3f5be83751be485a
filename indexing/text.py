"""Maps as text, in XLA's notation: one line for `str`, one variable a line for `pretty`, and back.

``(d0, d1)[s0]{rt0} -> (d0 + rt0, s0), domain: d0 in [0, 9], d1 in [0, 1], s0 in [0, 3], rt0 in [0,
4]``

Every variable has its bounds after ``domain:``; further ranges there are constraints.

Source: XLA ``docs/indexing.md``.
"""

from __future__ import annotations

from collections.abc import Iterator

from hlo.source import HloError, Source, Span
from indexing.map import IndexingMap, RuntimeVariable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, Variable
from simplifier.substitute import Substitution
from simplifier.text import TextError, Token, Tokens, parse_expr

KNOWN_EMPTY = "KNOWN EMPTY"


def map_text(shown: IndexingMap) -> str:
    """The map on one line."""
    if shown.is_known_empty:
        return KNOWN_EMPTY
    domain = ", ".join(_domain_lines(shown))
    return f"{_head(shown)}, domain: {domain}" if domain else _head(shown)


def pretty_text(shown: IndexingMap) -> str:
    """The map with one variable or constraint a line."""
    if shown.is_known_empty:
        return KNOWN_EMPTY
    lines = list(_domain_lines(shown))
    if not lines:
        return _head(shown)
    return "\n".join([f"{_head(shown)},", "  domain:", *[f"  {line}" for line in lines]])


def _head(shown: IndexingMap) -> str:
    text = f"({', '.join(v.name for v in shown.dims)})"
    if shown.ranges:
        text += f"[{', '.join(v.name for v in shown.ranges)}]"
    if shown.runtime:
        text += f"{{{', '.join(rt.name for rt in shown.runtime)}}}"
    return f"{text} -> ({', '.join(map(str, shown.results))})"


def _domain_lines(shown: IndexingMap) -> Iterator[str]:
    for v in shown.variables:
        yield f"{v.name} in [{v.lower}, {v.upper}]"
    yield from map(str, shown.constraints)


def parse_map(text: str, filename: str = "<map>") -> IndexingMap:
    """The map that `text` says, on one line or on several; runtime variables have no source then.

    Raises:
        HloError: with the place, for text that is no map.

    >>> print(parse_map("(d0)[s0] -> (d0, s0), domain: d0 in [0, 9], s0 in [0, 3]"))
    (d0)[s0] -> (d0, s0), domain: d0 in [0, 9], s0 in [0, 3]
    """
    try:
        tokens = Tokens(text)
        parsed = _map(tokens)
        if tokens.next.kind != "end":
            tokens.fail(f"expected the end of the map, found {tokens.found()}")
    except TextError as error:
        span = Span(Source(text, filename), error.start, error.end)
        raise HloError(error.message, span, code="map-syntax", help=error.hint) from None
    return parsed


def _map(tokens: Tokens) -> IndexingMap:
    if tokens.took("KNOWN"):
        tokens.expect("EMPTY", "after 'KNOWN'")
        return IndexingMap.empty()
    dims = _names(tokens, "(", ")", required=True)
    ranges = _names(tokens, "[", "]")
    runtime = _names(tokens, "{", "}")
    declared: dict[str, Token] = {}
    for token in (*dims, *ranges, *runtime):
        if token.text in declared:
            tokens.fail(f"'{token.text}' is declared twice", token)
        declared[token.text] = token
    # Results stand before the bounds of their variables: read them over variables without bounds,
    # then put the bounded ones in, which applies the laws.
    free = {name: Variable(name, -_FAR, _FAR) for name in declared}
    tokens.expect("->", "after the variables")
    results = _results(tokens, free)
    tokens.took(",")
    bounds: dict[str, tuple[int, int]] = {}
    constraints: list[Constraint] = []
    if tokens.took("domain"):
        tokens.expect(":", "after 'domain'")
        while tokens.next.kind != "end":
            _domain_entry(tokens, free, bounds, constraints)
            tokens.took(",")  # `pretty_text` ends the line instead
    for name, token in declared.items():
        if name not in bounds:
            tokens.fail(
                f"'{name}' has no bounds",
                token,
                f"write the domain of every variable, for example 'domain: {name} in [0, 9]'",
            )
    bounded = {name: Variable(name, *bounds[name]) for name in declared}
    swap = Substitution({free[name]: v.as_expr() for name, v in bounded.items()})
    return IndexingMap.of(
        [bounded[t.text] for t in dims],
        [swap(result) for result in results],
        ranges=[bounded[t.text] for t in ranges],
        runtime=[RuntimeVariable(bounded[t.text]) for t in runtime],
        constraints=[Constraint(swap(c.expr), c.lower, c.upper) for c in constraints],
    )


_FAR = 1 << 256


def _names(tokens: Tokens, opening: str, closing: str, required: bool = False) -> list[Token]:
    if required:
        tokens.expect(opening, "in front of the dimensions")
    elif not tokens.took(opening):
        return []
    names: list[Token] = []
    while not tokens.took(closing):
        if names:
            tokens.expect(",", f"or '{closing}' after a variable")
        if tokens.next.kind != "name":
            tokens.fail(f"expected a variable's name, found {tokens.found()}")
        names.append(tokens.take())
    return names


def _results(tokens: Tokens, free: dict[str, Variable]) -> list[Expr]:
    tokens.expect("(", "in front of the results")
    results: list[Expr] = []
    while not tokens.took(")"):
        if results:
            tokens.expect(",", "or ')' after a result")
        results.append(parse_expr(tokens, free))
    return results


def _domain_entry(
    tokens: Tokens,
    free: dict[str, Variable],
    bounds: dict[str, tuple[int, int]],
    constraints: list[Constraint],
) -> None:
    """``d0 in [0, 9]`` the first time bounds a variable; anything else is a constraint."""
    start = tokens.next
    expr = parse_expr(tokens, free)
    tokens.expect("in", "after an expression of the domain")
    tokens.expect("[", "after 'in'")
    lower = tokens.integer("as the lower bound")
    tokens.expect(",", "between the bounds")
    upper = tokens.integer("as the upper bound")
    tokens.expect("]", "after the bounds")
    variable = expr.as_variable
    if variable is not None and variable.name == start.text and variable.name not in bounds:
        bounds[variable.name] = lower, upper
    else:
        constraints.append(Constraint(expr, lower, upper))

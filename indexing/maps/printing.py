"""Text of maps in XLA's notation: on one line for `str`, one variable per line for `pretty`."""

from __future__ import annotations

from collections.abc import Iterator

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.symbolic import Bounds, both_sides, one_sided
from simplifier.atoms import Variable, variables_in
from simplifier.linear import Expr
from simplifier.shared import is_deep
from simplifier.text import exact_text
from simplifier.unique import MAX_DEPTH

KNOWN_EMPTY = "KNOWN EMPTY"


def map_text(indexing_map: IndexingMap) -> str:
    """Return the text of the map on one line."""
    if indexing_map.is_known_empty:
        return KNOWN_EMPTY
    domain = ", ".join(domain_texts(indexing_map))
    return f"{_head(indexing_map)}, domain: {domain}" if domain else _head(indexing_map)


def pretty_text(indexing_map: IndexingMap) -> str:
    """Return the text of the map with one variable or constraint per line."""
    if indexing_map.is_known_empty:
        return KNOWN_EMPTY
    lines = list(domain_texts(indexing_map))
    if not lines:
        return _head(indexing_map)
    return "\n".join([f"{_head(indexing_map)},", "  domain:", *[f"  {line}" for line in lines]])


def require_exact_text(indexing_map: IndexingMap) -> None:
    """Check that the expressions of a map have texts in which no operand is elided.

    Raises:
        ValueError: an operand is too long.
    """
    for expr in (*indexing_map.results, *[c.expr for c in indexing_map.constraints]):
        exact_text(expr)


def require_shallow(indexing_map: IndexingMap) -> None:
    """Check that the expressions of a map are not too deep for recursive conversions.

    Raises:
        ValueError: an expression is nested deeper than `unique.MAX_DEPTH`.
    """
    for expr in (*indexing_map.results, *[c.expr for c in indexing_map.constraints]):
        if is_deep(expr):
            raise ValueError(f"an expression is nested more than {MAX_DEPTH} deep")


def _head(m: IndexingMap) -> str:
    return f"{variables_text(m)} -> ({', '.join(result_texts(m))})"


def text_in(m: IndexingMap, expr: Expr) -> str:
    """Return the text of a result, or of the expression of a constraint, of a map."""
    return m.given_texts.get(expr) or str(expr)


def result_texts(m: IndexingMap) -> list[str]:
    """Return the texts of the results of a map."""
    return [text_in(m, expr) for expr in m.results]


def variables_text(m: IndexingMap) -> str:
    """Return the variables of a map, such as ``(d0, d1)[s0]{rt0}``."""
    text = f"({', '.join(v.name for v in m.dims)})"
    if m.ranges:
        text += f"[{', '.join(v.name for v in m.ranges)}]"
    if m.runtime:
        text += f"{{{', '.join(rt.name for rt in m.runtime)}}}"
    return text


def domain_texts(m: IndexingMap) -> Iterator[str]:
    """Yield the bounds of each variable of a map, and then its other constraints."""
    symbolic = symbolic_bounds(m)
    for v in m.variables:
        lower, upper, _ = symbolic.get(v) or (None, None, ())
        yield f"{v.name} in [{v.lower if lower is None else lower}, {upper or v.upper}]"
    implied = {number for bounds in symbolic.values() for number in bounds.constraint_ids}
    for number, c in enumerate(m.constraints):
        if number not in implied:
            yield f"{text_in(m, c.expr)} in [{c.lower}, {c.upper}]"


def symbolic_bounds(indexing_map: IndexingMap) -> dict[Variable, Bounds]:
    """Symbolic bounds of the dimensions and range variables of `indexing_map`.

    Only bounds that parse back to the same constraints are returned.
    """
    symbols = {rt.variable for rt in indexing_map.runtime if rt.is_size}
    symbolic: dict[Variable, Bounds] = {}
    for number, constraint in enumerate(indexing_map.constraints if symbols else ()):
        inside = variables_in([constraint.expr])
        own = inside - symbols
        if len(own) == 1 and len(inside) > 1:
            (variable,) = own
            bounds = one_sided(variable, constraint, number)
            if bounds is not None and variable in (*indexing_map.dims, *indexing_map.ranges):
                symbolic[variable] = both_sides(symbolic.get(variable), bounds)
    return {v: bounds for v, bounds in symbolic.items() if _round_trips(indexing_map, v, bounds)}


def _round_trips(m: IndexingMap, variable: Variable, bounds: Bounds) -> bool:
    """True if parsing the bounds restores the variable and its constraints."""
    if bounds.interval(*variable.bounds) != variable.bounds:
        return False
    return bounds.constraints(variable) == [m.constraints[k] for k in bounds.constraint_ids]

"""Maps as text, in XLA's notation: one line for `str`, one variable a line for `pretty`."""

from __future__ import annotations

from collections.abc import Iterator

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.symbolic import Bounds, both_sides, one_sided
from simplifier.atoms import Variable, mentioned

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
    symbolic = symbolic_bounds(shown)
    for v in shown.variables:
        lower, upper, _ = symbolic.get(v) or (None, None, ())
        yield f"{v.name} in [{v.lower if lower is None else lower}, {upper or v.upper}]"
    told = {number for bounds in symbolic.values() for number in bounds.said_by}
    yield from [str(c) for number, c in enumerate(shown.constraints) if number not in told]


def symbolic_bounds(shown: IndexingMap) -> dict[Variable, Bounds]:
    """Dimensions and ranges of `shown` that are bounded by expressions of its symbols.

    Only what reads back as the same constraints is given.
    """
    symbols = {rt.variable for rt in shown.runtime if rt.is_size}
    found: dict[Variable, Bounds] = {}
    for number, constraint in enumerate(shown.constraints if symbols else ()):
        inside = mentioned([constraint.expr])
        own = inside - symbols
        if len(own) == 1 and len(inside) > 1:
            (variable,) = own
            bounds = one_sided(variable, constraint, number)
            if bounds is not None and variable in (*shown.dims, *shown.ranges):
                found[variable] = both_sides(found.get(variable), bounds)
    return {v: bounds for v, bounds in found.items() if _is_told(shown, v, bounds)}


def _is_told(shown: IndexingMap, variable: Variable, bounds: Bounds) -> bool:
    """Reading the bounds gives the variable and the constraints for which they stand."""
    if bounds.interval(*variable.bounds) != variable.bounds:
        return False
    return bounds.constraints(variable) == [shown.constraints[k] for k in bounds.said_by]

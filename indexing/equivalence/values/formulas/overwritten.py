"""Carried leaves of a loop of which every element is written: their initial values don't matter.

A scan writes row ``i`` of its result in iteration ``i``.  Before the loop, the array has zeros, or
memory that no instruction has written.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from hlo.shapes.element_type import range_of
from indexing.equivalence.values.laws.exact import is_call
from indexing.equivalence.values.laws.integers import value_of
from indexing.equivalence.values.laws.symbols import symbols_in
from indexing.equivalence.values.terms.functions import bits_of
from indexing.equivalence.values.terms.terms import Formula, FormulaTable
from indexing.maps.arrays import Path
from simplifier.atoms import Variable
from simplifier.interval import Interval, contains
from simplifier.linear import Expr


class IterationCounter(NamedTuple):
    """A carried leaf that increases by 1 in each iteration.

    Attributes:
        symbol: its value.
        values: the first and the last one.
    """

    symbol: Formula
    values: Interval


def overwritten_leaves(
    table: FormulaTable,
    symbols: Mapping[Path, Formula],
    inits: Mapping[Path, Formula],
    after: Mapping[Path, Formula],
    truth: Formula,
) -> set[Path]:
    """Return the leaves whose elements are all written, and not read before.

    Args:
        symbols: the carried leaves on which the result depends.
        inits, after: their values before the loop and after an iteration.
        truth: the condition.
    """
    counter = iteration_counter(symbols, inits, after, truth)
    if counter is None:
        return set()
    return {
        path
        for path, symbol in symbols.items()
        if (written := _written_value(table, counter, symbol, after[path])) is not None
        and symbol.array
        not in set(symbols_in([truth, written, *[after[p] for p in symbols if p != path]]))
    }


def iteration_counter(
    symbols: Mapping[Path, Formula],
    inits: Mapping[Path, Formula],
    after: Mapping[Path, Formula],
    truth: Formula,
) -> IterationCounter | None:
    """Return the leaf with the number of the iteration, if the condition is a limit on it.

    There is at least one iteration.  Arguments as of `overwritten_leaves`.
    """
    if not is_call(truth, "compare") or dict(truth.head[1])["direction"] != "LT":
        return None
    symbol, limit = truth.arguments[0], value_of(truth.arguments[1])
    path = next((path for path, each in symbols.items() if each is symbol), None)
    if path is None or limit is None:
        return None
    start = value_of(inits[path])
    if start is None or start >= limit or _sum_parts(after[path]) != (symbol, 1, 1):
        return None
    return IterationCounter(symbol, (start, limit - 1))


def _sum_parts(term: Formula) -> tuple[Formula, int, int]:
    """Return the term, factor and constant of ``factor * term + constant``."""
    if not is_call(term, "sum") or len(term.arguments) != 1:
        return term, 1, 0
    _, ((_, (factor,)), (_, constant)) = term.head
    modulus = 1 << bits_of(term.type)
    factor, constant = [n - modulus if 2 * n >= modulus else n for n in (factor, constant)]
    return term.arguments[0], factor, constant


def _written_value(
    table: FormulaTable, counter: IterationCounter, symbol: Formula, after: Formula
) -> Formula | None:
    """Return the value of the elements that iterations write, if these are all elements."""
    if after.kind != "choose":
        return None
    (expr,) = after.index
    changed = [k for k, term in enumerate(after.arguments) if term is not symbol]
    lower, upper = expr.bounds
    bounds = list(pairwise([lower - 1, *after.head[:-1], upper]))
    if len(changed) != 1 or not _covers(table, counter, symbol, expr, bounds[changed[0]]):
        return None
    return after.arguments[changed[0]]


def _covers(
    table: FormulaTable, counter: IterationCounter, symbol: Formula, expr: Expr, piece: Interval
) -> bool:
    """Return True if an expression is in a piece once for each element, the lower end excluded."""
    places = dict(zip(symbol.index, _dims(symbol), strict=True))
    along = [e for e in places if set(e.parts) & set(expr.parts)]
    rest = [v for v in expr.parts if v in table.runtime]
    if len(along) != 1 or len(rest) != 1 or len(expr.parts) != 2:
        return False
    (dimension,), (v,) = along[0].parts, rest
    assert isinstance(v, Variable)
    sign, step = expr.parts[dimension], expr.parts[v]
    ends_of_index = _index_ends(table, counter, v)
    if not ends_of_index or abs(sign) != 1 or abs(step) > piece[1] - piece[0]:
        return False
    ends = [sign * (end - step * n) for end in (piece[0] + 1, piece[1]) for n in ends_of_index]
    return contains((min(ends), max(ends)), (0, places[along[0]] - 1))


def _index_ends(table: FormulaTable, counter: IterationCounter, v: Variable) -> list[int]:
    """Return the first and the last value of a runtime variable that counts iterations, if so."""
    place = table.runtime[v]
    term, factor, constant = _sum_parts(place)
    ends = [factor * n + constant for n in counter.values]
    limits = range_of(place.type)
    if term is not counter.symbol or abs(factor) != 1:
        return []
    if limits is None or not contains(limits, (min(ends), max(ends))):
        return []  # the index wraps around
    return [min(max(end, v.lower), v.upper) for end in ends]


def _dims(symbol: Formula) -> tuple[int, ...]:
    assert symbol.array is not None
    return symbol.array.dims

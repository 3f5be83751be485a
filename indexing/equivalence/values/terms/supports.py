"""Supports of terms: the symbols and functions on which a value depends.

Equal values nearly always have equal supports, so supports tell which of many terms to compare
first.  They are sets of hashes, as the bits of an integer, and do not depend on the order of
operands, on indices, on constants, or on whether a formula is read from an array of its values.

>>> table = FormulaTable()
>>> p, q = (table.array("symbol", ("p", k, ()), "f32", (4, 3)) for k in (0, 1))
>>> i, j = Variable("d0", 0, 3), Variable("d1", 0, 2)
>>> x, y = (table.read(array, (i.as_expr(), j.as_expr())) for array in (p, q))
>>> one, other = (table.make("apply", ("add", ()), "f32", pair) for pair in ((x, y), (y, x)))
>>> supports = Supports(table)
>>> one is other, supports.of(one) == supports.of(other), supports.of(one) == supports.of(x)
(False, True, False)
>>> supports.variables(one)[i] == supports.variables(one)[j]
False
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from indexing.equivalence.values.terms.terms import Formula, FormulaTable, stable_hash
from indexing.ops.combiners import COMBINERS
from simplifier.atoms import Variable, variables_in
from simplifier.linear import Expr

BITS: Final = 4093
"""The number of bits of a set; a prime, so that all parts of a hash matter."""

_DISTRIBUTED: Final = frozenset(
    [*COMBINERS, "subtract", "negate", "divide", "sum", "product", "convert", "select"]
)
"""Functions that laws move through others: only their operands count."""

Reached = Mapping[Variable, int]


class Supports:
    """Supports of the terms of a table, each computed once."""

    def __init__(self, table: FormulaTable) -> None:
        self.table = table
        self._known: dict[int, int] = {}
        self._variables: dict[int, Reached] = {}

    def of(self, term: Formula) -> int:
        """Return the symbols and functions that a term depends on, as a set of bits."""
        known = self._known
        if term.number in known:
            return known[term.number]
        for each, parts in _missing_terms(term, known):
            known[each.number] = _support(each, [known[t.number] for t in parts])
        return known[term.number]

    def variables(self, term: Formula) -> Reached:
        """Return the dimensions of symbols that each free variable of a term indexes, as bits."""
        known = self._variables
        if term.number in known:
            return known[term.number]
        for each, _ in _missing_terms(term, known, self.table):
            known[each.number] = self._find_reached(each)
        return known[term.number]

    def _find_reached(self, term: Formula) -> Reached:
        """Return what the variables of a term reach; those of its parts are known."""
        reached: dict[Variable, int] = {}

        def add(expr: Expr, support: int) -> None:
            for v in variables_in([expr]):
                inner = self.table.runtime.get(v)
                if inner is None:
                    reached[v] = reached.get(v, 0) | support
                else:
                    join(self._variables[inner.number])

        def join(others: Reached) -> None:
            for v, support in others.items():
                reached[v] = reached.get(v, 0) | support

        for argument in term.arguments:
            join(self._variables[argument.number])
        if term.array is None:
            for expr in term.index:
                add(expr, 0)
        else:
            for k, expr in enumerate(term.index):
                add(expr, self.dimension(term.array, k))
        return reached

    def dimension(self, array: Formula, number: int) -> int:
        """Return the dimensions of symbols that a dimension of an array indexes, as bits."""
        if array.kind in ("fold", "let"):
            own = Variable(f"d{number}", 0, array.dims[number] - 1)
            return self.variables(array).get(own, 0)
        key = array.key if array.kind == "symbol" else stable_hash(str(array.head[0]))
        return _bit(key, number)


def _missing_terms(
    term: Formula, known: Mapping[int, object], table: FormulaTable | None = None
) -> Iterator[tuple[Formula, tuple[Formula, ...]]]:
    """Yield the terms inside a term that are not known, and the term, parts first, with the parts.

    Args:
        known: the numbers of known terms; the caller adds each term before the next one.
        table: as of `_parts`.
    """
    pending = [term]
    while pending:
        top = pending[-1]
        parts = _parts(top, table)
        waiting = [] if top.number in known else [t for t in parts if t.number not in known]
        if waiting:
            pending += waiting
            continue
        pending.pop()
        if top.number not in known:
            yield top, parts


def _parts(term: Formula, table: FormulaTable | None = None) -> tuple[Formula, ...]:
    """Return the operands of a term, and its array; with a table, its runtime indices as well."""
    operands = term.arguments if table is None else term.children
    return operands if term.array is None else (*operands, term.array)


def _support(term: Formula, parts: list[int]) -> int:
    """Return the support of a term, given those of its operands and its array."""
    if term.kind == "symbol":
        return _bit(term.key)
    opcode = str(term.head[0]) if term.kind in ("apply", "opaque") else ""
    if opcode and opcode not in _DISTRIBUTED:
        return _bit(stable_hash(opcode), *sorted(parts))
    support = 0
    for each in parts:
        support |= each
    return support


def _bit(*parts: int) -> int:
    return 1 << stable_hash(*parts) % BITS

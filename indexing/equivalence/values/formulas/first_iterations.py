"""Carried leaves of a loop that the first iteration replaces, as if they had this value before.

XLA:TPU passes memory that no instruction has written into a loop, and writes the initial value
inside: ``select(i = first, x, carried)`` is read everywhere.  The loop has the results of the one
with the initial value x that reads ``carried``, if it has at least one iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from indexing.equivalence.values.formulas.overwritten import iteration_counter
from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.laws.exact import is_call
from indexing.equivalence.values.laws.symbols import Renaming, parts_of, symbols_in
from indexing.equivalence.values.terms.terms import Formula
from indexing.maps.arrays import Path
from simplifier.atoms import variables_in


class FirstValues:
    """The leaves whose initial values the first iteration replaces.

    Attributes:
        inits: the values that replace them, at the own index of each leaf.
    """

    def __init__(
        self,
        algebra: FormulaAlgebra,
        symbols: Mapping[Path, Formula],
        inits: Mapping[Path, Formula],
        after: Mapping[Path, Formula],
        truth: Formula,
    ) -> None:
        """Find the leaves; arguments as of `overwritten_leaves`."""
        self.algebra = algebra
        self._arrays: set[Formula] = set()
        self._is_first: Formula | None = None
        self.inits: dict[Path, Formula] = {}
        counter = iteration_counter(symbols, inits, after, truth)
        if counter is None:
            return
        first = algebra.table.constant(counter.values[0], counter.symbol.type)
        attributes = ("direction", "EQ"), ("type", "")
        self._is_first = algebra.apply("compare", attributes, "pred", [counter.symbol, first])
        terms = [*after.values(), truth]
        own = {symbol.array for symbol in symbols.values()}
        selections = list(_selections(terms, self._is_first))
        for path, symbol in symbols.items():
            value = self._first_value(symbol, [t for t in selections if _read(t) is symbol.array])
            if value is None or own & set(symbols_in([value])):
                continue
            assert symbol.array is not None
            if _is_read_otherwise(terms, symbol.array, self._is_first):
                continue
            self.inits[path] = value
            self._arrays.add(symbol.array)

    def _first_value(self, symbol: Formula, selections: Iterable[Formula]) -> Formula | None:
        """Return the value in place of a leaf, if all selections agree on it; else None."""
        pairs = [term.arguments[1:] for term in selections]
        values = {x for x, read in pairs if read is symbol or x.kind == "constant"}
        if len(values) != 1:
            return None
        (value,) = values
        for x, read in pairs:
            at = self.algebra.rewriting(
                {
                    variable: index
                    for own, index in zip(symbol.index, read.index, strict=True)
                    for variable in variables_in([own])
                }
            )
            if at(value) is not x:
                return None
        return value if value.free <= symbol.free else None

    def without_selections(self, term: Formula) -> Formula:
        """Return a term that reads the leaves without the selections."""
        assert self._is_first is not None
        return _WithoutSelections(self.algebra, self._is_first, self._arrays)(term)


def _read(selection: Formula) -> Formula | None:
    """Return the array that a selection reads in later iterations."""
    return selection.arguments[2].array


def _selections(terms: Iterable[Formula], is_first: Formula) -> Iterable[Formula]:
    """Yield the subterms ``select(is_first, x, read)``."""
    for term in _subterms(terms):
        if is_call(term, "select") and term.arguments[0] is is_first:
            if _read(term) is not None:
                yield term


def _is_read_otherwise(terms: Iterable[Formula], array: Formula, is_first: Formula) -> bool:
    """Return True if an array is read without a selection."""

    def parts(term: Formula) -> tuple[Formula, ...]:
        is_selected = (
            is_call(term, "select") and term.arguments[0] is is_first and _read(term) is array
        )
        return (*term.arguments[:2], *term.arguments[2].children) if is_selected else parts_of(term)

    visited: set[int] = set()
    pending = list(terms)
    while pending:
        term = pending.pop()
        if term.number in visited:
            continue
        visited.add(term.number)
        if term.array is array:
            return True
        pending += parts(term)
    return False


def _subterms(terms: Iterable[Formula]) -> Iterable[Formula]:
    visited: set[int] = set()
    pending = list(terms)
    while pending:
        term = pending.pop()
        if term.number not in visited:
            visited.add(term.number)
            yield term
            pending += parts_of(term)


class _WithoutSelections(Renaming):
    """Rebuilds terms in which arrays are read without ``select(is_first, x, read)``."""

    def __init__(self, algebra: FormulaAlgebra, is_first: Formula, arrays: set[Formula]) -> None:
        super().__init__(algebra, {})
        self._is_first, self._arrays = is_first, arrays

    def _rebuild(self, term: Formula) -> Formula:
        if is_call(term, "select") and term.arguments[0] is self._is_first:
            if _read(term) in self._arrays:
                return self._renamed[term.arguments[2].number]
        return super()._rebuild(term)

"""Carried leaves of a loop that the first iteration replaces, as if they had this value before.

XLA:TPU passes memory that no instruction has written into a loop, and writes the initial value
inside: ``select(i = first, x, carried)`` is read everywhere.  Where the first iteration computes
what other iterations compute of x, the loop is the one with the initial value x that has no
selections, if it has at least one iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

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
        self.inits: dict[Path, Formula] = {}
        counter = iteration_counter(symbols, inits, after, truth)
        if counter is None:
            return
        start = algebra.table.constant(counter.values[0], counter.symbol.type)
        attributes = ("direction", "EQ"), ("type", "")
        is_first = algebra.apply("compare", attributes, "pred", [counter.symbol, start])
        terms = [*after.values(), truth]
        own = {symbol.array for symbol in symbols.values()}
        values: dict[Path, Formula] = {}
        for selection in _selections(terms, is_first):
            _, x, later = selection.arguments
            reached = {later} if x.kind != "constant" else set(symbols_in([later]))
            for path, symbol in symbols.items():
                is_value = symbol in reached or symbol.array in reached
                if is_value and _may_replace(x, symbol) and not own & set(symbols_in([x])):
                    values.setdefault(path, x)
        first, self._later = (
            Renaming(algebra, {is_first: algebra.table.constant(truth, "pred")})
            for truth in (True, False)
        )
        replaced = {symbols[path]: value for path, value in values.items()}
        of_value = _Replacement(algebra, replaced)
        if all(of_value(self._later(term)) is first(term) for term in terms):
            self.inits = values

    def without_selections(self, term: Formula) -> Formula:
        """Return a term as iterations after the first one compute it."""
        return self._later(term)


def _may_replace(value: Formula, symbol: Formula) -> bool:
    """Return True for a value of the type of a leaf, over the dimensions of the leaf."""
    return value.type == symbol.type and value.free <= symbol.free


def _selections(terms: Iterable[Formula], is_first: Formula) -> Iterator[Formula]:
    """Yield the subterms ``select(is_first, x, y)``."""
    visited: set[int] = set()
    pending = list(terms)
    while pending:
        term = pending.pop()
        if term.number not in visited:
            visited.add(term.number)
            if is_call(term, "select") and term.arguments[0] is is_first:
                yield term
            pending += parts_of(term)


class _Replacement(Renaming):
    """Rebuilds terms in which formulas of elements replace the elements of symbols.

    Args:
        values: the formulas, by the elements at the own index.
    """

    def __init__(self, algebra: FormulaAlgebra, values: Mapping[Formula, Formula]) -> None:
        super().__init__(algebra, {})
        self._values = {symbol.array: (symbol.index, value) for symbol, value in values.items()}

    def _rebuild(self, term: Formula) -> Formula:
        if term.array not in self._values:
            return super()._rebuild(term)
        own, value = self._values[term.array]
        at = {
            variable: self._expr(index)
            for place, index in zip(own, term.index, strict=True)
            for variable in variables_in([place])
        }
        return self.algebra.rewriting(at)(value)

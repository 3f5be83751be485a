"""Symbols in formulas: their order of occurrence, and renaming them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.terms.terms import Formula
from simplifier.atoms import Variable, variables_in
from simplifier.linear import Expr
from simplifier.substitute import Substitution


def parts_of(term: Formula) -> tuple[Formula, ...]:
    """Return the subterms of a term, and the array that it reads."""
    return term.children if term.array is None else (*term.children, term.array)


def symbols_in(terms: Iterable[Formula]) -> Iterator[Formula]:
    """Yield the symbols in terms, closed arrays included, in the order of first occurrence."""
    visited: set[int] = set()
    pending = list(terms)[::-1]
    while pending:
        term = pending.pop()
        if term.number in visited:
            continue
        visited.add(term.number)
        if term.kind == "symbol":
            yield term
        pending += parts_of(term)[::-1]


class Renaming:
    """Terms with other symbols; closed arrays are rebuilt."""

    def __init__(self, algebra: FormulaAlgebra, names: Mapping[Formula, Formula]) -> None:
        self.algebra = algebra
        self._renamed: dict[int, Formula] = {old.number: new for old, new in names.items()}

    def __call__(self, term: Formula) -> Formula:
        renamed = self._renamed
        pending = [term]
        while pending:
            top = pending[-1]
            waiting = [t for t in parts_of(top) if t.number not in renamed]
            if top.number in renamed or not waiting:
                pending.pop()
                if top.number not in renamed:
                    renamed[top.number] = self._rebuild(top)
            else:
                pending += waiting
        return renamed[term.number]

    def renamed_term(self, number: int) -> Formula | None:
        """Return the term made for the term with a number, if it is made."""
        return self._renamed.get(number)

    def _rebuild(self, term: Formula) -> Formula:
        renamed = self._renamed
        if all(renamed[t.number] is t for t in parts_of(term)):
            return term
        arguments = tuple([renamed[t.number] for t in term.arguments])
        index = tuple([self._expr(e) for e in term.index])
        if term.array is not None:
            return self.algebra.read(renamed[term.array.number], index)
        return self.algebra.rebuild(term, arguments, index)

    def _expr(self, expr: Expr) -> Expr:
        table = self.algebra.table
        values: dict[Variable, Expr] = {}
        for v in variables_in([expr]):
            if v in table.runtime:
                values[v] = self.algebra.index_of(self._renamed[table.runtime[v].number], v.bounds)
        return Substitution(values)(expr) if values else expr

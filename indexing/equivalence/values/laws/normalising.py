"""Normal forms of terms under laws that are not exact, with the laws that each term used.

`Normalising` rebuilds a term from its leaves, closed folds included, by the constructors of an
algebra with more laws.  The laws that a proof needs are those of the subterms that only one side
has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from indexing.equivalence.values.folds.folds import fold_formula, open_fold
from indexing.equivalence.values.folds.narrowed_reads import ReadingAlgebra
from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.laws.reals import DEFINITIONS, REAL_LAWS
from indexing.equivalence.values.laws.roundings import EXCESS_LAW
from indexing.equivalence.values.laws.symbols import Renaming, parts_of
from indexing.equivalence.values.laws.table import TABLE, by_opcode
from indexing.equivalence.values.terms.terms import Formula
from simplifier.atoms import Variable


class RealAlgebra(ReadingAlgebra):
    """Constructors of terms with laws that are not exact.

    Args:
        exact_arithmetic: leave out the laws that hold for real numbers only.
        keeps_roundings: leave out the law that drops roundings to a narrower type.
    """

    def __init__(
        self, exact: FormulaAlgebra, *, exact_arithmetic: bool, keeps_roundings: bool = False
    ) -> None:
        real = [law for law in REAL_LAWS if not (keeps_roundings and law is EXCESS_LAW)]
        others = [*DEFINITIONS, *([] if exact_arithmetic else real)]
        exact_laws = [law for law in TABLE if law.grade == "exact"]
        super().__init__(exact.table, exact.functions, by_opcode((*others, *exact_laws)))
        self.reassociates = not exact_arithmetic
        self.written = exact.written


class Normalising(Renaming):
    """Rebuilds terms by an algebra with more laws.

    Attributes:
        laws: the laws that the normal form of each term used, subterms left out.
    """

    def __init__(self, algebra: FormulaAlgebra) -> None:
        super().__init__(algebra, {})
        self.laws: dict[int, tuple[str, ...]] = {}

    def _rebuild(self, term: Formula) -> Formula:
        self.algebra.uses.clear()
        result = self._normal(term)
        if self.algebra.uses:
            self.laws[term.number] = tuple(self.algebra.uses)
        return result

    def _normal(self, term: Formula) -> Formula:
        renamed = self._renamed
        if term.array is not None and term.array.kind == "fold":
            array = renamed[term.array.number]
            index = [self._expr(e) for e in term.index]
            dims = [Variable(f"d{k}", 0, n - 1) for k, n in enumerate(term.array.dims)]
            return self.algebra.rewriting(dict(zip(dims, index, strict=True)))(array)
        if term.kind == "fold":  # the formula of an element over d0, d1, …
            arguments = [renamed[t.number] for t in term.arguments]
            return fold_formula(
                self.algebra, open_fold(term, arguments, [self._expr(e) for e in term.index])
            )
        if term.kind == "apply":
            opcode, attributes = term.head
            arguments = [renamed[t.number] for t in term.arguments]
            if opcode == "sum":
                return self.algebra.rebuild(term, tuple(arguments), ())
            return self.algebra.apply(opcode, attributes, term.type, arguments)
        return super()._rebuild(term)

    def uses(self, before: Formula, after: Formula) -> Counter[str]:
        """Return the uses of laws at subterms that only one of two terms has."""
        ours, theirs = _subterms([before]), _subterms([after])
        counts: Counter[str] = Counter()
        for number in self.laws.keys() & (ours ^ theirs):
            counts.update(self.laws[number])
        return counts


def _subterms(roots: Iterable[Formula]) -> set[int]:
    visited: set[int] = set()
    pending = list(roots)
    while pending:
        term = pending.pop()
        if term.number not in visited:
            visited.add(term.number)
            pending += parts_of(term)
    return visited

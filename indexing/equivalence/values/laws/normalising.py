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

    merges_dimensions = True

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
    """Rebuilds terms by an algebra with more laws."""

    def __init__(self, algebra: FormulaAlgebra) -> None:
        super().__init__(algebra, {})
        self._uses = LawUses()

    def _rebuild(self, term: Formula) -> Formula:
        self.algebra.uses.clear()
        result = self._normal(term)
        if self.algebra.uses:
            self._uses.add(term, self.algebra.uses)
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
        return self._uses.between(before, after)


class LawUses:
    """The laws that terms used, subterms left out.

    The terms with laws that are in a term are the bits of an integer; so are, for each law, the
    terms that used it once, twice, four times and so on: a binary digit of the number of uses.
    """

    def __init__(self) -> None:
        self._digits: dict[tuple[str, int], int] = {}
        self._inside: dict[int, int] = {}
        self._places: dict[int, int] = {}

    def add(self, term: Formula, names: Iterable[str]) -> None:
        """Record the laws that a term used, whose `between` has not been called for."""
        bit = self._places[term.number] = 1 << len(self._places)
        for name, count in Counter(names).items():
            for digit in range(count.bit_length()):
                if count >> digit & 1:
                    self._digits[name, digit] = self._digits.get((name, digit), 0) | bit

    def between(self, before: Formula, after: Formula) -> Counter[str]:
        """Return the uses at subterms that only one of two terms has."""
        different = self._inside_of(before) ^ self._inside_of(after)
        counts: Counter[str] = Counter()
        for (name, digit), terms in self._digits.items():
            counts[name] += (terms & different).bit_count() << digit
        return +counts

    def _inside_of(self, root: Formula) -> int:
        """Return the bits of the subterms with laws."""
        inside = self._inside
        pending = [root]
        while pending:
            term = pending[-1]
            parts = parts_of(term)
            waiting = [t for t in parts if t.number not in inside]
            if waiting and term.number not in inside:
                pending += waiting
                continue
            pending.pop()
            bits = self._places.get(term.number, 0)
            for each in parts:
                bits |= inside[each.number]
            inside[term.number] = bits
        return inside[root.number]

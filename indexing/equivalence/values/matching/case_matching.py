"""Comparison of terms on a domain, by cases.

Two terms are equal if they are equal in each case of the choices in them.  On the domain of a case,
a choice is one of its terms, indices are compared by ISL under the constraints of the case, and
folds are compared value by value over corresponding ranges.

>>> from indexing.equivalence.values.terms.terms import FormulaTable
>>> table = FormulaTable()
>>> algebra = FormulaAlgebra(table)
>>> p = table.array("symbol", ("parameter", 0, ()), "f32", (8,))
>>> i = Variable("d0", 0, 7).as_expr()
>>> split = algebra.choose(i, [(3, table.read(p, [i % 4])), (7, table.read(p, [i]))])
>>> CaseMatching(algebra).equal(split, table.read(p, [i]))
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final, TypeAlias

from indexing.equivalence.values.folds.fold_ranges import Fold
from indexing.equivalence.values.folds.fold_unions import (
    first_unused_element,
    over_equal_elements,
)
from indexing.equivalence.values.folds.folds import instantiate_fold
from indexing.equivalence.values.folds.neutral_elements import neutral_value
from indexing.equivalence.values.folds.set_folds import SetFolds
from indexing.equivalence.values.laws.algebra import COMMUTATIVE, FormulaAlgebra
from indexing.equivalence.values.laws.exact import is_call
from indexing.equivalence.values.laws.roundings import EXCESS, float_before_rounding
from indexing.equivalence.values.matching.corresponding_ranges import corresponding_ranges
from indexing.equivalence.values.matching.sorted_rows import SortedRow, sorted_row
from indexing.equivalence.values.terms.terms import Formula
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.relation import is_empty
from simplifier.atoms import Variable, variables_in
from simplifier.constraints import Constraint
from simplifier.linear import Expr
from simplifier.substitute import Substitution

Domain: TypeAlias = tuple[Constraint, ...]
"""Constraints on the variables, beside their bounds."""

MAX_STEPS: Final = 4000
"""Limit on the pairs of terms that one comparison descends into."""
MAX_NESTED_CASES: Final = 50
"""Limit on the depth of nested comparisons on domains."""
MAX_PAIRED: Final = 6
"""Limit on the operands of a commutative function that are compared in all pairs."""


@dataclass(slots=True)
class CaseMatching:
    """A comparison of terms on domains.

    Attributes:
        algebra: rebuilds terms.
        proves: returns True if two terms without choices are equal for all values of their
            variables.
        set_folds: the folds of which sums consist, if folds are compared element by element too.
        limit: the limit on the pairs of terms that are compared.
        numbers: the numbers of ranges that are opened; comparisons within others share them.
        drops_roundings: the terms after may lack a rounding to a narrower type and back.
        steps, nested: the number of comparisons so far, and of those that have not ended.
        pair: the last pair of terms without choices that is not proved equal.
    """

    algebra: FormulaAlgebra
    proves: Callable[[Formula, Formula], bool] | None = None
    set_folds: SetFolds | None = None
    limit: int = MAX_STEPS
    pair: tuple[Formula, Formula] | None = None
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    drops_roundings: bool = False
    steps: int = 0
    nested: int = 0
    _decided: dict[tuple[int, int, Domain], bool] = field(default_factory=dict)
    _empty: dict[Domain, bool] = field(default_factory=dict)
    _resolved: dict[tuple[int, Domain], Formula] = field(default_factory=dict)

    def equal(self, before: Formula, after: Formula, domain: Domain = ()) -> bool:
        """Return True if both terms are proved equal on a domain."""
        if before is after:
            return True
        key = before.number, after.number, domain
        if key not in self._decided:
            self.steps += 1
            self._decided[key] = False
            if self.steps <= self.limit and self.nested < MAX_NESTED_CASES:
                self.nested += 1
                self._decided[key] = self._cases(before, after, domain)
                self.nested -= 1
        return self._decided[key]

    def _cases(self, before: Formula, after: Formula, domain: Domain) -> bool:
        before, after = self.resolve_choices(before, domain), self.resolve_choices(after, domain)
        if before is after:
            return True
        choice = first_choice(before) or first_choice(after)
        if choice is None:
            if self.proves is not None and self.proves(before, after):
                return True
            if self._same(before, after, domain):
                return True
            inside = self._inside(before), self._inside(after)
            if inside != (before, after):
                return self.equal(*inside, domain)
            if self.drops_roundings and self._equal_unrounded(before, after, domain):
                return True
            self.pair = self.pair or (before, after)
            return False
        if _is_call(before) and _is_call(after) and self._same(before, after, domain):
            return True
        return all(self.equal(before, after, part) for _, part in self.parts(choice, domain))

    def _equal_unrounded(self, before: Formula, after: Formula, domain: Domain) -> bool:
        """Return True if a value that is rounded before only is proved equal."""
        value = (
            float_before_rounding(before.arguments[0], before.type)
            if is_call(before, "convert")
            else None
        )
        if value is None or not self.equal(value, after, domain):
            return False
        self.algebra.note({EXCESS})
        return True

    def _inside(self, term: Formula) -> Formula:
        """Return the formula of an element that is read from an array of its values."""
        array = term.array
        if array is None or array.kind != "let":
            return term
        bound = [Variable(f"d{k}", 0, size - 1) for k, size in enumerate(array.dims)]
        values = dict(zip(bound, term.index, strict=True))
        return self.algebra.rewriting(values)(array.arguments[0])

    # ------------------------------------------------------------ domains

    def is_empty(self, domain: Domain) -> bool:
        """Return True if a domain is proved to have no points."""
        if domain not in self._empty:
            variables = _sort_by_name(variables_in([c.expr for c in domain]))
            if len({v.name for v in variables}) < len(variables):
                self._empty[domain] = False  # a value that is clamped in two ways
                return False
            m = IndexingMap.of(variables, [], constraints=domain)
            self._empty[domain] = is_empty(m) is True
        return self._empty[domain]

    def parts(self, choice: Formula, domain: Domain) -> Iterator[tuple[Formula, Domain]]:
        """Yield the terms of a choice with the parts of the domain where they apply."""
        (expr,) = choice.index
        lower, upper = expr.bounds
        last = len(choice.arguments) - 1
        for k, (bound, term) in enumerate(zip(choice.head, choice.arguments, strict=True)):
            end = upper if k == last else min(bound, upper)
            if lower <= end:
                case = Constraint(expr, lower, end)
                part = domain if case.is_true else tuple(dict.fromkeys((*domain, case)))
                if case.is_true or not self.is_empty(part):
                    yield term, part
            lower = max(lower, end + 1)

    def resolve_choices(self, term: Formula, domain: Domain) -> Formula:
        """Return a term without the choices that the domain decides; arrays stay as they are."""
        key = term.number, domain
        if key not in self._resolved:
            self._resolved[key] = self._resolve(term, domain)
        return self._resolved[key]

    def _resolve(self, term: Formula, domain: Domain) -> Formula:
        if term.kind == "choose":
            parts = list(self.parts(term, domain))
            if len(parts) == 1:
                return self.resolve_choices(parts[0][0], domain)
            return term
        if term.kind != "apply":
            return term
        arguments = tuple([self.resolve_choices(t, domain) for t in term.arguments])
        if all(a is b for a, b in zip(arguments, term.arguments, strict=True)):
            return term
        rebuilt = self.algebra.rebuild(term, arguments, ())
        return rebuilt if rebuilt.kind == "apply" else self.resolve_choices(rebuilt, domain)

    # ------------------------------------------------------------ structure

    def _same(self, before: Formula, after: Formula, domain: Domain) -> bool:
        """Return True if two terms of one structure have equal parts."""
        if before.kind != after.kind or before.type != after.type:
            return False
        if before.kind == "read":
            return self._same_reads(before, after, domain)
        if before.head != after.head or len(before.arguments) != len(after.arguments):
            return False
        if before.kind == "index":
            return self._same_exprs(before.index, after.index, domain)
        if before.kind != "apply":
            return False
        return self._same_arguments(before, after, domain)

    def _same_arguments(self, before: Formula, after: Formula, domain: Domain) -> bool:
        ours, theirs = list(before.arguments), list(after.arguments)
        opcode = before.head[0]
        if opcode not in COMMUTATIVE or opcode == "sum" or len(ours) > MAX_PAIRED:
            pairs = zip(ours, theirs, strict=True)
            return all(self.equal(a, b, domain) for a, b in pairs)
        for a in ours:
            same = next((b for b in theirs if a is b), None)
            same = same or next((b for b in theirs if self.equal(a, b, domain)), None)
            if same is None:
                return False
            theirs.remove(same)
        return True

    def _same_reads(self, before: Formula, after: Formula, domain: Domain) -> bool:
        ours, theirs = before.array, after.array
        assert ours is not None
        assert theirs is not None
        if ours is theirs and self._same_exprs(before.index, after.index, domain):
            return True
        if ours.kind == "fold" and theirs.kind == "fold":
            return self._same_folds(before, after, domain)
        rows = sorted_row(before), sorted_row(after)
        if rows[0] is not None and rows[1] is not None:
            return self._same_rows(rows[0], rows[1], domain)
        same = self._same_arrays(ours, theirs)
        return same and self._same_exprs(before.index, after.index, domain)

    def _same_arrays(self, ours: Formula, theirs: Formula) -> bool:
        """Return True if closed arrays, over variables of their own, are equal."""
        if ours.head != theirs.head or ours.dims != theirs.dims or ours.kind != theirs.kind:
            return False
        if ours.index or theirs.index or not ours.arguments:
            return False
        pairs = zip(ours.arguments, theirs.arguments, strict=True)
        return all(self.equal(a, b) for a, b in pairs)

    def _same_exprs(self, before: Sequence[Expr], after: Sequence[Expr], domain: Domain) -> bool:
        """Return True if lists of expressions have equal values on the domain."""
        if len(before) != len(after):
            return False
        after = self._with_equal_runtime(before, after, domain)
        if all((a - b).bounds == (0, 0) for a, b in zip(before, after, strict=True)):
            return True
        exprs = [c.expr for c in domain]
        variables = _sort_by_name(variables_in([*before, *after, *exprs]))
        if len({v.name for v in variables}) < len(variables):
            return False  # bounds of equally named variables differ
        ours, theirs = (
            IndexingMap.of(variables, each, constraints=domain) for each in (before, after)
        )
        return ours.is_equal(theirs) is True

    def _with_equal_runtime(
        self, before: Sequence[Expr], after: Sequence[Expr], domain: Domain
    ) -> list[Expr]:
        """Return expressions with the runtime variables of `before` that have equal terms."""
        runtime = self.algebra.table.runtime
        ours = _sort_by_name(v for v in variables_in(before) if v in runtime)
        values = {}
        for theirs in _sort_by_name(
            v for v in variables_in(after) if v in runtime and v not in ours
        ):
            for v in ours:
                if v.bounds == theirs.bounds and self.equal(runtime[v], runtime[theirs], domain):
                    values[theirs] = v.as_expr()
                    break
        return [Substitution(values)(e) for e in after] if values else list(after)

    # ------------------------------------------------------------ sorts

    def _same_rows(self, before: SortedRow, after: SortedRow, domain: Domain) -> bool:
        """Return True if elements are at the same place of equal rows that are sorted alike."""
        if before.key != after.key or not self._same_exprs([before.at], [after.at], domain):
            return False
        along = Variable(f"s{next(self.numbers)}_0", 0, before.size - 1)
        ours, theirs = (row.operands_over(self.algebra, along) for row in (before, after))
        return all(self.equal(a, b, domain) for a, b in zip(ours, theirs, strict=True))

    # ------------------------------------------------------------ folds

    def _same_folds(self, before: Formula, after: Formula, domain: Domain) -> bool:
        """Return True if folds have equal values, over corresponding ranges."""
        ours, theirs = (
            instantiate_fold(self.algebra, read, f"s{next(self.numbers)}")
            for read in (before, after)
        )
        if (ours.combiner, ours.leaf, ours.element_type, ours.inits, ours.functions) != (
            *(theirs.combiner, theirs.leaf, theirs.element_type, theirs.inits, theirs.functions),
        ):
            return False
        if not ours.combiner:
            return self._same_general(ours, theirs, domain)
        neutral = neutral_value(self.algebra, ours.combiner, ours.element_type)
        if neutral is None:
            return False
        values = [
            self.algebra.where(fold.guards, fold.values[0], neutral) for fold in (ours, theirs)
        ]
        for over in (ours, theirs) if len(ours.ranges) != len(theirs.ranges) else (ours,):
            mine, other = (values[0], values[1]) if over is ours else (values[1], values[0])
            others = theirs.ranges if over is ours else ours.ranges
            for swap, guards in corresponding_ranges(over.ranges, others):
                value = self.algebra.where(guards, self.algebra.rewriting(swap)(mine), neutral)
                if self.equal(value, other, domain):
                    return True
        return self._same_everywhere(before, after, ours.combiner, domain)

    def _same_everywhere(
        self, before: Formula, after: Formula, combiner: str, domain: Domain
    ) -> bool:
        """Return True if folds have equal values at each element, which may be neutral."""
        if self.set_folds is None:
            return False
        supports = self.set_folds.supports
        if supports.of(before) != supports.of(after):
            return False
        variables = variables_in([c.expr for c in domain])
        first = first_unused_element(before.free | after.free | variables)
        sides = [self.set_folds.of(combiner, term, first, 1) for term in (before, after)]
        if [len(side) for side in sides] != [1, 1]:
            return False
        (ours,), (theirs,) = over_equal_elements(self.algebra, sides)
        if not ours.elements or len(ours.elements) != len(theirs.elements):
            return False
        values = [part.value_anywhere(self.algebra) for part in (ours, theirs)]
        if values[0] is None or values[1] is None:
            return False
        return self.equal(values[0], values[1], domain)

    def _same_general(self, ours: Fold, theirs: Fold, domain: Domain) -> bool:
        """Compare folds by other computations: the same ranges, in this order, without guards."""
        if [v.bounds for v in ours.ranges] != [v.bounds for v in theirs.ranges]:
            return False
        if ours.guards or theirs.guards:
            return False
        pairs = zip(theirs.ranges, ours.ranges, strict=True)
        swap = self.algebra.rewriting({b: a.as_expr() for b, a in pairs})
        values = zip(ours.values, theirs.values, strict=True)
        return all(self.equal(a, swap(b), domain) for a, b in values)


def first_choice(term: Formula) -> Formula | None:
    """Return the first choice in a term, outside of arrays."""
    if not term.has_choice:
        return None
    while term.kind != "choose":
        term = next(each for each in term.arguments if each.has_choice)
    return term


def _is_call(term: Formula) -> bool:
    return term.kind == "apply"


def _sort_by_name(variables: object) -> list[Variable]:
    return sorted(variables, key=lambda v: v.name)  # type: ignore[call-overload, no-any-return]

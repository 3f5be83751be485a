"""Structural comparison of two terms: index by index, argument by argument.

Equal terms are one object, so only terms that differ somewhere are descended into.  The smallest
pair of subterms that is not proved equal explains why a proof fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import isfinite
from typing import Final, Literal, TypeAlias

from indexing.equivalence.values.folds.fold_unions import combiner_of, equal_unions
from indexing.equivalence.values.folds.folds import REORDER
from indexing.equivalence.values.folds.set_folds import MAX_PARTS, SetFolds
from indexing.equivalence.values.laws.algebra import COMMUTATIVE, FormulaAlgebra
from indexing.equivalence.values.laws.exact import is_call
from indexing.equivalence.values.laws.roundings import EXCESS, float_before_rounding
from indexing.equivalence.values.matching.case_matching import CaseMatching
from indexing.equivalence.values.matching.likeness import (
    MAX_PAIRED,
    MAX_QUICKLY_PAIRED,
    by_likeness,
    facing,
    most_alike,
)
from indexing.equivalence.values.terms.functions import MANTISSA, is_float
from indexing.equivalence.values.terms.terms import Formula
from indexing.maps.indexing_map import IndexingMap
from simplifier.atoms import variables_in
from simplifier.linear import Expr
from simplifier.substitute import Substitution

Difference: TypeAlias = Literal[
    "index", "constant", "function", "array", "number of elements", "budget"
]

Key: TypeAlias = tuple[int, int]
"""The numbers of two terms."""

MAX_ROUNDED: Final = 4
"""Relative distance of constants that differ by rounding, in units of the last place."""
ROUNDED_ONCE: Final = "constants are computed with other roundings"
MAX_COMPARED: Final = 1 << 15
"""Limit on the pairs of terms that are compared."""

MAX_CASES: Final = 1 << 11
"""Limit on the pairs of terms that are compared in cases of their choices."""
MAX_EXPANDED_CASES: Final = 1 << 8
"""The same limit if ops are replaced by their definitions, and loops by their iterations."""
MAX_NESTED: Final = 90
"""Limit on the depth of nested comparisons."""
MAX_RECURSION: Final = 30
"""Depth of nested comparisons from which the operands are compared first."""

MAX_QUICK_PARTS: Final = 128
"""Limit on the folds of a sum whose values are compared in all pairs, if that ends at once."""

_NONE: Final[frozenset[tuple[str, Key]]] = frozenset()


@dataclass(frozen=True, slots=True)
class UnequalTerms:
    """Two subterms that are not proved equal."""

    before: Formula
    after: Formula
    difference: Difference


@dataclass(slots=True)
class TermComparison:
    """The comparison of two terms.

    Attributes:
        difference: the part in which the terms themselves differ, or None.
        unequal: the pairs of subterms that are not equal.
        uses: the laws that are not exact, with the pairs of subterms that they relate.
    """

    difference: Difference | None = None
    unequal: list[tuple[Formula, Formula]] = field(default_factory=list)
    uses: frozenset[tuple[str, Key]] = _NONE

    @property
    def is_equal(self) -> bool:
        return self.difference is None and not self.unequal


@dataclass(slots=True)
class Matching:
    """A comparison of terms over the same variables; each pair of terms is compared once.

    Attributes:
        set_folds: the folds of which sums consist; comparisons with the same algebra share them.
        allows_rounding: constants that the laws computed may differ by rounding.
        drops_roundings: the terms after may lack a rounding to a narrower type and back.
        is_quick: terms that reach other symbols or variables are taken for unequal.  That ends most
            comparisons of unequal terms at once, and proves nearly as much.
        compared: the comparisons so far, by the numbers of both terms.
        is_limited: a result depends on a limit, or on which constants were computed so far.
        max_cases: the limit on the pairs of terms that are compared in cases.
        case_count: the number of such pairs so far.
        has_case_proof: two terms were proved equal by cases.
    """

    set_folds: SetFolds
    allows_rounding: bool = False
    drops_roundings: bool = False
    is_quick: bool = False
    max_cases: int = MAX_CASES
    compared: dict[Key, TermComparison] = field(default_factory=dict)
    is_limited: bool = False
    case_count: int = 0
    has_case_proof: bool = False
    _combiners: dict[int, str] = field(default_factory=dict)
    _nested: int = 0
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _used: set[tuple[str, Key]] = field(default_factory=set)
    _active: list[CaseMatching] = field(default_factory=list)

    @property
    def algebra(self) -> FormulaAlgebra:
        """The algebra that rebuilds terms."""
        return self.set_folds.algebra

    def equal(self, before: Formula, after: Formula) -> bool:
        """Return True if both terms are proved equal."""
        return before is after or self._comparison(before, after).is_equal

    def laws(self, before: Formula, after: Formula) -> Counter[str]:
        """Return the number of uses of each law that is not exact, for equal terms."""
        uses = _NONE if before is after else self._comparison(before, after).uses
        return Counter([name for name, _ in uses])

    def residual(self, before: Formula, after: Formula) -> UnequalTerms:
        """Return the smallest pair of subterms that is not proved equal."""
        unequal: list[UnequalTerms] = []
        visited: set[Key] = set()
        pending = [(before, after)]
        while pending:
            one, other = pending.pop()
            if (one.number, other.number) in visited:
                continue
            visited.add((one.number, other.number))
            comparison = self._comparison(one, other)
            pending += comparison.unequal[::-1]
            if comparison.difference is not None:
                unequal.append(UnequalTerms(one, other, comparison.difference))
        return min(unequal, key=lambda each: each.before.depth + each.after.depth)

    def _comparison(self, before: Formula, after: Formula) -> TermComparison:
        key = before.number, after.number
        known = self.compared.get(key)
        if known is None:
            if self.is_quick and self._reach_others(before, after):
                return TermComparison("function")
            if len(self.compared) >= MAX_COMPARED or self._nested >= MAX_NESTED:
                self.is_limited = True
                return TermComparison("budget")
            known = self.compared[key] = TermComparison("function")  # counts against the limit
            self._nested += 1
            if self._nested % MAX_RECURSION == 0:
                self._compare_inside(before, after)
            known = self._descend(before, after)
            if not known.is_equal:
                known = self._over_sets(before, after) or self._by_cases(before, after) or known
            if not known.is_equal and self.drops_roundings:
                known = self._without_rounding(before, after) or known
            self._nested -= 1
            self.compared[key] = known
        return known

    def _reach_others(self, before: Formula, after: Formula) -> bool:
        """Return True if two terms have other free variables, or reach other symbols."""
        supports = self.set_folds.supports
        return before.free != after.free or supports.of(before) != supports.of(after)

    def _compare_inside(self, before: Formula, after: Formula) -> None:
        """Compare the subterms, operands first, so that the comparison of the terms ends early."""
        ordered: dict[Key, tuple[Formula, Formula]] = {}
        pending = facing(before, after)
        while pending:
            one, other = pending.pop()
            key = one.number, other.number
            if key not in ordered and key not in self.compared:
                ordered[key] = one, other
                pending += facing(one, other)
        for _, (one, other) in sorted(ordered.items(), key=lambda item: sum(item[0])):
            self._comparison(one, other)

    def _over_sets(self, before: Formula, after: Formula) -> TermComparison | None:
        """Compare sums of folds over sets; None if they are not proved equal."""
        combiner = combiner_of(before, self._combiners) or combiner_of(after, self._combiners)
        if not combiner or before.type != after.type:
            return None
        is_rounded = combiner in ("add", "multiply") and is_float(before.type)
        if is_rounded and not self.algebra.reassociates:
            return None
        pairs: list[tuple[Formula, Formula]] = []

        def equal(one: Formula, other: Formula) -> bool:
            if one is not other and self.equal(one, other):
                pairs.append((one, other))
            return self.equal(one, other)

        limit = MAX_QUICK_PARTS if self.is_quick else MAX_PARTS
        if not equal_unions(self.set_folds, limit, combiner, before, after, equal):
            return None
        own = [(REORDER, (before.number, after.number))] if is_rounded else []
        inside = [self._comparison(one, other).uses for one, other in pairs]
        return TermComparison(uses=frozenset(own).union(*inside))

    def _without_rounding(self, before: Formula, after: Formula) -> TermComparison | None:
        """Compare the value that is rounded before only; None if they are not proved equal."""
        if not is_call(before, "convert"):
            return None
        value = float_before_rounding(before.arguments[0], before.type)
        if value is None or not self.equal(value, after):
            return None
        inside = _NONE if value is after else self._comparison(value, after).uses
        return TermComparison(uses=inside | {(EXCESS, (before.number, after.number))})

    def _by_cases(self, before: Formula, after: Formula) -> TermComparison | None:
        """Compare terms in each case of their choices; None if they are not proved equal."""
        limit = self.max_cases - self.case_count - sum([each.steps for each in self._active])
        if before.type != after.type or limit <= 0:
            return None
        if not before.has_choice and not after.has_choice:
            has_choices = _has_choices(before) or _has_choices(after)
            if not has_choices or self._reach_others(before, after):
                return None
        cases = CaseMatching(
            self.algebra,
            self._proves,
            self.set_folds,
            limit,
            numbers=self._numbers,
            drops_roundings=self.drops_roundings,
        )
        outer, self._used = self._used, set()
        notes = len(self.algebra.uses)
        self._active.append(cases)
        is_equal = cases.equal(before, after)
        self._active.pop()
        for each in self._active:
            each.limit -= cases.steps
        self.has_case_proof |= is_equal
        self.case_count += cases.steps
        names = set(self.algebra.uses[notes:])
        del self.algebra.uses[notes:]
        uses = self._used | {(name, (before.number, after.number)) for name in names}
        self._used = outer
        return TermComparison(uses=frozenset(uses)) if is_equal else None

    def _proves(self, before: Formula, after: Formula) -> bool:
        """Return True if two terms are proved equal, and keep the laws that relate them."""
        if not self.equal(before, after):
            return False
        self._used |= _NONE if before is after else self._comparison(before, after).uses
        return True

    def _descend(self, before: Formula, after: Formula) -> TermComparison:
        if before.kind != after.kind or before.type != after.type:
            return TermComparison("function")
        if before.kind == "constant":
            is_close = self._is_close(before, after)
            uses = frozenset([(ROUNDED_ONCE, (before.number, after.number))])
            return TermComparison(uses=uses) if is_close else TermComparison("constant")
        comparison = TermComparison()
        if before.kind == "read" and before.array is not after.array:
            assert before.array is not None
            assert after.array is not None
            arrays = self._arrays(before.array, after.array)
            if not arrays.is_equal:
                return arrays
            comparison.uses = arrays.uses
        return self._parts(before, after, comparison, "function")

    def _is_close(self, before: Formula, after: Formula) -> bool:
        """Return True for float constants that differ by rounding only, if that is accepted."""
        if not self.allows_rounding or not is_float(before.type):
            return False
        ours, theirs = float(before.value), float(after.value)
        spacing = 2.0 ** (1 - MANTISSA.get(before.type, 1))
        is_near = isfinite(ours - theirs) and abs(ours - theirs) <= MAX_ROUNDED * spacing * min(
            abs(ours), abs(theirs)
        )
        is_computed = any(
            term in self.algebra.computed and term not in self.algebra.written
            for term in (before, after)
        )
        self.is_limited |= is_near and not is_computed
        return is_near and is_computed

    def _arrays(self, before: Formula, after: Formula) -> TermComparison:
        """Compare two closed arrays."""
        if before.kind != after.kind or before.dims != after.dims or not before.arguments:
            return TermComparison("array")
        return self._parts(before, after, TermComparison(), "array")

    def _parts(
        self, before: Formula, after: Formula, comparison: TermComparison, difference: Difference
    ) -> TermComparison:
        """Compare heads, indices and arguments.

        Args:
            comparison: the comparison so far.
            difference: the difference of terms with other heads.
        """
        if before.head != after.head or len(before.arguments) != len(after.arguments):
            return TermComparison(difference)
        if not self._equal_exprs(before.index, after.index):
            return TermComparison("index")
        pairs = self._pair_arguments(before, after)
        comparison.unequal = [pair for pair in pairs if not self.equal(*pair)]
        inside = [self._comparison(a, b).uses for a, b in pairs if a is not b]
        comparison.uses = comparison.uses.union(*inside)
        return comparison

    def _pair_arguments(self, before: Formula, after: Formula) -> list[tuple[Formula, Formula]]:
        """Return pairs of arguments; those of commutative functions by equality."""
        ours, theirs = list(before.arguments), list(after.arguments)
        opcode = before.head[0] if before.kind == "apply" else ""
        pairs: list[tuple[Formula, Formula]] = []
        if opcode in COMMUTATIVE and opcode != "sum":
            for term in before.arguments:
                if term in theirs:
                    ours.remove(term)
                    theirs.remove(term)
            if 1 < len(ours) <= (MAX_QUICKLY_PAIRED if self.is_quick else MAX_PAIRED):
                pairs = self._equal_operands(ours, theirs)
            match = by_likeness if len(ours) > MAX_PAIRED else most_alike
            ours, theirs = match(ours, theirs)
        return [*pairs, *zip(ours, theirs, strict=True)]

    def _equal_operands(
        self, ours: list[Formula], theirs: list[Formula]
    ) -> list[tuple[Formula, Formula]]:
        """Remove pairs of equal terms from two lists, and return them."""
        pairs = []
        for a in list(ours):
            likely = [b for b in theirs if b.key == a.key]
            likely += [b for b in theirs if b.key != a.key]
            same = next((b for b in likely if self.equal(a, b)), None)
            if same is not None:
                ours.remove(a)
                theirs.remove(same)
                pairs.append((a, same))
        return pairs

    def _with_equal_runtime(self, before: Sequence[Expr], after: Sequence[Expr]) -> list[Expr]:
        """Return expressions with the runtime variables of `before` that have equal terms."""
        runtime = self.algebra.table.runtime
        ours = [v for v in variables_in(before) if v in runtime]
        values = {}
        for theirs in sorted(variables_in(after), key=lambda v: v.name):
            if theirs not in runtime or theirs in ours:
                continue
            term = runtime[theirs]
            candidates = [v for v in ours if v.bounds == theirs.bounds]
            candidates.sort(key=lambda v: (runtime[v].key != term.key, v.name))
            same = next((v for v in candidates if self.equal(runtime[v], term)), None)
            if same is not None:
                values[theirs] = same.as_expr()
        return [Substitution(values)(e) for e in after] if values else list(after)

    def _equal_exprs(self, before: Sequence[Expr], after: Sequence[Expr]) -> bool:
        """Return True if two lists of expressions have equal values for all variables."""
        if len(before) != len(after):
            return False
        if tuple(before) == tuple(after):
            return True
        if all((a - b).bounds == (0, 0) for a, b in zip(before, after, strict=True)):
            return True
        after = self._with_equal_runtime(before, after)
        if tuple(before) == tuple(after):
            return True
        if any(v in self.algebra.table.runtime for v in variables_in([*before, *after])):
            return False
        variables = sorted(variables_in([*before, *after]), key=lambda v: v.name)
        if len({v.name for v in variables}) < len(variables):
            return False  # bounds of equally named variables differ
        ours, theirs = (IndexingMap.of(variables, exprs) for exprs in (before, after))
        return ours.is_equal(theirs) is True


def _has_choices(term: Formula) -> bool:
    """Return True for an element of a fold whose values have a choice."""
    array = term.array
    return array is not None and array.kind == "fold" and any(map(_has_choice, array.arguments))


def _has_choice(term: Formula) -> bool:
    return term.has_choice

"""Structural comparison of two terms: index by index, argument by argument.

Equal terms are one object, so only terms that differ somewhere are descended into.  The smallest
pair of subterms that is not proved equal explains why a proof fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from indexing.equivalence.values.algebra import COMMUTATIVE, FormulaAlgebra
from indexing.equivalence.values.exact_laws import MANTISSA
from indexing.equivalence.values.functions import is_float
from indexing.equivalence.values.terms import Formula
from indexing.maps.indexing_map import IndexingMap
from simplifier.atoms import mentioned
from simplifier.linear import Expr
from simplifier.substitute import Substitution

Difference: TypeAlias = Literal["index", "constant", "function", "array", "number of elements"]

MAX_PAIRED: Final = 6
"""Limit on the operands of a commutative function that are compared in all pairs."""
MAX_ROUNDED: Final = 4
"""Relative distance of constants that differ by rounding, in units of the last place."""
ROUNDED_ONCE: Final = "constants are computed with other roundings"
MAX_COMPARED: Final = 1 << 12
"""Limit on the pairs of terms that one comparison descends into."""


@dataclass(frozen=True, slots=True)
class UnequalTerms:
    """Two subterms that are not proved equal."""

    before: Formula
    after: Formula
    difference: Difference


@dataclass(slots=True)
class Matching:
    """A comparison of terms over the same variables.

    Attributes:
        allows_rounding: constants that the laws computed may differ by rounding.
        laws: the number of uses of each law that is not exact.
        pair: the smallest pair of subterms that is not proved equal, once a comparison failed.
    """

    algebra: FormulaAlgebra
    allows_rounding: bool = False
    laws: Counter[str] = field(default_factory=Counter)
    pair: UnequalTerms | None = None
    _decided: dict[tuple[int, int], bool] = field(default_factory=dict)

    def equal(self, before: Formula, after: Formula) -> bool:
        """Return True if both terms are proved equal."""
        if before is after:
            return True
        key = before.number, after.number
        if key not in self._decided:
            if len(self._decided) > MAX_COMPARED:
                return self._differ(before, after, "function")
            self._decided[key] = False  # terms are finite, so this is no assumption
            self._decided[key] = self._descend(before, after)
        return self._decided[key]

    def _differ(self, before: Formula, after: Formula, difference: Difference) -> bool:
        size = before.depth + after.depth
        if self.pair is None or size < self.pair.before.depth + self.pair.after.depth:
            self.pair = UnequalTerms(before, after, difference)
        return False

    def _descend(self, before: Formula, after: Formula) -> bool:
        if before.kind != after.kind or before.type != after.type:
            return self._differ(before, after, "function")
        if before.kind == "constant":
            return self._close(before, after) or self._differ(before, after, "constant")
        same_array = before.array is after.array
        if before.kind == "read" and not same_array:
            assert before.array is not None
            assert after.array is not None
            if not self.equal_arrays(before.array, after.array):
                return False
        if before.head != after.head or len(before.arguments) != len(after.arguments):
            return self._differ(before, after, "function")
        if not self._equal_exprs(before.index, after.index):
            return self._differ(before, after, "index")
        return self._equal_arguments(before, after)

    def _close(self, before: Formula, after: Formula) -> bool:
        """Return True for float constants that differ by rounding only, if that is accepted."""
        if not self.allows_rounding or not is_float(before.type):
            return False
        if not {before, after} & self.algebra.computed:
            return False
        ours, theirs = float(before.value), float(after.value)
        spacing = 2.0 ** (1 - MANTISSA.get(before.type, 1))
        if not abs(ours - theirs) <= MAX_ROUNDED * spacing * min(abs(ours), abs(theirs)):
            return False
        self.laws[ROUNDED_ONCE] += 1
        return True

    def equal_arrays(self, before: Formula, after: Formula) -> bool:
        """Return True if two closed arrays are proved equal."""
        if before.kind != after.kind or before.dims != after.dims or not before.arguments:
            return self._differ(before, after, "array")
        if before.head != after.head or len(before.arguments) != len(after.arguments):
            return self._differ(before, after, "array")
        if not self._equal_exprs(before.index, after.index):
            return self._differ(before, after, "index")
        return self._equal_arguments(before, after)

    def _equal_arguments(self, before: Formula, after: Formula) -> bool:
        ours, theirs = list(before.arguments), list(after.arguments)
        opcode = before.head[0] if before.kind == "apply" else ""
        if opcode in COMMUTATIVE and opcode != "sum":
            shared = [t for t in ours if t in theirs]
            for term in shared:
                if term in theirs:
                    ours.remove(term)
                    theirs.remove(term)
            if 1 < len(ours) <= MAX_PAIRED:
                ours, theirs = self._unmatched(ours, theirs)
        results = [self.equal(a, b) for a, b in zip(ours, theirs, strict=True)]
        return all(results)

    def _unmatched(
        self, ours: list[Formula], theirs: list[Formula]
    ) -> tuple[list[Formula], list[Formula]]:
        """Return the operands that no operand of the other side equals, in pairs."""
        theirs, left = list(theirs), []
        for a in ours:
            for b in theirs:
                quiet = Matching(self.algebra, self.allows_rounding)
                if quiet.equal(a, b):
                    theirs.remove(b)
                    self.laws += quiet.laws
                    break
            else:
                left.append(a)
        return left, theirs

    def _with_equal_runtime(self, before: Sequence[Expr], after: Sequence[Expr]) -> list[Expr]:
        """Return expressions with the runtime variables of `before` that have equal terms."""
        runtime = self.algebra.table.runtime
        ours = [v for v in mentioned(before) if v in runtime]
        values = {}
        for theirs in sorted(mentioned(after), key=lambda v: v.name):
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
        if any(v in self.algebra.table.runtime for v in mentioned([*before, *after])):
            return False
        variables = sorted(mentioned([*before, *after]), key=lambda v: v.name)
        if len({v.name for v in variables}) < len(variables):
            return False  # bounds of equally named variables differ
        ours, theirs = (IndexingMap.of(variables, exprs) for exprs in (before, after))
        return ours.is_equal(theirs) is True

"""`ReadingAlgebra`: a fold that is read at some of its indices has other choices and guards.

``reduce add[8](choose(d0 <= (4, 7): x, 0))`` read at ``d0 in [0, 4]`` is ``reduce add[5](x)``.  Its
dimensions may be fewer, too: if it depends on ``d0 + d1`` alone, read at ``[2 - d2, d2]`` it
depends on none; and ``d0 floordiv 2`` is ``d1`` if it is read at ``2 * d1``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import gcd
from typing import NamedTuple

from indexing.equivalence.values.folds.folds import fold_formula, instantiate_fold, open_fold
from indexing.equivalence.values.folds.packed_predicates import packed_predicate
from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.terms.closed_terms import OpenBody
from indexing.equivalence.values.terms.functions import Attributes
from indexing.equivalence.values.terms.terms import Formula, FormulaTable
from simplifier.atoms import Floor, Variable, variables_in
from simplifier.interval import Interval
from simplifier.linear import Expr


class _SumCondition(NamedTuple):
    """A sum of variables in a closed fold, and the values after which a choice changes.

    Attributes:
        constant: the bounds of the part that does not depend on dimensions.
        factors: those of the dimensions, by their numbers.
        last: the last value of each piece but the last one.
    """

    constant: Interval
    factors: Mapping[int, int]
    last: Sequence[int]

    def undecided(self, bounds: Sequence[Interval]) -> list[int]:
        """Return the changes between values of the sum, for bounds of the dimensions."""
        low, high = self.constant
        for number, factor in self.factors.items():
            ends = sorted([factor * end for end in bounds[number]])
            low, high = low + ends[0], high + ends[1]
        return [value for value in self.last if low <= value < high]


class ReadingAlgebra(FormulaAlgebra):
    """Constructors of terms in which reads of closed folds are simplified.

    Arguments as of `FormulaAlgebra`.

    Attributes:
        merges_dimensions: a fold is closed again for an index on which it may depend otherwise.
    """

    merges_dimensions: bool = False

    @cached_property
    def _folded(self) -> dict[tuple[int, tuple[Expr, ...]], tuple[Formula, tuple[str, ...]]]:
        """The elements of closed folds that are folded again."""
        return {}

    @cached_property
    def _quotients(self) -> dict[int, bool]:
        """True for the numbers of closed folds with quotients of indices."""
        return {}

    @cached_property
    def _conditions(self) -> dict[int, list[_SumCondition]]:
        """The conditions of closed folds, by the numbers of these."""
        return {}

    def _simplify(
        self, opcode: str, attributes: Attributes, element_type: str, arguments: Sequence[Formula]
    ) -> Formula:
        """Return a function of terms; predicates are read from packed bits."""
        if opcode == "convert" and element_type == "pred":
            predicate = packed_predicate(self, arguments[0])
            if predicate is not None:
                return predicate
        return super()._simplify(opcode, attributes, element_type, arguments)

    def read(self, array: Formula, index: Sequence[Expr]) -> Formula:
        """Return an element of an array; that of a fold is simplified by bounds of the index."""
        if array.kind != "fold" or not (
            self._is_simpler(array, index)
            or (self.merges_dimensions and self._has_fewer_dimensions(array, index))
        ):
            return super().read(array, index)
        key = array.number, tuple(index)
        if key not in self._folded:
            start = len(self.uses)
            fold = instantiate_fold(self, self.table.read(array, index), "s")
            self._folded[key] = fold_formula(self, fold), tuple(self.uses[start:])
            del self.uses[start:]
        element, names = self._folded[key]
        self.note(names)
        return element

    def _has_fewer_dimensions(self, array: Formula, index: Sequence[Expr]) -> bool:
        """Return True if sums or quotients in a fold may be less at an index."""
        if _shares_variables(index):
            return True
        if not any(gcd(*e.parts.values()) > 1 for e in index):
            return False
        if array.number not in self._quotients:
            ranges = open_fold(array, array.arguments, array.index).ranges
            body = OpenBody(self.table, array.arguments, array.index, ranges)
            atoms = [atom for form in body.linear_forms for atom in form.parts]
            self._quotients[array.number] = any(isinstance(atom, Floor) for atom in atoms)
        return self._quotients[array.number]

    def _is_simpler(self, array: Formula, index: Sequence[Expr]) -> bool:
        """Return True if the bounds of an index decide a choice or a guard of a fold."""
        bounds = [e.bounds for e in index]
        all_bounds = [(0, size - 1) for size in array.dims]
        if bounds == all_bounds:
            return False
        if array.number not in self._conditions:
            every = _conditions(self.table, array)
            self._conditions[array.number] = [c for c in every if c.undecided(all_bounds)]
        conditions = self._conditions[array.number]
        return any(c.undecided(bounds) != c.undecided(all_bounds) for c in conditions)


def _shares_variables(index: Sequence[Expr]) -> bool:
    """Return True if two indices have a variable in common, so that a sum of both may be less."""
    variables = [variables_in([e]) for e in index]
    return sum(map(len, variables)) > len(frozenset[Variable]().union(*variables))


def _conditions(table: FormulaTable, array: Formula) -> Iterator[_SumCondition]:
    """Yield the conditions on sums of variables in a closed fold."""
    fold = open_fold(array, array.arguments, array.index)
    numbers = {Variable(f"d{k}", 0, size - 1): k for k, size in enumerate(array.dims)}
    body = OpenBody(table, array.arguments, array.index, fold.ranges)
    choices = [(t.index[0], t.head[:-1]) for t in body.all_terms() if t.kind == "choose"]
    guards = [(c.expr, (c.lower - 1, c.upper)) for c in fold.guards]
    for expr, last in [*choices, *guards]:
        variables = [v for v in expr.parts if isinstance(v, Variable)]
        outer = [v for v in variables if v in numbers]
        if outer and len(variables) == len(expr.parts):
            factors = {numbers[v]: expr.parts[v] for v in outer}
            rest = expr
            for v in outer:
                rest = rest - v.as_expr() * expr.parts[v]
            yield _SumCondition(rest.bounds, factors, last)

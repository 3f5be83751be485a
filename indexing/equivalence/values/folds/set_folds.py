"""Sums as folds over sets, whose values do not mention the range variables.

The first expression with a range variable becomes the element ``z0``, and so on, until none is
left: ``fold over s of f(i + s)`` is the fold of ``f(z0)`` over the set of all ``z0 = i + s``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from indexing.equivalence.values.folds.fold_ranges import Fold, depends_on
from indexing.equivalence.values.folds.folds import instantiate_fold
from indexing.equivalence.values.folds.neutral_elements import is_neutral, neutral_value
from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.terms.closed_terms import OpenBody
from indexing.equivalence.values.terms.supports import Supports
from indexing.equivalence.values.terms.terms import Formula, FormulaTable
from simplifier.atoms import Variable, variables_in
from simplifier.constraints import Constraint
from simplifier.linear import Expr
from simplifier.substitute import Substitution

MAX_PARTS: Final = 16
"""Limit on the folds of a sum whose values are compared in all pairs."""

Guards = tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class SetFold:
    """``combiner over { value(z0, z1, …) : z in the set }``.

    Attributes:
        fold: the fold, with its range variables and guards; its value is over `elements`.
        elements: the variables ``z0, z1, …``.
        index: their values over the range variables and the free variables.
        ranges_at: the range variables over the elements and the free variables; without those that
            the value does not depend on.
    """

    fold: Fold
    elements: tuple[Variable, ...]
    index: tuple[Expr, ...]
    ranges_at: Mapping[Variable, Expr]

    @property
    def value(self) -> Formula:
        """The formula of one value, over the elements and the free variables."""
        return self.fold.values[0]

    def over(
        self,
        algebra: FormulaAlgebra,
        elements: tuple[Variable, ...],
        values: Mapping[Variable, Expr],
    ) -> SetFold:
        """Return the fold over other elements, with the values of its own elements over them."""
        fold = replace(self.fold, values=(algebra.rewriting(values)(self.value),))
        substitution = Substitution(values)
        ranges_at = {v: substitution(e) for v, e in self.ranges_at.items()}
        return replace(self, fold=fold, elements=elements, ranges_at=ranges_at)

    def value_anywhere(self, algebra: FormulaAlgebra) -> Formula | None:
        """Return the value at an element of the set, and a neutral value at any other element.

        None if elements of the set do not determine the ranges, or no value is neutral.
        """
        fold = self.fold
        neutral = neutral_value(algebra, fold.combiner, fold.element_type)
        if neutral is None or self.ranges_at.keys() != set(fold.ranges):
            return None
        substitution = Substitution(self.ranges_at)
        conditions = [Constraint(e, *v.bounds) for v, e in self.ranges_at.items()]
        conditions += [c.with_expr(substitution(c.expr)) for c in fold.guards]
        return algebra.where(conditions, self.value, neutral)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The folds of a sum.

    Attributes:
        folds: the folds; [] if one of them has no form over a set, or if there are too many.
        count: the number of folds that were made.
        limit: the limit that they exceed; None if they are all the folds.
        names: the laws that made them.
    """

    folds: list[SetFold]
    count: int
    limit: int | None
    names: list[str]

    def holds_within(self, limit: int) -> bool:
        """Return True if another limit has the same folds."""
        return self.count <= limit if self.limit is None else self.limit == limit


class SetFolds:
    """The folds of which sums consist, each computed once.

    Attributes:
        algebra: rebuilds terms.
        supports: the supports of the terms.
    """

    def __init__(self, algebra: FormulaAlgebra) -> None:
        self.algebra, self.supports = algebra, Supports(algebra.table)
        self._known: dict[tuple[str, int, int], _Parts] = {}

    def of(self, combiner: str, term: Formula, first: int, limit: int) -> list[SetFold]:
        """Return the folds of which a sum consists; [] if one of them has no form over a set.

        Args:
            first: the number of the first element of each fold.
            limit: the limit on the folds of a sum; [] for more of them.
        """
        key, uses = (combiner, term.number, first), self.algebra.uses
        known = self._known.get(key)
        if known is not None and known.holds_within(limit):
            self.algebra.note(known.names)
            return known.folds
        start = len(uses)
        folds, count = self._make_folds(combiner, term, first, limit)
        names = list(dict.fromkeys(uses[start:]))
        exceeded = limit if count > limit else None
        self._known[key] = _Parts(folds, count, exceeded, names)
        return folds

    def _make_folds(
        self, combiner: str, term: Formula, first: int, limit: int
    ) -> tuple[list[SetFold], int]:
        """Return the folds, or [], and the number of folds that were made."""
        parts: list[SetFold] = []
        for count, fold in enumerate(_folds(self.algebra, combiner, term, ()), 1):
            part = _abstract_elements(self.algebra, self.supports, fold, first)
            if part is None or count > limit:
                return [], count
            parts.append(_order_elements(self.algebra, self.supports, part))
        return parts, len(parts)


def _folds(algebra: FormulaAlgebra, combiner: str, term: Formula, guards: Guards) -> Iterator[Fold]:
    """Yield the operands of a sum as folds, under conditions on the free variables."""
    if is_neutral(combiner, term):
        return
    if term.array is not None and term.array.head[0] == f"reduce {combiner}":
        fold = instantiate_fold(algebra, term, "s")
        if is_neutral(combiner, fold.inits[0]):
            yield replace(fold, guards=(*fold.guards, *guards))
            return
    if term.kind == "choose":
        (expr,) = term.index
        start, last = expr.bounds
        for bound, piece in zip((*term.head[:-1], last), term.arguments, strict=True):
            guard = Constraint(expr, start, bound)
            yield from _folds(algebra, combiner, piece, (*guards, guard))
            start = bound + 1
        return
    if term.kind == "apply" and _combines(term, combiner):
        for argument in term.arguments:
            yield from _folds(algebra, combiner, argument, guards)
        return
    neutral = neutral_value(algebra, combiner, term.type)
    if neutral is not None:
        yield Fold(combiner, (), 0, term.type, (neutral,), (term,), (), guards)


def _combines(term: Formula, combiner: str) -> bool:
    """Return True for an application of the combiner to all operands, each once."""
    opcode, attributes = term.head
    if opcode == "sum" and combiner == "add":
        (_, factors), (_, constant) = attributes
        return not constant and set(factors) == {1}
    return bool(opcode == combiner)


def _abstract_elements(
    algebra: FormulaAlgebra, supports: Supports, fold: Fold, first: int
) -> SetFold | None:
    """Return a fold over elements ``z0, z1, …``; None if a range variable is left.

    Args:
        first: the number of the first element.
    """
    fold = _with_conditional_value(algebra, fold)
    (value,) = fold.values
    elements: list[Variable] = []
    index: list[Expr] = []
    ranges_at: dict[Variable, Expr] = {}
    while set(fold.ranges) & value.free:
        step = _first_form(algebra, supports, value, fold.ranges)
        if step is None:
            return None
        form, v = step
        z = Variable(f"z{first + len(elements)}", *form.bounds)
        rest = form - v.as_expr() * form.parts[v]
        swap = {v: (z.as_expr() - rest) * form.parts[v]}
        value = algebra.rewriting(swap)(value)
        given = Substitution(dict(zip(elements, index, strict=True)))
        elements.append(z)
        index.append(given(form))
        ranges_at = {u: Substitution(swap)(e) for u, e in ranges_at.items()} | swap
    runtime = algebra.table.runtime
    exprs = [*index, *[c.expr for c in fold.guards]]
    if any(runtime[v].free & set(fold.ranges) for v in variables_in(exprs) if v in runtime):
        return None
    return SetFold(replace(fold, values=(value,)), tuple(elements), tuple(index), ranges_at)


def _with_conditional_value(algebra: FormulaAlgebra, fold: Fold) -> Fold:
    """Return a fold whose conditions on runtime values of each element are part of the value."""
    ranges = frozenset(fold.ranges)
    runtime = algebra.table.runtime
    own = [
        c
        for c in fold.guards
        if any(runtime[v].free & ranges for v in variables_in([c.expr]) if v in runtime)
    ]
    neutral = neutral_value(algebra, fold.combiner, fold.element_type) if own else None
    if neutral is None:
        return fold
    value = algebra.where(own, fold.values[0], neutral)
    return replace(fold, values=(value,), guards=tuple([c for c in fold.guards if c not in own]))


def _order_elements(algebra: FormulaAlgebra, supports: Supports, part: SetFold) -> SetFold:
    """Return a fold whose elements are ordered by what they reach, not by occurrence.

    The order of occurrence depends on the order of the operands of commutative functions.
    """
    reached = supports.variables(part.value)
    order = sorted(
        range(len(part.elements)),
        key=lambda k: (reached.get(part.elements[k], 0), part.elements[k].bounds, k),
    )
    if order == list(range(len(order))):
        return part
    names = [z.name for z in part.elements]
    elements = [part.elements[k] for k in order]
    renamed = [Variable(name, *z.bounds) for name, z in zip(names, elements, strict=True)]
    swap = {z: new.as_expr() for z, new in zip(elements, renamed, strict=True)}
    ordered = part.over(algebra, part.elements, swap)
    return replace(ordered, elements=tuple(renamed), index=tuple([part.index[k] for k in order]))


def _first_form(
    algebra: FormulaAlgebra, supports: Supports, value: Formula, ranges: Sequence[Variable]
) -> tuple[Expr, Variable] | None:
    """Return an expression that determines a range variable, and the variable.

    Indices of reads come first: the expressions of choices have no constants.  Expressions of fewer
    variables come first, then those of symbols, since a fold may be closed over ``2 - d0`` as well
    as over ``d0``, then others by what their dimensions reach, so that the order of operands
    matters least.
    """
    table = algebra.table
    terms = list(OpenBody(table, (value,), (), tuple(ranges)).all_terms())
    for is_read in (True, False):
        places: dict[Expr, tuple[bool, int]] = {}
        for term in terms:
            if (term.kind == "read") == is_read:
                for k, expr in enumerate(term.index):
                    place = False, 0
                    if term.array is not None:
                        is_closed = term.array.kind != "symbol"
                        place = is_closed, supports.dimension(term.array, k)
                    places[expr] = min(place, places.get(expr, place))
        form = _solvable(table, places, ranges)
        if form is not None:
            return form
    return None


def _solvable(
    table: FormulaTable, places: Mapping[Expr, tuple[bool, int]], ranges: Sequence[Variable]
) -> tuple[Expr, Variable] | None:
    """Return the first expression that determines a range variable, and the variable.

    Of the expressions that differ by a constant, the smallest is returned, because the order of
    operands depends on them.

    Args:
        places: what the dimensions that the expressions index reach.
    """
    best: tuple[tuple[int, tuple[bool, int]], Expr, Variable] | None = None
    pending = list(places.items())[::-1]
    while pending:
        expr, place = pending.pop()
        rank = len(variables_in([expr])), place
        for v in table.first_variables(expr) if best is None or rank < best[0] else ():
            if v in ranges and abs(expr.parts.get(v, 0)) == 1:
                if not depends_on(table, expr - v.as_expr() * expr.parts[v], v):
                    best = rank, expr, v
                    break
        pending += [(e, place) for atom in expr.parts for e in getattr(atom, "operands", ())]
    if best is None:
        return None
    _, form, v = best
    alike = [e for e in places if e.parts == form.parts]
    return min(alike, key=lambda e: e.constant, default=form), v

"""Folds over sets: sums of folds over disjoint sets are folds over the union.

A fold combines ``f(z)`` for each ``z`` in a set that depends on the index of the result: a
cumulative window is the set ``z <= i``.  Blocks of the window, such as a sum of whole blocks before
the block of ``i`` and a sum within it, are disjoint sets with the same union.

The value of a fold is abstracted from its range variables: the first expression with a range
variable becomes ``z0``, and so on, until none is left.  Sets are relations from the free variables
to ``z0, z1, …``, compared exactly (`simplifier.exact`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

from indexing.equivalence.values.folds.fold_ranges import Fold, depends_on
from indexing.equivalence.values.folds.folds import IDEMPOTENT, instantiate_fold
from indexing.equivalence.values.folds.neutral_elements import is_neutral, neutral_value
from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.terms.closed_terms import OpenBody
from indexing.equivalence.values.terms.terms import Formula, FormulaTable
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.properties import is_injective
from indexing.ops.combiners import COMBINERS
from simplifier import exact
from simplifier.atoms import Variable, variables_in
from simplifier.constraints import Constraint
from simplifier.exact import unions
from simplifier.exact.encode import Relation
from simplifier.linear import Expr
from simplifier.substitute import Substitution

MAX_PARTS: Final = 16
"""Limit on the folds of which a sum consists."""

Equal = Callable[[Formula, Formula], bool]
Guards = tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class SetFold:
    """``combiner over { value(z0, z1, …) : z in the set }``.

    Attributes:
        fold: the fold, with its range variables and guards; its value is over `elements`.
        elements: the variables ``z0, z1, …``.
        index: their values over the range variables and the free variables.
    """

    fold: Fold
    elements: tuple[Variable, ...]
    index: tuple[Expr, ...]

    @property
    def value(self) -> Formula:
        """The formula of one value, over the elements and the free variables."""
        return self.fold.values[0]


def combiner_of(term: Formula, known: dict[int, str]) -> str:
    """Return the combiner of a fold, or of a sum with a fold; "" for other terms.

    Args:
        known: the combiners of terms by number, to which those of this term are added.
    """
    pending = [term]
    while pending:
        top = pending[-1]
        parts = _parts_of_sum(top)
        waiting = [t for t in parts if t.number not in known]
        if top.number in known or not waiting:
            pending.pop()
            known[top.number] = _combiner(top, [known[t.number] for t in parts])
        else:
            pending += waiting
    return known[term.number]


def _parts_of_sum(term: Formula) -> Sequence[Formula]:
    """Return the arguments on which the combiner of a choice or a function depends."""
    if term.kind == "choose":
        return term.arguments
    opcode = _opcode(term)
    if opcode not in COMBINERS:
        return ()
    return [t for t in term.arguments if _opcode(t) in ("", opcode)]  # others combine otherwise


def _combiner(term: Formula, inside: Sequence[str]) -> str:
    """Return the combiner of a term, whose `_parts_of_sum` have these combiners."""
    if term.array is not None and term.array.kind == "fold":
        return str(term.array.head[0]).removeprefix("reduce").strip()
    if term.kind == "choose":
        return next(filter(None, inside), "")
    opcode = _opcode(term)
    return opcode if opcode in inside else ""


def _opcode(term: Formula) -> str:
    """Return the opcode of a function, sums of integers being additions; "" for other terms."""
    opcode = str(term.head[0]) if term.kind == "apply" else ""
    return "add" if opcode == "sum" else opcode


def equal_unions(
    algebra: FormulaAlgebra, combiner: str, before: Formula, after: Formula, equal: Equal
) -> bool:
    """Return True if two sums of folds are folds of equal values over equal sets.

    Args:
        equal: returns True if two terms are proved equal.
    """
    first = _first_unused(before.free | after.free)
    sides = [_set_folds(algebra, combiner, term, first) for term in (before, after)]
    if not all(sides) or max(map(len, sides)) > MAX_PARTS:
        return False
    ours, theirs = _over_equal_elements(algebra, sides)
    groups: list[tuple[list[SetFold], list[SetFold]]] = []
    for side, parts in enumerate((ours, theirs)):
        for part in parts:
            group = next((g for g in groups if _is_alike((g[0] or g[1])[0], part, equal)), None)
            if group is None:
                group = [], []
                groups.append(group)
            group[side].append(part)
    return all(_equal_sets(algebra, combiner, *group) for group in groups)


def _first_unused(variables: Iterable[Variable]) -> int:
    """Return a number from which no variable is named ``z0, z1, …``.

    The value of a fold may have a fold, in which the elements of the outer fold are free.
    """
    used = [int(v.name[1:]) for v in variables if v.name[0] == "z" and v.name[1:].isdecimal()]
    return max(used, default=-1) + 1


def _is_alike(one: SetFold, other: SetFold, equal: Equal) -> bool:
    return len(one.elements) == len(other.elements) and equal(one.value, other.value)


# ---------------------------------------------------------------- parts of sums


def _set_folds(algebra: FormulaAlgebra, combiner: str, term: Formula, first: int) -> list[SetFold]:
    """Return the folds of which a sum consists; [] if one of them has no form over a set.

    Args:
        first: the number of the first element of each fold.
    """
    parts = []
    for number, fold in enumerate(_folds(algebra, combiner, term, ())):
        part = _abstract_elements(algebra, fold, first)
        if part is None or number == MAX_PARTS:
            return []
        parts.append(part)
    return parts


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


def _abstract_elements(algebra: FormulaAlgebra, fold: Fold, first: int) -> SetFold | None:
    """Return a fold over elements ``z0, z1, …``; None if a range variable is left.

    Args:
        first: the number of the first element.
    """
    (value,) = fold.values
    elements: list[Variable] = []
    index: list[Expr] = []
    while set(fold.ranges) & value.free:
        step = _first_form(algebra, value, fold.ranges)
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
    runtime = algebra.table.runtime
    exprs = [*index, *[c.expr for c in fold.guards]]
    if any(runtime[v].free & set(fold.ranges) for v in variables_in(exprs) if v in runtime):
        return None
    return SetFold(replace(fold, values=(value,)), tuple(elements), tuple(index))


def _first_form(
    algebra: FormulaAlgebra, value: Formula, ranges: Sequence[Variable]
) -> tuple[Expr, Variable] | None:
    """Return an expression that determines a range variable, and the variable.

    Indices of reads come first: the expressions of choices have no constants.  Of the indices that
    differ by a constant, the smallest is returned, because the order of operands depends on them.
    """
    table = algebra.table
    terms = list(OpenBody(table, (value,), (), tuple(ranges)).all_terms())
    groups = [[t for t in terms if (t.kind == "read") == is_read] for is_read in (True, False)]
    forms = [_solvable(table, [e for t in group for e in t.index], ranges) for group in groups]
    return forms[0] or forms[1]


def _solvable(
    table: FormulaTable, exprs: Sequence[Expr], ranges: Sequence[Variable]
) -> tuple[Expr, Variable] | None:
    """Return the first expression that determines a range variable, and the variable."""
    pending = list(exprs)[::-1]
    while pending:
        expr = pending.pop()
        for v in table.first_variables(expr):
            if v in ranges and abs(expr.parts.get(v, 0)) == 1:
                if not depends_on(table, expr - v.as_expr() * expr.parts[v], v):
                    alike = [e for e in exprs if e.parts == expr.parts]
                    return min(alike, key=lambda e: e.constant, default=expr), v
        pending += [e for atom in expr.parts for e in getattr(atom, "operands", ())]
    return None


def _over_equal_elements(
    algebra: FormulaAlgebra, sides: Sequence[Sequence[SetFold]]
) -> list[list[SetFold]]:
    """Return the folds with equally bounded elements ``z0, z1, …``."""
    bounds: dict[str, tuple[int, int]] = {}
    for z in [z for side in sides for part in side for z in part.elements]:
        low, high = bounds.get(z.name, z.bounds)
        bounds[z.name] = min(low, z.lower), max(high, z.upper)
    widened = []
    for side in sides:
        parts = []
        for part in side:
            wide = tuple([Variable(z.name, *bounds[z.name]) for z in part.elements])
            swap = {z: new.as_expr() for z, new in zip(part.elements, wide, strict=True)}
            value = algebra.rewriting(swap)(part.value)
            parts.append(SetFold(replace(part.fold, values=(value,)), wide, part.index))
        widened.append(parts)
    return widened


# ---------------------------------------------------------------- sets


def _equal_sets(
    algebra: FormulaAlgebra, combiner: str, before: list[SetFold], after: list[SetFold]
) -> bool:
    """Return True if the sets of folds of the same value have the same union, each once."""
    if not before or not after:
        return False
    exprs = [e for part in (*before, *after) for e in _exprs(part)]
    bound = {v for part in (*before, *after) for v in part.fold.ranges}
    free = sorted(variables_in(exprs) - bound, key=lambda v: v.name)
    if len({v.name for v in free}) < len(free):
        return False  # bounds of equally named variables differ
    ours, theirs = (
        [Relation(tuple(free), p.fold.ranges, p.index, p.fold.guards) for p in parts]
        for parts in (before, after)
    )
    if unions.only_first(ours, theirs) is not None or unions.only_first(theirs, ours) is not None:
        return False
    return combiner in IDEMPOTENT or all(_is_disjoint(each, free) for each in (before, after))


def _exprs(part: SetFold) -> list[Expr]:
    return [*part.index, *[c.expr for c in part.fold.guards]]


def _is_disjoint(parts: list[SetFold], free: list[Variable]) -> bool:
    """Return True if each element is in one of the sets, for one value of the range variables."""
    for part in parts:
        variables = (*free, *part.fold.ranges)
        results = (*[v.as_expr() for v in free], *part.index)
        values = IndexingMap.of(variables, results, constraints=part.fold.guards)
        if is_injective(values) is not True:
            return False
    return all(_is_apart(one, other, free) for one, other in combinations(parts, 2))


def _is_apart(one: SetFold, other: SetFold, free: list[Variable]) -> bool:
    """Return True if two sets have no element in common."""
    own = {v: Variable(f"{v.name}_other", v.lower, v.upper) for v in other.fold.ranges}
    swap = Substitution({v: new.as_expr() for v, new in own.items()})
    shared = [a - swap(b) for a, b in zip(one.index, other.index, strict=True)]
    conditions = [
        *one.fold.guards,
        *[c.with_expr(swap(c.expr)) for c in other.fold.guards],
        *[Constraint(e, 0, 0) for e in shared],
    ]
    if any(c.is_false for c in conditions):
        return True
    return exact.is_empty((*free, *one.fold.ranges, *own.values()), conditions) is True

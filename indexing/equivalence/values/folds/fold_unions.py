"""Folds over sets: sums of folds over disjoint sets are folds over the union.

A fold combines ``f(z)`` for each ``z`` in a set that depends on the index of the result: a
cumulative window is the set ``z <= i``.  Blocks of the window, such as a sum of whole blocks before
the block of ``i`` and a sum within it, are disjoint sets with the same union.

Sets are relations from the free variables to the elements ``z0, z1, …``
(`indexing.equivalence.values.folds.set_folds`), compared exactly (`simplifier.exact`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import combinations

from indexing.equivalence.values.folds.folds import IDEMPOTENT
from indexing.equivalence.values.folds.set_folds import MAX_PARTS, SetFold, SetFolds
from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.terms.terms import Formula
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.properties import is_injective
from indexing.ops.combiners import COMBINERS
from simplifier import exact
from simplifier.atoms import Variable, variables_in
from simplifier.constraints import Constraint
from simplifier.exact import unions
from simplifier.exact.encode import Relation
from simplifier.linear import Expr, as_expr
from simplifier.substitute import Substitution

Equal = Callable[[Formula, Formula], bool]


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
    folds: SetFolds, limit: int, combiner: str, before: Formula, after: Formula, equal: Equal
) -> bool:
    """Return True if two sums of folds are folds of equal values over equal sets.

    Args:
        limit: the limit on the folds of a sum.
        equal: returns True if two terms are proved equal.
    """
    algebra = folds.algebra
    first = first_unused_element(before.free | after.free)
    sides = [folds.of(combiner, term, first, limit) for term in (before, after)]
    if not all(sides):
        return False
    if _have_equal_unions(algebra, combiner, sides, equal):
        return True
    is_moved = _are_apart_by_constants(sides)
    return is_moved and _have_equal_unions(algebra, combiner, _from_zero(algebra, sides), equal)


def _have_equal_unions(
    algebra: FormulaAlgebra, combiner: str, sides: Sequence[Sequence[SetFold]], equal: Equal
) -> bool:
    """Return True if the folds of two sums have equal values over equal sets."""
    ours, theirs = over_equal_elements(algebra, sides)
    groups: list[tuple[list[SetFold], list[SetFold]]] = []
    for side, parts in enumerate((ours, theirs)):
        for part in parts:
            group = next((g for g in groups if _is_alike((g[0] or g[1])[0], part, equal)), None)
            if group is None:
                group = [], []
                groups.append(group)
            group[side].append(part)
    return all(_equal_sets(algebra, combiner, *group) for group in groups)


def _are_apart_by_constants(sides: Sequence[Sequence[SetFold]]) -> bool:
    """Return True if the elements of two folds have as many values, but begin elsewhere.

    They index closed folds, of which one may have further elements at the ends.
    """
    if any(len(side) != 1 for side in sides):
        return False
    ours, theirs = ([(z.lower, z.size) for z in part.elements] for (part,) in sides)
    return ours != theirs and [size for _, size in ours] == [size for _, size in theirs]


def _from_zero(algebra: FormulaAlgebra, sides: Sequence[Sequence[SetFold]]) -> list[list[SetFold]]:
    """Return folds whose elements are counted from zero."""
    return [[_counted_from_zero(algebra, part) for part in side] for side in sides]


def _counted_from_zero(algebra: FormulaAlgebra, part: SetFold) -> SetFold:
    elements = tuple([Variable(z.name, 0, z.size - 1) for z in part.elements])
    pairs = zip(part.elements, elements, strict=True)
    swap = {z: (new.as_expr() if new.upper else as_expr(0)) + z.lower for z, new in pairs}
    index = tuple([e - z.lower for e, z in zip(part.index, part.elements, strict=True)])
    return replace(part.over(algebra, elements, swap), index=index)


def first_unused_element(variables: Iterable[Variable]) -> int:
    """Return a number from which no variable is named ``z0, z1, …``.

    The value of a fold may have a fold, in which the elements of the outer fold are free.
    """
    used = [int(v.name[1:]) for v in variables if v.name[0] == "z" and v.name[1:].isdecimal()]
    return max(used, default=-1) + 1


def _is_alike(one: SetFold, other: SetFold, equal: Equal) -> bool:
    return len(one.elements) == len(other.elements) and equal(one.value, other.value)


def over_equal_elements(
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
            if wide == part.elements:
                parts.append(part)
                continue
            swap = {z: new.as_expr() for z, new in zip(part.elements, wide, strict=True)}
            parts.append(part.over(algebra, wide, swap))
        widened.append(parts)
    return widened


# ---------------------------------------------------------------- sets


def _equal_sets(
    algebra: FormulaAlgebra, combiner: str, before: list[SetFold], after: list[SetFold]
) -> bool:
    """Return True if the sets of folds of the same value have the same union, each once."""
    if not before or not after or max(len(before), len(after)) > MAX_PARTS:
        return False
    parts = [*before, *after]
    bound = {v for part in parts for v in part.fold.ranges}
    free = sorted(variables_in([e for p in parts for e in _exprs(p)]) - bound, key=_variable_name)
    if len(set(map(_variable_name, free))) < len(free):
        return False  # bounds of equally named variables differ
    ours, theirs = (
        [Relation(tuple(free), p.fold.ranges, p.index, p.fold.guards) for p in side]
        for side in (before, after)
    )
    if unions.only_first(ours, theirs) is not None or unions.only_first(theirs, ours) is not None:
        return False
    return combiner in IDEMPOTENT or all(_is_disjoint(each, free) for each in (before, after))


def _variable_name(variable: Variable) -> str:
    return variable.name


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

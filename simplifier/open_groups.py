"""Groups of constraints about which intervals are inconclusive, with queries for exact answers.

Constraints that share no variable are independent.  A group is open if intervals leave one of
these open: whether it has points, the bounds of its variables, which constraints the others imply,
and the values of floors and sums.  A few sampled points refute most queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import starmap
from math import inf
from typing import NamedTuple, TypeAlias

from simplifier.atoms import Atom, Floor, Variable, variables_in
from simplifier.bounds_queries import BoundsQuery, queries_of
from simplifier.constraints import Constraint
from simplifier.linear import Expr, Term
from simplifier.samples import Samples, extreme_samples

Component: TypeAlias = tuple[Set[Variable], list[Constraint]]


class ConstraintGroup(NamedTuple):
    """Constraints connected by common variables, with queries about expressions of these."""

    variables: tuple[Variable, ...]
    constraints: tuple[Constraint, ...]
    queries: tuple[BoundsQuery, ...]


def open_groups(constraints: Sequence[Constraint], exprs: Sequence[Expr]) -> list[ConstraintGroup]:
    """Return the groups for which intervals are inconclusive."""
    floors = _floors(exprs)
    groups: list[ConstraintGroup] = []
    for group, own in components(constraints, [floor.variables for floor in floors]):
        ours = [floor for floor in floors if floor.variables <= group]
        nonempty = is_known_nonempty(own)
        sums = [e for e in exprs if len(e.parts) > 1 and group >= variables_in([e])]
        if nonempty:
            undivided = [e for e in sums if not e.divides]  # floors decide most of the others
            if _are_exact_by_intervals(ours, undivided, own[0]):
                continue
            if _is_unaffected(in_order(group), own[0], ours, undivided):
                continue
        domain = in_order(group), tuple(own)
        groups.append(ConstraintGroup(*domain, _queries(*domain, ours, sums)))
    return groups


def _is_unaffected(
    variables: tuple[Variable, ...],
    constraint: Constraint,
    floors: Iterable[Floor],
    sums: Iterable[Expr],
) -> bool:
    """Return True if samples show that the only constraint decides no floor, sum or bound."""
    samples = extreme_samples(variables, constraint)
    if samples is None or not all(floor.is_affine for floor in floors):
        return False
    if any(True for floor in floors for _ in queries_of(floor, samples)):
        return False
    return not any(True for _ in _queries_of_sums(sums, samples))


def _queries(
    variables: tuple[Variable, ...],
    constraints: tuple[Constraint, ...],
    floors: Iterable[Floor],
    sums: Iterable[Expr],
) -> tuple[BoundsQuery, ...]:
    """Queries that may decide `floors` and `sums`, without those that samples refute."""
    from simplifier import exact  # loads ISL

    probe = exact.probe(variables, constraints)
    samples = probe and probe.samples
    queries = [
        each for floor in floors if floor.numerator.is_affine for each in queries_of(floor, samples)
    ]
    queries += _queries_of_sums(sums, samples)
    units: dict[Expr, int] = {}
    for expr, unit in queries:
        units[expr] = max(unit, units.get(expr, 1))
    return tuple(starmap(BoundsQuery, units.items()))


def _queries_of_sums(sums: Iterable[Expr], samples: Samples | None) -> Iterator[BoundsQuery]:
    """Queries for the affine `sums` that have one value at the samples."""
    for expr in sums:
        if expr.is_affine and not (samples and len(set(samples.values(expr))) > 1):
            yield BoundsQuery(expr, 1)


def in_order(variables: Iterable[Variable]) -> tuple[Variable, ...]:
    """Return variables in their deterministic order."""
    return tuple(sorted(variables, key=lambda variable: variable.key))


def components(
    constraints: Iterable[Constraint], together: Iterable[Set[Variable]] = ()
) -> list[Component]:
    """Split constraints into components that share no variable.

    Each set of variables in `together` joins the groups that have at least one of them.
    """
    groups: list[Component] = []
    for constraint in constraints:
        _join(groups, variables_in([constraint.expr]), [constraint])
    tied = {v for inside, _ in groups for v in inside}
    for inside in together:
        if len(inside & tied) > 1:
            _join(groups, inside, [])
    return groups


def _join(groups: list[Component], inside: Set[Variable], own: list[Constraint]) -> None:
    """Add a group, joined with the groups that share a variable with it."""
    touched = [group for group in groups if not inside.isdisjoint(group[0])]
    if len(touched) == 1 and touched[0] is groups[-1] and inside <= touched[0][0]:
        touched[0][1].extend(own)
        return
    for group in touched:
        groups.remove(group)
        inside, own = group[0] | inside, [*group[1], *own]
    groups.append((inside, own))


def _floors(exprs: Iterable[Expr]) -> list[Floor]:
    """Every distinct floor in `exprs`, in a deterministic order."""
    pending = [atom for expr in exprs for atom in _composite(expr)]
    floors: dict[Floor, None] = {}
    seen: set[Atom] = set()
    while pending:
        atom = pending.pop()
        if atom in seen:
            continue
        seen.add(atom)
        if isinstance(atom, Floor):
            floors[atom] = None
        if atom.depth > 2:
            pending += [inner for operand in atom.operands for inner in _composite(operand)]
    return list(floors)


def _composite(expr: Expr) -> list[Atom]:
    """The atoms of `expr` that are not variables, in order; ordering keys take time to build."""
    atoms = [atom for atom in expr.parts if atom.operands]
    return atoms if len(atoms) < 2 else [atom for atom, _ in expr.terms if atom.operands]


def _are_exact_by_intervals(
    floors: Iterable[Floor], sums: Iterable[Expr], constraint: Constraint
) -> bool:
    """Return True if intervals derive all effects of `constraint` on `floors` and `sums`.

    `constraint` is known to be nonempty and the only one of its group.  Intervals are exact for
    multiples of the constrained sum, or of the dividend of a congruence, and for expressions with
    at most one variable of the constraint: none if it is an equation, which determines residues.
    """
    inside, residues = variables_in([constraint.expr]), constraint.residues
    known = residues.dividend if residues and residues.is_congruence else constraint.expr
    fewest = 1 if constraint.lower == constraint.upper and not residues else 2
    for floor in floors:
        if len(inside & floor.variables) >= fewest:
            if floor.depth > 2 or not _is_multiple(floor.numerator, known):
                return False
    for expr in sums:
        if len(inside & variables_in([expr])) > 1 and not _is_multiple(expr, known):
            return False
    return _reaches_bounds(constraint)


def _reaches_bounds(constraint: Constraint) -> bool:
    """Return True if intervals prove that each variable reaches its bounds.

    For each value of a variable, the sum of the others then has a value that satisfies the
    constraint: its gaps are no wider than the stated interval, and it covers a period of residues.
    False, too, if the dividend of residues has only one value: intervals miss that of multiples.
    """
    residues = constraint.residues
    known, width = constraint.expr, constraint.upper - constraint.lower
    if residues:
        known, width = residues.dividend, residues.upper - residues.lower
        low, high = residues.round_bounds(known.bounds)
        if low >= high:
            return False
    if len(known.parts) == 1:
        return True
    for atom in known.parts:
        others = [term for term in known.parts.items() if term[0] is not atom]
        if _largest_gap(others) > width + 1:
            return False
        if residues:
            low, high = Expr(dict(others), 0).bounds
            if high - low + width < residues.modulus - 1:
                return False
    return True


def _is_multiple(expr: Expr, unit: Expr) -> bool:
    """Return True if the terms of `expr` are a multiple of those of `unit`."""
    parts = expr.parts
    if parts.keys() != unit.parts.keys():
        return False
    pairs = [(parts[atom], c) for atom, c in unit.parts.items()]
    first, of_unit = pairs[0]
    return all(many * of_unit == first * c for many, c in pairs)


def is_known_nonempty(constraints: Sequence[Constraint]) -> bool:
    """Return True if intervals prove that the normalised `constraints` have points.

    True for an empty list, and for a satisfiable constraint whose sum, or the dividend of whose
    residues, takes every value between its bounds.

    >>> x, y = Variable("x", 0, 9), Variable("y", 0, 3)
    >>> is_known_nonempty([Constraint(x * 4 + y, 3, 3)])
    True
    >>> is_known_nonempty([Constraint(x * 5 + y, 4, 4)])
    False
    """
    if len(constraints) != 1:
        return not constraints
    (constraint,) = constraints
    residues = constraint.residues
    if residues:
        lower, upper = residues.round_bounds(residues.dividend.bounds)
        return lower <= upper and _reaches_all(residues.dividend)
    return not constraint.is_false and _reaches_all(constraint.expr)


def _reaches_all(expr: Expr) -> bool:
    """Return True if a sum of variables takes every value between its bounds."""
    return _largest_gap(expr.parts.items()) <= 1


def _largest_gap(terms: Iterable[Term]) -> int | float:
    """An upper bound of the differences of consecutive values of the sum of `terms`.

    Infinite if an atom is not a variable.
    """
    width = gap = 0
    for atom, coefficient in sorted(terms, key=lambda term: abs(term[1])):
        if not isinstance(atom, Variable):
            return inf
        size = abs(coefficient)
        if size > width + gap:
            gap = size - width
        width += size * (atom.upper - atom.lower)
    return gap

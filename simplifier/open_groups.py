"""Groups of constraints about which intervals are inconclusive, with queries for exact answers.

Constraints that share no variable are independent.  A group is open if intervals leave one of
these open: whether it has points, the bounds of its variables, which constraints the others imply,
and the values of floors of at least two of its variables.  A few sampled points refute most
queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from itertools import starmap
from typing import NamedTuple, TypeAlias

from simplifier.atoms import Atom, Floor, Variable, mentioned
from simplifier.bounds_queries import BoundsQuery, queries_of
from simplifier.constraints import Constraint
from simplifier.linear import Expr
from simplifier.samples import extreme_samples

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
        if nonempty and _are_exact_by_intervals(ours, own[0]):
            continue
        sums: list[Expr] = []
        if not nonempty:
            sums = [e for e in exprs if len(e.parts) > 1 and group >= mentioned([e])]
        domain = in_order(group), tuple(own)
        if nonempty and _is_unaffected(domain[0], own[0], ours):
            continue
        groups.append(ConstraintGroup(*domain, _queries(*domain, ours, sums)))
    return groups


def _is_unaffected(
    variables: tuple[Variable, ...], constraint: Constraint, floors: Iterable[Floor]
) -> bool:
    """Return True if samples show that the only constraint decides no floor and no bound."""
    samples = extreme_samples(variables, constraint)
    if samples is None or not all(floor.is_affine for floor in floors):
        return False
    return not any(True for floor in floors for _ in queries_of(floor, samples))


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
    for expr in sums:
        if expr.is_affine and not (samples and len(set(samples.values(expr))) > 1):
            queries.append(BoundsQuery(expr, 1))
    units: dict[Expr, int] = {}
    for expr, unit in queries:
        units[expr] = max(unit, units.get(expr, 1))
    return tuple(starmap(BoundsQuery, units.items()))


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
        _join(groups, mentioned([constraint.expr]), [constraint])
    tied = {v for inside, _ in groups for v in inside}
    for inside in together:
        if len(inside & tied) > 1:
            _join(groups, inside, [])
    return groups


def _join(groups: list[Component], inside: Set[Variable], own: list[Constraint]) -> None:
    """Add a group, joined with the groups that share a variable with it."""
    for group in [group for group in groups if not inside.isdisjoint(group[0])]:
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


def _are_exact_by_intervals(floors: Iterable[Floor], constraint: Constraint) -> bool:
    """Return True if intervals derive all effects of `constraint` on `floors`.

    `constraint` is known to be nonempty and the only one of its group.  Intervals are exact if a
    numerator has at most one variable of the constraint, or a multiple of the constrained sum.
    `simplifier.rewrite` propagates congruences through every sum.
    """
    inside = mentioned([constraint.expr])
    for floor in floors:
        if len(inside & floor.variables) > 1:
            if floor.depth > 2:
                return False
            if not _has_multiple(floor.numerator, constraint.expr):
                if constraint.residues is None:
                    return False
    return True


def _has_multiple(expr: Expr, part: Expr) -> bool:
    """Return True if some of the terms of `expr` are a multiple of all terms of `part`."""
    terms = expr.parts
    pairs = [(terms.get(atom, 0), c) for atom, c in part.parts.items()]
    first, unit = pairs[0]
    return first != 0 and all(many * unit == first * c for many, c in pairs)


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
        lower, upper = residues.rounded(residues.dividend.bounds)
        return lower <= upper and _reaches_all(residues.dividend)
    return not constraint.is_false and _reaches_all(constraint.expr)


def _reaches_all(expr: Expr) -> bool:
    """Return True if a sum of variables takes every value between its bounds."""
    width = 0
    for atom, coefficient in sorted(expr.parts.items(), key=lambda term: abs(term[1])):
        if not isinstance(atom, Variable) or abs(coefficient) > width + 1:
            return False
        width += abs(coefficient) * (atom.upper - atom.lower)
    return True

"""Refine a constrained box with exact answers where interval arithmetic is inconclusive.

Constraints that share no variable are independent, so they are split into groups.  A group is
queried only if intervals leave one of these open: whether it has points, the bounds of its
variables, which constraints the others imply, and the values of floors of at least two of its
variables.  A few sampled points come first: they refute most queries.  Then a small box is
enumerated with arrays, and ISL decides a large one.

Each ISL query has a budget (`BUDGET`), and one pass refines at most `GROUPS` groups.  Beyond these
limits the box stays as it was: valid, but less simple.  Answers are memoised, exceeded budgets too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import lru_cache
from itertools import starmap
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from simplifier import laws, trace
from simplifier.atoms import Atom, Floor, Variable, mentioned
from simplifier.bounds_queries import BoundsQuery, queries_of
from simplifier.constraints import FALSE, Constraint, sum_bounds
from simplifier.domain import ConstrainedBox, tightened
from simplifier.linear import Expr
from simplifier.samples import extreme_samples
from simplifier.substitute import Substitution
from simplifier.unknown import Unknown
from simplifier.zero_divisor import ZeroDivisorError

if TYPE_CHECKING:
    from simplifier.exact import TightBounds

BUDGET = 2_000  # not `Final`, which compiled modules inline: tests lower it
"""Operations of one ISL query: about a millisecond. A larger budget decides few more queries."""

ATOMS: Final = 12
"""Maximum number of atoms in constraints with divisions; with more, ISL exceeds the budget."""

GROUPS: Final = 4
"""Maximum number of groups that one pass refines."""

Component: TypeAlias = tuple[Set[Variable], list[Constraint]]


class ConstraintGroup(NamedTuple):
    """Constraints connected by common variables, with queries about expressions of these."""

    variables: tuple[Variable, ...]
    constraints: tuple[Constraint, ...]
    queries: tuple[BoundsQuery, ...]


def refined(
    variables: Sequence[Variable], constraints: Sequence[Constraint], exprs: Sequence[Expr]
) -> ConstrainedBox | None:
    """Return an equivalent domain with exact bounds, without implied constraints.

    The result's `implied` constraints bound the floors and sums of `exprs`.  `None` if nothing was
    refined: intervals were exact already, or the budget was exceeded.

    >>> d0, s0 = Variable("d0", 0, 20), Variable("s0", 0, 20)
    >>> value = (d0 + s0 * 2) // 22
    >>> near = Constraint(d0 + s0, 0, 9), Constraint(d0 - s0, 0, 9)
    >>> refined((d0, s0), near, [value]).rebuild((d0, s0))(value)
    Expr('0')
    """
    if not exprs and is_known_nonempty(constraints):
        return None
    groups = _open_groups(constraints, exprs)[:GROUPS]
    narrow: dict[Variable, Variable] = {}
    needless: set[Constraint] = set()
    facts: list[Constraint] = []
    for group in groups:
        refinement = _refinement(group)
        if refinement is None:
            if trace.records:
                trace.record_all(laws.DETECT_EMPTY, group.constraints, "false")
            return ConstrainedBox(tuple(variables), (FALSE,))
        if trace.records:
            _record_refinement(group, refinement)
        narrow.update(zip(group.variables, refinement.variables, strict=True))
        needless.update(set(group.constraints).difference(refinement.constraints))
        facts += [fact for fact in refinement.facts if not fact.is_true]
    if not facts and not needless and all(old is new for old, new in narrow.items()):
        return None
    domain = _narrowed(variables, [c for c in constraints if c not in needless], narrow)
    return replace(domain, implied=_renamed(facts, variables, domain.variables))


def _narrowed(
    variables: Sequence[Variable],
    constraints: Sequence[Constraint],
    narrow: Mapping[Variable, Variable],
) -> ConstrainedBox:
    """The domain with narrower variables."""
    swap = Substitution({old: new.as_expr() for old, new in narrow.items()})
    try:
        left = [replace(c, expr=swap(c.expr)) for c in constraints]
    except ZeroDivisorError:
        return ConstrainedBox(tuple(variables), (FALSE,))
    return tightened([narrow.get(v, v) for v in variables], left)


def _renamed(
    facts: Iterable[Constraint], variables: Iterable[Variable], now: Iterable[Variable]
) -> tuple[Constraint, ...]:
    """Rewrite `facts` in terms of the variables `now`."""
    pairs = zip(variables, now, strict=True)
    rename = Substitution({old: new.as_expr() for old, new in pairs if old is not new})
    return tuple([replace(fact, expr=rename(fact.expr)) for fact in facts])


def _record_refinement(group: ConstraintGroup, refinement: Refinement) -> None:
    """Record exact bounds and dropped constraints for `simplifier.trace`."""
    known = " and ".join(map(str, group.constraints))
    exact = [c for c in refinement.facts if not c.is_true]
    for old, new in zip(group.variables, refinement.variables, strict=True):
        if old is not new:
            exact.append(Constraint(old.expr, *new.bounds))
    for bound in exact:
        trace.record(laws.REFINE_BOUNDS, known, bound)
    if len(refinement.constraints) < len(group.constraints):
        after = " and ".join(map(str, refinement.constraints)) or "true"
        trace.record(laws.DROP_IMPLIED, known, after)


class Refinement(NamedTuple):
    """Exact facts about a group.

    Attributes:
        variables: the variables of the group, with the bounds that they reach.
        constraints: the constraints that the others do not imply.
        facts: bounds of the queried expressions that have one value.
    """

    variables: tuple[Variable, ...]
    constraints: tuple[Constraint, ...]
    facts: tuple[Constraint, ...]


def _refinement(group: ConstraintGroup) -> Refinement | None:
    """Refine `group` within the budget; `None` if it has no points."""
    refinement = _within_budget(group._replace(queries=()), BUDGET)
    if group.queries and not isinstance(refinement, Unknown):  # else the queries exceed it too
        refinement = _within_budget(group, BUDGET)
    if not isinstance(refinement, Unknown):
        return refinement
    variables, constraints, _ = group
    if _is_empty(variables, constraints, BUDGET) is True:
        return None
    return Refinement(variables, constraints, ())


@lru_cache(maxsize=1 << 9)
def _within_budget(group: ConstraintGroup, budget: int) -> Refinement | Unknown | None:
    """Refine `group` and answer its queries; `None` if it has no points."""
    from simplifier import exact

    variables, constraints, queries = group
    probe = exact.probe(variables, constraints)
    constrained = sum_bounds(constraints)
    open_queries = [
        query
        for query in queries
        if not query.has_one_value(constrained.get(query.expr.identity[0]))
    ]
    if probe:
        open_queries = [query for query in open_queries if not probe.varies(*query)]
        if probe.is_tight and not open_queries:
            return Refinement(variables, constraints, ())
    exprs = tuple([expr for expr, _ in open_queries])
    tight = _tight_bounds(variables, constraints, exprs, budget)
    if tight is None or isinstance(tight, Unknown):
        return tight
    facts = [
        Constraint(expr, lower, upper)
        for (expr, unit), (lower, upper) in zip(open_queries, tight.exprs, strict=True)
        if lower // unit == upper // unit
    ]
    narrow = [Variable(v.name, *b) for v, b in zip(variables, tight.variables, strict=True)]
    return Refinement(tuple(narrow), tight.constraints, tuple(facts))


def _tight_bounds(
    variables: tuple[Variable, ...],
    constraints: tuple[Constraint, ...],
    exprs: tuple[Expr, ...],
    budget: int,
) -> TightBounds | Unknown | None:
    """Enumerate a small box, or query ISL."""
    from simplifier import exact

    if exact.should_enumerate(variables, constraints):
        return exact.enumerated_tight_bounds(variables, constraints, exprs)
    if sum([c.expr.weight for c in constraints if c.expr.divides]) > ATOMS:
        return Unknown("too many divisions for the budget")
    return exact.tight_bounds(variables, constraints, exprs, budget=budget)


@lru_cache(maxsize=1 << 8)
def _is_empty(
    variables: tuple[Variable, ...], constraints: tuple[Constraint, ...], budget: int
) -> bool | Unknown:
    from simplifier import exact

    if exact.probe(variables, constraints) is not None:
        return False
    if exact.should_enumerate(variables, constraints):
        return exact.enumerated_is_empty(variables, constraints)
    return exact.is_empty(variables, constraints, budget=budget)


def _open_groups(constraints: Sequence[Constraint], exprs: Sequence[Expr]) -> list[ConstraintGroup]:
    """Return the groups for which intervals are inconclusive."""
    floors = _floors(exprs)
    open_groups: list[ConstraintGroup] = []
    for group, own in _components(constraints, [floor.variables for floor in floors]):
        ours = [floor for floor in floors if floor.variables <= group]
        nonempty = is_known_nonempty(own)
        if nonempty and _are_exact_by_intervals(ours, own[0]):
            continue
        sums: list[Expr] = []
        if not nonempty:
            sums = [e for e in exprs if len(e.parts) > 1 and group >= mentioned([e])]
        domain = _sorted(group), tuple(own)
        if nonempty and _is_unaffected(domain[0], own[0], ours):
            continue
        open_groups.append(ConstraintGroup(*domain, _queries(*domain, ours, sums)))
    return open_groups


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


def _sorted(variables: Iterable[Variable]) -> tuple[Variable, ...]:
    return tuple(sorted(variables, key=lambda variable: variable.key))


def _components(
    constraints: Iterable[Constraint], together: Iterable[Set[Variable]] = ()
) -> list[Component]:
    """Split constraints into groups that share no variable.

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


def has_points(constraints: Iterable[Constraint]) -> bool | None:
    """Return True if a point satisfies `constraints`, `None` if the budget does not suffice."""
    left = [(_sorted(inside), tuple(own)) for inside, own in _components(constraints)]
    left = [group for group in left if not is_known_nonempty(group[1])]
    answers = [_is_empty(*group, BUDGET) for group in left[:GROUPS]]
    if any(answer is True for answer in answers):
        return False
    decided = len(left) <= GROUPS and all(answer is False for answer in answers)
    return True if decided else None


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

"""The second tier: exact answers about a domain, where intervals could not tell.

Constraints fall into groups that share no variable.  A question about a group is queries only if
intervals leave something open there: whether it has points, how far its variables reach, which of
its constraints the others imply, and what divisions do that depend on two of its variables at
least.  All points of a small box are looked at; ISL is queries about a large one; and nothing is
queries where some points that were picked show that no answer would help.

ISL has a budget for a question (`BUDGET`), and one pass asks about `GROUPS` groups at most.  Beyond
that the domain stays as it was: valid, only less simple.  Answers are remembered, also that the
budget did not suffice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import starmap
from math import gcd
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from simplifier import laws, trace
from simplifier.atoms import Atom, Floor, Variable
from simplifier.constraints import FALSE, Constraint, sum_bounds
from simplifier.divmod import floor_mod
from simplifier.domain import ConstrainedBox, tightened
from simplifier.interval import Interval
from simplifier.linear import Expr
from simplifier.residues import residues_of
from simplifier.substitute import Substitution
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    from simplifier.exact import Samples, TightBounds

BUDGET: Final = 2_000
"""Operations of isl for one question: a millisecond; few questions have an answer later."""

ATOMS: Final = 12
"""In constraints that divide: about groups with more isl has no answer within that budget."""

GROUPS: Final = 4
"""Questions in one pass."""

Component: TypeAlias = tuple[set[Variable], list[Constraint]]


class BoundsQuery(NamedTuple):
    """Query for the bounds of `expr`, used if ``expr floordiv unit`` has only one value."""

    expr: Expr
    unit: int

    def has_one_value(self, bounds: Interval | None) -> bool:
        """It has, if the terms of the expression have these bounds, which a constraint says."""
        if bounds is None:
            return False
        low, high = bounds[0] + self.expr.constant, bounds[1] + self.expr.constant
        return low // self.unit == high // self.unit


class ConstraintGroup(NamedTuple):
    """Constraints that share variables, directly or through others, and what is queries there."""

    variables: tuple[Variable, ...]
    constraints: tuple[Constraint, ...]
    queries: tuple[BoundsQuery, ...]


def refined(
    variables: Sequence[Variable], constraints: Sequence[Constraint], exprs: Sequence[Expr]
) -> ConstrainedBox | None:
    """The same points with exact bounds and without implied constraints; facts about `exprs`.

    `None` where intervals know all of it already, or the budget does not suffice to know more.

    >>> d0, s0 = Variable("d0", 0, 20), Variable("s0", 0, 20)
    >>> value = (d0 + s0 * 2) // 22
    >>> near = Constraint(d0 + s0, 0, 9), Constraint(d0 - s0, 0, 9)
    >>> refined((d0, s0), near, [value]).rebuild((d0, s0))(value)
    Expr('0')
    """
    groups = _open_groups(constraints, exprs)[:GROUPS]
    narrow: dict[Variable, Variable] = {}
    needless: set[Constraint] = set()
    facts: list[Constraint] = []
    for group in groups:
        refinement = _refinement(group)
        if refinement is None:
            if trace.records:
                trace.note_all(laws.DETECT_EMPTY, group.constraints, "false")
            return ConstrainedBox(tuple(variables), (FALSE,))
        if trace.records:
            _note_refinement(group, refinement)
        narrow.update(zip(group.variables, refinement.variables, strict=True))
        needless.update(set(group.constraints).difference(refinement.constraints))
        facts += [fact for fact in refinement.facts if not fact.is_true]
    if not facts and not needless and all(old is new for old, new in narrow.items()):
        return None
    swap = Substitution({old: new.as_expr() for old, new in narrow.items()})
    left = [replace(c, expr=swap(c.expr)) for c in constraints if c not in needless]
    domain = tightened([narrow.get(v, v) for v in variables], left)
    return replace(domain, implied=_renamed(facts, variables, domain.variables))


def _renamed(
    facts: Iterable[Constraint], variables: Iterable[Variable], now: Iterable[Variable]
) -> tuple[Constraint, ...]:
    """The facts in the variables as they are `now`."""
    pairs = zip(variables, now, strict=True)
    rename = Substitution({old: new.as_expr() for old, new in pairs if old is not new})
    return tuple([replace(fact, expr=rename(fact.expr)) for fact in facts])


def _note_refinement(group: ConstraintGroup, refinement: Refinement) -> None:
    """Record exact bounds, and the constraints that the others imply."""
    known = " and ".join(map(str, group.constraints))
    exact = [c for c in refinement.facts if not c.is_true]
    for old, new in zip(group.variables, refinement.variables, strict=True):
        if old is not new:
            exact.append(Constraint(old.expr, *new.bounds))
    for bound in exact:
        trace.note(laws.REFINE_BOUNDS, known, bound)
    if len(refinement.constraints) < len(group.constraints):
        after = " and ".join(map(str, refinement.constraints)) or "true"
        trace.note(laws.DROP_IMPLIED, known, after)


class Refinement(NamedTuple):
    """What is known of a group: its variables in the bounds they reach, those of its constraints
    that do not follow from others, and what decides floors."""

    variables: tuple[Variable, ...]
    constraints: tuple[Constraint, ...]
    facts: tuple[Constraint, ...]


def _refinement(group: ConstraintGroup) -> Refinement | None:
    """What the budget suffices to learn of a group; `None` where it has no points."""

    found = _survey(group._replace(queries=()), BUDGET)
    if group.queries and not isinstance(found, Unknown):  # else more is undecided, too
        found = _survey(group, BUDGET)
    if not isinstance(found, Unknown):
        return found
    variables, constraints, _ = group
    if _is_empty(variables, constraints, BUDGET) is True:
        return None
    return Refinement(variables, constraints, ())


@lru_cache(maxsize=1 << 12)
def _survey(group: ConstraintGroup, budget: int) -> Refinement | Unknown | None:
    """`None` where the group has no points."""
    from simplifier import exact

    variables, constraints, queries = group
    probe = exact.probe(variables, constraints)
    said = sum_bounds(constraints)
    left = [each for each in queries if not each.has_one_value(said.get(each.expr.identity[0]))]
    if probe:
        left = [each for each in left if not probe.varies(*each)]
        if probe.is_tight and not left:
            return Refinement(variables, constraints, ())
    found = _exact_survey(variables, constraints, tuple([expr for expr, _ in left]), budget)
    if found is None or isinstance(found, Unknown):
        return found
    facts = [
        Constraint(expr, low, high)
        for (expr, unit), (low, high) in zip(left, found.exprs, strict=True)
        if low // unit == high // unit
    ]
    narrow = [Variable(v.name, *b) for v, b in zip(variables, found.variables, strict=True)]
    return Refinement(tuple(narrow), found.constraints, tuple(facts))


def _exact_survey(
    variables: tuple[Variable, ...],
    constraints: tuple[Constraint, ...],
    exprs: tuple[Expr, ...],
    budget: int,
) -> TightBounds | Unknown | None:
    """From all points of a small box, else from ISL."""
    from simplifier import exact

    if exact.should_enumerate(variables, constraints):
        return exact.enumerated_tight_bounds(variables, constraints, exprs)
    if sum([c.expr.weight for c in constraints if c.expr.divides]) > ATOMS:
        return Unknown("too many divisions for the budget")
    return exact.tight_bounds(variables, constraints, exprs, budget=budget)


@lru_cache(maxsize=1 << 12)
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
    """The groups about which intervals leave something open."""
    floors = [(floor, set(floor.numerator.variables())) for floor in _floors(exprs)]
    found: list[ConstraintGroup] = []
    for group, own in _components(constraints, [inside for _, inside in floors]):
        ours = [floor for floor, inside in floors if inside <= group]
        settled = is_settled(own)
        if settled and all(_is_followed(floor, own[0]) for floor in ours):
            continue
        sums: list[Expr] = []
        if not settled:
            sums = [e for e in exprs if len(e.parts) > 1 and group.issuperset(e.variables())]
        domain = _sorted(group), tuple(own)
        found.append(ConstraintGroup(*domain, _queries(*domain, ours, sums)))
    return found


def _queries(
    variables: tuple[Variable, ...],
    constraints: tuple[Constraint, ...],
    floors: Iterable[Floor],
    sums: Iterable[Expr],
) -> tuple[BoundsQuery, ...]:
    """What may decide `floors`, and whether `sums` have one value; not what a few points refute."""
    from simplifier import exact  # loads ISL

    probe = exact.probe(variables, constraints)
    samples = probe and probe.samples
    queries = [
        each
        for floor in floors
        if floor.numerator.is_affine
        for each in _queries_of(floor, samples)
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
    constraints: Iterable[Constraint], together: Iterable[set[Variable]] = ()
) -> list[Component]:
    """The constraints in groups that share no variable.

    Groups of which a set in `together` has variables are one.
    """
    groups: list[Component] = []
    for constraint in constraints:
        _join(groups, set(constraint.expr.variables()), [constraint])
    tied = {v for inside, _ in groups for v in inside}
    for inside in together:
        if len(inside & tied) > 1:
            _join(groups, inside, [])
    return groups


def _join(groups: list[Component], inside: set[Variable], own: list[Constraint]) -> None:
    """Adds a group, made one with those that share a variable with it."""
    for group in [group for group in groups if not inside.isdisjoint(group[0])]:
        groups.remove(group)
        inside, own = group[0] | inside, [*group[1], *own]
    groups.append((inside, own))


def _floors(exprs: Iterable[Expr]) -> Iterator[Floor]:
    """Each floor in `exprs` once."""
    pending: list[Atom] = [atom for expr in exprs for atom, _ in expr.terms]
    seen: set[Atom] = set()
    while pending:
        atom = pending.pop()
        if atom in seen:
            continue
        seen.add(atom)
        if isinstance(atom, Floor):
            yield atom
        pending += [inner for operand in atom.operands for inner, _ in operand.terms]


def _queries_of(floor: Floor, samples: Samples | None) -> Iterator[BoundsQuery]:
    """What decides a floor, by the laws of `simplifier.divmod` and `simplifier.rewrite`."""
    numerator, divisor = floor.numerator, floor.divisor
    values = samples.values(numerator) if samples else [0]
    if len({value % divisor for value in values}) == 1:
        yield BoundsQuery(floor_mod(numerator, divisor), 1)
    if len(numerator.parts) > 1 and len({value // divisor for value in values}) == 1:
        yield BoundsQuery(numerator, divisor)
    for factor in {gcd(c, divisor) for c in numerator.parts.values()} - {1}:
        lacking = {atom: c for atom, c in numerator.parts.items() if c % factor}
        if len(lacking) > 1:
            rest = Expr(lacking, 0)
            values = samples.values(rest) if samples else [0]
            if len({value // factor for value in values}) == 1:
                yield BoundsQuery(rest, factor)


def _is_followed(floor: Floor, constraint: Constraint) -> bool:
    """Intervals follow what `constraint`, which is settled and alone, says of the floor.

    They do if the numerator has one variable of it, or a multiple of the whole sum that it bounds;
    and a congruence they follow through every sum (`simplifier.rewrite`).
    """
    numerator, bounded = floor.numerator.parts, constraint.expr.parts
    if len(set(constraint.expr.variables()).intersection(floor.numerator.variables())) < 2:
        return True
    if not all(isinstance(atom, Variable) for atom in numerator):
        return False
    shared = [Fraction(numerator[atom], c) for atom, c in bounded.items() if atom in numerator]
    whole = len(shared) == len(bounded) and len(set(shared)) == 1
    return whole or residues_of(constraint.expr, constraint.bounds) is not None


def has_points(constraints: Iterable[Constraint]) -> bool | None:
    """Some point satisfies them; `None` where that is beyond the budget to decide."""
    left = [(_sorted(inside), tuple(own)) for inside, own in _components(constraints)]
    left = [group for group in left if not is_settled(group[1])]
    answers = [_is_empty(*group, BUDGET) for group in left[:GROUPS]]
    if any(answer is True for answer in answers):
        return False
    decided = len(left) <= GROUPS and all(answer is False for answer in answers)
    return True if decided else None


def is_settled(constraints: Sequence[Constraint]) -> bool:
    """Intervals alone show that these constraints, which are normalised, have points.

    One constraint is on a sum, or on residues of a sum, that reaches every number between the
    bounds that its terms give it.

    >>> x, y = Variable("x", 0, 9), Variable("y", 0, 3)
    >>> is_settled([Constraint(x * 4 + y, 3, 3)]), is_settled([Constraint(x * 5 + y, 4, 4)])
    (True, False)
    """
    if len(constraints) != 1:
        return not constraints
    (constraint,) = constraints
    residues = residues_of(constraint.expr, constraint.bounds)
    if residues:
        low, high = residues.rounded(residues.dividend.bounds)
        return low <= high and _reaches_all(residues.dividend)
    return not constraint.is_false and _reaches_all(constraint.expr)


def _reaches_all(expr: Expr) -> bool:
    """Every number between its bounds is a value of this sum of variables."""
    reach = 0
    for atom, coefficient in sorted(expr.terms, key=lambda term: abs(term[1])):
        if not isinstance(atom, Variable) or abs(coefficient) > reach + 1:
            return False
        reach += abs(coefficient) * (atom.upper - atom.lower)
    return True

"""Refine a constrained box with exact answers where interval arithmetic is inconclusive.

The groups of constraints that intervals leave open (`simplifier.open_groups`) are queried: a small
box is enumerated with arrays, and ISL decides a large one.

Each ISL query has a budget (`BUDGET`), and one pass refines at most `GROUPS` groups.  Beyond these
limits the box stays as it was: valid, but less simple.  Answers are memoised, exceeded budgets too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from simplifier import laws, trace
from simplifier.atoms import Variable, variables_in
from simplifier.bounds_queries import BoundsQuery
from simplifier.constraints import FALSE, Constraint, sum_bounds
from simplifier.domain import ConstrainedBox, drop_implied, narrow, with_narrower
from simplifier.interval import Interval
from simplifier.linear import Expr
from simplifier.open_groups import (
    ConstraintGroup,
    components,
    in_order,
    is_known_nonempty,
    open_groups,
)
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


def refine(
    variables: Sequence[Variable], constraints: Sequence[Constraint], exprs: Sequence[Expr]
) -> ConstrainedBox | None:
    """Return an equivalent domain with exact bounds, without implied constraints.

    The result's `implied` constraints bound the floors and sums of `exprs`.  `None` if nothing was
    refined: intervals were exact already, or the budget was exceeded.

    >>> d0, s0 = Variable("d0", 0, 20), Variable("s0", 0, 20)
    >>> value = (d0 + s0 * 2) // 22
    >>> near = Constraint(d0 + s0, 0, 9), Constraint(d0 - s0, 0, 9)
    >>> refine((d0, s0), near, [value]).rebuild((d0, s0))(value)
    Expr('0')
    """
    if not exprs and is_known_nonempty(constraints):
        return None
    pairs = _refinements(open_groups(constraints, exprs)[:GROUPS])
    if pairs is None:
        return ConstrainedBox(tuple(variables), (FALSE,))
    facts = [fact for _, now in pairs for fact in now.facts]
    narrow, left = _narrower(pairs), _irredundant(constraints, pairs)
    if not narrow and len(left) == len(constraints):
        return ConstrainedBox(tuple(variables), left, tuple(facts)) if facts else None
    domain = _with_exact_bounds(variables, left, narrow)
    if len(pairs) == 1:
        _keep_probe(*pairs[0], domain)
    implied = _rename_facts(facts, variables, domain.variables)
    return ConstrainedBox(domain.variables, domain.constraints, implied)


def _refinements(
    groups: Iterable[ConstraintGroup],
) -> list[tuple[ConstraintGroup, Refinement]] | None:
    """Each group with its refinement; `None` if one has no points."""
    pairs: list[tuple[ConstraintGroup, Refinement]] = []
    for group in groups:
        now = _refinement(group)
        if now is None:
            if trace.records:
                trace.record_all(laws.DETECT_EMPTY, group.constraints, "false")
            return None
        if trace.records:
            _record_refinement(group, now)
        pairs.append((group, now))
    return pairs


def _narrower(pairs: Iterable[tuple[ConstraintGroup, Refinement]]) -> dict[Variable, Variable]:
    """The variables of groups that their refinements narrow, each with the narrower one."""
    narrow: dict[Variable, Variable] = {}
    for group, now in pairs:
        for old, new in zip(group.variables, now.variables, strict=True):
            if old is not new:
                narrow[old] = new
    return narrow


def _irredundant(
    constraints: Iterable[Constraint], pairs: Iterable[tuple[ConstraintGroup, Refinement]]
) -> tuple[Constraint, ...]:
    """The constraints without those that the refinements of groups do not need."""
    needless: set[Constraint] = set()
    for group, now in pairs:
        if len(now.constraints) < len(group.constraints):
            needless.update(group.constraints)
            needless.difference_update(now.constraints)
    return tuple([c for c in constraints if c not in needless])


def _keep_probe(group: ConstraintGroup, now: Refinement, domain: ConstrainedBox) -> None:
    """Keep the points of `group`, if it was enumerated, for the next query about `domain`.

    Only if each of its irredundant constraints and each of its variables is still in `domain`.
    """
    from simplifier import exact

    inside = set(now.variables)
    own = [c for c in domain.constraints if not inside.isdisjoint(variables_in([c.expr]))]
    if len(own) == len(now.constraints) and inside == variables_in([c.expr for c in own]):
        if exact.should_enumerate(group.variables, group.constraints):
            enumerated = group.variables, group.constraints
            exact.keep_probe(now.variables, tuple(own), enumerated=enumerated)


def tightened_exactly(
    variables: Sequence[Variable], constraints: Sequence[Constraint]
) -> ConstrainedBox:
    """Return `simplifier.domain.tighten`, `refine` where intervals are inconclusive."""
    domain = _drop_implied(narrow(variables, constraints))
    if not domain.constraints or domain.is_known_empty:
        return domain
    return refine(domain.variables, domain.constraints, ()) or domain


def _drop_implied(domain: ConstrainedBox) -> ConstrainedBox:
    """`drop_implied`, unless the next enumeration drops implied constraints."""
    return domain if _is_enumerated(domain) else drop_implied(domain)


def _is_enumerated(domain: ConstrainedBox) -> bool:
    """Return True if `refine` enumerates each group of at least two constraints.

    There are at most as many groups as variables.  A group may be one of undivided constraints.
    """
    variables, constraints = domain.variables, domain.constraints
    if len(constraints) < 2 or len(variables) > GROUPS:
        return False
    from simplifier import exact  # loads ISL

    undivided = [c for c in constraints if not c.expr.divides]
    parts = (constraints, undivided)
    return all(exact.should_enumerate(variables, part) for part in parts)


def _with_exact_bounds(
    variables: Sequence[Variable],
    constraints: tuple[Constraint, ...],
    narrow: Mapping[Variable, Variable],
) -> ConstrainedBox:
    """The domain with narrower variables: exact bounds, which need no propagation."""
    now = tuple([narrow.get(v, v) for v in variables])
    try:
        domain = ConstrainedBox(now, with_narrower(constraints, narrow))
    except ZeroDivisorError:
        return ConstrainedBox(now, (FALSE,))
    return _drop_implied(domain)


def _rename_facts(
    facts: Iterable[Constraint], variables: Iterable[Variable], now: Iterable[Variable]
) -> tuple[Constraint, ...]:
    """Rewrite `facts` in terms of the variables `now`."""
    pairs = zip(variables, now, strict=True)
    rename = Substitution({old: new.as_expr() for old, new in pairs if old is not new})
    return tuple([fact.with_expr(rename(fact.expr)) for fact in facts])


def _record_refinement(group: ConstraintGroup, refinement: Refinement) -> None:
    """Record exact bounds and dropped constraints for `simplifier.trace`."""
    known = " and ".join(map(str, group.constraints))
    pairs = zip(group.variables, refinement.variables, strict=True)
    reached = [Constraint(old.expr, *new.bounds) for old, new in pairs if old is not new]
    for bound in [*refinement.facts, *reached]:
        trace.record(laws.REFINE_BOUNDS, known, bound)
    if len(refinement.constraints) < len(group.constraints):
        after = " and ".join(map(str, refinement.constraints)) or "true"
        trace.record(laws.DROP_IMPLIED, known, after)


class Refinement(NamedTuple):
    """Exact facts about a group.

    Attributes:
        variables: the variables of the group, with the bounds that they reach.
        constraints: the constraints that the others do not imply.
        facts: bounds of the queried expressions that have one value, unless intervals give them.
    """

    variables: tuple[Variable, ...]
    constraints: tuple[Constraint, ...]
    facts: tuple[Constraint, ...]


def _refinement(group: ConstraintGroup) -> Refinement | None:
    """Refine `group` within the budget; `None` if it has no points."""
    variables, constraints, queries = group
    refinement = _within_budget(ConstraintGroup(variables, constraints, ()), BUDGET)
    if queries and not isinstance(refinement, Unknown):  # else the queries exceed it too
        refinement = _within_budget(group, BUDGET)
    if not isinstance(refinement, Unknown):
        return refinement
    if _is_empty(variables, constraints, BUDGET) is True:
        return None
    return Refinement(variables, constraints, ())


@lru_cache(maxsize=1 << 9)
def _within_budget(group: ConstraintGroup, budget: int) -> Refinement | Unknown | None:
    """Refine `group` and answer its queries; `None` if it has no points."""
    from simplifier import exact

    variables, constraints, queries = group
    probe = exact.probe(variables, constraints)
    constrained = sum_bounds(constraints) if queries else {}
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
    narrow = [Variable(v.name, *b) for v, b in zip(variables, tight.variables, strict=True)]
    return Refinement(tuple(narrow), tight.constraints, _facts(open_queries, tight.exprs))


def _facts(
    queries: Iterable[BoundsQuery], exact_bounds: Iterable[Interval]
) -> tuple[Constraint, ...]:
    """The bounds that decide a query, unless intervals give them."""
    pairs = zip(queries, exact_bounds, strict=True)
    facts = [Constraint(q.expr, *own) for q, own in pairs if own[0] // q.unit == own[1] // q.unit]
    return tuple([fact for fact in facts if not fact.is_true])


def _tight_bounds(
    variables: tuple[Variable, ...],
    constraints: tuple[Constraint, ...],
    exprs: tuple[Expr, ...],
    budget: int,
) -> TightBounds | Unknown | None:
    """Take the bounds from all points if they are at hand; enumerate a small box, or query ISL."""
    from simplifier import exact

    known = exact.probed_tight_bounds(variables, constraints, exprs)
    if known is not None:
        return known
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


def has_points(constraints: Iterable[Constraint]) -> bool | None:
    """Return True if a point satisfies `constraints`, `None` if the budget does not suffice."""
    left = [(in_order(inside), tuple(own)) for inside, own in components(constraints)]
    left = [group for group in left if not is_known_nonempty(group[1])]
    answers = [_is_empty(*group, BUDGET) for group in left[:GROUPS]]
    if any(answer is True for answer in answers):
        return False
    decided = len(left) <= GROUPS and all(answer is False for answer in answers)
    return True if decided else None

"""The simplest form of a map: tight bounds, simple results, only the variables that matter.

Intervals do nearly everything (`simplifier.domain`).  ISL is asked only whether a domain that still
has constraints is empty, where dropping a variable depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

from indexing.compose import composed
from indexing.map import IndexingMap, RuntimeVariable
from simplifier.constraints import Constraint
from simplifier.domain import Domain, tightened
from simplifier.linear import Expr, Variable
from simplifier.mods import split
from simplifier.substitute import Substitution


class CertificateError(AssertionError):
    """A simplified map is not proved equal to its original; the message has both and a witness."""


def certified(original: IndexingMap, simple: IndexingMap) -> IndexingMap:
    """`simple`, proved with ISL to be the same relation as `original`.

    Raises:
        CertificateError: with a witness where the two differ, or because of the budget.
    """
    from indexing.relation import UndecidedError, difference

    try:
        found = difference(original, simple)
    except UndecidedError as error:
        raise CertificateError(f"{simple}\nis not proved equal to\n{original}\n{error}") from None
    if found is not None:
        raise CertificateError(f"{simple}\nis not equal to\n{original}\n{found}")
    return simple


class Rewrite(NamedTuple):
    """One step of a simplification: what was done, and the map before and after it."""

    law: str
    before: IndexingMap
    after: IndexingMap

    def __str__(self) -> str:
        return f"{self.law}:\n  {self.before}\n  {self.after}"


def traced(original: IndexingMap) -> Iterator[Rewrite]:
    """The steps by which `simplified` gets to its result, those that change something."""
    before = original
    for law, step in STEPS:
        after = step(before)
        if after != before:
            yield Rewrite(law, before, after)
        before = after


def composed_and_simplified(first: IndexingMap, second: IndexingMap) -> IndexingMap:
    """``first.then(second).simplify()``, remembered: programs repeat themselves.

    Runtime variables lead to a module's instructions, which no memory shall keep alive.
    """
    if first.runtime or second.runtime:
        return _simplified(composed(first, second))
    return _composed_and_simplified(first, second)


@lru_cache(maxsize=1 << 14)
def _composed_and_simplified(first: IndexingMap, second: IndexingMap) -> IndexingMap:
    return simplified(composed(first, second))


def simplified(original: IndexingMap) -> IndexingMap:
    """The same relation in its simplest form; see `IndexingMap.simplify`."""
    return _simplified(original) if original.runtime else _simplified_once(original)


@lru_cache(maxsize=1 << 14)
def _simplified_once(original: IndexingMap) -> IndexingMap:
    return _simplified(original)


def _simplified(original: IndexingMap) -> IndexingMap:
    current = original
    for _, step in STEPS:
        current = step(current)
    return current


def _tightened(original: IndexingMap) -> IndexingMap:
    """The same points with tight bounds and few constraints, and what follows for the results."""
    if original.is_known_empty:
        return IndexingMap.empty(original.dims, len(original.results))
    domain = tightened(original.variables, original.constraints)
    if domain.is_known_empty:
        return IndexingMap.empty(original.dims, len(original.results))
    return _on_domain(original, domain)


def _on_domain(original: IndexingMap, domain: Domain) -> IndexingMap:
    """`original` with the variables and constraints of `domain`, and results simplified there.

    Constraints are never simplified by facts that they state themselves: those of `domain` know
    only the bounds of variables.
    """
    if not domain.replaced and not domain.constraints and not original.constraints:
        return original
    rebuild = domain.rebuild()
    now = dict(zip(original.variables, domain.variables, strict=True))
    return IndexingMap(
        tuple([now[v] for v in original.dims]),
        tuple([now[v] for v in original.ranges]),
        tuple(
            [
                replace(rt, variable=now[rt.variable], index=tuple(map(rebuild, rt.index)))
                for rt in original.runtime
            ]
        ),
        tuple([rebuild(result) for result in original.results]),
        domain.constraints,
        original.grade,
    )


def without_unused(current: IndexingMap) -> IndexingMap:
    """Drops the ranges and runtime variables on which no result depends.

    Variables that share a constraint stand or fall together.  A group that no result, dimension or
    kept variable depends on is dropped if its constraints have a solution; without one the whole
    map is empty.
    """
    free = [*current.ranges, *[rt.variable for rt in current.runtime]]
    if not free:
        return current
    if current.is_known_empty:
        return IndexingMap.empty(current.dims, len(current.results))
    used = _used(current)
    if all(v in used for v in free):
        return current
    loose = [c for c in current.constraints if not any(v in used for v in c.expr.variables())]
    if loose and not _has_points(loose):
        return IndexingMap.empty(current.dims, len(current.results))
    return replace(
        current,
        ranges=tuple([v for v in current.ranges if v in used]),
        runtime=tuple([rt for rt in current.runtime if rt.variable in used]),
        constraints=tuple([c for c in current.constraints if c not in loose]),
    )


def _used(current: IndexingMap) -> set[Variable]:
    """The variables that the relation depends on.

    A runtime variable has one value, it does not range over its bounds: what is read depends on it
    also where only a constraint, or a bound that is narrower than its clamp, mentions it.  One that
    can have only one value is listed by the op that takes it, and left out by composition.
    """
    index_of = {rt.variable: rt.index for rt in current.runtime}
    tied = [set(c.expr.variables()) for c in current.constraints]
    used = {v for result in current.results for v in result.variables()} | set(current.dims)
    used |= {v for group in tied for v in group if v in index_of}
    used |= {rt.variable for rt in current.runtime if rt.clamp not in (None, rt.variable.bounds)}
    used |= {rt.variable for rt in current.runtime if rt.is_fixed}
    while True:
        size = len(used)
        for group in tied:
            if not used.isdisjoint(group):
                used |= group
        for variable in [v for v in used if v in index_of]:
            used.update(v for expr in index_of[variable] for v in expr.variables())
        if len(used) == size:
            return used


def rescaled(original: IndexingMap) -> IndexingMap:
    """Range variables with a constraint ``(±s + c) mod k == r`` replaced; see
    `IndexingMap.rescale`.

    Runtime variables stay: their value is that of their source, not a multiple of it.
    """
    current = simplified(original)
    for constraint in current.constraints:
        found = _congruence(constraint)
        if found is None or found[0] not in current.ranges:
            continue
        old, step, first = found
        new = Variable(old.name, -(-(old.lower - first) // step), (old.upper - first) // step)
        values = {old: new * step + first}
        results, constraints = current.substituted(values)
        swap = Substitution(values)
        return rescaled(
            IndexingMap.of(
                current.dims,
                results,
                ranges=[new if v is old else v for v in current.ranges],
                runtime=[replace(rt, index=tuple(map(swap, rt.index))) for rt in current.runtime],
                constraints=constraints,
                grade=current.grade,
            )
        )
    return current


def _congruence(constraint: Constraint) -> tuple[Variable, int, int] | None:
    """``(s, k, r)`` for a constraint that says no more than ``s mod k == r``."""
    mods, rest = split(constraint.expr)
    if constraint.lower != constraint.upper or len(mods) != 1 or rest.terms:
        return None
    coefficient, dividend, modulus = mods[0]
    if len(dividend.terms) != 1 or abs(coefficient) != 1:
        return None
    atom, sign = dividend.terms[0]
    if not isinstance(atom, Variable) or abs(sign) != 1:
        return None
    remainder = (constraint.lower - rest.constant) * coefficient
    return atom, modulus, (remainder - dividend.constant) * sign % modulus


def _has_points(constraints: list[Constraint]) -> bool:
    """Some point satisfies them; `True` also where that is beyond the budget to decide."""
    from simplifier import exact

    variables = dict.fromkeys(v for c in constraints for v in c.expr.variables())
    return exact.is_empty(tuple(variables), constraints) is not True


def _numbered(current: IndexingMap) -> IndexingMap:
    """Ranges renamed in the order of their first use, runtime variables in the order they have."""
    if not current.ranges and not current.runtime:
        return current
    place = {v: k for k, v in enumerate(_order(current))}
    ranges = sorted(current.ranges, key=place.__getitem__)
    runtime = current.runtime
    names = {v: f"s{k}" for k, v in enumerate(ranges)}
    if all(rt.source is not None for rt in runtime):  # else the name is all that tells what it is
        names |= {rt.variable: f"rt{k}" for k, rt in enumerate(runtime)}
    if any(v.name in names.values() for v in current.variables if v not in names):
        return current
    renamed = {
        v: v.renamed(names.get(v, v.name)) for v in (*ranges, *[rt.variable for rt in runtime])
    }
    if tuple(ranges) == current.ranges and all(v is new for v, new in renamed.items()):
        return current
    swap = Substitution({v: new.as_expr() for v, new in renamed.items() if v is not new})
    return IndexingMap(
        current.dims,
        tuple([renamed[v] for v in ranges]),
        tuple([_renamed(rt, renamed[rt.variable], swap) for rt in runtime]),
        tuple([swap(result) for result in current.results]),
        _sorted(Constraint(swap(c.expr), c.lower, c.upper) for c in current.constraints),
        current.grade,
    )


def _renamed(rt: RuntimeVariable, variable: Variable, swap: Substitution) -> RuntimeVariable:
    return replace(rt, variable=variable, index=tuple(map(swap, rt.index)))


def _sorted(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    return tuple(sorted(constraints, key=lambda c: c.expr.key))


def _order(current: IndexingMap) -> Iterator[Variable]:
    """Each free variable once: as the results use them, then their indices, then the rest."""
    seen: dict[Variable, None] = {}
    for result in current.results:
        _add_in_order(result, seen)
    for rt in current.runtime:
        for expr in rt.index:
            _add_in_order(expr, seen)
    for constraint in current.constraints:
        _add_in_order(constraint.expr, seen)
    seen.update(dict.fromkeys(current.variables))
    return iter(seen)


def _add_in_order(expr: Expr, seen: dict[Variable, None]) -> None:
    """Largest coefficient first, so that the names given before do not matter."""
    for atom, _ in sorted(expr.terms, key=lambda term: -abs(term[1])):
        if isinstance(atom, Variable):
            seen.setdefault(atom)
        else:
            _add_in_order(atom.numerator, seen)


STEPS: Final = (
    ("bounds tightened, constraints simplified, results rewritten on the domain", _tightened),
    ("variables dropped on which nothing depends", without_unused),
    ("variables numbered", _numbered),
)
"""What `simplified` does, in order."""

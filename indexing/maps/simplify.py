"""The simplest form of a map: tight bounds, simple results, only the variables that matter.

`TIGHTENED` and then `STEPS` are taken in order, and again as long as one of `STEPS` changes
something.  Intervals do nearly everything (`simplifier.domain`); what they cannot tell is asked
exactly (`simplifier.sharpen`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from indexing.maps.compose import composed
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.result_bounds import copy_note
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier import trace
from simplifier.atoms import Variable
from simplifier.constraints import Constraint, merged
from simplifier.domain import Domain, tightened
from simplifier.linear import Expr
from simplifier.sharpen import has_points, sharpened
from simplifier.solve import Change, change, projected
from simplifier.substitute import Substitution

# One without constraints; with them as long as one changes something, which is seldom for long.
_ROUNDS: Final = 4

Step: TypeAlias = Callable[[IndexingMap], IndexingMap]


class Rewrite(NamedTuple):
    """One step of a simplification: what was done, and the map before and after it."""

    law: str
    before: IndexingMap
    after: IndexingMap

    def __str__(self) -> str:
        return f"{self.law}:\n  {self.before}\n  {self.after}"


def traced(original: IndexingMap, keep_multiplicity: bool = False) -> list[Rewrite | trace.Applied]:
    """The steps by which `simplified` gets to its result, those that change something.

    Each comes after the laws that were applied to expressions on the way.
    """
    taken: list[Rewrite | trace.Applied] = []

    def take(law: str, step: Step, before: IndexingMap) -> IndexingMap:
        with trace.recorded() as applied:
            after = step(before)
        taken.extend(applied)
        if after != before:
            taken.append(Rewrite(law, before, after))
        return after

    _simplified(original, keep_multiplicity, take)
    return taken


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


def simplified(original: IndexingMap, keep_multiplicity: bool = False) -> IndexingMap:
    """The same relation in its simplest form; see `IndexingMap.simplify`."""
    if _is_plain(original):
        return original
    if original.runtime:
        return _simplified(original, keep_multiplicity)
    return _simplified_once(original, keep_multiplicity)


def _is_plain(current: IndexingMap) -> bool:
    """A function on a box: its expressions were simplified when they were made."""
    free = current.ranges or current.runtime or current.constraints
    return not free and not any(d.lower > d.upper for d in current.dims)


@lru_cache(maxsize=1 << 14)
def _simplified_once(original: IndexingMap, keep_multiplicity: bool) -> IndexingMap:
    return _simplified(original, keep_multiplicity)


def _taken(law: str, step: Step, before: IndexingMap) -> IndexingMap:
    return step(before)


def _simplified(
    original: IndexingMap,
    keep_multiplicity: bool = False,
    take: Callable[[str, Step, IndexingMap], IndexingMap] = _taken,
) -> IndexingMap:
    current = original
    for _ in range(_ROUNDS):
        start = current = take(*TIGHTENED, current)
        for law, step in COUNTING_STEPS if keep_multiplicity else STEPS:
            current = take(law, step, current)
        if not start.constraints or current == start:
            break
    return copy_note(original, current)


def _tightened(original: IndexingMap) -> IndexingMap:
    """The same points with tight bounds and few constraints, and what follows for the results."""
    if original.is_known_empty:
        return IndexingMap.empty(original.dims, len(original.results))
    domain = tightened(original.variables, original.constraints)
    if domain.constraints and not domain.is_known_empty:
        domain = sharpened(domain.variables, domain.constraints, ()) or domain
    if domain.is_known_empty:
        return IndexingMap.empty(original.dims, len(original.results))
    return _on_domain(original, domain)


def _sharpened(current: IndexingMap) -> IndexingMap:
    """What exact answers add, where constraints are left of which intervals do not know all."""
    if not current.constraints:
        return current
    exprs = [*current.results, *[expr for rt in current.runtime for expr in rt.index]]
    domain = sharpened(current.variables, current.constraints, exprs)
    if domain is None:
        return current
    if domain.is_known_empty:
        return IndexingMap.empty(current.dims, len(current.results))
    return _on_domain(current, domain)


def _on_domain(original: IndexingMap, domain: Domain) -> IndexingMap:
    """`original` with the variables and constraints of `domain`, and results simplified there.

    Constraints are never simplified by facts that they state themselves: those of `domain` know
    only the bounds of variables.
    """
    if domain.variables == original.variables and not domain.constraints and not domain.implied:
        return replace(original, constraints=()) if original.constraints else original
    rebuild = domain.rebuild(original.variables)
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
    map is empty, and where that is undecided the group stays.  A range that one constraint
    mentions, and nothing else, goes where the constraint can say without it when it has a value.
    """
    return _projected(_without_all_but(current, ()))


def _projected(current: IndexingMap) -> IndexingMap:
    if not current.ranges:
        return current
    indexed = [expr for rt in current.runtime for expr in rt.index]
    used = {v for expr in (*current.results, *indexed) for v in expr.variables()}
    for old in [v for v in current.ranges if v not in used]:
        tied = [c for c in current.constraints if old in c.expr.variables()]
        without = projected(tied[0], old) if len(tied) == 1 else None
        if without is None:
            continue
        left = [without if c is tied[0] else c for c in current.constraints]
        ranges = tuple([v for v in current.ranges if v is not old])
        return _projected(replace(current, ranges=ranges, constraints=merged(left)))
    return current


def _without_idle(current: IndexingMap) -> IndexingMap:
    """`without_unused`, but ranges stay that say how often something is reached."""
    return _without_all_but(current, [v for v in current.ranges if v.lower != v.upper])


def _without_all_but(current: IndexingMap, needed: Iterable[Variable]) -> IndexingMap:
    free = [*current.ranges, *[rt.variable for rt in current.runtime]]
    if not free:
        return current
    if current.is_known_empty:
        return IndexingMap.empty(current.dims, len(current.results))
    used = _used(current, needed)
    if all(v in used for v in free):
        return current
    loose = [c for c in current.constraints if not any(v in used for v in c.expr.variables())]
    some = has_points(loose)
    if some is False:
        return IndexingMap.empty(current.dims, len(current.results))
    if some is None:  # they may say that the domain is empty
        used |= {v for c in loose for v in c.expr.variables()}
        loose = []
    return replace(
        current,
        ranges=tuple([v for v in current.ranges if v in used]),
        runtime=tuple([rt for rt in current.runtime if rt.variable in used]),
        constraints=tuple([c for c in current.constraints if c not in loose]),
    )


def _used(current: IndexingMap, needed: Iterable[Variable]) -> set[Variable]:
    """The variables that the relation depends on, and those that depend on the `needed`.

    A runtime variable has one value, it does not range over its bounds: what is read depends on it
    also where only a constraint, or a bound that is narrower than its clamp, mentions it.  One that
    is fixed is listed by the op that takes it, and left out by composition.  A size stays: it is
    the same in other maps, and what constraints said of it may be in its bounds.
    """
    index_of = {rt.variable: rt.index for rt in current.runtime}
    tied = [set(c.expr.variables()) for c in current.constraints]
    used = {v for result in current.results for v in result.variables()}
    used |= {*current.dims, *needed}
    used |= {v for group in tied for v in group if v in index_of}
    used |= {rt.variable for rt in current.runtime if rt.clamp not in (None, rt.variable.bounds)}
    used |= {rt.variable for rt in current.runtime if rt.is_fixed or rt.is_size}
    while True:
        size = len(used)
        for group in tied:
            if not used.isdisjoint(group):
                used |= group
        for variable in [v for v in used if v in index_of]:
            used.update(v for expr in index_of[variable] for v in expr.variables())
        if len(used) == size:
            return used


def solved(current: IndexingMap) -> IndexingMap:
    """Range variables that a constraint determines replaced, strided ones rescaled, and those that
    only occur as one mixed-radix sum made one (`simplifier.solve`).

    Runtime variables stay: their value is that of their source, not a multiple of it.
    """
    while current.ranges and (current.constraints or len(current.ranges) > 1):
        exprs = [*current.results, *[expr for rt in current.runtime for expr in rt.index]]
        found = change(current.ranges, current.constraints, exprs)
        if found is None:
            break
        current = _tightened(_changed(current, found))
    return current


def _changed(current: IndexingMap, by: Change) -> IndexingMap:
    results, constraints = current.substituted(by.values)
    swap = Substitution(by.values)
    ranges = [by.instead.get(v, v) for v in current.ranges]
    return replace(
        current,
        ranges=tuple([v for v in ranges if v is not None]),
        runtime=tuple([_renamed(rt, rt.variable, swap) for rt in current.runtime]),
        results=tuple(results),
        constraints=(*constraints, *by.constraints),
    )


def _numbered(current: IndexingMap) -> IndexingMap:
    """Ranges renamed in the order of their first use, runtime variables in the order they have."""
    if not current.ranges and not current.runtime:
        return current
    place = {v: k for k, v in enumerate(_order(current))}
    ranges = sorted(current.ranges, key=place.__getitem__)
    runtime = current.runtime
    names = {v: f"s{k}" for k, v in enumerate(ranges)}
    named = [rt for rt in runtime if not rt.is_size]
    if all(rt.source is not None for rt in named):  # else the name is all that tells what it is
        names |= {rt.variable: f"rt{k}" for k, rt in enumerate(named)}
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
            for operand in atom.operands:
                _add_in_order(operand, seen)


TIGHTENED: Final = (
    "bounds tightened, constraints simplified, results rewritten on the domain",
    _tightened,
)
"""What `simplified` does first."""

STEPS: Final = (
    ("ranges solved for, rescaled, or two made one", solved),
    ("variables dropped on which nothing depends", without_unused),
    ("what ISL knows of the domain", _sharpened),
    ("variables numbered", _numbered),
)
"""What `simplified` does then, in order."""

COUNTING_STEPS: Final = tuple(
    [
        ("variables dropped that reach nothing, once", _without_idle)
        if step is without_unused
        else (law, step)
        for law, step in STEPS
    ]
)
"""The same where it matters how often a result is reached: all but one step are one to one."""

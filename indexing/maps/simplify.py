"""Simplification of maps: tight bounds, simple results, no unused variables.

`TIGHTENED` and then `STEPS` are applied in order, and repeated while a step changes the map.
Interval arithmetic does most of the work (`simplifier.domain`); exact queries decide the rest
(`simplifier.refine`).

Source: XLA ``docs/indexing.md``, section "Indexing Map Simplifier".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from indexing.maps.compose import composed
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.numbering import numbered
from indexing.maps.result_bounds import copy_last_map
from indexing.maps.unused import without_uncounted, without_unused
from simplifier import trace
from simplifier.domain import ConstrainedBox, tightened
from simplifier.refine import refined
from simplifier.solve import Change, change
from simplifier.substitute import Substitution

_MAX_ROUNDS: Final = 4
"""Limit on repetitions; maps without constraints need one."""

Step: TypeAlias = Callable[[IndexingMap], IndexingMap]


class Rewrite(NamedTuple):
    """One step of a simplification: its name, and the map before and after it."""

    law: str
    before: IndexingMap
    after: IndexingMap

    def __str__(self) -> str:
        return f"{self.law}:\n  {self.before}\n  {self.after}"


def traced(original: IndexingMap, keep_multiplicity: bool = False) -> list[Rewrite | trace.Applied]:
    """Return the effective steps of `simplified`, each after the laws it applied to expressions."""
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
    """Return ``first.then(second).simplify()``, memoised.

    Maps with runtime variables are not memoised: they would keep the instructions of a module
    alive.
    """
    if first.runtime or second.runtime:
        return _simplified(composed(first, second))
    return _composed_and_simplified(first, second)


@lru_cache(maxsize=1 << 14)
def _composed_and_simplified(first: IndexingMap, second: IndexingMap) -> IndexingMap:
    return simplified(composed(first, second))


def simplified(original: IndexingMap, keep_multiplicity: bool = False) -> IndexingMap:
    """Return the same relation in its simplest form; see `IndexingMap.simplify`."""
    if _is_plain(original):
        return original
    if original.runtime:
        return _simplified(original, keep_multiplicity)
    return _simplified_once(original, keep_multiplicity)


def _is_plain(current: IndexingMap) -> bool:
    """True for a function on a box: its expressions were simplified at construction."""
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
    for _ in range(_MAX_ROUNDS):
        start = current = take(*TIGHTENED, current)
        for law, step in COUNTING_STEPS if keep_multiplicity else STEPS:
            current = take(law, step, current)
        if not start.constraints or current == start:
            break
    return copy_last_map(original, current)


def _tightened(original: IndexingMap) -> IndexingMap:
    """Tighten bounds, drop implied constraints, and simplify results with the new bounds."""
    if original.is_known_empty:
        return IndexingMap.empty(original.dims, len(original.results))
    domain = tightened(original.variables, original.constraints)
    if domain.constraints and not domain.is_known_empty:
        domain = refined(domain.variables, domain.constraints, ()) or domain
    if domain.is_known_empty:
        return IndexingMap.empty(original.dims, len(original.results))
    return _on_domain(original, domain)


def _refined(current: IndexingMap) -> IndexingMap:
    """Refine bounds and results with exact queries, if constraints remain."""
    if not current.constraints:
        return current
    exprs = [*current.results, *[expr for rt in current.runtime for expr in rt.index]]
    domain = refined(current.variables, current.constraints, exprs)
    if domain is None:
        return current
    if domain.is_known_empty:
        return IndexingMap.empty(current.dims, len(current.results))
    return _on_domain(current, domain)


def _on_domain(original: IndexingMap, domain: ConstrainedBox) -> IndexingMap:
    """`original` with the variables and constraints of `domain`, and results simplified on it.

    Constraints are simplified with the bounds of variables only, never with facts that they imply.
    """
    if domain.variables == original.variables and not domain.constraints and not domain.implied:
        return replace(original, constraints=()) if original.constraints else original
    rebuild = domain.rebuild(original.variables)
    now = dict(zip(original.variables, domain.variables, strict=True))
    return IndexingMap(
        tuple([now[v] for v in original.dims]),
        tuple([now[v] for v in original.ranges]),
        tuple([rt.substituted(rebuild, now[rt.variable]) for rt in original.runtime]),
        tuple([rebuild(result) for result in original.results]),
        domain.constraints,
        original.grade,
    )


def solved(current: IndexingMap) -> IndexingMap:
    """Eliminate, rescale and merge range variables (`simplifier.solve`).

    Variables that a constraint determines are eliminated, strided variables are rescaled, and
    variables that occur only in one mixed-radix sum are merged.  Runtime variables are kept: their
    value is that of their source.
    """
    while current.ranges and (current.constraints or len(current.ranges) > 1):
        exprs = [*current.results, *[expr for rt in current.runtime for expr in rt.index]]
        update = change(current.ranges, current.constraints, exprs)
        if update is None:
            break
        current = _tightened(_changed(current, update))
    return current


def _changed(current: IndexingMap, by: Change) -> IndexingMap:
    results, constraints = current.substituted(by.values)
    swap = Substitution(by.values)
    ranges = [by.replacements.get(v, v) for v in current.ranges]
    return replace(
        current,
        ranges=tuple([v for v in ranges if v is not None]),
        runtime=tuple([rt.substituted(swap) for rt in current.runtime]),
        results=tuple(results),
        constraints=(*constraints, *by.constraints),
    )


TIGHTENED: Final = (
    "tighten bounds, simplify constraints, rewrite results on the domain",
    _tightened,
)
"""The first step of `simplified`."""

STEPS: Final = (
    ("eliminate, rescale or merge range variables", solved),
    ("remove unused variables", without_unused),
    ("refine the domain with ISL", _refined),
    ("number variables", numbered),
)
"""The further steps of `simplified`, in order."""

COUNTING_STEPS: Final = tuple(
    [
        ("remove unused variables that do not affect multiplicity", without_uncounted)
        if step is without_unused
        else (law, step)
        for law, step in STEPS
    ]
)
"""The steps that keep multiplicities: all but one step are one to one."""

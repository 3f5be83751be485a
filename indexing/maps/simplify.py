"""Simplification of maps: tight bounds, simple results, no unused variables.

`TIGHTENED` and then `STEPS` are applied in order, and repeated while a step changes the map.
Interval arithmetic does most of the work (`simplifier.domain`); exact queries decide the rest
(`simplifier.refine`).

Source: XLA ``docs/indexing.md``, "Indexing Map Simplifier".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from indexing.maps.compose import compose
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.map_fields import closed_map
from indexing.maps.memoised import memoised_maps
from indexing.maps.numbering import number_ranges
from indexing.maps.range_boxes import with_range_boxes
from indexing.maps.replaced_variables import with_replaced_variables
from indexing.maps.result_bounds import copy_last_map
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.maps.spaces import by_kind
from indexing.maps.unused import drop_uncounted, drop_unused
from simplifier import trace
from simplifier.atoms import Variable, variables_in
from simplifier.domain import ConstrainedBox
from simplifier.linear import Expr
from simplifier.refine import refine, tightened_exactly
from simplifier.solve import Change, change
from simplifier.substitute import Substitution
from simplifier.zero_divisor import ZeroDivisorError

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


def trace_steps(
    indexing_map: IndexingMap, keep_multiplicity: bool = False
) -> list[Rewrite | trace.Applied]:
    """Return the effective steps of `simplify_map`, each after the laws that it applied."""
    taken: list[Rewrite | trace.Applied] = []

    def take(law: str, step: Step, before: IndexingMap) -> IndexingMap:
        with trace.record_laws() as applied:
            after = step(before)
        taken.extend(applied)
        if after != before:
            taken.append(Rewrite(law, before, after))
        return after

    _simplify_steps(indexing_map, keep_multiplicity, take)
    return taken


@memoised_maps(1 << 11)
def compose_and_simplify(first: IndexingMap, second: IndexingMap) -> IndexingMap:
    """Return ``first.then(second).simplify()``, memoised."""
    if _misses(first, second):
        return IndexingMap.empty(first.dims, len(second.results))
    return simplify_map(compose(first, second))


def _misses(first: IndexingMap, second: IndexingMap) -> bool:
    """True if the bounds of a result of `first` and of a dimension of `second` are disjoint."""
    pairs = zip(first.results, second.dims, strict=True)
    bounds = [(*result.bounds, *d.bounds) for result, d in pairs]
    return any(high < lower or low > upper for low, high, lower, upper in bounds)


def simplify_map(indexing_map: IndexingMap, keep_multiplicity: bool = False) -> IndexingMap:
    """Return the same relation in its simplest form; see `IndexingMap.simplify`."""
    if _is_plain(indexing_map):
        return indexing_map
    return _simplify_once(indexing_map, keep_multiplicity)


def _is_plain(m: IndexingMap) -> bool:
    """True for a function on a box: its expressions were simplified at construction."""
    if m.ranges or m.runtime or m.constraints:
        return False
    for d in m.dims:  # noqa: SIM110  # a generator takes twice as long
        if d.lower > d.upper:
            return False
    return True


@memoised_maps(1 << 11)
def _simplify_once(m: IndexingMap, keep_multiplicity: bool) -> IndexingMap:
    return _simplify_steps(m, keep_multiplicity)


def _take_step(law: str, step: Step, before: IndexingMap) -> IndexingMap:
    return step(before)


def _simplify_steps(
    original: IndexingMap,
    keep_multiplicity: bool = False,
    take: Callable[[str, Step, IndexingMap], IndexingMap] = _take_step,
) -> IndexingMap:
    tighten: Step
    domain_law, tighten = TIGHTENED
    current = original
    for _ in range(_MAX_ROUNDS):
        start = current = take(domain_law, tighten, current)
        tighten = _tighten_again(start)
        for law, step in COUNTING_STEPS if keep_multiplicity else STEPS:
            current = take(law, step, current)
        if not start.constraints or current == start:
            break
    return copy_last_map(original, current)


def _tighten_domain(m: IndexingMap) -> IndexingMap:
    """Tighten bounds, drop implied constraints, and simplify results with the new bounds."""
    variables = m.variables
    if True in [v.lower > v.upper for v in variables]:
        return IndexingMap.empty(m.dims, len(m.results))
    domain = tightened_exactly(variables, m.constraints)
    if domain.is_known_empty:
        return IndexingMap.empty(m.dims, len(m.results))
    return _on_domain(m, domain)


def _tighten_again(earlier: IndexingMap) -> Step:
    """`_tighten_domain` for a map that other steps made from `earlier`, which it returned.

    If the domain is the same, only results that these steps changed are rewritten.
    """

    def step(m: IndexingMap) -> IndexingMap:
        if m.runtime or m.variables != earlier.variables or m.constraints != earlier.constraints:
            return _tighten_domain(m)
        return _on_domain(m, ConstrainedBox(m.variables, m.constraints), earlier.results)

    return step


def _refine_domain(m: IndexingMap) -> IndexingMap:
    """Refine bounds and results with exact queries, if constraints remain."""
    if not m.constraints:
        return m
    exprs = [*m.results, *[expr for rt in m.runtime for expr in rt.index]]
    domain = refine(m.variables, m.constraints, exprs)
    if domain is None:
        return m
    if domain.is_known_empty:
        return IndexingMap.empty(m.dims, len(m.results))
    return _on_domain(m, domain)


def _on_domain(
    m: IndexingMap, domain: ConstrainedBox, rewritten: tuple[Expr, ...] = ()
) -> IndexingMap:
    """`m` with the variables and constraints of `domain`, and results simplified on it.

    Results in `rewritten` are kept: they were simplified on this domain before.  Constraints are
    simplified with the bounds of variables only, never with facts that they imply.
    """
    old, new = m.variables, domain.variables
    if old == new and not (m.constraints or domain.constraints or domain.implied):
        return m
    start, end = len(m.dims), len(m.dims) + len(m.ranges)
    runtime, results = m.runtime, m.results
    if old != new or domain.constraints or domain.implied:
        rebuild = domain.rebuild(old)
        try:
            if runtime:
                runtime = _rebuilt_runtime(m, new, rebuild)
            results = tuple([r if r in rewritten else rebuild(r) for r in results])
        except ZeroDivisorError:
            return IndexingMap.empty(m.dims, len(m.results))
    dims, ranges = new[:start], new[start:end]
    constraints = domain.constraints
    return closed_map(IndexingMap, dims, ranges, runtime, results, constraints, m.grade)


def _rebuilt_runtime(
    m: IndexingMap, new: Sequence[Variable], rebuild: Callable[[Expr], Expr]
) -> tuple[RuntimeVariable, ...]:
    """Return runtime variables on a domain, whose indices are rewritten unless one needs itself."""
    own = new[len(m.dims) + len(m.ranges) :]
    pairs = list(zip(m.runtime, own, strict=True))
    runtime = tuple([rt.substituted(rebuild, variable) for rt, variable in pairs])
    if not _needs_itself(_needs(runtime)):
        return runtime
    swap = Substitution({v: w.as_expr() for v, w in zip(m.variables, new, strict=True)})
    return tuple([rt.substituted(swap, variable) for rt, variable in pairs])


def solve_ranges(indexing_map: IndexingMap) -> IndexingMap:
    """Eliminate, rescale and merge range variables (`simplifier.solve`).

    Variables that a constraint determines are eliminated, strided variables are rescaled, and
    variables that occur only in one mixed-radix sum are merged, iteration variables only with each
    other.  If an iteration variable and another range variable determine each other, the iteration
    variable is kept.  Runtime variables are kept: their value is that of their source.  A range
    variable that a runtime variable determines is kept if it is the index of that value.
    """
    kept: set[Variable] = set()
    while indexing_map.ranges and (indexing_map.constraints or len(indexing_map.ranges) > 1):
        exprs = [*indexing_map.results, *[expr for rt in indexing_map.runtime for expr in rt.index]]
        kinds = by_kind([v for v in indexing_map.ranges if v not in kept])
        update = change(kinds, indexing_map.constraints, exprs)
        if update is None:
            break
        if _is_cyclic(indexing_map.runtime, update.values):
            kept.update(update.values)
        else:
            indexing_map = _tighten_domain(_apply_change(indexing_map, update))
    return indexing_map


def _is_cyclic(runtime: Sequence[RuntimeVariable], values: Mapping[Variable, Expr]) -> bool:
    """Return True if a runtime variable is in its own index, given values of variables."""
    needs = _needs(runtime)
    if not any(variables_in([value]) & needs.keys() for value in values.values()):
        return False
    return _needs_itself(needs | {v: variables_in([value]) for v, value in values.items()})


def _needs(runtime: Sequence[RuntimeVariable]) -> dict[Variable, set[Variable]]:
    """Return the variables in the index of each runtime variable."""
    return {rt.variable: variables_in(rt.index) for rt in runtime}


def _needs_itself(needs: Mapping[Variable, set[Variable]]) -> bool:
    """Return True if a variable needs itself, directly or through others."""
    pending = [(variable, variable) for variable in needs]
    visited: set[tuple[Variable, Variable]] = set()
    while pending:
        start, variable = pending.pop()
        if start in needs[variable]:
            return True
        reached = {(start, v) for v in needs[variable] if v in needs} - visited
        visited |= reached
        pending.extend(reached)
    return False


def _apply_change(m: IndexingMap, by: Change) -> IndexingMap:
    changed = with_replaced_variables(m, by.values, by.replacements)
    return changed.with_constraints(by.constraints)


TIGHTENED: Final = (
    "tighten bounds, simplify constraints, rewrite results on the domain",
    _tighten_domain,
)
"""The first step of `simplify_map`."""

STEPS: Final = (
    ("eliminate, rescale or merge range variables", solve_ranges),
    ("remove unused variables", drop_unused),
    ("replace range variables by the box that they reach", with_range_boxes),
    ("refine the domain with ISL", _refine_domain),
    ("number variables", number_ranges),
)
"""The further steps of `simplify_map`, in order."""

COUNTING_STEPS: Final = tuple(
    [
        ("remove unused variables that do not affect multiplicity", drop_uncounted)
        if step is drop_unused
        else (law, step)
        for law, step in STEPS
        if step is not with_range_boxes
    ]
)
"""The steps that keep multiplicities: all but one step are one to one."""

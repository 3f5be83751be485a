"""Counts how often a map reaches each element, part by part.

Results that share no variable, directly or through a constraint, are independent: an element is
reached as often as the product of the counts of its parts says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.properties import is_injective
from indexing.maps.relation import UndecidedError
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable
from simplifier.linear import Expr, constant
from simplifier.substitute import Substitution

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

BUDGET: Final = 1 << 22
"""So many points of one part of a map, or elements of one array, are enumerated."""


def within_budget(points: int, what: str) -> None:
    """Nothing, if so many points may be counted one by one.

    Raises:
        UndecidedError: they are too many.
    """
    if points > BUDGET:
        raise UndecidedError(f"{what} has {points} points to count, more than {BUDGET}")


# ---------------------------------------------------------------- one map


class _Given(NamedTuple):
    """The values that a runtime variable has: an array, and which element of it."""

    rt: RuntimeVariable
    array: NDArray[np.int64]

    def at(self, index: Sequence[Any]) -> Any:
        inside = [np.clip(i, 0, size - 1) for i, size in zip(index, self.array.shape, strict=True)]
        found = self.array[tuple(inside)] if inside else self.array
        return np.clip(found, *self.rt.clamp) if self.rt.clamp else found


@dataclass(frozen=True)
class Counted:
    """One map, taken apart.

    Attributes:
        parts: groups of results that share no variable.
        idle: how many points there are of the variables that lead to no result.
        moves_with: the name of a value that moves all that is read, by as much as it is; or empty.
    """

    parts: tuple[_Part, ...]
    idle: int
    moves_with: str = ""

    @classmethod
    def of(cls, m: IndexingMap, values: Mapping[str, ArrayLike]) -> Counted:
        if m.is_known_empty:
            return cls((), 0)
        known, given, moves_with = _with_values(m, values)
        if known.is_known_empty:
            return cls((), 0)
        parts = list(_parts(known, given))
        idle = prod(part.points for part in parts if not part.places)
        return cls(tuple([part for part in parts if part.places]), idle, moves_with)

    @property
    def total(self) -> int:
        return self.idle * prod(part.points for part in self.parts)

    def at(self, element: Sequence[int]) -> int:
        return self.idle * prod(part.at(element) for part in self.parts)

    def histogram(self) -> Counter[int]:
        found = Counter({self.idle: 1})
        for part in self.parts:
            before, found = found, Counter()
            for (a, m), (b, n) in product(before.items(), part.histogram.items()):
                found[a * b] += m * n
        return found

    def bounds(self) -> list[tuple[int, int]]:
        """The interval of each result."""
        found = {
            k: bounds
            for part in self.parts
            for k, bounds in zip(part.places, part.bounds, strict=True)
        }
        return [found[k] for k in range(len(found))]

    def add_to(self, total: NDArray[Any], origin: Sequence[int]) -> None:
        """Add the counts of the elements in the box of `total`, whose first one is `origin`."""
        if not self.idle:
            return
        here = np.full((1,) * total.ndim, self.idle, total.dtype)
        for part in self.parts:
            sizes = [total.shape[k] if k in part.places else 1 for k in range(total.ndim)]
            counts = np.zeros(sizes, total.dtype)
            values, times = part.table
            shifted = values - np.array([origin[k] for k in part.places], np.int64)
            room = np.array([total.shape[k] for k in part.places], np.int64)
            inside = ((shifted >= 0) & (shifted < room)).all(axis=1)
            at: list[Any] = [0] * total.ndim
            for column, k in enumerate(part.places):
                at[k] = shifted[inside, column]
            counts[tuple(at)] = times[inside]
            here = here * counts
        total += here


_Table: TypeAlias = "tuple[NDArray[np.int64], NDArray[Any]]"


class _Part:
    """Some results of a map, with all variables that they depend on.

    Attributes:
        places: which results these are; none for variables that lead to no result.
        map: from the variables to these results.
    """

    def __init__(
        self, places: tuple[int, ...], m: IndexingMap, given: Mapping[Variable, _Given]
    ) -> None:
        self.places, self.map, self.given = places, m, given

    @cached_property
    def points(self) -> int:
        """How many points there are."""
        if self.given:
            return int(self.table[1].sum())
        return self.map.count_domain()

    @cached_property
    def is_injective(self) -> bool:
        """No element comes twice; asked where there is too much to enumerate."""
        return not self.given and is_injective(self.map) is True

    @cached_property
    def table(self) -> _Table:
        """The different values of the results, a row each, and how often each comes."""
        variables = self.map.dims
        sizes = [v.upper - v.lower + 1 for v in variables]
        within_budget(prod(sizes), str(self.map))
        count = prod(sizes)
        places = np.unravel_index(np.arange(count), sizes) if sizes else ()
        at: dict[Variable, Any] = {
            v: place + v.lower for v, place in zip(variables, places, strict=True)
        }
        inside = np.ones(count, bool)
        for variable in self.given:
            self._put_in(variable, at)
            low, high = variable.bounds
            inside &= (at[variable] >= low) & (at[variable] <= high)
        for c in self.map.constraints:
            value = c.expr.value(at)
            inside &= (value >= c.lower) & (value <= c.upper)
        columns = [
            np.broadcast_to(np.asarray(result.value(at), np.int64), (count,))[inside]
            for result in self.map.results
        ]
        return _counted_rows(columns, int(inside.sum()))

    def _put_in(self, variable: Variable, at: dict[Variable, Any]) -> None:
        """Add the value of a runtime variable to `at`, after those that choose its element."""
        given = self.given[variable]
        for chosen in [v for i in given.rt.index for v in i.variables() if v not in at]:
            self._put_in(chosen, at)
        at[variable] = given.at([i.value(at) for i in given.rt.index])

    @cached_property
    def histogram(self) -> Counter[int]:
        if self._is_large and self.is_injective:
            return Counter({1: self.points})
        return Counter(self.table[1].tolist())

    def at(self, element: Sequence[int]) -> int:
        wanted = [element[k] for k in self.places]
        if self._is_large and self.is_injective:
            return sum(piece.evaluate(wanted) is not None for piece in self.map.inverse())
        values, times = self.table
        return int(times[(values == np.array(wanted, np.int64)).all(axis=1)].sum())

    @property
    def bounds(self) -> list[tuple[int, int]]:
        return [result.bounds for result in self.map.results]

    @property
    def _is_large(self) -> bool:
        return prod(v.upper - v.lower + 1 for v in self.map.dims) > BUDGET


def _parts(m: IndexingMap, given: Mapping[Variable, _Given]) -> Iterator[_Part]:
    """The parts of a map all of whose runtime variables are given."""
    results = [_needs(result, given) for result in m.results]
    constraints = [_needs(c.expr, given) for c in m.constraints]
    groups: list[set[Variable]] = [{v} for v in (*m.dims, *m.ranges)]
    chosen = {v: _needs_of_all(g.rt.index, given) for v, g in given.items()}
    for used in (*results, *constraints, *chosen.values()):
        apart = [group for group in groups if group.isdisjoint(used)]
        together = [group for group in groups if not group.isdisjoint(used)]
        groups = [*apart, set[Variable]().union(*together)] if together else apart
    if any(not used for used in (*results, *chosen.values())):
        groups.append(set())
    for group in groups:
        places = [k for k, used in enumerate(results) if _belongs(used, group)]
        inside = [
            c for c, used in zip(m.constraints, constraints, strict=True) if _belongs(used, group)
        ]
        own = [given[v] for v, used in chosen.items() if _belongs(used, group)]
        exprs = [*[m.results[k] for k in places], *[c.expr for c in inside]]
        exprs += [i for g in own for i in g.rt.index]
        known = {g.rt.variable: g for g in own} | _mentioned(exprs, given)
        part = IndexingMap.of(
            [v for v in (*m.dims, *m.ranges) if v in group],
            [m.results[k] for k in places],
            runtime=[g.rt for g in known.values()],
            constraints=inside,
        )
        yield _Part(tuple(places), part, known)


def _belongs(used: set[Variable], group: set[Variable]) -> bool:
    """What needs these variables is part of the group; the empty one has what needs none."""
    return used <= group and bool(used) == bool(group)


def _mentioned(exprs: Iterable[Expr], given: Mapping[Variable, _Given]) -> dict[Variable, _Given]:
    """The runtime variables in these expressions, and those that choose their elements."""
    found: dict[Variable, _Given] = {}
    for v in [v for expr in exprs for v in expr.variables() if v in given]:
        found |= {v: given[v]} | _mentioned(given[v].rt.index, given)
    return found


def _needs(expr: Expr, given: Mapping[Variable, _Given]) -> set[Variable]:
    """The variables that an expression depends on, those among them that choose values."""
    free = {v for v in expr.variables() if v not in given}
    chosen = [_needs_of_all(given[v].rt.index, given) for v in expr.variables() if v in given]
    return free.union(*chosen)


def _needs_of_all(exprs: Iterable[Expr], given: Mapping[Variable, _Given]) -> set[Variable]:
    return set[Variable]().union(*[_needs(expr, given) for expr in exprs])


def _with_values(
    m: IndexingMap, values: Mapping[str, ArrayLike]
) -> tuple[IndexingMap, dict[Variable, _Given], str]:
    """The map, the values of its runtime variables, and the name of one that only moves it.

    Raises:
        UndecidedError: a value is not given that matters more.
    """
    given = {rt.variable: g for rt in m.runtime if (g := _given(rt, values))}
    fixed: dict[Variable, Expr] = {}
    moves_with = ""
    for rt in m.runtime:
        if rt.variable not in given:
            if not _only_moves(rt, m):
                raise UndecidedError(
                    f"how often an element is read depends on `{_name(rt)}`: give its values"
                )
            fixed[rt.variable] = constant(rt.variable.lower)
            moves_with = _name(rt)
        elif all(i.is_constant for i in rt.index):
            value = int(given.pop(rt.variable).at([i.constant for i in rt.index]))
            if not rt.variable.lower <= value <= rt.variable.upper:
                return IndexingMap.empty(m.dims, len(m.results)), {}, ""
            fixed[rt.variable] = constant(value)
    results, constraints = m.substituted(fixed)
    swap = Substitution(fixed)
    known = {
        v: g._replace(rt=replace(g.rt, index=tuple(map(swap, g.rt.index))))
        for v, g in given.items()
    }
    found = IndexingMap.of(
        m.dims,
        results,
        ranges=m.ranges,
        runtime=[g.rt for g in known.values()],
        constraints=constraints,
        grade=m.grade,
    )
    return found, known, moves_with


def _given(rt: RuntimeVariable, values: Mapping[str, ArrayLike]) -> _Given | None:
    value = values.get(_name(rt), values.get(rt.name))
    if value is None:
        return None
    array = np.asarray(value, np.int64)
    if array.ndim != len(rt.index):
        raise ValueError(
            f"`{_name(rt)}` has {len(rt.index)} dimensions; the value given for it has {array.ndim}"
        )
    return _Given(rt, array)


def _name(rt: RuntimeVariable) -> str:
    return str(rt.source_name if rt.source is not None else rt.name)


def _only_moves(rt: RuntimeVariable, m: IndexingMap) -> bool:
    """The same elements are read as often, at another place, whatever the value is."""
    mentions = [*[c.expr for c in m.constraints], *[i for other in m.runtime for i in other.index]]
    return (
        all(i.is_constant for i in rt.index)
        and rt.clamp in (None, rt.variable.bounds)
        and not any(rt.variable in expr.variables() for expr in mentions)
        and all(
            sum(v == rt.variable for v in result.variables()) == (rt.variable in dict(result.terms))
            for result in m.results
        )
    )


def _counted_rows(columns: Sequence[NDArray[np.int64]], count: int) -> _Table:
    """The different rows of these columns, in order, and how often each comes."""
    rows = np.stack(columns, axis=1) if columns else np.zeros((count, 0), np.int64)
    lows = [int(c.min()) if count else 0 for c in columns]
    sizes = [int(c.max()) - low + 1 if count else 1 for c, low in zip(columns, lows, strict=True)]
    if prod(sizes) >= 1 << 62:
        return np.unique(rows, axis=0, return_counts=True)
    key = np.zeros(count, np.int64)
    for column, low, size in zip(columns, lows, sizes, strict=True):
        key = key * size + (column - low)
    _, first, times = np.unique(key, return_index=True, return_counts=True)
    return rows[first], times

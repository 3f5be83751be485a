"""Count how often a map reaches each element, part by part.

Results that share no variable, directly or through a constraint, are independent: the count of an
element is the product of the counts of its parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np

from indexing.maps.counts.closed import closed_tally
from indexing.maps.counts.queries import count_domain
from indexing.maps.counts.tally import Tally, independent, uniform
from indexing.maps.given_values import RuntimeValues, with_values
from indexing.maps.independence import connected_variables
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.properties import is_injective
from indexing.maps.relation import inverse
from simplifier.atoms import Variable, point_count
from simplifier.constraints import Constraint
from simplifier.exact import number_type
from simplifier.linear import Expr
from simplifier.semiaffine import divisors_with_zero
from simplifier.shared import term_count
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

T = TypeVar("T")

MAX_POINTS: Final = 1 << 22
"""Maximum number of points of one part of a map, or elements of one array, to enumerate."""

MAX_LARGE_POINTS: Final = 1 << 17
"""The same for points whose numbers exceed 64 bits."""

MAX_WORK: Final = 1 << 29
"""Maximum number of these points, times the terms of the expressions."""

MAX_LARGE_WORK: Final = 1 << 23
"""The same, if numbers exceed 64 bits."""


def beyond_budget(points: int, owner: object, number: type = np.int64) -> Unknown | None:
    """The reason not to enumerate so many points of `owner`; `None` if they are within budget.

    Args:
        number: the type of the numbers; `object` if they may exceed 64 bits.
    """
    budget = MAX_LARGE_POINTS if number is object else MAX_POINTS
    if points <= budget:
        return None
    return Unknown(f"{owner} has {points} points to count, more than the budget of {budget}")


def product_of(factors: Iterable[int | Unknown]) -> int | Unknown:
    """The product, or the first factor that is unknown."""
    total = 1
    for factor in factors:
        if isinstance(factor, Unknown):
            return factor
        total *= factor
    return total


# ---------------------------------------------------------------- one map


@dataclass(frozen=True)
class Counted:
    """A map divided into independent parts.

    Attributes:
        parts: groups of results that share no variable.
        idle: number of points of the variables on which no result depends.
        translated_by: the name of a runtime value that translates all results, or ``""``.
    """

    parts: tuple[_Part, ...]
    idle: int
    translated_by: str = ""

    @classmethod
    def of(cls, m: IndexingMap, values: Mapping[str, ArrayLike]) -> Counted | Unknown:
        if m.is_known_empty:
            return cls((), 0)
        evaluated = with_values(m, values)
        if isinstance(evaluated, Unknown):
            return evaluated
        if evaluated.map.is_known_empty:
            return cls((), 0)
        parts = list(_parts(evaluated.map, evaluated.given))
        idle = product_of(part.points for part in parts if not part.places)
        if isinstance(idle, Unknown):
            return idle
        return cls(tuple([part for part in parts if part.places]), idle, evaluated.translated_by)

    @property
    def total(self) -> int | Unknown:
        return product_of([self.idle, *[part.points for part in self.parts]])

    def at(self, element: Sequence[int]) -> int | Unknown:
        return product_of([self.idle, *[part.at(element) for part in self.parts]])

    @cached_property
    def tally(self) -> Tally | Unknown:
        """The read counts of all elements."""
        tallies = [uniform(self.idle)]
        for part in self.parts:
            own = part.tally
            if isinstance(own, Unknown):
                return own
            tallies.append(own)
        return independent(tallies)

    def bounds(self) -> list[tuple[int, int]]:
        """The bounds of each result."""
        by_place = {
            k: bounds
            for part in self.parts
            for k, bounds in zip(part.places, part.bounds, strict=True)
        }
        return [by_place[k] for k in range(len(by_place))]

    def add_to(self, total: NDArray[Any], origin: Sequence[int]) -> Unknown | None:
        """Add the counts of the elements in the box of `total`, whose first element is `origin`."""
        if not self.idle:
            return None
        here = np.full((1,) * total.ndim, self.idle, total.dtype)
        for part in self.parts:
            sizes = [total.shape[k] if k in part.places else 1 for k in range(total.ndim)]
            counts = np.zeros(sizes, total.dtype)
            table = part.table
            if isinstance(table, Unknown):
                return table
            values, times = table
            shifted = values - _integers([origin[k] for k in part.places])
            room = np.array([total.shape[k] for k in part.places], np.int64)
            inside = ((shifted >= 0) & (shifted < room)).all(axis=1)
            shifted = shifted[inside].astype(np.int64)
            at: list[Any] = [0] * total.ndim
            for column, k in enumerate(part.places):
                at[k] = shifted[:, column]
            counts[tuple(at)] = times[inside]
            here = here * counts
        total += here
        return None


_Table: TypeAlias = "tuple[NDArray[Any], NDArray[Any]]"


class _Part:
    """Some results of a map, with all variables on which they depend.

    Attributes:
        places: indices of the results; ``()`` for variables on which no result depends.
        map: the map from the variables to these results.
    """

    def __init__(
        self, places: tuple[int, ...], m: IndexingMap, given: Mapping[Variable, RuntimeValues]
    ) -> None:
        self.places, self.map, self.given = places, m, given

    @cached_property
    def points(self) -> int | Unknown:
        """Number of points of the domain at which no divisor is 0."""
        if not self.given and not self._divisors:
            count = count_domain(self.map)
            if not isinstance(count, Unknown) or self._is_large:
                return count
        table = self.table
        return table if isinstance(table, Unknown) else int(table[1].sum())

    @cached_property
    def is_injective(self) -> bool:
        """True if each element is reached once at most; used beyond the enumeration budget."""
        return not self.given and is_injective(self.map) is True

    @cached_property
    def table(self) -> _Table | Unknown:
        """The distinct values of the results, one row each, and the count of each row."""
        if (beyond := beyond_budget(self._box, self.map, self._number)) is not None:
            return beyond
        max_work = MAX_LARGE_WORK if self._number is object else MAX_WORK
        if self._box * term_count(self._exprs) > max_work:
            return Unknown(f"{self.map} has too many terms for the budget of {self._box} points")
        sizes = [v.size for v in self.map.dims]
        places = np.unravel_index(np.arange(self._box), sizes) if sizes else ()
        at: dict[Variable, Any] = {
            v: place.astype(self._number) + v.lower
            for v, place in zip(self.map.dims, places, strict=True)
        }
        inside = np.ones(self._box, bool)
        free = [d for d in self._divisors if set(d.variables()).isdisjoint(self.given)]
        at, inside = _without_zeros(free, at, inside)
        for variable in self.given:
            self._put_in(variable, at)
        for variable in self.given:
            low, high = variable.bounds
            inside &= (at[variable] >= low) & (at[variable] <= high)
        at, inside = _without_zeros(self._divisors, at, inside)
        at, inside = _chosen_points(at, inside)
        for c in self.map.constraints:
            value = c.expr.value(at)
            inside &= (value >= c.lower) & (value <= c.upper)
        at, inside = _chosen_points(at, inside)
        columns: list[NDArray[Any]] = [
            np.broadcast_to(np.asarray(result.value(at), self._number), inside.shape)
            for result in self.map.results
        ]
        return _counted_rows(columns, len(inside))

    @cached_property
    def _divisors(self) -> list[Expr]:
        """The divisors that may be 0."""
        return divisors_with_zero(self._exprs)

    @cached_property
    def _number(self) -> type:
        """The type of the integers: 64 bits, or Python's if numbers may exceed 64 bits."""
        bounds = [v.as_expr() for v in (*self.map.dims, *self.given)]
        return object if number_type([*bounds, *self._exprs]) is object else np.int64

    @property
    def _exprs(self) -> list[Expr]:
        indices = [i for given in self.given.values() for i in given.rt.index]
        return [*self.map.results, *[c.expr for c in self.map.constraints], *indices]

    @property
    def _box(self) -> int:
        return point_count(self.map.dims)

    def _put_in(self, variable: Variable, at: dict[Variable, Any]) -> None:
        """Add the value of a runtime variable to `at`, after the variables of its index."""
        if variable in at:
            return
        given = self.given[variable]
        for needed in [v for i in given.rt.index for v in i.variables() if v not in at]:
            self._put_in(needed, at)
        at[variable] = given.at([i.value(at) for i in given.rt.index])

    @cached_property
    def tally(self) -> Tally | Unknown:
        """The read counts of the results."""
        if not self.given:
            m = self.map
            if (closed := closed_tally(m.variables, m.results, m.constraints)) is not None:
                return closed
        if self._is_large and self.is_injective:
            points = self.points
            return points if isinstance(points, Unknown) else uniform(1, points)
        table = self.table
        return table if isinstance(table, Unknown) else Tally.of(Counter(table[1].tolist()))

    def at(self, element: Sequence[int]) -> int | Unknown:
        own = [element[k] for k in self.places]
        if self._is_large and self.is_injective:
            pieces = inverse(self.map)
            if isinstance(pieces, Unknown):
                return pieces
            return sum(piece.evaluate(own) is not None for piece in pieces)
        table = self.table
        if isinstance(table, Unknown):
            return table
        values, times = table
        return int(times[(values == _integers(own)).all(axis=1)].sum())

    @property
    def bounds(self) -> list[tuple[int, int]]:
        return [result.bounds for result in self.map.results]

    @property
    def _is_large(self) -> bool:
        return self._box > MAX_POINTS


def _parts(m: IndexingMap, given: Mapping[Variable, RuntimeValues]) -> Iterator[_Part]:
    """The parts of a map; all its runtime variables are given."""
    results = [_needs(result, given) for result in m.results]
    constraints = [_needs(c.expr, given) for c in m.constraints]
    values = {v: _needs_of_all(g.rt.index, given) for v, g in given.items()}
    groups = connected_variables((*m.dims, *m.ranges), (*results, *constraints, *values.values()))
    if any(not used for used in (*results, *values.values())):
        groups.append(set())
    for group in groups:
        yield _part(
            m,
            group,
            _inside(range(len(results)), results, group),
            _inside(m.constraints, constraints, group),
            _inside([given[v] for v in values], values.values(), group),
            given,
        )


def _inside(entries: Iterable[T], needs: Iterable[set[Variable]], group: set[Variable]) -> list[T]:
    """The entries that depend on variables of the group; for an empty group, the constant ones."""
    return [
        entry
        for entry, used in zip(entries, needs, strict=True)
        if used <= group and bool(used) == bool(group)
    ]


def _part(
    m: IndexingMap,
    group: set[Variable],
    places: Sequence[int],
    constraints: Sequence[Constraint],
    own: Sequence[RuntimeValues],
    given: Mapping[Variable, RuntimeValues],
) -> _Part:
    """The part with these results, constraints and runtime variables."""
    results = [m.results[k] for k in places]
    exprs = [*results, *[c.expr for c in constraints], *[i for g in own for i in g.rt.index]]
    values = {g.rt.variable: g for g in own} | _runtime_in(exprs, given)
    part = IndexingMap.of(
        [v for v in (*m.dims, *m.ranges) if v in group],
        results,
        runtime=[g.rt for g in values.values()],
        constraints=constraints,
    )
    return _Part(tuple(places), part, values)


def _runtime_in(
    exprs: Iterable[Expr], given: Mapping[Variable, RuntimeValues]
) -> dict[Variable, RuntimeValues]:
    """The runtime variables in these expressions and, recursively, in their indices."""
    mentioned: dict[Variable, RuntimeValues] = {}
    for v in [v for expr in exprs for v in expr.variables() if v in given]:
        mentioned |= {v: given[v]} | _runtime_in(given[v].rt.index, given)
    return mentioned


def _needs(expr: Expr, given: Mapping[Variable, RuntimeValues]) -> set[Variable]:
    """The variables on which an expression depends, directly or through given values."""
    free = {v for v in expr.variables() if v not in given}
    indices = [_needs_of_all(given[v].rt.index, given) for v in expr.variables() if v in given]
    return free.union(*indices)


def _needs_of_all(exprs: Iterable[Expr], given: Mapping[Variable, RuntimeValues]) -> set[Variable]:
    return set[Variable]().union(*[_needs(expr, given) for expr in exprs])


def _integers(numbers: Sequence[int]) -> NDArray[Any]:
    """The numbers as an array, of Python integers if one exceeds 64 bits."""
    is_small = all(-(1 << 63) <= number < 1 << 63 for number in numbers)
    return np.array(numbers, np.int64 if is_small else object)


_Points: TypeAlias = "tuple[dict[Variable, Any], NDArray[np.bool_]]"


def _chosen_points(at: dict[Variable, Any], inside: NDArray[np.bool_]) -> _Points:
    """The points at which `inside` is true, and true for each of them."""
    if inside.all():
        return at, inside
    chosen = {v: np.broadcast_to(a, inside.shape)[inside] for v, a in at.items()}
    return chosen, np.ones(int(inside.sum()), bool)


def _without_zeros(
    divisors: Sequence[Expr], at: dict[Variable, Any], inside: NDArray[np.bool_]
) -> _Points:
    """The points of `inside` at which no divisor is 0."""
    for divisor in divisors:
        at, inside = _chosen_points(at, inside)
        inside = inside & (divisor.value(at) != 0)
    return at, inside


def _counted_rows(columns: Sequence[NDArray[Any]], count: int) -> _Table:
    """The distinct rows of these columns in order, and the count of each row."""
    if any(column.dtype == object for column in columns):
        ordered = sorted(Counter(zip(*columns, strict=True)).items())
        rows = np.empty((len(ordered), len(columns)), object)
        rows[:] = [row for row, _ in ordered]
        return rows, np.array([times for _, times in ordered], np.int64)
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

"""Count how often a map reaches each element, part by part.

Results that share no variable, directly or through a constraint, are independent: the count of an
element is the product of the counts of its parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np

from indexing.maps.given_values import RuntimeValues, with_values
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.properties import is_injective
from indexing.maps.relation import count_domain, inverse
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

T = TypeVar("T")

MAX_POINTS: Final = 1 << 22
"""Maximum number of points of one part of a map, or elements of one array, to enumerate."""


def beyond_budget(points: int, owner: object) -> Unknown | None:
    """The reason not to enumerate so many points of `owner`; `None` if they are within budget."""
    if points <= MAX_POINTS:
        return None
    return Unknown(f"{owner} has {points} points to count, more than the budget of {MAX_POINTS}")


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

    def histogram(self) -> Counter[int] | Unknown:
        counts = Counter({self.idle: 1})
        for part in self.parts:
            factors = part.histogram
            if isinstance(factors, Unknown):
                return factors
            before, counts = counts, Counter()
            for (a, m), (b, n) in product(before.items(), factors.items()):
                counts[a * b] += m * n
        return counts

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
            shifted = values - np.array([origin[k] for k in part.places], np.int64)
            room = np.array([total.shape[k] for k in part.places], np.int64)
            inside = ((shifted >= 0) & (shifted < room)).all(axis=1)
            at: list[Any] = [0] * total.ndim
            for column, k in enumerate(part.places):
                at[k] = shifted[inside, column]
            counts[tuple(at)] = times[inside]
            here = here * counts
        total += here
        return None


_Table: TypeAlias = "tuple[NDArray[np.int64], NDArray[Any]]"


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
        """Number of points of the domain."""
        if not self.given:
            return count_domain(self.map)
        table = self.table
        return table if isinstance(table, Unknown) else int(table[1].sum())

    @cached_property
    def is_injective(self) -> bool:
        """True if each element is reached once at most; used beyond the enumeration budget."""
        return not self.given and is_injective(self.map) is True

    @cached_property
    def table(self) -> _Table | Unknown:
        """The distinct values of the results, one row each, and the count of each row."""
        variables = self.map.dims
        sizes = [v.upper - v.lower + 1 for v in variables]
        count = prod(sizes)
        if (beyond := beyond_budget(count, self.map)) is not None:
            return beyond
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
        """Add the value of a runtime variable to `at`, after the variables of its index."""
        given = self.given[variable]
        for needed in [v for i in given.rt.index for v in i.variables() if v not in at]:
            self._put_in(needed, at)
        at[variable] = given.at([i.value(at) for i in given.rt.index])

    @cached_property
    def histogram(self) -> Counter[int] | Unknown:
        if self._is_large and self.is_injective:
            points = self.points
            return points if isinstance(points, Unknown) else Counter({1: points})
        table = self.table
        return table if isinstance(table, Unknown) else Counter(table[1].tolist())

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
        return int(times[(values == np.array(own, np.int64)).all(axis=1)].sum())

    @property
    def bounds(self) -> list[tuple[int, int]]:
        return [result.bounds for result in self.map.results]

    @property
    def _is_large(self) -> bool:
        return prod(v.upper - v.lower + 1 for v in self.map.dims) > MAX_POINTS


def _parts(m: IndexingMap, given: Mapping[Variable, RuntimeValues]) -> Iterator[_Part]:
    """The parts of a map; all its runtime variables are given."""
    results = [_needs(result, given) for result in m.results]
    constraints = [_needs(c.expr, given) for c in m.constraints]
    values = {v: _needs_of_all(g.rt.index, given) for v, g in given.items()}
    groups = _connected((*m.dims, *m.ranges), (*results, *constraints, *values.values()))
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


def _connected(
    variables: Iterable[Variable], together: Iterable[set[Variable]]
) -> list[set[Variable]]:
    """The finest partition of the variables that splits no set of `together`."""
    groups = [{v} for v in variables]
    for used in together:
        disjoint = [group for group in groups if group.isdisjoint(used)]
        if len(disjoint) < len(groups):
            joined = [group for group in groups if not group.isdisjoint(used)]
            groups = [*disjoint, set[Variable]().union(*joined)]
    return groups


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
    values = {g.rt.variable: g for g in own} | _mentioned(exprs, given)
    part = IndexingMap.of(
        [v for v in (*m.dims, *m.ranges) if v in group],
        results,
        runtime=[g.rt for g in values.values()],
        constraints=constraints,
    )
    return _Part(tuple(places), part, values)


def _mentioned(
    exprs: Iterable[Expr], given: Mapping[Variable, RuntimeValues]
) -> dict[Variable, RuntimeValues]:
    """The runtime variables in these expressions and, recursively, in their indices."""
    mentioned: dict[Variable, RuntimeValues] = {}
    for v in [v for expr in exprs for v in expr.variables() if v in given]:
        mentioned |= {v: given[v]} | _mentioned(given[v].rt.index, given)
    return mentioned


def _needs(expr: Expr, given: Mapping[Variable, RuntimeValues]) -> set[Variable]:
    """The variables on which an expression depends, directly or through given values."""
    free = {v for v in expr.variables() if v not in given}
    indices = [_needs_of_all(given[v].rt.index, given) for v in expr.variables() if v in given]
    return free.union(*indices)


def _needs_of_all(exprs: Iterable[Expr], given: Mapping[Variable, RuntimeValues]) -> set[Variable]:
    return set[Variable]().union(*[_needs(expr, given) for expr in exprs])


def _counted_rows(columns: Sequence[NDArray[np.int64]], count: int) -> _Table:
    """The distinct rows of these columns in order, and the count of each row."""
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

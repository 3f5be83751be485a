"""Powers of a step that is the same in every iteration: products of indices and intervals.

If each map of a step is such a product, so is each map of its powers ``step^m``, and only finitely
many are possible: the sequence of powers ends in a period.  Its union over ``m`` is the exact
dependence of a loop's carried arrays on each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from indexing.maps.arrays import Path
from indexing.maps.indexing_map import Grade, IndexingMap
from indexing.maps.products import free_variable
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.interval import Interval, contains, intersect
from simplifier.linear import Expr, as_expr

MAX_POWERS: Final = 32
"""Limit on the powers that are compared to find the period."""
MAX_PRODUCTS: Final = 128
"""Limit on the products of one power."""

Pair: TypeAlias = tuple[Path, Path]


@dataclass(frozen=True, slots=True)
class Index:
    """``d_p``, or reversed, ``reflection - d_p``.

    Attributes:
        dimension: the number p.
        reflection: None if not reversed.
    """

    dimension: int
    reflection: int | None = None

    @classmethod
    def of(cls, result: Expr, dims: Sequence[Variable]) -> Index | None:
        """Return a result of a map as such an index, or None."""
        if len(result.terms) != 1:
            return None
        ((atom, sign),) = result.terms
        if atom not in dims or (sign != -1 and (sign, result.constant) != (1, 0)):
            return None
        assert isinstance(atom, Variable)
        return cls(dims.index(atom), None if sign == 1 else result.constant)

    def then(self, second: Index) -> Index:
        """Return the index `second`, whose dimension is this index.

        Raises:
            NotPeriodicError: two different reflections are a translation.
        """
        if second.reflection is None or self.reflection is None:
            one = self.reflection if second.reflection is None else second.reflection
            return Index(self.dimension, one)
        if self.reflection != second.reflection:
            raise NotPeriodicError
        return Index(self.dimension)

    def value(self, d: Variable) -> Expr:
        """Return the index, given the dimension."""
        return d.as_expr() if self.reflection is None else self.reflection - d.as_expr()

    def reflect(self, interval: Interval) -> Interval:
        """Return the values of the index for those of the dimension, and the reverse."""
        if self.reflection is None:
            return interval
        return self.reflection - interval[1], self.reflection - interval[0]


@dataclass(frozen=True, slots=True)
class Product:
    """``{(d, e): d in domain, and e_k is an index or in an interval, for each k}``.

    Attributes:
        domain: the bounds of each dimension.
    """

    domain: tuple[Interval, ...]
    results: tuple[Index | Interval, ...]
    grade: Grade = "exact"

    @classmethod
    def of_step(cls, m: IndexingMap) -> Product | None:
        """Return the product of the map of a step without its time; None if it is none.

        The last dimension of the map is the time t, its last result must be ``t - 1``.
        """
        *dims, time = m.dims
        if m.constraints or m.runtime or m.results[-1] != time - 1:
            return None
        free = [free_variable(result, m) for result in m.results[:-1]]
        used = [variable for variable in free if variable is not None]
        if len(set(used)) != len(used) or set(used) != set(m.ranges):
            return None
        results: list[Index | Interval] = []
        for result, variable in zip(m.results, free, strict=False):
            index = Index.of(result, dims)
            if index is not None:
                results.append(index)
            elif variable is not None or result.is_constant:
                results.append(result.bounds)
            else:
                return None
        return cls(tuple([d.bounds for d in dims]), tuple(results), m.grade)

    @classmethod
    def identity(cls, sizes: Sequence[int]) -> Product:
        """Return the identity of an array."""
        return cls(tuple([(0, size - 1) for size in sizes]), tuple(map(Index, range(len(sizes)))))

    def then(self, second: Product) -> Product | None:
        """Return the composition ``x -> second(self(x))``; None if it is empty.

        Raises:
            NotPeriodicError: the composition is no product.
        """
        domain, values = list(self.domain), list(self.results)
        for k, inside in enumerate(second.domain):
            value = values[k]
            if isinstance(value, Index):
                p = value.dimension
                domain[p] = intersect(domain[p], value.reflect(inside))
            else:
                values[k] = value = intersect(value, inside)
                if value[0] > value[1]:
                    return None
        if any(low > high for low, high in domain):
            return None
        used = [
            index.dimension
            for index in second.results
            if isinstance(index, Index) and not isinstance(values[index.dimension], Index)
        ]
        if len(set(used)) != len(used):
            raise NotPeriodicError  # two results have the same value of an interval
        results = [_through(index, values) for index in second.results]
        grade: Grade = "may" if "may" in (self.grade, second.grade) else "exact"
        return Product(tuple(domain), tuple(results), grade)

    def covers(self, other: Product) -> bool:
        """Return True if the relation is a superset of another one, of no better grade."""

        def result_covers(a: Index | Interval, b: Index | Interval) -> bool:
            if isinstance(a, Index):
                return a == b
            return contains(a, _values(b, other.domain))

        return (
            (self.grade == "exact" or other.grade == "may")
            and all(contains(a, b) for a, b in zip(self.domain, other.domain, strict=True))
            and all(result_covers(a, b) for a, b in zip(self.results, other.results, strict=True))
        )

    def at_steps(self, last: int, steps: Steps) -> IndexingMap:
        """Return the map ``(d, t) -> (e, k)`` whose number of steps ``t - k`` is one of `steps`."""
        rank = len(self.domain)
        dims = [Variable(f"d{k}", *bounds) for k, bounds in enumerate(self.domain)]
        time = Variable(f"d{rank}", 0, last)
        ranges: list[Variable] = []
        results: list[Expr] = []
        for value in self.results:
            if isinstance(value, Index):
                results.append(value.value(dims[value.dimension]))
            elif value[0] == value[1]:
                results.append(as_expr(value[0]))
            else:
                ranges.append(Variable(f"s{len(ranges)}", *value))
                results.append(ranges[-1].as_expr())
        earlier, constraints = time - steps.first, list[Constraint]()
        if steps.period:
            ranges.append(Variable(f"s{len(ranges)}", 0, last - steps.first))
            constraints.append(Constraint(earlier - ranges[-1], 0, last))
            if steps.period > 1:
                constraints.append(Constraint((earlier - ranges[-1]) % steps.period, 0, 0))
            earlier = ranges[-1].as_expr()
        return IndexingMap.of(
            [*dims, time],
            [*results, earlier],
            ranges=ranges,
            constraints=[*constraints, Constraint(earlier, 0, last)],
            grade=self.grade,
        ).simplify()


class NotPeriodicError(ValueError):
    """A composition of products is no product, or may never repeat itself."""


def _through(index: Index | Interval, values: Sequence[Index | Interval]) -> Index | Interval:
    """Return a result of a composition, given the results of the first product."""
    if not isinstance(index, Index):
        return index
    value = values[index.dimension]
    return value.then(index) if isinstance(value, Index) else index.reflect(value)


def _values(result: Index | Interval, domain: Sequence[Interval]) -> Interval:
    """Return the values of a result."""
    return result.reflect(domain[result.dimension]) if isinstance(result, Index) else result


@dataclass(frozen=True, slots=True)
class Steps:
    """The numbers of steps ``first + period · n``; only `first` if the period is 0."""

    first: int
    period: int


Power: TypeAlias = Mapping[Path, frozenset[Product]]


def powers(
    leaf: Path, sizes: Sequence[int], step: Mapping[Pair, Iterable[Product]], last: int
) -> dict[Path, list[IndexingMap]] | None:
    """Return the union of the powers of a step as maps ``(d, t) -> (e, k)`` with ``k <= t``.

    Args:
        leaf, sizes: the leaf that the maps start at, and its sizes.
        step: the products from each leaf to each leaf.
        last: the largest time, which is the largest power.
    Returns:
        The maps to each leaf; None beyond a limit.
    """
    current: Power = {leaf: frozenset([Product.identity(sizes)])}
    sequence: list[Power] = []
    try:
        while current not in sequence:
            sequence.append(current)
            if len(sequence) > last:
                return _maps(sequence, len(sequence), last)
            current = _compose_power(current, step)
            if len(sequence) > MAX_POWERS or sum(map(len, current.values())) > MAX_PRODUCTS:
                return None
    except NotPeriodicError:
        return None
    return _maps(sequence, sequence.index(current), last)


def _compose_power(first: Power, second: Mapping[Pair, Iterable[Product]]) -> Power:
    products: dict[Path, list[Product]] = {}
    for (y, z), twos in second.items():
        composed = [one.then(two) for one in first.get(y, ()) for two in twos]
        products.setdefault(z, []).extend([each for each in composed if each])
    return {z: frozenset(_maximal(each)) for z, each in products.items() if each}


def _maximal(products: Sequence[Product]) -> Iterator[Product]:
    """Yield the products that no other one covers."""
    distinct = list(dict.fromkeys(products))
    for product in distinct:
        if not any(other is not product and other.covers(product) for other in distinct):
            yield product


def _maps(sequence: Sequence[Power], start: int, last: int) -> dict[Path, list[IndexingMap]]:
    """Return the maps of a sequence of powers, which repeats itself from number `start`."""
    period = len(sequence) - start
    maps: dict[Path, list[IndexingMap]] = {}
    for leaf in dict.fromkeys(leaf for power in sequence for leaf in power):
        members = [power.get(leaf, frozenset[Product]()) for power in sequence]
        for product in dict.fromkeys(each for member in members for each in _sort_products(member)):
            present = [product in member for member in members]
            for steps in _steps(present, start, period):
                maps.setdefault(leaf, []).append(product.at_steps(last, steps))
    return maps


def _sort_products(products: Iterable[Product]) -> list[Product]:
    """Return products in an order that does not depend on hashes."""
    return sorted(products, key=repr)


def _steps(present: Sequence[bool], start: int, period: int) -> Iterator[Steps]:
    """Yield the numbers of powers that contain a product, as few progressions as possible."""
    tail = present[start:]
    first = len(present)
    if period and all(tail):
        first = max([k + 1 for k, is_in in enumerate(present) if not is_in], default=0)
        yield Steps(first, 1)
    else:
        for k, is_in in enumerate(tail):
            if is_in:
                yield Steps(start + k, period)
        first = start
    for k, is_in in enumerate(present[:first]):
        if is_in:
            yield Steps(k, 0)

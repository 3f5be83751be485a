"""Maps with few parts that over-approximate others: the full map, and boxes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from hlo.shapes.shape import Shape
from indexing.maps.indexing_map import IndexingMap, dims, ranges
from indexing.maps.memoised import memoised_maps
from indexing.maps.options import Options
from indexing.maps.space_pairs import SpacePair
from simplifier.atoms import Variable
from simplifier.bounds import KnownBounds
from simplifier.constraints import Constraint, sum_bounds
from simplifier.interval import Interval, contains, intersect, join
from simplifier.linear import Expr, as_expr
from simplifier.substitute import Substitution

MAX_PARTS = 32
"""Limit on range variables, runtime variables and constraints of one map; beyond it, the map is
over-approximated.  A chain of windows adds parts with each window."""
MAX_WEIGHT: Final = 1 << 20
"""Limit on the atoms in the text of one map; beyond it, the map is over-approximated.  A chain of
reshapes and reverses that do not cancel multiplies them with each reshape."""
FEW_FUNCTIONS: Final = 4
"""Maps of a hull whose results are tried as functions from which the others differ little."""
OPTIONS: Final = Options()


def full_map(spaces: SpacePair, options: Options = OPTIONS) -> IndexingMap:
    """Return the full `may` map: each index of one space to every index of another."""
    assert spaces.start is not None
    assert spaces.sizes is not None
    return _full_map(spaces.start, spaces.sizes, options.simplify)


@lru_cache(maxsize=1 << 9)
def _full_map(start: tuple[Variable, ...], sizes: tuple[int, ...], simplify: bool) -> IndexingMap:
    s = ranges(*sizes)
    full = IndexingMap.of(start, s, ranges=s, grade="may")
    return full.simplify() if simplify else full


def every_element(source: Shape, target: Shape) -> IndexingMap:
    """Return the exact map from each element of one tensor to every element of another.

    >>> print(every_element(Shape("f32", (5,)), Shape("f32", (2, 3))))
    (d0)[s0, s1] -> (s0, s1), domain: d0 in [0, 4], s0 in [0, 1], s1 in [0, 2]
    """
    return _full_map(dims(source), target.dims, False).with_grade("exact")


def over_approximate(
    indexing_map: IndexingMap, sizes: tuple[int, ...] | None = None
) -> IndexingMap:
    """Return a `may` map with few parts whose relation is a superset of that of `indexing_map`.

    A result that depends on dimensions only is kept, unless its text has more than `MAX_WEIGHT`
    atoms.  Any other result becomes a range variable over the values that its bounds, the
    constraints and the array's `sizes` allow.

    >>> from indexing.maps.text import parse_map
    >>> window = "(d0, d1)[s0, s1] -> (d0, d1 + s0 * 2 + s1), domain: d0 in [0, 3], d1 in [0, 5], "
    >>> print(over_approximate(parse_map(window + "s0 in [0, 2], s1 in [0, 1], d1 + s0 in [1, 6]")))
    (d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 3], d1 in [0, 5], s0 in [0, 10]

    A padded window reads no padding:

    >>> padded = parse_map("()[s0, s1] -> (s0 + s1 - 1), domain: s0 in [0, 8], s1 in [0, 2], "
    ...                    "s0 + s1 in [1, 9]")
    >>> print(over_approximate(padded))
    ()[s0] -> (s0), domain: s0 in [0, 8]
    """
    if indexing_map.is_known_empty:
        return indexing_map
    inside = [(0, size - 1) for size in sizes or ()] or [
        result.bounds for result in indexing_map.results
    ]
    domain_bounds = KnownBounds(sum_bounds(indexing_map.constraints))
    free: list[Variable] = []
    results: list[Expr] = []
    for result, box in zip(indexing_map.results, inside, strict=True):
        is_kept = result.weight <= MAX_WEIGHT and set(result.variables()) <= set(indexing_map.dims)
        if not (is_kept and contains(box, result.bounds)):
            bounds = intersect(box, domain_bounds.bounds(result))
            free.append(Variable(f"s{len(free)}", *bounds))
            result = free[-1].as_expr()
        results.append(result)
    return IndexingMap.of(indexing_map.dims, results, ranges=free, grade="may")


def hull(maps: Sequence[IndexingMap], spaces: SpacePair, has_distances: bool = True) -> IndexingMap:
    """Return a `may` map with few parts whose relation is a superset of the union of `maps`.

    Its domain is the whole index space, so that hulls of many sets are equal.  Each result is
    widened by itself.  One that is the same function of the dimensions in all maps is kept.  Any
    other result becomes a range variable over the values that the maps allow.  Its distance from a
    dimension, or from the result of a map, is bounded where that excludes half of the values.

    Args:
        has_distances: bound distances; otherwise, keep dimensions only, so that more hulls are
            equal.

    >>> from indexing.maps.text import parse_map
    >>> texts = ["(d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 3], d1 in [0, 0], s0 in [0, 2]",
    ...          "(d0, d1) -> (d0, d1 + 4), domain: d0 in [2, 5], d1 in [1, 3]"]
    >>> print(hull([parse_map(text) for text in texts], SpacePair(dims((6, 4)), (6, 8))).simplify())
    (d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 5], d1 in [0, 3], s0 in [0, 7], d1 - s0 in [-4, 0]
    """
    assert spaces.start is not None
    framed = [_Framed(m, spaces) for m in maps if not m.is_known_empty]
    if not framed:
        return maps[0]
    free: list[Variable] = []
    results: list[Expr] = []
    constraints: list[Constraint] = []
    for k, value in enumerate(framed[0].box.results):
        bounds = join([each.box.results[k].bounds for each in framed])
        if bounds[0] < bounds[1] or not value.is_constant:
            near = _nearest(framed, k, spaces.start)
            known = _known_result(near, bounds, has_distances)
            if known is None:
                free.append(Variable(f"s{len(free)}", *bounds))
                known = free[-1].as_expr(), _distance(free[-1].as_expr(), near, has_distances)
            value, more = known
            constraints += more
        results.append(value)
    stated = [c for c in constraints if not c.is_true]
    return IndexingMap.of(spaces.start, results, ranges=free, constraints=stated, grade="may")


def _known_result(
    near: tuple[Expr, Interval], bounds: Interval, has_distances: bool
) -> tuple[Expr, list[Constraint]] | None:
    """Return a result that differs from a function by one number, and its bounds; else None."""
    function, (lower, upper) = near
    if lower < upper:
        return None
    value = function + lower
    if has_distances:
        return value, [Constraint(value, *bounds)]
    return (value, []) if not lower and function.as_variable else None


def _distance(value: Expr, near: tuple[Expr, Interval], has_distances: bool) -> list[Constraint]:
    """Return the bounds of the distance from a function if they exclude half of the values."""
    function, (lower, upper) = near
    first, last = (value - function).bounds
    excludes_half = has_distances and 2 * (upper - lower) <= last - first
    return [Constraint(value - function, lower, upper)] if excludes_half else []


class _Framed:
    """A map whose results are compared with functions of the dimensions of an index space.

    Attributes:
        box: the map with few parts, whose results are functions of dimensions, or intervals.
    """

    __slots__ = ("_from_start", "_known", "_m", "_to_start", "box")

    def __init__(self, m: IndexingMap, spaces: SpacePair) -> None:
        assert spaces.start is not None
        self._m, self.box = m, over_approximate(m, spaces.sizes)
        self._known = KnownBounds(sum_bounds(m.constraints))
        pairs = list(zip(m.dims, spaces.start, strict=True))
        self._to_start = Substitution({d: start.as_expr() for d, start in pairs})
        self._from_start = Substitution({start: d.as_expr() for d, start in pairs})

    def function(self, k: int) -> Expr | None:
        """Return result `k` as a function of the index space, or None."""
        result = self.box.results[k]
        return None if set(result.variables()) & set(self.box.ranges) else self._to_start(result)

    def distance(self, k: int, function: Expr) -> Interval:
        """Return bounds of result `k` minus a function of the index space."""
        result = self._m.results[k]
        if result.weight > MAX_WEIGHT:
            result = self.box.results[k]
        return self._known.bounds(result - self._from_start(function))


def _nearest(framed: Sequence[_Framed], k: int, start: Sequence[Variable]) -> tuple[Expr, Interval]:
    """Return the function from which result `k` of all maps differs least, and the distance."""
    own = [each.function(k) for each in framed[:FEW_FUNCTIONS]]
    functions = dict.fromkeys([*[e for e in own if e is not None], *[d.as_expr() for d in start]])
    distances = [
        (e, join([each.distance(k, e) for each in framed])) for e in functions or [as_expr(0)]
    ]
    return min(distances, key=_width)


def _width(distance: tuple[Expr, Interval]) -> int:
    _, (lower, upper) = distance
    return upper - lower


def parts(m: IndexingMap) -> int:
    """Return the number of range variables, runtime variables and constraints of a map."""
    return len(m.ranges) + len(m.runtime) + len(m.constraints)


@memoised_maps(1 << 11)
def weight(m: IndexingMap) -> int:
    """Return the number of atoms in the text of a map."""
    total = 0
    for result in m.results:
        total += result.weight
    for constraint in m.constraints:
        total += constraint.expr.weight
    return total


def is_within_limits(m: IndexingMap) -> bool:
    """Return True if a map is short enough to be kept as it is."""
    return parts(m) <= MAX_PARTS and weight(m) <= MAX_WEIGHT

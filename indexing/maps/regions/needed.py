"""The elements that a point or a tile needs by a map, with values of runtime variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Final

from indexing.maps.given_values import by_value_name, source_values
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.regions.region import Region
from indexing.maps.regions.selection import (
    Index,
    check_index,
    expand_ellipsis,
    image_of,
    integer,
    raise_unknown_name,
    restrict_to,
    with_value,
)
from indexing.maps.replaced_variables import with_replaced_variables
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable, point_count
from simplifier.interval import Interval

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

MAX_LOOKUPS: Final = 1 << 10
"""Maximum number of elements of a source whose values are used one by one; beyond, the smallest and
the largest value bound the variable."""


def region_at(m: IndexingMap, point: Sequence[Index], values: Mapping[str, ArrayLike]) -> Region:
    """Return the elements that a tile of points needs; see `IndexingMap.at`."""
    restricted = m
    for v, at in zip(m.dims, expand_ellipsis(point, m), strict=True):
        if isinstance(at, slice):
            restricted = restrict_to(restricted, v, at)
        else:
            restricted = with_value(restricted, v, check_index(v, at))
    return Region.of([image_of(each) for each in _with_values(restricted, values)], len(m.results))


def region_inside(
    m: IndexingMap, point: Sequence[Index], values: Mapping[str, ArrayLike]
) -> Region:
    """Return the elements that a tile needs by a map of a part of the array: `at`, or nothing.

    >>> from indexing import parse_map
    >>> second = parse_map("(d0) -> (d0 - 6), domain: d0 in [6, 8]")
    >>> print(region_inside(second, [2], {}), region_inside(second, [7], {}))
    ∅ [1]
    """
    tile = [
        at if isinstance(at, slice | EllipsisType) else slice(i := integer(at, f"index {k}"), i + 1)
        for k, at in enumerate(point)
    ]
    return region_at(m, tile, values)


def _with_values(m: IndexingMap, values: Mapping[str, ArrayLike]) -> list[IndexingMap]:
    """Return maps whose union is the map with values of range and runtime variables.

    Args:
        values: by the name of the variable, or of the source of a runtime variable.
    Raises:
        TypeError: the map has no such variable, or a value is not an integer.
        ValueError: an array has not the shape of the source, a value is out of bounds, or a name
            is that of several sources.
    """
    values = by_value_name([m], values)
    sources = {rt.value_name for rt in m.runtime if rt.source is not None}
    known = {v.name for v in m.variables[len(m.dims) :]} | sources
    for name in values:
        if name not in known:
            raise_unknown_name(m, name, known)
    maps = [m]
    for rt in m.runtime:
        given = [n for n in (rt.name, rt.value_name) if n in values]
        if given:
            array = source_values(rt, values[given[0]], given[0])
            maps = [each for old in maps for each in _with_runtime_value(old, rt.name, array)]
    for v in m.ranges:
        if v.name in values:
            value = check_index(v, values[v.name])  # type: ignore[arg-type]
            maps = [with_value(each, _variable(each, v.name), value) for each in maps]
    return maps


def _with_runtime_value(m: IndexingMap, name: str, array: NDArray[Any]) -> Iterator[IndexingMap]:
    """Yield the map for each element of the source that it uses, or with bounds of their values."""
    rt = _runtime_variable(m, name)
    if rt is None:  # the map is empty
        yield m
        return
    used = _variables(rt) if array.ndim else ()
    points = point_count(used)
    if used and points <= MAX_LOOKUPS and not {other.variable for other in m.runtime} & set(used):
        for point in product(*[range(v.lower, v.upper + 1) for v in used]):
            yield _look_up(m, name, array, dict(zip([v.name for v in used], point, strict=True)))
    else:
        yield _with_bounds(m, rt, _part(array, [i.bounds for i in rt.index]))


def _look_up(
    m: IndexingMap, name: str, array: NDArray[Any], point: Mapping[str, int]
) -> IndexingMap:
    """The map at one index of the source, with the value of that element."""
    for each, value in point.items():
        m = with_value(m, _variable(m, each), value)
    rt = _runtime_variable(m, name)
    if rt is None:
        return m
    return _with_bounds(m, rt, _part(array, [i.bounds for i in rt.index]))


def _part(array: NDArray[Any], bounds: Sequence[Interval]) -> NDArray[Any]:
    """The elements of an array with indices within bounds, which may exceed the array.

    Indices outside of the array belong to points outside of the domain of the map.
    """
    sides = [slice(max(low, 0), max(high + 1, 0)) for low, high in bounds]
    return array[tuple(sides)] if array.ndim else array


def _variables(rt: RuntimeVariable) -> tuple[Variable, ...]:
    """The variables that the index of the source element uses."""
    return tuple(dict.fromkeys([v for i in rt.index for v in i.variables()]))


def _variable(m: IndexingMap, name: str) -> Variable:
    return next(v for v in m.variables if v.name == name)


def _runtime_variable(m: IndexingMap, name: str) -> RuntimeVariable | None:
    return next((rt for rt in m.runtime if rt.name == name), None)


def _with_bounds(m: IndexingMap, rt: RuntimeVariable, array: NDArray[Any]) -> IndexingMap:
    """The map with the single value of an array, or bounded by its smallest and largest value."""
    if not array.size:
        return IndexingMap.empty(m.dims, len(m.results))
    low, high = int(array.min()), int(array.max())
    own = rt.variable.bounds
    if rt.clamp is not None:
        low, high = [min(max(x, rt.clamp[0]), rt.clamp[1]) for x in (low, high)]
    elif low < own[0] or high > own[1]:
        raise ValueError(f"{rt.name} = {array} is outside [{own[0]}, {own[1]}]")
    low, high = max(low, own[0]), min(high, own[1])  # of a mask, or of one of several pieces
    if low > high:
        return IndexingMap.empty(m.dims, len(m.results))
    if low == high:
        return with_value(m, rt.variable, low)
    narrowed = Variable(rt.name, low, high)
    return with_replaced_variables(m, {rt.variable: narrowed.as_expr()}, {rt.variable: narrowed})

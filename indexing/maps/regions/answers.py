"""The regions of all operands that a point or a tile needs; see `Answer.at`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, reduce
from itertools import chain
from operator import or_
from types import EllipsisType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from hlo.shapes.shape import AnyShape, leaves
from hlo.text.names import nearest
from indexing.maps.answers import Answer
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.given_values import by_value_name
from indexing.maps.indexing_map import IndexingMap, has_device
from indexing.maps.regions.needed import region_inside
from indexing.maps.regions.region import Region
from indexing.maps.regions.selection import Index, integer
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

OperandRegion: TypeAlias = "Region | tuple[Region, ...] | Unknown"
"""The region of an operand; one for each leaf of a tuple-shaped operand."""


def regions_at(
    answer: Answer, point: Sequence[Index], values: Mapping[str, ArrayLike]
) -> tuple[OperandRegion, ...]:
    """Return the elements of each operand that a point or a tile needs; see `Answer.at`."""
    region_of = _regions_of_maps(answer, point, values)
    return tuple([_region(answer, k, region_of) for k in range(len(answer.operands))])


class RegionBounds(NamedTuple):
    """Bounds of the elements of one output that read a tile, for all values of runtime variables.

    Attributes:
        least: elements that read the tile for all values.
        most: all elements that read the tile for some values.
    """

    least: Region
    most: Region


def bounds_at(
    answer: Answer, point: Sequence[Index], values: Mapping[str, ArrayLike]
) -> tuple[RegionBounds | Unknown, ...]:
    """Return bounds of the elements of each output that read a tile of an operand.

    >>> import hlo, indexing
    >>> root = hlo.parse('''ENTRY e { p = f32[6] parameter(0)  u = f32[2] parameter(1)
    ...   i = s32[] parameter(2)  ROOT d = f32[6] dynamic-update-slice(p, u, i) }''').entry.root
    >>> print(*bounds_at(indexing.input_to_output(root, 1), (slice(0, 1),), {})[0])
    ∅ [0:5] over rt0 in [0, 4]
    >>> print(*bounds_at(indexing.input_to_output(root, 1), (slice(0, 1),), {"i": 2})[0])
    [2] [2]
    """
    region_of = _regions_of_maps(answer, point, values)
    return tuple([_bounds(answer, k, region_of) for k in range(len(answer.operands))])


def _bounds(
    answer: Answer, k: int, region_of: Callable[[IndexingMap], Region]
) -> RegionBounds | Unknown:
    unknown = answer.unknown[k]
    if unknown is not None:
        return unknown
    array = ArrayRef(answer.operands[k], leaves(answer.operands[k].shape)[k][0])
    devices = _device_rank(answer)
    regions = list(map(region_of, answer.maps[k]))
    exact = [region for region in regions if region.grade == "exact"]
    return RegionBounds(_union(exact, array, devices), _union(regions, array, devices))


def _regions_of_maps(
    answer: Answer, point: Sequence[Index], values: Mapping[str, ArrayLike]
) -> Callable[[IndexingMap], Region]:
    """Return the function from the maps of an answer to the elements that a tile needs."""
    values = by_value_name([m for own in answer.maps for m in own], values)
    _check_values(answer, values)
    _check_start(answer)
    _check_point(answer, point)

    @cache  # hundreds of operands may share a few maps
    def region_of(m: IndexingMap) -> Region:
        own = {name: value for name, value in values.items() if name in _names(m)}
        return region_inside(m, point, own)

    return region_of


def _region(answer: Answer, k: int, region_of: Callable[[IndexingMap], Region]) -> OperandRegion:
    unknown = answer.unknown[k]
    if unknown is not None:
        return unknown
    regions: dict[Path, list[Region]] = {}
    devices = _device_rank(answer)
    for m, path in zip(answer.maps[k], answer.paths[k], strict=True):
        regions.setdefault(path, []).append(region_of(m))
    if answer.direction != "output-to-input":
        path, _ = leaves(answer.operands[k].shape)[k]
        return _union(chain(*regions.values()), ArrayRef(answer.operands[k], path), devices)
    arrays = [ArrayRef(answer.operands[k], path) for path, _ in leaves(answer.operands[k].shape)]
    united = [_union(regions.get(array.path, ()), array, devices) for array in arrays]
    return united[0] if arrays and arrays[0].path == () else tuple(united)


def _union(regions: Iterable[Region], array: ArrayRef, devices: int) -> Region:
    rank = devices + getattr(array.shape, "rank", 0)
    return reduce(or_, regions, Region.of_boxes((), rank))


def _device_rank(answer: Answer) -> int:
    """Return the number of dimensions of an index before those of an array: 1 with devices."""
    first = next(chain(*answer.maps), None)  # all maps have the dimension, or none
    return int(first is not None and has_device(first))


def _check_start(answer: Answer) -> None:
    """Refuse points of a tuple-shaped operand: it has several arrays of start."""
    if answer.direction != "input-to-output":
        return
    operand = answer.instruction.operands[answer.domain_id]
    if [path for path, _ in leaves(operand.shape)] != [()]:
        raise ValueError(
            f"operand {answer.domain_id} of `{answer.instruction.name}`, `{operand.name}`, is a "
            "tuple: call `at` on a map of `answer.maps`, whose `answer.paths` name the leaf"
        )


def _check_point(answer: Answer, point: Sequence[Index]) -> None:
    """Refuse indices outside of the array of start, of which a map may cover a part only."""
    shape: AnyShape = answer.instruction.shape
    if answer.direction == "input-to-output":
        shape = answer.instruction.operands[answer.domain_id].shape
    elif outputs := leaves(shape):
        shape = outputs[answer.domain_id][1]
    dims: tuple[int, ...] = getattr(shape, "dims", ())
    devices = _device_rank(answer)
    holes = [k for k, at in enumerate(point) if isinstance(at, EllipsisType)]
    for k, at in enumerate(point):
        place = k - devices if not holes or k < holes[0] else k + len(dims) - len(point)
        if isinstance(at, slice | EllipsisType) or not 0 <= place < len(dims):
            continue
        if not 0 <= integer(at, f"d{place}") < dims[place]:
            raise IndexError(f"d{place} = {at} is outside [0, {dims[place] - 1}]")


def _check_values(answer: Answer, values: Iterable[str]) -> None:
    """Refuse names that no map has, and names of different values."""
    maps = [m for own in answer.maps for m in own]
    known = sorted({name for m in maps for name in _names(m)})
    for name in values:
        if name not in known:
            near = nearest(name, known)
            hint = near or f"they have {', '.join(known) or 'none'}"
            raise TypeError(
                f"no map of the answer has a range or runtime variable {name!r}: {hint}"
            )
        sources = {(rt.array, rt.index) for m in maps for rt in m.runtime if rt.name == name}
        if len(sources) > 1:
            names = sorted({str(array.instruction) for array, _ in sources if array is not None})
            raise ValueError(
                f"{name} has different sources in the maps: {', '.join(names)}; "
                "pass values by the name of the source"
            )


def _names(m: IndexingMap) -> set[str]:
    """The names of range and runtime variables, and of the sources of the latter."""
    sources = {rt.value_name for rt in m.runtime if rt.source is not None}
    return {v.name for v in m.variables[len(m.dims) :]} | sources

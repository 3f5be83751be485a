"""Pictures of regions, and of what an element or a tile reads by an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from types import EllipsisType
from typing import Any, Final, TypeGuard

import numpy as np

from hlo.shapes.shape import AnyShape, Shape, leaves
from indexing.dataflow.given_parameters import regions_at
from indexing.drawing.drawing import Backend, as_drawing
from indexing.drawing.element_counts import BoxCounts, ElementCounts, ListedCounts, region_counts
from indexing.drawing.figures import CellGrid, DrawnPanel, Figure
from indexing.drawing.heat_maps import HeatMap, heat_panels
from indexing.drawing.style import Theme
from indexing.maps.answers import Answer
from indexing.maps.arrays import Path, leaf_name
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.multiplicity import multiplicity
from indexing.maps.regions.boxes import Box, progression
from indexing.maps.regions.region import Region
from indexing.maps.regions.selection import Index, expand_ellipsis, restrict_to, with_value
from simplifier.unknown import Unknown

MAX_ARRAYS: Final = 6
"""Number of arrays in one picture; further ones are counted."""
MAX_COUNTED: Final = 1 << 20
"""Number of elements of the box around a region in which reads are counted."""


def plot_region(
    region: Region,
    dims: Sequence[int] | None,
    plane: tuple[int, int] | None,
    backend: Backend,
    theme: Theme,
) -> Any:
    """Return a picture of a region; see `Region.plot`."""
    sizes = _region_dims(region, dims)
    title = f"region {region}"
    if isinstance(sizes, Unknown):
        return as_drawing(Figure(title, (), (f"unknown: {sizes}",)), backend, theme)
    _check_plane(plane, len(sizes))
    counts = region_counts(region)
    if isinstance(counts, Unknown):
        return as_drawing(Figure(title, (), (f"unknown: {counts}",)), backend, theme)
    text = f"[{', '.join(map(str, sizes))}]"
    is_bound = region.grade == "may"
    is_under = is_bound and region.side == "under"
    heat = HeatMap(
        *(f"array {text}", "array", sizes, counts),
        is_bound=is_bound and not is_under,
        notes=("an under-approximation: other elements may belong to it",) if is_under else (),
        plane=plane,
    )
    return as_drawing(Figure(title, heat_panels(heat)), backend, theme)


def _region_dims(region: Region, dims: Sequence[int] | None) -> tuple[int, ...] | Unknown:
    """Return the sizes of the array: those given, or the least that contain the region."""
    box = region.bounding_box
    if isinstance(box, Unknown):
        return box if dims is None else tuple(dims)
    ends = [0] * region.rank if box is None else [p.last + 1 for p in box.progressions]
    starts = [0] * region.rank if box is None else list(box.offsets)
    if min(starts, default=0) < 0:
        raise ValueError(f"the region has negative indices, which no array has: {region}")
    if dims is None:
        return tuple(ends)
    if len(dims) != region.rank:
        raise ValueError(f"`dims` has {len(dims)} sizes, but the region has rank {region.rank}")
    if any(size < end for size, end in zip(dims, ends, strict=True)):
        raise ValueError(f"the region {region} is not inside of an array of sizes {tuple(dims)}")
    return tuple(dims)


def _check_plane(plane: tuple[int, int] | None, rank: int) -> None:
    if plane is not None and not (plane[0] != plane[1] and all(0 <= k < rank for k in plane)):
        raise ValueError(f"`plane` is two different dimensions below {rank}, got {plane}")


# ---------------------------------------------------------------- answers


def plot_answer(
    answer: Answer,
    point: Sequence[Index],
    values: Mapping[str, Any],
    operand: int | None,
    plane: tuple[int, int] | None,
    backend: Backend,
    theme: Theme,
) -> Any:
    """Return a picture of what a point or a tile needs; see `Answer.plot`."""
    count = len(answer.operands)
    if operand is not None and not 0 <= operand < count:
        raise IndexError(f"`operand` is {operand}, but the answer has {count} operands")
    chosen = None if operand is None else frozenset((operand,))
    picture = AnswerPicture(answer, tuple(point) or (...,), values, chosen, plane)
    return as_drawing(picture.figure(), backend, theme)


@dataclass(frozen=True)
class AnswerPicture:
    """A tile, and what it needs of each operand.

    Attributes:
        answer: the maps.
        point: the tile, an index or a slice for each dimension.
        values: values of range and runtime variables, by name.
        operands: the numbers of the operands to draw; `None` for all.
        plane: the dimensions of rows and columns, of arrays that have them.
        tile: the sizes of tiles whose borders are drawn.
    """

    answer: Answer
    point: tuple[Index, ...]
    values: Mapping[str, Any] = field(default_factory=dict)
    operands: frozenset[int] | None = None
    plane: tuple[int, int] | None = None
    tile: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.plane is not None:
            _check_plane(self.plane, max(self.plane) + 1)

    def figure(self, title: str = "") -> Figure:
        """Return the panels of the tile and of each operand; by default, the title is the tile."""
        answer = self.answer
        regions = regions_at(answer, self.point, self.values)
        name, shape = start_of(answer)
        panels: list[DrawnPanel] = []
        notes: list[str] = []
        if is_drawable(shape):
            panels += self._tile_panels(name, shape)
        else:
            notes.append(f"`{name}`: {shape} is not drawn")
        drawn = 0
        for k, own in enumerate(regions):
            if self.operands is not None and k not in self.operands:
                continue
            if isinstance(own, Unknown):
                notes.append(f"`{answer.operands[k].name}`: unknown: {own.reason}")
                continue
            for path, leaf, region in _leaf_regions(answer, k, own):
                array = leaf_name(answer.operands[k].name, path)
                if not region:
                    notes.append(f"`{array}`: no element is needed")
                elif not is_drawable(leaf):
                    notes.append(f"`{array}`: {leaf} is not drawn")
                elif drawn == MAX_ARRAYS:
                    notes.append(f"`{array}`: not drawn: a picture has {MAX_ARRAYS} operands")
                else:
                    drawn += 1
                    panels += self._needed_panels(self._maps(k, path), array, leaf, region)
        if _is_composed(answer):
            notes.append("paths through several instructions with equal maps count once")
        verb = "needs" if answer.direction == "output-to-input" else "is needed by"
        title = title or f"what {name}{_point_text(self.point)} {verb}"
        return Figure(title, tuple(panels), tuple(notes))

    def _maps(self, k: int, path: Path) -> list[IndexingMap]:
        """The maps of one array of an operand, or of an output."""
        pairs = zip(self.answer.maps[k], self.answer.paths[k], strict=True)
        is_forward = self.answer.direction != "output-to-input"
        return [m for m, own in pairs if own == path or is_forward]

    def _tile_panels(self, name: str, shape: Shape) -> tuple[CellGrid, ...]:
        """The panels of the array of start, in which the tile has shade."""
        whole = IndexingMap.identity(shape)
        sides = [
            range(*at.indices(size)) if isinstance(at, slice) else range(at, at + 1)
            for at, size in zip(expand_ellipsis(self.point, whole), shape.dims, strict=True)
        ]
        boxes: tuple[Box, ...] = ()
        if all(sides):
            boxes = (Box.of([progression(side.start, len(side), side.step) for side in sides]),)
        heat = HeatMap(
            *(f"{name}  {shape_text(shape)}", name, shape.dims, BoxCounts(boxes)),
            member="in the tile",
            plane=self._plane(shape),
            tile=self.tile,
        )
        return heat_panels(heat)

    def _plane(self, shape: Shape) -> tuple[int, int] | None:
        """The plane to draw of an array; the default one if the array has no such dimensions."""
        if self.plane is None or max(self.plane) >= shape.rank:
            return None
        return self.plane

    def _needed_panels(
        self, maps: Sequence[IndexingMap], name: str, shape: Shape, region: Region
    ) -> tuple[CellGrid, ...]:
        """The panels of one array: the reads of each element, or at least its needed elements."""
        notes: list[str] = []
        counts: ElementCounts | Unknown = self._read_counts(maps, region)
        unit = "read"
        if isinstance(counts, Unknown):
            notes.append(f"elements instead of reads: {counts.reason}")
            unit = "element"
            counts = region_counts(region)
        title = f"{name}  {shape_text(shape)}"
        if isinstance(counts, Unknown):
            note = f"not drawn: {counts.reason}"
            return (CellGrid(title, name, 0, 0, (), notes=(note,)),)
        for rt in region.runtime:
            low, high = rt.variable.lower, rt.variable.upper
            notes.append(f"{rt.name} takes all values from {low} to {high}")
        heat = HeatMap(
            *(title, name, shape.dims, counts, unit),
            member="needed",
            is_bound=region.grade == "may",
            notes=tuple(notes),
            plane=self._plane(shape),
        )
        return heat_panels(heat)

    def _read_counts(self, maps: Sequence[IndexingMap], region: Region) -> ListedCounts | Unknown:
        """Count the reads of each element, in the box around the region."""
        if region.runtime:
            return Unknown("runtime variables take several values")
        box = region.bounding_box
        if box is None:
            return Unknown("nothing is read")
        if isinstance(box, Unknown):
            return box
        if prod(box.sizes) > MAX_COUNTED:
            return Unknown(f"reads are counted in boxes of at most {MAX_COUNTED:,} elements")
        moved = [_move_origin(self._restrict_to_tile(m), box.offsets) for m in maps]
        given = {name: value for name, value in self.values.items() if _has_runtime(moved, name)}
        counted = multiplicity(moved, given)
        counts = counted if isinstance(counted, Unknown) else counted.counts(box.sizes)
        if isinstance(counts, Unknown):
            return counts
        listed = ListedCounts.of_array(counts)
        return ListedCounts(listed.elements + np.array(box.offsets, np.int64), listed.numbers)

    def _restrict_to_tile(self, m: IndexingMap) -> IndexingMap:
        """Return a map on the tile, with the values of its range variables."""
        for v, at in zip(m.dims, expand_ellipsis(self.point, m), strict=True):
            m = restrict_to(m, v, at if isinstance(at, slice) else slice(at, at + 1))
        for v in m.ranges:
            if v.name in self.values:
                m = with_value(m, v, int(self.values[v.name]))
        return m


def _move_origin(m: IndexingMap, origin: Sequence[int]) -> IndexingMap:
    """Return the map to positions from an origin."""
    return replace(m, results=tuple([r - o for r, o in zip(m.results, origin, strict=True)]))


def _has_runtime(maps: Sequence[IndexingMap], name: str) -> bool:
    return any(name in (rt.name, str(rt.source_name)) for m in maps for rt in m.runtime)


def _is_composed(answer: Answer) -> bool:
    """Return True if maps are composed, through a fusion or down to parameters."""
    instruction = answer.instruction
    if answer.direction == "output-to-input" and answer.operands != tuple(instruction.operands):
        return True
    return bool(instruction.called_computations) and instruction.opcode in ("fusion", "call")


def start_of(answer: Answer) -> tuple[str, AnyShape]:
    """Return the name and shape of the array that the maps start from."""
    instruction = answer.instruction
    if answer.direction == "input-to-output":
        operand = instruction.operands[answer.domain_id]
        return operand.name, operand.shape
    listed = leaves(instruction.shape)
    if not listed:
        return instruction.name, instruction.shape
    path, shape = listed[answer.domain_id]
    return leaf_name(instruction.name, path), shape


def _leaf_regions(
    answer: Answer, k: int, own: Region | tuple[Region, ...]
) -> Iterator[tuple[Path, AnyShape, Region]]:
    """Yield path, shape and region of each array of an operand, or of one output."""
    listed = leaves(answer.operands[k].shape)
    if answer.direction != "output-to-input":
        listed = listed[k : k + 1]
    regions = (own,) if isinstance(own, Region) else own
    for (path, shape), region in zip(listed, regions, strict=True):
        yield path, shape, region


def is_drawable(shape: AnyShape) -> TypeGuard[Shape]:
    """Return True for an array whose dimensions have known sizes."""
    return isinstance(shape, Shape) and all(size >= 0 for size in shape.dims)


def shape_text(shape: Shape) -> str:
    """Return the text of a shape without its layout."""
    return str(replace(shape, layout=None))


def _point_text(point: Sequence[Index]) -> str:
    words = []
    for at in point:
        if isinstance(at, EllipsisType):
            words.append("...")
        elif isinstance(at, slice):
            bounds = ["" if b is None else str(b) for b in (at.start, at.stop)]
            words.append(":".join([*bounds, *([] if at.step is None else [str(at.step)])]))
        else:
            words.append(str(at))
    return f"[{', '.join(words)}]"

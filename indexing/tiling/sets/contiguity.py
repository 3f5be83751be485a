"""Runs of adjacent elements that a tile needs, in the memory of the array.

>>> from hlo import parse_shape
>>> print(box_runs(Box((0, 0), (4, 8), (1, 1)), parse_shape("f32[16,32]{1,0}")))
4 runs of 8 elements, 32 apart
>>> print(box_runs(Box((0, 0), (4, 8), (1, 1)), parse_shape("f32[16,32]{0,1}")))
8 runs of 4 elements, 16 apart
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hlo.shapes.shape import Shape
from hlo.text.names import counted_noun
from indexing.maps.regions.boxes import Box, Progression
from indexing.tiling.sets.operand_sets import OperandSets
from simplifier.unknown import Unknown


@dataclass(frozen=True, slots=True)
class MemoryRuns:
    """The elements of a box in memory: runs of adjacent elements, of equal length.

    In a box with strides, the last element of a row may be adjacent to the first of the next row;
    they are counted as two runs.

    Attributes:
        length: number of elements of a run.
        count: number of runs.
        distance: number of elements from the start of a run to the start of the next one in the
            most minor dimension that separates runs; `None` for a single run.
    """

    length: int
    count: int
    distance: int | None

    def __str__(self) -> str:
        elements = counted_noun(self.length, "element")
        if self.distance is None:
            return f"1 run of {elements}"
        return f"{self.count:,} runs of {elements}, {self.distance:,} apart"


def box_runs(box: Box, shape: Shape) -> MemoryRuns | Unknown:
    """Return the runs of a box of elements of an array.

    Padding between elements is a gap.

    Returns:
        The runs; `Unknown` if the layout has tiles, or dimensions of another storage than dense.

    >>> from hlo import parse_shape
    >>> print(box_runs(Box((0, 3), (2, 4), (1, 2)), parse_shape("f32[4,12]")))
    8 runs of 1 element, 2 apart
    """
    layout = shape.layout_or_default
    if layout.tiles:
        return Unknown(f"the layout of {shape} has tiles")
    if any(level != "D" for level in layout.dim_level_types):
        return Unknown(f"the layout of {shape} is not dense")
    length, count, distance = 1, 1, None
    for size, step in _steps(box, shape):
        if distance is None and step == length:
            length *= size
        else:
            count *= size
            distance = step if distance is None else distance
    return MemoryRuns(length, count, distance)


def _steps(box: Box, shape: Shape) -> Iterator[tuple[int, int]]:
    """Yield the size of the box and the distance in memory of each dimension, minor to major."""
    layout = shape.layout_or_default
    dims = layout.padded_dimensions or shape.dims
    step = 1
    for k in layout.minor_to_major:
        if box.sizes[k] > 1:
            yield box.sizes[k], step * box.strides[k]
        step *= dims[k]


def largest_box(sets: OperandSets) -> Box | Unknown:
    """Return a box of the size of the largest tile, at any place; `Unknown` if it is no box."""
    if len(sets.products) != 1 or sets.boxes != 1:
        return Unknown("the tiles are not boxes")
    sides: dict[int, Progression] = {}
    for own in sets.products[0]:
        largest = max(own.classes, key=lambda c: c.count)
        if largest.hull is None:
            return Unknown("no tile needs an element")
        sides.update(zip(own.places, largest.hull.progressions, strict=True))
    return Box.of([sides[k] for k in sorted(sides)])

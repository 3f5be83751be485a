"""Tiles of an instruction for a page: symbolic tiles, and the elements that each tile needs.

A picture has few tiles, so that a slider reaches each of them: the largest dimensions are halved
until there are about `MAX_TILES`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from math import prod
from typing import Any, Final, TypeAlias

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, leaves
from indexing.maps.regions.answers import OperandRegion
from indexing.maps.regions.boxes import Box
from indexing.maps.regions.region import Region
from indexing.tiling.sets.tile_regions import regions_of_tiles
from indexing.tiling.sets.tiling import Tiling
from indexing.views.tile_answers import TileAnswer, symbolic_answer, tiling_answer
from indexing.views.tile_entries import region_entries, region_text
from indexing.views.tile_subjects import TileSubject
from simplifier.unknown import Unknown

Regions: TypeAlias = "tuple[list[Any], list[tuple[tuple[int, ...], list[Any]]]]"

MAX_TILES: Final = 32
"""Limit on the tiles of a picture."""
MAX_ELEMENTS: Final = 8
"""Limit on the output elements of a picture."""
MAX_BOXES: Final = 32
"""Limit on the boxes of a region; beyond it, the bounding box is drawn."""
MAX_OUTPUTS: Final = 4
"""Limit on the tiled outputs of an instruction."""


class TileDetails:
    """The tiles of instructions; instructions with the same maps share the regions."""

    def __init__(self) -> None:
        self._regions: dict[Hashable, Regions] = {}

    def of(self, instruction: Instruction) -> list[dict[str, Any]]:
        """Return the tiles of each array of a result, of at most `MAX_OUTPUTS`."""
        return [
            self._output(instruction, number, shape)
            for number, (_, shape) in enumerate(leaves(instruction.shape)[:MAX_OUTPUTS])
            if isinstance(shape, Shape) and all(n > 0 for n in shape.dims)
        ]

    def _output(self, instruction: Instruction, output: int, shape: Shape) -> dict[str, Any]:
        subject = TileSubject(instruction, output=output)
        tiling = subject.tiling(picture_sizes(shape.dims))
        if isinstance(tiling, Unknown):
            return {"output": output, "unknown": tiling.reason}
        answer = tiling.answer
        arrays = [
            subject.label(operand, number, path)
            for number, operand in enumerate(answer.operands)
            for path, _ in leaves(operand.shape)
        ]
        shapes = tuple([_dims(label.shape) for label in arrays])
        key = (shape.dims, shapes, answer.maps, answer.paths, answer.unknown)
        if key not in self._regions:
            self._regions[key] = _regions(subject, tiling)
        tiles, elements = self._regions[key]
        tiled = tiling_answer(subject, tiling, explain=True)
        return {
            "output": output,
            "dims": shape.dims,
            "symbolic": _entries(symbolic_answer(subject)),
            "title": tiled.title,
            "sizes": tiling.sizes,
            "grid": tiling.grid,
            "entries": _entries(tiled),
            "arrays": [
                [label.number, label.text(), own] for label, own in zip(arrays, shapes, strict=True)
            ],
            "tiles": tiles,
            "elements": elements,
        }


def _regions(subject: TileSubject, tiling: Tiling) -> Regions:
    """Return the regions of each tile, and the indices and the regions of some elements."""
    elements = tiling.with_sizes([1] * len(tiling.sizes))
    return (
        [_tile(subject, tiling, regions) for regions in regions_of_tiles(tiling)],
        [
            (index, _tile(subject, elements, elements.at(*index)))
            for index in samples(tiling.shape.dims)
        ],
    )


def picture_sizes(dims: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of tiles that are at most `MAX_TILES`, and at least half as many.

    >>> picture_sizes([64, 64]), picture_sizes([3]), picture_sizes([])
    ((8, 16), (1,), ())
    """
    sizes = list(dims)
    while sizes:
        largest = max(range(len(sizes)), key=lambda k: sizes[k])
        halved = [*sizes]
        halved[largest] = -(-sizes[largest] // 2)
        if halved == sizes or _tiles(dims, halved) > MAX_TILES:
            break
        sizes = halved
    return tuple(sizes)


def _tiles(dims: Sequence[int], sizes: Sequence[int]) -> int:
    return prod([-(-n // size) for n, size in zip(dims, sizes, strict=True)])


def samples(dims: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the indices of elements at equal distances in row-major order.

    >>> samples([2, 2]), samples([100])[:3], samples([])
    ([(0, 0), (0, 1), (1, 0), (1, 1)], [(0,), (14,), (28,)], [()])
    """
    count = prod(dims)
    wanted = min(count, MAX_ELEMENTS)
    places = [k * (count - 1) // max(wanted - 1, 1) for k in range(wanted)]
    return [_index(place, dims) for place in places]


def _index(place: int, dims: Sequence[int]) -> tuple[int, ...]:
    index = []
    for n in reversed(dims):
        place, digit = divmod(place, n)
        index.append(digit)
    return tuple(reversed(index))


def _entries(answer: TileAnswer) -> list[Any]:
    """Return the text about each array."""
    return [[label.text(), ", ".join(text.parts), text.notes] for label, text in answer.texts()]


def _tile(subject: TileSubject, tiling: Tiling, regions: Sequence[OperandRegion]) -> list[Any]:
    """Return the region of each array for one tile."""
    entries = region_entries(subject, tiling, regions)
    return [list(_region(entry.region)) for entry in entries]


def _dims(shape: object) -> tuple[int, ...]:
    return shape.dims if isinstance(shape, Shape) else ()


def _region(region: Region | Unknown) -> Iterator[Any]:
    """Yield the text, the kind and the boxes: offsets, sizes and strides of each."""
    yield region_text(region)
    if isinstance(region, Unknown):
        yield from ("unknown", [])
        return
    boxes = region.boxes(MAX_BOXES)
    if boxes is not None:
        yield region.grade
        yield list(map(_box, boxes))
        return
    box = region.bounding_box
    yield "bounding" if isinstance(box, Box) else "unknown"
    yield [_box(box)] if isinstance(box, Box) else []


def _box(box: Box) -> list[Sequence[int]]:
    return [box.offsets, box.sizes, box.strides]

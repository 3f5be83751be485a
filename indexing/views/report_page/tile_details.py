"""Tiles of an instruction for a page: symbolic tiles, and the elements that each tile needs.

A picture has few tiles, so that a slider reaches each of them: the largest dimensions are halved
until there are about `MAX_TILES`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any, Final, TypeAlias

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, leaves
from indexing.maps.answers import Answer, Path
from indexing.maps.regions.answers import OperandRegion
from indexing.maps.regions.boxes import Box
from indexing.maps.regions.region import Region
from indexing.tiling.sets.tile_regions import regions_of_tiles
from indexing.tiling.sets.tiling import Tiling, tiling_of
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
    """The tiles of instructions; those with the same maps share the regions."""

    def __init__(self) -> None:
        self._regions: dict[Hashable, Regions] = {}

    def of(self, instruction: Instruction) -> list[dict[str, Any]]:
        """Return the tiles of each array of a result, of at most `MAX_OUTPUTS`.

        Each entry of ``arrays`` has the number of an operand, its label and its sizes, and the
        labels of further operands for which all texts and regions are the same.
        """
        return [
            self._output(instruction, number, shape)
            for number, (_, shape) in enumerate(leaves(instruction.shape)[:MAX_OUTPUTS])
            if isinstance(shape, Shape) and all(n > 0 for n in shape.dims)
        ]

    def _output(self, instruction: Instruction, output: int, shape: Shape) -> dict[str, Any]:
        subject = TileSubject(instruction, output=output)
        every = subject.answer()
        alike = alike_operands(every)
        answer = answer_about(every, [*alike])
        tiling = tiling_of(answer, picture_sizes(shape.dims), "operands")
        if isinstance(tiling, Unknown):
            return {"output": output, "unknown": tiling.reason}
        arrays = [
            (number, path, own)
            for number in alike
            for path, own in leaves(every.operands[number].shape)
        ]
        shapes = tuple([_dims(own) for _, _, own in arrays])
        key = (shape.dims, shapes, answer.maps, answer.paths, answer.unknown)
        if key not in self._regions:
            self._regions[key] = _regions(subject, tiling)
        tiles, elements = self._regions[key]
        tiled = tiling_answer(subject, tiling, explain=True)

        def label(number: int, path: Path) -> str:
            return subject.label(every.operands[number], number, path).text()

        def entries(answer: TileAnswer) -> list[Any]:
            numbers = [*alike]
            return [
                [label(numbers[own.number], own.path or ()), ", ".join(text.parts), text.notes]
                for own, text in answer.texts()
            ]

        return {
            "output": output,
            "dims": shape.dims,
            "symbolic": entries(symbolic_answer(subject, answer)),
            "title": tiled.title,
            "sizes": tiling.sizes,
            "grid": tiling.grid,
            "entries": entries(tiled),
            "arrays": [
                [number, label(number, path), dims, [label(k, path) for k in alike[number]]]
                for (number, path, _), dims in zip(arrays, shapes, strict=True)
            ],
            "tiles": tiles,
            "elements": elements,
        }


def alike_operands(answer: Answer) -> dict[int, list[int]]:
    """Return the numbers of the operands that differ, each with those of further operands like it.

    Operands are alike if they have the same shape and the same exact maps without runtime
    variables, so that no text about their tiles depends on the operand.

    >>> import hlo, indexing
    >>> text = "p = f32[4] parameter(0)  q = f32[4] parameter(1)  s = f32[] parameter(2)"
    >>> text = f"ENTRY e {{ {text}  b = f32[4] broadcast(s)  ROOT c = f32[4] clamp(p, b, q) }}"
    >>> alike_operands(indexing.output_to_input(hlo.parse(text).entry.root))
    {0: [1, 2]}
    """
    firsts: dict[Hashable, int] = {}
    alike: dict[int, list[int]] = {}
    for number, operand in enumerate(answer.operands):
        maps, unknown = answer.maps[number], answer.unknown[number]
        is_plain = unknown is None and all(m.grade == "exact" and not m.runtime for m in maps)
        key = (operand.shape, maps, answer.paths[number]) if is_plain else number
        first = firsts.setdefault(key, number)
        if first == number:
            alike[number] = []
        else:
            alike[first].append(number)
    return alike


def answer_about(answer: Answer, numbers: Sequence[int]) -> Answer:
    """Return the part of an answer about these operands, whose numbers are then their places."""
    return replace(
        answer,
        operands=tuple([answer.operands[k] for k in numbers]),
        maps=tuple([answer.maps[k] for k in numbers]),
        paths=tuple([answer.paths[k] for k in numbers]),
        unknown=tuple([answer.unknown[k] for k in numbers]),
        reasons=tuple([answer.reasons[k] for k in numbers]),
        control=tuple([answer.control[k] for k in numbers]),
    )


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

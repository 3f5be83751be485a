"""Answers that are tiled: the array that the maps start from, and the arrays that tiles need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from hlo.shapes.shape import Shape, leaves
from indexing.maps.answers import Answer
from indexing.maps.arrays import array_leaves
from indexing.tiling.sets.operands import TiledOperand
from indexing.tiling.sets.tile_grid import TileGrid
from simplifier.unknown import Unknown

Target: TypeAlias = Literal["operands", "parameters"]
TileDirection: TypeAlias = Literal["output-to-input", "input-to-output"]


def tiled_shape(answer: Answer) -> Shape:
    """Return the shape of the array that the maps of an answer start from."""
    shape = start_of(answer)
    assert isinstance(shape, Shape)
    return shape


def start_of(answer: Answer) -> Shape | Unknown:
    """Return the shape of the array that maps start from, or the reason why it has no tiles."""
    start = answer.instruction
    number = answer.domain_id
    if answer.direction == "input-to-output":
        start, number = start.operands[number], 0
        if [path for path, _ in leaves(start.shape)] != [()]:
            return Unknown(f"operand `{start.name}` is a tuple: tile one of its leaves", start)
    outputs = leaves(start.shape)
    shape = outputs[number][1] if outputs else start.shape
    if not isinstance(shape, Shape):
        return Unknown(f"`{start.name}` is {shape}, which has no elements", start)
    if any(n < 0 for n in shape.dims):
        return Unknown(f"`{start.name}` is {shape}, whose dimensions have unknown sizes", start)
    return shape


def tiled_operands(answer: Answer, grid: TileGrid) -> tuple[TiledOperand, ...]:
    """Return what tiles need of each array of an answer."""
    operands = []
    for k, instruction in enumerate(answer.operands):
        listed = list(array_leaves(instruction.shape))
        if answer.direction == "input-to-output":
            listed = [leaf for leaf in listed if leaf[0] == k]
        for _, path, _ in listed:
            by_path = zip(answer.maps[k], answer.paths[k], strict=True)
            if answer.direction == "input-to-output":
                maps = answer.maps[k]
            else:
                maps = tuple([m for m, own in by_path if own == path])
            operands.append(TiledOperand(instruction, path, k, maps, grid, answer.unknown[k]))
    return tuple(operands)


def sum_of(numbers: Sequence[int | Unknown]) -> int | Unknown:
    """Return the sum, or the first unknown number."""
    unknown = next((n for n in numbers if isinstance(n, Unknown)), None)
    if unknown is not None:
        return unknown
    return sum([n for n in numbers if not isinstance(n, Unknown)])

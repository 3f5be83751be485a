"""The blocks of each array that tiles read or skip, as the command ``tile`` prints them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from indexing.drawing.block_pictures import blocks_figure
from indexing.drawing.figures import Figure
from indexing.maps.indexing_map import IndexingMap
from indexing.tiling.blocks.tiled_blocks import STATES, TiledBlocks, looped_dimensions
from indexing.tiling.sets.tiling import Tiling, tiling_of
from indexing.views.block_tables import MARKS, block_notes, block_parts
from indexing.views.map_tables import Paint, map_line, plain
from indexing.views.tile_entries import EntryText, cell_json
from indexing.views.tile_subjects import ArrayLabel, TileSubject
from simplifier.unknown import Unknown


@dataclass(frozen=True, slots=True)
class BlocksEntry:
    """The blocks of one dimension of an array.

    Attributes:
        label: the array.
        dimension: the dimension; None if the maps of the array are unknown.
        blocks: the blocks, or why they are unknown.
    """

    label: ArrayLabel
    dimension: int | None
    blocks: TiledBlocks | Unknown

    @property
    def is_masked(self) -> bool:
        """True if the blocks are known, and some are not read in full."""
        return isinstance(self.blocks, TiledBlocks) and self.blocks.is_masked

    def text(self, paint: Paint = plain) -> EntryText:
        """Return the figures, the bounds of the loop, and a picture."""
        if isinstance(self.blocks, Unknown):
            return EntryText([f"unknown: {self.blocks.reason}"])
        return EntryText(block_parts(self.blocks), list(block_notes(self.blocks, paint)))

    def record(self) -> dict[str, Any]:
        """Return the figures, the bounds of the loop, and the states."""
        blocks = self.blocks
        if isinstance(blocks, Unknown):
            return {"dimension": self.dimension, "unknown": blocks.reason}
        bounds, rows = blocks.loop_bounds, blocks.states.reshape(-1, blocks.count).tolist()
        return {
            "dimension": self.dimension,
            "block_size": blocks.size,
            "blocks": blocks.count,
            "counts": blocks.counts,
            "pairs": blocks.pairs,
            "block_bytes": None if isinstance(blocks.bytes, Unknown) else blocks.bytes,
            "loop_bounds": None if isinstance(bounds, Unknown) else list(map(_bounds, bounds)),
            "runtime": cell_json(blocks.runtime),
            "tile_dimensions": blocks.dims,
            "states": ["".join([MARKS[STATES[k]] for k in row]) for row in rows],
            "unknown": None,
        }


def _bounds(m: IndexingMap) -> dict[str, Any]:
    first, last = map(str, m.results)
    return {"map": map_line(m), "first": first, "last": last, "grade": m.grade}


def block_entries(subject: TileSubject, tiling: Tiling, size: int) -> Iterator[BlocksEntry]:
    """Yield the blocks of each dimension of an array that a loop runs over in several blocks.

    The loop is that of a program that computes every element: masks may leave one index, or none.
    """
    loaded = tiling_of(subject.answer(masks=False), tiling.sizes, subject.to)
    loops = tiling.operands if isinstance(loaded, Unknown) else loaded.operands
    for number, (operand, looped) in enumerate(zip(tiling.operands, loops, strict=True)):
        label = subject.label(operand.instruction, operand.number, operand.path, operand.maps)
        if operand.unknown is not None:
            yield BlocksEntry(label, None, operand.unknown)
            continue
        for k in [k for k in looped_dimensions(looped) if operand.shape.dims[k] > size]:
            yield BlocksEntry(label, k, tiling.blocks(number, size, k))


def blocks_figures(subject: TileSubject, tiling: Tiling, size: int) -> list[Figure]:
    """Return the pictures of all blocks that tiles skip or read in part; else of all blocks."""
    entries = [entry.blocks for entry in block_entries(subject, tiling, size)]
    known = [blocks for blocks in entries if isinstance(blocks, TiledBlocks)]
    return list(map(blocks_figure, [b for b in known if b.is_masked] or known))

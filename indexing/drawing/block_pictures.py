"""Pictures of the blocks of an operand that tiles read in full, in part or not at all."""

from __future__ import annotations

from itertools import islice, product
from typing import Any, Final

from indexing.drawing.drawing import Backend, as_drawing
from indexing.drawing.figures import CellGrid, DrawnCell, Figure
from indexing.drawing.style import Theme
from indexing.maps.runtime_variable import source_text
from indexing.tiling.blocks.tiled_blocks import STATES, BlockState, TiledBlocks
from simplifier.unknown import Unknown

MAX_SHOWN: Final = 128
"""Maximum number of rows, and of columns, of a picture."""

_SHADES: Final[dict[BlockState, int]] = {"skipped": 0, "full": 1, "partial": 2, "runtime": 4}


def plot_blocks(blocks: TiledBlocks, backend: Backend, theme: Theme) -> Any:
    """Return a picture of blocks; see `TiledBlocks.plot`."""
    return as_drawing(blocks_figure(blocks), backend, theme)


def blocks_figure(blocks: TiledBlocks) -> Figure:
    """Return a grid with a row for each tile, and a column for each block."""
    name = blocks.operand.instruction.name
    grid = [blocks.grid.counts[k] for k in blocks.dims]
    tiles = list(islice(product(*map(range, grid)), MAX_SHOWN))
    columns = min(blocks.count, MAX_SHOWN)
    cells = [
        _cell(row, column, f"tile {list(at)}, block {column}", STATES[k])
        for row, at in enumerate(tiles)
        for column, k in enumerate(blocks.states[at][:columns].tolist())
    ]
    counts = blocks.counts
    every = blocks.states.size // blocks.count
    left_out = [
        f"the first {shown:,} of {total:,} {noun}"
        for shown, total, noun in ((len(tiles), every, "tiles"), (columns, blocks.count, "blocks"))
        if shown < total
    ]
    panel = CellGrid(
        f"dimension {blocks.dimension} of {name} in blocks of {blocks.size:,}",
        name,
        len(tiles),
        columns,
        tuple(cells),
        "class",
        legend=tuple([(_SHADES[s], f"{s}: {n:,}") for s, n in counts.items() if n]),
        row_labels=tuple([", ".join(map(str, at)) for at in tiles]),
        column_labels=tuple(map(str, range(columns))),
        axes=(", ".join([f"tid_{k}" for k in blocks.dims]) or "tiles", "block"),
        notes=(*_notes(blocks), *left_out),
    )
    return Figure(f"the blocks of {name} that tiles of {list(blocks.grid.sizes)} need", (panel,))


def _cell(row: int, column: int, index: str, state: BlockState) -> DrawnCell:
    return DrawnCell(row, column, index, state, _SHADES[state])


def _notes(blocks: TiledBlocks) -> list[str]:
    """The bounds of the loop over blocks, and the sources of runtime values in them."""
    bounds = blocks.loop_bounds
    if isinstance(bounds, Unknown) or len(bounds) > 1:
        return []
    first, last = bounds[0].results
    sources = [f"{rt.name} = {source_text(rt, rt.index)}" for rt in blocks.runtime]
    return [f"tiles read no blocks but those from {first} to {last}", *sources]

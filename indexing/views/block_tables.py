"""The blocks that tiles read or skip: their figures, the bounds of the loop, a picture of text.

A line of the picture is a tile, a character a block: ``#`` full, ``+`` partial, ``.`` skipped, and
``?`` if runtime values decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

from indexing.maps.indexing_map import IndexingMap
from indexing.tiling.blocks.tiled_blocks import STATES, TiledBlocks
from indexing.views.map_tables import Paint, path_text, plain, runtime_text, shape_text
from simplifier.unknown import Unknown

MARKS: Final = {"skipped": ".", "partial": "+", "full": "#", "runtime": "?"}
"""The mark of each state in pictures of text."""

MAX_LINES: Final = 64
"""Maximum number of tiles in a picture of text."""
MAX_MARKS: Final = 64
"""Maximum number of its blocks."""


def blocks_text(blocks: TiledBlocks) -> str:
    """Return the figures of blocks, the bounds of the loop over them, and a picture."""
    name = f"{blocks.operand.instruction.name}{path_text(blocks.operand.path or None)}"
    head = f"{name} {shape_text(blocks.operand.shape)}: {', '.join(block_parts(blocks))}"
    return "\n".join([head, *[f"  {line}" for line in block_notes(blocks)]])


def block_parts(blocks: TiledBlocks) -> list[str]:
    """Return the number of blocks in each state, and the bytes and pairs that are skipped."""
    counts = [f"{n:,} {state}" for state, n in reversed(blocks.counts.items()) if n]
    noun = "block" if blocks.count == 1 else "blocks"
    parts = [f"dimension {blocks.dimension} in {blocks.count:,} {noun} of {blocks.size:,}", *counts]
    if not blocks.counts["skipped"]:
        return parts
    sums = blocks.bytes
    if not isinstance(sums, Unknown):
        parts.append(f"{sums['skipped']:,} of {sum(sums.values()):,} bytes skipped")
    share = blocks.pairs["skipped"] * 100 / sum(blocks.pairs.values())
    return [*parts, f"{share:.3g} % of the pairs skipped"]


def block_notes(blocks: TiledBlocks, paint: Paint = plain) -> Iterator[str]:
    """Yield the bounds of the loop, the sources of runtime values, and a picture.

    There is none if all blocks are full.
    """
    if not blocks.is_masked:
        return
    bounds = blocks.loop_bounds
    if isinstance(bounds, Unknown):
        yield f"loop: unknown: {bounds.reason}"
    else:
        for m in bounds:
            first, last = m.results
            grade = "" if m.grade == "exact" else "at most "
            yield f"loop: {grade}from block {first} to block {last}{_domain_text(m, blocks)}"
    yield from [runtime_text(rt, paint) for rt in blocks.runtime]
    yield from _picture(blocks)


def _domain_text(m: IndexingMap, blocks: TiledBlocks) -> str:
    """The conditions on the tile index and runtime values under which a map holds."""
    whole = [*blocks.grid.tile_index, *[rt.variable for rt in blocks.runtime]]
    given = {v.name: v.bounds for v in whole}
    own = [*m.dims, *[rt.variable for rt in m.runtime]]
    bounds = [f"{v.name} in [{v.lower}, {v.upper}]" for v in own if v.bounds != given[v.name]]
    conditions = [*bounds, *map(str, m.constraints)]
    return f", for {', '.join(conditions)}" if conditions else ""


def _picture(blocks: TiledBlocks) -> Iterator[str]:
    """Yield a line for each tile whose states may differ."""
    names = ",".join([f"tid_{k}" for k in blocks.dims])
    grid = [blocks.grid.counts[k] for k in blocks.dims]
    places = zip(product(*map(range, grid)), range(MAX_LINES), strict=False)
    for at, _ in places:
        marks = [MARKS[STATES[k]] for k in blocks.states[at][:MAX_MARKS].tolist()]
        label = f"{names}={','.join(map(str, at))}" if names else "all tiles"
        yield f"{''.join(marks)}{'…' * (blocks.count > MAX_MARKS)} {label}"
    rest = blocks.states.size // blocks.count - MAX_LINES
    if rest > 0:
        yield f"… and {rest:,} more tiles"

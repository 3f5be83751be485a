"""Tilings, the best tilings, and their comparison with XLA's candidates: tables and texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Final

from indexing.maps.indexing_map import Grade
from indexing.memory.movement.amounts import Amount
from indexing.memory.spaces import DEFAULT_SPACE, space_name, space_of
from indexing.tiling.search.candidates import BestTilings
from indexing.tiling.search.measures import RankedTiling
from indexing.tiling.search.xla_ranks import ComparedTiling, RankComparison
from indexing.tiling.sets.operands import TiledOperand
from indexing.tiling.sets.tiling import Tiling
from indexing.views.tables import ANY_WIDTH, Table, cell_text
from simplifier.unknown import Unknown

COLUMNS: Final = (
    *("operand", "kind", "offsets", "sizes", "strides"),
    *("bytes of a tile", "bytes", "touched", "reuse", "contiguous"),
)
"""The columns of the table of a tiling."""

STORED_COLUMNS: Final = ("memory", "stored of a tile", "stored", "stored touched")
"""Further columns for arrays whose layouts have tiles: whole tiles of the layout count."""

RANKED_COLUMNS: Final = ("sizes", "tiles", "bytes", "requested", "reuse", "working set")
"""The columns of the table of the best tilings."""

COMPARED_COLUMNS: Final = (
    *("XLA", "sizes", "time", "XLA read", "loaded", "requested", "bytes", "rank"),
)
"""The columns of the table of XLA's candidates."""

# ---------------------------------------------------------------- tilings


def tiling_table(tiling: Tiling) -> Table:
    """Return the table of a tiling: a row for each operand."""
    rows: list[tuple[str, ...]] = list(map(operand_row, tiling.operands))
    columns: tuple[str, ...] = COLUMNS
    if any(map(_has_memory, tiling.operands)):
        columns += STORED_COLUMNS
        rows = [row + stored_cells(own) for row, own in zip(rows, tiling.operands, strict=True)]
    return Table(_head(tiling), columns, rows)


def tiling_text(tiling: Tiling) -> str:
    """Return the text of a tiling: a line for the tiles, and one for each operand."""
    return "\n".join([_head(tiling), *[f"  {operand_text(each)}" for each in tiling.operands]])


def _head(tiling: Tiling) -> str:
    """Return the first line: the tiled array, the sizes and the grid."""
    edge = f", {tiling.edge_tiles} cut" if tiling.edge_tiles else ""
    instruction = tiling.instruction
    start = f"{instruction.name} = {tiling.shape} {instruction.opcode}"
    if tiling.direction == "input-to-output":
        start = f"operand {tiling.answer.domain_id} of {instruction.name}, {tiling.shape}"
    return f"{start}: tiles {list(tiling.sizes)}, grid {list(tiling.grid)}{edge}"


def operand_text(operand: TiledOperand) -> str:
    """Return the line of one operand."""
    row = operand_row(operand)
    line = f"{row[0]}: {', '.join(operand_parts(row))}"
    return f"{line} ({operand.reason})" if operand.reason else line


def operand_parts(row: Sequence[str]) -> list[str]:
    """Return the kind, the box and the counts of a row of `operand_row`, each with its name."""
    tile_bytes, moved, touched, reuse, runs = row[5:]
    parts = [row[1], *box_parts(row)]
    if moved:
        parts.append(f"{tile_bytes} bytes in a tile")
        parts.append(f"{moved} bytes read, {touched} distinct, reuse {reuse}")
    return parts + [runs] * bool(runs)


def box_parts(row: Sequence[str]) -> list[str]:
    """Return the offsets, sizes and strides of the boxes, or of boxes that contain the tiles."""
    parts = [f"{name} {text}" for name, text in zip(COLUMNS[2:5], row[2:5], strict=True) if text]
    if parts and row[1] != "box":
        parts[0] = f"inside of {parts[0]}"
    return parts


def operand_row(operand: TiledOperand) -> tuple[str, ...]:
    """Return the texts of `COLUMNS` for one operand."""
    path = "".join([f"{{{i}}}" for i in operand.path])
    name = f"{operand.instruction.name}{path} {operand.shape}"
    if operand.kind == "unknown":
        return name, operand.kind, *[""] * 8
    if operand.bytes == 0:
        return name, "nothing is read", *[""] * 8
    boxes = [operand.offsets, operand.sizes, operand.strides]
    runs = operand.contiguous
    cells = (
        *[None if exprs is None else list(exprs) for exprs in boxes],
        _amount(operand.tile_bytes, operand.grade),
        _amount(operand.bytes, operand.grade),
        _amount(operand.bytes_touched, operand.touched_grade),
        operand.reuse,
        None if isinstance(runs, Unknown) else runs,
    )
    return name, operand.kind, *map(cell_text, cells)


def _has_memory(operand: TiledOperand) -> bool:
    """Return True if an array has tiles in its layout, or is not in the default memory."""
    shape = operand.shape
    return bool(shape.layout_or_default.tiles) or space_of(shape) != DEFAULT_SPACE


def stored_cells(operand: TiledOperand) -> tuple[str, ...]:
    """Return the texts of `STORED_COLUMNS` for one operand."""
    space = space_of(operand.shape)
    memory = space_name(space, operand.instruction.computation.module)
    stored = operand.stored
    if isinstance(stored, Unknown):
        return memory, *["unknown"] * 3
    counts = (stored.tile_bytes, stored.bytes, stored.bytes_touched)
    return memory, *[str(Amount(count, stored.grade)) for count in counts]


def stored_notes(operand: TiledOperand) -> list[str]:
    """Return the bytes of the tiles of the layout, where it has some, and the memory space."""
    if not _has_memory(operand) or operand.bytes == 0:
        return []
    memory, tile, every, distinct = stored_cells(operand)
    if isinstance(operand.stored, Unknown):
        return [f"stored in {memory}: unknown: {operand.stored.reason}"]
    return [f"stored in {memory}: {tile} bytes in a tile, {every} bytes read, {distinct} distinct"]


def _amount(value: int | Unknown, grade: Grade) -> Amount | Unknown:
    return value if isinstance(value, Unknown) else Amount(value, grade)


# ---------------------------------------------------------------- best tilings


def best_tilings_table(best: BestTilings) -> Table:
    """Return the table of the best tilings, with the effort of the search and what is refused."""
    notes = [f"{best.built:,} of {best.candidates:,} tilings built", *map(str, best.refused)]
    if best.incomplete:
        notes.append(f"better tilings may exist: {best.incomplete}")
    is_masked = any(
        (each.needed, each.needed_grade) != (each.loaded, each.grade) for each in best.ranked
    )
    columns: tuple[str, ...] = RANKED_COLUMNS
    cells: list[tuple[object, ...]] = list(map(_ranked_row, best.ranked))
    if any(map(_has_layout_tiles, best.ranked)):
        columns += ("stored",)
        cells = [(*row, _stored_text(each)) for row, each in zip(cells, best.ranked, strict=True)]
    if is_masked:
        columns += ("loaded", "needed")
        cells = [(*row, *_masked_cells(e)) for row, e in zip(cells, best.ranked, strict=True)]
    return Table(
        f"best tilings of `{best.instruction.name}` {best.shape} by {best.objective}",
        columns,
        cells,
        notes,
        empty="none",
        right=range(1, len(columns)),
        max_width=ANY_WIDTH,
    )


def best_tilings_text(best: BestTilings) -> str:
    """Return the table of the best tilings as text."""
    return str(best_tilings_table(best))


def ranked_cells(ranked: RankedTiling) -> dict[str, Any]:
    """Return the sizes and the figures of a tiling by name."""
    known = ranked.layout_bytes
    stored, stored_grade = (known, None) if isinstance(known, Unknown) else known
    return {
        "tile_sizes": ranked.sizes,
        "tiles": ranked.memory.tiles,
        "grade": ranked.grade,
        "bytes": ranked.bytes,
        "loaded": ranked.loaded,
        "needed": ranked.needed,
        "needed_grade": ranked.needed_grade,
        "requested": ranked.requested,
        "reuse": ranked.reuse,
        "working_set": ranked.memory.working_set,
        "stored": stored,
        "stored_grade": stored_grade,
    }


def _ranked_row(ranked: RankedTiling) -> tuple[object, ...]:
    """Return the values of `RANKED_COLUMNS` for one tiling."""
    reuse: object = ranked.reuse
    if isinstance(reuse, Fraction):
        reuse = str(reuse) if reuse.denominator == 1 else f"{float(reuse):.2f}"
    figures = (ranked.bytes, ranked.requested, ranked.memory.working_set)
    moved, requested, working_set = [Amount(each, ranked.grade) for each in figures]
    sizes = _sizes_text(ranked.sizes)
    return sizes, ranked.memory.tiles, moved, requested, reuse, working_set


def _masked_cells(ranked: RankedTiling) -> tuple[object, ...]:
    """Return the bytes that tiles load, and those of them that they need."""
    needed = _amount(ranked.needed, ranked.needed_grade)
    return Amount(ranked.loaded, ranked.grade), needed


def _has_layout_tiles(ranked: RankedTiling) -> bool:
    """Return True if an operand or the result has tiles in its layout."""
    shapes = [ranked.tiling.shape, *[operand.shape for operand in ranked.tiling.operands]]
    return any(shape.layout_or_default.tiles for shape in shapes)


def _stored_text(ranked: RankedTiling) -> Amount | str:
    """Return the bytes in memory that tiles load and store."""
    known = ranked.layout_bytes
    return "unknown" if isinstance(known, Unknown) else Amount(*known)


# ---------------------------------------------------------------- candidates of XLA


def comparison_table(comparison: RankComparison) -> Table:
    """Return the table of XLA's candidates."""
    count = len(comparison.rows)
    head = (
        f"candidates of XLA for `{comparison.instruction.name}`: {len(comparison.disagreements)} "
        f"of {count * (count - 1) // 2} pairs are in another order by {comparison.objective}"
    )
    right = range(1, len(COMPARED_COLUMNS))
    rows = list(map(_compared_row, comparison.rows))
    return Table(head, COMPARED_COLUMNS, rows, right=right, max_width=ANY_WIDTH)


def comparison_text(comparison: RankComparison) -> str:
    """Return the table of XLA's candidates, and the pairs in another order."""
    return "\n".join([str(comparison_table(comparison)), *_disagreements(comparison)])


def _disagreements(comparison: RankComparison) -> Iterator[str]:
    """Yield the pairs of candidates that the two orders disagree on, with both figures."""
    for first, second in comparison.disagreements:
        a, b = comparison.rows[first], comparison.rows[second]
        yield (
            f"#{first} before #{second} by XLA: {_time(a)} < {_time(b)}; "
            f"after it by {comparison.objective}: {a.value:,} > {b.value:,}"
        )


def _compared_row(row: ComparedTiling) -> tuple[object, ...]:
    candidate, ranked = row.candidate, row.ranked
    figures: Sequence[object] = [ranked] * 3
    sizes = ";".join(map(_sizes_text, candidate.output_tiles))
    if not isinstance(ranked, Unknown):
        sizes = _sizes_text(ranked.sizes)
        figures = [ranked.loaded, ranked.requested, ranked.bytes]
    rank = "unknown" if row.rank is None else str(row.rank)
    return f"#{candidate.number}", sizes, _time(row), candidate.bytes_read, *figures, rank


def _sizes_text(sizes: Sequence[int]) -> str:
    return f"[{','.join(map(str, sizes))}]"


def _time(row: ComparedTiling) -> str:
    return f"{row.candidate.exec_time * 1e6:.6g}us"

"""Tilings as text: one line for each operand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from indexing.maps.indexing_map import Grade
from indexing.tiling.sets.operands import TiledOperand
from indexing.tiling.sets.tiling import Tiling
from simplifier.unknown import Unknown

COLUMNS = (
    *("operand", "kind", "offsets", "sizes", "strides"),
    *("bytes of a tile", "bytes", "touched", "reuse", "contiguous"),
)
"""The columns of `operand_rows`."""


def tiling_text(tiling: Tiling) -> str:
    """Return the text of a tiling: a line for the tiles, and one for each operand."""
    return "\n".join([head(tiling), *[f"  {operand_text(each)}" for each in tiling.operands]])


def head(tiling: Tiling) -> str:
    """Return the first line: the tiled array, the sizes and the grid."""
    edge = f", {tiling.edge_tiles} not full" if tiling.edge_tiles else ""
    instruction = tiling.instruction
    start = f"{instruction.name} = {tiling.shape} {instruction.opcode}"
    if tiling.direction == "input-to-output":
        start = f"operand {tiling.answer.domain_id} of {instruction.name}, {tiling.shape}"
    return f"{start}: tiles {list(tiling.sizes)}, grid {list(tiling.grid)}{edge}"


def operand_text(operand: TiledOperand) -> str:
    """Return the line of one operand."""
    line = f"{operand_row(operand)[0]}: {', '.join(operand_parts(operand))}"
    return f"{line} ({operand.reason})" if operand.reason else line


def operand_parts(operand: TiledOperand) -> list[str]:
    """Return the kind, the box and the counts of one operand, each with its name."""
    row = dict(zip(COLUMNS, operand_row(operand), strict=True))
    parts = [row["kind"], *box_parts(operand)]
    if row["bytes"]:
        parts.append(f"{row['bytes of a tile']} bytes in a tile")
        parts.append(f"{row['bytes']} bytes read, {row['touched']} distinct, reuse {row['reuse']}")
    return parts + [row["contiguous"]] * bool(row["contiguous"])


def box_parts(operand: TiledOperand) -> list[str]:
    """Return the offsets, sizes and strides of the boxes, or of boxes that contain the tiles."""
    row = dict(zip(COLUMNS, operand_row(operand), strict=True))
    parts = [f"{name} {row[name]}" for name in COLUMNS[2:5] if row[name]]
    if parts and operand.kind != "box":
        parts[0] = f"inside of {parts[0]}"
    return parts


def operand_row(operand: TiledOperand) -> tuple[str, ...]:
    """Return the values of `COLUMNS` for one operand."""
    path = "".join([f"{{{i}}}" for i in operand.path])
    name = f"{operand.instruction.name}{path} {operand.shape}"
    if operand.kind == "unknown":
        return name, operand.kind, *[""] * 8
    if operand.bytes == 0:
        return name, "nothing is read", *[""] * 8
    lines = [_list(operand.offsets), _list(operand.sizes), _list(operand.strides)]
    counts = [operand.tile_bytes, operand.bytes, operand.bytes_touched]
    grades = [operand.grade, operand.grade, operand.touched_grade]
    runs = "" if isinstance(operand.contiguous, Unknown) else str(operand.contiguous)
    numbers = map(_number, counts, grades)
    return name, operand.kind, *lines, *numbers, ratio_text(operand.reuse), runs


def operand_rows(tiling: Tiling) -> Iterator[tuple[str, ...]]:
    """Yield the values of `COLUMNS` for each operand."""
    yield from map(operand_row, tiling.operands)


def _list(exprs: Sequence[object] | None) -> str:
    return "" if exprs is None else f"[{', '.join(map(str, exprs))}]"


def _number(value: int | Unknown, grade: Grade) -> str:
    most = "<= " if grade == "may" else ""
    return "unknown" if isinstance(value, Unknown) else f"{most}{value:,}"


def ratio_text(value: Fraction | Unknown) -> str:
    """Return a ratio as decimal number of at most three digits.

    >>> ratio_text(Fraction(4, 3)), ratio_text(Fraction(8))
    ('1.33', '8')
    """
    return "unknown" if isinstance(value, Unknown) else f"{float(value):.3g}"

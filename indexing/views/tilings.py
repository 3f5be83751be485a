"""Tilings as text: one line for each operand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from indexing.tiling.tiles.operands import TiledOperand
from indexing.tiling.tiles.tiling import Tiling
from simplifier.unknown import Unknown

COLUMNS = ("operand", "kind", "offsets", "sizes", "strides", "bytes", "touched", "reuse")
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
    row = dict(zip(COLUMNS, operand_row(operand), strict=True))
    parts = [f"{row['operand']}: {row['kind']}"]
    parts += [f"{name} {row[name]}" for name in COLUMNS[2:5] if row[name]]
    if row["bytes"]:
        parts.append(f"{row['bytes']} bytes read, {row['touched']} distinct, reuse {row['reuse']}")
    line = ", ".join(parts)
    return f"{line} ({operand.reason})" if operand.reason else line


def operand_row(operand: TiledOperand) -> tuple[str, ...]:
    """Return the values of `COLUMNS` for one operand."""
    path = "".join([f"{{{i}}}" for i in operand.path])
    name = f"{operand.instruction.name}{path} {operand.shape}"
    lines = [_list(operand.offsets), _list(operand.sizes), _list(operand.strides)]
    if operand.bytes == 0:
        return name, "nothing is read", "", "", "", "", "", ""
    most = "<= " if operand.grade == "may" else ""
    counts = [_number(operand.bytes, most), _number(operand.bytes_touched, most)]
    return name, operand.kind, *lines, *counts, ratio_text(operand.reuse)


def operand_rows(tiling: Tiling) -> Iterator[tuple[str, ...]]:
    """Yield the values of `COLUMNS` for each operand."""
    yield from map(operand_row, tiling.operands)


def _list(exprs: Sequence[object] | None) -> str:
    return "" if exprs is None else f"[{', '.join(map(str, exprs))}]"


def _number(value: int | Unknown, most: str) -> str:
    return "unknown" if isinstance(value, Unknown) else f"{most}{value:,}"


def ratio_text(value: Fraction | Unknown) -> str:
    """Return a ratio as decimal number of at most three digits.

    >>> ratio_text(Fraction(4, 3)), ratio_text(Fraction(8))
    ('1.33', '8')
    """
    return "unknown" if isinstance(value, Unknown) else f"{float(value):.3g}"

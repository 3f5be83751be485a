"""Answers about tiles as ``hlo-indexing tile`` prints them: JSON, lines, or a terminal's tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, Final

from indexing.maps.answers import Answer
from indexing.maps.assumed_map import assuming_text
from indexing.memory.caches.search import BestBlockOrders
from indexing.tiling.loops.loop_tiling import LoopTiling
from indexing.tiling.search.candidates import BestTilings
from indexing.tiling.sets.tiling import Tiling
from indexing.views.box_lines import Vector, split_vectors, vector_lines
from indexing.views.map_tables import Paint, path_text, plain, shape_text
from indexing.views.regions import point_text
from indexing.views.tables import align_columns
from indexing.views.tile_blocks import BlocksEntry, block_entries
from indexing.views.tile_entries import (
    EntryText,
    TileEntry,
    cell_json,
    operand_entries,
    region_entries,
    symbolic_entries,
)
from indexing.views.tile_subjects import ArrayLabel, TileSubject
from indexing.views.tilings import COLUMNS, best_tilings_table, box_parts, ranked_cells
from indexing.views.wrapping import Paragraph, Unit, label_bodies, wrap_units
from simplifier.unknown import Unknown

NUMBERS: Final = [1, *range(5, len(COLUMNS))]
"""The columns of the table on a terminal, after the name of the array."""


@dataclass(frozen=True, slots=True)
class TileAnswer:
    """An answer about the tiles of an array.

    Attributes:
        subject: the array.
        title: the end of the heading.
        rows: for each JSON record, its kind and its fields.
        entries: what the tiles need of each array; None if the answer is not about arrays.
        body: further lines.
    """

    subject: TileSubject
    title: str
    rows: Iterable[tuple[str, dict[str, Any]]]
    entries: Sequence[TileEntry | BlocksEntry] | None = None
    body: Sequence[str] = ()

    @property
    def has_masked_blocks(self) -> bool:
        """True if the blocks of an array are known, and some are not read in full."""
        return any(isinstance(each, BlocksEntry) and each.is_masked for each in self.entries or ())

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the JSON records."""
        for kind, fields in self.rows:
            yield self.subject.record(kind) | fields

    def texts(self, paint: Paint = plain) -> list[tuple[ArrayLabel, EntryText]]:
        """Return the text about each array."""
        texts = [(entry.label, entry.text(paint)) for entry in self.entries or ()]
        return [(label, _with_assumptions(label, text)) for label, text in texts if text.parts]

    def lines(self, width: int | None = None, paint: Paint = plain) -> Iterator[str]:
        """Yield a heading, and the lines of each array: one record a line, or for a terminal.

        Args:
            width: the columns of the terminal, on which lines are aligned and wrapped.
        """
        texts = self.texts(paint if width is None else plain)  # notes are wrapped
        if width is None:
            yield " ".join(
                [*[_style_text(paint, s, w) for w, s in self.subject.head()], self.title]
            )
            lines = [*_record_lines(texts, paint), *self.body]
        else:
            yield from _heading_lines(self, width, paint)
            lines = [*_terminal_lines(texts, width - 2, paint), *body_lines(self.body, width - 2)]
        if self.entries is not None and not texts:
            yield "  no operands"
        for line in lines:
            yield f"  {line}"


def _with_assumptions(label: ArrayLabel, text: EntryText) -> EntryText:
    """Return the text about an array, with a note of the assumptions that its maps need."""
    assuming = assuming_text(label.assumptions).strip()
    return text._replace(notes=[assuming, *text.notes]) if assuming else text


# ---------------------------------------------------------------- answers


def unknown_answer(subject: TileSubject, reason: Unknown) -> TileAnswer:
    """Return the answer that nothing is known."""
    return TileAnswer(
        subject, f"unknown: {reason.reason}", [("unknown", {"unknown": reason.reason})]
    )


def tiling_answer(subject: TileSubject, tiling: Tiling, explain: bool) -> TileAnswer:
    """Return the boxes, the bytes and the reuse of each array.

    Args:
        explain: give the reasons why the tiles are boxes or not.
    """
    entries = list(operand_entries(subject, tiling, explain))
    rows = _entry_rows("tiling", entries, tiling)
    return TileAnswer(subject, tiling_title(tiling), rows, entries)


def tiling_title(tiling: Tiling) -> str:
    """Return the sizes and the grid, and the dimensions whose last tile is cut.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[10,6] parameter(0)  ROOT n = f32[10,6] negate(p) }"
    >>> tiling_title(indexing.tile(hlo.parse(text).entry.root, [4, 3]))
    'tiles [4, 3], grid [3, 2], 2 of 6 tiles are cut: dimension 0 is 10 = 2 * 4 + 2'
    """
    count = prod(tiling.grid)
    title = f"tiles {list(tiling.sizes)}, grid {list(tiling.grid)}"
    if tiling.to == "parameters":
        title += ", parameters that are read"
    if not tiling.edge_tiles:
        return f"{title}, {'the tile is' if count == 1 else f'all {count:,} tiles are'} whole"
    dims = zip(tiling.shape.dims, tiling.sizes, tiling.divides, strict=True)
    rests = [
        f"dimension {k} is {n} = {n // size} * {size} + {n % size}"
        for k, (n, size, divides) in enumerate(dims)
        if not divides
    ]
    verb = "is" if tiling.edge_tiles == 1 else "are"
    cut = f"{tiling.edge_tiles:,} of {count:,} tiles {verb} cut"
    return f"{title}, {cut}: {', '.join(rests)}"


def region_answer(subject: TileSubject, tiling: Tiling, index: tuple[int, ...]) -> TileAnswer:
    """Return the elements of each array for one tile; for outputs, also those that it finishes."""
    finished = tiling.finished(*index) if subject.is_forward else None
    entries = list(region_entries(subject, tiling, tiling.at(*index), finished))
    title = f"tile {list(index)} of grid {list(tiling.grid)}: {point_text(tiling.slices(*index))}"
    return TileAnswer(subject, title, _entry_rows("region", entries, tiling, index=index), entries)


def blocks_answer(subject: TileSubject, tiling: Tiling, size: int) -> TileAnswer:
    """Return the blocks of each array that tiles read or skip, along the loops of a tile."""
    entries = list(block_entries(subject, tiling, size))
    title = f"{tiling_title(tiling)}, blocks of {size:,}"
    body = [] if entries else ["no loop runs over a dimension of several blocks"]
    return TileAnswer(subject, title, _entry_rows("blocks", entries, tiling), entries or None, body)


def symbolic_answer(subject: TileSubject, answer: Answer | None = None) -> TileAnswer:
    """Return the symbolic tile of each map, with its constraints.

    Args:
        answer: the maps, if they are not all those of the subject.
    """
    entries = list(symbolic_entries(subject, answer))
    return TileAnswer(subject, "symbolic tile", _entry_rows("symbolic", entries), entries)


def _entry_rows(
    kind: str,
    entries: Sequence[TileEntry | BlocksEntry],
    tiling: Tiling | None = None,
    **fields: object,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the kind and the fields of the record of each array."""
    grid: dict[str, Any] = {}
    if tiling is not None:
        grid = {"tile_sizes": tiling.sizes, "grid": tiling.grid}
        grid |= {"divides": tiling.divides, "edge_tiles": tiling.edge_tiles}
    for entry in entries:
        yield kind, grid | entry.label.record() | fields | entry.record()


def best_answer(subject: TileSubject, best: BestTilings | Unknown) -> TileAnswer:
    """Return the best tilings, and the effort of the search."""
    if isinstance(best, Unknown):
        return unknown_answer(subject, best)
    head = {"objective": best.objective}
    rows: list[tuple[str, dict[str, Any]]] = []
    for rank, ranked in enumerate(best.ranked, 1):
        cells = {name: cell_json(cell) for name, cell in ranked_cells(ranked).items()}
        rows.append(("ranked", head | {"rank": rank} | cells))
    search = {
        "candidates": best.candidates,
        "built": best.built,
        "refused": [
            {"rule": r.rule, "count": r.count, "tile_sizes": r.sizes, "reason": r.reason}
            for r in best.refused
        ],
        "incomplete": best.incomplete,
    }
    rows.append(("search", head | search))
    lines = list(best_tilings_table(best).lines())
    return TileAnswer(subject, f"best tilings by {best.objective}", rows, body=lines)


def misses_answer(
    subject: TileSubject, capacity: int, line: int, wave: int, best: BestBlockOrders | Unknown
) -> TileAnswer:
    """Return the misses of a cache in each order, the fewest first; then those that are unknown."""
    if isinstance(best, Unknown):
        return unknown_answer(subject, best)
    sizes = best.tiling.sizes
    head = {"tile_sizes": sizes, "capacity": capacity, "line": line, "wave": wave}
    rows: list[tuple[str, dict[str, Any]]] = []
    for rank, misses in enumerate(best.ranked, 1):
        arrays = [
            {
                "name": own.array.instruction.name,
                "path": own.array.path,
                "access": own.kind,
                "touches": own.touches,
                "compulsory": own.compulsory,
                "misses": own.misses,
            }
            for own in misses.arrays
        ]
        record = {
            "rank": rank,
            "order": misses.order.name,
            "misses": misses.misses,
            "touches": misses.touches,
            "bytes": misses.bytes,
            "method": misses.method,
            "arrays": arrays,
            "unknown": None,
        }
        rows.append(("cache", head | record))
    for order, reason in best.unknown:
        rows.append(("cache", head | {"order": order.name, "unknown": reason.reason}))
    title = f"tiles {list(sizes)}, LRU cache of {capacity:,} bytes, lines of {line} bytes"
    if isinstance(best.tiling, LoopTiling):
        loops = ", ".join([f"{loop.name}={loop.step}" for loop in best.tiling.loops])
        title += f", steps {loops}" if loops else ""
    if wave > 1:
        title += f", {wave} tiles in lockstep"
    return TileAnswer(subject, title, rows, body=str(best).splitlines())


# ---------------------------------------------------------------- lines


def _style_text(paint: Paint, style: str, text: str) -> str:
    return paint(text, style) if style else text


def _record_lines(texts: Sequence[tuple[ArrayLabel, EntryText]], paint: Paint) -> Iterator[str]:
    """Yield a line for each array, and an indented line for each note."""
    for label, text in texts:
        yield f"{label.text(paint)}: {', '.join(text.parts)}"
        yield from (f"  {note}" for note in text.notes)


def _heading_lines(answer: TileAnswer, width: int, paint: Paint) -> Iterator[str]:
    """Yield the lines of the heading on a terminal."""
    units = [
        Unit(word, partial(_style_text, paint, style)) for word, style in answer.subject.head()
    ]
    parts = answer.title.split(", ")
    units += [Unit(f"{part},") for part in parts[:-1]] + [Unit(parts[-1])]
    for line in wrap_units(units, width):
        yield line.text


def _terminal_lines(
    texts: Sequence[tuple[ArrayLabel, EntryText]], width: int, paint: Paint
) -> Iterator[str]:
    """Yield a table with the numbers, and the other texts of each array, wrapped."""
    numbers = _number_lines(texts, width, paint)
    yield from numbers
    described = []
    for label, text in texts:
        parts = box_parts(text.row) if numbers and text.row else list(text.parts)
        if parts or text.notes:
            before, vectors = _split_parts(parts)
            ends = [f"{part}," for part in before[:-1]] + before[-1:]
            body = Paragraph([*map(Unit, ends)], _note_units(text))
            described.append((_label_units(label, paint), body, vectors))
    if any(vectors for _, _, vectors in described):
        for units, body, vectors in described:
            yield from _box_block(units, body, vectors, width)
        return
    labels = [units for units, _, _ in described]
    yield from label_bodies(labels, [[body] for _, body, _ in described], width)


def _note_units(text: EntryText) -> list[list[Unit]]:
    """Return the notes that a terminal prints."""
    kept = [note for note in text.notes if note not in text.doubled]
    if text.doubled:
        kept = [note.replace("in words:", "constraints:") for note in kept]
    return [[*map(Unit, note.split())] for note in kept]


def _box_block(
    label: Sequence[Unit], body: Paragraph, vectors: Sequence[Vector], width: int
) -> Iterator[str]:
    """Yield the lines of an array with a box: its vectors are below each other."""
    yield from [line.text for line in wrap_units(label, width)]
    if body.units:
        yield from [f"  {line.text}" for line in wrap_units(body.units, width - 2)]
    yield from [f"  {line}" for line in vector_lines(vectors, width - 2)]
    for note in body.notes:
        yield from [f"    {line.text}" for line in wrap_units(note, width - 4)]


def _split_parts(parts: Sequence[str]) -> tuple[list[str], list[Vector]]:
    """Return the parts that are no vectors of a box, and the vectors."""
    before: list[str] = []
    vectors: list[Vector] = []
    for part in parts:
        rest, own = split_vectors(part)
        vectors += own
        before += [] if own and not rest else [rest]
    return before, vectors


def body_lines(lines: Sequence[str], width: int) -> Iterator[str]:
    """Yield lines on a terminal, with the vectors of a box below the rest of its line."""
    for line in lines:
        before, vectors = split_vectors(line)
        margin = len(line) - len(line.lstrip(" "))
        yield from [each.text for each in wrap_units([Unit(before)], width, margin + 4)]
        room = width - margin - 4
        yield from [" " * (margin + 4) + each for each in vector_lines(vectors, room)]


def _label_units(label: ArrayLabel, paint: Paint) -> list[Unit]:
    suffix = path_text(label.path)
    return [
        Unit(f"{label.role} {label.number}"),
        Unit(label.name + suffix, lambda text: text.replace(label.name, paint(label.name, "name"))),
        Unit(shape_text(label.shape)),
    ]


def _number_lines(
    texts: Sequence[tuple[ArrayLabel, EntryText]], width: int, paint: Paint
) -> list[str]:
    """Return the table of the numbers; nothing if it is too wide, or there are none."""
    listed = [("", COLUMNS), *[(label.text(), text.row) for label, text in texts if text.row]]
    rows = [(name, *[row[k] for k in NUMBERS]) for name, row in listed]
    lines = list(align_columns(rows, right=range(2, 6), max_width=width))
    if len(listed) == 1 or not all(Paragraph([Unit(line)]).fits(width) for line in lines):
        return []
    names = [label.name for label, text in texts if text.row]
    painted = [
        line.replace(name, paint(name, "name"), 1)
        for line, name in zip(lines[1:], names, strict=True)
    ]
    return [lines[0], *painted]

"""Tiles as ``hlo-indexing tile`` prints them: one record a line, or a table on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any, Final

from hlo.shapes.shape import Shape, leaves
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.regions.answers import OperandRegion
from indexing.maps.regions.region import Region
from indexing.maps.regions.runtime_values import named_apart, named_together
from indexing.tiling.search.candidates import BestTilings
from indexing.tiling.sets.tiling import Tiling
from indexing.tiling.sizes.size_constraints import ALWAYS
from indexing.views.alignment import align_columns
from indexing.views.best_tilings import RANKED_COLUMNS, best_notes, ranked_row
from indexing.views.best_tilings import align_columns as aligned_numbers
from indexing.views.map_tables import Paint, path_text, plain, runtime_text, shape_text
from indexing.views.regions import point_text
from indexing.views.tile_reasons import map_text, reasons, symbolic_parts, symbolic_tile_of
from indexing.views.tile_subjects import ArrayLabel, TileSubject
from indexing.views.tilings import box_parts, operand_parts, operand_row
from indexing.views.wrapping import Paragraph, Unit, label_bodies, wrap_units
from simplifier.unknown import Unknown

NUMBERS: Final = ("kind", "bytes of a tile", "bytes", "touched", "reuse", "contiguous")
"""The columns of the table on a terminal, after the name of the array."""


@dataclass(frozen=True, slots=True)
class TileEntry:
    """The text about one array.

    Attributes:
        label: the array.
        parts: texts that are separated by commas.
        notes: texts on lines of their own.
        cells: the values of `NUMBERS`, or nothing.
        rest: the parts that are not in `cells`.
    """

    label: ArrayLabel
    parts: Sequence[str]
    notes: Sequence[str] = ()
    cells: tuple[str, ...] = ()
    rest: Sequence[str] = ()


# ---------------------------------------------------------------- contents


def tiling_title(tiling: Tiling) -> str:
    """Return the sizes and the grid, and the dimensions whose last tile is partial.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[10,6] parameter(0)  ROOT n = f32[10,6] negate(p) }"
    >>> tiling_title(indexing.tile(hlo.parse(text).entry.root, [4, 3]))
    'tiles [4, 3], grid [3, 2], 2 of 6 tiles are partial: dimension 0 is 10 = 2 * 4 + 2'
    """
    count = prod(tiling.grid)
    title = f"tiles {list(tiling.sizes)}, grid {list(tiling.grid)}"
    if tiling.to == "parameters":
        title += ", parameters that are read"
    if not tiling.edge_tiles:
        return f"{title}, {'the tile is' if count == 1 else f'all {count:,} tiles are'} full"
    dims = zip(tiling.shape.dims, tiling.sizes, tiling.divides, strict=True)
    rests = [
        f"dimension {k} is {n} = {n // size} * {size} + {n % size}"
        for k, (n, size, divides) in enumerate(dims)
        if not divides
    ]
    verb = "is" if tiling.edge_tiles == 1 else "are"
    cut = f"{tiling.edge_tiles:,} of {count:,} tiles {verb} partial"
    return f"{title}, {cut}: {', '.join(rests)}"


def tiling_entries(
    subject: TileSubject, tiling: Tiling, explain: bool, paint: Paint = plain
) -> Iterator[TileEntry]:
    """Yield the box, the bytes and the reuse of each array; parameters without any are left out."""
    for operand in tiling.operands:
        if tiling.to == "parameters" and not operand.maps and operand.unknown is None:
            continue
        label = subject.label_of(operand)
        if operand.unknown is not None:
            yield TileEntry(label, [f"unknown: {operand.unknown.reason}"])
            continue
        row = operand_row(operand)
        notes = [runtime_text(v, paint) for v in operand.runtime]
        if explain:
            notes += reasons(operand, subject.instruction.name)
        yield TileEntry(
            label, operand_parts(operand), notes, (row[1], *row[5:]), box_parts(operand)
        )


def region_entries(
    subject: TileSubject, tiling: Tiling, index: tuple[int, ...], paint: Paint = plain
) -> Iterator[TileEntry]:
    """Yield the elements of each array for one tile."""
    for label, region, finished in array_regions(subject, tiling, index):
        parts = [region_text(region)]
        if finished is not None:
            parts = [f"{parts[0]} read it", f"{region_text(finished)} read no other tile"]
        shown = [each.runtime for each in (region, finished) if isinstance(each, Region)]
        runtime = named_apart([rt for variables in shown for rt in variables])
        yield TileEntry(label, parts, [runtime_text(v, paint) for v in runtime])


def array_regions(
    subject: TileSubject, tiling: Tiling, index: tuple[int, ...]
) -> Iterator[tuple[ArrayLabel, Region | Unknown, Region | Unknown | None]]:
    """Yield the elements of each array for one tile; for outputs, also those that it finishes."""
    finished = tiling.finished(*index) if subject.is_forward else None
    yield from labelled_regions(subject, tiling, tiling.at(*index), finished)


def labelled_regions(
    subject: TileSubject,
    tiling: Tiling,
    regions: Sequence[OperandRegion],
    finished: Sequence[OperandRegion] | None = None,
) -> Iterator[tuple[ArrayLabel, Region | Unknown, Region | Unknown | None]]:
    """Yield the elements of each array from those of each operand; see `array_regions`."""
    for number, instruction in enumerate(tiling.answer.operands):
        paths = [()] if subject.is_forward else [path for path, _ in leaves(instruction.shape)]
        each = _leaf_regions(regions[number], len(paths))
        done = _leaf_regions(None if finished is None else finished[number], len(paths))
        for path, region, rest in zip(paths, each, done, strict=True):
            yield subject.label(instruction, number, path), *_with_common_names(region, rest)


def _with_common_names(
    region: Region | Unknown, finished: Region | Unknown | None
) -> tuple[Region | Unknown, Region | Unknown | None]:
    """The regions of one output, with one name in both for each runtime value."""
    if not (isinstance(region, Region) and isinstance(finished, Region)):
        return region, finished
    own, others = named_together([region.runtime, finished.runtime])
    return replace(region, runtime=own), replace(finished, runtime=others)


def _leaf_regions(region: OperandRegion | None, count: int) -> Sequence[Any]:
    return region if isinstance(region, tuple) else [region] * count


def region_text(region: Region | Unknown) -> str:
    """Return the elements of a region, with the grade `may`; or why they are unknown.

    Under-approximations are "at least" their elements.
    """
    if isinstance(region, Unknown):
        return f"unknown: {region.reason}"
    is_exact = region.grade == "exact"
    if not region.pieces and (is_exact or region.side == "over"):
        return "nothing"
    return str(region) if is_exact or region.side == "under" else f"may: {region}"


def symbolic_entries(subject: TileSubject, paint: Paint = plain) -> Iterator[TileEntry]:
    """Yield the symbolic tile of each map, with its constraints."""
    answer = subject.answer()
    for number, instruction in enumerate(answer.operands):
        unknown = answer.unknown[number]
        by_path = list(zip(answer.maps[number], answer.paths[number], strict=True))
        for m, path in by_path:
            label = subject.label(instruction, number, path)
            tile = symbolic_tile_of(m, subject.instruction.name)
            if isinstance(tile, Unknown):
                yield TileEntry(label, [f"no symbolic tile: {tile.reason}"], [map_text(m)])
                continue
            notes = [runtime_text(v, paint) for v in tile.runtime]
            if not _is_whole(m, subject):
                notes.append(f"for a part of the tiled array: {map_text(m)}")
            if tile.constraints != ALWAYS:
                notes.append(f"constraints: {tile.constraints}")
                notes.append(f"in words: {tile.constraints.pretty()}")
            grade = [] if tile.grade == "exact" else ["may"]
            yield TileEntry(label, [*grade, *symbolic_parts(tile)], notes)
        if unknown is not None:
            yield TileEntry(subject.label(instruction, number), [f"unknown: {unknown.reason}"])
        elif not by_path:
            yield TileEntry(subject.label(instruction, number), ["nothing is read"])


def _is_whole(m: IndexingMap, subject: TileSubject) -> bool:
    """True if the domain of a map is the whole tiled array."""
    dims = subject.shape.dims if isinstance(subject.shape, Shape) else ()
    return [v.bounds for v in m.dims] == [(0, n - 1) for n in dims] and not m.constraints


def index_title(tiling: Tiling, index: tuple[int, ...]) -> str:
    """Return the index of a tile, and its elements."""
    return f"tile {list(index)} of grid {list(tiling.grid)}: {point_text(tiling.slices(*index))}"


# ---------------------------------------------------------------- lines


def tile_lines(
    subject: TileSubject, title: str, entries: Sequence[TileEntry] | None, paint: Paint = plain
) -> Iterator[str]:
    """Yield a heading, a line for each array, and a line for each note.

    Without entries, because nothing is known, there is only the heading.
    """
    yield f"{heading(subject, paint)} {title}"
    if entries is not None and not entries:
        yield "  no operands"
    for entry in entries or ():
        yield f"  {entry.label.text(paint)}: {', '.join(entry.parts)}"
        for note in entry.notes:
            yield f"    {note}"


def heading(subject: TileSubject, paint: Paint) -> str:
    """Return the place, shape, opcode and direction of the tiled array."""
    return " ".join([_paint_text(paint, style, word) for word, style in subject.head()])


def _paint_text(paint: Paint, style: str, text: str) -> str:
    return paint(text, style) if style else text


def tile_terminal_lines(
    subject: TileSubject,
    title: str,
    entries: Sequence[TileEntry] | None,
    width: int,
    paint: Paint = plain,
    names_file: bool = True,
) -> Iterator[str]:
    """Yield the heading, a table with the numbers, and the texts of each array, wrapped."""
    words = list(subject.head())[0 if names_file else 1 :]
    yield from _title_lines(words, title, width, paint)
    if entries is not None and not entries:
        yield "  no operands"
    numbers = _number_lines(entries or (), width - 2, paint)
    texts = _text_lines(entries or (), bool(numbers), width - 2, paint)
    for text in [*numbers, *texts]:
        yield f"  {text}"


def _title_lines(
    words: Sequence[tuple[str, str]], title: str, width: int, paint: Paint
) -> Iterator[str]:
    units = [Unit(word, partial(_paint_text, paint, style)) for word, style in words]
    parts = title.split(", ")
    units += [Unit(f"{part},") for part in parts[:-1]] + [Unit(parts[-1])]
    for line in wrap_units(units, width):
        yield line.text


def _text_lines(
    entries: Sequence[TileEntry], has_numbers: bool, width: int, paint: Paint
) -> list[str]:
    """Return the texts of each array, without the numbers that the table has."""
    labels, bodies = [], []
    for entry in entries:
        parts = list(entry.rest if has_numbers and entry.cells else entry.parts)
        if parts or entry.notes:
            ends = [f"{part}," for part in parts[:-1]] + parts[-1:]
            notes = [[*map(Unit, note.split())] for note in entry.notes]
            labels.append(_label_units(entry.label, paint))
            bodies.append([Paragraph([*map(Unit, ends)], notes)])
    return label_bodies(labels, bodies, width)


def _label_units(label: ArrayLabel, paint: Paint) -> list[Unit]:
    suffix = path_text(label.path)
    return [
        Unit(f"{label.role} {label.number}"),
        Unit(label.name + suffix, lambda text: text.replace(label.name, paint(label.name, "name"))),
        Unit(shape_text(label.shape)),
    ]


def _number_lines(entries: Sequence[TileEntry], width: int, paint: Paint) -> list[str]:
    """Return the table of the numbers; nothing if it is too wide, or there are none."""
    listed = [entry for entry in entries if entry.cells]
    rows = [("", *NUMBERS), *[(entry.label.text(), *entry.cells) for entry in listed]]
    lines = list(align_columns(rows, right=range(2, 6), max_width=width))
    if not listed or not all(Paragraph([Unit(line)]).fits(width) for line in lines):
        return []
    painted = [
        line.replace(entry.label.name, paint(entry.label.name, "name"), 1)
        for line, entry in zip(lines[1:], listed, strict=True)
    ]
    return [lines[0], *painted]


def best_lines(subject: TileSubject, best: BestTilings, paint: Paint = plain) -> Iterator[str]:
    """Yield a heading, the table of the best tilings, and the notes about the search."""
    yield f"{heading(subject, paint)} best tilings by {best.objective}"
    rows = list(map(ranked_row, best.ranked))
    for line in aligned_numbers([RANKED_COLUMNS, *rows]) if rows else ["none"]:
        yield f"  {line}"
    for note in best_notes(best):
        yield f"  {note}"

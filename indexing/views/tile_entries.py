"""The needs of tiles: for each other array, the parts of a text, and a JSON record.

`schemas/tile.json` is the JSON schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, NamedTuple, TypeAlias

from hlo.shapes.shape import Shape, leaves
from indexing.maps.answers import Answer
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.regions.answers import OperandRegion
from indexing.maps.regions.region import Region
from indexing.maps.regions.runtime_values import name_apart, name_together
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.memory.movement.amounts import Amount
from indexing.memory.movement.part_padding import bytes_of_tiles
from indexing.memory.spaces import DEFAULT_SPACE, space_name, space_of
from indexing.tiling.sets.contiguity import MemoryRuns
from indexing.tiling.sets.operands import TiledOperand
from indexing.tiling.sets.tiling import Tiling
from indexing.tiling.sizes.size_constraints import ALWAYS
from indexing.tiling.symbolic.symbolic_tiles import SymbolicTile
from indexing.views.map_tables import Paint, map_line, plain, runtime_text
from indexing.views.records import source_of
from indexing.views.regions import region_record
from indexing.views.tile_reasons import (
    NO_TILE,
    map_text,
    reasons,
    symbolic_cells,
    symbolic_parts,
    symbolic_tile_of,
)
from indexing.views.tile_subjects import ArrayLabel, TileSubject
from indexing.views.tilings import operand_parts, operand_row, stored_notes
from simplifier.unknown import Unknown


class EntryText(NamedTuple):
    """The text about one array.

    Attributes:
        parts: texts that are separated by commas; an array without any is not printed.
        notes: texts on lines of their own.
        row: the cells of a table of operands, which have the same texts; or nothing.
        doubled: the notes that a terminal omits, since another one has the same meaning.
    """

    parts: Sequence[str]
    notes: Sequence[str] = ()
    row: Sequence[str] = ()
    doubled: Sequence[str] = ()


OPERAND_CELLS: Final = (
    *("kind", "grade", "reason", "offsets", "sizes", "strides", "runtime"),
    *("tile_elements", "elements", "elements_touched", "tile_bytes", "bytes", "bytes_touched"),
    *("reuse", "overfetch", "halo", "contiguous"),
    "unknown",
)
"""The attributes of `TiledOperand` that its JSON record has."""


# ---------------------------------------------------------------- tilings


@dataclass(frozen=True, slots=True)
class OperandEntry:
    """The boxes, the bytes and the reuse of all tiles.

    Attributes:
        label: the array.
        operand: what the tiles need.
        reasons: why the tiles are boxes or not, if it is asked for.
        is_omitted: the text leaves out an array that is not read.
    """

    label: ArrayLabel
    operand: TiledOperand
    reasons: Sequence[str] | None
    is_omitted: bool

    def text(self, paint: Paint = plain) -> EntryText:
        """Return the box, the bytes and the reuse, and the sources of runtime values."""
        operand = self.operand
        if operand.unknown is not None:
            return EntryText([f"unknown: {operand.unknown.reason}"])
        if self.is_omitted and not operand.maps:
            return EntryText(())
        row = operand_row(operand)
        notes = [*stored_notes(operand), *[runtime_text(v, paint) for v in operand.runtime]]
        notes += self.reasons or ()
        return EntryText(operand_parts(row), notes, row)

    def record(self) -> dict[str, Any]:
        """Return the boxes, the bytes and the reuse."""
        operand = self.operand
        record = {name: cell_json(getattr(operand, name)) for name in OPERAND_CELLS}
        record |= _stored_record(operand)
        if operand.unknown is not None:
            record |= {"grade": None, "unknown": operand.unknown.reason}
        return record if self.reasons is None else record | {"reasons": self.reasons}


def _stored_record(operand: TiledOperand) -> dict[str, Any]:
    """Return the bytes in memory, and the memory space."""
    stored = operand.stored
    known = None if isinstance(stored, Unknown) else stored
    space = space_of(operand.shape)
    return {
        "space": space,
        "memory": space_name(space, operand.instruction.computation.module),
        "stored_tile_bytes": known and known.tile_bytes,
        "stored_bytes": known and known.bytes,
        "stored_bytes_touched": known and known.bytes_touched,
        "stored_grade": known and known.grade,
    }


def operand_entries(subject: TileSubject, tiling: Tiling, explain: bool) -> Iterator[OperandEntry]:
    """Yield the boxes, the bytes and the reuse of each array."""
    for operand in tiling.operands:
        why = list(reasons(operand, subject.instruction.name)) if explain else None
        label = subject.label(operand.instruction, operand.number, operand.path, operand.maps)
        yield OperandEntry(label, operand, why, tiling.to == "parameters")


# ---------------------------------------------------------------- regions


@dataclass(frozen=True, slots=True)
class RegionEntry:
    """The elements for one tile.

    Attributes:
        label: the array.
        region: the elements.
        finished: those of an output that read no other tile; None for an operand.
        memory: the memory that holds the array.
    """

    label: ArrayLabel
    region: Region | Unknown
    finished: Region | Unknown | None
    memory: str

    @property
    def stored(self) -> Amount | Unknown:
        """The bytes in memory of the layout tiles that hold the elements."""
        if isinstance(self.region, Unknown):
            return self.region
        if not isinstance(self.label.shape, Shape):
            return Unknown(f"`{self.label.name}` is not an array")
        return bytes_of_tiles(self.region, self.label.shape)

    @property
    def _stored_notes(self) -> list[str]:
        """The bytes in memory, if the layout has tiles, and the tile needs something."""
        shape, region = self.label.shape, self.region
        has_tiles = isinstance(shape, Shape) and shape.layout_or_default.tiles
        if not has_tiles or isinstance(region, Unknown) or not region.pieces:
            return []
        stored = self.stored
        size = f"unknown: {stored}" if isinstance(stored, Unknown) else f"{stored} bytes"
        return [f"stored in {self.memory}: {size}"]

    def text(self, paint: Paint = plain) -> EntryText:
        """Return the elements, and the sources of runtime values."""
        parts = [region_text(self.region)]
        if self.finished is not None:
            parts = [f"{parts[0]} read it", f"{region_text(self.finished)} read no other tile"]
        shown = [r.runtime for r in (self.region, self.finished) if isinstance(r, Region)]
        runtime = name_apart([rt for variables in shown for rt in variables])
        return EntryText(parts, [*self._stored_notes, *[runtime_text(v, paint) for v in runtime]])

    def record(self) -> dict[str, Any]:
        """Return the elements as text and as boxes."""
        region, finished = self.region, self.finished
        record = _region(region) | {"unknown": _reason(region), "runtime": _runtime(region)}
        if finished is not None:
            own: dict[str, Any] = {"side": None, "runtime": _runtime(finished)}
            if isinstance(finished, Region) and finished.grade == "may":
                own["side"] = finished.side
            record["finished"] = _region(finished) | own
        stored = self.stored
        known = None if isinstance(stored, Unknown) else stored
        return record | {
            "memory": self.memory,
            "stored_bytes": known and known.number,
            "stored_grade": known and known.grade,
        }


def region_entries(
    subject: TileSubject,
    tiling: Tiling,
    regions: Sequence[OperandRegion],
    finished: Sequence[OperandRegion] | None = None,
) -> Iterator[RegionEntry]:
    """Yield the elements of each array from those of each operand; see `RegionEntry`."""
    for number, instruction in enumerate(tiling.answer.operands):
        paths = [()] if subject.is_forward else [path for path, _ in leaves(instruction.shape)]
        each = _leaf_regions(regions[number], len(paths))
        done = _leaf_regions(None if finished is None else finished[number], len(paths))
        for path, region, rest in zip(paths, each, done, strict=True):
            every = zip(tiling.answer.paths[number], tiling.answer.maps[number], strict=True)
            maps = [m for own, m in every if subject.is_forward or own == path]
            label = subject.label(instruction, number, path, maps)
            space = space_of(label.shape) if isinstance(label.shape, Shape) else DEFAULT_SPACE
            memory = space_name(space, instruction.computation.module)
            yield RegionEntry(label, *_with_common_names(region, rest), memory)


def _with_common_names(
    region: Region | Unknown, finished: Region | Unknown | None
) -> tuple[Region | Unknown, Region | Unknown | None]:
    """The regions of one output, with one name in both for each runtime value."""
    if not (isinstance(region, Region) and isinstance(finished, Region)):
        return region, finished
    own, others = name_together([region.runtime, finished.runtime])
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


# ---------------------------------------------------------------- symbolic tiles


@dataclass(frozen=True, slots=True)
class SymbolicEntry:
    """The symbolic tile of one map.

    Attributes:
        label: the array.
        dims: the sizes of the tiled array.
        map: the map; None if there is none.
        tile: the tile, or why it is unknown; None if nothing is read.
    """

    label: ArrayLabel
    dims: tuple[int, ...]
    map: IndexingMap | None
    tile: SymbolicTile | Unknown | None

    def text(self, paint: Paint = plain) -> EntryText:
        """Return the tile, its constraints, and the sources of runtime values."""
        m, tile = self.map, self.tile
        if m is None or tile is None:
            return EntryText(
                [f"unknown: {tile.reason}" if isinstance(tile, Unknown) else "nothing is read"]
            )
        if isinstance(tile, Unknown):
            return EntryText([f"no symbolic tile: {tile.reason}"], [map_text(m)])
        notes = [runtime_text(v, paint) for v in tile.runtime]
        if m.constraints or [v.bounds for v in m.dims] != [(0, n - 1) for n in self.dims]:
            notes.append(f"for a part of the tiled array: {map_text(m)}")
        doubled = []
        if tile.constraints != ALWAYS:
            doubled = [f"constraints: {tile.constraints}"]
            notes += [*doubled, f"in words: {tile.constraints.pretty()}"]
        grade = [] if tile.grade == "exact" else ["may"]
        return EntryText([*grade, *symbolic_parts(tile)], notes, doubled=doubled)

    def record(self) -> dict[str, Any]:
        """Return the map, the tile and its constraints."""
        m, tile = self.map, self.tile
        grade = "exact" if tile is None else None
        cells = symbolic_cells(tile) if isinstance(tile, SymbolicTile) else NO_TILE
        return {
            "map": None if m is None else map_line(m),
            "grade": grade if m is None else m.grade,
            "unknown": _reason(tile),
            **{name: cell_json(cell) for name, cell in cells.items()},
        }


def symbolic_entries(subject: TileSubject, answer: Answer | None = None) -> Iterator[SymbolicEntry]:
    """Yield the symbolic tile of each map, with its constraints.

    Args:
        answer: the maps, if they are not all those of the subject.
    """
    answer = subject.answer() if answer is None else answer
    dims = subject.shape.dims if isinstance(subject.shape, Shape) else ()
    for number, instruction in enumerate(answer.operands):
        maps, unknown = answer.maps[number], answer.unknown[number]
        for m, path in zip(maps, answer.paths[number], strict=True):
            label = subject.label(instruction, number, path, [m])
            tile = symbolic_tile_of(m, subject.instruction.name)
            yield SymbolicEntry(label, dims, m, tile)
        if unknown is not None or not maps:
            yield SymbolicEntry(subject.label(instruction, number), dims, None, unknown)


TileEntry: TypeAlias = OperandEntry | RegionEntry | SymbolicEntry
"""What tiles need of one array."""


# ---------------------------------------------------------------- values for JSON


def cell_json(cell: object) -> Any:
    """Return a cell as a value for JSON: expressions are texts, unknown numbers None.

    >>> [cell_json(cell) for cell in ("box", Fraction(4, 2), Fraction(1, 2), (Unknown("why"), 3))]
    ['box', 2, 0.5, [None, 3]]
    """
    match cell:
        case None | str() | int():
            return cell
        case Unknown():
            return None
        case Fraction():
            return int(cell) if cell.denominator == 1 else float(cell)
        case tuple():
            return list(map(cell_json, cell))
        case MemoryRuns():
            return {"length": cell.length, "count": cell.count, "distance": cell.distance}
        case RuntimeVariable():
            record = source_of(cell)
            record["index"] = None if cell.array is None else cell_json(cell.element)
            return record | {"bounds": cell.variable.bounds, "clamp": cell.clamp}
        case _:
            return str(cell)


def _region(region: Region | Unknown) -> dict[str, Any]:
    if isinstance(region, Unknown):
        return {"grade": None, "region": None, "box": None, "boxes": None}
    return region_record(region)


def _runtime(region: Region | Unknown) -> Any:
    return cell_json(region.runtime if isinstance(region, Region) else ())


def _reason(unknown: object) -> str | None:
    return unknown.reason if isinstance(unknown, Unknown) else None

"""Regions as text and as JSON: the elements that one point or tile of a `MapTable` needs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from types import EllipsisType, MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from hlo.shapes.shape import AnyShape, Shape
from indexing.maps.assumed_map import assuming_text
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.regions.boxes import Box
from indexing.maps.regions.needed import region_inside
from indexing.maps.regions.region import Region
from indexing.maps.regions.runtime_values import value_key
from indexing.views.map_tables import (
    MapRow,
    MapTable,
    Paint,
    plain,
    row_head,
    runtime_text,
    source_lines,
    table_head,
)
from indexing.views.records import json_lines, runtime_records
from indexing.views.terminal import Block, Terminal
from indexing.views.wrapping import Paragraph, Unit

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Point: TypeAlias = "tuple[int | slice | EllipsisType, ...]"
Regions: TypeAlias = "list[tuple[MapRow, Region | None]]"


class PointError(ValueError):
    """A point that is outside of an array, or that has another number of indices."""


def table_regions(
    table: MapTable, point: Point, values: Mapping[str, ArrayLike] = MappingProxyType({})
) -> Regions:
    """Return the region of each operand that a point of `table` needs.

    Args:
        values: of integer parameters, by name; see `indexing.maps.regions.needed`.
    Raises:
        PointError: the point is outside of the array that the maps start from.
    """
    if table.direction == "output-to-input":
        output = f"output {table.output} of " if table.outputs > 1 else ""
        check_point(point, table.shape, f"{output}`{table.instruction}`")
    return [(row, _region(rows, point, table, values)) for row, rows in _by_array(table)]


def region_lines(
    table: MapTable, regions: Regions, point: Point, notation: str, paint: Paint = plain
) -> Iterator[str]:
    """Yield the lines of `table` with the region of each operand in place of its maps."""
    at = point_text(point)
    if notation == "json":
        for row, region in regions:
            yield _json_line(table, row, region, point)
        return
    yield f"{table_head(table, paint)}, at {at}"
    yield from source_lines(table)
    if not regions:
        yield "  no operands"
    for row, region in regions:
        prefix, assuming = row_head(row, table.role, paint), assuming_text(row.assumptions)
        if row.unknown is not None:
            yield prefix + paint("unknown: ", "unknown") + row.unknown
        elif region is None or not region.pieces:
            yield f"{prefix}nothing is read{assuming}"
        else:
            grade = "" if region.grade == "exact" else paint("may: ", "may")
            yield f"{prefix}{grade}{region}{assuming}"
            for variable in region.runtime:
                yield f"    {runtime_text(variable, paint)}"


def terminal_lines(
    answered: Sequence[tuple[MapTable, Regions]], point: Point, terminal: Terminal
) -> Iterator[str]:
    """Yield the regions for the outputs of one instruction, as a terminal shows them."""
    blocks = [
        Block(
            replace(table, rows=tuple([row for row, _ in regions])),
            [[_paragraph(row, region, terminal)] for row, region in regions],
        )
        for table, regions in answered
    ]
    return terminal.lines(blocks, f"at {point_text(point)}")


def _paragraph(row: MapRow, region: Region | None, terminal: Terminal) -> Paragraph:
    if row.unknown is not None:
        return terminal.unknown(row.unknown)
    assuming = [Unit(assuming_text(row.assumptions).strip())] if row.assumptions else []
    if region is None or not region.pieces:
        return Paragraph([Unit("nothing is read"), *assuming])
    first, *others = str(region).split(" ∪ ")
    units = [terminal.mark("may")] if region.grade == "may" else []
    units += [Unit(first), *[Unit(f"∪ {piece}") for piece in others], *assuming]
    return Paragraph(units, terminal.sources(region.runtime))


def _by_array(table: MapTable) -> Iterator[tuple[MapRow, list[MapRow]]]:
    """Yield a row for each array of `table` with all its rows; the reason if one is unknown."""
    unknown = {row.operand: row for row in table.rows if row.unknown is not None}
    arrays: dict[tuple[object, ...], list[MapRow]] = {}
    for row in table.rows:
        key = (row.operand,) if row.operand in unknown else (row.operand, row.path)
        arrays.setdefault(key, []).append(row)
    for rows in arrays.values():
        yield unknown.get(rows[0].operand, rows[0]), rows


def _region(
    rows: Sequence[MapRow], point: Point, table: MapTable, values: Mapping[str, ArrayLike]
) -> Region | None:
    """Return the region of one array; None if nothing is read, or it is unknown."""
    if table.direction == "input-to-output":
        check_point(point, rows[0].shape, f"operand {rows[0].operand} `{rows[0].name}`")
    if any(row.unknown is not None for row in rows):
        return None
    maps = [row.map for row in rows if row.map is not None]
    regions = [region_inside(m, point, _own_values(m, values)) for m in maps]
    return reduce(or_, regions) if regions else None


def _own_values(m: IndexingMap, values: Mapping[str, ArrayLike]) -> dict[str, ArrayLike]:
    """Return the values of the sources of the runtime variables of a map."""
    sources = {rt.source_name for rt in m.runtime if not rt.calls}
    return {name: value for name, value in values.items() if name in sources}


def check_point(point: Point, shape: AnyShape, name: str) -> None:
    """Check that a point is in an array.

    Raises:
        PointError: it is not; the message has the bounds.

    >>> check_point((4, slice(0, 9)), Shape("f32", (5, 8)), "`t`")
    Traceback (most recent call last):
    ...
    indexing.views.regions.PointError: index 1 is 0:9, but dimension 1 of `t` is 0:8
    """
    if not isinstance(shape, Shape):
        if point in ((), (...,)):  # its maps have no dimensions either
            return
        raise PointError(f"{name} is {shape}, which has no elements")
    given = [at for at in point if not isinstance(at, EllipsisType)]
    is_open = len(given) < len(point)
    if len(given) > shape.rank or (len(given) < shape.rank and not is_open):
        raise PointError(
            f"{point_text(point)} has {len(given)} ind{'ices' if len(given) != 1 else 'ex'}, "
            f"but {name} has rank {shape.rank}"
        )
    hole = next((k for k, at in enumerate(point) if isinstance(at, EllipsisType)), len(point))
    for number, at in enumerate(given):
        k = number if number < hole else number + shape.rank - len(given)
        if bounds := _outside(at, shape.dims[k]):
            raise PointError(
                f"index {k} is {point_text((at,))[1:-1]}, but dimension {k} of {name} {bounds}"
            )


def _outside(at: int | slice, size: int) -> str:
    """Return the bounds of a dimension as a predicate, if an index is outside; otherwise empty."""
    if isinstance(at, slice):
        is_inside = (at.start or 0) < size and (at.stop is None or at.stop <= size)
        return "" if is_inside else f"is 0:{size}"
    if 0 <= at < size:
        return ""
    return f"is in [0, {size - 1}]" if size else "is empty"


def point_text(point: Point) -> str:
    """Return a point or tile as text.

    >>> point_text((1, slice(0, 32), slice(None), ...))
    '[1, 0:32, :, ...]'
    """
    return f"[{', '.join(map(_index_text, point))}]"


def _index_text(at: int | slice | EllipsisType) -> str:
    if isinstance(at, EllipsisType):
        return "..."
    if not isinstance(at, slice):
        return str(at)
    start, stop = ("" if bound is None else str(bound) for bound in (at.start, at.stop))
    return f"{start}:{stop}" + ("" if at.step is None else f":{at.step}")


def _json_line(table: MapTable, row: MapRow, region: Region | None, point: Point) -> str:
    """Return a record as of an operand without a map, with `at`, `region`, `box` and `boxes`."""
    own = [each for each in table.rows if (each.operand, each.path) == (row.operand, row.path)]
    reasons = tuple(dict.fromkeys([reason for each in own for reason in each.reasons]))
    control = all(each.control for each in own)
    row = replace(row, map=None, steps=(), reasons=reasons, control=control)
    (line,) = json_lines(replace(table, rows=(row,)))
    record = json.loads(line)
    record |= {"at": point_text(point), "region": None, "box": None, "boxes": None}
    if row.unknown is None:
        record |= region_record(region or Region.of_boxes((), 0))
    if region is not None and region.runtime:
        maps = [each.map for each in own if each.map is not None]
        record["runtime"] = _runtime_records(maps, point, region)
    return json.dumps(record)


def _runtime_records(
    maps: Sequence[IndexingMap], point: Point, region: Region
) -> list[dict[str, Any]]:
    """Return the sources of the runtime variables of a region, under their names in the region."""
    names = {value_key(rt): rt.name for rt in region.runtime}
    records: list[dict[str, Any]] = []
    for m in maps:
        runtime = region_inside(m, point, {}).runtime
        own = {rt.name: names[key] for rt in runtime if (key := value_key(rt)) in names}
        renamed = [r | {"name": own[r["name"]]} for r in runtime_records(m) if r["name"] in own]
        records += [record for record in renamed if record not in records]
    return records


def region_record(region: Region) -> dict[str, Any]:
    """Return a region as a value for JSON: its text, and its boxes if it is a union of few."""
    boxes = region.boxes()
    return {
        "grade": region.grade,
        "region": str(region),
        "box": region.box and _box_record(region.box),
        "boxes": None if boxes is None else list(map(_box_record, boxes)),
    }


def _box_record(box: Box) -> dict[str, tuple[int, ...]]:
    return {"offsets": box.offsets, "sizes": box.sizes, "strides": box.strides}

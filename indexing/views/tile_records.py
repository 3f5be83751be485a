"""Tiles as JSON, one object for each array; `schemas/tile.json` is their JSON schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from indexing.maps.regions.region import Region
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.tiling.search.candidates import BestTilings
from indexing.tiling.sets.contiguity import MemoryRuns
from indexing.tiling.sets.operands import TiledOperand
from indexing.tiling.sets.tiling import Tiling
from indexing.views.map_tables import map_line
from indexing.views.records import shape_record, source_of
from indexing.views.regions import region_record
from indexing.views.tile_lines import array_regions
from indexing.views.tile_reasons import reasons, symbolic_tile_of
from indexing.views.tile_subjects import ArrayLabel, TileSubject
from simplifier.unknown import Unknown


def unknown_lines(subject: TileSubject, reason: Unknown) -> Iterator[str]:
    """Yield the object of a subject without any maps."""
    yield json.dumps(subject.record("unknown") | {"unknown": reason.reason})


def tiling_json(subject: TileSubject, tiling: Tiling, explain: bool) -> Iterator[str]:
    """Yield an object for each array: its boxes, bytes and reuse."""
    for operand in tiling.operands:
        record = subject.record("tiling") | _grid(tiling) | _array(subject.label_of(operand))
        record |= _operand(operand)
        if explain:
            record["reasons"] = list(reasons(operand, subject.instruction.name))
        yield json.dumps(record)


def region_json(subject: TileSubject, tiling: Tiling, index: tuple[int, ...]) -> Iterator[str]:
    """Yield an object for each array: its elements for one tile."""
    for label, region, finished in array_regions(subject, tiling, index):
        record = subject.record("region") | _grid(tiling) | _array(label)
        record |= {"index": index, **_region(region), "unknown": _reason(region)}
        record["runtime"] = _runtime(region.runtime) if isinstance(region, Region) else []
        if finished is not None:
            record["finished"] = _finished_record(finished)
        yield json.dumps(record)


def symbolic_json(subject: TileSubject) -> Iterator[str]:
    """Yield an object for each map: its symbolic tile."""
    answer = subject.answer()
    for number, instruction in enumerate(answer.operands):
        for m, path in zip(answer.maps[number], answer.paths[number], strict=True):
            record = subject.record("symbolic")
            record |= _array(subject.label(instruction, number, path))
            record |= {"map": map_line(m), "grade": m.grade, "unknown": None}
            tile = symbolic_tile_of(m, subject.instruction.name)
            if isinstance(tile, Unknown):
                yield json.dumps(record | _NO_TILE | {"unknown": tile.reason})
                continue
            for name in ("offsets", "sizes", "strides"):
                record[name] = _texts(getattr(tile, name).results)
            record["lower_bounds"] = _texts(tile.lower_bounds)
            record["upper_bounds"] = _texts(tile.upper_bounds)
            record["constraints"] = str(tile.constraints)
            record["runtime"] = _runtime(tile.runtime)
            yield json.dumps(record)
        reason = answer.unknown[number]
        if reason is not None or not answer.maps[number]:
            record = subject.record("symbolic") | _array(subject.label(instruction, number))
            grade = "exact" if reason is None else None
            record |= {"map": None, "grade": grade, "unknown": _reason(reason), **_NO_TILE}
            yield json.dumps(record)


def best_json(subject: TileSubject, best: BestTilings) -> Iterator[str]:
    """Yield an object for each of the best tilings, and one with the effort of the search."""
    for rank, ranked in enumerate(best.ranked, 1):
        record = subject.record("ranked") | {
            "objective": best.objective,
            "rank": rank,
            "tile_sizes": ranked.sizes,
            "tiles": ranked.memory.tiles,
            "grade": ranked.grade,
            "bytes": ranked.bytes,
            "requested": ranked.requested,
            "reuse": _number(ranked.reuse),
            "working_set": ranked.memory.working_set,
        }
        yield json.dumps(record)
    record = subject.record("search") | {
        "objective": best.objective,
        "candidates": best.candidates,
        "built": best.built,
        "refused": [
            {"rule": r.rule, "count": r.count, "tile_sizes": r.sizes, "reason": r.reason}
            for r in best.refused
        ],
        "incomplete": best.incomplete,
    }
    yield json.dumps(record)


_NO_TILE: dict[str, Any] = {
    **dict.fromkeys(("offsets", "sizes", "strides", "lower_bounds", "upper_bounds", "constraints")),
    "runtime": [],
}


def _grid(tiling: Tiling) -> dict[str, Any]:
    return {
        "tile_sizes": tiling.sizes,
        "grid": tiling.grid,
        "divides": tiling.divides,
        "edge_tiles": tiling.edge_tiles,
    }


def _array(label: ArrayLabel) -> dict[str, Any]:
    return {
        "role": label.role,
        "operand": label.number,
        "operand_name": label.name,
        "operand_shape": shape_record(label.shape),
        "path": label.path or (),
    }


def _operand(operand: TiledOperand) -> dict[str, Any]:
    return {
        "kind": operand.kind,
        "grade": None if operand.unknown is not None else operand.grade,
        "reason": operand.reason,
        "offsets": _texts(operand.offsets),
        "sizes": _texts(operand.sizes),
        "strides": _texts(operand.strides),
        "runtime": _runtime(operand.runtime),
        "tile_bytes": _number(operand.tile_bytes),
        "bytes": _number(operand.bytes),
        "bytes_touched": _number(operand.bytes_touched),
        "reuse": _number(operand.reuse),
        "overfetch": _number(operand.overfetch),
        "halo": list(map(_number, operand.halo)),
        "contiguous": _runs(operand.contiguous),
        "unknown": _reason(operand.unknown),
    }


def _region(region: Region | Unknown) -> dict[str, Any]:
    if isinstance(region, Unknown):
        return {"grade": None, "region": None, "box": None, "boxes": None}
    return region_record(region)


def _finished_record(region: Region | Unknown) -> dict[str, Any]:
    if isinstance(region, Unknown):
        return _region(region) | {"side": None, "runtime": []}
    side = region.side if region.grade == "may" else None
    return _region(region) | {"side": side, "runtime": _runtime(region.runtime)}


def _runs(runs: MemoryRuns | Unknown) -> dict[str, Any] | None:
    if isinstance(runs, Unknown):
        return None
    return {"length": runs.length, "count": runs.count, "distance": runs.distance}


def _runtime(variables: Iterable[RuntimeVariable]) -> list[dict[str, Any]]:
    return [
        source_of(v) | {"index": _texts(v.element), "bounds": v.variable.bounds, "clamp": v.clamp}
        for v in variables
    ]


def _texts(exprs: Sequence[object] | None) -> list[str] | None:
    return None if exprs is None else list(map(str, exprs))


def _number(value: int | Fraction | Unknown) -> int | float | None:
    if isinstance(value, Unknown):
        return None
    return int(value) if value == int(value) else float(value)


def _reason(unknown: object) -> str | None:
    return unknown.reason if isinstance(unknown, Unknown) else None

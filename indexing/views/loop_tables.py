"""Tilings with loops as text: the loops, the phases and what a block holds in each, the traffic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from indexing.tiling.loops.block_figures import PhaseFigures
from indexing.tiling.loops.loop_tiling import LoopTiling
from simplifier.unknown import Unknown


def loop_tiling_text(tiling: LoopTiling) -> str:
    """Return the text of a tiling with loops: the blocks, then the lines of `loop_tiling_lines`."""
    instruction = tiling.instruction
    head = f"{instruction.name} = {tiling.shape} {instruction.opcode}: {loop_tiling_title(tiling)}"
    return "\n".join([head, *[f"  {line}" for line in loop_tiling_lines(tiling)]])


def loop_tiling_title(tiling: LoopTiling) -> str:
    """Return the sizes, the grid and the loops."""
    title = f"tiles {list(tiling.sizes)}, grid {list(tiling.grid)}, {tiling.blocks:,} blocks"
    if tiling.split_k > 1:
        title += f", split_k {tiling.split_k}"
    loops = [f"{loop.name}={loop.step} ({loop.steps:,} of {loop.size:,})" for loop in tiling.loops]
    return f"{title}, steps {', '.join(loops)}" if loops else f"{title}, no loops"


def loop_tiling_lines(tiling: LoopTiling) -> Iterator[str]:
    """Yield the phases, and the figures of all blocks."""
    phases = tiling.phases
    if isinstance(phases, Unknown):
        yield f"unknown: {phases.reason}"
        return
    for number, phase in enumerate(phases):
        if phase.tiles or phase.steps > 1:
            yield from _phase_lines(tiling, number, phase)
    sign = "<= " if tiling.grade == "may" else ""
    passes = "1 pass" if tiling.passes == 1 else f"{tiling.passes} passes"
    yield (
        f"{sign}{_number(tiling.bytes)} bytes loaded and stored, {_number(tiling.compulsory)} "
        f"compulsory, {passes}{', online' if tiling.online else ''}"
    )
    yield (
        f"{sign}{_number(tiling.resident_bytes)} bytes resident, "
        f"{_number(tiling.shared_bytes())} in {tiling.stages} stages, "
        f"{_number(tiling.accumulator_registers)} accumulator registers"
    )


def _phase_lines(tiling: LoopTiling, number: int, phase: PhaseFigures) -> Iterator[str]:
    """Yield the steps of a phase, and what a block holds of each array."""
    steps = "1 step" if phase.steps == 1 else f"{phase.steps:,} steps"
    yield f"phase {number}: {steps}, {phase.resident:,} bytes resident"
    for tile in phase.tiles:
        reads = [r for r in tiling.operands if r.phase == number and r.array == tile.array]
        boxes = list(dict.fromkeys([str(r.box) for r in reads if not isinstance(r.box, Unknown)]))
        more = f" {boxes[0]}" if len(boxes) == 1 else f", {len(reads)} reads" if reads else ""
        name = tile.array.instruction.name
        yield f"  {name} {tile.array.shape}: {tile.kind}, {tile.bytes:,} bytes{more}"


def _number(value: int | Unknown) -> str:
    return "unknown" if isinstance(value, Unknown) else f"{value:,}"


def loop_tiling_record(tiling: LoopTiling) -> dict[str, Any]:
    """Return the figures of a tiling as JSON; an unknown figure is null."""
    figures = {
        "bytes": tiling.bytes,
        "compulsory": tiling.compulsory,
        "resident_bytes": tiling.resident_bytes,
        "padded_resident_bytes": tiling.padded_resident_bytes,
        "shared_bytes": tiling.shared_bytes(),
        "accumulator_registers": tiling.accumulator_registers,
    }
    phases = tiling.phases
    known = () if isinstance(phases, Unknown) else phases
    return {
        "tile_sizes": tiling.sizes,
        "grid": tiling.grid,
        "blocks": tiling.blocks,
        "loops": [
            {"name": loop.name, "size": loop.size, "step": loop.step, "steps": loop.steps}
            for loop in tiling.loops
        ],
        "split_k": tiling.split_k,
        "steps": tiling.steps,
        "stages": tiling.stages,
        "passes": tiling.passes,
        "online": tiling.online,
        "grade": tiling.grade,
        **{k: None if isinstance(v, Unknown) else v for k, v in figures.items()},
        "phases": [
            {
                "steps": phase.steps,
                "resident_bytes": phase.resident,
                "tiles": [
                    {
                        "array": tile.array.instruction.name,
                        "kind": tile.kind,
                        "bytes": tile.bytes,
                        "padded_bytes": tile.padded_bytes,
                        "sizes": tile.extents,
                        "is_box": tile.is_box,
                    }
                    for tile in phase.tiles
                ],
            }
            for phase in known
        ],
    }

"""Tilings with loops as text: the loops, the phases and what a block holds in each, the traffic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hlo.text.names import counted_noun
from indexing.tiling.loops.block_figures import PhaseFigures
from indexing.tiling.loops.block_rules import DeviceRules
from indexing.tiling.loops.compiled_tilings import CompiledTiling
from indexing.tiling.loops.loop_parts import LoopRead
from indexing.tiling.loops.loop_search import BestLoopTilings, RankedChoice
from indexing.tiling.loops.loop_tiling import LoopTiling
from indexing.tiling.loops.row_methods import row_methods, waiting_sums
from indexing.tiling.loops.tpu_rules import TpuRules
from indexing.tiling.loops.triton_memory import triton_shared_bytes
from indexing.views.map_tables import Paint, plain
from indexing.views.tables import ANY_WIDTH, Table
from indexing.views.tile_answers import body_lines
from indexing.views.tile_subjects import TileSubject
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
    yield from _method_lines(tiling)
    shapes = [tile.array.array_shape for phase in phases for tile in phase.tiles]
    if any(shape is not None and shape.layout_or_default.tiles for shape in shapes):
        yield (
            f"{sign}{_number(tiling.vmem_bytes)} bytes of VMEM: two buffers of each block, padded "
            "to tiles"
        )
        yield "  other figures are without padding: steps of loops may begin inside of layout tiles"


def _method_lines(tiling: LoopTiling) -> Iterator[str]:
    """Yield the ways to read whole rows, and why the tiling may not read them online."""
    for method in row_methods(tiling):
        mark = " (this tiling)" if method.is_chosen else ""
        yield f"{method.name}: {method.bytes:,} bytes, {method.resident:,} resident{mark}"
    for reason in waiting_sums(tiling):
        yield f"not online: {reason}"


def _phase_lines(tiling: LoopTiling, number: int, phase: PhaseFigures) -> Iterator[str]:
    """Yield the steps of a phase, and what a block holds of each array."""
    steps = "1 step" if phase.steps == 1 else f"{phase.steps:,} steps"
    yield f"phase {number}: {steps}, {phase.resident:,} bytes resident"
    for tile in phase.tiles:
        reads = [r for r in tiling.operands if r.phase == number and r.array == tile.array]
        boxes = list(dict.fromkeys([str(r.box) for r in reads if not isinstance(r.box, Unknown)]))
        more = f", {counted_noun(len(reads), 'read')}" if reads else ""
        if len(boxes) == 1:
            more = f" {boxes[0]}"
        name = tile.array.instruction.name
        yield f"  {name} {tile.array.shape}: {tile.kind}, {tile.bytes:,} bytes{more}"


def _number(value: int | Unknown) -> str:
    return "unknown" if isinstance(value, Unknown) else f"{value:,}"


def _number_or_none(value: int | Unknown) -> int | None:
    return None if isinstance(value, Unknown) else value


def loop_tiling_record(tiling: LoopTiling) -> dict[str, Any]:
    """Return the figures of a tiling as JSON; an unknown figure is null."""
    figures = {
        "bytes": tiling.bytes,
        "compulsory": tiling.compulsory,
        "resident_bytes": tiling.resident_bytes,
        "padded_resident_bytes": tiling.padded_resident_bytes,
        "shared_bytes": tiling.shared_bytes(),
        "accumulator_registers": tiling.accumulator_registers,
        "sequential_bytes": None if tiling.split_k > 1 else tiling.sequential_bytes(),
        "vmem_bytes": tiling.vmem_bytes,
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
        "row_methods": [
            {
                "name": method.name,
                "bytes": method.bytes,
                "resident_bytes": method.resident,
                "chosen": method.is_chosen,
            }
            for method in row_methods(tiling)
        ],
        "not_online": list(waiting_sums(tiling)),
        "grade": tiling.grade,
        **{k: None if v is None else _number_or_none(v) for k, v in figures.items()},
        "phases": [
            {
                "steps": phase.steps,
                "resident_bytes": phase.resident,
                "reads": [_read_record(r) for r in tiling.operands if r.phase == number],
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
            for number, phase in enumerate(known)
        ],
    }


def _read_record(read: LoopRead) -> dict[str, Any]:
    """Return the elements that a block reads in a step as JSON: formulas of the index ``tid_k``."""
    record: dict[str, Any] = {"array": read.array.instruction.name, "path": read.array.path}
    if isinstance(read.box, Unknown):
        return record | {"unknown": read.box.reason}
    sides = read.box.sides
    return record | {
        "offsets": [str(side.offset) for side in sides],
        "sizes": [str(side.size) for side in sides],
        "strides": [str(side.stride) for side in sides],
        "upper_bounds": [str(side.upper) for side in sides],
        "conditions": [str(condition) for condition in read.box.conditions],
        "grade": read.box.grade,
        "unknown": None,
    }


# ---------------------------------------------------------------- the best tilings

LOOP_COLUMNS: Final = (
    *("sizes", "steps", "split", "blocks", "bytes", "resident", "stages", "shared", "warps"),
    "worse by",
)
"""The columns of the table of the best tilings with loops on a GPU."""
TPU_COLUMNS: Final = ("sizes", "steps", "blocks", "bytes", "VMEM", "worse by")
"""The columns on a TPU."""


def best_loop_tilings_table(best: BestLoopTilings) -> Table:
    """Return the table of the best tilings with loops: why each is worse than the one before."""
    rows = []
    is_tpu = isinstance(best.rules, TpuRules)
    parts = ["block" if is_tpu and part == "wave" else part for part in best.key_parts]
    columns = TPU_COLUMNS if is_tpu else LOOP_COLUMNS
    for number, tiling in enumerate(best.ranked):
        steps = ",".join([f"{loop.name}={loop.step}" for loop in tiling.loops]) or "-"
        sizes = "[" + ",".join(map(str, tiling.sizes)) + "]"
        before = best.keys[number - 1]
        worse = worse_by(before, best.keys[number], parts) if number else ""
        rows.append((sizes, steps, *_device_figures(tiling, best.rules), worse))
    notes = [f"{best.measured:,} measured of {best.candidates:,}", *map(str, best.refused)]
    if best.compiled is not None:
        notes += choice_lines(best.compiled, best)
    if best.incomplete:
        notes.append(f"better tilings may exist: {best.incomplete}")
    return Table(
        f"best tilings of `{best.instruction.name}` {best.shape} on {best.rules.name}",
        columns,
        rows,
        notes,
        empty="none",
        right=range(2, len(columns) - 1),
        max_width=ANY_WIDTH,
        spared=("split", "stages", "resident", "warps"),
    )


def choice_lines(choice: RankedChoice, best: BestLoopTilings) -> Iterator[str]:
    """Yield XLA's choice, how many of the best tilings are better, and the rules it violates."""
    line = f"XLA's choice: {choice.compiled}: {_number(choice.tiling.bytes)} bytes"
    if choice.better:
        worse = worse_by(best.keys[0], choice.key, best.key_parts)
        line += f", {worse} worse than the best; better: {choice.better} of {len(best)}"
    elif best.keys:
        line += ", as good as the best" if choice.key == best.keys[0] else ", better than these"
    yield line
    yield from [f"XLA's choice: {reason}" for reason in choice.violations]


def _device_figures(tiling: LoopTiling, rules: DeviceRules) -> tuple[str | int, ...]:
    """Return the figures between the steps and the last column."""
    if isinstance(rules, TpuRules):
        return tiling.blocks, _number(tiling.sequential_bytes()), _number(tiling.vmem_bytes)
    moved, resident = _number(tiling.bytes), _number(tiling.resident_bytes)
    shared = _number(tiling.shared_bytes())
    warps = tiling.warps(rules.name)
    own = "-" if warps is None else _number(warps)
    return tiling.split_k, tiling.blocks, moved, resident, tiling.stages, shared, own


def worse_by(better: tuple[int, ...], key: tuple[int, ...], parts: Sequence[str]) -> str:
    """Return the first part in which a key is larger, in words.

    Args:
        parts: what the parts count; empty if they have no names.

    >>> worse_by((-132, 100), (-132, 120), ("idle processor", "byte"))
    '20 bytes'
    """
    for k, (first, second) in enumerate(zip(better, key, strict=True)):
        if first != second:
            if len(parts) != len(key):
                return f"{second - first:,} in part {k} of the key"
            return counted_noun(second - first, parts[k])
    return "equal"


def best_loop_tilings_text(best: BestLoopTilings) -> str:
    """Return the table of the best tilings with loops as text."""
    return str(best_loop_tilings_table(best))


# ---------------------------------------------------------------- answers of the command


@dataclass(frozen=True, slots=True)
class LoopAnswer:
    """An answer about tilings with loops, as ``hlo-indexing tile`` prints it.

    Attributes:
        subject: the tiled array.
        title: the end of the heading.
        body: the lines below it.
        rows: for each JSON record, its kind and its fields.
        table: the table below the heading, if any.
    """

    subject: TileSubject
    title: str
    body: tuple[str, ...]
    rows: tuple[tuple[str, dict[str, Any]], ...]
    table: Table | None = None

    @classmethod
    def of_compiled(cls, subject: TileSubject, compiled: CompiledTiling, device: str) -> LoopAnswer:
        """Return the answer with the tiling that XLA chose, and the rules of a GPU.

        Raises:
            ValueError: the device is no known GPU, or XLA chose no tile of the output.
        """
        tiling = compiled.tiling(subject.to, subject.output)
        if isinstance(tiling, Unknown):
            return cls.of(subject, tiling)
        shared = triton_shared_bytes(compiled, device, subject.output)
        violated = tiling.violations(device, compiled.stages, compiled.warps)
        lines = [f"XLA's choice: {compiled}"]
        if isinstance(shared, Unknown):
            lines.append(f"unknown bytes of shared memory: {shared.reason}")
        else:
            lines.append(f"{shared:,} bytes of shared memory, by the model of Triton on {device}")
        if not isinstance(violated, Unknown):
            lines += [f"violates a rule of {device}: {reason}" for reason in violated]
        compiled_fields = {
            "kind": compiled.kind,
            "warps": compiled.warps,
            "stages": compiled.stages,
            "ctas": compiled.ctas,
            "device": device,
            "shared_bytes": _number_or_none(shared),
            "violations": None if isinstance(violated, Unknown) else violated,
        }
        row = ("loops", loop_tiling_record(tiling) | {"compiled": compiled_fields})
        body = (*loop_tiling_lines(tiling), *lines)
        return cls(subject, loop_tiling_title(tiling), body, (row,))

    @classmethod
    def of(cls, subject: TileSubject, answer: LoopTiling | BestLoopTilings | Unknown) -> LoopAnswer:
        """Return the answer with a tiling, or with the best ones."""
        if isinstance(answer, Unknown):
            fields = {"unknown": answer.reason}
            return cls(subject, f"unknown: {answer.reason}", (), (("unknown", fields),))
        if isinstance(answer, LoopTiling):
            lines = tuple(loop_tiling_lines(answer))
            row = ("loops", loop_tiling_record(answer))
            return cls(subject, loop_tiling_title(answer), lines, (row,))
        table = best_loop_tilings_table(answer)
        ranked = enumerate(answer.ranked, 1)
        rows = [("loops", {"rank": k} | loop_tiling_record(each)) for k, each in ranked]
        refused = [
            {"rule": r.rule, "count": r.count, "tile_sizes": r.sizes, "reason": r.reason}
            for r in answer.refused
        ]
        effort = {
            "objective": "bytes",
            "candidates": answer.candidates,
            "built": answer.measured,
            "refused": refused,
            "incomplete": answer.incomplete,
        }
        if answer.compiled is not None:
            effort["compiled"] = {
                "tile_sizes": answer.compiled.tiling.sizes,
                "bytes": _number_or_none(answer.compiled.tiling.bytes),
                "warps": answer.compiled.compiled.warps,
                "stages": answer.compiled.compiled.stages,
                "better": answer.compiled.better,
                "violations": answer.compiled.violations,
            }
        title = f"best tilings with loops on {answer.rules.name}"
        return cls(subject, title, (), (*rows, ("search", effort)), table)

    @property
    def has_masked_blocks(self) -> bool:
        """False: the answer has no blocks of an array."""
        return False

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the JSON records."""
        for kind, fields in self.rows:
            yield self.subject.record(kind) | fields

    def lines(self, width: int | None = None, paint: Paint = plain) -> Iterator[str]:
        """Yield a heading, and the lines below it.

        Args:
            width: the columns of the terminal; boxes and the columns of the table fit it.
        """
        head = [paint(word, style) if style else word for word, style in self.subject.head()]
        yield " ".join([*head, self.title])
        room = None if width is None else width - 2
        table = () if self.table is None else self.table.lines(room)
        for line in (*table, *(self.body if room is None else body_lines(self.body, room))):
            yield f"  {line}"

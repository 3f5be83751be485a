"""The tables and the JSON of ``hlo-indexing memory``; `schemas/memory.json` is the JSON schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hlo.modules.module import Module
from hlo.text.names import counted_noun
from indexing.devices.memories import memory_sizes
from indexing.devices.tpus import VMEM_MIB
from indexing.frontends.layout_trials import LayoutTrial
from indexing.memory.buffers.array_copies import ArrayCopy
from indexing.memory.buffers.layout_proposals import LayoutProposal
from indexing.memory.buffers.profile import HloBuffer, MemoryProfile, SpacePeak
from indexing.memory.spaces import is_for_tpu
from indexing.views.allocation_tables import allocation_lines, allocation_record
from indexing.views.layout_tables import copy_record, trial_lines, trial_record
from indexing.views.map_tables import Paint, plain, shape_text
from indexing.views.records import SCHEMA_VERSION, shape_record, source_record
from indexing.views.tables import Table, align_columns, fit_rows, omitted_lines
from simplifier.unknown import Unknown

COLUMNS = ("stored", "padding", "kind", "alive", "array", "shape", "from")
_SPARED = ("from", "padding", "shape")


@dataclass(frozen=True, slots=True)
class SpaceSection:
    """The buffers of one memory space, and its peak.

    Attributes:
        title: the peak.
        shares: the bytes at the peak by kind, and those that are padding.
        excess: why a peak beyond the memory may be less in fact; else nothing.
        columns: the names of `COLUMNS`; empty for a column without text.
        rows: the cells of each buffer.
        buffers: the buffers of the rows.
        rest: how many more buffers there are, or nothing.
    """

    title: str
    shares: str
    excess: str
    columns: list[str]
    rows: list[list[str]]
    buffers: tuple[HloBuffer, ...]
    rest: str

    def lines(self, width: int | None = None) -> Iterator[str]:
        """Yield the lines of the text; on a terminal of `width` columns, they fit."""
        yield self.title
        yield from [f"  {line}" for line in (self.shares, self.excess) if line]
        room = None if width is None else width - 2
        rows, layouts = [self.columns, *self.rows], list[str]()
        if room is not None and max(map(len, align_columns(rows, range(2), 60))) > room:
            shapes = [shape_text(buffer.shape) for buffer in self.buffers]
            place, layouts = COLUMNS.index("shape"), ["layout"]
            rows[1:] = [
                [*row[:place], shape, *row[place + 1 :]]
                for row, shape in zip(self.rows, shapes, strict=True)
            ]
        fitted, omitted = fit_rows(rows, range(2), 60, room, _SPARED)
        yield from [f"  {line}" for lines in fitted for line in lines]
        if self.rest:
            yield f"  {self.rest}"
        yield from [f"  {line}" for line in omitted_lines(layouts + omitted)]


@dataclass(frozen=True, slots=True)
class MemoryTable:
    """The buffers of a module with the peaks of its memory spaces.

    Attributes:
        file: the name of the file.
        profile: the buffers.
        at_peak: only those that are alive at the peak of their memory space.
        device: the TPU or GPU whose memories are compared with the peaks; "" if it is not known.
    """

    file: str
    profile: MemoryProfile
    at_peak: bool = False
    device: str = ""

    @property
    def has_device(self) -> bool:
        """True if the device is known, and of the kind that the module is compiled for."""
        is_tpu = self.device in VMEM_MIB
        return bool(self.device) and is_tpu == is_for_tpu(self.profile.module)

    @property
    def sizes(self) -> Mapping[int, int]:
        """The bytes of the memories of the device, by the numbers of their spaces."""
        return memory_sizes(self.device) if self.has_device else {}

    def lines(self, top: int, paint: Paint = plain, width: int | None = None) -> Iterator[str]:
        """Yield the lines of the text.

        Args:
            top: the maximum number of buffers of each memory space.
            paint: marks the name of the module.
            width: the number of columns of a terminal: columns that do not fit are omitted.
        """
        profile = self.profile
        is_scheduled = profile.module.header("is_scheduled", False)
        order = "" if is_scheduled else ", not scheduled: the order of the text"
        name = paint(profile.module.name, "name")
        yield f"{self.file}: HloModule {name}, {len(profile.steps):,} steps{order}"
        if self.device and not self.has_device:
            verb = "has" if is_for_tpu(profile.module) else "does not have"
            yield f"  not compared with {self.device}: the module {verb} the tiled layouts of TPUs"
        for section in self.sections(top):
            yield from section.lines(width)
        yield from allocation_lines(profile)

    def _shown_buffers(self, peak: SpacePeak) -> tuple[HloBuffer, ...]:
        if self.at_peak:
            return self.profile.alive(peak.step, peak.space)
        own = [buffer for buffer in self.profile.buffers if buffer.space == peak.space]
        return tuple(sorted(own, key=lambda buffer: -buffer.stored_bytes))

    def sections(self, top: int) -> Iterator[SpaceSection]:
        """Yield a section for each memory space with buffers, with at most `top` of them."""
        for peak in self.profile.peaks.values():
            if shown := self._shown_buffers(peak):
                yield self.section(peak, shown, top)

    def section(self, peak: SpacePeak, shown: tuple[HloBuffer, ...], top: int) -> SpaceSection:
        """Return the section of a memory space, with at most `top` of its buffers."""
        step = self.profile.steps[peak.step].name
        rows = [self._cells(buffer) for buffer in shown[:top]]
        has_text = [any(column) for column in zip(*rows, strict=True)]
        head = [name if has else "" for name, has in zip(COLUMNS, has_text, strict=True)]
        hidden = sum(buffer.stored_bytes for buffer in shown[top:])
        return SpaceSection(
            f"{peak.name}: {peak.stored_bytes:,} bytes at step {peak.step}, `{step}`"
            f"{self._share_of_memory(peak)}",
            _shares(self.profile, peak),
            self._excess(peak),
            head,
            rows,
            shown[:top],
            f"… {len(shown) - top:,} more: {hidden:,} bytes" if len(shown) > top else "",
        )

    def _share_of_memory(self, peak: SpacePeak) -> str:
        size = self.sizes.get(peak.space)
        if size is None:
            return ""
        percent = 100 * peak.stored_bytes / size
        share = f"{percent:.2g}" if percent < 99 else f"{percent:,.0f}"
        return f"; {self.device} has {size:,} ({share} %)"

    def _excess(self, peak: SpacePeak) -> str:
        """Return what a peak beyond the memory leaves open, if XLA's buffer assignment is missing.

        XLA writes results over operands, which are counted apart without its assignment.
        """
        fits = peak.stored_bytes <= self.sizes.get(peak.space, peak.stored_bytes)
        if fits or self.profile.assignment is not None:
            return ""
        return (
            "too large, unless XLA writes results over operands: its buffer assignment tells "
            "(`hlo-indexing dump`, or --assignment)"
        )

    def _cells(self, buffer: HloBuffer) -> list[str]:
        padding = f"{buffer.padding:,}" if buffer.padding else ""
        others = len(buffer.arrays) - 1
        more = f" and {others} more" if others else ""
        life = ", ".join([f"{first}-{last}" for first, last in buffer.life[:3]])
        if len(buffer.life) > 3:
            life += ", …"
        shape = str(buffer.shape)
        name = buffer.name + more
        return [f"{buffer.stored_bytes:,}", padding, buffer.kind, life, name, shape, buffer.line]

    def to_json(self, top: int | None = None) -> dict[str, Any]:
        """Return the buffers as a value for JSON.

        Args:
            top: the maximum number of buffers of each memory space; by default, all.
        """
        profile = self.profile
        spaces = [peak for peak in profile.peaks.values() if self._shown_buffers(peak)]
        return {
            "file": self.file,
            "module": profile.module.name,
            "scheduled": bool(profile.module.header("is_scheduled", False)),
            "steps": len(profile.steps),
            "device": self.device if self.has_device else None,
            "peaks": [
                _peak_record(peak, profile) | {"memory_bytes": self.sizes.get(peak.space)}
                for peak in spaces
            ],
            "buffers": [_record(b) for peak in spaces for b in self._shown_buffers(peak)[:top]],
            **allocation_record(profile),
            "unknown": None,
            "schema_version": SCHEMA_VERSION,
        }


@dataclass(frozen=True, slots=True)
class CopyTable:
    """The copies of a module.

    Attributes:
        module: the module.
        copies: its copies, those that move the most bytes first.
        trial: what happened with the layouts that they propose; None if these were not tried.
    """

    module: Module
    copies: tuple[ArrayCopy, ...]
    trial: LayoutTrial | None = None

    def lines(self, top: int, paint: Paint = plain) -> Iterator[str]:
        """Yield the lines of the text, with at most `top` copies."""
        name = paint(self.module.name, "name")
        yield f"{self.module.filename}: HloModule {name}"
        yield f"  {self._total()}"
        for copy in self.copies[:top]:
            times = f", {copy.executions:,} times" if copy.executions != 1 else ""
            yield f"{copy.instruction.opcode} {copy.instruction.name}: {copy.bytes:,} bytes{times}"
            yield f"  {copy.kind}: {copy.written_by} -> {copy.read_by}"
            yield f"  {_NEEDS[copy.needed]}: {copy.why}"
            if isinstance(copy.proposal, LayoutProposal):
                yield f"  proposal: {copy.proposal}"
            elif copy.kind in ("layout", "movement"):
                yield f"  no proposal: {copy.proposal.reason}"
        if len(self.copies) > top:
            rest = sum(copy.moved for copy in self.copies[top:])
            yield f"… {len(self.copies) - top:,} more: {rest:,} bytes"
        if self.trial is not None:
            yield from trial_lines(self.trial)

    def _total(self) -> str:
        """Return the bytes of all executions, and those of copies that can go."""
        moved = dict.fromkeys(_NEEDS, 0)
        for copy in self.copies:
            moved[copy.needed] += copy.moved
        if not self.copies:
            return "no copies"
        count = counted_noun(len(self.copies), "copy", "copies")
        verb = "moves" if len(self.copies) == 1 else "move"
        parts = [f"{size:,} {_NEEDS[needed]}" for needed, size in moved.items() if size]
        texts = f": {', '.join(parts)}" if parts else ""
        return f"{count} {verb} {sum(moved.values()):,} bytes{texts}"

    def to_json(self, top: int | None = None) -> dict[str, Any]:
        """Return the copies as a value for JSON.

        Args:
            top: the maximum number of copies; by default, all.
        """
        return {
            "file": self.module.filename,
            "module": self.module.name,
            "copies": [copy_record(copy) for copy in self.copies[:top]],
            **({} if self.trial is None else {"trial": trial_record(self.trial)}),
            "schema_version": SCHEMA_VERSION,
        }


_NEEDS: Final = {True: "needed", False: "not needed", None: "unknown whether needed"}


def unknown_lines(file: str, module: Module, unknown: Unknown) -> Iterator[str]:
    """Yield the lines of the text for a module whose buffers are unknown."""
    yield f"{file}: HloModule {module.name}"
    yield f"  unknown: {unknown}"


def unknown_record(file: str, module: Module, unknown: Unknown) -> dict[str, Any]:
    """Return a value for JSON for a module whose buffers are unknown."""
    return {
        "file": file,
        "module": module.name,
        "scheduled": bool(module.header("is_scheduled", False)),
        "steps": None,
        "device": None,
        "peaks": [],
        "buffers": [],
        "assignment": None,
        "usage": None,
        "unknown": str(unknown),
        "schema_version": SCHEMA_VERSION,
    }


def peak_table(profile: MemoryProfile) -> Table:
    """Return a table of what is alive at the peak of each memory space."""
    rows = [
        (peak.name, b.name, b.kind, str(b.shape), b.dense_bytes, b.stored_bytes, b.padding)
        for peak in profile.peaks.values()
        for b in profile.alive(peak.step, peak.space)
    ]
    notes = [
        f"{peak.name}: {peak.stored_bytes:,} bytes at step {peak.step}"
        for peak in profile.peaks.values()
    ]
    columns = ("memory", "array", "kind", "shape", "dense", "stored", "padding")
    return Table(f"memory of {profile.module.name}", columns, rows, notes, right=(4, 5, 6))


def _shares(profile: MemoryProfile, peak: SpacePeak) -> str:
    """Return the bytes at a peak by kind, and those that are padding."""
    kinds = profile.alive_by_kind(peak.step, peak.space)
    texts = [f"{count:,} {kind}" for kind, count in kinds.items()]
    padding = peak.stored_bytes - peak.dense_bytes
    return ", ".join(texts) + (f"; {padding:,} in all are padding" if padding else "")


def _peak_record(peak: SpacePeak, profile: MemoryProfile) -> dict[str, Any]:
    return {
        "space": peak.space,
        "name": peak.name,
        "step": peak.step,
        "instruction": profile.steps[peak.step].name if profile.steps else None,
        "stored_bytes": peak.stored_bytes,
        "dense_bytes": peak.dense_bytes,
        "padding": peak.stored_bytes - peak.dense_bytes,
        "kinds": dict(profile.alive_by_kind(peak.step, peak.space)),
    }


def _record(buffer: HloBuffer) -> dict[str, Any]:
    return {
        "array": buffer.name,
        "instruction": buffer.instruction.name,
        "computation": buffer.instruction.computation.name,
        "path": list(buffer.arrays[0].path),
        "arrays": [array.instruction.name for array in buffer.arrays],
        "shape": shape_record(buffer.shape),
        "layout": str(buffer.shape.layout_or_default),
        "kind": buffer.kind,
        "space": buffer.space,
        "stored_bytes": buffer.stored_bytes,
        "dense_bytes": buffer.dense_bytes,
        "padding": buffer.padding,
        "life": [list(interval) for interval in buffer.life],
        "source": source_record(buffer.instruction.source),
    }

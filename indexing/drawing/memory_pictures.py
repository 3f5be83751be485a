"""Pictures of memory: the lives of buffers along the schedule, a row each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from indexing.drawing.drawing import Backend, as_drawing
from indexing.drawing.figures import CellGrid, ColumnMark, DrawnCell, Figure
from indexing.drawing.style import Theme
from indexing.drawing.traffic_pictures import bytes_text
from indexing.memory.buffers.profile import HloBuffer, MemoryProfile, SpacePeak

KINDS: Final = ("argument", "donated", "output", "constant", "temporary")
MAX_COLUMNS: Final = 48
DEFAULT_ROWS: Final = 16
_ALIVE: Final = {False: "are alive", True: "of the peak are alive"}
MAX_LINES: Final = 4
"""Limit on the buffers at the peak whose lines of Python are noted, the largest first."""


def plot_memory(
    profile: MemoryProfile, limit: int, backend: Backend, theme: Theme, at_peak: bool
) -> Any:
    """Return a picture of a profile; see `MemoryProfile.plot`."""
    return as_drawing(memory_figure(profile, limit, at_peak), backend, theme)


def memory_figure(profile: MemoryProfile, top: int | None = None, at_peak: bool = False) -> Figure:
    """Return the lives of the largest buffers of each memory space, with its peak.

    Args:
        top: the number of buffers of a space; by default `DEFAULT_ROWS`.
        at_peak: only those that are alive at the peak of their space.
    Raises:
        ValueError: the number is less than 1.
    """
    if top is not None and top < 1:
        raise ValueError(f"at least 1 buffer of each memory space is drawn, got {top}")
    panels = []
    for peak in profile.peaks.values():
        own = [buffer for buffer in profile.buffers if buffer.space == peak.space]
        if at_peak:
            own = [buffer for buffer in own if buffer.is_alive(peak.step)]
        if own:
            panels.append(_panel(profile, peak, own, top or DEFAULT_ROWS, at_peak))
    return Figure(f"memory of {profile.module.name}", tuple(panels), ())


def _panel(
    profile: MemoryProfile, peak: SpacePeak, own: Sequence[HloBuffer], top: int, at_peak: bool
) -> CellGrid:
    width = -(-len(profile.steps) // MAX_COLUMNS)
    columns = -(-len(profile.steps) // width)
    ranked = sorted(own, key=lambda buffer: -buffer.stored_bytes)
    shown = sorted(ranked[:top], key=lambda buffer: buffer.life[0])
    cells = [
        DrawnCell(
            row, column, f"step {column * width}", bytes_text(buffer.stored_bytes), _shade(buffer)
        )
        for row, buffer in enumerate(shown)
        for column in range(columns)
        if any(buffer.is_alive(s) for s in range(column * width, (column + 1) * width))
    ]
    return CellGrid(
        f"{peak.name}: steps in which buffers {_ALIVE[at_peak]}",
        peak.name,
        len(shown),
        columns,
        tuple(cells),
        "class",
        tuple((n + 1, kind) for n, kind in enumerate(KINDS) if any(b.kind == kind for b in shown)),
        tuple(f"{buffer.name}  {bytes_text(buffer.stored_bytes)}" for buffer in shown),
        tuple(str(column * width) for column in range(columns)),
        ("buffer", "step"),
        tuple(_notes(profile, peak, width, ranked[top:])),
        marks=(ColumnMark(peak.step // width, f"peak, step {peak.step}"),),
    )


def _notes(
    profile: MemoryProfile, peak: SpacePeak, width: int, hidden: Sequence[HloBuffer]
) -> Iterator[str]:
    """Yield the peak, the lines of Python behind it, and how many buffers are not drawn."""
    step = profile.steps[peak.step].name
    yield f"peak {bytes_text(peak.stored_bytes)} at step {peak.step}, {step}"
    if width > 1:
        yield f"a column shows {width} steps"
    from_lines = [buffer for buffer in profile.alive(peak.step, peak.space) if buffer.line]
    for buffer in from_lines[:MAX_LINES]:
        yield f"{buffer.name}, {bytes_text(buffer.stored_bytes)}, from {buffer.line}"
    if hidden:
        rest = bytes_text(sum(buffer.stored_bytes for buffer in hidden))
        yield f"{len(hidden):,} smaller buffers, {rest}, are not drawn"


def _shade(buffer: HloBuffer) -> int:
    return KINDS.index(buffer.kind) + 1

"""The layouts that spare copies, and what happened with them, as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from indexing.frontends.layout_trials import LayoutTrial
from indexing.memory.buffers.array_copies import ArrayCopy
from indexing.memory.buffers.layout_proposals import LayoutChange, LayoutProposal
from indexing.memory.buffers.profile import SpacePeak
from indexing.memory.spaces import space_name
from indexing.views.records import source_record


def copy_record(copy: ArrayCopy) -> dict[str, Any]:
    """Return a copy as a value for JSON."""
    changes: tuple[LayoutChange, ...] = ()
    reason = None
    if isinstance(copy.proposal, LayoutProposal):
        changes = copy.proposal.changes
    else:
        reason = copy.proposal.reason
    return {
        "instruction": copy.instruction.name,
        "computation": copy.instruction.computation.name,
        "kind": copy.kind,
        "bytes": copy.bytes,
        "executions": copy.executions,
        "written_by": copy.written_by,
        "read_by": copy.read_by,
        "needed": copy.needed,
        "why": copy.why,
        "proposal": [change_record(change) for change in changes],
        "no_proposal": reason,
        "source": source_record(copy.instruction.source),
    }


def change_record(change: LayoutChange) -> dict[str, Any]:
    """Return a layout that spares a copy as a value for JSON."""
    return {
        "place": change.place,
        "number": change.number,
        "instruction": (change.by or change.array.instruction).name,
        "path": list(change.array.path),
        "before": str(change.before),
        "layout": str(change.layout),
        "major_to_minor": list(change.major_to_minor),
    }


def trial_lines(trial: LayoutTrial) -> Iterator[str]:
    """Yield the lines of the text."""
    if not trial.layouts:
        yield "not compiled again: no copy proposes a layout of an argument or a result"
        return
    count = len(trial.layouts)
    yield f"compiled again for {trial.target} with {count} layout{'s' * (count > 1)}, in JAX"
    proposals = [tried.copy.proposal for tried in trial.tried]
    changes = [c for each in proposals if isinstance(each, LayoutProposal) for c in each.changes]
    for end, order in {change.end: change.major_to_minor for change in changes}.items():
        yield f"  {end[0]} {end[1]}: Layout(major_to_minor={order})"
    for tried in trial.tried:
        copy = tried.copy.instruction
        yield f"  {copy.opcode} {copy.name}: {'removed' if tried.removed else 'not removed'}"
    figures = [("copies within memories", trial.moved_before, trial.moved_after)]
    figures += [(f"peak of {name}", before, after) for name, before, after in _peaks(trial)]
    for name, before, after in figures:
        yield f"  {name}: {before:,} bytes before, {after:,} after"


def trial_record(trial: LayoutTrial) -> dict[str, Any]:
    """Return a trial of layouts as a value for JSON."""
    return {
        "target": trial.target,
        "layouts": [
            {"place": "result" if is_result else "argument", "number": number, "layout": layout}
            for is_result, number, layout in trial.layouts
        ],
        "tried": [
            {"instruction": tried.copy.instruction.name, "removed": tried.removed}
            for tried in trial.tried
        ],
        "moved_before": trial.moved_before,
        "moved_after": trial.moved_after,
        "peaks": [
            {"name": name, "before": before, "after": after}
            for name, before, after in _peaks(trial)
        ],
    }


def _peaks(trial: LayoutTrial) -> list[tuple[str, int, int]]:
    """Return each memory space with the bytes of its peak before and after."""
    before, after = trial.peaks_before, trial.peaks_after
    return [
        (space_name(space, trial.before), _stored_bytes(before, space), _stored_bytes(after, space))
        for space in sorted({*before, *after})
    ]


def _stored_bytes(peaks: Mapping[int, SpacePeak], space: int) -> int:
    return peaks[space].stored_bytes if space in peaks else 0

"""Verdicts on shared memory, in ``hlo-indexing check --in-place``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hlo.text.names import counted_noun

if TYPE_CHECKING:
    from indexing.equivalence.overlaps import Overlap
    from indexing.equivalence.shared_memory import DecidedResult, SharedMemory


def in_place_lines(shared: SharedMemory, limit: int) -> Iterator[str]:
    """Yield the numbers of verdicts, and what is undecided and safe; errors are printed elsewhere.

    Args:
        limit: the most results, and the most pairs, that are listed.
    """
    undecided = shared.count("undecided")
    counts = _counts(shared.count("safe"), shared.count("not safe"), undecided)
    yield f"  in place{_missing(shared)}: {counts}"
    rows = [each for word in ("undecided", "safe") for each in shared.results if each.word == word]
    yield from _limit_lines([f"    {row.word}: {row}" for row in rows], limit)
    overlaps = shared.overlaps
    if overlaps is None:
        return
    if overlaps.reason:
        yield f"  overlapping arrays: undecided: {overlaps.reason}"
        return
    if not overlaps.pairs:
        yield "  overlapping arrays: none"
        return
    counts = _counts(overlaps.safe, len(overlaps.faults), len(overlaps.undecided))
    pairs = counted_noun(overlaps.pairs, "pair")
    yield f"  overlapping arrays: {pairs}, {overlaps.in_part:,} in part: {counts}"
    yield from _limit_lines([f"    {each}" for each in overlaps.undecided], limit)


def _missing(shared: SharedMemory) -> str:
    """Return what is not known, such as what XLA places before a module is scheduled."""
    if shared.overlaps is not None:
        return ""
    return ", without a buffer assignment" if shared.is_scheduled else ", before scheduling"


def _counts(safe: int, unsafe: int, undecided: int) -> str:
    known = f"{safe:,} safe, {unsafe:,} not safe"
    return f"{known}, {undecided:,} undecided" if undecided else known


def _limit_lines(lines: list[str], limit: int) -> Iterator[str]:
    yield from lines[:limit]
    if len(lines) > limit:
        yield f"    … {len(lines) - limit:,} more"


def in_place_record(shared: SharedMemory) -> dict[str, Any]:
    """Return the verdicts as a value for JSON."""
    overlaps = shared.overlaps
    return {
        "safe": shared.count("safe"),
        "undecided": [str(each) for each in shared.results if each.word == "undecided"],
        "results": list(map(_result_record, shared.results)),
        "overlaps": overlaps
        and {
            "pairs": overlaps.pairs,
            "in_part": overlaps.in_part,
            "safe": overlaps.safe,
            "undecided": list(map(_overlap_record, overlaps.undecided)),
            "not_safe": list(map(_overlap_record, overlaps.faults)),
            "reason": overlaps.reason,
        },
    }


def _result_record(result: DecidedResult) -> dict[str, Any]:
    instruction, operand, path, why = result.sharing
    return {
        "instruction": instruction.name,
        "computation": instruction.computation.name,
        "line": instruction.span.line,
        "path": path,
        "operand": operand,
        "operand_name": instruction.operands[operand].name,
        "shared_by": why,
        "verdict": result.word,
        "reason": result.reason,
    }


def _overlap_record(overlap: Overlap) -> dict[str, Any]:
    arrays = [
        {"name": name, "allocation": place.allocation, "offset": place.first, "size": place.size}
        for name, place in zip(overlap.names, overlap.places, strict=True)
    ]
    return {"arrays": arrays, "reason": overlap.verdict.reason}

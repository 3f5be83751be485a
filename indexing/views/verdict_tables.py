"""Text and JSON of comparisons: verdicts with their witnesses, and tables of passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from indexing.equivalence.passes import PassResult
from indexing.equivalence.verdicts import Differs, ElementIndex, Proved, Undecided, Verdict
from indexing.memory.movement.figures import Traffic
from indexing.views.alignment import aligned
from indexing.views.records import SCHEMA_VERSION

MAX_ELEMENTS: Final = 8
"""Limit on the elements that a line lists."""


# ---------------------------------------------------------------- verdicts


def verdict_lines(verdict: Verdict) -> Iterator[str]:
    """Yield the lines of a verdict: what is proved, or the witness with both chains of reads."""
    yield str(verdict)
    if verdict.note:
        yield f"  note: {verdict.note}"
    match verdict:
        case Proved(fewer_reads=fewer):
            for less in fewer:
                element = _index(less.parameter_element)
                yield (
                    f"  output {less.output} at {_index(less.element)} reads parameter "
                    f"{less.parameter} at {element} only before, without an observed influence"
                )
        case Differs():
            yield from _witness_lines(verdict)
        case Undecided(level=level, terms=terms):
            yield f"  proved: {level or 'nothing'}"
            if terms is not None:
                yield f"  before: {terms[0]}"
                yield f"  after:  {terms[1]}"


def _witness_lines(verdict: Differs) -> Iterator[str]:
    yield f"  value: {verdict.before} before, {verdict.after} after"
    if verdict.parameter is None:
        return
    reads = _listed(verdict.reads_before), _listed(verdict.reads_after)
    yield f"  reads of parameter {verdict.parameter}: {reads[0]} before, {reads[1]} after"
    for word, chain in (("before", verdict.chain_before), ("after", verdict.chain_after)):
        yield f"  {word + ':':<7} {' <- '.join(chain) or 'no chain of reads'}"


def _listed(elements: Sequence[ElementIndex]) -> str:
    shown = " ".join(map(_index, elements[:MAX_ELEMENTS]))
    more = len(elements) - MAX_ELEMENTS
    return (shown or "none") + (f" and {more} more" if more > 0 else "")


def _index(element: ElementIndex) -> str:
    return f"[{','.join(map(str, element))}]"


def verdict_record(verdict: Verdict) -> dict[str, Any]:
    """Return the JSON keys of a verdict."""
    record: dict[str, Any] = {
        "verdict": "unknown",
        "level": verdict.level,
        "laws": {},
        "reason": None,
        "output": None,
        "element": None,
        "note": verdict.note or None,
    }
    match verdict:
        case Proved(laws=laws):
            record |= {"verdict": "proved", "laws": dict(laws)}
        case Differs(output=output, element=element, reason=reason):
            record |= {"verdict": "differs", "reason": reason}
            record |= {"output": output, "element": list(element)}
        case Undecided(laws=laws, reason=reason, output=output):
            record |= {"laws": dict(laws), "reason": reason, "output": output}
    return record


def comparison_record(
    before: str, after: str, verdict: Verdict, moved: Sequence[Traffic]
) -> dict[str, Any]:
    """Return the JSON object of ``diff``.

    Args:
        before, after: the files.
        moved: the traffic of both programs; () if it is unknown.
    """
    record = {"before": before, "after": after, **verdict_record(verdict)}
    if isinstance(verdict, Differs):
        record["witness"] = {
            "value": [verdict.before, verdict.after],
            "parameter": verdict.parameter,
            "reads": [
                [list(j) for j in each] for each in (verdict.reads_before, verdict.reads_after)
            ],
            "chains": [list(verdict.chain_before), list(verdict.chain_after)],
        }
    totals = (
        [each.total.read.number for each in moved],
        [each.total.written.number for each in moved],
    )
    record["bytes_read"], record["bytes_written"] = (total or [None, None] for total in totals)
    record["schema_version"] = SCHEMA_VERSION
    return record


def traffic_line(before: Traffic, after: Traffic) -> str:
    """Return the bytes that two programs move."""
    texts = [f"{each.total.read} read, {each.total.written} written" for each in (before, after)]
    return f"bytes: {texts[0]} before; {texts[1]} after"


# ---------------------------------------------------------------- passes


def pass_record(result: PassResult) -> dict[str, Any]:
    """Return the JSON object of a changed pair of dumps."""
    assert result.verdict is not None
    return {
        "module": result.module,
        "pass": result.pass_name,
        "before": result.before.path.name,
        "after": result.after.path.name,
        **verdict_record(result.verdict),
        "schema_version": SCHEMA_VERSION,
    }


@dataclass(slots=True)
class PassRow:
    """The results of one pass.

    Attributes:
        runs: number of pairs of dumps.
        outcomes: number of changed pairs by outcome: the level proved, "differs" or "undecided".
        seconds: the time of the comparisons.
    """

    runs: int
    outcomes: Counter[str]
    seconds: float

    @property
    def changed(self) -> int:
        """Number of pairs that are not equal up to names, order and metadata."""
        return sum(self.outcomes.values())


def outcome(verdict: Verdict) -> str:
    """Return the heading under which the table of passes counts a verdict."""
    match verdict:
        case Proved(level=level, laws=laws):
            return f"{level}, laws" if laws else level
        case Differs():
            return "differs"
        case Undecided(level=level):
            return "undecided" if level is None else f"{level} only"


def pass_table(results: Sequence[PassResult]) -> Iterator[str]:
    """Yield a row for each pass that changed a module, those with the most changes first."""
    rows: dict[str, PassRow] = {}
    for result in results:
        row = rows.setdefault(result.pass_name, PassRow(0, Counter(), 0.0))
        row.runs += 1
        row.seconds += result.seconds
        if result.verdict is not None:
            row.outcomes[outcome(result.verdict)] += 1
    changed = sorted(
        [each for each in rows.items() if each[1].changed], key=lambda e: -e[1].changed
    )
    headings = list(dict.fromkeys(sorted(name for _, row in changed for name in row.outcomes)))
    cells = [["pass", "changed", *headings, "seconds"]]
    for name, row in changed:
        counts = [str(row.outcomes[h] or "") for h in headings]
        cells.append([name, str(row.changed), *counts, f"{row.seconds:.1f}"])
    total = sum([row.outcomes for _, row in changed], Counter[str]())
    seconds = sum(row.seconds for row in rows.values())
    cells.append(["all", str(total.total()), *[str(total[h]) for h in headings], f"{seconds:.1f}"])
    yield from aligned(cells)

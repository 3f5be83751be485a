"""Text and JSON of comparisons: verdicts with their witnesses, and tables of passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hlo.text.names import counted_noun
from indexing.equivalence.dumps import numbers_text
from indexing.equivalence.passes import PassResult
from indexing.equivalence.verdicts import Differs, ElementIndex, Level, Proved, Undecided, Verdict
from indexing.memory.movement.traffic_values import Traffic
from indexing.views.records import SCHEMA_VERSION
from indexing.views.tables import align_columns

MAX_ELEMENTS: Final = 8
"""Limit on the elements that a line lists."""

MAX_LAWS: Final = 2
"""Limit on the laws in the first line of a verdict."""

MAX_UNDECIDED: Final = 8
"""Limit on the undecided pairs that are listed below the table of passes."""


# ---------------------------------------------------------------- verdicts


def verdict_lines(verdict: Verdict, level: Level = "values") -> Iterator[str]:
    """Yield the lines of a verdict: what is proved, or the witness with both chains of reads.

    Args:
        level: the level of the comparison.
    """
    yield _title(verdict)
    if verdict.note:
        yield f"  note: {verdict.note}"
    match verdict:
        case Proved(fewer_reads=fewer):
            yield from _law_lines(verdict)
            for less in fewer:
                element = _index(less.parameter_element)
                yield (
                    f"  output {less.output} at {_index(less.element)} reads parameter "
                    f"{less.parameter} at {element} only before, without an observed influence"
                )
        case Differs():
            yield from _witness_lines(verdict)
            yield from _equal_lines(verdict)
        case Undecided():
            weaker = verdict.level
            yield (
                f"  proved at level {weaker}, not at {level}" if weaker else "  no level is proved"
            )
            yield from _equal_lines(verdict)
            if verdict.terms is not None:
                where = "" if verdict.output is None else f" of output {verdict.output}"
                yield f"  smallest subterms{where} that are not proved equal:"
                yield f"    before: {verdict.terms[0]}"
                yield f"    after:  {verdict.terms[1]}"


def _title(verdict: Verdict) -> str:
    if not isinstance(verdict, Proved):
        return str(verdict)
    less = "; the program after reads less" if verdict.fewer_reads else ""
    counts = sorted(verdict.laws.items(), key=lambda law: -law[1])
    shown = [f"{name} ({count:,})" for name, count in counts[:MAX_LAWS]]
    rest = len(counts) - MAX_LAWS
    more = [counted_noun(rest, "more law")] if rest > 0 else []
    laws = f" by {', '.join([*shown, *more])}" if shown else ""
    return f"{verdict.word}{laws}: proved at level {verdict.level}{less}"


def _law_lines(verdict: Proved) -> Iterator[str]:
    """Yield the laws of a proof that are not exact."""
    if verdict.level != "values":
        return
    if not verdict.laws:
        yield "  no law was used that is inexact for floats"
        return
    yield "  with laws that hold only for real numbers, or by definition:"
    width = max(map(len, verdict.laws))
    for name, count in sorted(verdict.laws.items(), key=lambda law: -law[1]):
        yield f"    {name:<{width}}  {count:,} {'use' if count == 1 else 'uses'}"


def _equal_lines(verdict: Differs | Undecided) -> Iterator[str]:
    if verdict.equal_outputs:
        yield f"  equal formulas: {_outputs_text(verdict.equal_outputs)}"


def _outputs_text(numbers: Sequence[int]) -> str:
    """Return numbers of outputs as text, such as ``outputs 0-3, 7``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = [f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    return f"output{'s' if len(numbers) > 1 else ''} {', '.join(texts)}"


def _witness_lines(verdict: Differs) -> Iterator[str]:
    if not verdict.before:
        return
    yield f"  value: {verdict.before} before, {verdict.after} after"
    if verdict.parameter is None:
        return
    reads = _element_list(verdict.reads_before), _element_list(verdict.reads_after)
    limited = "" if verdict.reads_are_complete else ", as far as they were followed"
    yield f"  reads of parameter {verdict.parameter}{limited}: {reads[0]} before, {reads[1]} after"
    no_chain = "no chain of reads" + " was followed" * (not verdict.reads_are_complete)
    for word, chain in (("before", verdict.chain_before), ("after", verdict.chain_after)):
        yield f"  {word + ':':<7} {' <- '.join(chain) or no_chain}"


def _element_list(elements: Sequence[ElementIndex]) -> str:
    shown = " ".join(map(_index, elements[:MAX_ELEMENTS]))
    more = len(elements) - MAX_ELEMENTS
    return (shown or "none") + (f" and {more} more" if more > 0 else "")


def _index(element: ElementIndex) -> str:
    return f"[{','.join(map(str, element))}]"


def verdict_record(verdict: Verdict) -> dict[str, Any]:
    """Return the JSON keys of a verdict."""
    record: dict[str, Any] = {
        "verdict": "unknown",
        "word": verdict.word,
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
            "reads_are_complete": verdict.reads_are_complete,
            "chains": [list(verdict.chain_before), list(verdict.chain_after)],
        }
    totals = (
        [each.total.read.number for each in moved],
        [each.total.needed.number for each in moved],
        [each.total.written.number for each in moved],
    )
    if not isinstance(verdict, Proved):
        record["equal_outputs"] = list(verdict.equal_outputs)
    read, needed, written = (total or [None, None] for total in totals)
    record |= {"bytes_read": read, "bytes_loaded": read, "bytes_needed": needed}
    record["bytes_written"] = written
    record["schema_version"] = SCHEMA_VERSION
    return record


def traffic_line(before: Traffic, after: Traffic) -> str:
    """Return the bytes that two programs move."""
    texts = [
        f"{each.total.read} read{_needed_text(each)}, {each.total.written} written"
        for each in (before, after)
    ]
    return f"bytes: {texts[0]} before; {texts[1]} after"


def _needed_text(moved: Traffic) -> str:
    """Return how many of the loaded bytes are needed, if a mask hides some."""
    total = moved.total
    return "" if total.needed == total.read else f" ({total.needed} of them needed under masks)"


# ---------------------------------------------------------------- passes


def pass_record(result: PassResult) -> dict[str, Any]:
    """Return the JSON object of a changed pair of dumps."""
    assert result.verdict is not None
    return {
        "module": result.module,
        "pass": result.pass_name,
        "kernel": None,
        "before": result.before.path.name,
        "after": result.after.path.name,
        "invalid_between": [dump.path.name for dump in result.skipped],
        "missing_between": [list(run) for run in result.missing],
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
            return verdict.word
        case Undecided(level=level):
            return "undecided" if level is None else f"{level} only"


def pass_table(results: Sequence[PassResult]) -> Iterator[str]:
    """Yield a row for each pass that changed a module, in the order of their first change."""
    rows: dict[str, PassRow] = {}
    for result in results:
        row = rows.setdefault(result.pass_name, PassRow(0, Counter(), 0.0))
        row.runs += 1
        row.seconds += result.seconds
        if result.verdict is not None:
            row.outcomes[outcome(result.verdict)] += 1
    changed = [each for each in rows.items() if each[1].changed]
    headings = list(dict.fromkeys(sorted(name for _, row in changed for name in row.outcomes)))
    if not changed:
        yield f"no pass changed a module: {len(results)} pairs of dumps are equal up to names"
        return
    cells = [["pass", "changed", *headings, "seconds"]]
    for name, row in changed:
        counts = [str(row.outcomes[h] or "") for h in headings]
        cells.append([name, str(row.changed), *counts, f"{row.seconds:.1f}"])
    total = sum([row.outcomes for _, row in changed], Counter[str]())
    seconds = sum(row.seconds for row in rows.values())
    cells.append(["all", str(total.total()), *[str(total[h]) for h in headings], f"{seconds:.1f}"])
    yield from align_columns(cells)


def difference_lines(result: PassResult, level: Level) -> Iterator[str]:
    """Yield the pair that differs, with its dumps and its witness."""
    assert result.verdict is not None
    yield f"{result.module}: the module differs after {result.pass_name}{_spanned_dumps(result)}"
    yield f"  {result.before.path}"
    yield f"  {result.after.path}"
    yield from verdict_lines(result.verdict, level)


def undecided_lines(results: Sequence[PassResult], level: Level) -> Iterator[str]:
    """Yield the undecided pairs with the subterms that are not proved equal."""
    undecided = [each for each in results if isinstance(each.verdict, Undecided)]
    for result in undecided[:MAX_UNDECIDED]:
        assert result.verdict is not None
        yield ""
        yield f"{result.module}: {_passes_text(result)}"
        for line in verdict_lines(result.verdict, level):
            yield f"  {line}"
    more = len(undecided) - MAX_UNDECIDED
    if more > 0:
        pairs = "pair" if more == 1 else "pairs"
        yield f"\n{more} more undecided {pairs}: --format json lists all"


def _passes_text(result: PassResult) -> str:
    """Return the numbers of both dumps, and the passes between them."""
    before, after = result.before, result.after
    first = f"{before.number:04}" if before.number >= 0 else "before_optimizations"
    numbers = f"{first} -> {after.number:04}"
    started = after.pass_name == "pipeline-start"
    if started and before.following:
        passes = f"from {before.following} to the start of {after.pipeline}"
    else:
        passes = after.pass_name
    return f"{numbers}, {passes}{_spanned_dumps(result)}"


def _spanned_dumps(result: PassResult) -> str:
    """Return which dumps between those of a pair are invalid or missing; "" if none is."""
    invalid = [f"{dump.number:04} ({dump.pass_name})" for dump in result.skipped]
    missing = [numbers_text(*run) for run in result.missing]
    faults = [f"invalid: {', '.join(invalid)}"] if invalid else []
    faults += [f"missing: {', '.join(missing)}"] if missing else []
    if not faults:
        return ""
    return f" or an earlier pass: the pair spans several passes (dumps {'; '.join(faults)})"

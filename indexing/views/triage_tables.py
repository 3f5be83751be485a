"""Text and JSON of triaged cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from indexing.equivalence.triage import TriagedCase, TriageGroup
from indexing.views.records import SCHEMA_VERSION
from indexing.views.tables import align_columns

MAX_NAMED: Final = 3
"""Limit on the cases that a row names."""


def triage_lines(groups: Sequence[TriageGroup]) -> Iterator[str]:
    """Yield a row for each group, and the smallest case of each with its witness.

    >>> case = TriagedCase("x.hlo", "rounding", "pass `dce`", "output 0 differs", "ENTRY ..", 3)
    >>> print(*triage_lines([TriageGroup("rounding", "pass `dce`", (case,))]), sep="\\n")
    class     cause       cases  fewest  names
    rounding  pass `dce`      1       3  x.hlo
    <BLANKLINE>
    rounding, pass `dce`: x.hlo: output 0 differs
    """
    cells = [["class", "cause", "cases", "fewest", "names"]]
    for group in groups:
        smallest, count = group.cases[0], len(group.cases)
        names = [case.name for case in group.cases[:MAX_NAMED]]
        names += [f"and {count - MAX_NAMED} more"] if count > MAX_NAMED else []
        fewest = str(smallest.count or "")
        cells.append([group.kind, group.cause, str(count), fewest, ", ".join(names)])
    yield from align_columns(cells, right=[2, 3])
    for group in groups:
        case = group.cases[0]
        if group.kind != "no difference":
            title = f"{group.kind}, {group.cause}" if group.cause else group.kind
            yield ""
            yield f"{title}: {case.name}: {case.detail}"


def case_record(case: TriagedCase) -> dict[str, Any]:
    """Return a case as a value for JSON."""
    return {
        "name": case.name,
        "class": case.kind,
        "cause": case.cause,
        "detail": case.detail,
        "instructions": case.count or None,
        "smallest": case.smallest or None,
        "schema_version": SCHEMA_VERSION,
    }

"""The files of a command: named ones and those in folders, done or to do, and their totals."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from hlo.text.names import counted_noun
from indexing.cli.reporter import Reporter

if TYPE_CHECKING:
    from indexing.cli.journal import FileOutcome, Journal
    from indexing.cli.workers import Workers
    from indexing.views.selection import Condition

MAX_FAILURES: Final = 10  # files that the totals name as text


@dataclass(slots=True)
class Corpus:
    """The files of a run, and what was counted in them.

    Attributes:
        files: the files, those of folders in natural order.
        workers: the processes that answer; None for this process.
        journal: what an earlier run finished; None without ``--resume``.
        has_totals: True if the totals are requested, also as JSON.
        is_folder: True if a folder was given.
    """

    files: Sequence[str]
    workers: Workers | None = None
    journal: Journal | None = None
    has_totals: bool = False
    is_folder: bool = False
    done: int = 0
    resumed: int = 0
    failures: dict[str, Counter[str]] = field(default_factory=dict)
    start: float = field(default_factory=time.monotonic)
    before: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: FileOutcome) -> None:
        """Count a file that is finished."""
        self.done += 1
        if outcome.failed:
            self.failures[outcome.file] = outcome.errors

    def add_fault(self, reporter: Reporter, fault: OSError) -> None:
        """Report and count a file, or a subfolder, of a folder that cannot be read."""
        self.done += 1
        self.failures[fault.filename] = Counter({"error[io]": 1})
        reporter.exception(fault.filename, fault)

    def resume(self, reporter: Reporter, conditions: Sequence[Condition]) -> Sequence[str]:
        """Count the files that are done, and return the others."""
        if self.journal is None:
            return self.files
        pending = []
        for file in self.files:
            outcome = self.journal.take_outcome(file)
            if outcome is None:
                pending.append(file)
                continue
            self.add(outcome)
            self.resumed += 1
            self.before += outcome.counts
            reporter.counts += outcome.counts
            reporter.failed |= outcome.failed
            reporter.has_answer |= outcome.has_answer
            reporter.matched |= {c for c in conditions if repr(c) in outcome.matched}
        if self.resumed:
            reporter.note(
                f"note: {self.resumed} of {counted_noun(len(self.files), 'file')} are done, by the "
                f"journal {self.journal.path}"
            )
        return pending

    def report_totals(self, reporter: Reporter, notation: str) -> None:
        """Print the totals, if there are several files or they are requested."""
        if not (self.has_totals or self.is_folder or self.journal) or not self.done:
            return
        seconds = time.monotonic() - self.start
        for line in self._lines(reporter.counts, seconds):
            reporter.note(line)
        if self.has_totals and notation == "json":
            reporter.print(json.dumps(self._record(reporter.counts, seconds)))

    def _lines(self, counts: Counter[str], seconds: float) -> Iterator[str]:
        parts = [
            counted_noun(self.done, "file") + (f" ({self.resumed} resumed)" * (self.resumed > 0))
        ]
        parts.append(f"{len(self.failures)} failed")
        parts += [counted_noun(counts["instructions"], "instruction")]
        if maps := counts["exact"] + counts["may"]:
            parts.append(f"{counted_noun(maps, 'map')} ({counts['may']} may)")
        parts += [f"{counts[key]} {key}" for key in ("unknown", *OUTCOMES) if counts[key]]
        new = counts["instructions"] - self.before["instructions"]
        rate = f", {new / max(seconds, 1e-3):.0f} instructions/s" if new else ""
        yield f"total: {', '.join(parts)}; {seconds:.1f} s{rate}"
        if errors := sum(self.failures.values(), Counter[str]()):
            yield f"errors: {', '.join(f'{n} {code}' for code, n in _by_code(errors).items())}"
        for file, codes in list(self.failures.items())[:MAX_FAILURES]:
            yield f"failed: {file}" + (f": {', '.join(codes)}" if codes else "")
        if len(self.failures) > MAX_FAILURES:
            yield f"failed: and {len(self.failures) - MAX_FAILURES} others"

    def _record(self, counts: Counter[str], seconds: float) -> Mapping[str, object]:
        from indexing.views.records import SCHEMA_VERSION

        errors = sum(self.failures.values(), Counter[str]())
        totals = {
            "files": self.done,
            "resumed": self.resumed,
            "failed": len(self.failures),
            "counts": {k: n for k, n in counts.items() if not k.startswith(("error[", "--"))},
            "errors": _by_code(errors),
            "failures": [
                {"file": file, "errors": _by_code(codes)} for file, codes in self.failures.items()
            ],
            "seconds": round(seconds, 3),
        }
        return {"totals": totals, "schema_version": SCHEMA_VERSION}


OUTCOMES: Final = ("ok", "skipped", "wrong")
"""Outcomes of ``validate``."""


def _by_code(errors: Counter[str]) -> dict[str, int]:
    """Return the errors by code alone.

    >>> _by_code(Counter({"error[io]": 2}))
    {'io': 2}
    """
    return {key.removeprefix("error[").removesuffix("]"): count for key, count in errors.items()}

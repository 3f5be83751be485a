"""The journal of ``--resume``: what a run finished, so that the next run continues after it.

The first line is the question; each further line is a `FileOutcome`, appended after the results of
the file are written.  A line that a killed run left unfinished is dropped.  A file is done if its
contents are those of its digest, and the run did not fail without results.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

VERSION: Final = 1
RETRIED: Final = frozenset({"error[internal]", "error[io]", "error[memory]", "error[worker]"})
"""Errors that another run need not have: their files give no results, and are tried again."""


class JournalError(Exception):
    """The journal is in use, belongs to another question, or is no journal."""


@dataclass(slots=True)
class FileOutcome:
    """The outcome of one file.

    Attributes:
        file: the name of the file.
        sha256: the digest of its contents; "" if it has none.
        failed: True after an error.
        lines: the number of lines that were printed.
        counts: what was counted, and the errors by code.
        matched: the conditions of the question that the file meets.
        has_answer: True if a selected instruction has an answer.
        end: the size of the output file after the lines; None for standard output.
    """

    file: str
    sha256: str = ""
    failed: bool = False
    lines: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    matched: list[str] = field(default_factory=list)
    has_answer: bool = False
    end: int | None = None

    @property
    def errors(self) -> Counter[str]:
        """The number of errors of each code."""
        return Counter({k: n for k, n in self.counts.items() if k.startswith("error[")})

    @property
    def is_done(self) -> bool:
        """False if the next run tries the file again."""
        is_kept = self.lines > 0 or not self.failed
        return bool(self.sha256) and is_kept and RETRIED.isdisjoint(self.counts)


class Journal:
    """The journal in a file, which is locked while it is open.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     module, path = os.path.join(folder, "m.hlo"), os.path.join(folder, "journal")
    ...     print("ENTRY e { ROOT p = f32[] parameter(0) }", file=open(module, "w"))
    ...     first = Journal(path, {"command": "check"})
    ...     first.add(FileOutcome(module, digest(module), lines=1))
    ...     first.close()
    ...     second = Journal(path, {"command": "check"})
    ...     print(second.taken(module).lines, second.taken(module))
    ...     second.close()
    1 None
    """

    def __init__(self, path: str, question: Mapping[str, str]) -> None:
        """Open or create a journal.

        Args:
            path: the file.
            question: what decides the results, apart from the files; the version is added.
        Raises:
            JournalError: see the class.
            OSError: the file cannot be opened or written.
        """
        self.path = path
        self.end = 0
        self._done: dict[str, list[FileOutcome]] = defaultdict(list)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            self._lock()
            self._read({"version": _version(), **question})
        except BaseException:
            self.close()
            raise

    def _lock(self) -> None:
        """Lock the file for this process; its workers, which may outlive it, do not inherit it."""
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            raise JournalError(f"{self.path} is in use by another run") from None

    def _read(self, question: Mapping[str, str]) -> None:
        """Read the outcomes, and drop an unfinished line."""
        # closing another descriptor of the file would unlock it
        data = b"".join(iter(lambda: os.read(self._descriptor, 1 << 20), b""))
        complete = data[: data.rfind(b"\n") + 1]
        lines = complete.splitlines()
        if not lines:
            if data and not data.startswith(b'{"journal": '[: len(data)]):
                raise JournalError(f"{self.path} is no journal of --resume: name another file")
            os.ftruncate(self._descriptor, 0)
            self._append({"journal": VERSION, "question": dict(question)})
            return
        try:
            head, *outcomes = map(json.loads, lines)
            previous = head["question"] if head["journal"] == VERSION else None
            for outcome in outcomes:
                self._read_outcome(FileOutcome(**outcome))
        except (ValueError, TypeError, KeyError):
            message = f"{self.path} is no journal of --resume: name another file"
            raise JournalError(message) from None
        if previous != question:
            raise JournalError(_difference(self.path, previous or {}, question))
        os.ftruncate(self._descriptor, len(complete))

    def _read_outcome(self, outcome: FileOutcome) -> None:
        outcome.counts = Counter(outcome.counts)
        self.end = self.end if outcome.end is None else outcome.end
        if outcome.is_done:
            self._done[outcome.file].append(outcome)

    def taken(self, file: str) -> FileOutcome | None:
        """Return the outcome of a file that is done, and remove it; None for another file."""
        if outcomes := self._done.get(file):
            current = digest(file)
            for outcome in outcomes:
                if outcome.sha256 == current:
                    outcomes.remove(outcome)
                    return outcome
        return None

    def add(self, outcome: FileOutcome) -> None:
        """Append the outcome of a file, after its results are written."""
        self._append({each.name: getattr(outcome, each.name) for each in fields(outcome)})

    def _append(self, record: Mapping[str, Any]) -> None:
        line = json.dumps(record).encode() + b"\n"
        if os.write(self._descriptor, line) != len(line):
            raise OSError(f"the journal {self.path} is cut off: the disk may be full")

    def close(self) -> None:
        """Close the file, which unlocks it."""
        os.close(self._descriptor)


def _version() -> str:
    try:
        return version("hlo-indexing")
    except PackageNotFoundError:  # run from a checkout
        return "unknown"


def digest(file: str) -> str:
    """Return the SHA-256 of a regular file; "" for others, and if it cannot be read."""
    if not os.path.isfile(file):
        return ""
    try:
        with open(file, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""


def _difference(path: str, old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """Return the error for the journal of another question.

    >>> _difference("j", {"version": "1", "--all": "True"}, {"version": "1", "--all": "False"})
    'j is the journal of another run: --all is False, and was True: name another file'
    """
    changed = [
        f"{key} is {new.get(key, 'not given')}, and was {old.get(key, 'not given')}"
        for key in {**old, **new}
        if old.get(key) != new.get(key)
    ]
    return f"{path} is the journal of another run: {'; '.join(changed)}: name another file"

"""The journal of ``--resume``: a list of the files that are done, which the next run skips.

The first line is the question; each further line is the `FileOutcome` of a file that is done,
appended after the results of the file are written.  A line that a killed run left unfinished is
dropped.  A file is done while its contents are those of its digest.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from indexing.cli.failures import OutputError
from indexing.cli.versions import version_of

VERSION: Final = 2
_LOCKED_BYTE: Final = (1 << 31) - 2
RETRIED: Final = frozenset({"error[internal]", "error[io]", "error[memory]", "error[worker]"})
"""Errors that another run need not have: their files give no results, and are tried again."""


class JournalError(Exception):
    """The journal is in use, belongs to another question, or is no journal."""


@dataclass(slots=True)
class FileOutcome:
    """The outcome of a file that is done.

    Attributes:
        file: the name of the file.
        sha256: the digest of its contents; "" if it has none.
        failed: True after an error.
        counts: what was counted, and the errors by code.
        matched: the conditions of the question that the file meets.
        has_answer: True if a selected instruction has an answer.
        end: the size of the output file after the lines; None for standard output.
    """

    file: str
    sha256: str = ""
    failed: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    matched: list[str] = field(default_factory=list)
    has_answer: bool = False
    end: int | None = None

    @classmethod
    def of(cls, record: object) -> FileOutcome:
        """Return the outcome in a value of JSON.

        Raises:
            ValueError: the record is no outcome.

        >>> FileOutcome.of({"file": "m.hlo", "sha256": 7})
        Traceback (most recent call last):
            ...
        ValueError: `sha256` is 7, expected str
        """
        if not isinstance(record, dict):
            raise ValueError("expected an object")
        for key, value in record.items():
            if key not in _TYPES:
                raise ValueError(f"unknown key {key!r}")
            if type(value) not in _TYPES[key]:
                names = " or ".join(each.__name__ for each in _TYPES[key])
                raise ValueError(f"`{key}` is {value!r}, expected {names}")
        outcome = cls(**{"file": "", **record})
        if not (outcome.file and outcome.sha256) or (outcome.end or 0) < 0:
            raise ValueError("`file` or `sha256` is empty or missing, or `end` is negative")
        if any(type(count) is not int for count in outcome.counts.values()):
            raise ValueError(f"`counts` is {dict(outcome.counts)!r}, expected numbers")
        if any(type(each) is not str for each in outcome.matched):
            raise ValueError(f"`matched` is {outcome.matched!r}, expected texts")
        outcome.counts = Counter(outcome.counts)
        return outcome

    @property
    def errors(self) -> Counter[str]:
        """The number of errors of each code."""
        return Counter({k: n for k, n in self.counts.items() if k.startswith("error[")})


_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "file": (str,),
    "sha256": (str,),
    "failed": (bool,),
    "counts": (dict,),
    "matched": (list,),
    "has_answer": (bool,),
    "end": (int, type(None)),
}
"""The types of the fields of a `FileOutcome` in JSON."""


class Journal:
    """The journal in a file, which is locked while it is open.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     module, path = os.path.join(folder, "m.hlo"), os.path.join(folder, "journal")
    ...     print("ENTRY e { ROOT p = f32[] parameter(0) }", file=open(module, "w"))
    ...     first = Journal(path, {"command": "check"})
    ...     first.add(FileOutcome(module, digest(module), end=7))
    ...     first.close()
    ...     second = Journal(path, {"command": "check"})
    ...     print(second.take_outcome(module).end, second.take_outcome(module))
    ...     second.close()
    7 None
    """

    def __init__(self, path: str, question: Mapping[str, str]) -> None:
        """Open or create a journal.

        Args:
            path: the file.
            question: what decides the results, apart from the files; the version is added.
        Raises:
            JournalError: see the class.
            OSError: the file cannot be opened or read.
            OutputError: the file cannot be written.
        """
        self.path = path
        self.end = 0
        self._done: dict[str, list[FileOutcome]] = defaultdict(list)
        self._file = open(path, "a+b", buffering=0)  # noqa: SIM115 - until `close`
        try:
            if not lock_file(self._file.fileno()):
                raise JournalError(f"{path} is in use by another run")
            self._read_outcomes({"version": version_of("hlo-indexing"), **question})
        except BaseException:
            self.close()
            raise

    def _read_outcomes(self, question: Mapping[str, str]) -> None:
        """Read the outcomes, and drop an unfinished line."""
        self._file.seek(0)  # closing another descriptor of the file would unlock it
        data = self._file.readall()
        complete = data[: data.rfind(b"\n") + 1]
        lines = complete.splitlines()
        if not lines:
            if data and not data.startswith(b'{"journal": '[: len(data)]):
                raise self._no_journal(1, "expected an object with the key `journal`")
            self._file.truncate(0)
            self._append({"journal": VERSION, "question": dict(question)})
            return
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
                if number == 1 and (previous := _question(record)) != question:
                    raise JournalError(_difference(self.path, previous, question))
                if number > 1:
                    outcome = FileOutcome.of(record)
                    self.end = self.end if outcome.end is None else outcome.end
                    self._done[outcome.file].append(outcome)
            except (ValueError, RecursionError) as error:
                raise self._no_journal(number, str(error)) from None
        self._file.truncate(len(complete))

    def _no_journal(self, line: int, reason: str) -> JournalError:
        return JournalError(
            f"{self.path} is not a journal of --resume: line {line}: {reason}: name another file"
        )

    def take_outcome(self, file: str) -> FileOutcome | None:
        """Return the outcome of a file that is done, and remove it; None for another file."""
        if outcomes := self._done.get(file):
            current = digest(file)
            for outcome in outcomes:
                if outcome.sha256 == current:
                    outcomes.remove(outcome)
                    return outcome
        return None

    def add(self, outcome: FileOutcome) -> None:
        """Append the outcome of a file that is done, after its results are written."""
        self._append({each.name: getattr(outcome, each.name) for each in fields(outcome)})

    def _append(self, record: Mapping[str, Any]) -> None:
        line = json.dumps(record).encode() + b"\n"
        try:
            written = os.write(self._file.fileno(), line)
        except OSError as error:
            raise OutputError(self.path, error.strerror or str(error)) from None
        if written != len(line):
            raise OutputError(self.path, "the journal is cut off: the disk may be full")

    def close(self) -> None:
        """Close the file, which unlocks it."""
        self._file.close()


def _question(record: object) -> Mapping[str, str]:
    """Return the question in the first line; empty for another version of the format.

    Raises:
        ValueError: the line is not the first of a journal.
    """
    if not isinstance(record, dict) or "journal" not in record:
        raise ValueError("expected an object with the key `journal`")
    question = record.get("question")
    if type(record["journal"]) is not int or record["journal"] != VERSION:
        return {}
    if not isinstance(question, dict) or any(type(each) is not str for each in question.values()):
        raise ValueError("expected an object of texts as `question`")
    return question


def lock_file(descriptor: int) -> bool:
    """Lock a file for this process, until it is closed; return False if another one has it.

    Worker processes, which may outlive this one, do not inherit the lock.
    """
    try:
        if hasattr(os, "lockf"):
            os.lseek(descriptor, 0, os.SEEK_SET)
            os.lockf(descriptor, os.F_TLOCK, 0)
        else:  # Windows, where others cannot read a locked byte: one behind the contents
            import msvcrt

            os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except (BlockingIOError, PermissionError):
        return False
    return True


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

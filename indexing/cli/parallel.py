"""The answers of ``maps`` from several processes, printed in the order of one.

A file is cut into parts with about as many instructions each. Every process reads the files whose
parts it is given, so that nothing but names goes there and nothing but text comes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from indexing.cli.printing import Request, answer_all, report_missing
from indexing.cli.progress import Bar
from indexing.cli.reporter import Reporter

if TYPE_CHECKING:
    from hlo.modules.module import Computation, Module

PART_BYTES: Final = 1 << 19  # of text, that are worth a part of their own


@dataclass(frozen=True, slots=True)
class Part:
    """Part `number` of `count` of a file, and what is asked about it."""

    file: str
    number: int
    count: int
    request: Request
    coloured: bool
    debug: bool


@dataclass(slots=True)
class Record(Reporter):
    """A reporter that keeps what it is told: for each result or error, in which stream it goes."""

    coloured: bool = False
    debug: bool = False
    failed: bool = False
    reported: set[str] = field(default_factory=set)
    said: list[tuple[bool, str]] = field(default_factory=list)  # (is an error, text)
    proved: Counter[str] = field(default_factory=Counter)

    def print(self, line: str) -> None:
        self.said.append((False, line))

    def error(self, message: str) -> None:
        self.failed = True
        self.said.append((True, message))


def spread(
    reporter: Reporter, files: Sequence[str], request: Request, jobs: int, bar: Bar
) -> Counter[str]:
    """Print the answers for `files`, which so many processes find; what was proved on the way.

    What several parts of a file have in common each of them proves.
    """
    proved: Counter[str] = Counter()
    parts = [p for file in files for p in parts_of(file, jobs, request, reporter)]
    total = len(parts)
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        try:
            # standard input is one, and this process has it
            found = [None if p.file == "-" else pool.submit(answered, p) for p in parts]
            for done, (part, future) in enumerate(zip(parts, found, strict=True)):
                bar.at(part.file, done, total)
                record = answered(part) if future is None else future.result()
                proved += record.proved
                bar.make_way()
                for is_error, text in record.said:
                    (reporter.error if is_error else reporter.print)(text)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return proved


def parts_of(file: str, jobs: int, request: Request, reporter: Reporter) -> Iterator[Part]:
    """Small files are one part, large ones several: no process waits long at the end."""
    size = Path(file).stat().st_size if Path(file).is_file() else 0
    count = max(1, min(4 * jobs, size // PART_BYTES))
    for number in range(count):
        yield Part(file, number, count, request, reporter.coloured, reporter.debug)


def answered(part: Part) -> Record:
    """What there is to say about one part."""
    from indexing.maps.certificate import proofs

    before = proofs()
    record, unseen = Record(coloured=part.coloured, debug=part.debug), Bar()
    for module in _modules(part, record):
        cut = slices(list(module.computations.values()), part.count)[part.number]
        answer_all(record, module, cut, part.request, unseen)
        if part.number == part.count - 1:
            report_missing(record, module, part.request.names)
    record.proved = proofs() - before
    return record


def _modules(part: Part, record: Record) -> list[Module]:
    try:
        return _loaded(part.file)
    except Exception:  # told by the first part, in the words of every command
        return list(record.modules([part.file])) if part.number == 0 else []


@lru_cache(maxsize=1)
def _loaded(file: str) -> list[Module]:
    from hlo import load_all

    return load_all(file)


def slices(computations: Sequence[Computation], count: int) -> list[list[Computation]]:
    """`computations` in order, in `count` lists with about as many instructions each."""
    found: list[list[Computation]] = [[] for _ in range(count)]
    total, before = sum(map(len, computations)), 0
    for computation in computations:
        found[min(count - 1, before * count // max(total, 1))].append(computation)
        before += len(computation)
    return found

"""``maps --jobs``: answers computed by several worker processes, printed in the usual order.

A file is divided into shards with about the same number of instructions.  Each worker process loads
the files of its shards itself: it receives only names and returns only text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from indexing.cli.printing import Request, answer_all, note_matches
from indexing.cli.progress import Bar
from indexing.cli.reporter import Reporter, load_modules
from indexing.cli.workers import WorkerDeath, results

if TYPE_CHECKING:
    from hlo.modules.module import Computation, Module
    from indexing.maps.indexing_map import IndexingMap
    from indexing.views.selection import Condition

MessageKind: TypeAlias = Literal["print", "note", "error"]
_loaded = lru_cache(maxsize=1)(load_modules)
SHARD_BYTES: Final = 1 << 17  # bytes of HLO text per shard


@dataclass(frozen=True, slots=True)
class Shard:
    """Shard number `index` of the `count` shards of a file, with the request."""

    file: str
    index: int
    count: int
    request: Request
    width: int | None
    colours: str
    debug: bool
    max_bytes: int | None


@dataclass(slots=True)
class BufferedReporter(Reporter):
    """A reporter that stores results and errors, in order, for printing by the parent process."""

    width: int | None = None
    colours: str = "auto"
    debug: bool = False
    max_bytes: int | None = None
    failed: bool = False
    has_answer: bool = False
    reported: set[str] = field(default_factory=set)
    matched: set[Condition] = field(default_factory=set)
    missed: dict[Condition, tuple[str, str]] = field(default_factory=dict)
    undecided: dict[IndexingMap, str] = field(default_factory=dict)
    unmarked: Counter[str] = field(default_factory=Counter)
    messages: list[tuple[MessageKind, tuple[str, ...]]] = field(default_factory=list)
    proved: Counter[str] = field(default_factory=Counter)

    def print(self, line: str) -> None:
        self.messages.append(("print", (line,)))

    def note(self, message: str) -> None:
        self.messages.append(("note", (message,)))

    def error(self, *lines: str) -> None:
        self.failed = True
        self.messages.append(("error", lines))


def answer_in_parallel(
    reporter: Reporter, files: Sequence[str], request: Request, jobs: int, bar: Bar
) -> Counter[str]:
    """Print the answers for `files`, computed by `jobs` processes; return the number of proofs.

    A proof needed by several shards of a file is counted for each shard.
    """
    proved: Counter[str] = Counter()
    shards = [s for file in files for s in shards_of(file, jobs, request, reporter)]
    sent = [shard for shard in shards if shard.file != "-"]
    with closing(results(answer_shard, sent, jobs)) as received:
        for done, shard in enumerate(shards):
            bar.update(shard.file, done, len(shards))
            # only this process can read standard input
            record = answer_shard(shard) if shard.file == "-" else next(received)
            bar.hide()
            if isinstance(record, WorkerDeath):
                reporter.error(*_death_message(shard, record))
                continue
            proved += record.proved
            reporter.matched |= record.matched
            for condition, missed in record.missed.items():
                if not any(reporter.missed.get(condition, ())[1:]):
                    reporter.missed[condition] = missed
            reporter.unmarked += record.unmarked
            reporter.has_answer |= record.has_answer
            for kind, lines in record.messages:
                getattr(reporter, kind)(*lines)
    return proved


def _death_message(shard: Shard, death: WorkerDeath) -> list[str]:
    part = f" (part {shard.index + 1} of {shard.count})" if shard.count > 1 else ""
    return [
        f"error[worker]: {shard.file}{part}: no answer: the worker process {death}",
        "  = help: if memory ran out, use fewer --jobs",
    ]


def shards_of(file: str, jobs: int, request: Request, reporter: Reporter) -> Iterator[Shard]:
    """Yield one shard for a small file and several for a large one, to balance the load.

    A file whose instructions are ordered or limited is one shard.
    """
    is_whole = request.selection.order is not None or request.selection.limit is not None
    size = Path(file).stat().st_size if Path(file).is_file() and not is_whole else 0
    count = max(1, min(8 * jobs, size // SHARD_BYTES))
    for index in range(count):
        yield Shard(
            file,
            index,
            count,
            request,
            reporter.width,
            reporter.colours,
            reporter.debug,
            reporter.max_bytes,
        )


def answer_shard(shard: Shard) -> BufferedReporter:
    """Return the results and errors of one shard."""
    from indexing.maps.certificate import proofs, undecided

    before = proofs()
    record = BufferedReporter(shard.width, shard.colours, shard.debug, shard.max_bytes)
    hidden_bar = Bar()
    for module in _modules(shard, record):
        every = list(module.computations.values())
        if shard.request.query.to_parameters:  # one sweep answers a computation
            computations, share = slices(every, shard.count)[shard.index], None
        else:
            share = share_of(every, shard.index, shard.count)
            computations = [each for each in every if share.get(each)]
        with undecided() as record.undecided:
            answer_all(record, module, computations, shard.request, hidden_bar, share)
        if shard.index == shard.count - 1:
            request = shard.request
            note_matches(record, module, request.selection.conditions, request.is_one_file)
    record.proved = proofs() - before
    return record


def _modules(shard: Shard, record: BufferedReporter) -> list[Module]:
    try:
        return _loaded(shard.file, shard.max_bytes, _is_lazy(shard))
    except Exception:  # the first shard loads again and reports the error
        if shard.index > 0:
            return []
        return list(record.modules([shard.file], lazy=_is_lazy(shard)))


def _is_lazy(shard: Shard) -> bool:
    return shard.count > 1 or shard.request.selection.is_partial


def slices(computations: Sequence[Computation], count: int) -> list[list[Computation]]:
    """Divide `computations` into `count` lists, in order, with balanced instruction counts."""
    lists: list[list[Computation]] = [[] for _ in range(count)]
    total, before = sum(map(len, computations)), 0
    for computation in computations:
        lists[min(count - 1, before * count // max(total, 1))].append(computation)
        before += len(computation)
    return lists


def share_of(
    computations: Sequence[Computation], index: int, count: int
) -> dict[Computation, range]:
    """Divide all instructions into `count` shares, in order; return the positions in share `index`.

    A computation may belong to several shares: an ENTRY can take longer than all others together.
    """
    total, before = sum(map(len, computations)), 0
    start, stop = index * total // count, (index + 1) * total // count
    share: dict[Computation, range] = {}
    for each in computations:
        share[each] = range(max(start - before, 0), min(stop - before, len(each)))
        before += len(each)
    return share

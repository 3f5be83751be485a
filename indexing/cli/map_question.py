"""The question of ``maps`` about a file, which several tasks can share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from indexing.cli.all_answers import answer_all
from indexing.cli.printing import Request
from indexing.cli.selected import note_given, note_matches

if TYPE_CHECKING:
    from hlo.modules.module import Computation
    from indexing.cli.progress import Bar
    from indexing.cli.reporter import Reporter
    from indexing.cli.tasks import Task
    from indexing.views.selection import Condition

PART_BYTES: Final = 1 << 17  # bytes of HLO text per task


@dataclass(frozen=True, slots=True)
class MapQuestion:
    """The maps of the instructions that a request selects.

    A file is divided into parts with about the same number of instructions.
    """

    request: Request

    @property
    def conditions(self) -> Sequence[Condition]:
        """The conditions of the request."""
        return self.request.conditions

    def parts(self, file: str, jobs: int) -> int:
        """Return 1 for a small file and more for a large one, to balance the load.

        A file whose instructions are ordered or limited has one part.
        """
        selection = self.request.selection
        if selection.order is not None or selection.limit is not None or not Path(file).is_file():
            return 1
        return max(1, min(8 * jobs, Path(file).stat().st_size // PART_BYTES))

    def answer(self, reporter: Reporter, task: Task, bar: Bar) -> None:
        """Print the maps of one part of a file."""
        from indexing.maps.certificate import proofs, record_undecided

        request, before = self.request, proofs()
        for module in task.modules(reporter, lazy=request.selection.is_partial):
            every = list(module.computations.values())
            if task.count == 1:
                computations, share = every, None
            elif request.query.to_parameters:  # one sweep answers a computation
                computations, share = slices(every, task.count)[task.index], None
            else:
                share = share_of(every, task.index, task.count)
                computations = [each for each in every if share.get(each)]
            with record_undecided() as reporter.undecided:
                answer_all(reporter, module, computations, request, bar, share)
            if task.is_last:
                note_matches(reporter, module, request.selection.conditions, request.is_one_file)
                note_given(reporter, module, request.selection, request.conditions)
        reporter.counts += proofs() - before


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

"""Verdicts on mutants of the kernels of dumps, against executions of the mutants.

    python -m benchmarks.kernel_mutants FOLDER [--mutants N] [--seed S] [--time-limit SECONDS]

changes the first stage of each kernel below FOLDER in N places, chosen by the seed: maps, ops and
their operands, constants, ranges, barriers, clamps. An interpreter that the tests own executes each
mutant on five draws of operands, and a mutant that is told to be at fault also on the draws that
`check_kernel` tries. A mutant that is at fault, or leaves other values than the instruction, has an
effect. A row for each kind of change has the mutants with effect that are told, undecided and
proved, and those without effect that are told (false alarms), undecided and proved. Then follow
the time of verdicts, the number of mutants that the interpreter does not execute, about which
nothing is known, and the reasons of undecided mutants with effect. The exit status is 1 if a mutant
with effect is proved or one without effect is told.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Final

import indexing
from indexing.kernels.dumps import kernels_of
from indexing.kernels.kernel import Kernel
from indexing.kernels.verdicts import KernelDiffers, KernelProved, KernelVerdict
from indexing.views.tables import align_columns
from tests.kernels.mutants import HloError, Judge, Mutant, NotExecutable, mutants_of, with_text

WORDS: Final = ("told", "undecided", "proved")
COLUMNS: Final = ("KIND", *[f"{w}, effect" for w in WORDS], *[f"{w}, none" for w in WORDS])


@dataclass(frozen=True, slots=True)
class Judged:
    """A mutant with what executions show, and the verdict.

    Attributes:
        has_effect: True if an execution shows a fault or other values; None if none is possible.
        seconds: the time of the verdict.
    """

    kernel: Kernel
    mutant: Mutant
    has_effect: bool | None
    verdict: KernelVerdict
    seconds: float

    @property
    def word(self) -> str:
        """``told``, ``undecided`` or ``proved``."""
        return WORDS[
            0 if isinstance(self.verdict, KernelDiffers) else
            2 if isinstance(self.verdict, KernelProved) else 1
        ]  # fmt: skip

    @property
    def is_wrong(self) -> bool:
        """True if the executions contradict the verdict."""
        return (self.has_effect, self.word) in ((True, "proved"), (False, "told"))


def judged_mutants(kernel: Kernel, count: int, seed: int, limit: float) -> Iterator[Judged]:
    """Yield at most `count` mutants of a kernel, until a limit of seconds is exceeded."""
    if kernel.fusion is None:
        return
    judge, start = Judge(kernel), perf_counter()
    try:
        original = judge.original(judge.seeds)
    except NotExecutable as error:
        print(f"{kernel.path}: {error}", file=sys.stderr)
        return
    if original.name == "values":
        print(f"{kernel.path}: executions differ without a change", file=sys.stderr)
        return
    for mutant in mutants_of(kernel.stages[0].text, count, seed):
        if perf_counter() - start > limit:
            print(f"{kernel.path}: more than {limit:g} seconds", file=sys.stderr)
            return
        changed = with_text(kernel, mutant.text)
        before = perf_counter()
        try:
            verdict = indexing.check_kernel(changed)
        except HloError:
            continue
        seconds = perf_counter() - before
        try:
            has_effect: bool | None = judge.confirm(changed, verdict).is_real
        except NotExecutable:
            has_effect = None
        yield Judged(kernel, mutant, has_effect, verdict, seconds)


def table(every: Sequence[Judged]) -> Iterator[str]:
    """Yield a row for each kind of change, and their sum."""
    counts: dict[str, Counter[tuple[bool | None, str]]] = {}
    for each in every:
        for kind in (each.mutant.kind, "all"):
            counts.setdefault(kind, Counter())[each.has_effect, each.word] += 1
    kinds = [*sorted(counts.keys() - {"all"}), "all"] if counts else []
    yield from align_columns([COLUMNS, *[
        (kind, *[str(counts[kind][effect, word]) for effect in (True, False) for word in WORDS])
        for kind in kinds
    ]])  # fmt: skip


def summary(every: Sequence[Judged]) -> Iterator[str]:
    """Yield the share that is told, the reasons of the others, and the time."""
    real = [each for each in every if each.has_effect]
    told = [each for each in real if each.word == "told"]
    if not real:
        yield "no mutant with effect"
        return
    yield f"{len(told)} of {len(real)} with effect are told: {len(told) / len(real):.1%}"
    pointed = [each for each in told if has_witness(each.verdict)]
    yield f"{len(pointed)} of {len(told)} that are told have a point or an element"
    seconds = sorted([each.seconds for each in every])
    yield f"seconds for a verdict: median {median(seconds):.3f}, largest {seconds[-1]:.2f}"
    unknown = sum(each.has_effect is None for each in every)
    yield f"{unknown} mutants are not executed"
    reasons = Counter([str(e.verdict) for e in real if e.word == "undecided"])
    for reason, count in reasons.most_common():
        yield f"{count} undecided: {reason.removeprefix('undecided: ')[:150]}"
    for each in every:
        if each.is_wrong:
            change = f"{each.mutant.kind}, {each.mutant.what}"
            yield f"wrong: {each.kernel.path}: {change}: {each.verdict}"


def has_witness(verdict: KernelVerdict) -> bool:
    """Return True if a verdict has a point of the kernel or an element."""
    assert isinstance(verdict, KernelDiffers)
    places = verdict.block, verdict.thread, verdict.iteration
    return any(places) or verdict.element is not None


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and the summary."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--mutants", type=int, default=20, help="mutants of each kernel")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--time-limit", type=float, default=60, help="seconds for each kernel")
    options = parser.parse_args(arguments)
    every: list[Judged] = []
    for kernel in kernels_of(options.folder):
        every += judged_mutants(kernel, options.mutants, options.seed, options.time_limit)
    print(*table(every), sep="\n")
    print(*summary(every), sep="\n")
    return int(any(each.is_wrong for each in every))


if __name__ == "__main__":
    raise SystemExit(main())

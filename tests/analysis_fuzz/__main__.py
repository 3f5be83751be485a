"""Fuzz test of the analysis: every question about a mutant has an answer, or an `HloError`.

    python -m tests.analysis_fuzz [--count 100000] [--seed 0] [--questions 4] [--jobs N]

asks about mutants of the modules in `tests.analysis_fuzz.bases`, in worker processes with limits on
time and memory. A failure is printed with its seed and the shrunk module.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.analysis_fuzz.bases import programs
from tests.analysis_fuzz.mutants import mutant
from tests.analysis_fuzz.questions import ask
from tests.analysis_fuzz.shrink import shrunk

MAX_SECONDS = 30.0
"""Limit on the processor time of one mutant."""

MAX_MEMORY = 4 << 30
PART = 500
ROOT = str(Path(__file__).parent.parent.parent)


class Failure(NamedTuple):
    """An exception that is no `HloError`.

    Attributes:
        kind: the type of the exception and the location that raised it.
        message: the last line of the traceback.
        seed, text: the first mutant with this kind of failure.
    """

    kind: str
    message: str
    seed: int
    text: str


def failure(text: str, seed: int, questions: int | None) -> Failure | None:
    """Return the failure of a mutant, or None."""
    signal.setitimer(signal.ITIMER_VIRTUAL, MAX_SECONDS)
    try:
        ask(text, seed, questions)
    except Exception as error:  # `ask` catches HloError
        frames = traceback.extract_tb(error.__traceback__)
        last = [frame for frame in frames if frame.filename.startswith(ROOT)][-1]
        place = f"{last.filename.removeprefix(ROOT)}:{last.lineno}"
        kind = f"{type(error).__name__} in {last.name} at {place}"
        kind = "TimeoutError" if isinstance(error, TimeoutError) else kind
        return Failure(kind, f"{type(error).__name__}: {error}", seed, text)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return None


def failures(first: int, count: int, questions: int) -> tuple[Counter[str], list[Failure]]:
    """Return the number of failures of each kind among some mutants, and one of each kind."""
    signal.signal(signal.SIGVTALRM, _too_slow)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    counts: Counter[str] = Counter()
    kinds: dict[str, Failure] = {}
    for seed in range(first, first + count):
        failed = failure(mutant(programs(), seed), seed, questions)
        if failed is not None:
            counts[failed.kind] += 1
            kinds.setdefault(failed.kind, failed)
    return counts, list(kinds.values())


def main(arguments: Sequence[str]) -> int:
    """Ask about mutants and print the failures; return 1 if there is one."""
    parser = argparse.ArgumentParser(prog="python -m tests.analysis_fuzz")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--questions", type=int, default=4, help="number of questions per mutant")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="worker processes")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGVTALRM, _too_slow)
    end = given.seed + given.count
    parts = [
        (first, min(PART, end - first), given.questions) for first in range(given.seed, end, PART)
    ]
    counts: Counter[str] = Counter()
    with multiprocessing.Pool(given.jobs) as pool:
        for done, (some, kinds) in enumerate(pool.imap(_failures, parts), 1):
            for failed in kinds:
                if failed.kind not in counts:
                    _print(failed)
            counts += some
            if done % 100 == 0:
                print(f"{done * PART:,} mutants, {counts.total()} failed", flush=True)
    for kind, count in counts.most_common():
        print(f"  {count:8,}  {kind}")
    print(f"{given.count:,} mutants of {len(programs())} modules, {counts.total()} failed")
    return 1 if counts else 0


def _failures(part: tuple[int, int, int]) -> tuple[Counter[str], list[Failure]]:
    return failures(*part)


def _print(failed: Failure) -> None:
    """Print a failure with the shrunk module."""
    text = failed.text
    if failed.kind != "TimeoutError":
        text = shrunk(text, partial(_fails_so, failed))
    print(f"--seed {failed.seed} --count 1: {failed.kind}\n{failed.message}\n{text}", flush=True)


def _fails_so(failed: Failure, text: str) -> bool:
    """Return True if `text` fails in the same way, in any question."""
    other = failure(text, failed.seed, None)
    return other is not None and other.kind == failed.kind


def _too_slow(signal_number: int, frame: object) -> None:
    raise TimeoutError(f"longer than {MAX_SECONDS} s")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

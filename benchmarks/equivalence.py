"""Numbers of pairs of pass dumps that are decided, by pass and level, and the time they take.

    python -m benchmarks.pass_dumps FOLDER
    python -m benchmarks.equivalence FOLDER [--mutants N] [NAME...]

prints a row for each pass: changed pairs; pairs decided at level reads; pairs proved at level
values without a law that is inexact on floats, and with such laws; pairs that differ; seconds.
Pairs that differ or are undecided are named on standard error. With ``--mutants``, N mutants of the
module after each change are compared with the module before it; a mutant is counted if executions
on other inputs than those of the comparison show that it computes something else.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Final

import hlo
from hlo.modules.module import Module
from indexing import equivalent
from indexing.equivalence import Differs, Proved
from indexing.equivalence.compare import is_structurally_equal
from indexing.equivalence.dumps import modules_in
from indexing.equivalence.pairing import Pair, pair_of
from indexing.equivalence.runs import Runs, ValueGap
from indexing.views.tables import align_columns
from tests.equivalence.mutants import mutants

COLUMNS: Final = ("changed", "reads", "values", "values, laws", "differs", "undecided")
OTHER_SEEDS: Final = range(1000, 1012)


def changed_pairs(folder: Path, names: list[str]) -> Iterator[tuple[str, str, Module, Module]]:
    """Yield the pass, the dump and both modules of each changed pair."""
    for module in modules_in(folder):
        if names and module.name.split("/")[0] not in names:
            continue
        before = hlo.load(module.dumps[0].path)
        for _, dump in module.pairs:
            after = hlo.load(dump.path)
            if not is_structurally_equal(before, after):
                yield dump.pass_name, f"{module.name}.{dump.number}", before, after
                before = after


def measure(folder: Path, names: list[str]) -> None:
    """Print the table of passes, and what is undecided or differs."""
    counts: dict[str, Counter[str]] = {}
    seconds: dict[str, float] = {}
    for pass_name, place, before, after in changed_pairs(folder, names):
        start = perf_counter()
        reads = equivalent(before, after, level="reads")
        values = equivalent(before, after)
        seconds[pass_name] = seconds.get(pass_name, 0.0) + perf_counter() - start
        row = counts.setdefault(pass_name, Counter())
        row["changed"] += 1
        row["reads"] += isinstance(reads, Proved | Differs)
        match values:
            case Proved(laws=laws):
                row["values, laws" if laws else "values"] += 1
            case Differs():
                row["differs"] += 1
                print(f"{place} {pass_name}: {values}", file=sys.stderr)
            case _:
                row["undecided"] += 1
                print(
                    f"{place} {pass_name}: {values.terms or values.reason}"[:300], file=sys.stderr
                )
    total = sum(counts.values(), Counter[str]())
    rows = sorted(counts.items(), key=lambda row: -row[1]["changed"])
    cells = [["pass", *COLUMNS, "seconds"]]
    for name, row in [*rows, ("all", total)]:
        time = seconds[name] if name != "all" else sum(seconds.values())
        cells.append([name, *[str(row[column] or "") for column in COLUMNS], f"{time:.1f}"])
    print(*align_columns(cells, right=range(1, len(COLUMNS) + 2)), sep="\n")
    changed = total["changed"]
    exact, proved = total["values"], total["values"] + total["values, laws"]
    for text, number in (("reads", total["reads"]), ("exact", exact), ("with laws", proved)):
        print(f"{text}: {number} of {changed}, {number / changed:.1%}")


def measure_mutants(folder: Path, names: list[str], count: int) -> None:
    """Print how many mutants are told apart, by mutation."""
    outcomes: dict[str, Counter[str]] = {}
    for _, place, before, after in changed_pairs(folder, names):
        for mutation, line, mutant in mutants(after, len(place), count):
            pair = pair_of(after, mutant)
            if not isinstance(pair, Pair) or not computes_something_else(Runs(pair)):
                continue
            verdict = equivalent(before, mutant)
            row = outcomes.setdefault(mutation, Counter())
            row[type(verdict).__name__] += 1
            if not isinstance(verdict, Differs):
                print(f"{place} {mutation}: {line[:120]}: {verdict}", flush=True)
    total = sum(outcomes.values(), Counter[str]())
    kinds = ("Differs", "Undecided", "Proved")
    cells = [["mutation", *kinds]]
    for name, row in [*sorted(outcomes.items()), ("all", total)]:
        cells.append([name, *[str(row[kind] or "") for kind in kinds]])
    print(*align_columns(cells, right=range(1, len(kinds) + 1)), sep="\n")


def computes_something_else(runs: Runs) -> bool:
    """Return True if a mutant has other values on one of the inputs with `OTHER_SEEDS`."""
    if runs.obstacle is not None:
        return False
    return any(isinstance(runs.gap_on(runs.inputs(seed)), ValueGap) for seed in OTHER_SEEDS)


def main() -> None:
    """Measure the dumps in a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--mutants", type=int, default=0)
    options = parser.parse_intermixed_args()
    if options.mutants:
        measure_mutants(options.folder, options.names, options.mutants)
    else:
        measure(options.folder, options.names)


if __name__ == "__main__":
    main()

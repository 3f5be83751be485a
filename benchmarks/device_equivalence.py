"""Pairs of stored pass dumps, and whole programs, that are proved at values, for each target.

    python -m benchmarks.device_equivalence FOLDER [--targets tpu,gpu] [--limit 60] [NAME...]
        [--level values] [--kinds pairs,whole,mutants] [--mutants N]

reads ``FOLDER/TARGET_passes/NAME`` (dumps of passes, as `benchmarks.pass_dumps` or a compiler for
a device leaves them) and ``FOLDER/TARGET/NAME.pre.hlo`` with ``NAME.opt.hlo`` (a program before
and after all passes).  It prints a row for the pairs and one for the whole programs of each target:
proved by exact laws, proved with laws of real numbers, different by rounding, different, undecided,
ended by the limit of time on one comparison, and seconds.  Then follow the first causes of what is
not proved, counted.  Seconds and the limit are processor time, so a loaded machine measures the
same.  Comparisons run in a process of their own, which is ended at the limit.  ``--save FILE``
writes one JSON record for each comparison; ``--against FILE`` prints the comparisons whose result
has changed.

The kind ``mutants`` compares the program before all passes with N mutants of the program after; a
mutant is counted if executions on other inputs than those of the comparison show that it computes
something else, and none may be proved.  A mutant of a partitioned program must do so on inputs that
its shardings allow, too: an all-reduce of equal values is the same with another computation.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, Final

import hlo
from benchmarks.equivalence import computes_something_else
from indexing import equivalent
from indexing.devices.devices import Devices
from indexing.equivalence import Differs, Proved
from indexing.equivalence.dumps import ModuleDumps, modules_in
from indexing.equivalence.pairing import Pair, pair_of
from indexing.equivalence.passes import validate_passes
from indexing.equivalence.runs import Runs
from indexing.equivalence.verdicts import Level, Undecided, Verdict
from indexing.views.tables import align_columns
from tests.equivalence.mutants import mutants

RESULTS: Final = ("values", "values, laws", "rounding", "differs", "undecided", "time")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one comparison.

    Attributes:
        target: the target; with "whole" for whole programs.
        place: the program, and the dump of a pair.
        pass_name: the pass; "" for a whole program.
        result: one of `RESULTS`.
        cause: what is not proved, or the witness.
        seconds: the time.
    """

    target: str
    place: str
    pass_name: str
    result: str
    cause: str
    seconds: float


def outcome_of(verdict: Verdict) -> tuple[str, str]:
    """Return the result and the cause of a verdict."""
    match verdict:
        case Proved(laws=laws):
            return ("values, laws" if laws else "values"), ""
        case Differs(by_rounding=by_rounding):
            return ("rounding" if by_rounding else "differs"), str(verdict)
        case Undecided(terms=terms, reason=reason):
            return "undecided", f"{reason} | {' <> '.join(terms or ())}"[:600]
    raise AssertionError(verdict)


def send_pairs(module: ModuleDumps, target: str, level: Level, connection: Connection) -> None:
    """Send the outcome of each changed pair, and None at the end."""
    start = process_time()
    for pair in validate_passes(module, level):
        place = f"{module.name}.{pair.after.number:04}"
        if pair.verdict is None:
            connection.send(Outcome(target, place, pair.pass_name, "same", "", 0.0))
            continue
        result, cause = outcome_of(pair.verdict)
        seconds = process_time() - start
        connection.send(Outcome(target, place, pair.pass_name, result, cause, seconds))
        start = process_time()
    connection.send(None)


def send_whole(
    before: Path, after: Path, target: str, level: Level, connection: Connection
) -> None:
    """Send the outcome of a comparison of two files, and None."""
    start = process_time()
    try:
        result, cause = outcome_of(equivalent(hlo.load(before), hlo.load(after), level))
    except hlo.HloError as error:
        result, cause = "undecided", error.message
    name = before.name.removesuffix(".pre.hlo")
    connection.send(Outcome(target, name, "", result, cause, process_time() - start))
    connection.send(None)


def send_mutants(
    before: Path, after: Path, target: str, count: int, connection: Connection
) -> None:
    """Send the outcome of each mutant of a program, and None."""
    ours, theirs = hlo.load(before), hlo.load(after)
    name = before.name.removesuffix(".pre.hlo")
    for mutation, line, mutant in mutants(theirs, len(name), count):
        pair = pair_of(theirs, mutant)
        if not isinstance(pair, Pair) or not computes_something_else(Runs(pair)):
            continue
        if Devices.of(theirs).count > 1 and not isinstance(
            equivalent(ours, mutant, level="numbers"), Differs
        ):
            continue  # the same where the parameters of devices are parts of the same arrays
        start = process_time()
        result, cause = outcome_of(equivalent(ours, mutant))
        place, text = f"{name} {mutation}", f"{cause} | {line}"
        connection.send(Outcome(target, place, "", result, text, process_time() - start))
    connection.send(None)


def receive(process: multiprocessing.Process, end: Connection, limit: float) -> Iterator[Outcome]:
    """Yield what a process sends; end it if it sends nothing within the limit."""
    process.start()
    start = 0.0
    while True:
        while not end.poll(0.5):
            if _processor_seconds(process) - start > limit:
                process.kill()
                process.join()
                yield Outcome("", "", "", "time", "", limit)
                return
        start = _processor_seconds(process)
        try:
            outcome = end.recv()
        except EOFError:
            outcome = None
        if outcome is None:
            process.join()
            return
        yield outcome


def _processor_seconds(process: multiprocessing.Process) -> float:
    """Return the processor time that a process has taken, as Linux counts it."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def pair_outcomes(
    module: ModuleDumps, target: str, limit: float, level: Level
) -> Iterator[Outcome]:
    """Yield the outcomes of a module's pairs; after one that takes too long, a process restarts."""
    while module.first < len(module.dumps):
        ours, theirs = multiprocessing.Pipe(False)
        process = multiprocessing.Process(target=send_pairs, args=(module, target, level, theirs))
        for outcome in receive(process, ours, limit):
            dump = module.dumps[module.first]
            module = replace(module, first=module.first + 1)
            if outcome.result == "time":
                place = f"{module.name}.{dump.number:04}"
                yield Outcome(target, place, dump.pass_name, "time", "", limit)
                break
            yield outcome
        else:
            return


def outcomes_of(target: str, options: argparse.Namespace) -> Iterator[Outcome]:
    """Yield the outcomes of the pairs, the whole programs and the mutants of a target."""
    limit, kinds, level = options.limit, options.kinds, options.level
    folder, names = options.folder, options.names
    passes = folder / f"{target}_passes"
    if "pairs" in kinds and passes.is_dir():
        for each in sorted(passes.iterdir()):
            if not names or each.name in names:
                for module in modules_in(each):
                    named = replace(module, name=f"{each.name}/{module.name.split('.')[0]}")
                    yield from pair_outcomes(named, target, limit, level)
    workers: dict[str, tuple[Callable[..., None], Any]] = {
        "whole": (send_whole, level),
        "mutants": (send_mutants, options.mutants),
    }
    for kind in kinds.split(","):
        if kind not in workers:
            continue
        send, argument = workers[kind]
        for before in sorted((folder / target).glob("*.pre.hlo")):
            name = before.name.removesuffix(".pre.hlo")
            if not names or name in names:
                ours, theirs = multiprocessing.Pipe(False)
                after = before.with_name(f"{name}.opt.hlo")
                whole = f"{target} {kind}"
                process = multiprocessing.Process(
                    target=send, args=(before, after, whole, argument, theirs)
                )
                for outcome in receive(process, ours, limit):
                    is_late = outcome.result == "time"
                    yield replace(outcome, target=whole, place=name) if is_late else outcome


def cause_kind(cause: str) -> str:
    """Return a cause without names and numbers, so that equal causes are counted together."""
    head = cause.split(" | ")[0]
    return re.sub(r"\d+", "N", re.sub(r"%?[\w.-]*\.\d+", "X", head))[:110]


def report(outcomes: list[Outcome]) -> None:
    """Print the table of targets, and the causes of what is not proved."""
    cells = [["target", "pairs", *RESULTS, "proved", "median s", "slowest s"]]
    for target in dict.fromkeys(o.target for o in outcomes):
        rows = [o for o in outcomes if o.target == target and o.result != "same"]
        counts = Counter(o.result for o in rows)
        proved = counts["values"] + counts["values, laws"]
        share = f"{proved / len(rows):.1%}" if rows else ""
        times = sorted(o.seconds for o in rows) or [0.0]
        numbers = [str(counts[result] or "") for result in RESULTS]
        ends = [share, f"{median(times):.2f}", f"{times[-1]:.1f}"]
        cells.append([target, str(len(rows)), *numbers, *ends])
    print(*align_columns(cells, right=range(1, len(cells[0]))), sep="\n")
    for target in dict.fromkeys(o.target for o in outcomes):
        causes = Counter(
            cause_kind(o.cause) or o.result
            for o in outcomes
            if o.target == target and o.result in RESULTS[2:]
        )
        for cause, count in causes.most_common(25):
            print(f"{target}: {count} {cause}")


def changed_results(outcomes: list[Outcome], file: Path) -> None:
    """Print the comparisons whose result is not that of a saved run."""
    old = {(r["target"], r["place"]): r for r in map(json.loads, file.read_text().splitlines())}
    for o in outcomes:
        before = old.get((o.target, o.place))
        if before is not None and before["result"] != o.result:
            print(f"{o.target} {o.place} {o.pass_name}: {before['result']} -> {o.result} {o.cause}")


def main() -> None:
    """Measure the stored dumps of a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--targets", default="tpu,gpu")
    parser.add_argument("--kinds", default="pairs,whole")
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--level", choices=("reads", "counts", "values"), default="values")
    parser.add_argument("--mutants", type=int, default=4)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--against", type=Path)
    options = parser.parse_intermixed_args()
    outcomes = []
    with open(options.save or "/dev/null", "w") as file:
        for target in options.targets.split(","):
            for outcome in outcomes_of(target, options):
                outcomes.append(outcome)
                print(json.dumps(asdict(outcome)), file=file, flush=True)
                is_mutant = outcome.target.endswith(" mutants")
                expected = ["differs"] if is_mutant else ["same", "values", "values, laws"]
                if outcome.result not in expected:
                    text = f"{outcome.place} {outcome.pass_name}: {outcome.result} {outcome.cause}"
                    print(text[:400], file=sys.stderr, flush=True)
    report(outcomes)
    if options.against:
        changed_results(outcomes, options.against)


if __name__ == "__main__":
    main()

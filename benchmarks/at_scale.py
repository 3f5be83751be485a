"""Throughput of ``maps --all`` over many files: in one process, with ``--jobs`` and with Dask.

    python -m benchmarks.at_scale [FILE...]

The files are those of `examples/` and FILE.  Each way answers all of them and has to print the same
bytes; the workers of a scheduler are new for each way, so that no maps are cached.  The processor
time is that of all processes: it depends less on the number of free cores than the elapsed time.
`start s` is the processor time for the first file alone.  Then follow the cost of a task that does
nothing, and of sending a megabyte of text.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

import psutil  # type: ignore[import-untyped]  # a part of the extra [dask]

import hlo
from indexing.cli.cluster import Cluster
from tests.cli.cluster_tasks import double, length
from tests.cli.dask_processes import DaskProcesses

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.hlo"))
TASKS = 400
MEGABYTES = 8  # in one task
WAYS = {
    "one process": [],
    "--jobs 2": ["--jobs", "2"],
    "--scheduler local:1": ["--scheduler", "local:1"],
    "--scheduler local:2": ["--scheduler", "local:2"],
    "tcp, 2 workers, text": ["--scheduler", "ADDRESS"],
    "tcp, 2 workers, names": ["--scheduler", "ADDRESS", "--send", "names"],
}


class Cost(NamedTuple):
    """Elapsed seconds, and the processor seconds of all processes."""

    elapsed: float
    processor: float


def processor_seconds(processes: DaskProcesses) -> float:
    """Return the processor time that the scheduler and the workers have used."""
    times = [psutil.Process(each.pid).cpu_times() for each in processes.processes.values()]
    return float(sum(each.user + each.system for each in times))


def ran(options: Sequence[str], files: Sequence[str]) -> tuple[Cost, str]:
    """Run ``maps --all`` in a new process, with a new cluster; return its cost and its output."""
    with ExitStack() as resources:
        folder = Path(resources.enter_context(tempfile.TemporaryDirectory()))
        output = resources.enter_context(open(folder / "output", "w+"))
        words, before = list(options), 0.0
        processes = None
        if "ADDRESS" in words:
            processes = resources.enter_context(DaskProcesses(folder, "a", "b"))
            words[words.index("ADDRESS")] = processes.address
            before = processor_seconds(processes)
        command = [sys.executable, "-m", "indexing.cli", "maps", "--all", "--no-cache"]
        command += ["--format", "json"]
        start = time.perf_counter()
        process = subprocess.Popen([*command, *words, *files], stdout=output)
        _, status, usage = os.wait4(process.pid, 0)  # also of the processes that it waited for
        elapsed = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, process.args
        others = processor_seconds(processes) - before if processes else 0.0
        output.seek(0)
        return Cost(elapsed, usage.ru_utime + usage.ru_stime + others), output.read()


def rows(files: Sequence[str]) -> Iterator[str]:
    """Yield a row of the table for each way."""
    modules = [module for file in files for module in hlo.load_all(file)]
    count = sum(len(list(module.instructions)) for module in modules)
    yield f"{len(files)} files, {count} instructions"
    yield (
        f"{'':22} {'elapsed s':>9} {'processor s':>11} {'start s':>8} "
        f"{'files/s':>8} {'instructions/s':>14}"
    )
    expected = ""
    for name, options in WAYS.items():
        cost, printed = ran(options, files)
        expected = expected or printed
        assert printed == expected, name
        start, _ = ran(options, files[:1])
        yield (
            f"{name:22} {cost.elapsed:9.1f} {cost.processor:11.1f} {start.processor:8.1f} "
            f"{len(files) / cost.processor:8.1f} {count / cost.processor:14.0f}"
        )


def per_task(processes: DaskProcesses) -> Iterator[str]:
    """Yield the costs of tasks that do nothing, and of large ones."""
    with closing(Cluster(processes.address, sends_text=False, note=print)) as cluster:
        list(cluster.results(double, range(2)))  # connect
        measured: list[tuple[str, Sequence[Any], Callable[[Any], int], int]] = [
            ("task", range(TASKS), double, TASKS),
            ("MB of text", [b" " * 10**6 * MEGABYTES] * 8, length, 8 * MEGABYTES),
        ]
        for label, tasks, function, units in measured:
            before, own, start = processor_seconds(processes), time.process_time(), time.time()
            assert all(isinstance(each, int) for each in cluster.results(function, tasks))
            elapsed, own = time.time() - start, time.process_time() - own
            others = processor_seconds(processes) - before
            yield (
                f"a {label}: {1000 * elapsed / units:.1f} ms elapsed, "
                f"{1000 * own / units:.1f} ms of the command's processor, "
                f"{1000 * others / units:.1f} ms of scheduler and workers"
            )


def main() -> None:
    """Print all tables."""
    files = [*map(str, EXAMPLES), *sys.argv[1:]]
    for line in rows(files):
        print(line, flush=True)
    with tempfile.TemporaryDirectory() as folder, DaskProcesses(Path(folder), "a", "b") as dask:
        for line in per_task(dask):
            print(line, flush=True)


if __name__ == "__main__":
    main()

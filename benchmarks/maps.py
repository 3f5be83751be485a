"""Time and memory of the main job: parse a module and compute its output-to-input maps.

    python -m benchmarks.maps [FILE...]

Everything except the command ``maps --all`` runs in one process. The baseline is jaxlib's C++
parser on the same text in the same run. It runs last, so its memory is not counted. Without jaxlib,
ratios are omitted. Without FILE, the largest module of ``examples/`` is measured.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TypeVar

import hlo
import indexing
from benchmarks.environment import cached_bytecode
from benchmarks.examples import largest_example
from benchmarks.parse import best_seconds, jaxlib_seconds
from hlo.modules.module import Module
from hlo.shapes.shape import leaves

T = TypeVar("T")

KILOBYTE = (
    1024 if sys.platform == "darwin" else 1
)  # ru_maxrss is in bytes on macOS, in kB elsewhere


def peak_kilobytes() -> int:
    """Return the peak memory of this process, in kB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // KILOBYTE


def time_action(action: Callable[[], T]) -> tuple[T, float]:
    """Return the result of `action` and its duration in seconds."""
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


def all_maps(module: Module) -> Counter[str]:
    """Simplify all maps of all outputs; return the numbers of maps and of unknown answers."""
    count = unknown = 0
    for instruction in module.instructions:
        for output in range(len(leaves(instruction.shape))):
            answer = indexing.output_to_input(instruction, output_id=output)
            for maps, reason in zip(answer.maps, answer.unknown, strict=True):
                for each in maps:
                    each.simplify()
                count += len(maps)
                unknown += reason is not None
    return Counter(maps=count, unknown=unknown)


def command_seconds(path: Path) -> float:
    """Return the time of ``hlo-indexing maps --all --format json`` in a new process."""
    command = [
        sys.executable,
        "-m",
        "indexing.cli",
        "maps",
        "--all",
        "--no-cache",
        "--format",
        "json",
    ]
    with cached_bytecode() as variables:

        def run() -> None:
            subprocess.run(
                [*command, str(path)], check=True, stdout=subprocess.DEVNULL, env=variables
            )

        run()  # compiles the modules
        return best_seconds(run, repeat=2)


@dataclass(frozen=True)
class Measurements:
    """Measurements of one file: numbers of instructions and maps, seconds, and kilobytes.

    Attributes:
        totals: the numbers of maps and of unknown answers.
        command: the seconds of ``hlo-indexing maps --all --format json``, from its start.
        peak: the peak memory of the process.
        before: its peak before the module was parsed.
    """

    count: int
    totals: Counter[str]
    parsing: float
    mapping: float
    command: float
    peak: int
    before: int
    jaxlib: float | str


def measure_module(path: Path) -> Measurements:
    """Measure one module; call it once in a process, because caches keep what it computes."""
    import_module("indexing.ops")  # not measured
    before = peak_kilobytes()
    module, parsing = time_action(lambda: hlo.load(path))
    totals, mapping = time_action(lambda: all_maps(module))
    peak = peak_kilobytes()
    command = command_seconds(path)
    jaxlib = jaxlib_seconds(module.source.text)
    count = sum(1 for _ in module.instructions)
    return Measurements(count, totals, parsing, mapping, command, peak, before, jaxlib)


def show(path: Path, result: Measurements) -> None:
    """Print the measurements of one module."""
    count, totals = result.count, result.totals
    print(f"{path.name}: {count} instructions, {totals['maps']} maps, {totals['unknown']} unknown")
    steps = {"parse": result.parsing, "maps": result.mapping, "maps --all": result.command}
    for name, time_ in steps.items():
        print(f"  {name:16} {time_:8.3f} s   {count / time_:10.0f} instructions/s")
    for name, size in (
        ("peak memory", result.peak),
        ("of which data", result.peak - result.before),
    ):
        print(f"  {name:16} {size / 1024:8.1f} MB  {size / count:10.2f} kB/instruction")
    if isinstance(result.jaxlib, str):
        print(f"  no ratios: {result.jaxlib}")
        return
    print(f"  jaxlib parse     {result.jaxlib:8.3f} s")
    for name, time_ in (
        ("parse", result.parsing),
        ("parse + maps", result.parsing + result.mapping),
        ("maps --all", result.command),
    ):
        print(f"  {f'{name} / jaxlib parse':27} {time_ / result.jaxlib:8.1f}")


def main(arguments: list[str]) -> None:
    """Measure the given modules, each in a new process, or the largest example."""
    if len(arguments) > 1:
        for argument in arguments:
            subprocess.run([sys.executable, "-m", "benchmarks.maps", argument], check=True)
        return
    path = Path(arguments[0]) if arguments else largest_example()
    show(path, measure_module(path))


if __name__ == "__main__":
    main(sys.argv[1:])

"""Time of `indexing.tile_analysis` of each fusion of a module, and of hard chains.

    python -m benchmarks.tile_analysis [FILE]

The time of a fusion covers its tiles, of symbolic size, and their constraints together.  It is the
processor time of this process, so that other load on the machine does not count.  The targets are
those of ``gpt2_small_train.opt.hlo`` with 1,386 fusions: a median of 5 ms, and none above 1 s.
Without FILE, the largest module of ``examples/`` is measured.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import hlo
from benchmarks.examples import largest_example
from hlo import Computation, Instruction, Module
from indexing.maps.answers import Unknown
from indexing.tiling import tile_analysis

MEDIAN: Final = 5.0  # milliseconds
MAXIMUM: Final = 1000.0
SLOWEST: Final = 5
QUANTILES: Final = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)


class Measured(NamedTuple):
    """The time in milliseconds of one analysis, and what it finds."""

    time: float
    name: str
    tiles: int
    unknown: int


def measure(name: str, target: Instruction | Computation) -> Measured:
    """Return the time of one analysis with its constraints."""
    start = time.process_time()
    analysis = tile_analysis(target)
    if isinstance(analysis, Unknown):
        return Measured((time.process_time() - start) * 1000, name, 0, 1)
    tiles, unknown = len(analysis.instructions), len(analysis.unknown)
    analysis.loop_constraints  # noqa: B018 - computed on first use
    return Measured((time.process_time() - start) * 1000, name, tiles, unknown)


def fusions(module: Module) -> Iterator[Instruction]:
    """Yield the fusions of a module, in text order."""
    for computation in module.computations.values():
        yield from [each for each in computation.instructions if each.opcode == "fusion"]


def chains() -> Iterator[tuple[str, Computation]]:
    """Yield computations whose constraints have exponentially many normal forms."""
    sizes = ",".join(["4"] * 10)
    flat = 4**10
    lines = [f"p = f32[{flat}] parameter(0)", f"ROOT r = f32[{sizes}] reshape(p)"]
    yield "rank 10", _entry(lines)
    lines = ["p = f32[720,48] parameter(0)", "r0 = f32[48,720] reshape(p)"]
    shapes = ["96,360", "144,240", "34560", "60,576", "48,720"]
    for number in range(1, 40):
        lines.append(f"r{number} = f32[{shapes[number % 5]}] reshape(r{number - 1})")
    yield "40 reshapes", _entry(lines)


def _entry(lines: list[str]) -> Computation:
    return hlo.parse("ENTRY e {\n" + "\n".join(lines) + "\n}").entry


def report(times: list[Measured]) -> Iterator[str]:
    """Yield the lines of the distribution of times."""
    ordered = sorted(times)
    for quantile in QUANTILES:
        value = ordered[min(int(quantile * len(ordered)), len(ordered) - 1)].time
        yield f"{quantile:>8.0%} {value:>10.2f} ms"
    yield f"{'maximum':>8} {ordered[-1].time:>10.2f} ms"
    median, slowest = ordered[len(ordered) // 2].time, ordered[-1].time
    for name, value, target in (("median", median, MEDIAN), ("maximum", slowest, MAXIMUM)):
        verdict = "reached" if value <= target else "missed"
        yield f"target: {name} at most {target:g} ms: {verdict}"
    for each in reversed(ordered[-SLOWEST:]):
        yield f"{each.time:>10.2f} ms  {each.tiles:>5} tiles  {each.name}"
    tiles, unknown = sum(each.tiles for each in times), sum(each.unknown for each in times)
    yield f"{len(times)} fusions, {tiles} tiles, {unknown} reasons why tiles are unknown"


def main(arguments: list[str]) -> None:
    """Print the distribution for the fusions of a module, then the time of the chains."""
    file = Path(arguments[0]) if arguments else largest_example()
    module = hlo.load(str(file))
    gc.freeze()
    times = [measure(each.name, each) for each in fusions(module)]
    print(f"{file.name}: tile_analysis of each fusion")
    if times:
        print("\n".join(report(times)))
    for name, entry in chains():
        each = measure(name, entry)
        print(f"{each.time:>10.2f} ms  {each.tiles:>5} tiles  {name}")


if __name__ == "__main__":
    main(sys.argv[1:])

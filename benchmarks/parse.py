"""Time and memory of parsing and printing, relative to jaxlib's C++ parser on the same text.

    python -m benchmarks.parse [FILE...]

Each time is the best of a few runs in one process. Without FILE, the largest module of
``examples/`` is measured. Without jaxlib, ratios are omitted. The last lines summarise several
files: the ratio of the total times, for all files and for the smaller and larger half.
"""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import hlo
from benchmarks.examples import largest_example
from hlo.formats.files import read_text

REPEAT = 5


def best_seconds(action: Callable[[], object], repeat: int = REPEAT) -> float:
    """Return the shortest duration of `action`."""
    return min(seconds(action) for _ in range(repeat))


def seconds(action: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def held_bytes(text: str) -> int:
    """Return the memory of a parsed module without its text, in bytes."""
    gc.collect()
    tracemalloc.start()
    module = hlo.parse(text)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert module.source.text is text  # allocated before
    return held


def jaxlib_seconds(text: str, repeat: int = REPEAT) -> float | str:
    """Return the time of jaxlib's parser, or the reason why it is missing."""
    try:
        from jaxlib import _hlo
    except ImportError:
        return "jaxlib is not installed: pip install 'hlo-indexing[xla]'"
    try:
        return best_seconds(lambda: _hlo.hlo_module_from_text(text), repeat)
    except RuntimeError as error:
        return f"jaxlib rejects the text: {str(error).splitlines()[0]}"


@dataclass(frozen=True)
class Measurements:
    """Measurements of one file: characters, instructions, seconds, and bytes besides the text."""

    size: int
    count: int
    parsing: float
    printing: float
    held: int
    jaxlib: float | str


def measure(path: Path) -> Measurements:
    """Measure one file."""
    text = read_text(path)
    module = hlo.parse(text, str(path))
    count = sum(1 for _ in module.instructions)
    printing = best_seconds(module.__str__)
    del module
    parsing = best_seconds(lambda: hlo.parse(text))
    return Measurements(len(text), count, parsing, printing, held_bytes(text), jaxlib_seconds(text))


def show(path: Path, result: Measurements) -> None:
    """Print the measurements of one file."""
    each = 1e6 * result.parsing / result.count
    print(f"{path}: {result.size:,} characters, {result.count:,} instructions")
    print(f"  parse   {result.parsing:8.3f} s, {each:.1f} us per instruction")
    print(f"  print   {result.printing:8.3f} s")
    print(f"  memory  {result.held / result.count:8.0f} bytes per instruction besides the text")
    if isinstance(result.jaxlib, str):
        print(f"  ratio   unknown: {result.jaxlib}")
    else:
        ratio = result.parsing / result.jaxlib
        print(f"  jaxlib  {result.jaxlib:8.3f} s; parsing takes {ratio:.2f} times that")


def show_totals(every: Sequence[Measurements]) -> None:
    """Print totals of all files, and of the smaller and the larger half."""
    count = sum(f.count for f in every)
    print(f"{len(every)} files, {count:,} instructions")
    print(f"  memory  {sum(f.held for f in every) / count:8.0f} bytes per instruction")
    compared = [(f, f.jaxlib) for f in every if isinstance(f.jaxlib, float)]
    compared.sort(key=lambda pair: pair[0].size)
    halves = {
        "all": compared,
        "small": compared[: len(compared) // 2],
        "large": compared[len(compared) // 2 :],
    }
    for name, part in halves.items():
        jaxlib, parsing = sum(t for _, t in part), sum(f.parsing for f, _ in part)
        if jaxlib:
            speed = sum(f.size for f, _ in part) / parsing / 1e6
            print(
                f"  {name:7} {parsing / jaxlib:8.2f} times jaxlib, {speed:.1f} million characters/s"
            )


def main(arguments: list[str]) -> None:
    """Measure the given files, or the largest example."""
    every = []
    for path in map(Path, arguments or [str(largest_example())]):
        every.append(measure(path))
        show(path, every[-1])
    if len(every) > 1:
        show_totals(every)


if __name__ == "__main__":
    main(sys.argv[1:])

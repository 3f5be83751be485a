"""Time and memory of parsing and printing, beside jaxlib's C++ parser on the same text.

    python -m benchmarks.parse [FILE...]

Each figure is the best of a few runs in one process. Without FILE the largest module of
``examples/`` is measured; without jaxlib there are no ratios. The last lines sum up several files:
the ratio of the total times, and whether large files cost more per instruction than small ones.
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
from hlo.formats.files import read_text

EXAMPLES = Path(__file__).parent.parent / "examples"
REPEAT = 5


def best_seconds(action: Callable[[], object]) -> float:
    """The shortest time that `action` took."""
    return min(seconds(action) for _ in range(REPEAT))


def seconds(action: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def held_bytes(text: str) -> int:
    """Bytes that a parsed module holds, apart from its text."""
    gc.collect()
    tracemalloc.start()
    module = hlo.parse(text)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert module.source.text is text  # which was there before
    return held


def jaxlib_seconds(text: str) -> float | str:
    """What jaxlib's parser takes, or why that is not known."""
    try:
        from jaxlib import _hlo
    except ImportError:
        return "jaxlib is not installed: pip install 'hlo-indexing[xla]'"
    try:
        return best_seconds(lambda: _hlo.hlo_module_from_text(text))
    except RuntimeError as error:
        return f"jaxlib refuses the text: {str(error).splitlines()[0]}"


@dataclass(frozen=True)
class Figures:
    """What one file takes: characters, instructions, seconds, and bytes beyond the text."""

    size: int
    count: int
    parsing: float
    printing: float
    held: int
    theirs: float | str


def measure(path: Path) -> Figures:
    """The figures of one file."""
    text = read_text(path)
    module = hlo.parse(text, str(path))
    count = sum(1 for _ in module.instructions)
    printing = best_seconds(module.__str__)
    del module
    parsing = best_seconds(lambda: hlo.parse(text))
    return Figures(len(text), count, parsing, printing, held_bytes(text), jaxlib_seconds(text))


def show(path: Path, found: Figures) -> None:
    """Print the figures of one file."""
    each = 1e6 * found.parsing / found.count
    print(f"{path}: {found.size:,} characters, {found.count:,} instructions")
    print(f"  parse   {found.parsing:8.3f} s, {each:.1f} us an instruction")
    print(f"  print   {found.printing:8.3f} s")
    print(f"  memory  {found.held / found.count:8.0f} bytes an instruction beyond the text")
    if isinstance(found.theirs, str):
        print(f"  ratio   unknown: {found.theirs}")
    else:
        ratio = found.parsing / found.theirs
        print(f"  jaxlib  {found.theirs:8.3f} s; parsing takes {ratio:.2f} times that")


def show_totals(every: Sequence[Figures]) -> None:
    """Print what all files take together, and the smaller and the larger half of them."""
    count = sum(f.count for f in every)
    print(f"{len(every)} files, {count:,} instructions")
    print(f"  memory  {sum(f.held for f in every) / count:8.0f} bytes an instruction")
    known = [(f, f.theirs) for f in every if isinstance(f.theirs, float)]
    known.sort(key=lambda pair: pair[0].size)
    halves = {"all": known, "small": known[: len(known) // 2], "large": known[len(known) // 2 :]}
    for name, part in halves.items():
        theirs, ours = sum(t for _, t in part), sum(f.parsing for f, _ in part)
        if theirs:
            speed = sum(f.size for f, _ in part) / ours / 1e6
            print(f"  {name:7} {ours / theirs:8.2f} times jaxlib, {speed:.1f} million characters/s")


def main(arguments: list[str]) -> None:
    """Measure the files named in `arguments`, or the largest example."""
    largest = max(EXAMPLES.glob("*.hlo"), key=lambda path: path.stat().st_size)
    every = []
    for path in map(Path, arguments or [str(largest)]):
        every.append(measure(path))
        show(path, every[-1])
    if len(every) > 1:
        show_totals(every)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Time and memory of parsing and printing, beside jaxlib's C++ parser on the same text.

    python -m benchmarks.parse [FILE...]

Each figure is the best of a few runs in one process. Without FILE the largest module of
``examples/`` is measured; without jaxlib there are no ratios.
"""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import hlo
from hlo.files import read_text

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


def measure(path: Path) -> None:
    """Print the figures of one file."""
    text = read_text(path)
    module = hlo.parse(text, str(path))
    count = sum(1 for _ in module.instructions)
    parsing = best_seconds(lambda: hlo.parse(text))
    printing = best_seconds(module.__str__)
    theirs = jaxlib_seconds(text)
    del module
    print(f"{path}: {len(text):,} characters, {count:,} instructions")
    print(f"  parse   {parsing:8.3f} s, {1e6 * parsing / count:.1f} us an instruction")
    print(f"  print   {printing:8.3f} s")
    print(f"  memory  {held_bytes(text) / count:8.0f} bytes an instruction beyond the text")
    if isinstance(theirs, str):
        print(f"  ratio   unknown: {theirs}")
    else:
        print(f"  jaxlib  {theirs:8.3f} s; parsing takes {parsing / theirs:.2f} times that")


def main(arguments: list[str]) -> None:
    """Measure the files named in `arguments`, or the largest example."""
    largest = max(EXAMPLES.glob("*.hlo"), key=lambda path: path.stat().st_size)
    for path in map(Path, arguments or [str(largest)]):
        measure(path)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Memory over a session of distinct modules.

    python -m benchmarks.session [COUNT]

Each module is an example in which one size is replaced, so that no two are equal. It is parsed, all
of its maps are computed and printed, in both directions and to the parameters, and it is discarded.
Prints the memory after each fifth of the modules, and its growth for each of them:

    resident    memory of the process (Linux)
    C heap      blocks in use of malloc (glibc): C libraries, and objects of Python above 512 bytes
    Python      all objects of Python, in a second process: tracing needs memory of its own
"""

from __future__ import annotations

import ctypes
import gc
import os
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Final

import hlo
import indexing
from hlo import Module

EXAMPLES: Final = Path(__file__).parent.parent / "examples"
SIZES: Final = {
    "dynamic_slice_update.opt": 8,
    "embedding_gather.opt": 1000,
    "layernorm.opt": 64,
    "rnn.pre": 7,
}
"""The size of each example that is replaced; the modules are valid with any other."""
PARTS: Final = 5


class _Heap(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    _fields_ = tuple(
        [
            (name, ctypes.c_size_t)
            for name in (
                *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks"),
                *("uordblks", "fordblks", "keepcost"),
            )
        ]
    )


def texts() -> Iterator[str]:
    """Yield the texts of distinct modules without end."""
    given = [((EXAMPLES / f"{name}.hlo").read_text(), size) for name, size in SIZES.items()]
    for more in count(1):
        for text, size in given:
            yield re.sub(rf"(?<![\w.]){size}(?![\w.])", str(size + 4 * more), text)


def use(module: Module) -> None:
    """Compute and print all maps of a module."""
    for computation in module.computations.values():
        for instruction in computation.instructions:
            str(indexing.output_to_input(instruction))
            if instruction.operands:
                str(indexing.input_to_output(instruction))
    str(indexing.to_parameters(module.entry.root))


def resident() -> int:
    """Return the bytes of memory of the process."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def heap() -> int:
    """Return the bytes of the blocks of malloc that are in use."""
    library = ctypes.CDLL("libc.so.6")
    library.mallinfo2.restype = _Heap
    info = library.mallinfo2()
    return int(info.uordblks) + int(info.hblkhd)


def python() -> int:
    """Return the bytes of the objects of Python."""
    return tracemalloc.get_traced_memory()[0]


def session(modules: int, traced: bool) -> None:
    """Print a line of bytes after each part of the modules."""
    if traced:
        tracemalloc.start()
    measures = (python,) if traced else (resident, heap)
    for number, text in enumerate(islice(texts(), modules), 1):
        use(hlo.parse(text))
        if number % (modules // PARTS) == 0:
            gc.collect()
            print(*[measure() for measure in measures], flush=True)


def measure_session(modules: int, mode: str) -> list[list[int]]:
    """Return what `session` prints in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.session", str(modules), mode]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [list(map(int, line.split())) for line in output.splitlines()]


def main(modules: int) -> None:
    """Print a table of the memory, with the growth for each module since the line before."""
    both = zip(
        measure_session(modules, "--plain"), measure_session(modules, "--traced"), strict=True
    )
    rows = [[*plain, *traced] for plain, traced in both]
    print("modules        resident            C heap            Python")
    for k, row in enumerate(rows):
        cells = []
        for n, value in enumerate(row):
            growth = f"{(value - rows[k - 1][n]) / (modules // PARTS) / 1e3:+7.1f} kB" if k else ""
            cells.append(f"{value / 1e6:6.1f} MB{growth:10}")
        print(f"{(k + 1) * (modules // PARTS):7} " + "".join(cells).rstrip())


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:] if word.isdigit()]
    number = given[0] if given else 2_000
    if "--plain" in sys.argv or "--traced" in sys.argv:
        session(number, "--traced" in sys.argv)
    else:
        main(number)

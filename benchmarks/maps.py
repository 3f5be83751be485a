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
from importlib import import_module
from pathlib import Path
from typing import TypeVar

import hlo
import indexing
from hlo.modules.module import Module
from hlo.shapes.shape import leaves

T = TypeVar("T")

EXAMPLES = Path(__file__).parent.parent / "examples"
KILOBYTE = (
    1024 if sys.platform == "darwin" else 1
)  # ru_maxrss is in bytes on macOS, in kB elsewhere


def peak_kilobytes() -> int:
    """Return the peak memory of this process, in kB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // KILOBYTE


def timed(action: Callable[[], T]) -> tuple[T, float]:
    """Return the result of `action` and its duration in seconds."""
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


def all_maps(module: Module) -> Counter[str]:
    """Simplify all maps of all outputs; return the numbers of maps and of unknown answers."""
    totals: Counter[str] = Counter()
    for instruction in module.instructions:
        for output in range(len(leaves(instruction.shape))):
            answer = indexing.output_to_input(instruction, output_id=output)
            for maps, unknown in zip(answer.maps, answer.unknown, strict=True):
                for each in maps:
                    each.simplify()
                totals["maps"] += len(maps)
                totals["unknown"] += unknown is not None
    return totals


def all_by_command(path: Path) -> None:
    """Run ``hlo-indexing maps --all --format json`` in a new process."""
    command = [sys.executable, "-m", "indexing.cli", "maps", "--all", "--format", "json"]
    subprocess.run([*command, str(path)], check=True, stdout=subprocess.DEVNULL)


def jaxlib_seconds(text: str, repeat: int = 3) -> float | None:
    """Return the best time of jaxlib's C++ parser, or None if it is missing or rejects `text`."""
    try:
        from jaxlib import _hlo
    except ImportError:
        return None
    try:
        return min(timed(lambda: _hlo.hlo_module_from_text(text))[1] for _ in range(repeat))
    except RuntimeError:
        return None


def measure(path: Path) -> None:
    """Print the measurements of one module."""
    import_module("indexing.ops")  # not measured
    before = peak_kilobytes()
    module, parsing = timed(lambda: hlo.load(path))
    totals, mapping = timed(lambda: all_maps(module))
    peak = peak_kilobytes()
    command = timed(lambda: all_by_command(path))[1]
    baseline = jaxlib_seconds(module.source.text)

    count = sum(1 for _ in module.instructions)
    print(f"{path.name}: {count} instructions, {totals['maps']} maps, {totals['unknown']} unknown")
    print(f"  parse            {parsing:8.3f} s   {count / parsing:10.0f} instructions/s")
    print(f"  maps             {mapping:8.3f} s   {count / mapping:10.0f} instructions/s")
    print(f"  maps --all       {command:8.3f} s   {count / command:10.0f} instructions/s")
    print(f"  peak memory      {peak / 1024:8.1f} MB  {peak / count:10.2f} kB/instruction")
    grown = peak - before
    print(f"  of which data    {grown / 1024:8.1f} MB  {grown / count:10.2f} kB/instruction")
    if baseline is None:
        print("  no ratios: jaxlib is not installed (pip install 'jax') or rejects this text")
        return
    print(f"  jaxlib parse     {baseline:8.3f} s")
    print(f"  parse / jaxlib parse        {parsing / baseline:8.1f}")
    print(f"  parse + maps / jaxlib parse {(parsing + mapping) / baseline:8.1f}")
    print(f"  maps --all / jaxlib parse   {command / baseline:8.1f}")


def main(arguments: list[str]) -> None:
    """Measure the given modules, each in a new process, or the largest example."""
    if len(arguments) > 1:
        for argument in arguments:
            subprocess.run([sys.executable, "-m", "benchmarks.maps", argument], check=True)
        return
    largest = max(EXAMPLES.glob("*.hlo"), key=lambda path: path.stat().st_size)
    measure(Path(arguments[0]) if arguments else largest)


if __name__ == "__main__":
    main(sys.argv[1:])

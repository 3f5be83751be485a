"""Time and memory of the main job: parse a module, and all its output-to-input maps, simplified.

    python -m benchmarks.maps [FILE...]

Everything but the command ``maps --all`` runs in one process. The yardstick is jaxlib's C++ parser
on the same text in the same run; it comes last, so that its memory is not counted as ours. Without
jaxlib the ratios are left out. Without FILE the largest module of ``examples/`` is measured.
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
KILOBYTE = 1024 if sys.platform == "darwin" else 1  # ru_maxrss counts bytes there, kB elsewhere


def peak_kilobytes() -> int:
    """The most memory this process has held so far, in kB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // KILOBYTE


def timed(action: Callable[[], T]) -> tuple[T, float]:
    """The result of `action` and the seconds it took."""
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


def all_maps(module: Module) -> Counter[str]:
    """Simplify all maps of every output of every instruction; how many answers of each kind."""
    seen: Counter[str] = Counter()
    for instruction in module.instructions:
        for output in range(len(leaves(instruction.shape))):
            answer = indexing.output_to_input(instruction, output_id=output)
            for maps, unknown in zip(answer.maps, answer.unknown, strict=True):
                for found in maps:
                    found.simplify()
                seen["maps"] += len(maps)
                seen["unknown"] += unknown is not None
    return seen


def all_by_command(path: Path) -> None:
    """``hlo-indexing maps --all`` in a process of its own: start, parse, maps, and JSON of all."""
    command = [sys.executable, "-m", "indexing.cli", "maps", "--all", "--format", "json"]
    subprocess.run([*command, str(path)], check=True, stdout=subprocess.DEVNULL)


def jaxlib_seconds(text: str, repeat: int = 3) -> float | None:
    """Best time of jaxlib's C++ parser on `text`; None where jaxlib is missing or refuses it."""
    try:
        from jaxlib import _hlo
    except ImportError:
        return None
    try:
        return min(timed(lambda: _hlo.hlo_module_from_text(text))[1] for _ in range(repeat))
    except RuntimeError:
        return None


def measure(path: Path) -> None:
    """Print the figures of one module."""
    import_module("indexing.ops")  # not part of what is measured
    before = peak_kilobytes()
    module, parsing = timed(lambda: hlo.load(path))
    seen, mapping = timed(lambda: all_maps(module))
    peak = peak_kilobytes()
    command = timed(lambda: all_by_command(path))[1]
    yardstick = jaxlib_seconds(module.source.text)

    count = sum(1 for _ in module.instructions)
    print(f"{path.name}: {count} instructions, {seen['maps']} maps, {seen['unknown']} unknown")
    print(f"  parse            {parsing:8.3f} s   {count / parsing:10.0f} instructions/s")
    print(f"  maps             {mapping:8.3f} s   {count / mapping:10.0f} instructions/s")
    print(f"  maps --all       {command:8.3f} s   {count / command:10.0f} instructions/s")
    print(f"  peak memory      {peak / 1024:8.1f} MB  {peak / count:10.2f} kB/instruction")
    grown = peak - before
    print(f"  of it data       {grown / 1024:8.1f} MB  {grown / count:10.2f} kB/instruction")
    if yardstick is None:
        print("  jaxlib is not installed or refuses this text: no ratios (pip install 'jax')")
        return
    print(f"  jaxlib parse     {yardstick:8.3f} s")
    print(f"  parse / jaxlib parse        {parsing / yardstick:8.1f}")
    print(f"  parse + maps / jaxlib parse {(parsing + mapping) / yardstick:8.1f}")
    print(f"  maps --all / jaxlib parse   {command / yardstick:8.1f}")


def main(arguments: list[str]) -> None:
    """Measure the modules named, each in a process of its own, or the largest example."""
    if len(arguments) > 1:
        for argument in arguments:
            subprocess.run([sys.executable, "-m", "benchmarks.maps", argument], check=True)
        return
    largest = max(EXAMPLES.glob("*.hlo"), key=lambda path: path.stat().st_size)
    measure(Path(arguments[0]) if arguments else largest)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Time of one question, from the start of the process to its answer, relative to jaxlib's parser.

    python -m benchmarks.question [FILE [NAME]]

Each question runs in a new process with compiled modules, as those of an installed package are.
The questions about instruction NAME alternate with jaxlib's parser on the same text, so that other
load on the machine affects both. The target is 3 times jaxlib's parser and 0.3 s. Without FILE, the
largest module of ``examples/`` is measured; without NAME, its last instruction that calls a
computation.

Outlines of modules are cached, except where `--no-cache` is given. The same question about a module
of two instructions shows what the start of the command takes.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import hlo
from benchmarks.environment import cached_bytecode
from benchmarks.examples import EXAMPLES, largest_example
from benchmarks.parse import jaxlib_seconds
from hlo.formats.files import read_text

REPEAT: Final = 3
STARTUP: Final = 0.3  # seconds of the target that do not depend on the text
TIMES_JAXLIB: Final = 3

TINY: Final = "maps -i NAME of a tiny module"
CACHED: Final = "maps -i NAME, cached outline"
TINY_MODULE: Final = "ENTRY e { p = f32[5] parameter(0) ROOT n = f32[5] negate(p) }"

PYTHON: Final = """
import hlo, indexing
module = hlo.load({file!r})
print(indexing.output_to_input(module.find({name!r})[0]))
"""


def questions(file: str, name: str, tiny: Path) -> Mapping[str, list[str]]:
    """Return the command of each question; `tiny` is the file of `TINY_MODULE`."""
    cached = [sys.executable, "-m", "indexing.cli", "maps", file, "-i", name]
    maps = [*cached[:-2], "--no-cache", *cached[-2:]]
    return {
        "start of Python": [sys.executable, "-c", "import numpy"],
        "hlo-indexing --help": [sys.executable, "-m", "indexing.cli", "--help"],
        TINY: [*cached[:4], str(tiny), "-i", "n"],
        CACHED: cached,
        "maps -i NAME": maps,
        "maps -i NAME --to parameters": [*maps, "--to", "parameters"],
        "maps -i NAME of none": [*maps[:-1], f"{name}.none"],
        "maps -i GLOB": [*maps[:-1], f"{name[:-1]}?"],
        "maps --reads NAME --limit 1": [*maps[:-2], "--reads", name, "--limit", "1"],
        "hlo.load, output_to_input": [
            sys.executable,
            "-c",
            PYTHON.format(file=file, name=name),
        ],
    }


def seconds(command: list[str], environment: Mapping[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, capture_output=True, check=False, env=environment)
    return time.perf_counter() - start


def default_name(file: str) -> str:
    """Return the last instruction of the entry computation that calls another computation."""
    calls = [i.name for i in hlo.load(file).entry if i.called_computations]
    return calls[-1]


def measure(file: str, name: str) -> tuple[dict[str, float], float | str]:
    """Return the shortest time of each question, and that of jaxlib's parser."""
    with cached_bytecode() as variables, TemporaryDirectory() as folder:
        environment = {**variables, "XDG_CACHE_HOME": folder}
        tiny = Path(folder, "tiny.hlo")
        tiny.write_text(TINY_MODULE)
        for command in questions(str(EXAMPLES / "layernorm.opt.hlo"), "*", tiny).values():
            seconds(command, environment)  # compiles the modules
        seconds(questions(file, name, tiny)[CACHED], environment)  # stores the outline
        return _measure(file, name, tiny, environment)


def _measure(
    file: str, name: str, tiny: Path, environment: Mapping[str, str]
) -> tuple[dict[str, float], float | str]:
    text = read_text(file)
    times: dict[str, list[float]] = {}
    actions: dict[str, Callable[[], float]] = {
        question: lambda command=command: seconds(command, environment)  # type: ignore[misc]
        for question, command in questions(file, name, tiny).items()
    }
    jaxlib: list[float] = []
    for _ in range(REPEAT):
        if isinstance(parsed := jaxlib_seconds(text, repeat=1), str):
            return {question: min(each) for question, each in times.items()}, parsed
        jaxlib.append(parsed)
        for question, action in actions.items():
            times.setdefault(question, []).append(action())
    return {question: min(each) for question, each in times.items()}, min(jaxlib)


def main(arguments: list[str]) -> None:
    """Measure the questions about one file."""
    file = arguments[0] if arguments else str(largest_example())
    name = arguments[1] if len(arguments) > 1 else default_name(file)
    times, jaxlib = measure(file, name)
    print(f"{Path(file).name}: {name}")
    if isinstance(jaxlib, str):
        print(f"  unknown: {jaxlib}")
        return
    target = TIMES_JAXLIB * jaxlib + STARTUP
    print(f"  {'jaxlib parses the text':32} {jaxlib:8.3f} s; the target is {target:.3f} s")
    print(f"  cached outline / tiny module     {times[CACHED] / times[TINY]:8.2f}")
    for question, time_ in times.items():
        share = f"{time_ / target:.2f} of the target"
        print(f"  {question:32} {time_:8.3f} s, {(time_ - STARTUP) / jaxlib:5.2f} x, {share}")


if __name__ == "__main__":
    main(sys.argv[1:])

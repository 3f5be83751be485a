"""Times relative to named peers, with interpreted and compiled modules, as a table of Markdown.

    python -m benchmarks.speed FILE

FILE is a module that jaxlib parses, such as that of `benchmarks.gpt2`. Times and those of the peer
are measured in the same run: parsing and maps beside jaxlib's parser of the same text, and
simplification beside MLIR's affine maps, as geometric means over the problems of
`benchmarks.problems`. The column of compiled modules is empty before `make compiled`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

from benchmarks.environment import environment
from benchmarks.figures import COMPILED, ROOT
from benchmarks.history import store
from benchmarks.maps import measure_module
from benchmarks.parse import measure
from benchmarks.peers import Mlir, OurExpressions, Ours
from benchmarks.problems import NAMED
from benchmarks.question import default_name
from benchmarks.question import measure as questions
from benchmarks.simplify import mean, measure_speed
from indexing.cli.build import build

REPEAT: Final = 5
JAXLIB: Final = "jaxlib's parser"
MLIR: Final = "MLIR's affine maps"

Ratios = dict[str, tuple[str, float]]  # what is measured -> its peer, and the ratio to it


def of_module(path: Path) -> Ratios:
    """Return the ratios of one module to jaxlib's parser."""
    result = measure_module(path)
    if isinstance(result.jaxlib, str):
        raise SystemExit(f"error: {result.jaxlib}")
    parsing = measure(path)
    assert isinstance(parsing.jaxlib, float)
    name = default_name(str(path))
    times, jaxlib = questions(str(path), name)
    assert isinstance(jaxlib, float)
    return {
        "parse": (JAXLIB, parsing.parsing / parsing.jaxlib),
        "parse and all maps": (JAXLIB, (result.parsing + result.mapping) / result.jaxlib),
        "`maps --all`, from its start": (JAXLIB, result.command / result.jaxlib),
        "`maps -i NAME`, from its start": (JAXLIB, times["maps -i NAME"] / jaxlib),
        "`maps -i NAME --to parameters`, from its start": (
            JAXLIB,
            times["maps -i NAME --to parameters"] / jaxlib,
        ),
    }


def of_problems() -> Ratios:
    """Return the ratios of simplification to MLIR."""
    problems = [problem for family in NAMED.values() for problem in family]
    times = {
        name: mean(each)
        for name, each in measure_speed(
            [Ours(), OurExpressions(), Mlir()], problems, REPEAT
        ).items()
    }
    return {
        f"{what}, {state}": (
            f"{MLIR}, {state}",
            times[f"{name}, {state}"] / times[f"{Mlir.name}, {state}"],
        )
        for what, name in (
            ("compose and simplify expressions", OurExpressions.name),
            ("maps with domains", Ours.name),
        )
        for state in ("cold", "warm")
    }


def by_build(path: Path) -> dict[str, Ratios]:
    """Return the ratios with interpreted modules, and with compiled ones if they were built."""
    folders = {"interpreted": ROOT, "compiled": COMPILED}
    ratios: dict[str, Ratios] = {}
    for folder in (each for each in folders.values() if each.is_dir()):
        command = [sys.executable, "-m", "benchmarks.speed", "--json", str(path.resolve())]
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
        name, rows = json.loads(done.stdout)
        ratios[name] = rows
    return ratios


def main(arguments: list[str]) -> None:
    """Print the table, or with --json the ratios of this build."""
    path = Path(arguments[-1])
    if arguments[0] == "--json":
        print(json.dumps([build(), of_module(path) | of_problems()]))
        return
    ratios = by_build(path)
    store(environment(), ratios)
    print("| | peer | interpreted | compiled |\n|---|---|---:|---:|")
    compiled = ratios.get("compiled", {})
    for what, (peer, ratio) in ratios["interpreted"].items():
        other = f"{compiled[what][1]:.2g}" if what in compiled else ""
        print(f"| {what} | {peer} | {ratio:.2g} | {other} |")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Traffic and operations of modules beside those of XLA's ``HloCostAnalysis`` (extra ``[xla]``).

    python -m benchmarks.cost_analysis [FILE...]

Without FILE, the modules of ``examples/`` are compared.  `docs/memory.md` explains the differences.
A module that contains computations for other backends may be refused by the installed jaxlib.
"""

from __future__ import annotations

import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import hlo
from benchmarks.examples import EXAMPLES
from indexing.memory import traffic
from indexing.memory.movement.amounts import TotalBounds, Totals
from indexing.views.tables import align_columns

HEAD: Final = ["module", "bytes", "XLA", "flops", "XLA", "transcendentals", "XLA", "s"]


def cost_analysis(text: str) -> dict[str, float] | str:
    """Return XLA's figures of a module, or why XLA refuses it."""
    client = import_module("jax").devices("cpu")[0].client
    try:
        module = import_module("jaxlib._hlo").hlo_module_from_text(text)
    except RuntimeError as error:
        return str(error).splitlines()[0]
    analysis: Any = import_module("jaxlib._jax").hlo_module_cost_analysis
    costs: dict[str, float] = analysis(client, module)
    return costs


def cells(file: Path) -> list[str]:
    """Return the row of one module."""
    text = file.read_text()
    start = time.process_time()
    total: Totals = traffic(hlo.parse(text, str(file))).total
    seconds = f"{time.process_time() - start:.1f}"
    costs = cost_analysis(text)
    if isinstance(costs, str):
        return [file.stem, str(total.bytes), costs, str(total.flops), "", "", "", seconds]

    def pair(ours: TotalBounds, key: str) -> list[str]:
        theirs = costs.get(key, 0.0)
        return [str(ours), "same" if ours.number == theirs else f"{theirs:,.0f}"]

    return [
        file.stem,
        *pair(total.bytes, "bytes accessed"),
        *pair(total.flops, "flops"),
        *pair(total.transcendentals, "transcendentals"),
        seconds,
    ]


def main(arguments: list[str]) -> None:
    """Print a row for each module."""
    files = [Path(each) for each in arguments] or sorted(EXAMPLES.glob("*.hlo"))
    for line in align_columns([HEAD, *map(cells, files)], right=range(1, 8)):
        print(line)


if __name__ == "__main__":
    main(sys.argv[1:])

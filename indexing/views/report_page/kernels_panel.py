"""The kernels of a module for a page: verdicts, launches and sectors, as ``kernels`` has them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from hlo.modules.module import Instruction
from hlo.text.names import counted_noun
from hlo.text.source import HloError
from indexing.equivalence.dumps import ModuleDumps
from indexing.kernels.dumps import module_kernels
from indexing.kernels.kernel import Kernel
from indexing.views.kernel_tables import (
    KernelResult,
    checked_kernel,
    launch_cells,
    sector_cells,
    sector_reasons,
)

KERNEL_COLUMNS: Final = (
    *("fusion", "kind", "verdict", "blocks", "threads", "shared bytes"),
    *("loaded", "ideal", "%", "stored", "ideal", "%"),
)


def kernels_panel(
    kernels: Sequence[Kernel], numbers: Mapping[Instruction, int]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the kernels of a module as a value for JSON, and the errors in their texts.

    Args:
        kernels: those of the dumps of the module, whose instructions may be of another object.
        numbers: the numbers of the instructions in the page.
    """
    places = {(i.computation.name, i.name): number for i, number in numbers.items()}
    results = [checked_kernel(kernel) for kernel in kernels]
    words = Counter([result.word for result in results])
    counts = [f"{words[word]} {word}" for word in ("proved", "undecided", "differs") if words[word]]
    panel = {
        "columns": KERNEL_COLUMNS,
        "title": f"{counted_noun(len(results), 'kernel')}: {', '.join(counts)}",
        "rows": [[_place(result, places), result.word, *_cells(result)] for result in results],
        "notes": [note for result in results for note in _notes(result)],
        "device": results[0].device if results else None,
    }
    return panel, tuple([str(result.fault) for result in results if result.fault is not None])


def dumped_kernels(dumps: ModuleDumps, max_bytes: int) -> tuple[tuple[Kernel, ...], str]:
    """Return the kernels that XLA dumped with a module, and the error in the text of the module.

    Raises:
        OSError: a dump cannot be read.
    """
    last = dumps.dumps[-1]
    folder = os.fspath(last.path.parent)
    modules = module_kernels(folder, os.path.join(folder, last.module), max_bytes=max_bytes)
    try:
        return tuple([kernel for _, own in modules for kernel in own]), ""
    except HloError as error:
        return (), str(error)


def _place(result: KernelResult, places: Mapping[tuple[str, str], int]) -> int | None:
    fusion = result.kernel.fusion
    return None if fusion is None else places.get((fusion.computation.name, fusion.name))


def _cells(result: KernelResult) -> list[str]:
    kernel = result.kernel
    shared = kernel.shared_bytes
    return [
        kernel.name if kernel.fusion is None else kernel.fusion.name,
        kernel.kind if result.fault is None else "",
        result.word,
        *launch_cells(result),
        "" if shared is None else f"{shared:,}",
        *sector_cells(result),
    ]


def _notes(result: KernelResult) -> list[str]:
    name = result.kernel.name
    verdict = [] if result.word == "proved" else [f"{name}: {result.verdict}"]
    return [*verdict, *[f"{name}: no sectors: {reason}" for reason in sector_reasons(result)]]

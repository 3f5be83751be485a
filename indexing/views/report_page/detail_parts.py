"""The details of all instructions of a module, made here or, in parts, by other processes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, TypeAlias

from hlo.modules.module import Module
from indexing.views.report_page.details import Details
from indexing.views.report_page.structure import numbers_of

ModuleDetails: TypeAlias = "list[tuple[dict[str, Any], list[str] | None]]"
"""The details of instructions, and the kinds of their maps; None without maps."""

PARTS: Final = 8
"""Number of parts for each process: the instructions of some parts take longer than others."""


@dataclass(frozen=True, slots=True)
class DetailPart:
    """A range of the instructions of a module, for another process.

    Attributes:
        load: returns the module, such as from its file; the same object if it is called again.
        digest: that of the text of the module.
        tiled: the numbers of the instructions with tiles.
        is_mapped: as of `Details`.
        start, stop: the range of numbers.
    """

    load: Callable[[], Module]
    digest: str
    tiled: frozenset[int]
    is_mapped: bool
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class DetailWorkers:
    """Processes that make details.

    Attributes:
        jobs: their number.
        results: calls a function of a module for each part, in other processes, and yields the
            results in order; anything but a list stands for a part without a result.
        load: as of `DetailPart`, for a module of this process.
    """

    jobs: int
    results: Callable[[Callable[[DetailPart], Any], Sequence[DetailPart]], Generator[Any]]
    load: Callable[[Module], Callable[[], Module]]


def module_details(
    module: Module, details: Details, workers: DetailWorkers | None
) -> Iterator[dict[str, Any]]:
    """Yield the details of each instruction, in the order of the numbers; fill ``details.kinds``.

    A part that another process does not answer is made here.
    """
    instructions = list(numbers_of(module))
    if workers is None:
        yield from map(details.of, instructions)
        return
    tiled = frozenset([k for k, each in enumerate(instructions) if each in details.tiled])
    count = min(PARTS * workers.jobs, len(instructions))
    bounds = [k * len(instructions) // count for k in range(count + 1)] if count else [0]
    load, digest = workers.load(module), module.source.digest
    parts = [
        DetailPart(load, digest, tiled, details.is_mapped, start, stop)
        for start, stop in pairwise(bounds)
    ]
    with closing(workers.results(part_details, parts)) as results:
        for part, made in zip(parts, results, strict=True):
            own = instructions[part.start : part.stop]
            if not isinstance(made, list):
                yield from map(details.of, own)
                continue
            for instruction, (values, kinds) in zip(own, made, strict=True):
                if kinds is not None:
                    details.kinds[instruction] = kinds
                yield values


def part_details(part: DetailPart) -> ModuleDetails | None:
    """Return the details of a part; None if its file has changed."""
    module = part.load()
    details, digest = _details(module, part.tiled, part.is_mapped)
    if digest != part.digest:
        return None
    own = list(numbers_of(module))[part.start : part.stop]
    return [(details.of(each), details.kinds.get(each)) for each in own]


@lru_cache(maxsize=1)
def _details(module: Module, tiled: frozenset[int], is_mapped: bool) -> tuple[Details, str]:
    instructions = list(numbers_of(module))
    chosen = frozenset([each for k, each in enumerate(instructions) if k in tiled])
    return Details(chosen, is_mapped), module.source.digest

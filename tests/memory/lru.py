"""An LRU simulator over the addresses that tiles touch, and loop nests that record their accesses.

It shares no code with `indexing.memory.caches`: addresses are computed element by element, and the
cache is a dictionary in the order of touches.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

import hlo
from hlo.shapes.shape import Shape
from hlo.shapes.tiling import position_of
from indexing import Region, Tiling
from indexing.codegen.nest import LoopNest

Touch = tuple[str, int, int]
"""An array, the number of a line, and the bits of a line."""


def misses(touches: Iterable[Touch], capacity: int) -> Counter[str]:
    """The misses of each array in a cache that evicts the line touched least recently."""
    cache: OrderedDict[tuple[str, int], int] = OrderedDict()
    missed: Counter[str] = Counter()
    held = 0
    for array, line, bits in touches:
        key = (array, line)
        if key in cache:
            cache.move_to_end(key)
            continue
        missed[array] += 1
        cache[key] = bits
        held += bits
        while held > 8 * capacity:
            _, evicted = cache.popitem(last=False)
            held -= evicted
    return missed


def lines_of(shape: Shape, elements: Iterable[Sequence[int]], line: int | None) -> list[int]:
    """The lines with a bit of one of the elements, each once, in the order of addresses."""
    bits = shape.element_bits
    width = bits if line is None else 8 * line
    touched: set[int] = set()
    for element in elements:
        start = int(position_of(element, shape.dims, shape.layout_or_default)) * bits
        touched.update(range(start // width, (start + bits - 1) // width + 1))
    return sorted(touched)


def touches_of(
    accesses: Iterable[tuple[str, Shape, Iterable[Sequence[int]]]], line: int | None
) -> Iterator[Touch]:
    """The touches of one tile: each line once for each access."""
    for name, shape, elements in accesses:
        width = shape.element_bits if line is None else 8 * line
        for number in lines_of(shape, elements, line):
            yield name, number, width


# ---------------------------------------------------------------- by the regions of a tiling


def tile_accesses(
    tiling: Tiling, index: Sequence[int]
) -> list[tuple[str, Shape, list[tuple[int, ...]]]]:
    """The elements that a tile reads and writes, from its regions."""
    own = np.indices(tiling.shape.dims).reshape(len(tiling.shape.dims), -1).T
    inside = [
        tuple(e)
        for e in own.tolist()
        if all(i // size == t for i, size, t in zip(e, tiling.sizes, index, strict=True))
    ]
    accesses = []
    for operand, region in zip(tiling.operands, tiling.at(*index), strict=True):
        assert isinstance(region, Region)
        elements = region.elements()
        assert isinstance(elements, np.ndarray)
        accesses.append((operand.instruction.name, operand.shape, list(map(tuple, elements))))
    result = (tiling.instruction.name, tiling.shape, inside)
    if tiling.direction == "output-to-input":
        return [*accesses, result]
    operand = tiling.instruction.operands[tiling.answer.domain_id]
    return [(operand.name, tiling.shape, inside), *accesses]


# ---------------------------------------------------------------- by instrumented loops


class Recorder:
    """An array that records the indices of its reads and writes."""

    def __init__(self, name: str, values: Any, log: list[tuple[str, str, tuple[int, ...]]]) -> None:
        self.name, self.values, self.log = name, values, log

    def __getitem__(self, index: Any) -> Any:
        self.log.append(("read", self.name, index if isinstance(index, tuple) else (index,)))
        return self.values[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.log.append(("write", self.name, index if isinstance(index, tuple) else (index,)))
        self.values[index] = value


def record(nest: LoopNest, arrays: Sequence[Any]) -> list[tuple[str, str, tuple[int, ...]]]:
    """Execute the Python loops of a nest, and return its reads and writes in their order."""
    log: list[tuple[str, str, tuple[int, ...]]] = []
    names = [buffer.name for buffer in nest.inputs]
    instrumented = SimpleNamespace(**vars(np))
    instrumented.empty = lambda dims, dtype: Recorder("out", np.empty(dims, dtype), log)
    scope: dict[str, Any] = {"np": instrumented}
    exec(nest.source, scope)  # the program under test
    inputs = [Recorder(name, a, log) for name, a in zip(names, arrays, strict=True)]
    result = scope[nest.name](*inputs)
    assert np.array_equal(result.values, nest.run(*arrays))
    return log


TileReads = dict[tuple[int, ...], dict[str, set[tuple[int, ...]]]]


def reads_of_tiles(nest: LoopNest, arrays: Sequence[Any], sizes: Sequence[int]) -> TileReads:
    """The elements of each array that the loops read and write for each tile.

    A read belongs to the tile of the element of the result that is written next.
    """
    reads: TileReads = {}
    pending: list[tuple[str, tuple[int, ...]]] = []
    for kind, name, index in record(nest, arrays):
        if kind == "read":
            pending.append((name, index))
            continue
        tile = tuple([i // size for i, size in zip(index, sizes, strict=True)])
        own = reads.setdefault(tile, {})
        for array, at in [*pending, ("out", index)]:
            own.setdefault(array, set()).add(at)
        pending.clear()
    return reads


def program_touches(
    root: hlo.Instruction, reads: TileReads, tiles: Iterable[Sequence[int]], line: int | None
) -> Iterator[Touch]:
    """The touches of a program that computes one tile after the other."""
    shapes = {operand.name: operand.shape for operand in root.operands}
    for index in tiles:
        own = reads.get(tuple(index), {})
        accesses = []
        for operand in root.operands:
            shape = shapes[operand.name]
            assert isinstance(shape, Shape)
            accesses.append((operand.name, shape, own.get(operand.name, set())))
        assert isinstance(root.shape, Shape)
        accesses.append((root.name, root.shape, own["out"]))
        yield from touches_of(accesses, line)

"""The oracle: facts about a kernel by enumeration of its grid, in plain Python.

It shares no code with the package: blocks are boxes, arrays are sets of index tuples.
"""

from __future__ import annotations

from itertools import combinations, permutations, product
from math import prod
from typing import Any

import numpy as np

from tests.pallas.kernels import Kernel, Operand

Box = tuple[tuple[int, int], ...]

BITS = {"float32": 32, "bfloat16": 16, "int8": 8, "int32": 32, "bool": 8, "float16": 16}


def steps(grid: tuple[int, ...]) -> list[tuple[int, ...]]:
    return list(product(*[range(n) for n in grid]))


def size_of(each: Any) -> int:
    if each is None:
        return 1
    return int(each[0]) if isinstance(each, tuple) else int(each)


def box(operand: Operand, step: tuple[int, ...], scalars: tuple[Any, ...] = ()) -> Box:
    """Return the first element and the end of a block in each dimension."""
    if operand.space == "any":
        return tuple((0, n) for n in operand.shape)
    index = operand.index_map(*step, *scalars)
    bounds = []
    for each, i in zip(operand.block, index, strict=True):
        i = int(i)
        if each is None:
            start = i
        elif isinstance(each, tuple):
            start = i - (each[1] if len(each) > 1 else 0)
        else:
            start = i * each
        bounds.append((start, start + size_of(each)))
    return tuple(bounds)


def is_legal(operand: Operand, block: Box) -> bool:
    for each, n, (low, end) in zip(operand.block, operand.shape, block, strict=True):
        if isinstance(each, tuple):
            before, after = each[1:] if len(each) > 1 else (0, 0)
            if low < -before or end > n + after:
                return False
        elif not 0 <= low < n:
            return False
    return True


def clip(operand: Operand, block: Box) -> Box:
    return tuple((max(a, 0), min(b, n)) for (a, b), n in zip(block, operand.shape, strict=True))


def elements(operand: Operand, block: Box) -> set[tuple[int, ...]]:
    return set(product(*[range(a, b) for a, b in clip(operand, block)]))


def volume(block: Box) -> int:
    return prod(max(0, b - a) for a, b in block)


def meet(first: Box, second: Box) -> bool:
    pairs = zip(first, second, strict=True)
    return all(max(a, c) < min(b, d) for (a, b), (c, d) in pairs)


def bounds(operand: Operand, blocks: list[Box]) -> str:
    if not all(is_legal(operand, b) for b in blocks):
        return "out"
    return "inside" if all(clip(operand, b) == b for b in blocks) else "padded"


def overhang(operand: Operand, blocks: list[Box]) -> tuple[int, ...]:
    return tuple(
        max([0, *[max(-a, b - n) for a, b in (block[k] for block in blocks)]])
        for k, n in enumerate(operand.shape)
    )


def moves(operand: Operand, blocks: list[Box], is_output: bool) -> tuple[int, int]:
    """Return the copies in, or the writes back, and their bytes."""
    if operand.space == "any":
        return 0, 0
    moved = [
        b
        for k, b in enumerate(blocks)
        if (
            k + 1 == len(blocks) or blocks[k + 1] != b
            if is_output
            else k == 0 or blocks[k - 1] != b
        )
    ]
    total = sum(volume(clip(operand, b)) for b in moved)
    return len(moved), total * BITS[operand.dtype] // 8


def is_covered(operand: Operand, blocks: list[Box]) -> bool:
    visited = np.zeros(operand.shape, bool)
    for block in blocks:
        visited[tuple(slice(max(a, 0), max(b, 0)) for a, b in block)] = True
    return bool(visited.all())


def visits(operand: Operand, blocks: list[Box]) -> str:
    places: dict[Box, list[int]] = {}
    for k, block in enumerate(blocks):
        places.setdefault(block, []).append(k)
    if any(at[-1] - at[0] >= len(at) for at in places.values()):
        return "apart"
    inside = [clip(operand, block) for block in places]
    if any(meet(a, b) for a, b in combinations(inside, 2)):
        return "overlap"
    return "once" if all(len(at) == 1 for at in places.values()) else "consecutive"


def is_parallel(kernel: Kernel, k: int) -> bool:
    if kernel.target != "tpu":
        return True
    return kernel.semantics is not None and kernel.semantics[k] == "parallel"


def race(kernel: Kernel, operand: Operand, blocks: list[Box]) -> bool:
    inside = [clip(operand, b) for b in blocks]
    every = list(zip(steps(kernel.grid), inside, strict=True))
    return any(
        meet(a, b)
        for (p, a), (q, b) in combinations(every, 2)
        if any(x != y and is_parallel(kernel, k) for k, (x, y) in enumerate(zip(p, q, strict=True)))
    )


def hazard(kernel: Kernel, source: Operand, reads: list[Box], writes: list[Box]) -> bool:
    order = steps(kernel.grid)
    for r, w in product(range(len(order)), repeat=2):
        if not meet(clip(source, reads[r]), clip(source, writes[w])):
            continue
        apart = any(
            x != y and is_parallel(kernel, k)
            for k, (x, y) in enumerate(zip(order[r], order[w], strict=True))
        )
        copies_in = r == 0 or reads[r] != reads[r - 1]
        if apart or (copies_in and w < r):
            return True
    return False


def best_bytes(kernel: Kernel) -> int | None:
    """Return the fewest bytes over all orders of the grid with consecutive visits."""
    best: int | None = None
    for order in permutations(range(len(kernel.grid))):
        sizes = tuple(kernel.grid[k] for k in order)
        at = []
        for permuted in steps(sizes):
            step = [0] * len(order)
            for k, i in zip(order, permuted, strict=True):
                step[k] = i
            at.append(tuple(step))
        total = 0
        legal = True
        for operand in (*kernel.inputs, *kernel.outputs):
            blocks = [box(operand, p) for p in at]
            is_output = operand in kernel.outputs
            total += moves(operand, blocks, is_output)[1]
            if is_output and operand.space != "any" and not operand.may_revisit:
                legal = legal and visits(operand, blocks) != "apart"
        if legal and (best is None or total < best):
            best = total
    return best


def padded_elements(sizes: tuple[int, ...], dtype: str) -> int:
    bits = 32 if dtype == "bool" else BITS[dtype]
    rows = {32: 8, 16: 16, 8: 32}[bits]
    sizes = (1, 1, *sizes)
    second, last = sizes[-2:]
    second, last = second + -second % rows, last + -last % 128
    return prod(sizes[:-2]) * second * last * bits // 8


def vmem(kernel: Kernel) -> int:
    total = 0
    for operand in (*kernel.inputs, *kernel.outputs):
        if operand.space:
            continue
        count = operand.buffers or (1 if operand.may_revisit else 2)
        if not kernel.grid or is_whole(kernel, operand):
            count = 1
        total += count * padded_elements(tuple(map(size_of, operand.block)), operand.dtype)
    return total + sum(padded_elements(shape, dtype) for shape, dtype in kernel.scratch)


def is_whole(kernel: Kernel, operand: Operand) -> bool:
    """True for the array itself, with literal zeros: strings in place of program ids show them."""
    if tuple(map(size_of, operand.block)) != operand.shape:
        return False
    try:
        return list(operand.index_map(*["id"] * len(kernel.grid))) == [0] * len(operand.shape)
    except TypeError:
        return False


def facts(kernel: Kernel) -> dict[Any, Any]:
    """Return all facts about a kernel without scalars, by operand and name."""
    order = steps(kernel.grid)
    result: dict[Any, Any] = {"vmem": vmem(kernel), "bytes": 0}
    blocks = {o: [box(o, p) for p in order] for o in (*kernel.inputs, *kernel.outputs)}
    for number, operand in enumerate((*kernel.inputs, *kernel.outputs)):
        is_output = number >= len(kernel.inputs)
        own = blocks[operand]
        result[number, "bounds"] = bounds(operand, own)
        result[number, "moves"] = moves(operand, own, is_output)
        result["bytes"] += moves(operand, own, is_output)[1]
        if result[number, "bounds"] != "out":
            result[number, "overhang"] = overhang(operand, own)
        if is_output:
            result[number, "covered"] = is_covered(operand, own)
            result[number, "visits"] = visits(operand, own)
            result[number, "race"] = race(kernel, operand, own)
    for i, o in kernel.aliases:
        source, output = kernel.inputs[i], kernel.outputs[o]
        result[len(kernel.inputs) + o, "hazard"] = hazard(
            kernel, source, blocks[source], blocks[output]
        )
    return result

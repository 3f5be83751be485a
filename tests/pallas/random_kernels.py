"""Random small kernels: index maps of sums, %, //, clip, minima, selections and products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from tests.pallas.kernels import Kernel, Operand, clip, minimum, where

Term = Callable[..., Any]


def random_term(random: Random, grid: tuple[int, ...]) -> tuple[Term, str]:
    """Return a function of the program ids, and its text."""
    a, b = random.randrange(len(grid)), random.randrange(len(grid))
    n, m = max(grid[a], 1), random.randrange(1, 4)
    choices: list[tuple[Term, str]] = [
        (lambda *p: p[a], f"p{a}"),
        (lambda *p: p[a], f"p{a}"),
        (lambda *p: p[a], f"p{a}"),
        (lambda *p: 0, "0"),
        (lambda *p: m, f"{m}"),
        (lambda *p: p[a] + p[b], f"p{a} + p{b}"),
        (lambda *p: p[a] * m, f"p{a} * {m}"),
        (lambda *p: p[a] // m, f"p{a} // {m}"),
        (lambda *p: p[a] % m, f"p{a} % {m}"),
        (lambda *p: (p[a] - 1) // (m + 1), f"(p{a} - 1) // {m + 1}"),
        (lambda *p: (p[a] - p[b]) % (m + 1), f"(p{a} - p{b}) % {m + 1}"),
        (lambda *p: n - 1 - p[a], f"{n - 1} - p{a}"),
        (lambda *p: p[a] * grid[b] + p[b], f"p{a} * {grid[b]} + p{b}"),
        (lambda *p: clip(p[a] - 1, 0, m), f"clip(p{a} - 1, 0, {m})"),
        (lambda *p: minimum(p[a] + 1, m), f"min(p{a} + 1, {m})"),
        (lambda *p: minimum(p[a], p[b]), f"min(p{a}, p{b})"),
        (
            lambda *p: where(p[b] % 2 == 0, p[a], n - 1 - p[a]),
            f"where(p{b} % 2 == 0, p{a}, {n - 1} - p{a})",
        ),
        (lambda *p: where(p[a] > p[b], p[a], p[b]), f"where(p{a} > p{b}, p{a}, p{b})"),
        (lambda *p: p[a] * p[b], f"p{a} * p{b}"),
    ]
    return random.choice(choices)


def random_operand(random: Random, grid: tuple[int, ...], is_tight: bool) -> Operand:
    """Return an operand; if `is_tight`, its array ends near its last block."""
    rank = random.randrange(1, 4)
    terms = [random_term(random, grid)[0] for _ in range(rank)]
    block: list[Any] = []
    for _ in range(rank):
        kind = random.randrange(8)
        size = random.choice([1, 2, 3, 4])
        if kind == 0:
            block.append(None)
        elif kind == 1:
            low, high = random.choice([(0, 0), (1, 2), (2, 0)])
            block.append((size, low, high))
        else:
            block.append(size)

    steps = [random.choice([1, 2, 3]) if isinstance(b, tuple) else 1 for b in block]

    def index_map(*ids: Any) -> Any:
        return tuple(t(*ids) * s for t, s in zip(terms, steps, strict=True))

    shape = [random.choice([1, 3, 4, 6, 8]) for _ in range(rank)]
    if is_tight:
        from tests.pallas.enumeration import box
        from tests.pallas.enumeration import steps as every_step

        probe = Operand(tuple(shape), tuple(block), index_map)
        boxes = [box(probe, p) for p in every_step(grid)] or [tuple((0, n) for n in shape)]
        shape = [
            max(1, max(b[k][1] for b in boxes) + random.choice([0, 0, 0, -1, 1]))
            for k in range(rank)
        ]
    return Operand(tuple(shape), tuple(block), index_map, random.choice(["float32", "bfloat16"]))


def random_kernel(seed: int) -> Kernel:
    """Return a kernel, the same for the same seed."""
    random = Random(seed)
    rank = random.randrange(1, 4)
    grid = tuple(random.choice([1, 2, 3, 4, 5]) for _ in range(rank))
    inputs = tuple(
        random_operand(random, grid, random.random() < 0.8) for _ in range(random.randrange(1, 3))
    )
    output = random_operand(random, grid, random.random() < 0.8)
    aliases: tuple[tuple[int, int], ...] = ()
    if random.random() < 0.4:
        source = random_operand(random, grid, True)
        if len(source.shape) == len(output.shape):
            inputs = (*inputs, replace(source, shape=output.shape, dtype=output.dtype))
            aliases = ((len(inputs) - 1, 0),)
    semantics: tuple[str, ...] | None = None
    if random.random() < 0.7:
        semantics = tuple(random.choice(["parallel", "arbitrary"]) for _ in range(rank))
    return Kernel(f"random{seed}", grid, inputs, (output,), semantics, aliases)

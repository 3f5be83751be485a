"""Scalars, symbolic sizes and dynamic grids against the enumeration of their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from random import Random
from typing import Any

import pytest

from indexing.pallas import check
from indexing.pallas.report import BlockReport
from tests.oracles import sampled
from tests.pallas.enumeration import Box, bounds, box, facts, is_covered, race, steps, visits
from tests.pallas.kernels import Kernel, Operand, clip, minimum, where

pytest.importorskip("jax")

# ---------------------------------------------------------------- scalars

LENGTH, VALUES = 2, (0, 2)  # of the scalar array: its length, and its least and greatest values


def scalar_term(random: Random, grid: tuple[int, ...]) -> Callable[..., Any]:
    """Return an index of the program ids and of scalars."""
    a, b, m = random.randrange(len(grid)), random.randrange(len(grid)), random.randrange(1, 3)

    def read(ids: Any, s: Any) -> Any:
        return s[ids[a] % LENGTH]

    return random.choice(
        [
            lambda *p: read(p[:-1], p[-1]),
            lambda *p: read(p[:-1], p[-1]) + p[b],
            lambda *p: read(p[:-1], p[-1]) * 2 + p[b],
            lambda *p: clip(read(p[:-1], p[-1]) - 1 + p[b], 0, m),
            lambda *p: minimum(read(p[:-1], p[-1]), p[b]),
            lambda *p: (read(p[:-1], p[-1]) + p[b]) % (m + 1),
            lambda *p: where(p[-1][0] > p[b], p[a], p[b]),
            lambda *p: p[-1][1] // 2 + p[b],
            lambda *p: p[a],
            lambda *p: p[a] + p[b],
        ]
    )


def scalar_kernel(seed: int) -> Kernel:
    random = Random(seed)
    grid = tuple(random.choice([1, 2, 3]) for _ in range(random.randrange(1, 3)))

    def operand() -> Operand:
        rank = random.randrange(1, 3)
        terms = [scalar_term(random, grid) for _ in range(rank)]
        block = tuple(random.choice([None, 1, 2, (2,)]) for _ in range(rank))
        shape = tuple(random.choice([2, 3, 4, 6]) for _ in range(rank))
        return Operand(shape, block, lambda *p: tuple(t(*p) for t in terms))

    semantics = tuple(random.choice(["parallel", "arbitrary"]) for _ in grid)
    return Kernel("scalars", grid, (operand(),), (operand(),), semantics, scalars=((LENGTH,),))


def scalar_values() -> Iterator[tuple[int, ...]]:
    return product(range(VALUES[0], VALUES[1] + 1), repeat=LENGTH)


def check_word(answer: object, words: set[object], seed: int) -> int:
    """Check an answer against those for all values; count a "may" where all are equal."""
    if answer == "may":
        return len(words) == 1
    if words == {"inside", "padded"}:  # the largest overhang counts
        words = {"padded"}
    assert {answer} == words, (seed, answer, words)
    return 0


@pytest.mark.sampled
def test_answers_about_scalars_hold_for_all_values() -> None:
    """A definite answer is that of all values, and few answers are "may" without need."""
    total = needless = 0
    for seed in sampled(range(300)):
        kernel = scalar_kernel(seed)
        function, avals = kernel.function()
        (call,) = check(function, *avals, ranges={0: VALUES}).calls
        operands = (*kernel.inputs, *kernel.outputs)
        for operand, answer in zip(operands, call.operands, strict=True):
            all_blocks = [
                [box(operand, p, (values,)) for p in steps(kernel.grid)]
                for values in scalar_values()
            ]
            oracles: dict[str, Callable[[list[Box]], object]] = {"bounds": partial(bounds, operand)}
            if answer.is_output:
                oracles |= {
                    "covered": partial(is_covered, operand),
                    "visits": partial(visits, operand),
                    "race": partial(race, kernel, operand),
                }
            for name, oracle in oracles.items():
                words = {oracle(blocks) for blocks in all_blocks}
                needless += check_word(getattr(answer, name), words, seed)
                total += 1
    assert needless < total * 0.1


def test_reads_of_scalars_stay_in_their_array() -> None:
    source = Operand((8, 128), (8, 128), lambda i, s: (minimum(s[i + 1], 0), 0))
    output = Operand((24, 128), (8, 128), lambda i, s: (i, 0))
    for length, word in ((4, "inside"), (3, "out")):
        kernel = Kernel("next", (3,), (source,), (output,), scalars=((length,),))
        function, avals = kernel.function()
        (call,) = check(function, *avals).calls
        assert call.operands[0].scalar_bounds == word
        assert call.operands[1].scalar_bounds is None
    assert call.operands[0].scalar_bounds_at == ((2,), (3,))
    assert call.faults == ("args[1]: step (2,) reads element (3,), outside of a scalar array",)


def test_values_of_constant_scalars_are_known() -> None:
    import jax.numpy as jnp

    kernel = Kernel(
        "pages",
        (4, 2),
        (Operand((160, 128), (8, 128), lambda i, j, s: (2 * s[i] + j, 0)),),
        (Operand((64, 128), (8, 128), lambda i, j, s: (2 * i + j, 0)),),
        scalars=((4,),),
    )
    call, avals = kernel.call(), kernel.function()[1]
    for last, word in ((9, "inside"), (10, "may")):
        table = jnp.array([3, 0, last, 1])
        (report,) = check(lambda x, table=table: call(table, x), avals[1]).calls
        assert report.operands[0].bounds == word


# ---------------------------------------------------------------- symbolic sizes

SIZES: list[tuple[str, Callable[[Any], Any]]] = [
    ("n", lambda n: n),
    ("n // 2", lambda n: n // 2),
    ("(n + 1) // 2", lambda n: (n + 1) // 2),
    ("n + 1", lambda n: n + 1),
    ("2 * n", lambda n: 2 * n),
    ("2 * n - 1", lambda n: 2 * n - 1),
]
LAST = 9  # of the values of n


def symbolic_kernel(seed: int, n: Any) -> Kernel:
    """Return a kernel for one size, or for a symbol."""
    random = Random(seed)
    rank = random.randrange(1, 3)
    grid = tuple(
        random.choice(SIZES)[1](n) if random.random() < 0.7 else random.choice([1, 2, 3])
        for _ in range(rank)
    )

    def operand() -> Operand:
        terms: list[Callable[..., Any]] = []
        block: list[Any] = []
        shape: list[Any] = []
        for _ in range(random.randrange(1, 3)):
            a, b = random.randrange(rank), random.randrange(rank)
            terms.append(
                random.choice(
                    [
                        lambda *p, a=a: p[a],
                        lambda *p, a=a: p[a],
                        lambda *p, a=a: p[a] // 2,
                        lambda *p, a=a, b=b: p[a] + p[b],
                        lambda *p, a=a: minimum(p[a], 1),
                        lambda *p: 0,
                    ]
                )
            )
            block.append(random.choice([None, 1, 2, 3, (2, 1, 1)]))
            shape.append(random.choice(SIZES)[1](n) if random.random() < 0.7 else 3)
        return Operand(tuple(shape), tuple(block), lambda *p: tuple(t(*p) for t in terms))

    semantics = tuple(random.choice(["parallel", "arbitrary"]) for _ in range(rank))
    return Kernel("symbolic", grid, (operand(),), (operand(),), semantics)


def check_sizes(answer: BlockReport, name: str, words: dict[int, object], seed: int) -> None:
    """Check the answer for all sizes: the fault of the smallest one, or no fault."""
    actual = getattr(answer, name)
    assert actual != "may", (seed, name, answer.notes)
    order: dict[str, list[object]] = {
        "bounds": ["out", "padded", "inside"],
        "covered": [False, True],
        "visits": ["apart", "overlap", "consecutive", "once"],
        "race": [True, False],
    }
    expected = min(words.values(), key=order[name].index)
    assert actual == expected, (seed, name, words)


@pytest.mark.sampled
def test_answers_about_symbolic_sizes_hold_for_all_sizes() -> None:
    from jax import export

    for seed in sampled(range(300)):
        (n,) = export.symbolic_shape("n")
        kernel = symbolic_kernel(seed, n)
        sizes = [*kernel.grid, *[k for o in (*kernel.inputs, *kernel.outputs) for k in o.shape]]
        if all(isinstance(size, int) for size in sizes):
            continue
        function, avals = kernel.function()
        (call,) = check(function, *avals, ranges={"n": (1, LAST)}).calls
        kernels = {size: symbolic_kernel(seed, size) for size in range(1, LAST + 1)}
        every = {size: facts(kernel) for size, kernel in kernels.items()}
        for number, answer in enumerate(call.operands):
            for name in ("bounds", "covered", "visits", "race") if number else ("bounds",):
                words = {size: given[number, name] for size, given in every.items()}
                check_sizes(answer, name, words, seed)
            out = [size for size in every if every[size][number, "bounds"] == "out"]
            if out:
                assert dict(answer.symbols) == {"n": out[0]}, seed
            elif number and not answer.covered:
                holes = [size for size in every if not every[size][number, "covered"]]
                assert dict(answer.symbols) == {"n": holes[0]}, seed


# ---------------------------------------------------------------- dynamic grids


def test_answers_about_a_dynamic_grid_have_its_sizes() -> None:
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl

    def dynamic(x: Any, size: Any) -> Any:
        spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
        clamped = pl.BlockSpec((8, 128), lambda i: (jnp.minimum(i, 5), 0))
        call = pl.pallas_call(
            lambda *refs: None, grid=(size,), in_specs=[clamped], out_specs=spec, out_shape=x
        )
        return call(x)

    avals = jax.ShapeDtypeStruct((48, 128), jnp.float32), jax.ShapeDtypeStruct((), jnp.int32)
    (call,) = check(dynamic, *avals).calls
    source, output = call.operands
    assert (call.grid, source.bounds, output.bounds) == (("grid0",), "inside", "may")
    assert (output.bounds_at, output.visits, output.covered) == (((6,), (48, 0)), "once", "may")
    (call,) = check(dynamic, *avals, ranges={"grid0": (1, 6)}).calls
    assert call.operands[1].bounds == "inside"
    (call,) = check(dynamic, *avals, ranges={"grid0": (6, 6)}).calls
    assert call.operands[1].covered is True


def test_ranges_have_several_names() -> None:
    """A scalar has the names of the index map, of the function's argument, and its number."""
    import jax
    import jax.numpy as jnp

    kernel = Kernel(
        "pages",
        (4,),
        (Operand((80, 128), (8, 128), lambda i, s: (s[i], 0)),),
        (Operand((32, 128), (8, 128), lambda i, s: (i, 0)),),
        scalars=((4,),),
    )
    call, avals = kernel.call(), kernel.function()[1]

    def function(table: Any, x: Any) -> Any:
        def step(carry: Any, _: Any) -> tuple[Any, None]:
            return carry + jax.jit(call)(table, x)[0], None

        zeros = jnp.zeros((32, 128))
        return jax.lax.scan(step, zeros, None, length=3)[0]

    for name in ("s", "table", "args[0]", "s0", 0):
        (report,) = check(function, *avals, ranges={name: (0, 9)}).calls
        assert report.operands[0].bounds == "inside"
    (report,) = check(function, *avals).calls
    assert report.operands[0].bounds == "may"

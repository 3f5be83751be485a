"""Tilings with loops against the enumeration of sets of elements, and worked examples by hand."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

import hlo
import indexing
from indexing.tiling.loops.loop_tiling import LoopTiling
from simplifier.unknown import Unknown
from tests.tiling.loops import hand_problems as hand
from tests.tiling.loops.loop_oracle import (
    Problem,
    blocks_of,
    enumerate_steps,
    sequential_loads,
    step_sets,
    wave_loads,
)


def tile(
    problem: Problem,
    sizes: tuple[int, ...],
    loops: dict[str, int],
    online: bool = True,
    split_k: int = 1,
) -> LoopTiling:
    root = hlo.parse(problem.text).entry.root
    tiling = indexing.tile(root, sizes, loop_sizes=loops, online=online, split_k=split_k)
    assert isinstance(tiling, LoopTiling), tiling
    return tiling


# Worked examples, counted by enumeration outside of this project: tiles, steps, bytes, residency.
# fmt: off
EXAMPLES = [
    # problem                                  tile               steps       bytes  resident
    (hand.dot(4096, 4096, 4096),               (128, 256),        {"k": 64}, 1_644_167_168, 49_152),
    (hand.dot(4096, 4096, 4096),               (128, 128),        {"k": 64}, 2_181_038_080, 32_768),
    (hand.dot(4096, 4096, 4096),               (4, 8),            {}, 51_573_161_984,       98_304),
    (hand.dot(200, 150, 100),                  (64, 64),          {"k": 32},       300_000,  8_192),
    (hand.dot_with_epilogue(200, 150, 100),    (64, 64),          {"k": 32},       361_200,  8_320),
    (hand.dot(64, 96, 2048),                   (32, 32),          {"k": 64},     1_585_152,  8_192),
    (hand.softmax(24, 1000),                   (4, 1000),         {},              192_000, 16_000),
    (hand.softmax(24, 1000),                   (4, 250),          {"k": 250},      960_000,  4_000),
    (hand.softmax(24, 1000),                   (4, 1000), {"k": 250, "d1": 250},   384_000,  4_000),
    (hand.attention(2, 96, 160, 16, False),    (1, 32, 16),       {"k": 160},      73_728, 11_264),
    (hand.attention(2, 96, 160, 16, False),    (1, 32, 16),       {"k": 32},      135_168,  3_072),
    (hand.convolution(2, 14, 32, 32, 3, 1),    (1, 7, 14, 32), {"w0": 1, "w1": 1}, 303_616, 8_320),
    (hand.convolution(2, 14, 32, 32, 3, 1),    (1, 7, 14, 32),    {"k": 16},       127_488, 12_800),
    (hand.stencil(62, 102),                    (16, 32),          {},               53_120,  2_432),
]
# fmt: on


@pytest.mark.parametrize("problem, sizes, loops, moved, resident", EXAMPLES)
def test_worked_examples(
    problem: Problem, sizes: tuple[int, ...], loops: dict[str, int], moved: int, resident: int
) -> None:
    tiling = tile(problem, sizes, loops, online=False)
    assert (tiling.bytes, tiling.resident_bytes, tiling.grade) == (moved, resident, "exact")


def test_a_matmul_has_the_figures_of_its_pipeline() -> None:
    tiling = tile(hand.dot(4096, 4096, 4096), (128, 256), {"k": 64})
    assert (tiling.compulsory, tiling.steps, tiling.stages) == (100_663_296, 64, 3)
    assert (tiling.shared_bytes(3), tiling.accumulator_registers) == (147_456, 32_768)
    assert (tiling.blocks, tiling.passes, tiling.online) == (512, 1, False)
    smaller = tile(hand.dot(4096, 4096, 4096), (128, 128), {"k": 64})
    assert (smaller.shared_bytes(3), smaller.blocks) == (98_304, 1_024)


# fmt: off
WAVES = [
    ("row", 204_472_320), ("column", 207_618_048), ("grouped:4", 213_909_504),
    ("grouped:8", 220_200_960), ("grouped:16", 182_452_224),
]
# fmt: on


@pytest.mark.parametrize("order, moved", WAVES)
def test_waves_share_the_loads_of_a_step(order: str, moved: int) -> None:
    tiling = tile(hand.dot(4096, 4096, 4096), (128, 256), {"k": 64})
    assert tiling.wave_bytes(order, "H100") == moved


def test_split_loops_move_partial_results() -> None:
    tiling = tile(hand.dot(64, 96, 2048), (32, 32), {"k": 64}, split_k=8)
    assert (tiling.blocks, tiling.bytes, tiling.steps) == (48, 1_978_368, 4)


def test_an_attention_runs_online_resident_or_recomputes() -> None:
    problem = hand.attention(2, 96, 160, 16, True)
    online = tile(problem, (1, 32, 16), {"k": 32})
    assert (online.bytes, online.resident_bytes, online.shared_bytes(3)) == (73_728, 3_072, 7_168)
    assert (online.passes, online.online, online.accumulator_registers) == (1, True, 32 * 48)
    features = tile(problem, (1, 32, 8), {"k": 32})
    assert (features.bytes, features.resident_bytes) == (110_592, 2_560)
    recomputed = tile(problem, (1, 32, 16), {"k": 32}, online=False)
    assert (recomputed.passes, recomputed.online) == (3, False)


def test_a_softmax_of_long_rows_runs_online_in_two_passes() -> None:
    tiling = tile(hand.softmax(24, 1000), (4, 1000), {"k": 250, "d1": 250})
    assert (tiling.bytes, tiling.resident_bytes) == (288_000, 4_000)
    assert (tiling.passes, tiling.online) == (2, True)


# ---------------------------------------------------------------- random problems


def _random_problem(rng: Random) -> tuple[Problem, tuple[str, ...]]:
    """Return a small problem, and the names by which its loops are chosen."""
    n = rng.randint
    families: list[Callable[[], tuple[Problem, tuple[str, ...]]]] = [
        lambda: (hand.dot(n(1, 9), n(1, 9), n(1, 12)), ("k",)),
        lambda: (hand.dot_with_epilogue(n(1, 9), n(1, 9), n(1, 12)), ("k",)),
        lambda: (hand.batched_dot(n(1, 3), n(1, 7), n(1, 7), n(1, 9)), ("k",)),
        lambda: (hand.two_dots(n(1, 8), n(1, 8), n(1, 9)), ("k",)),
        lambda: (hand.row_sums(n(1, 9), n(1, 20)), ("k",)),
        lambda: (hand.softmax(n(1, 9), n(1, 14)), ("k",)),
        lambda: (hand.attention(n(1, 3), n(1, 8), n(2, 9), n(2, 5), False), ("k",)),
        lambda: (hand.stencil(n(4, 14), n(4, 14)), ()),
        lambda: (hand.causal_sums(n(1, 14)), ("k",)),
        lambda: (hand.reshaped_dot(n(1, 6), n(1, 6), n(2, 4), n(2, 5)), ("k",)),
        lambda: (hand.pooling(n(6, 14), n(1, 8), n(2, 4), n(1, 3)), ("w",)),
        lambda: (
            hand.convolution(n(1, 2), n(4, 7), n(1, 4), n(1, 4), n(2, 3), n(0, 1), n(1, 2)),
            ("w0", "w1", "k"),
        ),
    ]
    return families[rng.randrange(len(families))]()


@pytest.mark.parametrize("seed", range(6))
def test_random_problems_have_the_figures_of_the_enumeration(seed: int) -> None:
    rng = Random(seed)
    for _ in range(40):
        problem, names = _random_problem(rng)
        sizes = tuple(rng.randint(1, size) for size in problem.dims.values())
        steps = {name: rng.randint(1, size) for name, size in problem.loops.items()}
        tiling = tile(problem, sizes, dict(zip(names, steps.values(), strict=True)), online=False)
        expected = enumerate_steps(problem, sizes, steps)
        where = f"seed {seed}: {problem.text}\ntiles {sizes}, steps {steps}"
        figures = (tiling.bytes, tiling.resident_bytes, tiling.compulsory, tiling.blocks)
        exact = (expected.bytes, expected.resident, expected.compulsory, expected.blocks)
        if tiling.grade == "exact":
            assert figures == exact, where
        else:  # an upper bound
            pairs = zip(figures, exact, strict=True)
            assert all(not isinstance(a, Unknown) and a >= b for a, b in pairs), where
        assert tiling.grade == "exact" or problem.masks or "convolution" in problem.text, where


@pytest.mark.parametrize("seed", range(3))
def test_random_steps_have_the_elements_of_the_enumeration(seed: int) -> None:
    rng = Random(100 + seed)
    for _ in range(15):
        problem, names = _random_problem(rng)
        sizes = tuple(rng.randint(1, size) for size in problem.dims.values())
        steps = {name: rng.randint(1, size) for name, size in problem.loops.items()}
        tiling = tile(problem, sizes, dict(zip(names, steps.values(), strict=True)), online=False)
        index = rng.randrange(tiling.blocks)
        block = list(blocks_of(problem, sizes))[index]
        place = [part.start // size for part, size in zip(block.values(), sizes, strict=True)]
        sets = [s for phase in problem.phases for s in step_sets(problem, phase, block, steps)]
        number = rng.randrange(len(sets))
        regions = tiling.at(*place, step=number)
        by_name = {a.instruction.name: r for a, r in zip(tiling.arrays, regions, strict=True)}
        for name, region in by_name.items():
            listed = region.elements()
            assert not isinstance(listed, Unknown)
            elements = {tuple(e) for e in listed.tolist()}
            assert elements == sets[number].get(name, set()), (problem.text, sizes, steps, number)


@pytest.mark.parametrize("seed", range(2))
def test_random_waves_load_the_elements_of_the_enumeration(seed: int) -> None:
    rng = Random(200 + seed)
    n = rng.randint
    for _ in range(12):
        problem = [
            hand.two_dots(n(2, 8), n(2, 8), n(1, 9)),
            hand.stencil(n(5, 12), n(5, 12)),
        ][rng.randrange(2)]
        sizes = tuple(rng.randint(1, size) for size in problem.dims.values())
        steps = {name: rng.randint(1, size) for name, size in problem.loops.items()}
        tiling = tile(problem, sizes, steps)
        wave = rng.randint(1, tiling.blocks + 1)
        order = indexing.BlockOrder.parse(rng.choice(["row", "column"]), tiling.grid)
        expected = wave_loads(problem, sizes, steps, order.numbers.tolist(), wave)
        assert tiling.wave_bytes(order.name, wave) == expected


@pytest.mark.parametrize(
    "step, moved, vmem", [(512, 75_497_472, 4_194_304), (2048, 50_331_648, 10_485_760)]
)
def test_a_core_keeps_the_tile_of_the_step_before(step: int, moved: int, vmem: int) -> None:
    """The worked example of a TPU, counted by hand: the left tile is kept along a row."""
    tiling = tile(hand.dot(2048, 2048, 2048), (512, 512), {"k": step})
    assert (tiling.sequential_bytes(), tiling.vmem_bytes) == (moved, vmem)


@pytest.mark.parametrize("seed", range(3))
def test_random_sequences_load_the_elements_of_the_enumeration(seed: int) -> None:
    rng = Random(300 + seed)
    n = rng.randint
    for _ in range(20):
        families: list[Callable[[], tuple[Problem, tuple[str, ...]]]] = [
            lambda: (hand.dot(n(1, 9), n(1, 9), n(1, 12)), ("k",)),
            lambda: (hand.dot_with_epilogue(n(1, 9), n(1, 9), n(1, 12)), ("k",)),
            lambda: (hand.batched_dot(n(1, 3), n(1, 7), n(1, 7), n(1, 9)), ("k",)),
            lambda: (hand.two_dots(n(2, 8), n(2, 8), n(1, 9)), ("k",)),
            lambda: (hand.stencil(n(4, 14), n(4, 14)), ()),
            lambda: (hand.reshaped_dot(n(1, 6), n(1, 6), n(2, 4), n(2, 5)), ("k",)),
            lambda: (
                hand.convolution(n(1, 2), n(4, 7), n(1, 4), n(1, 4), n(2, 3), n(0, 1), n(1, 2)),
                ("w0", "w1", "k"),
            ),
        ]
        problem, names = rng.choice(families)()
        sizes = tuple(n(1, size) for size in problem.dims.values())
        steps = {name: n(1, size) for name, size in problem.loops.items()}
        tiling = tile(problem, sizes, dict(zip(names, steps.values(), strict=True)), online=False)
        order = rng.sample(range(len(sizes)), len(sizes))
        expected = sequential_loads(problem, sizes, steps, order)
        where = f"seed {seed}: {problem.text}\ntiles {sizes}, steps {steps}, order {order}"
        loaded = tiling.sequential_bytes(order)
        assert not isinstance(loaded, Unknown), where
        assert loaded == expected if tiling.grade == "exact" else loaded >= expected, where
        if order == sorted(order):
            assert tiling.sequential_bytes() == loaded


def test_orders_that_are_none_are_refused() -> None:
    tiling = tile(hand.dot(8, 8, 8), (4, 4), {"k": 4})
    for order in ("diagonal", (0,), (0, 0), (0, 2)):
        with pytest.raises(ValueError, match='expected "row", "column" or each of 2 dimensions'):
            tiling.sequential_bytes(order)
    shared = tile(hand.dot(8, 8, 8), (4, 4), {"k": 4}, split_k=2)
    with pytest.raises(ValueError, match="no shared loops"):
        shared.sequential_bytes()
    softmax = tile(hand.softmax(8, 8), (2, 8), {"k": 4}, online=False)
    assert isinstance(softmax.sequential_bytes(), Unknown)  # the row is read in several phases


# ---------------------------------------------------------------- refusals


def test_loops_that_are_none_are_refused_with_those_that_are() -> None:
    root = hlo.parse(hand.dot(8, 8, 8).text).entry.root
    with pytest.raises(ValueError, match=r"no loop 'j': the loops are k \(8 of d\)"):
        indexing.tile(root, (4, 4), loop_sizes={"j": 2})
    with pytest.raises(ValueError, match=r"k=0: a step is at least 1"):
        indexing.tile(root, (4, 4), loop_sizes={"k": 0})
    with pytest.raises(ValueError, match=r"expected 1 sizes, one for each loop: k \(8 of d\)"):
        indexing.tile(root, (4, 4), loop_sizes=(2, 2))
    with pytest.raises(ValueError, match=r"split_k=3 does not divide the 8 steps"):
        indexing.tile(root, (4, 4), loop_sizes={"k": 1}, split_k=3)

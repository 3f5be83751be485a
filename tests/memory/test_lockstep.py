"""Misses of blocks in lockstep, against an LRU simulation of enumerated steps, and by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random

import pytest

import hlo
import indexing
from indexing import BlockOrder, CacheMisses
from indexing.tiling.loops.loop_tiling import LoopTiling
from simplifier.unknown import Unknown
from tests.memory import lru
from tests.tiling.loops import hand_problems as hand
from tests.tiling.loops.loop_oracle import Problem, blocks_of, step_sets

RESULT = "result"


def tile_with_loops(text: str, sizes: tuple[int, ...], loops: dict[str, int]) -> LoopTiling:
    root = hlo.parse(text).entry.root
    tiling = indexing.tile(root, sizes, loop_sizes=loops, online=False)
    assert isinstance(tiling, LoopTiling), tiling
    return tiling


def misses_of(tiling: LoopTiling, capacity: int, **options: object) -> CacheMisses:
    answer = indexing.cache_misses(tiling, capacity, **options)
    assert isinstance(answer, CacheMisses), answer
    return answer


def simulate(
    problem: Problem,
    tiling: LoopTiling,
    steps: dict[str, int],
    order: list[int],
    wave: int,
    line: int | None,
) -> Iterator[lru.Touch]:
    """Yield the touches: the blocks of a wave in each step, then their results."""
    blocks = list(blocks_of(problem, tiling.sizes))
    shapes = {array.instruction.name: array.array_shape for array in tiling.arrays}
    for start in range(0, len(order), wave):
        own = [blocks[b] for b in order[start : start + wave]]
        for number, phase in enumerate(problem.phases):
            sets = [list(step_sets(problem, phase, block, steps)) for block in own]
            names = [each.array.instruction.name for each in tiling.loop_phases[number].arrays]
            for step in range(len(sets[0])):
                for each in sets:
                    for name in names:
                        elements = each[step].get(name, frozenset())
                        if step == 0 or elements != each[step - 1].get(name, frozenset()):
                            shape = shapes[name]
                            assert shape is not None
                            yield from lru.touches_of([(name, shape, elements)], line)
        for block in own:
            points: list[tuple[int, ...]] = [()]
            for part in block.values():
                points = [(*point, k) for point in points for k in part]
            yield from lru.touches_of([(RESULT, tiling.shape, points)], line)


def by_array(answer: CacheMisses) -> Counter[str]:
    missed: Counter[str] = Counter()
    for own in answer.arrays:
        name = RESULT if own.kind == "write" else own.array.instruction.name
        missed[name] += own.misses
    return +missed


def random_problem(rng: Random) -> tuple[Problem, tuple[str, ...]]:
    n = rng.randint
    families: list[Callable[[], tuple[Problem, tuple[str, ...]]]] = [
        lambda: (hand.dot(n(1, 9), n(1, 9), n(1, 12)), ("k",)),
        lambda: (hand.dot_with_epilogue(n(1, 9), n(1, 9), n(1, 12)), ("k",)),
        lambda: (hand.batched_dot(n(1, 3), n(1, 7), n(1, 7), n(1, 9)), ("k",)),
        lambda: (hand.two_dots(n(2, 8), n(2, 8), n(1, 9)), ("k",)),
        lambda: (hand.row_sums(n(1, 9), n(1, 20)), ("k",)),
        lambda: (hand.stencil(n(4, 14), n(4, 14)), ()),
        lambda: (hand.pooling(n(6, 14), n(1, 8), n(2, 4), n(1, 3)), ("w",)),
        lambda: (
            hand.convolution(n(1, 2), n(4, 7), n(1, 4), n(1, 4), n(2, 3), n(0, 1), n(1, 2)),
            ("w0", "w1", "k"),
        ),
    ]
    return rng.choice(families)()


@pytest.mark.parametrize("seed", range(5))
def test_random_waves_miss_what_a_simulated_cache_misses(seed: int) -> None:
    rng = Random(seed)
    for _ in range(12):
        problem, names = random_problem(rng)
        sizes = tuple(rng.randint(1, size) for size in problem.dims.values())
        steps = {name: rng.randint(1, size) for name, size in problem.loops.items()}
        tiling = tile_with_loops(problem.text, sizes, dict(zip(names, steps.values(), strict=True)))
        order = BlockOrder.parse(rng.choice(["row", "column"]), tiling.grid)
        wave, line = rng.randint(1, tiling.blocks + 1), rng.choice([None, 4, 12, 32])
        touches = list(simulate(problem, tiling, steps, order.numbers.tolist(), wave, line))
        capacity = rng.randint(0, 2 * len(touches) * (line or 4))
        answer = misses_of(tiling, capacity, order=order, wave=wave, line=line)
        where = f"seed {seed}: {problem.text}\ntiles {sizes}, steps {steps}, {order}, wave {wave}"
        assert by_array(answer) == +lru.misses(touches, capacity), where
        assert answer.touches == len(touches), where


def test_without_a_cache_blocks_load_the_bytes_of_the_tiling() -> None:
    problem = hand.dot_with_epilogue(48, 64, 96)
    tiling = tile_with_loops(problem.text, (16, 32), {"k": 32})
    answer = misses_of(tiling, 0, line=None, wave=3)
    assert answer.bytes == tiling.bytes
    assert misses_of(tiling, 1 << 30, line=None).bytes == tiling.compulsory


@pytest.mark.parametrize("order", ["row", "column", "grouped:4", "grouped:8", "grouped:16"])
def test_a_cache_of_one_wave_loads_the_bytes_of_waves(order: str) -> None:
    """Half of the L2 of an H100 keeps the steps of a wave, and little of the wave before."""
    tiling = tile_with_loops(hand.dot(4096, 4096, 4096).text, (128, 256), {"k": 64})
    answer = misses_of(tiling, 25 << 20, order=order, wave=132)
    assert answer.bytes == tiling.wave_bytes(order, "H100")


def test_orders_rank_in_lockstep_as_waves_do() -> None:
    tiling = tile_with_loops(hand.dot(4096, 4096, 4096).text, (128, 256), {"k": 64})
    orders = ("row", "column", "grouped:4", "grouped:8", "grouped:16")
    best = indexing.best_block_orders(tiling, 25 << 20, orders, wave=132)
    assert not isinstance(best, Unknown)
    ranked = [own.order.name for own in best]
    assert ranked == sorted(orders, key=lambda order: tiling.wave_bytes(order, "H100"))  # type: ignore[arg-type,return-value]
    assert ranked[0] == "grouped:16"


def test_whole_tiles_of_a_wave_read_before_they_write() -> None:
    """Two tiles of two elements in a cache of four: the second write finds no room for a read."""
    text = """ENTRY e { p = f32[4] parameter(0)  ROOT n = f32[4] negate(p) }"""
    tiling = indexing.tile(hlo.parse(text).entry.root, (2,))
    apart, together = [indexing.reuse_profile(tiling, line=None, wave=wave) for wave in (1, 2)]
    assert isinstance(apart, indexing.ReuseProfile)
    assert isinstance(together, indexing.ReuseProfile)
    assert apart.misses(8).misses == together.misses(8).misses == 8
    assert str(together).startswith("row order, 2 tiles in lockstep, elements, trace:")


def test_what_is_not_modelled_is_unknown_or_refused() -> None:
    softmax = tile_with_loops(hand.softmax(8, 8).text, (2, 8), {"k": 4})
    answer = indexing.cache_misses(softmax, 64)
    assert isinstance(answer, Unknown)
    assert "is read in several phases" in answer.reason
    shared = indexing.tile(
        hlo.parse(hand.dot(8, 8, 8).text).entry.root, (4, 4), loop_sizes={"k": 4}, split_k=2
    )
    assert isinstance(shared, LoopTiling)
    with pytest.raises(ValueError, match="split_k=2: expected blocks that share no loop"):
        indexing.cache_misses(shared, 64)
    with pytest.raises(ValueError, match="wave=0: expected at least 1 tile"):
        indexing.cache_misses(softmax, 64, wave=0)
    gathered = """ENTRY e { p = f32[8,4] parameter(0)  i = s32[] parameter(1)
      j = s32[] constant(0)
      ROOT d = f32[2,4] dynamic-slice(p, i, j), dynamic_slice_sizes={2,4} }"""
    root = hlo.parse(gathered).entry.root
    tiling = indexing.tile(root, (1, 4), loop_sizes={})
    assert isinstance(tiling, LoopTiling)
    answer = indexing.cache_misses(tiling, 64)
    assert isinstance(answer, Unknown)
    assert "depend on runtime values" in answer.reason

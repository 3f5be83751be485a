"""The search for tilings with loops against an exhaustive one, and objectives of a user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from random import Random

import pytest

import hlo
import indexing
from indexing.tiling.loops.loop_objectives import (
    AverageProcessor,
    BusiestProcessor,
    FewestBytes,
    LoopCandidate,
    LoopObjective,
)
from indexing.tiling.loops.loop_search import BestLoopTilings
from indexing.tiling.loops.loop_tiling import LoopTiling
from simplifier.unknown import Unknown
from tests.tiling.loops import hand_problems as hand
from tests.tiling.loops.loop_oracle import Problem

PROBLEMS = {
    "dot": hand.dot(512, 384, 256),
    "few rows": hand.dot(32, 64, 1024),
    "epilogue": hand.dot_with_epilogue(256, 512, 128),
    "batched": hand.batched_dot(8, 64, 128, 128),
    "softmax": hand.softmax(256, 200),
    "rows": hand.row_sums(256, 1024),
    "attention": hand.attention(4, 256, 512, 64, True),
}


def search(problem: Problem, top: int = 3, **options: object) -> BestLoopTilings:
    root = hlo.parse(problem.text).entry.root
    best = indexing.best_tilings(root, device="H100", loops=True, top=top, **options)
    assert isinstance(best, BestLoopTilings), best
    return best


def _pad(size: int) -> int:
    return 1 << (size - 1).bit_length()


@pytest.mark.parametrize("name", ["dot", "few rows"])
def test_the_best_tiling_of_a_dot_is_that_of_all_legal_ones(name: str) -> None:
    """The figures are those of the formulas of a dot; the rules are stated here again."""
    problem = PROBLEMS[name]
    m, n, k = problem.dims["i"], problem.dims["j"], problem.loops["k"]
    keys = []
    for bm, bn, bk in product(*[[1 << e for e in range(12)] for _ in range(3)]):
        if m % bm or n % bn or k % bk or max(bm, bn, bk) > 256:
            continue
        if bm < 16 or bn < 32 or bk < 32:  # rows, and runs of 64 bytes
            continue
        steps = k // bk
        stages = min(3, steps)
        if bm * bn > 32_768 or stages * 2 * bk * (bm + bn) > 232_448:
            continue
        for split in [1 << e for e in range(12)]:
            blocks = m // bm * (n // bn)
            if split > 1 and (blocks * split // 2 >= 132 or steps % split):
                continue
            moved = 2 * m * n * k // bm + 2 * m * n * k // bn + 2 * m * n
            moved += 8 * m * n * split * (split > 1)
            keys.append((blocks * split, moved, steps // split))
    fewest = sorted([(-min(132, n), moved, steps) for n, moved, steps in keys])
    ranked = search(problem, objective=FewestBytes(132))
    assert [key[:3] for key in ranked.keys] == fewest[: len(ranked)]
    average = sorted([(-(-moved // min(132, n)), moved, steps) for n, moved, steps in keys])
    best = search(problem)
    assert [key[:3] for key in best.keys] == average[: len(best)]
    assert best.keys[0][1] <= fewest[0][1]


def test_the_best_blocks_of_a_tpu_are_those_of_all_legal_ones() -> None:
    """Loads of the grid (i, j, k) and the rules of blocks, stated here again."""
    m, n, k = 1024, 512, 2048
    sizes = [1 << e for e in range(12)]
    keys = []
    for bm, bn, bk in product(sizes, sizes, sizes):
        if bm > m or bn > n or bk > k:
            continue
        if bm % 16 or (bn % 128 and bn != n) or (bk % 128 and bk != k):
            continue
        vmem = 2 * 2 * (bm * bk + bk * bn + bm * bn) + 4 * bm * bn
        if vmem > 16 << 20:
            continue
        rows, columns, steps = m // bm, n // bn, k // bk
        left = m * k * (1 if steps == 1 else columns)
        right = n * k * (1 if steps == 1 and columns == 1 else rows)
        keys.append((-1, 2 * (left + right + m * n), steps, rows * columns))
    root = hlo.parse(hand.dot(m, n, k).text).entry.root
    best = indexing.best_tilings(root, device="v4", loops=True, top=8)
    assert isinstance(best, BestLoopTilings)
    assert list(best.keys) == sorted(keys)[:8]
    assert [tiling.sequential_bytes() for tiling in best] == [key[1] for key in best.keys]
    held = [tiling.vmem_bytes for tiling in best]
    assert all(isinstance(n, int) and n <= 16 << 20 for n in held)


def test_refusals_of_a_tpu_name_the_tile() -> None:
    root = hlo.parse(hand.dot(256, 256, 256).text).entry.root
    best = indexing.best_tilings(root, device="tpu:v5e", loops=True, sizes=[[16, 24], [64]])
    assert isinstance(best, BestLoopTilings)
    assert not best.ranked
    assert any(
        "64 indices of a dimension of the result: at least 128" in str(r) for r in best.refused
    )
    best = indexing.best_tilings(root, device="tpu:v5e", loops=True, sizes=[[24], [128]])
    assert isinstance(best, BestLoopTilings)
    assert any("24 indices" in str(r) and "a multiple of 16" in str(r) for r in best.refused)


class EveryTiling(LoopObjective):
    """An objective whose bound ends no branch."""

    def __init__(self, ranking: LoopObjective) -> None:
        self.ranking = ranking

    def key(self, candidate: LoopCandidate) -> tuple[int, ...]:
        return self.ranking.key(candidate)

    def bound(self, candidate: LoopCandidate, most_blocks: int) -> tuple[int, ...]:
        return ()


OBJECTIVES: Sequence[Callable[[int], LoopObjective]] = (
    FewestBytes,
    AverageProcessor,
    BusiestProcessor,
)


@pytest.mark.parametrize("objective", [each(132) for each in OBJECTIVES], ids=repr)
@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_no_visited_tiling_is_better(name: str, objective: LoopObjective) -> None:
    """Each branch that was left out is visited here, with a key that ends no branch."""
    problem = PROBLEMS[name]
    best = search(problem, objective=objective)
    every = search(problem, objective=EveryTiling(objective))
    assert best.keys == every.keys
    assert best.measured <= every.measured


def random_problem(seed: int) -> Problem:
    """Return a small problem of sizes that are no powers of two."""
    rng = Random(seed)
    m, n, k = [rng.choice((24, 33, 48, 64, 100, 130)) for _ in range(3)]
    families = (
        lambda: hand.dot(m, n, k),
        lambda: hand.two_dots(m, n, k),
        lambda: hand.batched_dot(rng.randint(2, 5), m, n, k),
        lambda: hand.softmax(10 * m, n),
        lambda: hand.row_sums(10 * m, n),
        lambda: hand.attention(rng.randint(1, 3), m, n, 32, True),
        lambda: hand.pooling(10 * m, n, rng.randint(2, 4), rng.randint(1, 3)),
    )
    return rng.choice(families)()


@pytest.mark.parametrize("processors", [8, 132])
@pytest.mark.parametrize("seed", range(8))
def test_bounds_are_below_the_keys_of_all_finer_tilings(seed: int, processors: int) -> None:
    problem = random_problem(seed)
    for objective in [each(processors) for each in OBJECTIVES]:
        best = search(problem, objective=objective, accept="boxes")
        every = search(problem, objective=EveryTiling(objective), accept="boxes")
        assert best.keys == every.keys


def test_equal_bytes_of_more_waves_are_not_measured() -> None:
    """All tiles of whole rows move as much, in one step: the number of waves decides."""
    root = hlo.parse(hand.softmax(8192, 64).text).entry.root
    sizes = [[1 << e for e in range(14)], [64]]
    given = {"device": "H100", "loops": True, "top": 1, "sizes": sizes, "loop_sizes": {"k": [64]}}
    best = indexing.best_tilings(root, **given)
    every = indexing.best_tilings(root, objective=EveryTiling(AverageProcessor(132)), **given)
    assert isinstance(best, BestLoopTilings)
    assert isinstance(every, BestLoopTilings)
    assert best.keys == every.keys
    assert best.measured < every.measured / 2


def test_finer_steps_may_find_elements_of_the_step_before() -> None:
    """64 contracted indices share one row of `p`, and 96 do not: steps of 32 never cut a row.

    Bytes by hand, with 9 rows of p: 3 x 96 indices cut one row once, 1 x 96 three times.
    """
    root = hlo.parse("""ENTRY e {
      p = f32[9,16] parameter(0)
      b = f32[9,64,16] broadcast(p), dimensions={0,2}
      r = f32[6,96,16] reshape(b)
      q = f32[6,96,16] parameter(1)
      ROOT d = f32[16,16] dot(r, q), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}
    }""").entry.root
    others = 4 * (6 * 96 * 16 + 16 * 16)
    moved = {(3, 96): 10, (3, 32): 18, (1, 96): 12, (1, 32): 9}
    for steps, rows in moved.items():
        tiling = indexing.tile(root, (16, 16), "parameters", loop_sizes=steps)
        assert isinstance(tiling, LoopTiling)
        assert tiling.bytes == others + 4 * 16 * rows
    choices = {"k0": [3, 1], "k1": [96, 32]}
    best = indexing.best_tilings(
        root,
        device="H100",
        loops=True,
        to="parameters",
        top=1,
        sizes=[[16], [16]],
        loop_sizes=choices,
        objective=FewestBytes(1),
    )
    assert isinstance(best, BestLoopTilings)
    assert best[0].loop_sizes == (1, 32)


def test_a_convolution_with_strides_and_padding_is_searched() -> None:
    """The weights that a tile reads depend on the padding that it reaches: no list of points."""
    best = search(hand.convolution(8, 28, 256, 256, 3, 1, 2))
    assert len(best) == 3
    assert not best.incomplete
    root = hlo.parse(hand.convolution(8, 28, 256, 256, 3, 1, 2).text).entry.root
    large = indexing.tile(root, (8, 14, 1, 256), loop_sizes={"w0": 1, "w1": 1, "k": 256})
    assert isinstance(large, LoopTiling)
    violated = large.violations("H100")
    assert not isinstance(violated, Unknown)
    assert any("bytes of shared memory: at most 232,448 allowed" in each for each in violated)
    for tiling in best:
        assert tiling.violations("H100") == ()
        shared = tiling.shared_bytes(padded=True)
        assert not isinstance(shared, Unknown)
        assert shared <= 232_448


@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_ranked_tilings_have_the_figures_of_their_keys(name: str) -> None:
    best = search(PROBLEMS[name], top=5)
    assert len(best) == 5
    assert not best.incomplete
    for tiling, key in zip(best, best.keys, strict=True):
        assert isinstance(tiling, LoopTiling)
        assert isinstance(tiling.bytes, int)
        each = -(-tiling.bytes // min(132, tiling.blocks))
        assert (each, tiling.bytes, tiling.steps) == key[:3]


@pytest.mark.parametrize("seed", range(8))
def test_the_average_processor_moves_no_more_than_the_fewest_bytes(seed: int) -> None:
    """Fewer blocks than processors are the best only if they move fewer bytes."""
    rng = Random(seed)
    m, n = rng.randint(100, 1500), rng.choice((40, 64, 130, 200, 640))
    problem = (hand.softmax(m, n), hand.row_sums(m, n), hand.dot(m, 4 * n, 128))[seed % 3]
    best = search(problem, top=10)
    (fewest,) = search(problem, top=1, objective=FewestBytes(132))
    assert isinstance(best[0].bytes, int)
    assert isinstance(fewest.bytes, int)
    assert best[0].bytes <= fewest.bytes
    if best[0].blocks < min(132, fewest.blocks):
        assert 132 * best[0].bytes <= min(132, best[0].blocks) * fewest.bytes + 132


def test_rows_in_nearly_as_many_blocks_as_processors_are_among_the_best() -> None:
    """128 blocks of 8 rows move as much as 256 of 4: XLA chooses them for 1024 rows."""
    problem = hand.softmax(1024, 256)
    sizes = [tiling.sizes for tiling in search(problem, top=10)]
    assert sizes[0] == (4, 256)
    assert (8, 256) in sizes
    fewest = search(problem, top=10, objective=FewestBytes(132))
    assert fewest[0].sizes == (4, 256)
    assert (8, 256) not in [tiling.sizes for tiling in fewest]
    best = search(hand.softmax(130, 640), top=1)
    assert (best[0].sizes, best[0].bytes) == ((1, 640), best[0].compulsory)


def test_a_large_matmul_gets_the_tiles_of_experts() -> None:
    best = search(hand.dot(4096, 4096, 4096), top=2)
    assert {tiling.sizes for tiling in best} == {(128, 256), (256, 128)}
    assert [tiling.loop_sizes for tiling in best] == [(64,), (64,)]
    assert best.measured < 200  # of 2,197


def test_a_search_that_cannot_answer_says_what_would() -> None:
    refused = search(hand.stencil(130, 258))
    assert not refused.ranked
    assert any("accept='boxes'" in str(each) for each in refused.refused)
    assert len(search(hand.stencil(130, 258), accept="boxes")) == 3


def test_refusals_name_the_nearest_legal_size() -> None:
    best = search(hand.dot(64, 64, 64), sizes=[[4], [64]])
    assert not best.ranked
    (refusal,) = best.refused
    assert "at least 16 required; the nearest legal size is 16" in str(refusal)


def test_accumulators_beyond_half_of_the_registers_are_legal_but_not_searched() -> None:
    """FlashAttention 3 has tiles of 192 rows and 192 keys for 64 features, in 12 warps."""
    text = hand.attention(1, 384, 384, 64, True).text
    root = hlo.parse(text).entry.root
    tiling = indexing.tile(root, (1, 192, 64), loop_sizes={"k": 192, "c": 64})
    assert isinstance(tiling, LoopTiling)
    assert tiling.accumulator_registers == 192 * (192 + 64)
    assert tiling.violations("H100", 2, 12) == ()
    given = {"k": [192], "c": [64]}
    best = search(hand.attention(1, 384, 384, 64, True), sizes=[[1], [192], [64]], loop_sizes=given)
    (refusal,) = best.refused
    assert "49,152 accumulator registers: at most 32,768 allowed, half" in str(refusal)


@pytest.mark.parametrize("device", ["H100", "v5e"])
def test_reads_that_no_axis_cuts_break_no_rule(device: str) -> None:
    """All tiles read one element of a scalar, of a row, and of the second row of a table."""
    text = """ENTRY e {
      p = f32[512,256] parameter(0)  s = f32[] parameter(1)  r = f32[2] parameter(2)
      t = f32[4,256] parameter(3)
      o = f32[1] slice(r), slice={[1:2]}  os = f32[] reshape(o)
      u = f32[1,256] slice(t), slice={[1:2],[0:256]}  us = f32[256] reshape(u)
      ob = f32[512,256] broadcast(os), dimensions={}
      ub = f32[512,256] broadcast(us), dimensions={1}
      sb = f32[512,256] broadcast(s), dimensions={}
      a = f32[512,256] add(p, ob)
      b = f32[512,256] add(a, ub)
      ROOT c = f32[512,256] add(b, sb) }"""
    root = hlo.parse(text).entry.root
    best = indexing.best_tilings(root, device=device, loops=True, top=1, to="parameters")
    assert isinstance(best, BestLoopTilings)
    assert best.ranked, best
    assert best[0].compulsory == 4 * (512 * 256 * 2 + 256 + 1 + 1)


def test_gathered_rows_beyond_those_of_a_table_are_not_listed() -> None:
    """Twelve rows of a table of two: each may be any row, so no list of elements has them."""
    text = """ENTRY e {
      t = f32[2,6] parameter(0)  i = s32[12,1] parameter(1)  g = f32[12,6] gather(t, i),
        offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,
        slice_sizes={1,6}
      ROOT r = f32[8,9] reshape(g) }"""
    root = hlo.parse(text).entry.root
    tiling = indexing.tile(root, (4, 9), to="parameters", loop_sizes={})
    assert isinstance(tiling, LoopTiling)
    counted = tiling.bytes
    assert isinstance(counted, Unknown)
    assert "runtime values" in counted.reason


@pytest.mark.parametrize(
    "element, sizes, step, accepted",
    [
        ("bf16", (16, 32), 32, True),
        ("s8", (16, 64), 64, True),
        ("bf16", (16, 8), 32, False),  # the matrix unit has 16 columns
        ("bf16", (8, 32), 32, False),
    ],
)
def test_dots_of_an_amd_gpu_have_its_matrix_tiles(
    element: str, sizes: tuple[int, int], step: int, accepted: bool
) -> None:
    text = hand.dot(64, 64, 64).text.replace("bf16", element)
    root = hlo.parse(text).entry.root
    best = indexing.best_tilings(
        root, device="MI300", loops=True, sizes=[[n] for n in sizes], loop_sizes={"k": [step]}
    )
    assert isinstance(best, BestLoopTilings)
    assert bool(best.ranked) == accepted, best


def test_an_objective_of_a_user_ranks() -> None:
    class FewestBlocks(LoopObjective):
        def key(self, candidate: LoopCandidate) -> tuple[int, ...]:
            return candidate.blocks, candidate.bytes

        def bound(self, candidate: LoopCandidate, most_blocks: int) -> tuple[int, ...]:
            return (candidate.blocks,)

    best = search(hand.dot(512, 512, 256), top=1, objective=FewestBlocks())
    assert best[0].blocks == 8  # of 128 x 256


def test_options_of_the_other_search_are_refused() -> None:
    root = hlo.parse(hand.dot(64, 64, 64).text).entry.root
    with pytest.raises(ValueError, match="the limits are those of `device`"):
        indexing.best_tilings(root, loops=True, limits=indexing.TilingLimits(max_elements=5))
    with pytest.raises(ValueError, match="max_tilings are for tilings without loops"):
        indexing.best_tilings(root, loops=True, max_tilings=5)
    with pytest.raises(ValueError, match='expected objective="bytes" or a LoopObjective'):
        indexing.best_tilings(root, "reuse", loops=True)
    with pytest.raises(ValueError, match="loop_sizes needs loops=True"):
        indexing.best_tilings(root, loop_sizes={"k": (16,)})
    with pytest.raises(ValueError, match="loops of k"):
        indexing.best_tilings(root, loops=True, loop_sizes=[(16,), (16,)])
    with pytest.raises(ValueError, match="exact=True is for tiles without loops"):
        indexing.tile(root, (16, 16), loop_sizes={"k": 16}, exact=True)
    with pytest.raises(ValueError, match="unknown device 'TPU'"):
        indexing.best_tilings(root, loops=True, device="TPU")


def causal_attention(heads: int, rows: int) -> str:
    """Return the text of an attention of which each row has the keys up to its own."""
    text = hand.attention(heads, rows, rows, 64, True).text
    scores = f"f32[{heads},{rows},{rows}]"
    mask = f"""i = s32[{rows},{rows}] iota(), iota_dimension=0
  j = s32[{rows},{rows}] iota(), iota_dimension=1
  below = pred[{rows},{rows}] compare(j, i), direction=LE
  belows = pred[{heads},{rows},{rows}] broadcast(below), dimensions={{1,2}}
  lows = {scores} broadcast(low), dimensions={{}}
  masked = {scores} select(belows, x, lows)
  top = """
    text = text.replace("top = ", mask, 1).replace("reduce(x,", "reduce(masked,")
    return text.replace("subtract(x,", "subtract(masked,")


@pytest.mark.parametrize("objective, width", [(FewestBytes, 32), (AverageProcessor, 64)])
def test_causal_masks_are_searched_without_listing_scores(
    objective: Callable[[int], LoopObjective], width: int
) -> None:
    """8 x 16 tiles of all columns are fewer than 132 blocks, and move fewer bytes."""
    root = hlo.parse(causal_attention(8, 4096)).entry.root
    best = indexing.best_tilings(root, objective(132), device="H100", loops=True, top=3)
    assert isinstance(best, BestLoopTilings)
    assert best.incomplete == ""
    model = best[0].model
    assert sum([table.points for table in model.tables.values()]) == 0
    rows, columns = best[0].sizes[1:]
    step = best[0].loops[0].step
    assert columns == width
    moved = 0
    for last in range(rows - 1, 4096, rows):
        moved += 2 * (last + 1) * 64  # the keys up to the last row
        moved += 2 * 4096 * columns  # zeros, too, multiply values
        moved += sum([2 * 64 * n for n in range(rows, 0, -step)])  # rows with keys in a step
    assert best[0].bytes == 8 * (64 // columns) * moved + 2 * 8 * 4096 * 64


def test_the_busiest_processor_ranks_whole_waves_first() -> None:
    """The key is counted block by block: processor k has the blocks k, k + 132, …."""
    problem = PROBLEMS["rows"]
    best = search(problem, objective=BusiestProcessor(132), top=5)
    for tiling, key in zip(best, best.keys, strict=True):
        assert isinstance(tiling.bytes, int)
        most = max([len(range(k, tiling.blocks, 132)) for k in range(132)])
        assert key[0] == -(-tiling.bytes * most // tiling.blocks)
    visited = search(problem, objective=BusiestProcessor(132), top=10_000)
    assert min(visited.keys) == best.keys[0]
    assert best.keys == visited.keys[:5]
    assert "processor bytes" in str(visited)

"""Misses and working sets of caches, against an LRU simulator over addresses."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import hlo
import indexing
from indexing import BlockOrder, CacheMisses, Tiling, Unknown, WorkingSet
from indexing.codegen.nest import LoopNest
from indexing.memory.caches import accesses as tiled
from indexing.memory.caches import trace as traces
from indexing.memory.caches.closed_forms import LoopAccess, carried_reuses
from indexing.memory.caches.distances import reuse_distances
from indexing.memory.caches.lines import units_by_access
from indexing.memory.caches.orders import OrderLoop
from indexing.memory.caches.profile import trace_profile
from indexing.memory.caches.tile_accesses import tile_accesses
from tests.memory import lru
from tests.oracles import fuzz

SUM = "sum { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT s = s32[] add(a, b) }"

# fmt: off
PROGRAMS = {
    # name       body of ENTRY                                                              sizes
    "dot":       ("p = s32[13,7] parameter(0)  q = s32[7,11] parameter(1)  ROOT r = s32[13,11] "
                  "dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",          (4, 3)),
    "columns":   ("p = s32[13,7]{0,1} parameter(0)  q = s32[7,11]{0,1} parameter(1)  ROOT r = "
                  "s32[13,11]{0,1} dot(p, q), lhs_contracting_dims={1}, "
                  "rhs_contracting_dims={0}",                                               (4, 3)),
    "tiled":     ("p = s32[13,7]{1,0:T(4,2)} parameter(0)  q = s32[7,11] parameter(1)  ROOT r = "
                  "s32[13,11]{1,0:T(2,2)} dot(p, q), lhs_contracting_dims={1}, "
                  "rhs_contracting_dims={0}",                                               (4, 3)),
    "batch":     ("p = s32[2,6,3] parameter(0)  q = s32[2,3,5] parameter(1)  ROOT r = s32[2,6,5] "
                  "dot(p, q), lhs_batch_dims={0}, rhs_batch_dims={0}, "
                  "lhs_contracting_dims={2}, rhs_contracting_dims={1}",                  (1, 2, 2)),
    "transpose": ("p = s32[9,14] parameter(0)  ROOT r = s32[14,9] transpose(p), "
                  "dimensions={1,0}",                                                       (5, 4)),
    "window":    ("p = s32[12,9] parameter(0)  z = s32[] parameter(1)  ROOT r = s32[11,7] "
                  "reduce-window(p, z), window={size=2x3}, to_apply=sum",                   (3, 2)),
    "reshape":   ("p = s32[6,10] parameter(0)  ROOT r = s32[60] reshape(p)",                (7,)),
    "slice":     ("p = s32[20,9] parameter(0)  ROOT r = s32[7,5] slice(p), "
                  "slice={[1:20:3], [0:9:2]}",                                              (2, 2)),
    "concat":    ("p = s32[9,4] parameter(0)  q = s32[7,4] parameter(1)  ROOT r = s32[16,4] "
                  "concatenate(p, q), dimensions={0}",                                      (5, 3)),
    "broadcast": ("p = s32[7] parameter(0)  ROOT r = s32[5,7,3] broadcast(p), dimensions={1}",
                                                                                         (2, 3, 2)),
    "scalar":    ("p = s32[] parameter(0)  ROOT r = s32[] negate(p)",                       ()),
}
# fmt: on


def root_of(body: str) -> hlo.Instruction:
    return hlo.parse(f"{SUM}\nENTRY e {{ {body} }}").entry.root


def tiling_of(root: hlo.Instruction, sizes: tuple[int, ...], **options: Any) -> Tiling:
    tiling = indexing.tile(root, sizes, **options)
    assert isinstance(tiling, Tiling), tiling
    return tiling


def misses_of(tiling: Tiling, capacity: int, order: Any = "row", line: Any = 128) -> CacheMisses:
    answer = indexing.cache_misses(tiling, capacity, order, line)
    assert isinstance(answer, CacheMisses), answer
    return answer


def by_array(answer: CacheMisses) -> Counter[str]:
    counts: Counter[str] = Counter()
    for array in answer.arrays:
        counts[array.array.instruction.name] += array.misses
    return counts


def order_names(tiling: Tiling) -> list[str]:
    both = ["row", "column"]
    return both + ["grouped:2", "grouped:3", "morton", "hilbert"] * (len(tiling.grid) > 1)


# ---------------------------------------------------------------- programs


@pytest.mark.parametrize("name", PROGRAMS)
def test_misses_are_those_of_an_instrumented_program(name: str) -> None:
    body, sizes = PROGRAMS[name]
    root = root_of(body)
    tiling = tiling_of(root, sizes, exact=True)
    nest = indexing.loop_nest(root)
    assert isinstance(nest, LoopNest)
    rng = np.random.default_rng(0)
    arrays = [rng.integers(0, 9, b.dims).astype(b.dtype) for b in nest.inputs]
    reads = lru.reads_of_tiles(nest, arrays, sizes)
    for order, line in product(order_names(tiling), [None, 4, 24, 128]):
        tiles = BlockOrder.parse(order, tiling.grid).tiles()
        touches = list(lru.program_touches(root, reads, tiles, line))
        profile = indexing.reuse_profile(tiling, order, line)
        assert isinstance(profile, indexing.ReuseProfile)
        for capacity in (0, 60, 128, 400, 1000, 10**6):
            answer = profile.misses(capacity)
            assert by_array(answer) == lru.misses(touches, capacity), (order, line, capacity)
            assert answer.touches == len(touches)
            assert answer.compulsory == len({touch[:2] for touch in touches})


@st.composite
def random_tilings(draw: st.DrawFn) -> Tiling:
    n = st.integers(1, 7)
    rows, inner, columns = draw(n), draw(n), draw(n)
    layout = st.sampled_from(["{1,0}", "{0,1}", "{1,0:T(2,4)}"])
    kind = st.sampled_from(["f32", "bf16", "s8", "f64"])
    p = f"p = {draw(kind)}[{rows},{inner}]{draw(layout)} parameter(0)"
    if draw(st.booleans()):  # two elements in one byte
        p = f"p = s4[{rows},{inner}]{{1,0:E(4)}} parameter(0)"
    q = f"q = {draw(kind)}[{inner},{columns}]{draw(layout)} parameter(1)"
    match draw(st.sampled_from(["dot", "square", "twice", "window", "backward"])):
        case "square":
            body = f"{p}  ROOT r = f32[{rows},{rows}]{draw(layout)} dot(p, p), "
            body += "lhs_contracting_dims={1}, rhs_contracting_dims={1}"
        case "twice":
            body = f"p = f32[{rows},{columns}]{draw(layout)} parameter(0)  "
            body += f"ROOT r = f32[{rows},{columns}]{draw(layout)} add(p, p)"
        case "window" | "backward":
            body = f"p = s32[{rows + 2},{columns + 1}]{draw(layout)} parameter(0)  z = s32[] "
            body += f"parameter(1)  ROOT r = s32[{rows},{columns}]{draw(layout)} "
            body += "reduce-window(p, z), window={size=3x2}, to_apply=sum"
        case _:
            body = f"{p}  {q}  ROOT r = f32[{rows},{columns}]{draw(layout)} dot(p, q), "
            body += "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    sizes = (draw(st.integers(1, 4)), draw(st.integers(2, 4)))
    options = {"direction": "input-to-output"} if draw(st.booleans()) else {}
    return tiling_of(root_of(body), sizes, **options)


@fuzz(40)
@given(random_tilings(), st.data())
def test_misses_and_working_sets_of_random_tilings(tiling: Tiling, data: st.DataObject) -> None:
    order = data.draw(st.sampled_from(["row", "column", "grouped:2", "grouped:4", "hilbert"]))
    line = data.draw(st.sampled_from([None, 4, 12, 32]))
    tiles = list(BlockOrder.parse(order, tiling.grid).tiles())
    each = [list(lru.touches_of(lru.tile_accesses(tiling, tile), line)) for tile in tiles]
    touches = [touch for own in each for touch in own]
    capacity = data.draw(st.integers(0, 2 * len(touches) * (line or 4)))
    answer = misses_of(tiling, capacity, order, line)
    assert by_array(answer) == lru.misses(touches, capacity)
    window = data.draw(st.integers(1, len(tiles)))
    resident = [
        sum([bits for _, _, bits in {touch for own in each[k : k + window] for touch in own}])
        for k in range(len(tiles) - window + 1)
    ]
    working = indexing.working_set(tiling, window, order, line)
    assert isinstance(working, WorkingSet)
    assert working.total.sizes.tolist() == [-(-bits // 8) for bits in resident]


# ---------------------------------------------------------------- reuse distances


@given(st.lists(st.integers(0, 9), max_size=40), st.lists(st.integers(1, 9), min_size=10))
def test_reuse_distances_are_those_of_a_stack(units: list[int], weights: list[int]) -> None:
    stack: list[int] = []
    expected = []
    for unit in units:
        depth = stack.index(unit) if unit in stack else None
        expected.append(-1 if depth is None else sum([weights[u] for u in stack[: depth + 1]]))
        stack = [unit, *[u for u in stack if u != unit]]
    distances = reuse_distances(np.array(units, np.int64), np.array(weights, np.int64))
    assert distances.tolist() == expected


@st.composite
def random_nests(draw: st.DrawFn) -> tuple[list[int], list[LoopAccess]]:
    counts = draw(st.lists(st.integers(1, 4), max_size=4))
    subsets = st.frozensets(st.sampled_from(range(len(counts)))) if counts else st.just(frozenset())
    accesses = st.builds(LoopAccess, subsets, st.integers(1, 99))
    return counts, draw(st.lists(accesses, min_size=1, max_size=4))


SINGLE = [2, 1, 3], [LoopAccess(frozenset({2}), 1), LoopAccess(frozenset({1}), 10)]
"""Between two tiles with iteration 1 of the last loop, the one block of the other access."""


@fuzz(150)
@example(SINGLE)
@given(random_nests())
def test_closed_forms_are_the_distances_of_the_nest(
    nest: tuple[list[int], list[LoopAccess]],
) -> None:
    counts, accesses = nest
    touches = [
        (k, tuple([at[p] for p in sorted(access.loops)]))
        for at in product(*map(range, counts))
        for k, access in enumerate(accesses)
    ]
    number = {block: k for k, block in enumerate(dict.fromkeys(touches))}
    units = np.array([number[touch] for touch in touches])
    weights = np.array([accesses[k].weight for k, _ in number])
    expected: Counter[tuple[int, int]] = Counter()
    for (k, _), distance in zip(touches, reuse_distances(units, weights).tolist(), strict=True):
        if distance >= 0:
            expected[k, distance] += 1
    loops = [OrderLoop(k, 1, n) for k, n in enumerate(counts)]
    closed: Counter[tuple[int, int]] = Counter()
    for reuse in carried_reuses(accesses, loops):
        for distance in reuse.distances.tolist():
            closed[reuse.access, distance] += reuse.tiles
    assert closed == expected


def gemm(rows: int, inner: int, columns: int) -> hlo.Instruction:
    return root_of(
        f"p = f32[{rows},{inner}] parameter(0)  q = f32[{inner},{columns}] parameter(1)  ROOT r = "
        f"f32[{rows},{columns}] dot(p, q), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
    )


# fmt: off
METHODS = [
    # tile      line   order        method
    ((32, 32),  128,   "row",       "closed form"),
    ((32, 32),  128,   "grouped:2", "closed form"),
    ((32, 32),  128,   "morton",    "closed form"),
    ((32, 32),  128,   "grouped:3", "trace"),        # the last group has one row: no loop nest
    ((32, 32),  128,   "hilbert",   "trace"),        # no loop nest
    ((32, 16),  128,   "row",       "trace"),        # two tiles share lines of 32 elements
    ((32, 16),  64,    "row",       "closed form"),
    ((48, 32),  128,   "row",       "trace"),        # a partial tile
]
# fmt: on


@pytest.mark.parametrize("sizes, line, order, method", METHODS)
def test_the_closed_form_of_a_product_is_its_trace(
    sizes: tuple[int, int], line: int, order: str, method: str
) -> None:
    tiling = tiling_of(gemm(128, 64, 128), sizes)
    profile = indexing.reuse_profile(tiling, order, line)
    assert isinstance(profile, indexing.ReuseProfile)
    assert profile.method == method
    accesses = tile_accesses(tiling)
    assert not isinstance(accesses, Unknown)
    units = units_by_access(accesses.listed, line)
    traced = trace_profile(accesses, profile.order, line, 1, units)
    for mine, other in zip(profile.arrays, traced.arrays, strict=True):
        assert mine.distances.tolist() == other.distances.tolist()
        assert (mine.lines.tolist(), mine.first) == (other.lines.tolist(), other.first)


def test_misses_of_a_product_are_those_counted_by_hand() -> None:
    """64 tiles of 8 x 8: blocks of 4,096 lines of each operand, 512 of the result."""
    tiling = tiling_of(gemm(1024, 1024, 1024), (128, 128))
    capacity = 4 << 20  # 32,768 lines
    row = misses_of(tiling, capacity, "row")
    assert [a.misses for a in row.arrays] == [8 * 4096, 64 * 4096, 64 * 512]
    grouped = misses_of(tiling, capacity, "grouped:4")
    assert [a.misses for a in grouped.arrays] == [8 * 4096, 2 * 8 * 4096, 64 * 512]
    assert (row.method, grouped.method) == ("closed form", "closed form")


# ---------------------------------------------------------------- search


def test_the_search_ranks_orders_by_their_own_misses() -> None:
    tiling = tiling_of(gemm(96, 32, 64), (16, 16))
    capacity = 20_000
    best = indexing.best_block_orders(tiling, capacity)
    assert isinstance(best, indexing.BestBlockOrders)
    assert [own.misses for own in best] == sorted([own.misses for own in best])
    for own in best:
        assert own.misses == misses_of(tiling, capacity, own.order).misses
    diagonal = sorted(tiling.tiles(), key=lambda tile: (sum(tile), tile))
    mine = BlockOrder.of_tiles(diagonal, tiling.grid, name="diagonal")
    two = indexing.best_block_orders(tiling, capacity, ["row", mine])
    assert isinstance(two, indexing.BestBlockOrders)
    assert {own.order.name for own in two} == {"row", "diagonal"}


# ---------------------------------------------------------------- unknown


def test_elements_at_runtime_values_are_unknown() -> None:
    root = root_of(
        "p = f32[64] parameter(0)  i = s32[] parameter(1)  ROOT r = f32[8] dynamic-slice(p, i), "
        "dynamic_slice_sizes={8}"
    )
    answer = indexing.cache_misses(tiling_of(root, (4,)), 4096)
    assert isinstance(answer, Unknown)
    assert "of `p` that a tile needs depend on runtime values" in answer.reason
    gather = root_of(
        "p = f32[6,4] parameter(0)  i = s32[8,1] parameter(1)  ROOT r = f32[8,4] gather(p, i), "
        "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
        "slice_sizes={1,4}"
    )
    for sizes in ((1, 4), (2, 4)):
        answer = indexing.working_set(tiling_of(gather, sizes), 2)
        assert isinstance(answer, Unknown)
        assert "runtime values" in answer.reason


def test_over_approximations_are_unknown() -> None:
    pad = root_of(
        "p = f32[5] parameter(0)  z = f32[] parameter(1)  ROOT r = f32[11] pad(p, z), padding=1_1_1"
    )
    answer = indexing.cache_misses(tiling_of(pad, (4,)), 4096)
    assert isinstance(answer, Unknown)
    assert "over-approximated" in answer.reason
    assert "exact=True" in answer.reason
    assert misses_of(tiling_of(pad, (4,), exact=True), 4096).misses == 3


@pytest.mark.parametrize(
    "module, name", [(tiled, "MAX_TILES"), (tiled, "MAX_ROWS"), (traces, "MAX_TOUCHES")]
)
def test_beyond_a_budget_misses_are_unknown(
    module: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiling = tiling_of(gemm(12, 6, 12), (3, 3))
    order = "hilbert"  # by trace
    exact = misses_of(tiling, 64, order)
    monkeypatch.setattr(module, name, 2)
    if name == "MAX_ROWS":
        monkeypatch.setattr("indexing.memory.caches.lines.MAX_ROWS", 2)
    answer = indexing.cache_misses(tiling, 64, order)
    assert isinstance(answer, Unknown), exact
    assert answer.reason.startswith("budget: ")


def test_arguments_are_checked() -> None:
    tiling = tiling_of(gemm(12, 6, 12), (3, 3))
    with pytest.raises(ValueError, match="capacity of a cache is not negative"):
        indexing.cache_misses(tiling, -1)
    with pytest.raises(ValueError, match="at least 1 byte"):
        indexing.cache_misses(tiling, 64, line=0)
    with pytest.raises(ValueError, match="at least 1 tile"):
        indexing.working_set(tiling, 0)
    with pytest.raises(ValueError, match=r"has the grid \[2, 2\], not \[4, 4\]"):
        indexing.cache_misses(tiling, 64, BlockOrder.parse("row", (2, 2)))


def test_arrays_without_elements_have_no_misses() -> None:
    tiling = tiling_of(root_of("p = f32[0,4] parameter(0)  ROOT r = f32[0,4] negate(p)"), (2, 2))
    answer = misses_of(tiling, 64)
    assert (answer.misses, answer.touches, answer.hit_rate) == (0, 0, 1)
    working = indexing.working_set(tiling, 4)
    assert isinstance(working, WorkingSet)
    assert (working.total.maximum, working.total.mean) == (0, 0)

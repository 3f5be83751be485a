"""`valid_tilings` and `best_tilings`, against brute force over all tile sizes and hand counts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice, pairwise, product
from math import prod

import pytest

import hlo
import indexing
from hlo.modules.module import Instruction
from indexing import Unknown
from indexing.maps import IndexingMap
from indexing.tiling import (
    BestTilings,
    Tiling,
    TilingLimits,
    best_tilings,
    compare_candidates,
    parse_candidates,
    valid_tilings,
)
from indexing.tiling.search import candidates
from indexing.tiling.search.candidate_sizes import TileSizes
from indexing.tiling.search.measures import Objective
from simplifier.unknown import require_known

Element = tuple[int, ...]
Sizes = tuple[int, ...]

DOT = "p = f32[{m},{k}] parameter(0)  q = f32[{k},{n}] parameter(1)  ROOT dot = f32[{m},{n}] "
DOT += "dot(p, q), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
ADD = "add { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) } "

PROGRAMS = {
    "dot": DOT.format(m=5, k=3, n=7),
    "transpose": "p = bf16[3,7] parameter(0)  ROOT t = bf16[7,3] transpose(p), dimensions={1,0}",
    "expand": "p = f32[12] parameter(0)  ROOT r = f32[3,4] reshape(p)",
    "collapse": "p = f32[3,4] parameter(0)  ROOT r = f32[12] reshape(p)",
    "reverse": "p = f32[7,2] parameter(0)  ROOT r = f32[7,2] reverse(p), dimensions={0}",
    "slice": "p = f64[13] parameter(0)  ROOT s = f64[4] slice(p), slice={[1:13:3]}",
    "concatenate": "p = f32[5] parameter(0)  q = f32[4] parameter(1)  "
    "ROOT c = f32[9] concatenate(p, q), dimensions={0}",
    "pad": "p = f32[5] parameter(0)  z = f32[] parameter(1)  "
    "ROOT r = f32[12] pad(p, z), padding=1_2_1",
    "window": "p = f32[9] parameter(0)  z = f32[] parameter(1)  "
    "ROOT w = f32[4] reduce-window(p, z), window={size=3 stride=2}, to_apply=add",
    "broadcast": "p = u8[3] parameter(0)  ROOT b = u8[4,3] broadcast(p), dimensions={1}",
    "scalar": "p = f32[] parameter(0)  ROOT n = f32[] negate(p)",
    "mirror": "p = f32[6,2] parameter(0)  ROOT f = f32[6,2] fusion(p), kind=kLoop, calls=mirror",
}
MIRROR = """mirror {
  p = f32[6,2] parameter(0)  r = f32[6,2] reverse(p), dimensions={0}  ROOT s = f32[6,2] add(p, r) }
"""


def root(body: str) -> Instruction:
    return hlo.parse(ADD + MIRROR + "ENTRY e { " + body + " }").entry.root


def points(m: IndexingMap) -> Iterator[tuple[Element, Element]]:
    """Yield the points of a map: an element of the result, and one of the operand."""
    dims = [range(v.lower, v.upper + 1) for v in m.dims]
    ranges = [range(v.lower, v.upper + 1) for v in m.ranges]
    for point, own in product(product(*dims), product(*ranges)):
        element = m.evaluate(dims=point, ranges=own)
        if element is not None:
            yield point, element


class Counts:
    """The sets of elements of all tiles, by enumeration of the points of the maps."""

    def __init__(self, instruction: Instruction) -> None:
        self.answer = indexing.output_to_input(instruction, exact=True)
        shape = instruction.shape
        assert isinstance(shape, hlo.Shape)
        self.shape = shape
        self.accesses: list[tuple[int, int, dict[Element, set[Element]]]] = []
        for k, maps in enumerate(self.answer.maps):
            operand = self.answer.operands[k].shape
            assert isinstance(operand, hlo.Shape)
            for m in maps:
                needed: dict[Element, set[Element]] = {}
                for point, element in points(m):
                    needed.setdefault(point, set()).add(element)
                self.accesses.append((k, operand.element_bits // 8, needed))

    def grid(self, sizes: Sizes) -> list[int]:
        return [-(-n // s) for n, s in zip(self.shape.dims, sizes, strict=True)]

    def tiles(self, sizes: Sizes) -> Iterator[dict[int, list[tuple[int, set[Element]]]]]:
        """Yield for each tile the sets of each operand, by access, with the bytes of an element."""
        for tid in product(*map(range, self.grid(sizes))):
            parts = zip(tid, sizes, self.shape.dims, strict=True)
            box = list(product(*[range(t * s, min(n, t * s + s)) for t, s, n in parts]))
            own: dict[int, list[tuple[int, set[Element]]]] = {}
            for k, width, needed in self.accesses:
                elements = set().union(*[needed.get(point, set()) for point in box])
                own.setdefault(k, []).append((width, elements))
            yield own

    @cache  # noqa: B019 - lives as long as the test run
    def measured(self, sizes: Sizes) -> tuple[int, int, int, bool]:
        """Return loaded and requested bytes, the largest working set, and if all are boxes."""
        loaded = requested = 0
        largest: dict[int, int] = {}
        boxes = True
        for tile in self.tiles(sizes):
            for k, accesses in tile.items():
                union = set().union(*[elements for _, elements in accesses])
                width = accesses[0][0]
                loaded += width * len(union)
                requested += sum(width * len(elements) for _, elements in accesses)
                largest[k] = max(largest.get(k, 0), width * len(union))
                boxes = boxes and is_box(union)
        result = prod(map(min, sizes, self.shape.dims)) * (self.shape.element_bits // 8)
        return loaded, requested, result + sum(largest.values()), boxes

    def value(self, sizes: Sizes, objective: Objective) -> int:
        loaded, requested, _, _ = self.measured(sizes)
        return {"bytes": loaded + self.shape.bytes, "requested": requested, "reuse": loaded}[
            objective
        ]


def is_box(elements: set[Element]) -> bool:
    """True if the elements are the product of progressions."""
    columns = [sorted(set(column)) for column in zip(*elements, strict=True)]
    steps = [{b - a for a, b in pairwise(c)} for c in columns]
    return prod(map(len, columns)) == max(1, len(elements)) and all(len(s) < 2 for s in steps)


@cache
def counts(name: str) -> Counts:
    return Counts(root(PROGRAMS[name]))


def every(name: str) -> list[Sizes]:
    return list(product(*[range(1, n + 1) for n in counts(name).shape.dims]))


def best(name: str, objective: Objective = "bytes", **options: object) -> BestTilings:
    result = best_tilings(root(PROGRAMS[name]), objective, **options)  # type: ignore[call-overload]
    assert isinstance(result, BestTilings)
    return result


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_figures_of_every_tiling_are_those_of_brute_force(name: str) -> None:
    result = best(name, sizes="all", accept="bounding", top=1000)
    assert sorted(r.sizes for r in result) == sorted(every(name))
    single = counts(name).measured((1,) * counts(name).shape.rank)[0]
    for ranked in result:
        loaded, requested, working_set, _ = counts(name).measured(ranked.sizes)
        assert (ranked.loaded, ranked.requested) == (loaded, requested), ranked.sizes
        assert ranked.memory.working_set == working_set, ranked.sizes
        assert ranked.memory.tiles == prod(counts(name).grid(ranked.sizes))
        assert ranked.grade == "exact"
        assert not isinstance(ranked.reuse, Unknown)
        assert ranked.reuse * max(1, loaded) == single


OBJECTIVES: list[Objective] = ["bytes", "requested", "reuse"]


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_best_are_those_of_brute_force(name: str, objective: Objective) -> None:
    own = counts(name)
    sets = sorted({own.measured(sizes)[2] for sizes in every(name)})
    for limit in (sets[0], sets[len(sets) // 2], sets[-1]):
        valid = [s for s in every(name) if own.measured(s)[3] and own.measured(s)[2] <= limit]
        key = {s: (own.value(s, objective), prod(own.grid(s)), s[::-1]) for s in valid}
        expected = sorted(valid, key=lambda s: (*key[s][:2], tuple(-n for n in key[s][2])))
        limits = TilingLimits(max_working_set=limit)
        for top in (1, 3):
            result = best(name, objective, top=top, sizes="all", limits=limits)
            assert [r.sizes for r in result] == expected[:top], limit
            assert not result.incomplete
        lazy = valid_tilings(root(PROGRAMS[name]), "all", limits)
        assert not isinstance(lazy, Unknown)
        assert [tiling.sizes for tiling in lazy] == valid


@pytest.mark.parametrize(("m", "k", "n"), [(64, 32, 64), (48, 100, 17), (1, 7, 96)])
def test_the_best_tilings_of_a_product_are_those_of_the_formula(m: int, k: int, n: int) -> None:
    instruction = root(DOT.format(m=m, k=k, n=n))

    def moved_bytes(sizes: Sizes) -> int:
        rows, columns = -(-m // sizes[0]), -(-n // sizes[1])
        return 4 * (k * (m * columns + n * rows) + m * n)

    def held_bytes(sizes: Sizes) -> int:
        return 4 * (k * (sizes[0] + sizes[1]) + sizes[0] * sizes[1])

    tried = list(TileSizes.of((m, n)))
    for limit in (4 * (2 * k + 1), 9_000, 10**6):
        result = best_tilings(instruction, top=5, limits=TilingLimits(max_working_set=limit))
        assert isinstance(result, BestTilings)
        values = sorted([moved_bytes(sizes) for sizes in tried if held_bytes(sizes) <= limit])
        assert [r.bytes for r in result] == values[:5]
        assert all(r.bytes == moved_bytes(r.sizes) for r in result)


def test_a_matrix_product_counted_by_hand() -> None:
    """f32[6,4] x f32[4,9]: tiles of 4 x 3 are 2 x 3 tiles, the last row of tiles has 2 rows.

    p: each row of tiles loads its rows 3 times: 3 * 6 * 4 elements.  q: each column of tiles loads
    its columns 2 times: 2 * 4 * 9 elements.
    """
    result = best_tilings(root(DOT.format(m=6, k=4, n=9)), sizes=[[4], [3]])
    assert isinstance(result, BestTilings)
    (ranked,) = result
    assert ranked.loaded == 4 * (3 * 24 + 2 * 36)
    assert ranked.stored == 4 * 54
    assert ranked.requested == ranked.loaded
    assert ranked.memory.working_set == 4 * (4 * 3 + 4 * 4 + 4 * 3)
    assert ranked.single == 4 * 2 * 6 * 4 * 9
    assert ranked.reuse == 3


def test_two_accesses_to_one_element_are_requested_twice() -> None:
    (ranked,) = best("mirror", sizes=[[6], [2]])
    assert (ranked.loaded, ranked.requested) == (4 * 12, 2 * 4 * 12)
    (ranked,) = best("mirror", sizes=[[2], [2]], accept="boxes")
    assert (ranked.loaded, ranked.requested) == (4 * 20, 2 * 4 * 12)  # the middle tile: its own


def test_an_empty_result_has_no_bytes() -> None:
    result = best_tilings(root("p = f32[0,3] parameter(0)  ROOT n = f32[0,3] negate(p)"), top=2)
    assert isinstance(result, BestTilings)
    assert [(r.sizes, r.bytes) for r in result] == [((1, 3), 0), ((1, 2), 0)]
    assert [r.reuse for r in result] == [1, 1]


# ------------------------------------------------------------ effort


def built_sizes(monkeypatch: pytest.MonkeyPatch) -> list[Sizes]:
    """Return the list of tilings that are built from now on."""
    log: list[Sizes] = []
    original = Tiling.with_sizes

    def log_tiling(self: Tiling, sizes: Sizes) -> Tiling:
        log.append(tuple(sizes))
        return original(self, sizes)

    monkeypatch.setattr(Tiling, "with_sizes", log_tiling)
    return log


def test_limits_of_the_result_need_no_tiling(monkeypatch: pytest.MonkeyPatch) -> None:
    log = built_sizes(monkeypatch)
    instruction = root(DOT.format(m=1024, k=64, n=1024))
    limits = TilingLimits(max_elements=64 * 64, max_tiles=4096)
    lazy = valid_tilings(instruction, limits=limits)
    assert not isinstance(lazy, Unknown)
    valid = [tiling.sizes for tiling in lazy]
    assert all(a * b <= 4096 and (1024 // a) * (1024 // b) <= 4096 for a, b in valid)
    assert set(log) == {s for s in log if s[0] * s[1] <= 4096}
    assert len(log) < 121 / 4
    log.clear()
    result = best_tilings(instruction, limits=limits, top=1)
    assert isinstance(result, BestTilings)
    assert result[0].sizes == (64, 64)
    assert result.built == len(log) < 121 / 4


def test_refinements_that_exceed_are_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 4 * (64 * (a + b) + a * b) bytes at most 20,000, a + b is at most 77."""
    log = built_sizes(monkeypatch)
    instruction = root(DOT.format(m=1024, k=64, n=1024))
    lazy = valid_tilings(instruction, limits=TilingLimits(max_working_set=20_000))
    assert not isinstance(lazy, Unknown)
    valid = {tiling.sizes for tiling in lazy}
    tried = list(product([1 << k for k in range(11)], repeat=2))
    assert valid == {(a, b) for a, b in tried if 4 * (64 * (a + b) + a * b) <= 20_000}
    assert len(set(log) - valid) <= 8  # the smallest that exceed


def test_valid_tilings_are_built_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    log = built_sizes(monkeypatch)
    big = root("p = f32[64,64,64,64,64,64] parameter(0)  ROOT n = f32[64,64,64,64,64,64] negate(p)")
    lazy = valid_tilings(big)
    assert not isinstance(lazy, Unknown)
    assert len(list(islice(lazy, 5))) == len(log) == 5


RANK_6 = ",".join(["64"] * 6)


def test_rank_6_needs_few_tilings(monkeypatch: pytest.MonkeyPatch) -> None:
    log = built_sizes(monkeypatch)
    big = root(f"p = f32[{RANK_6}] parameter(0)  ROOT n = f32[{RANK_6}] negate(p)")
    result = best_tilings(big, top=3, limits=TilingLimits(max_elements=1 << 32))
    assert isinstance(result, BestTilings)
    assert result.candidates == 7**6
    assert [r.memory.result.count for r in result] == [1 << 32] * 3
    assert not result.incomplete
    assert len(log) == 3  # no tiling moves fewer bytes than one tile of the whole array


def test_rank_6_keeps_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    log = built_sizes(monkeypatch)
    big = root(f"p = f32[{RANK_6}] parameter(0)  ROOT n = f32[{RANK_6}] negate(p)")
    result = best_tilings(big, predicate=lambda t: t.sizes == (1,) * 6, max_tilings=20)
    assert isinstance(result, BestTilings)
    assert not result.ranked
    assert len(log) == result.built == 20
    assert result.incomplete.endswith("budget: max_tilings=20 tilings built")
    assert "better tilings may exist: " in str(result)
    assert str(result.refused[0]).startswith("20 tilings refused by predicate: [64, 64, 64, ")


def test_too_many_sizes_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of a product with 64 elements: [8, 8] is best, and is left out of the sizes."""
    instruction = root(DOT.format(m=64, k=4, n=64))
    limits = TilingLimits(max_elements=64)
    full = best_tilings(instruction, top=1, limits=limits)
    assert isinstance(full, BestTilings)
    assert (full[0].sizes, full.incomplete) == ((8, 8), "")
    monkeypatch.setattr(candidates, "MAX_SIZES", 20)
    thinned = best_tilings(instruction, top=1, limits=limits)
    assert isinstance(thinned, BestTilings)
    assert thinned[0].sizes == (4, 16)
    assert thinned.incomplete == "16 of 49 tile sizes tried"


# ------------------------------------------------------------ other rules


def test_kinds_are_chosen() -> None:
    text = "p = f32[12] parameter(0)  ROOT r = f32[3,4] reshape(p)"
    boxes, sets = (
        {t.sizes for t in valid_tilings(root(text), accept=accept)}  # type: ignore[union-attr]
        for accept in ("box", "boxes")
    )
    assert sets - boxes == {(2, 2), (3, 2)}
    refused = best_tilings(root(text), top=50)
    assert isinstance(refused, BestTilings)
    assert [(r.rule, r.count) for r in refused.refused] == [("accept='box'", 2)]
    assert "operand 0 has the kind 'boxes'" in refused.refused[0].reason


def test_predicates_are_asked_last() -> None:
    asked: list[Sizes] = []

    def predicate(tiling: Tiling) -> bool:
        asked.append(tiling.sizes)
        return tiling.sizes[1] != 4

    valid = valid_tilings(root(PROGRAMS["expand"]), predicate=predicate)
    assert not isinstance(valid, Unknown)
    assert [t.sizes for t in valid] == [(1, 1), (1, 2), (2, 1), (3, 1)]
    assert (2, 2) not in asked  # no box


def test_an_unknown_map_has_no_tilings() -> None:
    text = "p = f32[?] parameter(0)  ROOT n = f32[?] negate(p)"
    assert isinstance(valid_tilings(root(text)), Unknown)
    assert isinstance(best_tilings(root(text)), Unknown)


def test_tilings_that_cannot_be_counted_are_refused() -> None:
    """Each tile is a column of the result, whose elements are in another place of each row."""
    text = "p = f32[1021,1031] parameter(0)  ROOT r = f32[1031,1021] reshape(p)"
    result = best_tilings(root(text), sizes=[[1021], [1]], accept="bounding")
    assert isinstance(result, BestTilings)
    (refused,) = result.refused
    assert (refused.rule, refused.count, refused.sizes) == ("counts", 1, (1021, 1))
    assert "budget: " in refused.reason
    tiling = indexing.tile(root(text), (1021, 1))
    assert not isinstance(tiling, Unknown)
    assert isinstance(tiling.bytes, Unknown)


def test_wrong_arguments_are_refused() -> None:
    dot = root(PROGRAMS["dot"])
    with pytest.raises(ValueError, match="top=0: expected at least 1"):
        best_tilings(dot, top=0)
    with pytest.raises(ValueError, match="max_tilings=0: expected at least 1"):
        best_tilings(dot, max_tilings=0)
    with pytest.raises(ValueError, match="each of the 2 dimensions, not 1"):
        best_tilings(dot, sizes=[[2]])
    with pytest.raises(ValueError, match="each of the 2 dimensions, not 3"):
        valid_tilings(dot, sizes=[[2], [2], [2]])
    with pytest.raises(IndexError):
        best_tilings(dot, output_id=1)
    with pytest.raises(ValueError, match="objective"):
        best_tilings(dot, "time")  # type: ignore[call-overload]  # the wrong value is tested


# ------------------------------------------------------------ XLA


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "mirror"])
def test_symbolic_constraints_accept_only_boxes(name: str) -> None:
    """For one map of each operand; two maps, as in `mirror`, are constrained separately."""
    tilings = valid_tilings(root(PROGRAMS[name]), "all", accept="bounding", symbolic=True)
    assert not isinstance(tilings, Unknown)
    accepted = {tiling.sizes for tiling in tilings}
    assert accepted
    assert all(counts(name).measured(sizes)[3] for sizes in accepted)


def test_symbolic_constraints_may_be_stricter_than_the_sets() -> None:
    text = "p = f32[2,3,4] parameter(0)  ROOT r = f32[4,6] reshape(p)"
    sets, symbolic = (
        {t.sizes for t in valid_tilings(root(text), "all", symbolic=own)}  # type: ignore[union-attr]
        for own in (False, True)
    )
    assert symbolic < sets
    result = best_tilings(root(text), sizes=[[1], [2]], symbolic=True)
    assert isinstance(result, BestTilings)
    assert [(r.rule, r.sizes) for r in result.refused] == [("symbolic=True", (1, 2))]
    assert result.refused[0].reason.startswith("ts_1 = 2: expected ts_1 = 1")


GOOD_TILINGS = """
max_computation { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT m = f32[] maximum(a, b) }
add_computation { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
fused_computation {
  param_0 = f32[8192,50304] parameter(0)
  param_1 = s32[4,2048] parameter(1)
  broadcast = s32[4,2048,50304] broadcast(param_1), dimensions={0,1}
  iota = s32[4,2048,50304] iota(), iota_dimension=2
  compare = pred[4,2048,50304] compare(broadcast, iota), direction=EQ
  bitcast = f32[4,2048,50304] bitcast(param_0)
  constant = f32[] constant(-inf)
  reduce = f32[8192] reduce(param_0, constant), dimensions={1}, to_apply=max_computation
  bitcast.1 = f32[4,2048] bitcast(reduce)
  broadcast.1 = f32[4,2048,50304] broadcast(bitcast.1), dimensions={0,1}
  subtract = f32[4,2048,50304] subtract(bitcast, broadcast.1)
  exponential = f32[4,2048,50304] exponential(subtract)
  constant.1 = f32[] constant(0)
  reduce.1 = f32[4,2048] reduce(exponential, constant.1), dimensions={2}, to_apply=add_computation
  log = f32[4,2048] log(reduce.1)
  broadcast.2 = f32[4,2048,50304] broadcast(log), dimensions={0,1}
  subtract.1 = f32[4,2048,50304] subtract(subtract, broadcast.2)
  constant.2 = f32[] constant(0)
  broadcast.3 = f32[4,2048,50304] broadcast(constant.2), dimensions={}
  select = f32[4,2048,50304] select(compare, subtract.1, broadcast.3)
  bitcast.2 = f32[4,2048,393,128] bitcast(select)
  ROOT reduce.2 = f32[4,2048,393] reduce(bitcast.2, constant.2), dimensions={3},
    to_apply=add_computation
}
ENTRY entry_computation {
  param_0 = f32[8192,50304] parameter(0)
  param_1 = s32[4,2048] parameter(1)
  ROOT fusion = f32[4,2048,393] fusion(param_0, param_1), kind=kCustom, calls=fused_computation
}
"""
"""The fusion of XLA's ``symbolic_tile_analysis_test.cc``, test
``GetGoodTilingsWorksForSoftmaxAndReduceExample``, which expects tilings."""


def test_a_softmax_with_a_reduction_has_tilings() -> None:
    fusion = hlo.parse(GOOD_TILINGS).entry.root
    for symbolic in (False, True):
        tilings = valid_tilings(fusion, "xla", symbolic=symbolic)
        assert not isinstance(tilings, Unknown)
        first = list(islice(tilings, 3))
        assert [tiling.sizes for tiling in first] == [(1, 1, 1), (1, 1, 2), (1, 1, 4)]
        assert [o.kind for tiling in first for o in tiling.operands] == ["box"] * 6


SOFTMAX = """
add { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }
fused {
  param_0 = f32[512,911]{1,0} parameter(0)
  param_1 = f32[911]{0} parameter(1)
  broadcast_0 = f32[512,911]{1,0} broadcast(param_1), dimensions={1}
  multiply_0 = f32[512,911]{1,0} multiply(param_0, broadcast_0)
  constant_0 = f32[] constant(0)
  reduce_0 = f32[512]{0} reduce(multiply_0, constant_0), dimensions={1}, to_apply=add
  broadcast_4 = f32[512,911]{1,0} broadcast(reduce_0), dimensions={0}
  ROOT multiply = f32[512,911]{1,0} multiply(multiply_0, broadcast_4)
}
ENTRY main {
  param_0 = f32[512,911]{1,0} parameter(0)
  param_1 = f32[911]{0} parameter(1)
  ROOT triton_softmax = f32[512,911]{1,0} fusion(param_0, param_1), kind=kCustom, calls=fused
}
"""
"""The fusion of XLA's ``gpu_indexing_performance_model_test.cc``, test
``TritonSoftmaxFusionInstructionIsSupported``."""

P0, P1 = 512 * 911 * 4, 911 * 4


def test_a_softmax_loads_what_xla_expects() -> None:
    """XLA expects ``bytes_read == kParam0SizeBytes + 512 * kParam1SizeBytes`` for [1, 911]."""
    softmax = hlo.parse(SOFTMAX).entry.root
    result = best_tilings(softmax, sizes=[[1, 8, 512], [1, 911]], top=10)
    assert isinstance(result, BestTilings)
    loads = {ranked.sizes: ranked.loaded for ranked in result}
    assert loads[1, 911] == P0 + 512 * P1
    assert loads[8, 911] == P0 + 64 * P1
    assert loads[1, 1] == 911 * (P0 + 512 * P1)


def dump(*own: tuple[list[int], str, int]) -> str:
    """A dump in the form of XLA's; see test_xla_candidates.py for the source of the format."""
    lines = [f"=== Cost model top-{len(own)} candidates for: multiply = f32[512,911] m() ==="]
    for k, (sizes, time, read) in enumerate(own):
        tiles = " ".join([f"sizes: {size}" for size in sizes])
        lines.append(
            f"Candidate #{k}: block_config: {{output_tiles {{ {tiles} }} num_warps: 2}}, "
            f"EstimateRunTimeData{{\n flops: 1\n bytes_read: {read}\n bytes_written: {P0}\n"
            f" read_time: 1us\n write_time: 1us\n compute_time: 1us\n exec_time: {time}\n}}"
        )
    return "\n".join(lines) + "\n\n"


def test_ranks_of_xla_and_of_bytes_are_compared() -> None:
    text = dump(
        ([1, 911], "5us", P0 + 512 * P1),
        ([4, 911], "6us", P0 + 128 * P1),
        ([2, 1024], "6us", P0 + 256 * P1),  # padded to a power of two
        ([8, 911], "7us", P0 + 64 * P1),
        ([1, 911], "8us", P0 + 512 * P1),
    )
    softmax = hlo.parse(SOFTMAX).entry.root
    result = compare_candidates(softmax, parse_candidates(text)[0])
    assert not isinstance(result, Unknown)
    assert [row.rank for row in result.rows] == [3, 1, 2, 0, 3]
    for row in result.rows:
        assert not isinstance(row.ranked, Unknown)
        assert row.ranked.loaded == row.candidate.bytes_read
        assert row.value == row.ranked.bytes == row.candidate.bytes_read + P0
    # not (1, 2): XLA estimates the same time; not (0, 4): the same bytes
    assert result.disagreements == ((0, 1), (0, 2), (0, 3), (1, 3), (2, 3))
    lines = str(result).splitlines()
    assert lines[0].endswith("5 of 10 pairs are in another order by bytes")
    assert lines[2].split() == [
        *("#0", "[1,911]", "5us", f"{P0 + 512 * P1:,}", f"{P0 + 512 * P1:,}"),
        # each operand has two maps: by the reduction, and by the product
        *(f"{2 * (P0 + 512 * P1):,}", f"{2 * P0 + 512 * P1:,}", "3"),
    ]
    assert lines[-1] == (
        f"#2 before #3 by XLA: 6us < 7us; after it by bytes: {2 * P0 + 256 * P1:,} > "
        f"{2 * P0 + 64 * P1:,}"
    )


def test_dumps_of_other_fusions_are_refused() -> None:
    dot = root(PROGRAMS["dot"])
    (wrong_rank,) = parse_candidates(dump(([4], "1us", 1)))
    with pytest.raises(ValueError, match=r"#0 has the tile sizes \[4\], but `dot` is f32\[5,7\]"):
        compare_candidates(dot, wrong_rank)
    (right,) = parse_candidates(dump(([4, 4], "1us", 1)))
    with pytest.raises(IndexError):
        compare_candidates(dot, right, output_id=1)


def test_notebooks_show_tables() -> None:
    softmax = hlo.parse(SOFTMAX).entry.root
    ranked = best_tilings(softmax, sizes=[[8], [911]])
    assert isinstance(ranked, BestTilings)
    html = ranked._repr_html_()
    assert "best tilings of `triton_softmax`" in html
    assert "[8,911]" in html
    compared = compare_candidates(softmax, parse_candidates(dump(([8, 911], "7us", 1)))[0])
    assert not isinstance(compared, Unknown)
    assert "0 of 0 pairs are in another order by bytes" in compared._repr_html_()


# ---------------------------------------------------------------- masks

MASKED = """
fused {{
  q = f32[8,2] parameter(0)
  k = f32[8,2] parameter(1)
  n = s32[] parameter(2)
  s = f32[8,8] dot(q, k), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
  i = s32[8,8] iota(), iota_dimension=0
  j = s32[8,8] iota(), iota_dimension=1
  {mask}
  low = f32[] constant(-inf)
  lows = f32[8,8] broadcast(low), dimensions={{}}
  ROOT r = f32[8,8] select(p, s, lows)
}}
ENTRY e {{
  q = f32[8,2] parameter(0)
  k = f32[8,2] parameter(1)
  n = s32[] parameter(2)
  ROOT f = f32[8,8] fusion(q, k, n), kind=kLoop, calls=fused
}}"""
CAUSAL = "p = pred[8,8] compare(i, j), direction=GE"
PADDED = "b = s32[8,8] broadcast(n), dimensions={}  p = pred[8,8] compare(j, b), direction=LT"


@pytest.mark.parametrize("rows", [1, 2, 4, 8])
def test_a_causal_tile_loads_all_keys_and_needs_those_of_its_last_query(rows: int) -> None:
    root = hlo.parse(MASKED.format(mask=CAUSAL)).entry.root
    (ranked,) = require_known(indexing.best_tilings(root, sizes=[[rows], [8]])).ranked
    keys = list(range(rows, 9, rows))  # of each tile of queries
    assert ranked.loaded == 8 * (8 + len(keys) * 8)
    assert (ranked.needed, ranked.needed_grade) == (8 * (8 + sum(keys)), "exact")


def test_a_runtime_mask_bounds_what_a_tile_needs() -> None:
    root = hlo.parse(MASKED.format(mask=PADDED)).entry.root
    best = require_known(indexing.best_tilings(root, sizes=[[8], [8]]))
    (ranked,) = best.ranked
    assert ranked.needed == ranked.loaded == 8 * 16 + 4
    assert (ranked.grade, ranked.needed_grade) == ("exact", "may")
    assert "<= 132" in str(best)
    (whole,) = require_known(indexing.best_tilings(hlo.parse(SOFTMAX).entry.root, top=1)).ranked
    assert (whole.needed, whole.needed_grade) == (whole.loaded, whole.grade)

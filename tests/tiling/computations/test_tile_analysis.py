"""`tile_analysis`: XLA's cases, text in both notations, several roots, errors and budgets."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import hlo
from hlo import HloError, Instruction
from indexing import Unknown
from indexing.tiling.computations import tile_graph
from indexing.tiling.computations.tile_analysis import TileAnalysis, tile_analysis
from indexing.tiling.computations.tile_boxes import TileBox
from indexing.tiling.computations.tiled_computation import TiledComputation
from indexing.tiling.computations.tiled_instruction import TiledInstruction
from tests.growth.work import calls_of
from tests.tiling.computations.analysis_oracle import check, entry

GOLDEN = json.loads((Path(__file__).parent / "golden_tile_analysis.json").read_text())
"""XLA's cases: the text of each module, the tiled computation or the producer and its consumer, and
what is expected, with the operand path from the tiled root to the instruction."""


def analyse(text: str) -> TileAnalysis:
    analysis = tile_analysis(entry(text))
    assert isinstance(analysis, TileAnalysis)
    return analysis


def root_of(tiled: TiledComputation) -> TiledInstruction:
    root = tiled.roots[0].tiled
    assert isinstance(root, TiledInstruction)
    return root


def at(tiled: TiledComputation, path: Sequence[int]) -> TiledInstruction:
    """Return the tile that a path of operand numbers leads to from the root."""
    each = root_of(tiled)
    for operand in path:
        (each,) = each.operands[operand]
    return each


def box_of(each: TiledInstruction) -> TileBox:
    assert isinstance(each.tile, TileBox)
    return each.tile


# ---------------------------------------------------------------- XLA's cases


def golden(case: dict[str, Any]) -> TileAnalysis:
    module = hlo.parse(GOLDEN["modules"][case["module"]])
    target: hlo.Computation | list[Instruction]
    if "computation" in case:
        target = module.computations[case["computation"]]
    else:
        target = [module.entry[name] for name in case["instructions"]]
    analysis = tile_analysis(target)
    assert isinstance(analysis, TileAnalysis)
    return analysis


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["id"])
def test_case_of_xla(case: dict[str, Any]) -> None:
    analysis = golden(case)
    assert analysis.unknown == ()
    if "constraints" in case:
        assert str(analysis.constraints).replace("ts_", "d") == case["constraints"]
    tiled = [analysis.tiled(case["sizes"]) for _ in "a" if "sizes" in case]
    for each in tiled:
        for expected in case.get("tiles", ()):
            tile = at(each, expected["path"])
            assert tile.instruction.name == expected["name"]
            assert [str(side.size) for side in box_of(tile).sides] == expected["sizes"]
            assert [str(side.stride) for side in box_of(tile).sides] == expected["strides"]
            assert str(each.offsets(tile)) == expected["offsets"]
        for paths in case.get("same", ()):
            assert len({at(each, path) for path in paths}) == 1


# ---------------------------------------------------------------- text

DIAMOND = """
  p = f32[16,97] parameter(0)
  low = f32[] constant(-inf)
  m = f32[16] reduce(p, low), dimensions={1}, to_apply=max
  b = f32[16,97] broadcast(m), dimensions={0}
  ROOT s = f32[16,97] subtract(p, b)"""


def test_text_with_loop() -> None:
    assert str(analyse(DIAMOND).tiled([8, 50, 32])).splitlines() == [
        "Dimensions:",
        "0 type: parallel size: 16 tile size: 8 dim ID:0 hlo: %s = f32[16,97] subtract(%p, %b)",
        "1 type: parallel size: 97 tile size: 50 dim ID:1 hlo: %s = f32[16,97] subtract(%p, %b)",
        "2 type: sequential size: 97 tile size: 32 dim ID:1 hlo: %m = f32[16] reduce(%p, %low), "
        "dimensions={1}, to_apply=max",
        "Root tiles:",
        "0 root tile:  offsets [tid_0 * 8, tid_1 * 50] sizes [8, 50] strides [1, 1] "
        "upper bounds [16, 97]",
        "",
        "Tiled HLO:",
        "  p.tile_0 = parameter(0)  offsets [tid_0 * 8, tid_1 * 50] sizes [8, 50] "
        "strides [1, 1] upper bounds [16, 97]",
        "  low.tile_0 = constant()  offsets [] sizes [] strides [] upper bounds []",
        "  m.tile_0 = reduce(p.tile_1, low.tile_0)  offsets [tid_0 * 8] sizes [8] strides [1] "
        "upper bounds [16]",
        "  region #0 {",
        "    p.tile_1 = parameter(0)  offsets [tid_0 * 8, tid_2 * 32] sizes [8, 32] "
        "strides [1, 1] upper bounds [16, 97]",
        "  }",
        "  b.tile_0 = broadcast(m.tile_0)  offsets [tid_0 * 8, tid_1 * 50] sizes [8, 50] "
        "strides [1, 1] upper bounds [16, 97]",
        "  s.tile_0 = subtract(p.tile_0, b.tile_0)  offsets [tid_0 * 8, tid_1 * 50] "
        "sizes [8, 50] strides [1, 1] upper bounds [16, 97]",
    ]


def test_equal_tiles_are_one() -> None:
    tiled = analyse(DIAMOND).tiled([8, 128, 128])
    assert [each.name for each in tiled.instructions] == [
        *("p.tile_0", "low.tile_0", "m.tile_0", "b.tile_0", "s.tile_0")
    ]
    assert at(tiled, [0]) is at(tiled, [1, 0, 0])


def test_loops_that_are_not_tiled_have_one_iteration() -> None:
    tiled = analyse(DIAMOND).tiled([8, 50])
    assert tiled.sizes == (8, 50, 97)
    assert tiled.grid == (2, 2, 1)
    assert "region" not in str(tiled)


NESTED = """
  p = f32[4,6] parameter(0)
  q = f32[6,5] parameter(1)
  z = f32[] constant(0)
  x = f32[4] parameter(2)
  d = f32[4,5] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  w = f32[4,5] broadcast(x), dimensions={0}
  a = f32[4,5] add(d, w)
  ROOT s = f32[4] reduce(a, z), dimensions={1}, to_apply=add"""


def test_loops_nest_and_invariants_are_outside() -> None:
    lines = str(analyse(NESTED).tiled([2, 2, 3])).splitlines()
    names = [
        line.partition(" = ")[0]
        for line in lines[lines.index("Tiled HLO:") + 1 :]
        if "}" not in line
    ]
    assert names == [
        "  x.tile_0",
        "  z.tile_0",
        "  s.tile_0",
        "  region #0 {",
        "    d.tile_0",
        "    region #0 {",
        "      p.tile_0",
        "      q.tile_0",
        "    w.tile_0",
        "    a.tile_0",
    ]


def test_notation_of_2025() -> None:
    assert analyse(DIAMOND).text_2025().splitlines()[-10:-5] == [
        "b.tile_0: %b = f32[16,97] broadcast(%m), dimensions={0}",
        "Symbolic tile with",
        "  offset_map: (d0, d1) -> (0, 0)",
        "  size_map: (d0, d1) -> (d0, d1)",
        "  stride_map: (d0, d1) -> (1, 1)",
    ]


SLICES = """
  p = f32[64] parameter(0)
  i = s32[] parameter(1)
  j = s32[] parameter(2)
  a = f32[20] dynamic-slice(p, i), dynamic_slice_sizes={20}
  b = f32[20] dynamic-slice(p, j), dynamic_slice_sizes={20}
  c = f32[20] dynamic-slice(p, i), dynamic_slice_sizes={20}
  s = f32[20] add(a, b)
  ROOT t = f32[20] add(s, c)"""


def test_each_runtime_value_has_one_name() -> None:
    tiled = analyse(SLICES).tiled([8])
    assert [rt.source_name for rt in tiled.runtime] == ["i", "j"]
    tiles = [
        str(box_of(each).sides[0].offset)
        for each in tiled.tiles_of(tiled.roots[0].array.instruction.computation["p"])
    ]
    assert tiles == ["rt_0 + tid_0 * 8", "rt_1 + tid_0 * 8"]
    assert "0 bounds: [0, 44] hlo: %i = s32[] parameter(1)" in str(tiled)


# ---------------------------------------------------------------- several roots


def roots(analysis: TileAnalysis, sizes: Sequence[int]) -> list[str]:
    tiles = [root.tiled for root in analysis.tiled(sizes).roots]
    return [
        f"unknown: {each.reason}"
        if isinstance(each, Unknown)
        else str(each.tile).partition(" strides")[0]
        for each in tiles
    ]


def test_root_that_another_root_is_computed_from() -> None:
    analysis = analyse("""
  p = f32[4,6] parameter(0)
  z = f32[] constant(0)
  n = f32[4,6] negate(p)
  s = f32[4] reduce(n, z), dimensions={1}, to_apply=add
  ROOT t = (f32[4], f32[4,6], f32[4]) tuple(s, n, s)""")
    assert roots(analysis, [2, 3]) == [
        "offsets [tid_0 * 2] sizes [2]",
        "offsets [tid_0 * 2, tid_1 * 3] sizes [2, 3]",
        "offsets [tid_0 * 2] sizes [2]",
    ]
    assert check(analysis, (2, 3)) > 0


def test_root_that_shares_an_operand() -> None:
    analysis = analyse("""
  p = f32[4,6] parameter(0)
  n = f32[4,6] negate(p)
  t = f32[6,4] transpose(p), dimensions={1,0}
  ROOT r = (f32[4,6], f32[6,4]) tuple(n, t)""")
    assert roots(analysis, [2, 3]) == [
        "offsets [tid_0 * 2, tid_1 * 3] sizes [2, 3]",
        "offsets [tid_1 * 3, tid_0 * 2] sizes [3, 2]",
    ]


def test_root_that_does_not_follow_has_a_reason() -> None:
    analysis = analyse("""
  p = f32[4,6] parameter(0)
  q = f32[5] parameter(1)
  n = f32[4,6] negate(p)
  m = f32[5] negate(q)
  ROOT r = (f32[4,6], f32[5]) tuple(n, m)""")
    reason = "no tile of `m` f32[5] follows from a tile of `n` f32[4,6]"
    assert roots(analysis, [2, 3])[1] == f"unknown: {reason}"
    assert [each.reason for each in analysis.unknown] == [reason]


def test_root_of_which_only_a_part_is_needed_does_not_follow() -> None:
    analysis = analyse("""
  p = f32[9] parameter(0)
  n = f32[9] negate(p)
  s = f32[4] slice(n), slice={[0:8:2]}
  ROOT r = (f32[4], f32[9]) tuple(s, n)""")
    covering = roots(analysis, [2])
    assert covering[1] == "offsets [tid_0 * 2] sizes [2]"  # n is tiled, and s follows from it
    assert check(analysis, (2,)) > 0


# ---------------------------------------------------------------- constraints


def test_constraints_of_all_parts() -> None:
    analysis = analyse("""
  p = f32[4,6,10] parameter(0)
  n = f32[24,10] reshape(p)
  ROOT r = f32[24,5,2] reshape(n)""")
    constraints = analysis.constraints
    for sizes in [(6, 5, 2), (12, 1, 1), (3, 5, 2), (4, 1, 1), (6, 3, 1), (6, 2, 2)]:
        known = analysis.tiled(sizes).unknown == ()
        assert known or not constraints.satisfied_by(sizes)
    violation = constraints.violation([4, 1, 1])
    assert violation is not None
    assert violation.instruction == "p"


def test_sizes_of_loops_have_constraints_of_their_own() -> None:
    analysis = analyse("""
  p = f32[5,4,6] parameter(0)
  n = f32[5,24] reshape(p)
  z = f32[] constant(0)
  ROOT r = f32[5] reduce(n, z), dimensions={1}, to_apply=add""")
    assert analysis.constraints.satisfied_by([2])
    assert not analysis.loop_constraints.satisfied_by([2, 4])
    assert analysis.loop_constraints.satisfied_by([2, 12])


# ---------------------------------------------------------------- errors and budgets


@pytest.mark.parametrize("sizes", [(), (8,), (8, 50, 32, 1), (0, 5), (8, -1, 3)])
def test_wrong_sizes(sizes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"expected 2 positive tile sizes.*or 3 with"):
        analyse(DIAMOND).tiled(sizes)


def test_instructions_of_several_computations() -> None:
    module = entry(DIAMOND).module
    with pytest.raises(ValueError, match="instructions of one computation, got `s` of `e`, `c` of"):
        tile_analysis([module.entry["s"], module.computations["add"]["c"]])
    with pytest.raises(ValueError, match="got none"):
        tile_analysis([])


def test_invalid_instruction() -> None:
    with pytest.raises(HloError, match="transpose C2"):
        tile_analysis(
            entry("p = f32[2,3] parameter(0) ROOT t = f32[3,2] transpose(p), dimensions={0,0}")
        )


@pytest.mark.parametrize("shape", ["token[]", "f32[0,3]", "f32[?]"])
def test_roots_without_tiles(shape: str) -> None:
    analysis = tile_analysis(entry(f"ROOT p = {shape} parameter(0)"))
    assert isinstance(analysis, Unknown)
    assert "`p`" in analysis.reason


def test_unknown_maps_have_a_reason_for_all_that_is_behind() -> None:
    analysis = analyse("""
  p = f32[4] parameter(0)
  n = f32[4] negate(p)
  c = f32[4] frobnicate(n)
  ROOT r = f32[4] negate(c)""")
    unknown = [
        each.instruction.name for each in analysis.instructions if isinstance(each.tile, Unknown)
    ]
    assert unknown == ["p", "n"]
    assert "frobnicate `c`" in analysis.unknown[0].reason


def test_tiles_beyond_the_budget_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_graph, "MAX_TILES", 2)
    rows = "\n".join(f"s{k} = f32[4] slice(n), slice={{[{k}:{k + 4}]}}" for k in range(4))
    sums = "\n".join(f"t{k} = f32[4] add(s{k}, s{(k + 1) % 4})" for k in range(4))
    analysis = analyse(f"""
  p = f32[9] parameter(0)
  n = f32[9] negate(p)
  {rows}
  {sums}
  u = f32[4] add(t0, t1)
  v = f32[4] add(t2, t3)
  ROOT r = f32[4] add(u, v)""")
    reasons = {each.reason for each in analysis.unknown}
    assert "budget: `n` has more than 2 different tiles" in reasons
    assert {each.instruction.name for each in analysis.instructions} >= {"p", "n", "s3"}


def test_all_tiles_together_have_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_graph, "MAX_ALL_TILES", 3)
    monkeypatch.setattr(tile_graph, "MAX_ARRAYS", 4)
    analysis = analyse("""
  p = f32[9] parameter(0)
  a = f32[9] negate(p)
  b = f32[9] negate(a)
  c = f32[9] negate(b)
  d = f32[9] negate(c)
  ROOT e = f32[9] negate(d)""")
    known = [each.name for each in analysis.instructions if not isinstance(each.tile, Unknown)]
    assert known == ["c.tile_0", "d.tile_0", "e.tile_0"]
    reasons = [each.reason for each in analysis.unknown]
    assert reasons == ["budget: there are more than 3 different tiles"]


def test_long_chains_of_convolutions_are_over_approximated() -> None:
    lines = ["c0 = f32[1,40,1] parameter(0)", "k = f32[3,1,1] parameter(1)"]
    attributes = "window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f"
    for number in range(1, 10):
        conv = f"f32[1,40,1] convolution(c{number - 1}, k), {attributes}"
        lines.append(f"c{number} = {conv}")
    analysis = analyse("\n".join(lines))
    tiles = analysis.symbolic.tiles_of(analysis.arrays[0].instruction.operands[0])
    grades = [None if each.map is None else each.map.grade for each in tiles]
    assert grades == ["exact"]
    first = analysis.arrays[0].instruction.computation["c0"]
    maps = [each.map for each in analysis.symbolic.tiles_of(first)]
    assert {None if m is None else m.grade for m in maps} == {"may"}
    assert all(m is not None and len(m.ranges) <= 3 for m in maps)


def test_root_whose_operand_is_in_a_loop_of_another_root() -> None:
    analysis = analyse("""
  p = f32[4,6] parameter(0)
  z = f32[] constant(0)
  n = f32[4,6] negate(p)
  s = f32[4] reduce(n, z), dimensions={1}, to_apply=add
  b = f32[4,6] broadcast(s), dimensions={0}
  d = f32[4,6] subtract(n, b)
  t = f32[6,4] transpose(d), dimensions={1,0}
  ROOT r = (f32[4], f32[6,4]) tuple(s, t)""")
    assert not any(isinstance(root.tiled, Unknown) for root in analysis.roots)
    assert check(analysis, tuple([min(2, each.size) for each in analysis.dimensions])) > 0


def test_long_chains_of_reshapes_take_one_tile_each(monkeypatch: pytest.MonkeyPatch) -> None:
    visits = calls_of(monkeypatch, tile_graph.TileGraph, "_visit")
    shapes = ["96,360", "144,240", "34560", "60,576", "48,720"]
    lines = ["p = f32[720,48] parameter(0)", "r0 = f32[48,720] reshape(p)"]
    lines += [f"r{k} = f32[{shapes[k % 5]}] reshape(r{k - 1})" for k in range(1, 40)]
    analysis = analyse("\n".join(lines))
    assert len(analysis.instructions) == len(visits) == 41
    assert len(str(analysis.constraints)) < 5000
    assert analysis.constraints.satisfied_by([48, 720])

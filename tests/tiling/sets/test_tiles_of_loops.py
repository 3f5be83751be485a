"""Tiles of loop results and of instructions in loops."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

import hlo
import indexing
from indexing import cli
from indexing.maps.regions.region import Region

SCAN = """
less { s = (s32[], f32[3], f32[7,3], f32[7,3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(7)  ROOT r = pred[] compare(i, n), direction=LT }
next { s = (s32[], f32[3], f32[7,3], f32[7,3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0  total = f32[3] get-tuple-element(s), index=1
  xs = f32[7,3] get-tuple-element(s), index=2  sums = f32[7,3] get-tuple-element(s), index=3
  zero = s32[] constant(0)  x = f32[1,3] dynamic-slice(xs, i, zero), dynamic_slice_sizes={1,3}
  row = f32[3] reshape(x)  sum = f32[3] add(total, row)  wide = f32[1,3] reshape(sum)
  updated = f32[7,3] dynamic-update-slice(sums, wide, i, zero)
  one = s32[] constant(1)  j = s32[] add(i, one)
  ROOT t = (s32[], f32[3], f32[7,3], f32[7,3]) tuple(j, sum, xs, updated) }
ENTRY main { xs = f32[7,3] parameter(0)  first = f32[3] parameter(1)  zero = s32[] constant(0)
  z = f32[] constant(0)  empty = f32[7,3] broadcast(z), dimensions={}
  s = (s32[], f32[3], f32[7,3], f32[7,3]) tuple(zero, first, xs, empty)
  w = (s32[], f32[3], f32[7,3], f32[7,3]) while(s), condition=less, body=next
  sums = f32[7,3] get-tuple-element(w), index=3
  ROOT out = f32[3,7] transpose(sums), dimensions={1,0} }
"""


def elements(region: object) -> set[tuple[int, ...]]:
    """Return the elements of a region."""
    assert isinstance(region, Region)
    listed = region.elements()
    assert not isinstance(listed, indexing.Unknown)
    return {tuple(element) for element in listed}


@pytest.mark.parametrize(("name", "sizes"), [("sums", (2, 3)), ("out", (2, 3)), ("w", (2, 3))])
def test_a_tile_of_a_loop_result_contains_what_its_elements_need(
    name: str, sizes: tuple[int, ...]
) -> None:
    main = hlo.parse(SCAN).entry
    output = 3 if name == "w" else 0
    tiling = indexing.tile(main[name], sizes, to="parameters", output_id=output)
    answer = indexing.to_parameters(main[name], output)
    assert isinstance(tiling, indexing.Tiling)
    for index in tiling.tiles():
        box = [range(s.start, s.stop) for s in tiling.slices(*index)]
        for region, maps in zip(tiling.at(*index), answer.maps, strict=True):
            assert isinstance(region, Region)
            if any(m.grade == "may" for m in maps):
                assert region.grade == "may"
            needed = set().union(*[elements(m.at(a, b)) for m in maps for a, b in product(*box)])
            assert needed
            assert needed <= elements(region)


def test_the_tiles_of_an_instruction_in_a_loop_are_those_of_each_iteration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scan.hlo").write_text(SCAN)
    assert cli.run(["tile", "scan.hlo", "-i", "next/sum", "--sizes", "2"]) == 0
    assert "next: sum = f32[3] add, output-to-input, in each of 7 executions, tiles [2]" in (
        capsys.readouterr().out
    )
    assert cli.run(["tile", "scan.hlo", "-i", "next/sum", "--sizes", "2", "--format", "json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["executions"] for record in records] == [[7, 7], [7, 7]]
    assert cli.run(["tile", "scan.hlo", "-i", "out", "--sizes", "2,3"]) == 0
    assert "executions" not in capsys.readouterr().out

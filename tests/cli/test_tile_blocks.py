"""``hlo-indexing tile --blocks``: the blocks of `Tiling.blocks`, their pictures, and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo
import indexing
from indexing import TiledBlocks
from indexing.views.block_tables import MARKS
from tests.cli.running import Run, runner, valid_records
from tests.drawing.pictures import cells

PROGRAM = """\
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[2,24,20] parameter(0)
  n = s32[2] parameter(1)
  i = s32[2,24,20] iota(), iota_dimension=1
  j = s32[2,24,20] iota(), iota_dimension=2
  length = s32[2,24,20] broadcast(n), dimensions={0}
  below = pred[2,24,20] compare(j, i), direction=LE
  inside = pred[2,24,20] compare(j, length), direction=LT
  both = pred[2,24,20] and(below, inside)
  zero = f32[] constant(0)
  zeros = f32[2,24,20] broadcast(zero), dimensions={}
  causal = f32[2,24,20] select(below, x, zeros)
  padded = f32[2,24,20] select(both, x, zeros)
  sums = f32[2,24] reduce(causal, zero), dimensions={2}, to_apply=add
  sums.padded = f32[2,24] reduce(padded, zero), dimensions={2}, to_apply=add
  ROOT both.sums = (f32[2,24], f32[2,24]) tuple(sums, sums.padded)
}
"""
OPTIONS = "--to parameters --sizes 1,8 --blocks 8"


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    (tmp_path / "m.hlo").write_text(PROGRAM)
    return runner(capsys, "tile", str(tmp_path / "m.hlo"))


def blocks_of(name: str) -> TiledBlocks:
    tiling = indexing.tile(hlo.parse(PROGRAM).entry[name], (1, 8), to="parameters")
    assert isinstance(tiling, indexing.Tiling)
    blocks = tiling.blocks("x", 8)
    assert isinstance(blocks, TiledBlocks)
    return blocks


def test_a_line_gives_the_figures_and_a_picture_has_a_row_for_each_tile(run: Run) -> None:
    status, out, _ = run(f"-i sums {OPTIONS}")
    assert status == 0
    head, *lines = out.splitlines()
    assert head.endswith("all 6 tiles are whole, blocks of 8")
    # of 8 rows, 8 + 4 and 4 of 20 indices are skipped: 2 * 8 * 16 elements of 2 * 24 * 20
    assert lines == [
        "  parameter 0 x f32[2,24,20]: dimension 2 in 3 blocks of 8, 6 full, 6 partial, 6 skipped, "
        "1,024 of 3,840 bytes skipped, 26.7 % of the pairs skipped",
        "    loop: from block 0 to block tid_1",
        "    +.. tid_1=0",
        "    #+. tid_1=1",
        "    ##+ tid_1=2",
    ]


def test_runtime_values_have_their_sources(run: Run) -> None:
    _, out, _ = run(f"-i sums.padded {OPTIONS}")
    lines = [line.strip() for line in out.splitlines()]
    assert "loop: from block 0 to block min(tid_1, (rt0 - 1) floordiv 8)" in lines
    assert "rt0 = n[tid_0]" in lines
    assert lines[-6:] == [
        *["?.. tid_0,tid_1=0,0", "??. tid_0,tid_1=0,1", "??? tid_0,tid_1=0,2"],
        *["?.. tid_0,tid_1=1,0", "??. tid_0,tid_1=1,1", "??? tid_0,tid_1=1,2"],
    ]


@pytest.mark.parametrize("name", ["sums", "sums.padded"])
def test_records_are_those_of_python(run: Run, name: str) -> None:
    (record,) = valid_records(run, "tile", f"-i {name} {OPTIONS}")
    blocks = blocks_of(name)
    assert record["result"] == "blocks"
    assert record["operand_name"] == "x"
    assert record["counts"] == blocks.counts
    assert record["pairs"] == blocks.pairs
    assert record["block_bytes"] == blocks.bytes
    assert isinstance(blocks.loop_bounds, tuple)
    assert [bounds["map"] for bounds in record["loop_bounds"]] == list(map(str, blocks.loop_bounds))
    assert record["tile_dimensions"] == list(blocks.dims)
    tiles = [index for index in blocks.grid.tiles() if not index[0] or 0 in blocks.dims]
    rows = ["".join([MARKS[state] for state in blocks.at(*index)]) for index in tiles]
    assert record["states"] == rows


@pytest.mark.parametrize("name", ["sums", "sums.padded"])
def test_a_picture_shows_the_state_of_each_block(run: Run, name: str) -> None:
    status, out, _ = run(f"-i {name} {OPTIONS} --format svg")
    assert status == 0
    blocks = blocks_of(name)
    assert cells(out, "x") == cells(blocks.plot().svg, "x")
    tiles = [index for index in blocks.grid.tiles() if not index[0] or 0 in blocks.dims]
    assert cells(out, "x") == {
        f"tile {[index[k] for k in blocks.dims]}, block {b}": state
        for index in tiles
        for b, state in enumerate(blocks.at(*index))
    }


def test_dimensions_of_one_block_are_left_out(run: Run) -> None:
    _, out, _ = run("-i sums --to parameters --sizes 1,8 --blocks 20")
    assert out.splitlines()[1:] == ["  no loop runs over a dimension of several blocks"]


def test_long_pictures_are_cut() -> None:
    tiling = indexing.tile(
        hlo.parse(PROGRAM.replace("24", "130")).entry["sums"], (1, 1), "parameters"
    )
    assert isinstance(tiling, indexing.Tiling)
    blocks = tiling.blocks("x", 8)
    lines = str(blocks).splitlines()
    assert lines[-2:] == ["  ### tid_1=63", "  … and 66 more tiles"]
    assert isinstance(blocks, TiledBlocks)
    assert "the first 128 of 130 tiles" in blocks.plot().svg


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--blocks 8", "--blocks needs --sizes"),
        ("--sizes 1,8 --blocks 8 --at 0,0", "--blocks cannot be used with --at"),
        ("--sizes 1,8 --blocks 8 --explain", "--blocks cannot be used with --explain"),
        ("--sizes 1,8 --blocks 8 --cache 8KiB", "--cache cannot be used with --blocks"),
        ("--search --blocks 8", "--blocks needs --sizes"),
        (
            "--sizes 1,8 --blocks 8 --direction input-to-output",
            "--blocks cannot be used with --direction input-to-output",
        ),
        ("--sizes 1,8 --blocks 0", "0 is not in the range x>=1"),
        ("--sizes 1,8 --format svg", "it needs --at without --explain, or --blocks"),
    ],
)
def test_options_that_contradict_each_other_are_refused(run: Run, line: str, message: str) -> None:
    status, out, err = run(f"-i sums {line}")
    assert (status, out) == (2, "")
    assert message in err

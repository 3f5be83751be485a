"""``--format svg``: the pictures that the commands print are those of `plot`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hlo
import indexing
from indexing import cli
from tests.drawing.pictures import SVG, agrees, cells, texts, tree

EXAMPLES = Path(__file__).parents[2] / "examples"
ATTENTION = str(EXAMPLES / "attention.opt.hlo")
POOLING = str(EXAMPLES / "reduce_window.pre.hlo")
COPY = "transpose_copy_fusion.2"


def run_command(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.run(arguments) == 0
    text = capsys.readouterr().out
    tree(text)
    return text.removesuffix("\n")


def error_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.run(arguments) in (1, 2)
    captured = capsys.readouterr()
    assert not captured.out
    return captured.err


def test_maps_draw_what_a_tile_reads(capsys: pytest.CaptureFixture[str]) -> None:
    svg = run_command(
        capsys,
        "maps",
        POOLING,
        *("-i", "reduce_window_sum.7", "--at", "0,0:2,:"),
        "--format",
        "svg",
    )
    pooling = hlo.load(POOLING).entry["reduce_window_sum.7"]
    assert svg == indexing.output_to_input(pooling).plot(0, slice(0, 2), slice(None)).svg


def test_maps_of_one_operand_or_parameter(capsys: pytest.CaptureFixture[str]) -> None:
    at = ("maps", POOLING, "-i", "reduce_window_sum.7", "--at", "0,0,0", "--format", "svg")
    assert not cells(run_command(capsys, *at, "--operand", "1"), "x.1")
    assert cells(run_command(capsys, *at, "--operand", "0"), "x.1")
    copied = ("maps", ATTENTION, "-i", COPY, "--at", "0,1,2,3", "--format", "svg")
    to_parameters = run_command(capsys, *copied, "--to", "parameters", "--operand", "p__v__.1")
    needed = np.zeros((64, 64), int)
    needed[:, 1 * 16 + 2] = 1
    agrees(to_parameters, "p__v__.1", needed)
    assert not cells(to_parameters, "x.1")


def test_both_directions_are_figures_below_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    module = "ENTRY e { p = f32[4] parameter(0)  ROOT r = f32[4] reverse(p), dimensions={0} }"
    path = Path("m.hlo")
    path.write_text(module)
    svg = run_command(
        capsys, "maps", str(path), "--at", "1", "--direction", "both", "--format", "svg"
    )
    titles = [each.text for each in tree(svg).iter(f"{SVG}text") if each.get("class") == "title"]
    assert titles == ["what r[1] needs", "what p[1] is needed by"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_file_gets_the_picture(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("maps", ATTENTION, "-i", COPY, "--at", "0,1,2,:", "--format", "svg")
    svg = run_command(capsys, *arguments)
    assert cli.run([*arguments, "-o", "reads.svg"]) == 0
    assert Path("reads.svg").read_text().rstrip("\n") == svg


def test_tile_access_bytes_and_shard(capsys: pytest.CaptureFixture[str]) -> None:
    module = hlo.load(ATTENTION)
    tile = ("tile", ATTENTION, "-i", COPY, "--sizes", "1,4,16,8", "--at", "0,0,0,1")
    tiling = indexing.tile(module.entry[COPY], (1, 4, 16, 8))
    assert isinstance(tiling, indexing.Tiling)
    assert run_command(capsys, *tile, "--format", "svg") == tiling.plot(0, 0, 0, 1).svg
    access = run_command(capsys, "access", ATTENTION, "-i", COPY, "--format", "svg")
    plotted = indexing.access(module.entry[COPY]).plot().svg
    assert cells(access, COPY) == cells(plotted, COPY)
    assert "128 threads, unroll 1, A100" in texts(access)
    rates = ("--peak", "4.8TB/s,67TF/s", "--limit", "3")
    drawn = run_command(capsys, "bytes", ATTENTION, *rates, "--format", "svg")
    assert drawn == indexing.traffic(module).plot("4.8TB/s,67TF/s", top=3).svg
    mesh = ("--mesh", "x=2", "--spec", "x.1=x,_,_")
    plan = indexing.shard(module, {"x": 2}, {"x.1": ("x", None, None)})
    assert run_command(capsys, "shard", ATTENTION, *mesh, "--format", "svg") == plan.plot().svg


ERRORS = [
    (("maps", ATTENTION), "it needs --at"),
    (("maps", ATTENTION, "--at", "0,0,0", "--jobs", "2"), "cannot be used with --jobs"),
    (("maps", ATTENTION, "-i", COPY, "--at", "0:9,0,0,0"), "but dimension 0 of"),
    (("maps", ATTENTION, "-i", "missing", "--at", "0"), "error[name]"),
    (("tile", ATTENTION, "-i", COPY, "--sizes", "1,1,1,1"), "it needs --at"),
    (("tile", ATTENTION, "-i", COPY, "--sizes", "1,1,1,1", "--at", "9,0,0,0"), "error[at]"),
    (("shard", ATTENTION, "--rule"), "--format svg has no effect with --rule"),
]


@pytest.mark.parametrize("arguments, message", ERRORS, ids=lambda words: " ".join(words)[-30:])
def test_errors(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in " ".join(error_of(capsys, *arguments, "--format", "svg").split())

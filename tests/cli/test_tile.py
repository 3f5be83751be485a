"""``hlo-indexing tile``: its tables, its regions, its reasons and its errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from rich.cells import cell_len

import hlo
import indexing
from hlo.shapes.shape import leaves
from indexing import Region, Tiling, cli
from tests.cli.running import validator
from tests.tiling.loops import hand_problems as hand

ROOT = Path(__file__).parents[2]
ATTENTION = str(ROOT / "examples" / "attention.opt.hlo")
EMBEDDING = str(ROOT / "examples" / "embedding_gather.opt.hlo")
UPDATE = str(ROOT / "examples" / "dynamic_slice_update.opt.hlo")
PATCHES = str(ROOT / "examples" / "vit_patch_embed.opt.hlo")
FUSION = ("-i", "transpose_copy_fusion.2")
SMALL = """\
ENTRY e {
  p = f32[9] parameter(0)
  q = f32[7] parameter(1)
  c = f32[16] concatenate(p, q), dimensions={0}
  r = f32[4,4] reshape(c)
  n = f32[] constant(1)
  t = (f32[9], f32[7]) tuple(p, q)
  h = f32[9] custom-call(t), custom_call_target="odd"
  u = f32[9] mystery(h)
  ROOT all = (f32[4,4], f32[9], f32[]) tuple(r, u, n)
}
"""
WINDOW = """\
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY e {
  p = f32[18] parameter(0)
  zero = f32[] constant(0)
  ROOT w = f32[16] reduce-window(p, zero), window={size=3}, to_apply=sum
}
"""
STRICT = "ENTRY e { p = f32[2,3,4] parameter(0)  ROOT r = f32[4,6] reshape(p) }"
COLOUR = re.compile(r"\x1b\[\d*m")
Run: TypeAlias = Callable[..., tuple[int, str, str]]


@pytest.fixture
def small(tmp_path: Path) -> str:
    file = tmp_path / "small.hlo"
    file.write_text(SMALL)
    return str(file)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``tile``; return the exit status, the output and the errors."""

    def ran(*arguments: str) -> tuple[int, str, str]:
        status = cli.run(["tile", *arguments])
        captured = capsys.readouterr()
        assert "error[internal]" not in captured.err
        return status, captured.out, captured.err

    return ran


def records(run: Run, *arguments: str) -> list[dict[str, Any]]:
    status, out, _ = run(*arguments, "--format", "json")
    assert status == 0
    valid = validator("tile")
    listed = [json.loads(line, parse_constant=pytest.fail) for line in out.splitlines()]
    for record in listed:
        valid.validate(record)
        for key in valid.schema["required"]:
            assert not valid.is_valid({k: v for k, v in record.items() if k != key})
    return listed


def test_each_operand_has_a_line_with_its_box_and_its_bytes(run: Run) -> None:
    assert run(ATTENTION, *FUSION, "--sizes", "1,4,16,8") == (
        0,
        f"{ATTENTION}: main.5: transpose_copy_fusion.2 = f32[2,4,16,32] fusion, output-to-input, "
        "tiles [1, 4, 16, 8], grid [2, 1, 1, 4], all 8 tiles are whole\n"
        "  operand 0 ynn_fusion.7 f32[64,64]: box, offsets [tid_0 * 32 + tid_3 * 8, 0], "
        "sizes [8, 64], strides [1, 1], 2,048 bytes in a tile, 16,384 bytes read, 16,384 distinct, "
        "reuse 1, 1 run of 512 elements\n",
        "",
    )


def test_a_colon_is_the_size_of_a_whole_dimension(run: Run) -> None:
    named = run(ATTENTION, *FUSION, "--sizes", "1,4,16,8")
    assert run(ATTENTION, *FUSION, "--sizes", "1,:,:,8") == named
    assert (
        "[2, 4, 16, 32], grid [1, 1, 1, 1], the tile is whole"
        in run(ATTENTION, *FUSION, "--sizes", ":,:,:,:")[1]
    )


def test_the_title_gives_the_dimensions_that_the_sizes_do_not_divide(run: Run) -> None:
    title = run(PATCHES, "--sizes", "1,16,100")[1].splitlines()[0]
    assert title.endswith(
        "40 of 208 tiles are cut: dimension 1 is 197 = 12 * 16 + 5, "
        "dimension 2 is 768 = 7 * 100 + 68"
    )


def test_one_tile_prints_the_region_of_each_operand(run: Run) -> None:
    out = run(PATCHES, "--sizes", "1,16,64", "--at", "0,1,2")[1].splitlines()
    root = hlo.load(PATCHES).entry.root
    tiling = indexing.tile(root, (1, 16, 64))
    assert isinstance(tiling, Tiling)
    assert out[0].endswith("tile [0, 1, 2] of grid [2, 13, 12]: [0:1, 16:32, 128:192]")
    for line, operand, region in zip(out[1:], root.operands, tiling.at(0, 1, 2), strict=True):
        assert isinstance(region, Region)
        assert operand.name in line
        assert line.endswith(f": {region if region.pieces else 'nothing'}")


def test_a_tile_of_an_operand_prints_the_outputs_that_it_finishes(small: str, run: Run) -> None:
    sizes = ("--sizes", "4", "--direction", "input-to-output", "--operand", "q")
    out = run(small, "-i", "c", *sizes, "--at", "1")[1]
    assert "input-to-output, operand 1 q f32[7], tile [1] of grid [2]: [4:7]\n" in out
    assert out.endswith("  output 0 c f32[16]: [13:16] read it, [13:16] read no other tile\n")
    (record,) = records(run, small, "-i", "c", *sizes, "--at", "1")
    assert record["finished"]["box"] == {"offsets": [13], "sizes": [3], "strides": [1]}
    assert (record["output"], record["tiled_operand"]) == (None, 1)


def test_the_reasons_name_the_constraint_and_legal_sizes(small: str, run: Run) -> None:
    out = run(small, "-i", "r", "--sizes", "2,3", "--explain")[1]
    assert "    boxes: a tile needs up to 2 boxes by (d0, d1) -> (d0 * 4 + d1)" in out
    assert "    violated: " in out
    assert "(`r`: d0 * 4 + d1); legal sizes nearby: " in out
    *_, nearest = out.splitlines()
    assert nearest == (
        "    sizes nearby for which every tile is one box: ts_0 = 1, or ts_1 = 1 and 4"
    )


def test_sizes_that_are_legal_although_a_constraint_fails_are_explained(
    tmp_path: Path, run: Run
) -> None:
    path = tmp_path / "strict.hlo"
    path.write_text(STRICT)
    out = run(str(path), "--sizes", "1,2", "--explain")[1]
    assert "p f32[2,3,4]: box, " in out
    assert "    violated: " in out
    assert out.endswith(
        "    the constraints are sufficient, not necessary: every tile is one box\n"
    )


def test_the_halo_and_the_elements_that_are_not_needed_are_explained(
    tmp_path: Path, small: str, run: Run
) -> None:
    path = tmp_path / "window.hlo"
    path.write_text(WINDOW)
    out = run(str(path), "--sizes", "4", "--explain")[1]
    assert "    elements that two neighbouring tiles share, at most: 2 in dimension 0\n" in out
    assert (
        "the smallest boxes have 1.12 times the elements"
        in run(small, "-i", "r", "--sizes", "2,3", "--explain")[1]
    )


def test_without_sizes_the_tile_is_symbolic(small: str, run: Run) -> None:
    out = run(small, "-i", "r")[1]
    assert "symbolic tile\n  operand 0 c f32[16]: offsets [" in out
    assert "    constraints: ts_0 in [1, 1] || " in out
    assert "    in words: ts_0 = 1, or " in out
    (record,) = records(run, small, "-i", "r")
    m = indexing.output_to_input(hlo.load(small).entry["r"]).maps[0][0]
    tile = indexing.symbolic_tile(m)
    assert not isinstance(tile, indexing.Unknown)
    assert record["offsets"] == list(map(str, tile.offsets.results))
    assert record["constraints"] == str(tile.constraints)


def test_a_map_of_a_part_has_its_domain_below_the_symbolic_tile(run: Run) -> None:
    out = run(PATCHES)[1]
    assert "for a part of the tiled array: (d0, d1, d2) -> " in out


def test_unknown_accesses_are_printed_and_are_no_error(small: str, run: Run) -> None:
    status, out, err = run(small, "-i", "u", "--sizes", "3")
    assert (status, err) == (0, "")
    assert ", unknown: " in out
    (record,) = records(run, small, "-i", "u", "--sizes", "3")
    assert record["result"] == "unknown"
    assert "mystery" in record["unknown"]
    assert [r["unknown"] is None for r in records(run, small, "-i", "u")] == [False]


def test_runtime_values_of_offsets_have_their_source(run: Run) -> None:
    out = run(EMBEDDING, "--sizes", "1,1,64")[1]
    assert "offsets [rt0, 0]" in out
    at = "[tid_0, tid_1]"
    formula = f"i.1{at} < 0 ? i.1{at} + 1000 : i.1{at}, clamped to [0, 999]"
    assert f"    rt0 = gather_bitcast_fusion/select_n.0{at} = {formula}" in out
    (record, _) = records(run, EMBEDDING, "--sizes", "1,1,64")
    assert record["runtime"][0]["index"] == ["tid_0", "tid_1"]


def test_outputs_and_parameters_are_chosen(small: str, run: Run) -> None:
    names = [r["operand_name"] for r in records(run, small, "--sizes", "2,4", "--output", "0")]
    assert names == ["r", "u", "n"]
    rows = records(run, small, "--sizes", "2,4", "--to", "parameters")
    assert [(r["role"], r["operand"], r["operand_name"]) for r in rows[:2]] == [
        ("parameter", 0, "p"),
        ("parameter", 1, "q"),
    ]
    out = run(small, "-i", "c", "--sizes", "4", "--to", "parameters")[1]
    assert "parameters that are read" in out
    assert len(run(small, "-i", "p", "--sizes", "4", "--to", "parameters")[1].splitlines()) == 2
    assert ", output 1, " in run(small, "--sizes", "3", "--output", "1")[1]


def test_every_record_fits_the_schema(small: str, run: Run, tmp_path: Path) -> None:
    keys: set[str] = set()
    for path in (small, EMBEDDING, UPDATE):
        for instruction in hlo.load(path).entry.instructions:
            shape = dict(leaves(instruction.shape)).get((), None)
            if not isinstance(shape, hlo.Shape):
                continue
            sizes = ",".join([str(max(1, n // 2)) for n in shape.dims])
            one = (path, "-i", f"{instruction.computation.name}/{instruction.name}")
            keys |= {key for record in records(run, *one) for key in record}
            for flags in ([], ["--explain"], ["--at", ",".join("0" * shape.rank)]):
                rows = records(run, *one, "--sizes", sizes, *flags)
                keys |= {key for record in rows for key in record}
    keys |= {key for row in records(run, small, "-i", "r", "--search") for key in row}
    cache = records(run, small, "-i", "r", "--sizes", "2,2", "--cache", "128")
    blocks = records(run, ATTENTION, "-i", "ynn_fusion.7", "--sizes", "8,8", "--blocks", "8")
    (tmp_path / "dot.hlo").write_text(hand.dot(512, 384, 256).text)
    looped = (str(tmp_path / "dot.hlo"), "--sizes", "128,64", "--loops", "k=32")
    keys |= {key for row in (*cache, *blocks, *records(run, *looped)) for key in row}
    others = {"finished", "assumptions"}  # of tiles of operands, and with --assume
    others |= {"compiled"}  # with --as-compiled
    assert keys == set(validator("tile").schema["properties"]) - others


def test_the_search_prints_the_best_tilings(small: str, run: Run) -> None:
    limits = ("--limits", "working-set=32,min-elements=2", "--limit", "2")
    status, out, err = run(small, "-i", "r", "--search", *limits)
    best = indexing.best_tilings(
        hlo.load(small).entry["r"],
        limits=indexing.TilingLimits(max_working_set=32, min_elements=2),
        top=2,
    )
    assert not isinstance(best, indexing.Unknown)
    head, *lines = out.splitlines()
    assert (status, err, lines) == (0, "", [f"  {line}" for line in str(best).splitlines()[1:]])
    assert head.endswith("r = f32[4,4] reshape, output-to-input, best tilings by bytes")
    *ranked, search = records(run, small, "-i", "r", "--search", *limits)
    assert [tuple(row["tile_sizes"]) for row in ranked] == [each.sizes for each in best]
    assert search["built"] == best.built
    (row,) = records(run, small, "-i", "u", "--search")
    assert row["result"] == "unknown"


def test_the_search_has_the_objectives_and_candidates_of_python(small: str, run: Run) -> None:
    rows = records(run, small, "-i", "c", "--search", "--candidates", "all", "--accept", "boxes")
    assert rows[-1]["candidates"] == 16
    (row, _) = records(
        run,
        small,
        "-i",
        "c",
        "--search",
        "--objective",
        "reuse",
        "--limit",
        "1",
        "--limits",
        "H100",
    )
    assert row["objective"] == "reuse"


def test_the_search_refuses_what_symbolic_constraints_refuse(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "strict.hlo"
    path.write_text(STRICT)
    every = records(run, str(path), "--search", "--limit", "30")
    strict = records(run, str(path), "--search", "--limit", "30", "--symbolic")
    best = indexing.best_tilings(hlo.load(str(path)).entry.root, top=30, symbolic=True)
    assert not isinstance(best, indexing.Unknown)
    assert [tuple(row["tile_sizes"]) for row in strict[:-1]] == [each.sizes for each in best]
    assert len(strict) < len(every)


# fmt: off
ERRORS = [
    # arguments                                       status  message
    (["-i", "zz", "--sizes", "3"],                    1, "FILE: no instruction named `zz`"),
    (["-i", "alll", "--sizes", "3"],                  1, "did you mean `all`"),
    (["-i", "r", "--sizes", "3"],                     1, "has 1 size, but f32[4,4] has rank 2"),
    (["-i", "r", "--sizes", "3"],                     1, "such as --sizes 4,4"),
    (["-i", "r", "--sizes", "2,0"],                   2, "'2,0' is not a list of positive sizes"),
    (["-i", "r", "--sizes", "-2,1"],                  2, "'-2,1' is not a list of positive sizes"),
    (["-i", "r", "--sizes", "two,1"],                 2, "'two,1' is not a list of positive sizes"),
    (["-i", "r", "--sizes", "2,3", "--at", "2,0"],    1, "tid_0 = 2 is outside [0, 1]"),
    (["-i", "r", "--sizes", "2,3", "--at", "2"],      1, "the grid is [2, 2]"),
    (["-i", "r", "--sizes", "2,3", "--at", "x,0"],    2, "'x,0' is not the index of a tile"),
    (["-i", "r", "--limit", "3"],                       2, "--limit needs --search"),
    (["-i", "r", "--symbolic"],                       2, "--symbolic needs --search"),
    (["-i", "r", "--candidates", "xla"],              2, "--candidates needs --search"),
    (["-i", "r", "--search", "--sizes", "2,3"],       2, "--search cannot be used with --sizes"),
    (["-i", "r", "--search", "--limits", "H1"],       2, "expected a GPU such as H100"),
    (["-i", "r", "--search", "--limits", "tiles=x"],  2, "expected a size such as 512MiB"),
    (["-i", "r", "--search", "--limits", "x=1"],      2, "'x' is not a limit"),
    (["-i", "r", "--at", "0,0"],                      2, "--at needs --sizes"),
    (["-i", "r", "--sizes", "2,3", "--output", "1"],  1, "has no output 1 (number of outputs: 1)"),
    (["-i", "r", "--operand", "0"],                   2, "--operand needs --direction"),
    (["-i", "p", "--direction", "input-to-output"],   1, "p has no operands"),
    (["-i", "c", "--direction", "input-to-output", "--operand", "x"], 1, "has no operand `x`"),
    (["-i", "c", "--direction", "input-to-output", "--to", "parameters"], 2, "--to parameters"),
]
# fmt: on


@pytest.mark.parametrize(("arguments", "status", "message"), ERRORS)
def test_errors_give_the_place_and_what_to_write(
    arguments: list[str], status: int, message: str, small: str, run: Run
) -> None:
    got, out, err = run(small, *arguments)
    assert (got, out) == (status, "")
    assert message.replace("FILE", small) in err


def test_sizes_may_exceed_the_dimensions(small: str, run: Run) -> None:
    assert "tiles [100, 3], grid [1, 2]" in run(small, "-i", "r", "--sizes", "100,3")[1]


@pytest.mark.parametrize("width", [40, 80, 140])
def test_lines_on_a_terminal_fit(
    width: int, small: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexing.cli.reporter.terminal_width", lambda: width)
    for arguments in (
        (small, "-i", "r", "--sizes", "2,3", "--explain"),
        (PATCHES, "--sizes", "1,16,64", "--at", "0,1,2"),
        (PATCHES, "--sizes", "1,16,64"),
        (PATCHES,),
        (EMBEDDING, "--sizes", "1,4,64"),
        (small, "-i", "u", "--sizes", "3"),
        (small, "-i", "u", "--search"),
        (small, "-i", "e/n", "--search"),
        (small, "-i", "c", "--sizes", "3", "--cache", "128", "--order", "row"),
    ):
        out = run(*arguments, "--color", "never")[1]
        assert all(cell_len(line) <= width for line in out.splitlines())
        coloured = run(*arguments, "--color", "always")[1]
        assert COLOUR.sub("", coloured) == out != coloured


def test_a_wide_terminal_has_a_table_of_the_numbers(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexing.cli.reporter.terminal_width", lambda: 140)
    lines = run(PATCHES, "--sizes", "1,16,64", "--color", "never")[1].splitlines()
    (head,) = [line for line in lines if line.split()[:1] == ["kind"]]
    assert " ".join(head.split()) == "kind bytes of a tile bytes touched reuse contiguous"
    row = next(line for line in lines if "b.1" in line)
    assert row.endswith("  1 run of 64 elements")
    assert row.index(" 79,872") == head.index("  bytes  ") + len("  bytes") - len(" 79,872")

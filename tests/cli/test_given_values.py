"""`--set` and `--assume`: values of integer parameters, and assumptions about others."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from indexing import parse_map
from tests.cli.running import Run, runner, valid_records
from tests.oracles import union
from tests.test_docs import ROOT

MODULE = """
max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] maximum(a, b) }
ENTRY e {
  x = f32[3,5] parameter(0)
  lengths = s32[3] parameter(1)
  column = s32[3,5] iota(), iota_dimension=1
  limit = s32[3,5] broadcast(lengths), dimensions={0}
  late = pred[3,5] compare(column, limit), direction=GE
  z = f32[] constant(-inf)
  zs = f32[3,5] broadcast(z), dimensions={}
  m = f32[3,5] select(late, x, zs)
  best = f32[3] reduce(m, z), dimensions={1}, to_apply=max
  pos = s32[] parameter(2)
  twice = s32[] add(pos, pos)
  zero = s32[] constant(0)
  window = f32[3,2] dynamic-slice(x, zero, twice), dynamic_slice_sizes={3,2}
  ROOT both = (f32[3], f32[3,2]) tuple(best, window)
}
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("m.hlo").write_text(MODULE)
    return runner(capsys, "maps", "m.hlo")


# fmt: off
READS = [  # from an element of the output, to the elements of x
    ("window", "--set pos=1",           lambda i, j: [(i, j + 2)]),
    ("window", "--set pos=9",           lambda i, j: [(i, j + 3)]),
    ("window", "--set %pos=-4",         lambda i, j: [(i, j)]),
    ("best", "--set lengths=3",         lambda i: [(i, 3), (i, 4)]),
    ("best", "--set lengths=4,9,4",     lambda i: [(i, 4)] * (i != 1)),
    ("best", "--set lengths=5,6,5",     lambda i: []),
    ("best", "--set 'lengths=[0,5,4]' --set pos=1",
     lambda i: {0: [(i, k) for k in range(5)], 1: [], 2: [(i, 4)]}[i]),
]
# fmt: on


@pytest.mark.parametrize(("name", "options", "reads"), READS)
def test_values_are_put_into_maps_and_regions(
    run: Run, name: str, options: str, reads: Callable[..., list[tuple[int, ...]]]
) -> None:
    options = f"-i {name} --to parameters --operand x {options}"
    records = valid_records(run, "maps", options)
    assert not any(each["runtime"] for each in records)
    every = list(product(range(3), range(2))) if name == "window" else [(i,) for i in range(3)]
    expected = {(at, place) for at in every for place in reads(*at)}
    assert union([parse_map(each["map"]) for each in records if each["map"]]) == expected
    for at in every:
        (record,) = valid_records(run, "maps", f"{options} --at {','.join(map(str, at))}")
        inside = {
            place
            for box in record["boxes"]
            for place in product(
                *[
                    range(offset, offset + size * stride, stride)
                    for offset, size, stride in zip(
                        box["offsets"], box["sizes"], box["strides"], strict=True
                    )
                ]
            )
        }
        assert inside == set(reads(*at))


def test_a_table_without_a_formula_stays_in_maps_and_decides_regions(run: Run) -> None:
    size = 300
    text = MODULE.replace("3,5]", f"{size},5]").replace("[3]", f"[{size}]")
    Path("m.hlo").write_text(text.replace("[3,2]", f"[{size},2]").replace("{3,2}", f"{{{size},2}}"))
    lengths = [k * k % 7 for k in range(size)]
    options = f"-i best --to parameters --operand x --set 'lengths={json.dumps(lengths)}'"
    assert "rt0 = lengths[d0]" in run(options)[1]
    for at in (0, 2, 299):
        (record,) = valid_records(run, "maps", f"{options} --at {at}")
        start = min(lengths[at], 5)
        assert record["runtime"] == []
        assert record["box"] == (
            {"offsets": [at, start], "sizes": [1, 5 - start], "strides": [1, 1]}
            if start < 5
            else None
        )


def test_pictures_and_all_instructions_have_the_values(run: Run) -> None:
    picture = run("-i window --to parameters --set pos=1 --at 0,0 --format svg")[1]
    assert "[0,2]: 1 read<" in picture
    status, out, errors = run("--all --to parameters --set pos=1")
    assert (status, errors) == (0, "")
    assert "rt0 = twice" not in out
    assert "rt0 = lengths[d0]" in out
    assert run("--all --set pos=1 -j 2")[1] == run("--all --set pos=1")[1]


# fmt: off
ERRORS = [
    ("-i best --set length=3", 1, "error[name]: m.hlo: no selected instruction has an integer "
                                  "parameter named `length`\n  = help: did you mean `lengths`?\n"),
    ("-i best --set n=3",      1, "  = help: integer parameters: lengths, pos\n"),
    ("-i best --set x=3",      1, "no selected instruction has an integer parameter named `x`"),
    ("-i max/s --set pos=3",   1, "no selected instruction has an integer parameter named `pos`"),
    ("-i best --set lengths=3,4", 1, "error[inputs]: `lengths` is s32[3]; the given value is "),
    ("-i best --set pos=2147483648", 1, "of integers in [-2147483648, 2147483647]; a given value"),
    ("--set pos",              2, "expected NAME=VALUE such as pos=5"),
    ("--set =5",               2, "expected NAME=VALUE such as pos=5"),
    ("--set pos=",             2, "expected NAME=VALUE such as pos=5"),
    ("--set pos=2.5",          2, "integers, got 'pos=2.5'"),
    ("--set pos=[1,[2]]",      2, "integers, got 'pos=[1,[2]]'"),
    ("--set pos=x",            2, "integers, got 'pos=x'"),
]
# fmt: on


@pytest.mark.parametrize(("options", "status", "message"), ERRORS)
def test_a_value_that_fits_no_parameter_is_an_error(
    run: Run, options: str, status: int, message: str
) -> None:
    ended, _, errors = run(options)
    assert (ended, message in errors) == (status, True), errors


# ---------------------------------------------------------------- tiles

LIMITED = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[12,12] parameter(0)
  pos = s32[] parameter(1)
  limit = s32[12,12] broadcast(pos), dimensions={}
  column = s32[12,12] iota(), iota_dimension=1
  early = pred[12,12] compare(column, limit), direction=LE
  zero = f32[] constant(0)
  zeros = f32[12,12] broadcast(zero), dimensions={}
  masked = f32[12,12] select(early, x, zeros)
  ROOT sums = f32[12] reduce(masked, zero), dimensions={1}, to_apply=add
}"""
STATES = {"-1": "...", "0": "+..", "3": "#..", "5": "#+.", "11": "###", "2147483647": "###"}


def run_tile(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    (folder / "t.hlo").write_text(LIMITED)
    return runner(capsys, "tile", str(folder / "t.hlo"), "--to", "parameters")


@pytest.mark.parametrize("value", STATES)
def test_a_given_value_decides_which_blocks_are_read(
    value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_tile(tmp_path, capsys)
    (record,) = valid_records(run, "tile", f"--sizes 4 --blocks 4 --set pos={value}")
    assert record["states"] == [STATES[value]]  # of all tiles
    is_read = value != "-1"
    assert (record["block_bytes"] is not None) is is_read
    (record,) = valid_records(run, "tile", "--sizes 4 --blocks 4")
    assert record["states"] == ["???"]


def test_a_tile_needs_what_it_reads_for_the_given_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_tile(tmp_path, capsys)
    assert "x f32[12,12]: [4:8, 0:6]" in run("--sizes 4 --at 1 --set pos=5")[1]
    assert "sizes [4, 6]" in run("--sizes 4 --set pos=5")[1]
    assert (
        "no selected instruction has an integer parameter named `poss`"
        in (run("--sizes 4 --set poss=5")[2])
    )
    status, _, errors = run("--search --set pos=5")
    assert (status, "--search cannot be used with --set" in errors) == (2, True)


# ---------------------------------------------------------------- assumptions


CAUSAL = str(ROOT / "tests/dataflow/data/masks/causal_tril.optimized.hlo")
"""Attention of six queries: each sees the keys up to its own."""
OF_V = "(d0, d1)[s0] -> (s0, d1), domain: d0 in [0, 5], d1 in [0, 1], s0 in [0, 5]"


def test_assumptions_are_printed_where_maps_need_them(capsys: pytest.CaptureFixture[str]) -> None:
    run = runner(capsys, "maps", CAUSAL, "--to", "parameters")
    out = run("--assume masked-softmax")[1]
    assert f"v f32[6,2]: {OF_V}, d0 - s0 in [0, 5] assuming masked-softmax\n" in out
    assert out.count("assuming") == 1
    assert f"v f32[6,2]: {OF_V}\n" in run("")[1]
    assert (
        "v f32[6,2]: [0:3, 0] assuming masked-softmax\n"
        in run("--assume masked-softmax --at 2,0")[1]
    )
    for options in ("", "--at 2,0"):
        records = valid_records(run, "maps", f"--assume masked-softmax {options}")
        named = {each["operand_name"]: each.get("assumptions") for each in records}
        assert named == {"q": None, "k": None, "v": ["masked-softmax"]}
        assert not any("assumptions" in each for each in valid_records(run, "maps", options))
    swept = run("--all --operand v --assume masked-softmax")[1]
    assert swept.count("assuming masked-softmax\n") == 1


@pytest.mark.parametrize(
    "options", ["--sizes 2,2", "--sizes 2,2 --at 1,0", "--sizes 2,2 --blocks 2", ""]
)
@pytest.mark.parametrize("width", [None, 80, 300])
def test_assumptions_are_noted_where_tiles_need_them(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: str,
    width: int | None,
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: width is not None)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    run = runner(capsys, "tile", CAUSAL, "--to", "parameters")
    lines = [line.strip() for line in run(f"{options} --assume masked-softmax")[1].splitlines()]
    assert lines.count("assuming masked-softmax") == 1
    records = valid_records(run, "tile", f"{options} --assume masked-softmax")
    named = {each["operand_name"]: each.get("assumptions") for each in records}
    assert named.pop("v") == ["masked-softmax"]
    assert not any(named.values())
    assert "assuming" not in run(options)[1]


def test_tiles_need_fewer_rows_of_the_values_under_the_assumption(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A query sees the keys up to its own, so a tile needs the rows up to its last one."""
    run = runner(capsys, "tile", CAUSAL, "--to", "parameters", "--sizes", "2,2")
    for tid in range(3):
        line = f"parameter 2 v f32[6,2]: [0:{2 * tid + 2}, 0:2]\n"
        assert line in run(f"--at {tid},0 --assume masked-softmax")[1]
        assert "parameter 2 v f32[6,2]: [0:6, 0:2]\n" in run(f"--at {tid},0")[1]
    *_, states = valid_records(run, "tile", "--blocks 2 --assume masked-softmax")
    assert states["states"] == ["+..", "#+.", "##+"]


@pytest.mark.parametrize("option", ["--search", "--cache 1KiB", "--direction input-to-output"])
def test_assumptions_exclude_what_does_not_use_them(
    capsys: pytest.CaptureFixture[str], option: str
) -> None:
    run = runner(capsys, "tile", CAUSAL, "--assume", "masked-softmax")
    status, out, errors = run(f"{option} {'--sizes 2,2' * option.startswith('--cache')}")
    assert (status, out) == (2, "")
    assert "--assume" in errors
    assert f"{option.removesuffix(' 1KiB')}" in errors


# ---------------------------------------------------------------- notes

# fmt: off
NOTES = [
    # the options of `maps m.hlo` or `tile m.hlo`, and the options that a note names
    ("maps -i both --set pos=1",                              ["--set"]),
    ("maps -i both --set pos=1 --to parameters",              []),
    ("maps -i both --set pos=1 --at 0 --output 0",            ["--set"]),
    ("maps -i window --set pos=1",                            []),
    ("maps -i window --set pos=1 --at 0,0",                   []),
    ("maps -i window --set pos=1 --at 0,0 --format svg",      []),
    ("maps -i best --set lengths=1 --at 0 --format svg",      ["--set"]),
    ("maps -i window --set pos=1 --direction input-to-output", []),
    ("maps --all --set pos=1",                                []),
    ("maps --all --set pos=1 -j 2",                           []),
    ("maps -i best --set lengths=1 -j 2",                     ["--set"]),
    ("maps -i best --assume masked-softmax",                  ["--assume"]),
    ("maps -i best --assume masked-softmax --set pos=1",      ["--set", "--assume"]),
    ("maps -i best --set pos=1 --quiet",                      []),
    ("maps -i bets --set pos=1",                              []),  # an error
    ("tile -i best --sizes 2 --set lengths=1",                ["--set"]),
    ("tile -i best --sizes 2 --set lengths=1 --to parameters", []),
    ("tile -i window --sizes 2,2 --set pos=1",                []),
    ("tile -i best --sizes 2 --blocks 2",                     ["--blocks"]),
    ("tile -i best --sizes 2 --blocks 2 --to parameters",     []),
    ("tile -i best --sizes 2 --assume masked-softmax",        ["--assume"]),
]
# fmt: on


@pytest.mark.parametrize(("line", "options"), NOTES)
def test_a_note_names_options_that_decide_nothing_without_to_parameters(
    run: Run, capsys: pytest.CaptureFixture[str], line: str, options: list[str]
) -> None:
    command, _, rest = line.partition(" ")
    errors = runner(capsys, command, "m.hlo")(rest)[2]
    notes = [each for each in errors.splitlines() if each.startswith("note: --")]
    assert [each.split()[1] for each in notes] == options
    assert all("--to parameters composes maps" in each for each in notes)
    if notes and "--blocks" not in line:  # the output is that without these options
        ran, without = runner(capsys, command, "m.hlo"), re.sub(r"--(set|assume) \S+", "", rest)
        assert ran(without)[1] == ran(rest)[1] != ""


def test_maps_from_operands_take_no_assumptions(run: Run) -> None:
    status, out, errors = run("--assume masked-softmax --direction input-to-output")
    assert (status, out) == (2, "")
    assert "--assume cannot be used with --direction input-to-output" in errors


def test_another_assumption_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, errors = runner(capsys, "maps", CAUSAL)("--assume softmax")
    assert (status, out) == (2, "")
    assert "`softmax` is not `masked-softmax`" in errors


def test_an_array_may_stand_in_a_file_of_numpy(run: Run) -> None:
    np.save("lengths.npy", np.array([1, 0, 5], np.int8))
    given = run("--to parameters --operand x --set lengths=@lengths.npy")
    assert given == run("--to parameters --operand x --set lengths=1,0,5")
    assert given[0] == 0


def _write_archive() -> None:
    np.savez("n", a=1)
    Path("n.npz").rename("n.npy")


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (lambda: None, "No such file or directory; expected a file of numpy.save"),
        (lambda: Path("n.npy").write_text("3"), "expected a file of numpy.save"),
        (lambda: np.save("n.npy", [1.5]), "n.npy has float64, expected one array of integers"),
        (_write_archive, "n.npy has several arrays"),
        (lambda: np.save("n.npy", np.array([{}])), "expected a file of numpy.save"),
    ],
)
def test_a_file_without_integers_is_refused(
    write: Callable[[], object], reason: str, run: Run
) -> None:
    write()
    status, out, err = run("--to parameters --set lengths=@n.npy")
    assert (status, out) == (2, "")
    assert reason in " ".join(err.split())

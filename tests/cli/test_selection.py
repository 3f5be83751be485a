"""Options of ``maps`` and ``validate`` that select instructions, operands and elements."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import indexing
from indexing import cli
from indexing.views import map_answers
from indexing.views.access_kinds import ACCESS_KINDS, kinds_of_map
from tests.growth.work import calls_of

MODULE = r"""
HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY main {
  x.1 = f32[6,35] parameter(0), metadata={op_name="x"}
  i = s32[] parameter(1)
  flip = f32[35,6] transpose(x.1), dimensions={1,0}, metadata={op_name="jit(f)/flip"}
  zero = f32[] constant(0)
  sums = f32[35] reduce(flip, zero), dimensions={1}, to_apply=add, metadata={op_name="jit(f)/sum"}
  wide = f32[2,35] broadcast(sums), dimensions={1}
  part = f32[2,3] dynamic-slice(wide, i, i), dynamic_slice_sizes={2,3}
  pair = (f32[2,3], f32[35,6]) tuple(part, flip)
  element = f32[35,6] get-tuple-element(pair), index=1
  joined = f32[35,9] concatenate(element, f32[35,3] slice.0), dimensions={1}
  strange = f32[2] no-such-opcode(x.1)
  ROOT out = (f32[35,9], f32[2,3]) tuple(joined, part)
}
""".replace("  joined", "  slice.0 = f32[35,3] slice(flip), slice={[0:35], [1:6:2]}\n  joined")

TWO_STARTS = """ENTRY e { p = f32[9] parameter(0)  i = s32[] parameter(1)  j = s32[] parameter(2)
  a = f32[4] dynamic-slice(p, i), dynamic_slice_sizes={4}
  b = f32[4] dynamic-slice(p, j), dynamic_slice_sizes={4}
  ROOT s = f32[4] add(a, b) }"""

Run = Callable[..., tuple[int, list[str], str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``maps`` on the module above; return status, lines of the output, errors."""
    monkeypatch.chdir(tmp_path)
    Path("m.hlo").write_text(MODULE)
    Path("ranks.hlo").write_text(
        "ENTRY e { p = f32[4] parameter(0) q = f32[4,2] broadcast(p), dimensions={0} "
        "ROOT both = (f32[4], f32[4,2]) tuple(p, q) }"
    )
    Path("other.hlo").write_text("ENTRY other { p = f32[4] parameter(0) ROOT n = negate(p) }")

    def run(*arguments: str, files: tuple[str, ...] = ("m.hlo",)) -> tuple[int, list[str], str]:
        status = cli.run(["maps", *files, *arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        assert "error[internal]" not in captured.err
        return status, captured.out.splitlines(), captured.err

    return run


def select(lines: list[str]) -> list[str]:
    """The names of the instructions in the header lines, each once."""
    heads = [line for line in lines if not line.startswith(" ")]
    return list(dict.fromkeys(line.split(": ", 2)[2].partition(" = ")[0] for line in heads))


# fmt: off
SELECTIONS = [
    (["-i", "f*", "-i", "/^su/"],                     ["flip", "sums"]),
    (["-i", "main/s*"],                               ["sums", "slice.0", "strange"]),
    (["--opcode", "dynamic-*", "-i", "wide"],         ["wide", "part"]),
    (["--reads", "x"],                                ["flip", "strange"]),
    (["--reads", "%flip"],                            ["sums", "slice.0", "joined"]),
    (["--reads", "flip", "--opcode", "*e"],           ["sums", "slice.0", "joined"]),
    (["--reads", "flip", "--opcode", "reduce"],       ["sums"]),
    (["--op-name", "jit(f)/*"],                       ["flip", "sums"]),
    (["--op-name", "/sum$/", "--op-name", "x"],       ["x.1", "sums"]),
    (["--kind", "transposing"],                       ["flip"]),
    (["--kind", "reducing"],                          ["sums"]),
    (["--kind", "runtime"],                           ["part"]),
    (["--kind", "unknown"],                           ["strange"]),
    (["--kind", "broadcasting", "-i", "wide"],        ["wide"]),
    (["--all", "--kind", "transposing"],              ["flip"]),
    (["-i", "[fsw]*", "--sort", "name"], ["flip", "slice.0", "strange", "sums", "wide"]),
    (["-i", "[fsw]*", "--sort", "bytes"], ["flip", "slice.0", "wide", "sums", "strange"]),
    (["-i", "[fsw]*", "--sort", "elements", "--limit", "2"], ["flip", "slice.0"]),
    (["-i", "[fsw]*", "--limit", "1", "--kind", "reducing"], ["sums"]),
    (["-i", "[fsw]*", "--sort", "name", "--to", "parameters", "-i", "wide"],
     ["flip", "slice.0", "strange", "sums", "wide"]),
]
# fmt: on


@pytest.mark.parametrize(("arguments", "expected"), SELECTIONS)
def test_maps_prints_the_selected_instructions(
    run: Run, arguments: list[str], expected: list[str]
) -> None:
    status, lines, errors = run(*arguments)
    names = select(lines)
    if not {"s", "a"} & set(names):
        assert names == expected
    else:
        assert [name for name in names if name not in ("s", "a", "b")] == expected
    assert (status, errors) == (0, "")


# fmt: off
NO_MATCHES = [
    (["--opcode", "fusoin"],          "unknown opcode `fusoin`\n  = help: did you mean `fusion`?"),
    (["--opcode", "dot"],             "no instruction has the opcode `dot`"),
    (["-i", "sumz"], "m.hlo: no instruction named `sumz`\n  = help: did you mean `sums`?"),
    (["-i", "sumz*"],                 "m.hlo: no instruction has a name like `sumz*`\n"
                                      "  = help: did you mean `sums`?"),
    (["--reads", "fli"], "m.hlo: no instruction named `fli`\n  = help: did you mean `flip`?"),
    (["--op-name", "jit(f)/flop"],    "m.hlo: no instruction has the op_name `jit(f)/flop`\n"
                                      "  = help: did you mean `jit(f)/flip`?"),
    (["--kind", "windowed"],          "no instruction matches --kind windowed"),
    (["--opcode", "reduce", "--reads", "x"], "no instruction matches --opcode reduce --reads x"),
    (["-i", "sums", "--operand", "flop"],
     "m.hlo: main: sums has no operand `flop`; did you mean `flip`?"),
]
# fmt: on


@pytest.mark.parametrize(("arguments", "message"), NO_MATCHES)
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_no_match_is_an_error_with_similar_names(
    run: Run, arguments: list[str], message: str, jobs: str
) -> None:
    assert run(*arguments, "--jobs", jobs) == (1, [], f"error[name]: {message}\n")


def test_a_limit_prints_the_first_answers(run: Run) -> None:
    every = ["-i", "/^(flip|sums|wide|part)$/", "--to", "parameters", "--sort", "bytes"]
    assert run(*every, "--limit", "4") == run(*every)
    assert run(*every, "--limit", "2")[1] == run(*every)[1][:4]


def test_no_instruction_is_answered_beyond_the_limit(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = calls_of(monkeypatch, map_answers, "answer")
    assert select(run("--all", "--kind", "transposing", "--limit", "1")[1]) == ["flip"]
    answered = [instruction.name for instruction, *_ in calls]
    assert len(answered) <= [*answered, "zero"].index("flip") + 2


def test_a_pattern_must_match_in_one_of_several_files(run: Run) -> None:
    files = ("m.hlo", "other.hlo")
    assert run("-i", "fl*", files=files)[::2] == (0, "")
    message = "error[name]: no instruction has a name like `zz*`\n"
    assert run("-i", "zz*", files=files) == (1, [], message)


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("option", ["-i", "--reads"])
def test_a_condition_must_be_met_in_one_module(run: Run, option: str, jobs: str) -> None:
    """A file may contain several modules, and several files are asked at once."""
    Path("two.hlo").write_text(Path("other.hlo").read_text() + "\n// -----\n" + MODULE)
    for files in (("two.hlo",), ("other.hlo", "m.hlo"), ("m.hlo", "other.hlo")):
        for name in ("flip", "fl*"):
            status, lines, errors = run(option, name, "--jobs", jobs, files=files)
            assert (status, errors) == (0, "")
            assert lines
    help_ = "  = help: did you mean `flip`?\n"
    message = f"error[name]: two.hlo: no instruction named `flop`\n{help_}"
    assert run(option, "flop", "--jobs", jobs, files=("two.hlo",)) == (1, [], message)
    message = f"error[name]: no instruction named `flop`\n{help_}"
    assert run(option, "flop", "--jobs", jobs, files=("other.hlo", "m.hlo")) == (1, [], message)


def test_an_operand_is_requested_by_number_name_or_pattern(run: Run) -> None:
    by_number = run("-i", "joined", "--operand", "1")
    assert by_number == run("-i", "joined", "--operand", "slice.0")
    assert by_number == run("-i", "joined", "--operand", "%sl*")
    assert len(by_number[1]) == 2
    assert select(run("--all", "--operand", "wide")[1]) == ["part"]


# fmt: off
POINTS = [
    ("flip",   "4,5",      ["  operand 0 x.1 f32[6,35]: [5, 4]"]),
    ("flip",   "4",        None),
    ("flip",   "0:32, :",  ["  operand 0 x.1 f32[6,35]: [0:6, 0:32]"]),
    ("flip",   "...,1",    ["  operand 0 x.1 f32[6,35]: [1, 0:35]"]),
    ("flip",   "0:9:4,0",  ["  operand 0 x.1 f32[6,35]: [0, 0:9:4]"]),
    ("zero",   "...",      ["  no operands"]),
    ("zero",   "",         ["  no operands"]),
    ("sums",   "34",       ["  operand 0 flip f32[35,6]: [34, 0:6]", "  operand 1 zero f32[]: []"]),
    ("joined", "1,2",      ["  operand 0 element f32[35,6]: [1, 2]",
                            "  operand 1 slice.0 f32[35,3]: nothing is read"]),
    ("part",   "1,2",      ["  operand 0 wide f32[2,35]: may: [1, 2:35] over rt1 in [0, 32]",
                            "    rt1 = i, clamped to [0, 32]", "  operand 1 i s32[]: may: []",
                            "  operand 2 i s32[]: []"]),
]
# fmt: on


@pytest.mark.parametrize(("name", "point", "expected"), POINTS)
def test_at_prints_what_one_element_or_tile_needs(
    run: Run, name: str, point: str, expected: list[str] | None
) -> None:
    status, lines, errors = run("-i", name, "--at", point)
    if expected is None:
        assert (status, lines) == (1, [])
        assert "[4] has 1 index, but `flip` has rank 2" in errors
    else:
        assert status == 0
        assert len(lines) > 1
        assert [line for line in lines[1:] if "rt0" not in line] == expected


@pytest.mark.parametrize(
    ("point", "reason"),
    [
        ("35,0", "index 0 is 35, but dimension 0 of `flip` is in [0, 34]"),
        ("0,2:7", "index 1 is 2:7, but dimension 1 of `flip` is 0:6"),
        ("...,6", "index 1 is 6, but dimension 1 of `flip` is in [0, 5]"),
        ("0,0,...,0", "[0, 0, ..., 0] has 3 indices, but `flip` has rank 2"),
    ],
)
def test_at_outside_of_the_result_is_an_error_with_the_bounds(
    run: Run, point: str, reason: str
) -> None:
    error = f"error[at]: m.hlo: main: flip: {reason}\n"
    assert run("-i", "flip", "--at", point) == (1, [], error)


def test_at_names_the_output_that_has_another_rank(run: Run) -> None:
    status, lines, error = run("-i", "both", "--at", "2", files=("ranks.hlo",))
    assert (status, len(lines)) == (1, 2)
    reason = "[2] has 1 index, but output 1 of `both` has rank 2"
    assert error == f"error[at]: ranks.hlo: e: both: {reason}\n"


def test_at_in_the_other_direction_is_a_point_of_the_operand(run: Run) -> None:
    _, lines, _ = run("-i", "flip", "--at", "5,4", "--direction", "input-to-output")
    assert lines[1:] == ["  operand 0 x.1 f32[6,35]: [4, 5]"]
    status, _, errors = run("-i", "flip", "--at", "6,4", "--direction", "input-to-output")
    assert (status, "index 0 is 6, but dimension 0 of operand 0 `x.1`" in errors) == (1, True)


def test_json_at_a_point_has_the_keys_of_maps(run: Run) -> None:
    (row,) = map(json.loads, run("-i", "flip", "--at", "0:2,5", "--format", "json")[1])
    (other,) = map(json.loads, run("-i", "flip", "--format", "json")[1])
    assert row.keys() >= other.keys()
    assert (row["map"], row["region"], row["at"]) == (None, "[5, 0:2]", "[0:2, 5]")
    assert row["box"] == {"offsets": [5, 0], "sizes": [1, 2], "strides": [1, 1]}
    assert row["boxes"] == [row["box"]]


def test_sources_of_a_region_have_the_names_of_its_text(run: Run) -> None:
    """Two maps name different values rt0: text and JSON rename one of them alike."""
    Path("two.hlo").write_text(TWO_STARTS)
    options = ("-i", "s", "--to", "parameters", "--operand", "p", "--at", "0")
    _, lines, _ = run(*options, files=("two.hlo",))
    assert "over rt0 in [0, 5], rt0_1 in [0, 5]" in lines[1]
    assert sorted(line.split(" = ")[0].strip() for line in lines[2:]) == ["rt0", "rt0_1"]
    (record,) = map(json.loads, run(*options, "--format", "json", files=("two.hlo",))[1])
    assert record["region"] in lines[1]
    named = {(source["name"], source["instruction"]) for source in record["runtime"]}
    assert named == {tuple(line.strip().split(", ")[0].split(" = ")) for line in lines[2:]}


@pytest.mark.parametrize(
    "arguments",
    [
        *[
            ["--at", text]
            for text in ("1,-2", "a", "1::0", "5:1,2", "0:4:-1,2", "...,...", "9" * 30, "1,,2")
        ],
        ["--at", "1,2", "--format", "isl"],
        ["--operand", ""],
        ["--operand", "-1"],
        ["-i", "/(/"],
        ["--kind", "transposed"],
        ["--limit", "0"],
    ],
)
def test_an_invalid_option_is_a_usage_error(run: Run, arguments: list[str]) -> None:
    status, lines, errors = run(*arguments)
    assert (status, lines) == (2, [])
    assert "error[usage]: " in errors


def test_validate_selects_by_pattern(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.hlo").write_text("".join(s for s in MODULE.splitlines(True) if "no-such" not in s))
    assert cli.run(["validate", "m.hlo", "-i", "/^(flip|wide)$/"]) == 0
    assert capsys.readouterr().out.endswith("m.hlo: 2 ok, 0 skipped, 0 wrong\n")


# fmt: off
KINDS = [
    ("(d0, d1) -> (d0, d1), domain: d0 in [0, 3], d1 in [0, 4]",                         []),
    ("(d0, d1) -> (d1, d0), domain: d0 in [0, 3], d1 in [0, 4]", ["transposing"]),
    ("(d0) -> (d0 floordiv 4, d0 mod 4), domain: d0 in [0, 11]",                         []),
    ("(d0, d1) -> (d0 * 4 + d1), domain: d0 in [0, 3], d1 in [0, 3]",                    []),
    ("(d0, d1) -> (d0 + d1 * 4), domain: d0 in [0, 3], d1 in [0, 3]",        ["transposing"]),
    ("(d0, d1, d2, d3) -> (d0 * 9 + d3, d1 * 4 + d2), domain: d0 in [0, 1], d1 in [0, 2], "
     "d2 in [0, 3], d3 in [0, 8]",                                           ["transposing"]),
    ("(d0, d1) -> ((d0 * 6 + d1) floordiv 4, (d0 * 6 + d1) mod 4), domain: d0 in [0, 3], "
     "d1 in [0, 5]",                                                                     []),
    ("(d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 3], d1 in [0, 4], s0 in [0, 6]",
     ["broadcasting", "reducing"]),
    ("(d0, d1) -> (d0), domain: d0 in [0, 3], d1 in [0, 0]",                             []),
    ("(d0)[s0] -> (d0 * 2 + s0), domain: d0 in [0, 3], s0 in [0, 2]", ["reducing", "windowed"]),
]
# fmt: on


@pytest.mark.parametrize(("text", "kinds"), KINDS)
def test_kinds_of_maps(text: str, kinds: list[str]) -> None:
    m = indexing.parse_map(text)
    assert sorted(kinds_of_map(m)) == kinds
    assert set(kinds) <= set(ACCESS_KINDS)

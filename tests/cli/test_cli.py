"""The command line: output, errors and exit status."""

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
import pytest

import hlo
from hlo.formats.reading import MAX_BYTES
from indexing import cli
from indexing.cli import group
from indexing.cli.commands.run import MAX_PRINTED
from indexing.codegen import checked_instruction, running, validation_limits
from indexing.dataflow import answering
from tests.compiled import interpreted_only

ROOT = Path(__file__).parents[2]

TRANSPOSE = """\
HloModule flip
ENTRY main {
  p = f32[3,5] parameter(0)
  c = f32[] constant(1)
  ones = f32[3,5] broadcast(c), dimensions={}
  sum = f32[3,5] add(p, ones)
  ROOT t = f32[5,3] transpose(sum), dimensions={1,0}
}
"""
WINDOW = """\
ENTRY main {
  p = f32[20,11] parameter(0)
  i = s32[] parameter(1)
  j = s32[] parameter(2)
  ROOT window = f32[4,7] dynamic-slice(p, i, j), dynamic_slice_sizes={4,7}
}
"""
PAIR = """\
ENTRY main {
  p = f32[3] parameter(0)
  q = s32[2] parameter(1)
  pair = (f32[3], s32[2]) tuple(p, q)
  ROOT second = s32[2] get-tuple-element(pair), index=1
}
"""
STRANGE = """\
ENTRY main {
  p = f32[3] parameter(0)
  ROOT strange = f32[3] no-such-opcode(p)
}
"""
KEYS = [
    "file",
    "computation",
    "instruction",
    "opcode",
    "direction",
    "output",
    "operand",
    "grade",
    "unknown",
    "map",
    "runtime",
    "schema_version",
    "output_shape",
    "operand_name",
    "operand_shape",
    "parameter",
    "dims",
    "ranges",
    "bounds",
    "results",
    "constraints",
]

RUNTIME_MAP = "(d0, d1) -> (), domain: d0 in [0, 3], d1 in [0, 6]"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in a folder with the modules above; return status, output, errors."""
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "flip.hlo": TRANSPOSE,
        "window.hlo": WINDOW,
        "pair.hlo": PAIR,
        "strange.hlo": STRANGE,
    }.items():
        Path(name).write_text(text)

    def run(*arguments: str) -> tuple[int, str, str]:
        status = cli.run(arguments)
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return status, captured.out, captured.err

    return run


def stdin(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


# ---------------------------------------------------------------- maps: output


def test_maps_of_the_root_are_a_header_and_a_line_each(run: Run) -> None:
    assert run("maps", "flip.hlo") == (
        0,
        "flip.hlo: main: t = f32[5,3] transpose, output-to-input\n"
        "  operand 0 sum f32[3,5]: (d0, d1) -> (d1, d0), domain: d0 in [0, 4], d1 in [0, 2]\n",
        "",
    )


def test_maps_are_composed_to_parameters(run: Run) -> None:
    assert run("maps", "flip.hlo", "--to", "parameters")[1].splitlines()[1:] == [
        "  parameter 0 p f32[3,5]: (d0, d1) -> (d1, d0), domain: d0 in [0, 4], d1 in [0, 2]"
    ]


@pytest.mark.parametrize(
    ("kind", "clause"),
    [("u8", ""), ("s32", ", clamped to [0, 255]"), ("s8", ", clamped to [0, 255]")],
)
def test_a_clamp_is_named_unless_it_has_all_values_of_the_type(
    run: Run, kind: str, clause: str
) -> None:
    Path("window.hlo").write_text(f"""ENTRY e {{ p = f32[258] parameter(0)
        i = {kind}[] parameter(1)
        ROOT d = f32[3] dynamic-slice(p, i), dynamic_slice_sizes={{3}} }}""")
    assert f"\n    rt0 = i{clause}\n" in run("maps", "window.hlo")[1]


def test_the_values_for_which_a_map_applies_are_named(run: Run) -> None:
    """An update out of bounds is skipped: its index is not clamped, and has narrower bounds."""
    Path("update.hlo").write_text("""
        f { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
        ENTRY e { p = f32[9] parameter(0)  i = s32[2,1] parameter(1)  u = f32[2] parameter(2)
          ROOT s = f32[9] scatter(p, i, u), update_window_dims={}, inserted_window_dims={0},
            scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f }""")
    assert "\n    rt0 = i[s0, 0], if in [0, 8]\n" in run("maps", "update.hlo")[1]


@pytest.mark.parametrize("start", [-3, -1, 0, 1, 4, 6, 7, 8, 30])
def test_the_text_of_pieces_holds_for_starts_beyond_the_clamp(run: Run, start: int) -> None:
    """Oracle: the slice of NumPy that is not replaced, for the conditions as they are printed."""
    Path("write.hlo").write_text("""ENTRY e { x = s32[9] parameter(0)  u = s32[2] parameter(1)
        p = s32[] parameter(2)  ROOT r = s32[9] dynamic-update-slice(x, u, p) }""")
    lines = run("maps", "write.hlo", "--operand", "0", "--exact")[1].splitlines()[1:]
    read = set()
    for piece, source in zip(lines[::2], lines[1::2], strict=True):
        value = start
        if clamp := re.search(r"clamped to \[(\d+), (\d+)\]", source):
            value = min(max(value, int(clamp[1])), int(clamp[2]))
        condition = re.search(r"if in \[(\d+), (\d+)\]", source)
        if condition is None or int(condition[1]) <= value <= int(condition[2]):
            bounds = re.search(r"d0 - rt0 in \[(-?\d+), (-?\d+)\]", piece)
            assert bounds is not None
            read |= {d for d in range(9) if int(bounds[1]) <= d - value <= int(bounds[2])}
    first = min(max(start, 0), 7)
    assert read == {*range(first), *range(first + 2, 9)}


def test_direction_both_prints_both_directions(run: Run) -> None:
    status, out, _ = run("maps", "flip.hlo", "--direction", "both")
    assert status == 0
    assert [line.rpartition(", ")[2] for line in out.splitlines()[::2]] == [
        "output-to-input",
        "input-to-output",
    ]
    assert out.splitlines()[3].endswith(
        ": (d0, d1) -> (d1, d0), domain: d0 in [0, 2], d1 in [0, 4]"
    )


def test_maps_show_runtime_variables_with_their_source(run: Run) -> None:
    _, out, _ = run("maps", "window.hlo", "--operand", "0")
    assert out.splitlines()[1:] == [
        "  operand 0 p f32[20,11]: (d0, d1){rt0, rt1} -> (d0 + rt0, d1 + rt1), "
        "domain: d0 in [0, 3], d1 in [0, 6], rt0 in [0, 16], rt1 in [0, 4]",
        "    rt0 = i, clamped to [0, 16]",
        "    rt1 = j, clamped to [0, 4]",
    ]


def test_an_operand_that_is_not_read_has_a_line(run: Run) -> None:
    _, out, _ = run("maps", "pair.hlo", "--instruction", "pair", "--output", "1")
    assert out.splitlines() == [
        "pair.hlo: main: pair = s32[2] tuple, output-to-input, output 1",
        "  operand 0 p f32[3]: nothing is read",
        "  operand 1 q s32[2]: (d0) -> (d0), domain: d0 in [0, 1]",
    ]


def test_maps_of_tuple_operands_name_the_leaf(run: Run) -> None:
    _, out, _ = run("maps", "pair.hlo")
    assert "  operand 0 pair {1} s32[2]: (d0) -> (d0), domain: d0 in [0, 1]" in out
    record = json.loads(run("maps", "pair.hlo", "--format", "json")[1])
    assert record["path"] == [1]


def test_maps_of_an_unregistered_opcode_are_unknown_with_a_reason(run: Run) -> None:
    status, out, _ = run("maps", "strange.hlo")
    assert status == 0
    assert re.search(r"^  operand 0 p f32\[3\]: unknown: .*no-such-opcode", out, re.MULTILINE)


def test_instructions_are_selected_by_name_and_opcode(run: Run) -> None:
    _, out, _ = run("maps", "flip.hlo", "-i", "%sum", "-i", "main/ones", "--opcode", "transpose")
    assert re.findall(r"main: (\w+) =", out) == ["ones", "sum", "t"]


def test_all_selects_every_instruction(run: Run) -> None:
    _, out, _ = run("maps", "flip.hlo", "--all")
    assert re.findall(r"main: (\w+) =", out) == ["p", "c", "ones", "sum", "t"]
    assert out.count("  no operands\n") == 2


def test_json_has_exactly_the_keys(run: Run) -> None:
    _, out, _ = run("maps", "window.hlo", "--format", "json")
    records = [json.loads(line) for line in out.splitlines()]
    assert [list(record) for record in records] == [KEYS] * len(records)
    assert records[0] | {"map": "", "runtime": []} == {
        "file": "window.hlo",
        "computation": "main",
        "instruction": "window",
        "opcode": "dynamic-slice",
        "direction": "output-to-input",
        "output": 0,
        "operand": 0,
        "grade": "exact",
        "unknown": None,
        "map": "",
        "runtime": [],
        "schema_version": 1,
        "output_shape": {"text": "f32[4,7]", "element_type": "f32", "dims": [4, 7]},
        "operand_name": "p",
        "operand_shape": {"text": "f32[20,11]", "element_type": "f32", "dims": [20, 11]},
        "parameter": 0,
        "dims": ["d0", "d1"],
        "ranges": [],
        "bounds": {"d0": [0, 3], "d1": [0, 6], "rt0": [0, 16], "rt1": [0, 4]},
        "results": ["d0 + rt0", "d1 + rt1"],
        "constraints": [],
    }
    assert records[0]["runtime"] == [
        {"name": "rt0", "instruction": "i", "calls": [], "map": RUNTIME_MAP, "clamp": [0, 16]},
        {"name": "rt1", "instruction": "j", "calls": [], "map": RUNTIME_MAP, "clamp": [0, 4]},
    ]


def test_json_of_an_unknown_map_has_a_reason(run: Run) -> None:
    record = json.loads(run("maps", "strange.hlo", "--format", "json")[1])
    assert (record["map"], record["grade"]) == (None, None)
    assert "no-such-opcode" in record["unknown"]


# fmt: off
NOTATIONS = [
    ("isl",   r"\{ \[.*\] -> \["),
    ("mlir",  r'#xla\.indexing_map<"\(d0, d1\) -> \(d1, d0\), domain'),
    ("latex", r"\(d.*(\\mapsto|\\to)"),
]
# fmt: on


@pytest.mark.parametrize(("notation", "expected"), NOTATIONS)
def test_other_notations_print_the_map_alone(run: Run, notation: str, expected: str) -> None:
    status, out, err = run("maps", "flip.hlo", "--format", notation)
    assert (status, err) == (0, "")
    (line,) = out.splitlines()
    assert re.match(expected, line)


def test_maps_in_another_notation_are_read_by_a_pipe(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, out, _ = run("maps", "flip.hlo", "window.hlo", "--all", "--format", "mlir")
    stdin(monkeypatch, out)
    status, simple, err = run("simplify", "--format", "mlir")
    assert (status, simple, err) == (0, out, "")
    assert out.count("\n") > 3


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_accesses_that_a_notation_omits_are_counted_in_a_note(run: Run, jobs: str) -> None:
    Path("may.hlo").write_text(
        WINDOW.replace(
            "f32[4,7] dynamic-slice(p, i, j), dynamic_slice_sizes={4,7}",
            "f32[20,11] dynamic-update-slice(p, p, i, j)",
        )
    )
    files = ["strange.hlo", "may.hlo", "flip.hlo"]
    status, out, err = run("maps", *files, "--format", "isl", "--jobs", jobs)
    assert status == 0
    unknown, may = err.splitlines()
    _, text, _ = run("maps", *files)
    assert text.count(": unknown: ") == 1
    accesses = len(out.splitlines()) + 1
    assert f"note: 1 of {accesses} accesses are unknown and have no map" in unknown
    assert f"note: {text.count(': may: ')} of {accesses - 1} maps are over-approximations" in may


def test_maps_read_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, TRANSPOSE)
    status, out, _ = run("maps", "-")
    assert (status, out.splitlines()[0]) == (
        0,
        "<stdin>: main: t = f32[5,3] transpose, output-to-input",
    )


def test_verify_does_not_change_the_output(run: Run) -> None:
    verified, plain = run("maps", "flip.hlo", "--all", "--verify"), run("maps", "flip.hlo", "--all")
    assert verified[:2] == plain[:2]


def test_output_is_coloured_on_terminals_only(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in run("maps", "flip.hlo")[1]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[1mt\x1b[0m" in run("maps", "flip.hlo")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run("maps", "flip.hlo")[1]


def test_every_instruction_of_an_example_is_answered(run: Run, example: Path) -> None:
    status, out, err = run("maps", str(example), "--all", "--direction", "both", "--format", "json")
    assert (status, err) == (0, "")
    module = hlo.load(example)
    answered = {
        (record["computation"], record["instruction"], record["direction"])
        for record in map(json.loads, out.splitlines())
        if record["map"] or record["unknown"] or record["operand"] is None or record["grade"]
    }
    assert answered == {
        (computation.name, instruction.name, direction)
        for computation in module.computations.values()
        for instruction in computation.instructions
        for direction in ("output-to-input", "input-to-output")
    }


# ---------------------------------------------------------------- maps: errors


def test_one_bad_file_does_not_stop_the_others(run: Run) -> None:
    Path("broken.hlo").write_text("ENTRY main {\n  ROOT t = f32[2] negate(p)\n}\n")
    status, out, err = run("maps", "flip.hlo", "broken.hlo", "missing.hlo", "window.hlo")
    assert status == 1
    assert out.count("output-to-input") == 2
    assert "broken.hlo:2:26" in err
    assert "error[io]: missing.hlo: No such file or directory" in err


# fmt: off
BAD = [
    # defect                 bytes of the file
    ("empty",                b""),
    ("blank",                b"\n  \n"),
    ("binary",               bytes(range(256)) * 4),
    ("not utf-8",            b"ENTRY e { ROOT p = f32[2] parameter(0) } // \xff\xfe"),
    ("truncated",            TRANSPOSE[:80].encode()),
    ("unbalanced",           b"ENTRY e { ROOT p = f32[2] parameter(0), metadata={a={b} }"),
    ("undefined operand",    b"ENTRY e { ROOT n = f32[2] negate(p) }"),
    ("nested parentheses",   b"ENTRY e { ROOT n = f32[2] negate(" + b"(" * 10_000 + b") }"),
    ("nested shape",         b"ENTRY e { ROOT n = " + b"(" * 10_000 + b"f32[2] parameter(0) }"),
    ("long number",          b"ENTRY e { ROOT p = f32[" + b"9" * 5_000 + b"] parameter(0) }"),
    ("too many elements",    b"ENTRY e { ROOT p = f32[9999999999,9999999999] parameter(0) }"),
]
# fmt: on


@pytest.mark.parametrize("command", ["maps", "check"])
@pytest.mark.parametrize(("defect", "content"), BAD, ids=[defect for defect, _ in BAD])
def test_a_malformed_file_is_an_error_with_a_location(
    run: Run, command: str, defect: str, content: bytes
) -> None:
    Path("bad.hlo").write_bytes(content)
    status, _, err = run(command, "bad.hlo", *(["--all"] if command == "maps" else []))
    assert status == 1
    assert re.search(r"^error\[\w[\w-]*\]: ", err)
    assert re.search(r"^ *--> bad\.hlo:\d+:\d+$", err, re.MULTILINE)
    assert "^" in err
    assert "error[internal]" not in err


def test_a_folder_is_an_io_error(run: Run) -> None:
    status, _, err = run("ls", ".")
    assert (status, err.startswith("error[io]: .: ")) == (1, True)


def test_a_misspelt_name_is_an_error_with_a_suggestion(run: Run) -> None:
    status, out, err = run("maps", "flip.hlo", "-i", "ons")
    assert (status, out) == (1, "")
    assert "flip.hlo: no instruction named `ons`" in err
    assert "did you mean `ones`" in err


@pytest.mark.parametrize(
    ("name", "help_"),
    [
        ("main", "`main` is a computation: use main/NAME"),
        ("fusion/ones", "did you mean `main/ones`?"),  # copied from "rt0 = fusion/ones"
    ],
)
@pytest.mark.parametrize("command", ["maps", "validate"])
def test_a_name_of_another_form_is_an_error_with_the_repair(
    run: Run, command: str, name: str, help_: str
) -> None:
    _, _, err = run(command, "flip.hlo", "-i", name)
    message = f"error[name]: flip.hlo: no instruction named `{name}`\n  = help: {help_}\n"
    assert err == message


@pytest.mark.parametrize(
    ("arguments", "help_"),
    [
        (["ops", "conv"], "did you mean `convert` or `convolution`?"),
        (["ops", "DOT"], "did you mean `dot`?"),
        (["mpas"], "did you mean `maps`?"),
    ],
)
def test_suggestions_prefer_prefixes_and_ignore_case(
    run: Run, arguments: list[str], help_: str
) -> None:
    assert f"  = help: {help_}\n" in run(*arguments)[2]


@pytest.mark.parametrize("arguments", [["ops", "zzz"], ["zzz"]])
def test_nothing_is_suggested_for_a_name_that_resembles_none(
    run: Run, arguments: list[str]
) -> None:
    status, out, err = run(*arguments)
    assert status > 0
    assert out == ""
    assert "unknown" in err
    assert "did you mean" not in err


def test_ops_explain_grades_in_a_legend(run: Run) -> None:
    assert run("ops", "dot")[1].splitlines()[-1].startswith("exact: precisely the elements needed;")
    assert "\n1 opcode or custom-call target. " in run("ops", "dot", "--format", "markdown")[1]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_opcode_that_no_instruction_has_is_reported(run: Run, jobs: str) -> None:
    status, out, err = run("maps", "flip.hlo", "--opcode", "transposse", "--jobs", jobs)
    assert (status, out) == (1, "")
    assert err.startswith("error[name]: unknown opcode `transposse`\n")
    assert "did you mean `transpose`" in err
    assert run("maps", "flip.hlo", "window.hlo", "--opcode", "dot", "--jobs", jobs) == (
        1,
        "",
        "error[name]: no instruction has the opcode `dot`\n",
    )
    two = ["strange.hlo", "flip.hlo", "--opcode", "no-such-opcode", "--opcode", "add"]
    assert run("maps", *two, "--jobs", jobs)[::2] == (0, "")


@pytest.mark.parametrize("option", ["--operand", "--output"])
def test_an_operand_or_output_out_of_range_is_an_error(run: Run, option: str) -> None:
    status, out, err = run("maps", "flip.hlo", option, "7")
    assert (status, out) == (1, "")
    assert f"t has no {option[2:]} 7 (number of {option[2:]}s: 1)" in err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["maps"],
        ["maps", "flip.hlo", "--to", "nowhere"],
        ["maps", "flip.hlo", "--operand", "-1"],
        ["maps", "flip.hlo", "--to", "parameters", "--direction", "both"],
        ["maps", "flip.hlo", "--verify", "--no-simplify"],
        ["maps", "flip.hlo", "--all", "--opcode", "dot"],
        ["maps", "flip.hlo", "--all", "-i", "t"],
        ["run", "flip.hlo", "--seed", "-1"],
        ["validate", "flip.hlo", "--seed", "-1"],
        ["compose", "first", "second", "--verify", "--no-simplify"],
        ["no-such-command"],
        ["compose", "(d0) -> (d0), domain: d0 in [0, 1]"],
    ],
)
def test_a_usage_error_exits_with_status_2(run: Run, arguments: list[str]) -> None:
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert "error[usage]: " in err


def test_an_option_without_its_value_is_explained(run: Run) -> None:
    status, _, err = run("tile", "flip.hlo", "--loops")
    assert status == 2
    assert "= help: `--loops STEPS`: With --sizes" in err
    assert "`hlo-indexing tile --help` lists the arguments and options" in err


def test_a_name_that_is_like_no_other_gets_the_command_that_lists_names(run: Run) -> None:
    _, _, err = run("maps", "flip.hlo", "-i", "zzz")
    assert "= help: `hlo-indexing ls flip.hlo` lists the names" in err
    _, _, err = run("maps", "flip.hlo", "flip.hlo", "-i", "zzz")
    assert "lists the names" not in err


@interpreted_only
def test_an_internal_error_names_its_instruction(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by design")

    monkeypatch.setattr(answering, "to_operands", fails)
    status, _, err = run("maps", "flip.hlo")
    assert status == 1
    assert "error[internal]: flip.hlo: main: t: ZeroDivisionError: by design" in err
    assert cli.run(["--debug", "maps", "flip.hlo"]) == 1
    traceback = capsys.readouterr().err.splitlines()
    assert traceback[0] == err.splitlines()[0]
    assert traceback[2].startswith("Traceback")
    assert traceback[-1] == "ZeroDivisionError: by design"


@interpreted_only
def test_an_interrupt_prints_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(answering, "to_operands", interrupt)
    assert run("maps", "flip.hlo") == (130, "", "")


def test_a_closed_pipe_is_not_an_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "indexing.cli", "maps", "--all"]
    with (tmp_path / "errors").open("w+") as errors:
        process = subprocess.Popen(
            [*command, "examples/gpt2_tiny.opt.hlo"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait() == 141
        assert (tmp_path / "errors").read_text() == ""


# ---------------------------------------------------------------- simplify, compose, check


def test_simplify_takes_maps_as_arguments(run: Run) -> None:
    text = "(d0) -> ((d0 * 4) floordiv 4 + d0 mod 8), domain: d0 in [0, 5]"
    assert run("simplify", text, "--verify") == (
        0,
        "(d0) -> (d0 * 2), domain: d0 in [0, 5]\n",
        "verified 1 map: 1 simplified, 0 unchanged\n",
    )


def test_simplify_reports_maps_beyond_isl(run: Run) -> None:
    status, _, errors = run("simplify", "--verify", "(d0) -> (d0 * d0 + 0), domain: d0 in [0, 5]")
    assert status == 1
    assert errors.startswith("error[verify]: <map>: ")
    assert "product of variables" in errors


def test_equal_maps_need_no_proof(run: Run) -> None:
    text = "(d0) -> (d0 * d0), domain: d0 in [0, 5]"
    note = "verified 1 map: 0 simplified, 1 unchanged\n"
    assert run("simplify", "--verify", text) == (0, f"{text}\n", note)
    identity = "(d0) -> (d0), domain: d0 in [0, 99]"
    assert run("compose", "--verify", text, identity) == (0, f"{text}\n", note)


def test_a_map_that_isl_cannot_represent_is_an_ordinary_error(run: Run) -> None:
    text = "(d0) -> (d0 * d0), domain: d0 in [0, 9]"
    message = "error[isl]: <map>: isl cannot represent d0 * d0, which is not affine\n"
    assert run("simplify", "--format", "isl", text) == (1, "", message)


def test_maps_in_arguments_are_named_in_errors(run: Run) -> None:
    text = "(d0) -> (d0), domain: d0 in [0, 9]"
    assert "--> <FIRST>:1:1" in run("compose", "oops", text)[2]
    assert "--> <SECOND>:1:1" in run("compose", text, "oops")[2]
    assert "--> <MAP 3>:1:1" in run("simplify", text, text, "oops")[2]
    assert "--> <map>:1:1" in run("simplify", "oops")[2]


def test_explain_prints_the_reason_before_an_empty_map(run: Run) -> None:
    empty = "(d0) -> (d0), domain: d0 in [0, 9], d0 in [12, 15]"
    *_, reason, rewrite = run("simplify", "--explain", empty)[1].splitlines()
    assert reason.startswith("  detect an empty domain: ")
    assert rewrite.endswith(": KNOWN EMPTY")
    text = "(d0) -> (d0), domain: d0 in [0, 9]"
    assert run("simplify", "--explain", text)[1] == f"{text}\n  already simplified\n"


def test_an_empty_map_is_an_error(run: Run) -> None:
    status, out, err = run("simplify", "")
    assert (status, out) == (1, "")
    assert err.startswith("error[map-syntax]: ")


def test_explain_lists_laws_of_expressions(run: Run) -> None:
    text = (
        "(d0, d1) -> ((d0 * 8 + d1) floordiv 4), domain: d0 in [0, 9], d1 in [0, 3], d0 in [0, 0]"
    )
    status, out, _ = run("simplify", "--explain", text)
    assert status == 0
    assert out.splitlines()[0] == "(d0, d1) -> (0), domain: d0 in [0, 0], d1 in [0, 3]"
    assert "  factor out multiples: (d0 * 8 + d1) floordiv 4 = d0 * 2 + d1 floordiv 4" in out
    assert "tighten bounds" in out


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_simplify_reads_a_map_per_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    lines = [
        "(d0) -> (d0 mod 4), domain: d0 in [0, 3]",
        "",
        "(d0) -> (d0 mod), domain: d0 in [0, 3]",
        "(d0) -> (d0 floordiv 4), domain: d0 in [0, 3]",
    ]
    stdin(monkeypatch, "\n".join(lines))
    status, out, err = run("simplify", *arguments)
    assert status == 1
    assert out.splitlines() == [
        "(d0) -> (d0), domain: d0 in [0, 3]",
        "(d0) -> (0), domain: d0 in [0, 3]",
    ]
    assert " --> <stdin>:3:16" in err


def test_compose_applies_the_first_map_first(run: Run) -> None:
    first = "(d0) -> (d0 * 2 + 1), domain: d0 in [0, 3]"
    second = "(d0) -> (d0 floordiv 2), domain: d0 in [0, 7]"
    assert run("compose", first, second)[1] == "(d0) -> (d0), domain: d0 in [0, 3]\n"


def test_composing_incompatible_spaces_is_an_error(run: Run) -> None:
    first = "(d0) -> (d0), domain: d0 in [0, 3]"
    second = "(d0, d1) -> (d0), domain: d0 in [0, 7], d1 in [0, 7]"
    status, out, err = run("compose", first, second)
    assert (status, out) == (1, "")
    message = "the first map has 1 result, the second takes 2 dimensions:"
    assert err == f"error[compose]: cannot compose: {message}\n  {first}\n  {second}\n"


def test_check_accepts_valid_files(run: Run) -> None:
    assert run("check", "flip.hlo", "strange.hlo") == (
        0,
        "flip.hlo: ok, 5 instructions\nstrange.hlo: ok, 2 instructions\n",
        "warning: strange.hlo:3:8: unknown opcode `no-such-opcode`: `strange` is not checked\n",
    )


def test_check_warns_once_of_each_unknown_opcode(run: Run) -> None:
    Path("new.hlo").write_text(
        "ENTRY main {\n  p = f32[3] parameter(0)\n  a = f32[3] transpos(p)\n"
        "  b = f32[3] transpos(a)\n  ROOT c = f32[3] no-such-opcode(b)\n}"
    )
    status, out, err = run("check", "new.hlo")
    assert (status, out) == (0, "new.hlo: ok, 4 instructions\n")
    assert err == (
        "warning: new.hlo:3:3: unknown opcode `transpos`: `a` is not checked\n"
        "  = help: did you mean `transpose`?\n"
        "warning: new.hlo:5:8: unknown opcode `no-such-opcode`: `c` is not checked\n"
    )


def test_check_reports_every_error(run: Run) -> None:
    Path("bad.hlo").write_text(
        "ENTRY main {\n"
        "  p = f32[2,3] parameter(0)\n"
        "  t = f32[3,2] transpose(p), dimensions={1,1}\n"
        "  ROOT n = f32[4,2] negate(t)\n"
        "}\n"
    )
    status, out, err = run("check", "bad.hlo", "flip.hlo")
    assert status == 1
    assert out == "bad.hlo: 2 errors, 3 instructions\nflip.hlo: ok, 5 instructions\n"
    assert "--> bad.hlo:3:41" in err
    assert "--> bad.hlo:4:" in err


def test_check_accepts_the_examples(run: Run, example: Path) -> None:
    assert run("check", str(example))[0] == 0


def test_explain_lists_steps_of_the_simplifier(run: Run) -> None:
    text = (
        "(d0)[s0, s1] -> (s1), domain: d0 in [0, 4], s0 in [0, 3], s1 in [0, 9], s1 * 2 in [0, 9]"
    )
    status, out, err = run("simplify", "--explain", text)
    assert (status, err) == (0, "")
    result, *steps = out.splitlines()
    assert result == "(d0)[s0] -> (s0), domain: d0 in [0, 4], s0 in [0, 4]"
    assert [step.split(",")[0].split(":")[0].strip() for step in steps] == [
        "divide a constraint by its common factor",
        "decide a constraint by bounds",
        "tighten bounds",
        "drop unused variables",
        "remove unused variables",
        "number variables",
    ]
    assert result in steps[-1]


# ---------------------------------------------------------------- help


def test_help_names_the_limits_of_the_checks(run: Run) -> None:
    text = run("validate", "--help")[1]
    for limit in (checked_instruction.MAX_ITERATIONS, validation_limits.MAX_POKED):
        assert f"{limit:,}" in text
    text = " ".join(run("run", "--help")[1].split())
    assert f"{running.MAX_ITERATIONS:,} iterations" in text
    assert f"more than {MAX_PRINTED} elements" in text


@pytest.mark.parametrize("command", group.COMMANDS)
def test_help_of_options_ends_without_a_full_stop(command: str) -> None:
    context = group.cli.make_context("hlo-indexing", [command])
    loaded = group.cli.get_command(context, command)
    assert loaded is not None
    texts = [option.help for option in loaded.params if isinstance(option, click.Option)]
    assert not [text for text in texts if (text or "").endswith(".")]


@pytest.mark.parametrize("command", ["check", "maps", "run", "validate"])
@pytest.mark.parametrize("size", ["100", "100B", "0KiB", "0G"])
def test_an_input_larger_than_the_limit_is_an_error(run: Run, command: str, size: str) -> None:
    status, out, err = run(command, "flip.hlo", "--max-input-size", size)
    assert (status, out) == (1, "")
    assert err.startswith("error[size]: the input exceeds the limit of ")
    assert run("check", "flip.hlo", "--max-input-size", "1MiB")[0] == 0


def test_workers_have_the_limit_of_the_command(run: Run) -> None:
    limit = str(len(PAIR))
    here = run("maps", "flip.hlo", "pair.hlo", "--max-input-size", limit)
    assert here[0] == 1
    assert "pair.hlo" in here[1]
    assert "flip.hlo" in here[2]
    assert run("maps", "flip.hlo", "pair.hlo", "--max-input-size", limit, "-j", "2") == here


@pytest.mark.parametrize("size", ["-1", "1.5G", "5Q", "", "many"])
def test_a_limit_is_a_number_of_bytes(run: Run, size: str) -> None:
    status, _, err = run("check", "flip.hlo", "--max-input-size", size)
    assert status == 2
    assert "expected a size such as 512MiB" in err


def test_help_gives_the_default_limit(run: Run) -> None:
    assert f"by default, {MAX_BYTES >> 30}GiB" in " ".join(run("maps", "--help")[1].split())


@interpreted_only
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_memory_that_runs_out_is_not_an_internal_error(
    run: Run, monkeypatch: pytest.MonkeyPatch, jobs: str
) -> None:
    def fails(_: object, instruction: hlo.Instruction, output_id: int) -> None:
        if instruction.name == "second":
            raise MemoryError
        np.empty(1 << 60, np.uint8)

    monkeypatch.setattr(answering, "to_operands", fails)
    status, out, err = run("maps", "flip.hlo", "pair.hlo", "--jobs", jobs)
    help_ = "  = help: use a machine with more memory, fewer --jobs, or a smaller input"
    assert (status, out) == (1, "")
    assert err.splitlines() == [
        "error[memory]: flip.hlo: main: t: memory ran out: Unable to allocate 1.00 EiB for an "
        "array with shape (1152921504606846976,) and data type uint8",
        help_,
        "error[memory]: pair.hlo: main: second: memory ran out",
        help_,
    ]

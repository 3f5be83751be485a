"""Each command that prints answers prints them as JSON, which its packaged schema describes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import click
import numpy as np
import pytest

import hlo
from indexing import cli, parse_map
from indexing.cli.group import COMMANDS, Commands
from indexing.codegen import validation
from indexing.codegen.findings import Finding, Report
from indexing.views.records import SCHEMA_VERSION, SCHEMAS
from tests.cli.running import validator

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(map(str, (ROOT / "examples").glob("*.hlo")))
MAP = (
    "(d0)[s0]{rt0} -> (d0 * 2 + s0 + rt0), "
    "domain: d0 in [0, 4], s0 in [0, 2], rt0 in [0, 5], d0 + s0 in [0, 5]"
)
TWO = "ENTRY e { p = f32[3] parameter(0)  n = f32[3] negate(p)  ROOT s = f32[3] sine(n) }"
Run: TypeAlias = Callable[..., tuple[int, list[dict[str, Any]], str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command with ``--format json``; validate the records and return them."""

    def ran(name: str, *arguments: str) -> tuple[int, list[dict[str, Any]], str]:
        status = cli.run([name, *arguments, "--format", "json"])
        captured = capsys.readouterr()
        assert "error[internal]" not in captured.err
        valid = validator(name)
        records = [
            json.loads(line, parse_constant=pytest.fail) for line in captured.out.splitlines()
        ]
        for record in records:
            valid.validate(record)
            assert record["schema_version"] == SCHEMA_VERSION
            for key in valid.schema["required"]:
                assert not valid.is_valid({k: v for k, v in record.items() if k != key})
        return status, records, captured.err

    return ran


PAGES = {"report", "explain", "dump"}
"""Commands that write pages, or files of XLA."""


def test_every_command_prints_json_with_a_schema() -> None:
    group = Commands()
    for name in set(COMMANDS) - PAGES:
        command = group.get_command(click.Context(group), name)
        assert command is not None
        (option,) = [p for p in command.params if "--format" in p.opts]
        assert isinstance(option.type, click.Choice)
        assert "json" in option.type.choices, name
        assert name in SCHEMAS, name


def test_check_gives_the_errors_that_it_prints_as_text(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {
        "good": "ENTRY e { ROOT p = f32[3] parameter(0) }",
        "wrong": "HloModule m ENTRY e { p = f32[3] parameter(0)\n  q = f32[4] negate(p)\n"
        "  ROOT t = f32[3,2] transpose(p), dimensions={0} }",
        "odd": "ENTRY e { p = f32[3] parameter(0)  ROOT q = f32[3] transpse(p) }",
        "broken": "ENTRY e { p = f32[3] parameter(0)\n ROOT n = f32[3] negate(q) }",
    }
    files = [tmp_path / f"{name}.hlo" for name in texts]
    for file, text in zip(files, texts.values(), strict=True):
        file.write_text(text)
    names = [*map(str, files), str(tmp_path / "missing.hlo")]
    status, records, err = run("check", *names)
    good, wrong, odd, broken = records
    assert status == 1
    assert "missing.hlo: No such file" in err
    assert err.count("\n") == 1
    assert (good["instructions"], good["errors"], good["unknown_opcodes"]) == (1, [], [])
    assert (wrong["module"], wrong["instructions"], broken["instructions"]) == ("m", 3, None)
    assert odd["unknown_opcodes"] == [
        {"opcode": "transpse", "instruction": "q", "computation": "e", "line": 1, "column": 41,
         "similar": ["transpose"]}
    ]  # fmt: skip
    cli.run(["check", *names])
    text = capsys.readouterr().err
    for record in records:
        for error in record["errors"]:
            place = f"{record['file']}:{error['line']}:{error['column']}"
            assert f"error[{error['code']}]: {error['message']}" in text
            assert f"--> {place}\n" in text
    assert text.count("error[") == 1 + sum(len(record["errors"]) for record in records)


def test_a_runtime_value_without_a_source_has_no_map(run: Run) -> None:
    """The schema of `maps`, which has sources, allows it, too: for symbolic sizes."""
    text = "(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 3], rt0 in [0, 9]"
    _, (record,), _ = run("simplify", text)
    validator("simplify").validate(record)
    (runtime,) = record["runtime"]
    assert (runtime["instruction"], runtime["map"]) == (None, None)
    for name in ("simplify", "maps"):
        field = validator(name).schema["$defs"]["runtime"]["properties"]["map"]
        assert field["type"] == ["string", "null"]


@pytest.mark.parametrize("flags", [[], ["--explain"], ["--verify"]])
def test_simplify_gives_the_parts_of_the_map(run: Run, flags: list[str]) -> None:
    status, (record,), _ = run("simplify", MAP, *flags)
    simple = parse_map(MAP).simplify()
    assert status == 0
    assert parse_map(record["map"]) == simple
    assert record["results"] == list(map(str, simple.results))
    assert record["bounds"] == {v.name: list(v.bounds) for v in simple.variables}
    assert [source["name"] for source in record["runtime"]] == ["rt0"]
    assert ("steps" in record) == (flags == ["--explain"])


def test_compose_gives_the_composed_map(run: Run) -> None:
    first = "(d0) -> (d0 * 2), domain: d0 in [0, 3]"
    status, (record,), _ = run("compose", first, "(d0) -> (d0 floordiv 2), domain: d0 in [0, 7]")
    assert (status, record["map"]) == (0, "(d0) -> (d0), domain: d0 in [0, 3]")


ARRAYS = """\
ENTRY e {
  i = s32[2,3] iota(), iota_dimension=1
  f = f32[3] constant({1.5, -inf, nan})
  c = c64[] constant((1, 2))
  b = pred[] constant(true)
  h = bf16[2] constant({0.5, inf})
  large = f32[13] broadcast(f32[] constant(1)), dimensions={}
  ROOT t = (s32[2,3], f32[3], c64[], pred[], bf16[2], f32[13]) tuple(i, f, c, b, h, large)
}
"""


def test_run_gives_the_values_of_small_arrays(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "arrays.hlo"
    file.write_text(ARRAYS)
    status, records, _ = run("run", str(file))
    assert status == 0
    assert [(r["name"], r["element_type"], r["dims"], r["values"]) for r in records] == [
        ("out0", "s32", [2, 3], [0, 1, 2, 0, 1, 2]),
        ("out1", "f32", [3], [1.5, "-inf", "nan"]),
        ("out2", "c64", [], [[1.0, 2.0]]),
        ("out3", "pred", [], [True]),
        ("out4", "bf16", [2], [0.5, "inf"]),
        ("out5", "f32", [13], None),
    ]
    out = str(tmp_path / "out.npz")
    status, records, _ = run("run", str(file), "--output", out)
    assert {record["output"] for record in records} == {out}
    assert len(np.load(out).files) == len(records)


def test_run_does_not_mix_json_with_an_archive(tmp_path: Path) -> None:
    file = tmp_path / "arrays.hlo"
    file.write_text(ARRAYS)
    assert cli.run(["run", str(file), "--output", "-", "--format", "json"]) == 2


def test_validate_gives_each_report(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "m.hlo"
    file.write_text(
        "ENTRY e { p = f32[3] parameter(0)  n = f32[3] negate(p)  ROOT s = f32[3] sine(n) }"
    )
    status, records, _ = run("validate", str(file))
    assert status == 0
    assert [(r["instruction"], r["scope"]) for r in records] == [
        ("n", "instruction"), ("s", "instruction"), ("s", "module"),
    ]  # fmt: skip
    assert [c["check"] for c in records[0]["checks"]] == ["numpy", "loops", "poke"]

    def fails(instruction: hlo.Instruction, *_: int) -> Report:
        return Report(instruction, (Finding("poke", "wrong", ("at [0]",)),) * 2)

    monkeypatch.setattr(validation, "validate_instruction", fails)
    status, records, _ = run("validate", str(file), "--no-xla")
    assert (status, len(records)) == (1, 2)
    assert records[0]["checks"] == [{"check": "poke", "status": "wrong", "details": ["at [0]"]}]


def test_ops_describes_every_op(run: Run) -> None:
    status, records, _ = run("ops")
    assert status == 0
    assert {"dot", "fusion", "custom-call"} <= {record["opcode"] for record in records}


@pytest.mark.parametrize("command", ["maps", "ls", "check", "summary", "bytes"])
def test_records_of_the_examples_fit_the_schema(command: str, run: Run) -> None:
    status, records, err = run(command, *EXAMPLES)
    assert (status, err) == (0, "")
    assert {record["file"] for record in records} == set(EXAMPLES)

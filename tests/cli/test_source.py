"""``hlo-indexing source``: what lines of a program became."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import hlo
from indexing import cli
from indexing.views.records import SCHEMAS

ROOT = Path(__file__).parents[2]
EXAMPLE = str(ROOT / "examples" / "attention.opt.hlo")


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = cli.run(list(arguments))
    return status, *capsys.readouterr()


def record_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    record = json.loads(ran(capsys, "source", *arguments, "--format", "json")[1])
    Draft202012Validator(json.loads(SCHEMAS["source"].read_text())).validate(record)
    assert isinstance(record, dict)
    return record


def instructions_at(line: int, innermost: bool) -> set[str]:
    """Return the instructions of computations that fusions call whose metadata has a line."""
    module = hlo.load(EXAMPLE)
    names = set()
    for computation in module.computations.values():
        for each in computation.instructions:
            frames = each.source.frames[: 1 if innermost else None]
            is_there = any(f.file.endswith("models.py") and f.line == line for f in frames)
            is_kernel = each.opcode in ("fusion", "bitcast") or not each.operands
            if is_there and not (computation is module.entry and is_kernel):
                names.add(f"{computation.name}/{each.name}")
    return names


@pytest.mark.parametrize("innermost", [False, True])
@pytest.mark.parametrize("line", [81, 166, 167])
def test_all_instructions_of_a_line_are_found(
    line: int, innermost: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--innermost"] if innermost else []
    record = record_of(capsys, f"models.py:{line}", EXAMPLE, *options)
    kernels = record["kernels"]
    assert isinstance(kernels, list)
    made = {f"{m['computation']}/{m['instruction']}" for kernel in kernels for m in kernel["made"]}
    assert made <= instructions_at(line, innermost)
    reducers = {name for name in instructions_at(line, innermost) - made if "region" in name}
    assert instructions_at(line, innermost) - made == reducers  # what a reduction applies
    moved = [kernel["bytes"][0] for kernel in kernels]
    assert moved == sorted(moved, reverse=True)


def test_a_file_has_a_row_for_each_line(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = ran(capsys, "source", "models.py", EXAMPLE)
    assert status == 0
    rows = [line.split() for line in out.splitlines()[2:]]
    module = hlo.load(EXAMPLE)
    lines = {i.source.line for i in module.instructions if (i.source.file or "") == "models.py"}
    assert {int(row[-1].rpartition(":")[2]) for row in rows} <= lines
    assert len(rows) >= 5


def test_a_line_that_made_nothing_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = ran(capsys, "source", "models.py:168", EXAMPLE)
    assert status == 1
    assert "no instruction records the place `models.py:168`" in err
    _, _, err = ran(capsys, "source", "zzz.py", EXAMPLE)
    assert "`zzz.py`\n  = help: lines of `models.py` are recorded" in err
    plain = tmp_path / "plain.hlo"
    plain.write_text("ENTRY e { p = f32[2] parameter(0)  ROOT n = f32[2] negate(p) }")
    status, _, err = ran(capsys, "source", "m.py:1", str(plain))
    assert (status, "print the module with its metadata" in err) == (1, True)

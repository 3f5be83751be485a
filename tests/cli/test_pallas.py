"""The command `pallas`: the blocks of the Pallas calls of a function of JAX."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema
import pytest

from tests.cli.running import Run, runner

pytest.importorskip("jax", reason="needs jax, to trace functions")

EXAMPLE = Path(__file__).parents[2] / "examples" / "blocks.py"
SCHEMA = Path(__file__).parents[2] / "indexing" / "views" / "schemas" / "pallas.json"
MATRIX = "--shapes 'f32[24,640],f32[1,640]'"
PROGRAM = """
print("printed by the program")
def none(x): return x
def wrong(x): raise RuntimeError("first line\\nsecond line")
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    shutil.copy(EXAMPLE, "blocks.py")
    Path("program.py").write_text(PROGRAM)
    return runner(capsys)


def test_a_table_has_a_row_for_each_operand(run: Run) -> None:
    status, out, err = run(f"pallas jax:blocks.py:matvec {MATRIX} --chip v5e")
    assert (status, err) == (0, "")
    head, columns, *rows = out.splitlines()
    assert head == (
        "matvec: tpu, grid (i < 3 parallel, k < 5 arbitrary), 69,216 bytes moved, "
        "VMEM 24,576 of 134,217,728 bytes"
    )
    assert columns.split()[:6] == ["operand", "block", "array", "bounds", "copies", "bytes"]
    assert [row.split()[0] for row in rows] == ["args[0]", "args[1]", "outputs"]
    assert rows[2].split()[-5:] == ["3", "96", "yes", "consecutive", "no"]


def test_a_fault_has_steps_and_the_line_of_its_index_map(run: Run) -> None:
    status, out, _ = run(f"pallas jax:blocks.py:matvec_k_outermost {MATRIX}")
    assert status == 1
    assert "fault: outputs: steps (0, 0) and (1, 0) visit one block" in out
    (line,) = [n for n, t in enumerate(EXAMPLE.read_text().splitlines(), 1) if "k, i: (i, 0)" in t]
    assert f"blocks.py:{line}]" in out
    assert "better order: (i, k) moves 69,216 bytes" in out


def test_ranges_of_scalars_decide(run: Run) -> None:
    line = "pallas jax:blocks.py:pages --shapes 's32[4],f32[160,128]'"
    status, out, _ = run(line)
    assert status == 3
    assert "may: args[1]: inside if 0 <= j + s[i] * 2 <= 19" in out
    assert run(f"{line} --ranges 's: 0:9'")[0] == 0


@pytest.mark.slow
def test_symbolic_sizes_are_proved_or_refuted(run: Run) -> None:
    line = "pallas jax:blocks.py:scale --shapes"
    assert run(f"{line} 'f32[n,128]' --ranges 'n: 8::8'")[0] == 0
    assert run(f"{line} 'f32[8*n,128]'")[0] == 0
    status, out, _ = run(f"{line} 'f32[n,128]'")
    assert status == 1
    assert "fault: outputs: no step visits element (0, 0) at n = 1" in out
    status, out, _ = run(f"{line} 'f32[n,128]' --ranges 'n: 9:99'")
    assert status == 1
    assert "no step visits element (8, 0) at n = 9" in out


JSON_CASES = [
    f"matvec_k_outermost {MATRIX}",
    f"matvec {MATRIX}",
    "pages --shapes 's32[4],f32[160,128]'",
    "scale --shapes 'f32[n,128]'",
]


@pytest.mark.parametrize(
    "arguments",
    [JSON_CASES[0], *[pytest.param(case, marks=pytest.mark.slow) for case in JSON_CASES[1:]]],
)
def test_json_has_an_object_for_each_call(run: Run, arguments: str) -> None:
    name, _, options = arguments.partition(" ")
    _, out, _ = run(f"pallas jax:blocks.py:{name} {options} --format json")
    (line,) = out.splitlines()
    record = json.loads(line, parse_constant=pytest.fail)
    schema = json.loads(SCHEMA.read_text())
    jsonschema.validate(record, schema)
    assert record["name"] == name
    assert set(record) == set(schema["required"])


TRACED_ERRORS = [
    ("jax:blocks.py:missing", 1, "error[jax]: jax:blocks.py:missing: ValueError: blocks.py"),
    (
        *("jax:program.py:wrong --shapes 'f32[]'", 1),
        "program.py:4: RuntimeError: first line\n  second line",
    ),
    (
        *("jax:blocks.py:scale --shapes 'f32[8,128]' --ranges 's: 0:9'", 1),
        "no Pallas call has a scalar operand or a size called 's': it has none",
    ),
    (
        *("jax:blocks.py:pages --shapes 's32[4],f32[160,128]' --ranges 't: 0:9'", 1),
        "called 't': the names are s",
    ),
]
USAGE_ERRORS = [
    ("blocks.py:scale", 2, "'blocks.py:scale' is not a function"),
    ("jax:blocks.py:scale --shapes 'f33[8]'", 2, "'f33[8]' is not a shape"),
    ("jax:blocks.py:scale --shapes 'f32[8,128]' --ranges s", 2, "'s' is not a range"),
    ("jax:blocks.py:scale --shapes 'f32[8,128]' --chip v1", 2, "unknown TPU 'v1'"),
]


@pytest.mark.parametrize(
    ("line", "status", "message"),
    [*USAGE_ERRORS, *[pytest.param(*case, marks=pytest.mark.slow) for case in TRACED_ERRORS]],
)
def test_errors_have_the_repair(run: Run, line: str, status: int, message: str) -> None:
    actual, out, err = run(f"pallas {line}")
    assert (actual, out) == (status, "")
    assert message in err


@pytest.mark.slow
def test_a_function_without_calls(run: Run) -> None:
    status, out, err = run("pallas jax:program.py:none --shapes 'f32[8]'")
    assert (status, out) == (0, "no Pallas call\n")
    assert "printed by the program" not in out + err


@pytest.mark.slow
def test_vmem_is_compared_with_a_limit(run: Run) -> None:
    line = f"pallas jax:blocks.py:matvec {MATRIX} --vmem-limit"
    assert run(f"{line} 24KiB")[0] == 0
    status, out, _ = run(f"{line} 20KiB")
    assert status == 0
    assert "warning: VMEM: up to 24,576 bytes, more than the limit of 20,480" in out
    status, out, _ = run(f"{line} 4KiB")
    assert status == 1
    assert "fault: VMEM: at least 4,640 bytes, more than the limit of 4,096" in out

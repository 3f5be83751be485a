"""``hlo-indexing kernels``: tables, JSON and exit statuses."""

import json
from pathlib import Path
from typing import Any

import pytest

import indexing.kernels.kernel as kernel_module
from indexing.kernels import checks
from indexing.kernels.dumps import kernels_of
from indexing.kernels.run import KernelRun, run_kernel
from indexing.views.kernel_tables import checked_kernel
from tests.cli.running import Run, runner, valid_records, validator

DATA = Path(__file__).parent / "data"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(capsys, "kernels")


def test_proved_kernels_are_a_table_and_records(run: Run) -> None:
    status, out, _ = run(f"{DATA / 'h100_transpose_2d'}")
    assert status == 0
    assert out.splitlines()[1].split() == [
        *("input_transpose_fusion", "input_transpose_fusion", "transpose", "6x1x1", "128x1x1"),
        *("proved,", "values"),
    ]
    (record,) = valid_records(run, "kernels", f"{DATA / 'h100_transpose_2d'} --stages")
    assert (record["verdict"], record["level"], record["what"]) == ("proved", "values", None)
    assert record["stages"] == [{"pass": "xla-simplify-arith", "verdict": "proved"}]


def test_a_kernel_that_differs_has_its_point(run: Run, tmp_path: Path) -> None:
    for file in (DATA / "h100_transpose_2d").iterdir():
        text = file.read_text()
        text = text.replace("math.exp", "math.tanh") if file.suffix == ".log" else text
        (tmp_path / file.name).write_text(text)
    status, out, _ = run(f"{tmp_path} --format json")
    assert status == 1
    record = json.loads(out)
    validator("kernels").validate(record)
    assert (record["verdict"], record["output"]) == ("differs", 0)
    assert list(record["block"]) == ["bl_x"]


def test_a_kernel_that_is_no_text_of_mlir_is_an_error(run: Run, tmp_path: Path) -> None:
    for file in (DATA / "cpu_loop_gelu").iterdir():
        text = file.read_text()
        text = text.replace("arith.mulf %", "arith.mulf ", 1) if file.suffix == ".log" else text
        (tmp_path / file.name).write_text(text)
    status, out, err = run(f"{tmp_path} --format json")
    assert status == 1
    record = json.loads(out)
    validator("kernels").validate(record)
    assert (record["read"], record["verdict"]) == (False, "undecided")
    assert "error[mlir-syntax]: expected a value such as `%0`" in err


def test_an_undecided_kernel_has_its_reason(run: Run, tmp_path: Path) -> None:
    for file in (DATA / "cpu_loop_gelu").glob("*.log"):
        (tmp_path / file.name).write_text(file.read_text())
    status, out, _ = run(f"{tmp_path}")
    assert status == 3
    assert "undecided, 1 kernel: the module has no instruction of the kernel's name" in out


def test_a_name_chooses_a_kernel(run: Run) -> None:
    status, out, _ = run(f"{DATA} -i loop_slice_fusion")
    assert (status, len(out.splitlines())) == (0, 2)
    status, _, err = run(f"{DATA} -i none")
    assert status == 1
    assert "no kernel `none`" in err


def test_each_stage_is_proved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    executions: list[str] = []

    def counted(*arguments: Any) -> KernelRun:
        executions.append("run")
        return run_kernel(*arguments)

    for module in (checks, kernel_module):
        monkeypatch.setattr(module, "run_kernel", counted)
    (kernel,) = kernels_of(DATA / "cpu_loop_gelu")
    result = checked_kernel(kernel, stages=True)
    assert [word for _, word in result.stages] == ["proved"]
    assert executions == ["run"]

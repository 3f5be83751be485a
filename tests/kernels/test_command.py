"""``hlo-indexing kernels``: tables, JSON and exit statuses."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import indexing.kernels.kernel as kernel_module
from indexing.kernels import checks
from indexing.kernels.dumps import has_kernels, kernels_beside, kernels_of
from indexing.kernels.run import KernelRun, run_kernel
from indexing.views.kernel_tables import checked_kernel, kernel_lines
from tests.cli.running import Run, runner, valid_records, validator

DATA = Path(__file__).parent / "data"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(capsys, "kernels")


def test_proved_kernels_are_a_table_and_records(run: Run) -> None:
    status, out, _ = run(f"{DATA / 'h100_transpose_2d'}")
    assert status == 0
    name = "input_transpose_fusion"
    lines = [line.split() for line in out.splitlines()]
    assert lines[1] == [name, "transpose", "6", "128", "proved"]
    assert lines[-1] == [name, "768", "768", "100", "768", "768", "100"]
    (record,) = valid_records(run, "kernels", f"{DATA / 'h100_transpose_2d'} --stages")
    assert (record["verdict"], record["level"], record["what"]) == ("proved", "values", None)
    assert record["stages"] == [{"pass": "xla-simplify-arith", "verdict": "proved", "what": None}]
    counts = {"sectors": 768, "ideal_sectors": 768, "efficiency": 1.0, "grade": "exact"}
    access = record["access"]
    assert (access["device"], access["unknown"]) == ("H100", None)
    assert access["loaded"] == access["stored"] == counts
    assert [(each["role"], each["sectors"]) for each in access["arrays"]] == [
        ("operand", 768), ("output", 768),
    ]  # fmt: skip


def test_a_kernel_that_differs_has_its_point(run: Run, tmp_path: Path) -> None:
    for file in (DATA / "h100_transpose_2d").iterdir():
        text = file.read_text()
        text = text.replace("math.exp", "math.tanh") if file.suffix == ".log" else text
        (tmp_path / file.name).write_text(text)
    _, out, _ = run(f"{tmp_path}")
    name, fault = out.splitlines()[2:4]
    assert name == "input_transpose_fusion"
    assert fault.startswith("    differs: another value than the instruction's is written: element")
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
    (tmp_path / "module_0001.jit_f.cut.mlir-passes.log").write_text("")
    status, out, err = run(f"{tmp_path}")
    assert status == 1
    assert "error[mlir-syntax]: expected `module`" in err
    assert "module_0001.jit_f" in out.splitlines()


def test_an_undecided_kernel_has_its_reason(run: Run, tmp_path: Path) -> None:
    for file in (DATA / "cpu_loop_gelu").glob("*.log"):
        (tmp_path / file.name).write_text(file.read_text())
    status, out, _ = run(f"{tmp_path}")
    assert status == 3
    reason = "no instruction of its name in the dumps: --xla_dump_hlo_as_text writes the module"
    assert f"undecided, 1 kernel: {reason}" in out
    _, out, _ = run(f"{tmp_path} -i multiply_multiply_fusion --format json")
    assert reason in json.loads(out)["what"]


def test_a_name_chooses_a_kernel(run: Run) -> None:
    status, out, _ = run(f"{DATA / 'h100_loop_slice_stride'} -i loop_slice_fusion")
    assert (status, len(out.splitlines())) == (0, 13)
    assert "jit_loop_slice_stride: loop_slice_fusion" in out.splitlines()
    *_, head, load, store, worst, last = out.splitlines()
    assert head.split() == ["ARRAY", "NAME", "SECTORS", "IDEAL", "%", "BYTES/LANE"]
    assert (worst[:10], last[:9]) == ("operand 0:", "output 0:")
    assert worst == "operand 0: at worst 25 sectors at bl_x 1, warp 0"
    assert load.split()[:7] == ["operand", "0", "x_0_.1", "135", "23", "17", "4"]
    assert store.split()[2:6] == ["loop_slice_fusion", "29", "29", "100"]
    status, out, err = run(f"{DATA} -i none")
    assert (status, out) == (1, "")
    assert "no kernel `none`" in err


def test_a_folder_without_kernels_is_an_error_with_the_flags(run: Run, tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text("HloModule m")
    for notation in ("text", "json", "svg"):
        status, out, err = run(f"{tmp_path} --format {notation}")
        assert (status, out) == (1, "")
        assert "no dumps of kernels; XLA_FLAGS=" in err
    status, out, err = run(f"{tmp_path / 'none'}")
    assert (status, out) == (1, "")
    assert err.splitlines()[0].endswith("No such file or directory")
    assert "no dumps" not in err


def test_a_file_in_place_of_a_folder_is_an_error_with_the_flags(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "m.hlo"
    file.write_text("ENTRY e { ROOT p = f32[2] parameter(0) }")
    status, _, err = run(str(file))
    assert status == 1
    assert "a file, and no folder of dumps; XLA_FLAGS=" in err


def test_the_sectors_of_arrays_fit_80_columns(run: Run) -> None:
    _, out, _ = run(f"{DATA / 'h100_reduce_all'} -i input_reduce_fusion")
    assert "at worst 9 sectors at bl_x 0, warp 1, i0 0" in out
    assert all(len(line) <= 80 for line in out.splitlines())


PASSES = ("canonicalize", "cse", "xla-flatten-tensors", "xla-lower-tensors", "symbol-dce")
HEADER = (
    "// -----// IR Dump Before P: {} ('func.func' operation: @input_transpose_fusion) //----- //"
)


def log_of(folder: str, wrong: frozenset[int]) -> str:
    """Return a log in which the text of some stages is wrong."""
    (log,) = (DATA / folder).glob("*.log")
    _, _, text = log.read_text().partition("\n")
    texts = [text.replace("math.exp", "math.tanh") if k in wrong else text for k in range(5)]
    sections = [f"{HEADER.format(n)}\n{each}" for n, each in zip(PASSES, texts, strict=True)]
    return "\n".join(sections)


WRONG_STAGES = [
    (frozenset[int](), None),
    (frozenset([0, 1, 2, 3]), (0, "")),
    (frozenset([2, 3, 4]), (2, "cse")),
    (frozenset([2]), (2, "cse")),  # a later pass mends it
    (frozenset([3]), (3, "xla-flatten-tensors")),
    (frozenset([4]), None),  # no tensors: not compared
]


@pytest.mark.parametrize("wrong, expected", WRONG_STAGES)
def test_a_wrong_stage_is_named_by_the_pass_whose_result_it_is(
    run: Run, tmp_path: Path, wrong: frozenset[int], expected: tuple[int, str] | None
) -> None:
    for file in (DATA / "h100_transpose_2d").iterdir():
        text = log_of("h100_transpose_2d", wrong) if file.suffix == ".log" else file.read_text()
        (tmp_path / file.name).write_text(text)
    status, out, _ = run(f"{tmp_path} --stages --format json")
    record = json.loads(out)
    validator("kernels").validate(record)
    words = ["differs" if k in wrong else "proved" for k in range(4)]
    assert [(each["pass"], each["verdict"]) for each in record["stages"]] == [
        *zip(PASSES[:4], words, strict=True)
    ]
    if expected is None:
        assert (status, record["wrong_stage"]) == (0, None)
        return
    assert status == 1
    assert (record["wrong_stage"]["number"], record["wrong_stage"]["after"]) == expected
    _, out, _ = run(f"{tmp_path} --stages")
    maker = f"    stage {expected[0]}, the result of {expected[1]}\n        differs: another"
    assert (maker in out) == bool(expected[0])
    assert "is written: element [" in out


def test_the_first_undecided_stage_has_its_reason(run: Run, tmp_path: Path) -> None:
    for file in (DATA / "h100_transpose_2d").iterdir():
        text = log_of("h100_transpose_2d", frozenset()) if file.suffix == ".log" else ""
        first, *others = text.split("math.exp")
        changed = f"{first}math.exp{'math.unknown'.join(others)}"
        (tmp_path / file.name).write_text(changed if text else file.read_text())
    status, out, _ = run(f"{tmp_path} --stages")
    assert status == 0
    name, counts, stage, reason = [line.strip() for line in out.splitlines()[2:6]]
    assert (name, counts) == ("input_transpose_fusion", "stages: 1 proved, 3 undecided")
    assert stage == "stage 1, the result of canonicalize"
    assert reason.startswith("undecided: `math.unknown` has no rule")
    (record,) = valid_records(run, "kernels", f"{tmp_path} --stages")
    assert [each["what"] is None for each in record["stages"]] == [True, False, False, False]


def test_each_stage_is_proved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    executions: list[str] = []

    def count(*arguments: Any) -> KernelRun:
        executions.append("run")
        return run_kernel(*arguments)

    for module in (checks, kernel_module):
        monkeypatch.setattr(module, "run_kernel", count)
    (kernel,) = kernels_of(DATA / "cpu_loop_gelu")
    result = checked_kernel(kernel, stages=True)
    assert [bool(verdict) for _, verdict in result.stages] == [True]
    assert executions == ["run"]


def test_kernels_of_a_cpu_have_no_sectors_and_the_reason(run: Run) -> None:
    status, out, _ = run(f"{DATA / 'cpu_loop_gelu'}")
    assert (status, out.count("\n")) == (0, 3)
    assert "no sectors, 1 kernel: a CPU has no warps" in out
    (record,) = valid_records(run, "kernels", f"{DATA / 'cpu_loop_gelu'} --device A100")
    assert (record["access"]["device"], record["access"]["loaded"]) == ("A100", None)


def test_kernels_of_several_modules_are_below_the_name_of_theirs(run: Run) -> None:
    _, out, _ = run(f"{DATA}")
    lines = out.splitlines()
    assert lines[0].split() == ["KERNEL", "KIND", "GRID", "THREADS", "VERDICT"]
    place = lines.index("jit_transpose_2d")
    assert lines[place + 1].split()[0] == "input_transpose_fusion"
    shared = lines.index("jit_identical_loops: loop_add_fusion_1")
    assert lines[shared + 1] == "    also computes loop_add_fusion, by its thunk"
    assert all(
        len(line) <= 80 for line in lines if not line.startswith(("undecided", "no ", "proved"))
    )


def test_pictures_are_of_sectors_or_of_the_blocks_that_write(run: Run) -> None:
    for folder, title in (
        ("h100_transpose_2d", "memory accesses of kernel input_transpose_fusion"),
        ("cpu_loop_gelu", "threads of multiply_multiply_fusion"),
    ):
        status, out, _ = run(f"{DATA / folder} --format svg")
        assert status == 0
        assert out.startswith("<svg")
        assert title in out


def test_a_fusion_by_another_name_has_a_column(tmp_path: Path) -> None:
    (kernel,) = kernels_of(DATA / "h100_loop_slice_stride")
    same, other = checked_kernel(kernel), checked_kernel(replace(kernel, name="shared"))
    head, row, *_ = kernel_lines([same])
    assert "FUSION" not in head
    head, row, *_ = kernel_lines([other])
    assert row.split()[:2] == ["shared", "loop_slice_fusion"]
    assert row.index("loop_slice_fusion") == head.index("FUSION")


@pytest.fixture
def passes(capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(capsys, "passes")


def dumped_passes(folder: Path, of: str, *changes: tuple[str, str]) -> None:
    """Write dumps of a pass that changes nothing, and kernels whose text is changed."""
    for file in (DATA / of).iterdir():
        text = file.read_text()
        if "after_optimizations" in file.name:
            module = file.name.partition(".sm_")[0].partition(".cpu_")[0]
            for number in (1, 2):
                (folder / f"{module}.000{number}.p.after_dce.before_cse.txt").write_text(text)
        for old, new in changes if file.suffix == ".log" else ():
            assert old in text
            text = text.replace(old, new, 1)
        (folder / file.name).write_text(text)


def test_kernels_are_the_step_after_the_last_pass(passes: Run, tmp_path: Path) -> None:
    dumped_passes(tmp_path, "h100_transpose_2d")
    status, out, _ = passes(f"{tmp_path}")
    assert status == 0
    assert out.endswith("\n\nkernels: 1 proved\n")
    (record,) = valid_records(passes, "passes", f"{tmp_path} --format json")
    assert (record["pass"], record["kernel"], record["verdict"], record["level"]) == (
        *("emitters", "input_transpose_fusion", "proved", "values"),
    )
    assert record["before"] == "input_transpose_fusion"
    assert record["after"].endswith(".mlir-passes.log")


STEPS = [
    (("math.exp", "math.tanh"), 1, "differs", "differs: "),
    (("math.exp", "math.unknown"), 3, "unknown", "undecided: `math.unknown` has no rule"),
    (("math.exp %", "math.exp )"), 1, "unknown", "undecided: "),
]


@pytest.mark.parametrize("change, status, verdict, line", STEPS)
def test_a_kernel_that_is_not_proved_is_named_after_the_passes(
    passes: Run, tmp_path: Path, change: tuple[str, str], status: int, verdict: str, line: str
) -> None:
    dumped_passes(tmp_path, "h100_transpose_2d", change)
    got, out, err = passes(f"{tmp_path}")
    assert got == status
    counts, head, reason, *_ = out.partition("kernels: ")[2].splitlines()
    assert counts == f"1 {reason.split(':')[0].strip()}"
    assert head.endswith(".jit_transpose_2d: input_transpose_fusion")
    assert reason.startswith(f"    {line}")
    assert ("error[mlir-syntax]" in err) == (")" in change[1])
    _, out, _ = passes(f"{tmp_path} --format json")
    record = json.loads(out.splitlines()[-1])
    validator("passes").validate(record)
    assert record["verdict"] == verdict
    assert (record["element"] is None) == (verdict != "differs")


def test_the_premises_of_proofs_are_counted(run: Run) -> None:
    status, out, _ = run(f"{DATA / 'h100_reduce_row'}")
    assert status == 0
    assert "proved, 1 kernel: if a reduction combines its values in any order" in out.splitlines()


def test_a_report_of_kernels_without_passes_names_the_file_to_give(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status, _, err = runner(capsys, "report")(f"{DATA / 'cpu_loop_gelu'} -o {tmp_path / 'r.html'}")
    assert status == 1
    assert "give the file of their module, *_after_optimizations.txt" in err


def test_a_folder_of_kernels_without_passes_is_an_error_that_names_the_command(
    passes: Run,
) -> None:
    status, out, err = passes(f"{DATA / 'cpu_loop_gelu'}")
    assert (status, out) == (1, "")
    assert "hlo-indexing kernels" in err


def test_kernels_beside_a_module_are_those_of_its_dump() -> None:
    folder = DATA / "h100_transpose_2d"
    (module,) = folder.glob("*after_optimizations.txt")
    assert [each.name for each in kernels_beside(module)] == ["input_transpose_fusion"]
    (log,) = folder.glob("*.log")
    assert kernels_beside(log) == ()
    assert has_kernels(folder)
    assert not has_kernels(folder.parents[2] / "cli")


def test_the_shared_memory_of_kernels_follows_the_table(run: Run) -> None:
    for folder, shown in (("h100_layernorm", "8 bytes"), ("h100_reduce_row", "")):
        _, out, _ = run(f"{DATA / folder}")
        assert ("dynamic shared memory" in out) == bool(shown)
        assert f"dynamic shared memory, 1 kernel: {shown}" in out or not shown
        sizes = [kernel.shared_bytes for kernel in kernels_of(DATA / folder)]
        assert [f"{size} bytes" for size in sizes if size] == ([shown] if shown else [])

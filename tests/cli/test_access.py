"""``hlo-indexing access``: its table, its records and its errors."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo
import indexing
from indexing import cli
from indexing.memory.warps.access import MemoryAccess
from tests.cli.running import Run, runner, valid_records

MODULE = """\
ENTRY e {
  p = f32[96,64] parameter(0)
  i = s32[] parameter(1)
  j = s32[] parameter(2)
  window = f32[4,32] dynamic-slice(p, i, j), dynamic_slice_sizes={4,32}
  rows = s32[16,2] parameter(3)
  taken = f32[16] gather(p, rows), offset_dims={}, collapsed_slice_dims={0,1},
    start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1}
  both = (f32[96,64], s32[]) tuple(p, i)
  ROOT t = f32[64,96] transpose(p), dimensions={1,0}
}
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``access``; return the exit status, the output and the errors."""
    monkeypatch.chdir(tmp_path)
    Path("m.hlo").write_text(MODULE)
    return runner(capsys, "access")


def test_each_array_has_a_row(run: Run) -> None:
    status, out, err = run("m.hlo --threads 128")
    assert (status, err) == (0, "")
    assert out == (
        "m.hlo: e: t = f32[64,96] transpose, 128 threads, unroll 1, A100\n"
        "  array      name  shape       requested    used  transferred  ratio  sectors  lines"
        "  warps  XLA            worst warp\n"
        "  operand 0  p     f32[96,64]     24,576  24,576      196,608   8.00    6,144  6,144"
        "    192  not coalesced  32 sectors at bl_x 0, warp 0\n"
        "  output 0   t     f32[64,96]     24,576  24,576       24,576   1.00      768    192"
        "    192                 4 sectors at bl_x 0, warp 0\n"
    )


def test_unknown_starts_have_a_best_and_a_worst_case(run: Run) -> None:
    out = run("m.hlo -i window --threads 32")[1]
    assert "operand 0 p: 16 sectors at best, with i=0, j=0; 20 at worst, with i=0, j=1" in out


def test_what_is_unknown_has_a_reason(run: Run) -> None:
    status, out, _ = run("m.hlo -i taken")
    assert status == 0
    assert "operand 0 p: unknown: " in out
    assert [line.split()[4:7] for line in out.splitlines() if line.split()[2:3] == ["p"]] == [
        ["unknown", "unknown", "unknown"]
    ]
    assert "an element of `rows` and rt1, an element of `rows` differ" in out


def test_vectors_that_are_apart_are_several_instructions(run: Run) -> None:
    out = run("m.hlo --unroll 2 --threads 32,2 --device H100")[1]
    assert "32 x 2 threads, unroll 2, H100" in out
    assert "operand 0 p: 2 instructions: 4 bytes x 96 warps, 4 bytes x 96 warps" in out


def test_records_have_the_numbers_of_the_library(run: Run) -> None:
    listed = valid_records(run, "access", "m.hlo -i t -i window --unroll 4")
    module = hlo.parse(MODULE)
    assert len(listed) == 6
    for record in listed:
        instruction = module.entry[record["instruction"]]
        accesses = indexing.access(instruction, unroll=4)
        own = accesses.store if record["role"] == "output" else accesses[record["number"]]
        assert isinstance(own, MemoryAccess)
        assert record["sectors"] == own.sectors
        assert record["histogram"] == [list(pair) for pair in own.histogram.items()]
        assert len(record["instructions"]) == len(own.instructions)
    unknown, *_ = valid_records(run, "access", "m.hlo -i taken")
    assert (unknown["grade"], unknown.get("sectors")) == (None, None)


@pytest.mark.parametrize(
    ("line", "status", "message"),
    [
        ("m.hlo --threads 0", 2, "a block has 1 to 1024 threads; got '0'"),
        ("m.hlo --threads 64,32", 2, "a block has 1 to 1024 threads; got '64,32'"),
        ("m.hlo --threads 1,2,3,4", 2, "expected numbers such as 128 or 32,4; got '1,2,3,4'"),
        ("m.hlo --device H101", 2, "did you mean `H100`?"),
        ("m.hlo -i windw", 1, "= help: did you mean `window`?"),
        ("m.hlo --output 3", 1, "has no output 3 (number of outputs: 1)"),
        ("none.hlo", 1, "none.hlo"),
    ],
)
def test_errors_name_the_repair(run: Run, line: str, status: int, message: str) -> None:
    code, out, err = run(line)
    assert (code, out) == (status, "")
    assert message in err


def test_instructions_that_move_no_bytes_are_left_out(run: Run) -> None:
    status, out, err = run("m.hlo -i both -i t")
    assert status == 0
    assert [line for line in out.splitlines() if line.startswith("m.hlo")] == [
        "m.hlo: e: t = f32[64,96] transpose, 128 threads, unroll 1, A100"
    ]
    assert err == "note: m.hlo: e: both: a tuple moves no bytes\n"


def test_a_root_that_moves_no_bytes_is_an_error(run: Run) -> None:
    Path("tuple.hlo").write_text("""ENTRY e { p = f32[9] parameter(0)  n = f32[9] negate(p)
      ROOT t = (f32[9]) tuple(n) }""")
    status, out, err = run("tuple.hlo")
    assert (status, out) == (1, "")
    assert err == (
        "error[access]: tuple.hlo: e: t: a tuple moves no bytes\n"
        "  = help: select an instruction that computes an array, such as -i n\n"
    )


def test_a_module_of_a_tpu_has_no_warps(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(Path(__file__).parents[2] / "examples" / "targets" / "attention.tpu_v5e.hlo")
    assert cli.run(["access", file, "-i", "fusion"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "fusion: the module is for a TPU, which has no warps" in captured.err
    assert "= help: `tile -i fusion --sizes 8,128` counts" in captured.err
    assert cli.run(["access", file]) == 1  # the root
    assert "which has no warps" in capsys.readouterr().err
    assert cli.run(["tile", file, "-i", "fusion", "--sizes", "8,128"]) == 0
    other = file.replace("tpu_v5e", "h100")
    assert cli.run(["access", other]) == 0
    assert "no warps" not in capsys.readouterr().err


def test_a_fusion_whose_kernel_was_dumped_has_a_note(run: Run) -> None:
    folder = Path(__file__).parents[2] / "examples" / "kernels" / "softmax"
    (module,) = folder.glob("*after_optimizations.txt")
    status, _, err = run(f"{module} -i input_reduce_fusion.1")
    assert status == 0
    assert f"`kernels {folder} -i input_reduce_fusion.1` counts its own threads" in err
    (log,) = folder.glob("*.input_reduce_fusion_1.*")
    Path(module.name).write_text(module.read_text())
    Path(log.name).write_text("no MLIR")
    status, _, err = run(f"{module.name} -i input_reduce_fusion.1")
    assert (status, err) == (0, "")

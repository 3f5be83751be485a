"""Executions are refused before they start if they take too many element operations."""

from __future__ import annotations

from pathlib import Path
from threading import Thread
from threading import enumerate as enumerate_threads
from typing import Final

import numpy as np
import pytest

import hlo
import indexing
from hlo.ops.op import OPS
from indexing import cli
from indexing.cli.commands import run as run_command
from indexing.codegen.validation import validate_instruction
from indexing.codegen.validation_limits import MAX_OPERATIONS as MAX_VALIDATED
from indexing.equivalence.compare import equivalent
from indexing.execution import ExecutionError, memory, operations, run
from indexing.execution.operations import MAX_OPERATIONS, element_operations
from indexing.ops import reductions
from tests.growth.work import calls_of

ADD: Final = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }"
LOOP: Final = """
  less {{ s = (s32[], f32[100]) parameter(0)  i = s32[] get-tuple-element(s), index=0
    n = s32[] {bound}  ROOT r = pred[] compare(i, n), direction=LT }}
  next {{ s = (s32[], f32[100]) parameter(0)  i = s32[] get-tuple-element(s), index=0
    one = s32[] constant(1)  j = s32[] add(i, one)
    x = f32[100] get-tuple-element(s), index=1  y = f32[100] negate(x)
    ROOT t = (s32[], f32[100]) tuple(j, y) }}
  ENTRY e {{ zero = s32[] constant(0)  x = f32[100] parameter(0)
    a = (s32[], f32[100]) tuple(zero, x)
    w = (s32[], f32[100]) while(a), condition=less, body=next
    ROOT r = f32[100] get-tuple-element(w), index=1 }}"""

# A program, and its element operations: counted by hand from the definition of the op.
COUNTS: Final = [
    ("ENTRY e { p = f32[7,3] parameter(0)  ROOT n = f32[7,3] negate(p) }", 21),
    ("ENTRY e { p = f32[7,3] parameter(0)  ROOT n = f32[3,7] transpose(p), dimensions={1,0} }", 0),
    ("ENTRY e { p = f32[] parameter(0)  ROOT b = f32[7,3] broadcast(p), dimensions={} }", 0),
    ("ENTRY e { ROOT i = s32[7,3] iota(), iota_dimension=0 }", 21),
    (
        f"{ADD} ENTRY e {{ p = f32[] parameter(0)  b = f32[7,3] broadcast(p), dimensions={{}}"
        "  ROOT r = f32[3] reduce(b, p), dimensions={0}, to_apply=add }",
        21 + 1 + 3,  # read and written: more than 18 additions
    ),
    (
        "ENTRY e { p = f32[7,3] parameter(0)  q = f32[3,5] parameter(1)"
        "  ROOT d = f32[7,5] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
        2 * 7 * 3 * 5,
    ),
    (
        "ENTRY e { p = f32[2,11,3] parameter(0)  w = f32[4,3,5] parameter(1)"
        "  ROOT c = f32[2,8,5] convolution(p, w), window={size=4}, dim_labels=b0f_0io->b0f }",
        2 * (2 * 8 * 5) * (4 * 3),
    ),
    (LOOP.format(bound="constant(9)"), 9 * 101 + 10),  # body: j and y; condition: r
    (
        "f { x = f32[5] parameter(0)  ROOT n = f32[5] negate(x) } ENTRY e { p = f32[5] parameter(0)"
        "  a = f32[5] call(p), to_apply=f  ROOT b = f32[5] fusion(a), kind=kLoop, calls=f }",
        10,
    ),
]


@pytest.mark.parametrize(("text", "count"), COUNTS)
def test_element_operations_are_counted(text: str, count: int) -> None:
    entry = hlo.parse(text).entry
    assert element_operations(entry) == count
    expected = (count + operations.DEVICE_OPERATIONS) * 3
    assert element_operations(entry, 3) == expected


def test_an_op_that_contracts_elements_counts_each_product() -> None:
    """Its work exceeds the size of its arrays."""
    texts = {
        "cholesky": "p = f32[9,9] parameter(0)  ROOT r = f32[9,9] cholesky(p), lower=true",
        "triangular-solve": "p = f32[9,9] parameter(0)  q = f32[9,9] parameter(1)  ROOT r = "
        "f32[9,9] triangular-solve(p, q), left_side=true, lower=true, transpose_a=NO_TRANSPOSE",
        "fft": "p = c64[512] parameter(0)  ROOT r = c64[512] fft(p), fft_type=FFT, "
        "fft_length={512}",
        "reduce-window": "p = f32[99] parameter(0)  z = f32[] constant(0)  ROOT r = f32[90] "
        "reduce-window(p, z), window={size=10}, to_apply=add",
    }
    for opcode, lines in texts.items():
        entry = hlo.parse(f"{ADD} ENTRY e {{ {lines} }}").entry
        assert opcode in OPS
        shape = entry.root.shape
        assert isinstance(shape, hlo.Shape)
        assert element_operations(entry) > 2 * shape.size, opcode


HUGE: Final = {
    "reduce": f"""{ADD} ENTRY e {{ p = f32[] parameter(0)  z = f32[] constant(0)
      b = f32[1000000,1000000] broadcast(p), dimensions={{}}
      ROOT r = f32[] reduce(b, z), dimensions={{0,1}}, to_apply=add }}""",
    "convolution": """ENTRY e { x = f32[64,256,256,256] parameter(0)
      w = f32[256,256,64,64] parameter(1)  ROOT c = f32[64,256,193,193] convolution(x, w),
      window={size=64x64}, dim_labels=bf01_oi01->bf01 }""",
    "loop": LOOP.format(bound="constant(2000000000)"),
}


@pytest.mark.parametrize("name", HUGE)
def test_a_run_of_too_many_operations_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error has both numbers, the instruction, and the option."""
    path = tmp_path / "m.hlo"
    path.write_text(HUGE[name])
    required = element_operations(hlo.parse(HUGE[name]).entry)
    assert cli.run(["run", str(path), "--max-operations", str(required - 1)]) == 1
    error = capsys.readouterr().err
    assert f"takes {required:,} element operations, more than {required - 1:,}" in error
    assert f"--max-operations {required}" in error
    if name != "loop":
        assert cli.run(["run", str(path)]) == 1
        assert f"`{name[0]}` takes" in capsys.readouterr().err


def test_elements_that_are_touched_count_beside_the_arithmetic_that_bytes_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sum of 10^6 elements: 10^6 - 1 additions; 10^6 + 1 elements read and one written."""
    text = f"""{ADD} ENTRY e {{ p = f32[1000,1000] parameter(0)  z = f32[] constant(0)
      ROOT r = f32[] reduce(p, z), dimensions={{0,1}}, to_apply=add }}"""
    module = hlo.parse(text)
    assert indexing.traffic(module).total.flops == (10**6 - 1, 10**6 - 1)
    assert element_operations(module.entry) == 10**6 + 1 + 1
    path = tmp_path / "m.hlo"
    path.write_text(text)
    assert cli.run(["run", str(path), "--max-operations", "1_000_001"]) == 1
    error = capsys.readouterr().err
    assert "takes 1,000,002 element operations" in error
    assert (
        "= note: an instruction takes the operations that `bytes` counts, or the elements" in error
    )
    assert cli.run(["run", str(path), "--max-operations", "1.000002e6"]) == 0


def test_the_work_of_a_program_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "ENTRY e { p = f32[%d] parameter(0)  n = f32[%d] negate(p)  ROOT r = f32[%d] abs(n) }"
    small, large = (hlo.parse(text % (size, size, size)) for size in (3, 7))
    counted = calls_of(monkeypatch, operations, "operations_of")
    allocated = calls_of(monkeypatch, memory, "_allocated_bytes")
    run(small, [np.zeros(3, np.float32)])
    first = len(counted), len(allocated)
    assert all(first)
    run(small, [np.ones(3, np.float32)])
    assert (len(counted), len(allocated)) == first
    run(large, [np.ones(7, np.float32)])
    assert (len(counted), len(allocated)) == (2 * first[0], 2 * first[1])
    with pytest.raises(ExecutionError, match="memory"):
        run(small, [np.ones(3, np.float32)], memory=11)
    with pytest.raises(ExecutionError, match="operations"):
        run(small, [np.ones(3, np.float32)], max_operations=5)
    assert element_operations(small.entry) * 7 == element_operations(large.entry) * 3
    assert element_operations(small.entry, 2) > 2 * element_operations(small.entry)


def test_many_devices_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.hlo"
    path.write_text("ENTRY e { p = f32[2] parameter(0)  ROOT n = f32[2] negate(p) }")
    command = ["run", str(path), "--replicas", "10000000"]
    assert cli.run(command) == 1
    assert "10,000,000 devices, each of which counts as 1,000,000" in capsys.readouterr().err
    assert cli.run([*command, "--max-operations", str(10**20)]) == 1
    assert "estimated memory" in capsys.readouterr().err


def test_devices_that_the_system_does_not_start_are_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Other devices do not wait for them."""
    module = hlo.parse(
        f"{ADD} ENTRY e {{ p = f32[2] parameter(0)  ROOT r = f32[2] all-reduce(p), to_apply=add }}"
    )
    start = Thread.start

    def limit(thread: Thread) -> None:
        if sum(each.daemon for each in enumerate_threads()) >= before + 3:
            raise RuntimeError("can't start new thread")
        start(thread)

    before = sum(each.daemon for each in enumerate_threads())
    monkeypatch.setattr(Thread, "start", limit)
    with pytest.raises(ExecutionError, match=r"no thread for device 3 of 8: can't start"):
        run(module, [np.zeros(2, np.float32)], replicas=8)


def test_the_api_takes_the_same_limit() -> None:
    module = hlo.parse("ENTRY e { p = f32[7] parameter(0)  ROOT n = f32[7] negate(p) }")
    inputs = [np.zeros(7, np.float32)]
    assert run(module, inputs, max_operations=7)[0].shape == (7,)
    with pytest.raises(ExecutionError, match="takes 7 element operations, more than 6"):
        run(module, inputs, max_operations=6)
    assert run_command.MAX_OPERATIONS == MAX_OPERATIONS


def test_a_loop_of_an_unknown_number_of_iterations_is_counted_as_it_runs() -> None:
    module = hlo.parse("""
      less { s = (s32[], s32[100]) parameter(0)  i = s32[] get-tuple-element(s), index=0
        z = s32[] constant(0)  ROOT r = pred[] compare(i, z), direction=GT }
      next { s = (s32[], s32[100]) parameter(0)  i = s32[] get-tuple-element(s), index=0
        one = s32[] constant(1)  j = s32[] subtract(i, one)
        x = s32[100] get-tuple-element(s), index=1  y = s32[100] negate(x)
        ROOT t = (s32[], s32[100]) tuple(j, y) }
      ENTRY e { n = s32[] parameter(0)  x = s32[100] parameter(1)
        a = (s32[], s32[100]) tuple(n, x)
        ROOT w = (s32[], s32[100]) while(a), condition=less, body=next }""")
    inputs = [np.int32(8), np.zeros(100, np.int32)]
    assert element_operations(module.entry) <= 1
    run(module, inputs, max_operations=8 * 102)
    with pytest.raises(ExecutionError, match="takes 816 element operations, more than 815"):
        run(module, inputs, max_operations=8 * 102 - 1)


def test_validation_skips_what_takes_too_long() -> None:
    text = """ENTRY e { x = f32[1,1,1000,1000] parameter(0)  w = f32[1,1,500,500] parameter(1)
      ROOT c = f32[1,1,501,501] convolution(x, w), window={size=500x500},
      dim_labels=bf01_oi01->bf01 }"""
    root = hlo.parse(text).entry.root
    required = operations.operations_of(root)
    assert required > MAX_VALIDATED
    report = validate_instruction(root, 0, 1 << 20)
    assert report.status == "skipped"
    reason = f"it takes {required} element operations, more than {MAX_VALIDATED}"
    assert [f.details for f in report.findings] == [(reason,)]


def test_a_comparison_does_not_execute_what_takes_too_long() -> None:
    text = """ENTRY e {{ x = f32[1,1,1000,1000] parameter(0)  w = f32[1,1,500,500] parameter(1)
      c = f32[1,1,501,501] convolution(x, w), window={{size=500x500}}, dim_labels=bf01_oi01->bf01
      ROOT r = f32[1,1,501,501] {opcode}(c) }}"""
    before, after = (hlo.parse(text.format(opcode=opcode)) for opcode in ("cosine", "sine"))
    verdict = equivalent(before, after, "numbers")
    assert "element operations, more than" in str(verdict)


def test_a_large_array_is_reduced_by_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result is that of one call: integers, so that the order does not matter."""
    init = np.asarray(3, np.int32)
    values = np.arange(3 * 5 * 7, dtype=np.int32).reshape(3, 5, 7)
    for axes in ((0,), (1,), (2,), (0, 2), (0, 1, 2)):
        for ufunc in (np.add, np.maximum, np.multiply):
            monkeypatch.setattr(reductions, "MAX_BLOCK", 1 << 26)
            whole = reductions.reduce_axes(ufunc, init, values, axes)
            monkeypatch.setattr(reductions, "MAX_BLOCK", 4)
            blocks = reductions.reduce_axes(ufunc, init, values, axes)
            assert blocks.dtype == whole.dtype
            assert np.array_equal(blocks, whole), (ufunc, axes)

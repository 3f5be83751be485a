"""``hlo-indexing run --tile`` and ``--loops``: entries as loop nests, with fallback to kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hlo
from indexing import cli
from indexing.codegen import running
from indexing.codegen.running import nests_of
from indexing.execution import random_inputs
from indexing.execution import run as execute
from indexing.execution.machine import RunOptions

ADD = "add { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT s = s32[] add(a, b) }\n"
LESS = "less { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }\n"  # noqa: E501
WHOLE = f"""{ADD}
ENTRY e {{
  p = (s32[7,5], s32[5]) parameter(0)
  x = s32[7,5] get-tuple-element(p), index=0
  y = s32[5] get-tuple-element(p), index=1
  r = s32[5,7] transpose(x), dimensions={{1,0}}
  b = s32[5,7] broadcast(y), dimensions={{0}}
  q = s32[5,7] multiply(r, b)
  zero = s32[] constant(0)
  sum = s32[5] reduce(q, zero), dimensions={{1}}, to_apply=add
  ROOT t = (s32[5,7], s32[5]) tuple(q, sum)
}}"""
SORTED = f"""{LESS}
twice {{ x = s32[7,5] parameter(0)  ROOT y = s32[7,5] add(x, x) }}
ENTRY e {{
  p = s32[5,7] parameter(0)
  s = s32[5,7] sort(p), dimensions={{1}}, to_apply=less
  t = s32[7,5] transpose(s), dimensions={{1,0}}
  ROOT f = s32[7,5] fusion(t), kind=kLoop, calls=twice
}}"""
ELIDED = """ENTRY e { p = s32[3] parameter(0) c = s32[3] constant({...})
  ROOT s = s32[3] add(p, c) }"""
SIZED = """add { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT s = s32[] add(a, b) }
ENTRY e { p = s32[6] parameter(0) n = s32[] constant(2) z = s32[] constant(0)
  s = s32[<=6] set-dimension-size(p, n), dimensions={0}
  ROOT r = s32[] reduce(s, z), dimensions={0}, to_apply=add }"""
MESH = """ENTRY e { p = f32[8] parameter(0)
  c = f32[8] custom-call(p), custom_call_target="xla.sdy.GlobalToLocalShape"
  ROOT r = f32[8] negate(c) }"""


WAYS = [
    # a program, a tile (None: loops), whether each result is a nest, parts of the remarks
    (WHOLE, (2, 3), True, []),
    (WHOLE, (2,), True, []),
    (WHOLE, (100, 1), True, []),
    (WHOLE, None, True, []),
    (SORTED, (2, 3), False, ["for sort `s`", "`s` falls back to its kernel: no loop nest"]),
    (SORTED, None, False, ["for sort `s`", "`s` falls back to its kernel: no loop nest"]),
    (ELIDED, (2,), False, ["constant `c`"]),
    (SIZED, None, False, ["a shape is dynamic", "`s` falls back to its kernel: a shape is dynamic",
                          "`r` falls back to its kernel: a shape is dynamic"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "tile", "is_by_result", "remarks"), WAYS)
def test_nests_compute_the_results_of_kernels(
    text: str, tile: tuple[int, ...] | None, is_by_result: bool, remarks: list[str]
) -> None:
    module = hlo.parse(text)
    nests = nests_of(module, tile)
    assert (nests.by_result is not None) == is_by_result
    assert len(nests.remarks) == len(remarks)
    assert all(part in remark for part, remark in zip(remarks, nests.remarks, strict=True))
    inputs = random_inputs(module.entry, 3)
    results = nests.run(inputs, RunOptions(elided="random"))
    expected = execute(module, inputs, elided="random")
    assert [a.dtype for a in results] == [a.dtype for a in expected]
    assert [a.tolist() for a in results] == [a.tolist() for a in expected]
    assert not any(np.shares_memory(a, b) for a in results for b in inputs)


def test_nests_do_not_call_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels of transpose and multiply raise; only the sort falls back to its kernel."""
    whole, sorted_ = hlo.parse(WHOLE), hlo.parse(SORTED)
    inputs = random_inputs(whole.entry, 0)
    expected = [array.tolist() for array in execute(whole, inputs)]
    for root in (whole.entry["r"], whole.entry["q"]):
        monkeypatch.setattr(type(root.op), "kernel", lambda self, *operands: 1 / 0)
    assert [array.tolist() for array in nests_of(whole, (2, 2)).run(inputs)] == expected
    (values,) = random_inputs(sorted_.entry, 0)
    (result,) = nests_of(sorted_, (2, 2)).run([values])
    assert result.tolist() == (2 * np.sort(values, 1).T).tolist()


def test_an_entry_with_side_effects_runs_by_instruction() -> None:
    module = hlo.parse("""ENTRY e { k = token[] after-all() p = s32[2] parameter(0)
      o = token[] outfeed(p, k), outfeed_shape=s32[2]  ROOT n = s32[2] negate(p) }""")
    assert nests_of(module).remarks == (
        "the entry is executed instruction by instruction: `o` has side effects",
        "`k` is executed by the interpreter: after-all has no per-element rule",
        "`o` is executed by the interpreter: outfeed has no per-element rule",
    )


def test_an_entry_with_many_results_runs_by_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MAX_RESULTS", 1)
    module = hlo.parse(WHOLE)
    nests = nests_of(module, (2, 3))
    assert nests.remarks == (
        "the entry is executed instruction by instruction: it has 2 results, more than 1",
    )
    inputs = random_inputs(module.entry, 3)
    results = [array.tolist() for array in nests.run(inputs)]
    assert results == [array.tolist() for array in execute(module, inputs)]


def test_the_memory_of_a_tile_includes_the_values_that_it_reduces() -> None:
    """256 rows of 4096 numbers are summed: a tile of 8 results reduces 8 rows at a time."""
    text = """add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
    ENTRY e { p = f32[4096] parameter(0)  z = f32[] constant(0)
      b = f32[256,4096] broadcast(p), dimensions={1}  x = f32[256,4096] exponential(b)
      ROOT r = f32[256] reduce(x, z), dimensions={1}, to_apply=add }"""
    module = hlo.parse(text)
    nests_of(module, (8,)).check_memory(2**20)
    with pytest.raises(hlo.HloError, match=r"MiB exceeds the 1.0 MiB available"):
        nests_of(module, (256,)).check_memory(2**20)
    with pytest.raises(hlo.HloError, match="estimated memory"):
        nests_of(module).check_memory(2**20)


MANY = """ENTRY e { p = s32[2] parameter(0)
  ROOT t = (s32[2], s32[2], s32[2], s32[2], s32[2]) tuple(p, p, p, p, p) }"""
FAULTS = [
    # a program, arguments, the status, the message
    (WHOLE, ["--tile", "2,3,4"], 1, "tile 2,3,4 has rank 3, but results have rank 1 or 2"),
    (MANY, ["--tile", "2,3"], 1, "returns s32[2], s32[2], s32[2], s32[2], ...\n"),
    (WHOLE, ["--tile", "2,0"], 2, "'2,0' is not a list of positive sizes, such as 32,64"),
    (WHOLE, ["--tile", "two"], 2, "'two' is not a list of positive sizes"),
    (WHOLE, ["--tile", "3,"], 2, "'3,' is not a list of positive sizes"),
    (WHOLE, ["--tile", "[]"], 1, "tile [] has rank 0, but results have rank 1 or 2"),
    (WHOLE, ["--tile", "2,2", "--loops"], 2, "--tile cannot be used with --loops"),
    (WHOLE, ["--loops", "--replicas", "2"], 2, "--loops cannot be used with --replicas"),
    (WHOLE, ["--loops", "--inputs", "none.npz"], 1, "error[io]: none.npz: No such file"),
    (ELIDED, ["--loops"], 1, "the values of constant `c` are elided"),
    (SORTED.replace("ROOT f = s32[7,5]", "ROOT f = s32[7]"), ["--tile", "3"], 1, "error[shape]: "),
    (MESH, ["--loops"], 1, "this program has manual regions of a mesh"),
]


@pytest.mark.parametrize(("text", "arguments", "status", "message"), FAULTS)
def test_errors_are_reported_and_nothing_is_written(
    text: str,
    arguments: list[str],
    status: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.hlo").write_text(text)
    assert cli.run(["run", "m.hlo", "--output", "out.npz", *arguments]) == status
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["m.hlo"]


def test_python_loops_with_too_many_iterations_are_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "MAX_ITERATIONS", 69)
    with pytest.raises(hlo.HloError, match=r"\d+ loop iterations, more than 69") as caught:
        nests_of(hlo.parse(WHOLE))  # 35 products, and at least 35 more for the sums
    assert caught.value.help == "run NumPy programs with --tile"
    nests_of(hlo.parse(WHOLE), (2, 3))


def test_the_command_notes_what_falls_back_to_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.hlo").write_text(SORTED)
    np.savez("in.npz", in0=np.arange(35, dtype=np.int32)[::-1].reshape(5, 7))
    for arguments in (["--tile", "3,2"], ["--loops"]):
        line = ["run", "m.hlo", "--inputs", "in.npz", "--output", "out.npz"]
        assert cli.run([*line, *arguments]) == 0
        captured = capsys.readouterr()
        assert captured.out == "m.hlo: 1 array in out.npz\n"
        reason = "reads depend on element values"
        assert captured.err.splitlines() == [
            "note: m.hlo: the entry is executed instruction by instruction: "
            f"no loop nest for sort `s`: {reason}",
            f"note: m.hlo: `s` falls back to its kernel: no loop nest for sort `s`: {reason}",
        ]
        rows = np.arange(35, dtype=np.int32).reshape(5, 7)[::-1]
        assert np.load("out.npz")["out0"].tolist() == (2 * rows.T).tolist()

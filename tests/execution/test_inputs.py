"""Inputs from callers and files, the command ``run``, and their errors."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import hlo
from indexing import cli
from indexing.execution import archive, parameter_leaves, random_inputs, run
from indexing.execution.memory import estimated_bytes
from tests.execution.arrays import f32, s32

PAIR = """HloModule pair
ENTRY e {
  p = (f32[2,3], s32[]) parameter(0)
  b = bf16[2] parameter(1)
  x = f32[2,3] get-tuple-element(p), index=0
  n = f32[2,3] negate(x)
  ROOT t = (f32[2,3], bf16[2]) tuple(n, b)
}
"""
LOOP = """HloModule loop
body { p = (s32[]) parameter(0) ROOT r = (s32[]) copy(p) }
always { p = (s32[]) parameter(0) ROOT t = pred[] constant(true) }
ENTRY e { z = s32[] constant(0) t = (s32[]) tuple(z)
  ROOT w = (s32[]) while(t), condition=always, body=body }
"""
ELIDED = """HloModule elided
ENTRY e { p = f32[3] parameter(0) c = f32[3] constant({...}) ROOT s = f32[3] add(p, c) }
"""
CONSTANT = ELIDED.replace("{...}", "{1, 2, 3}")
HUGE = """HloModule huge
ENTRY e { p = f32[] parameter(0) b = f32[4000000,4000000] broadcast(p), dimensions={}
  ROOT n = f32[4000000,4000000] negate(b) }
"""
UNSOUND = """HloModule unsound
ENTRY e { p = s32[5] parameter(0) ROOT n = s32[6] negate(p) }
"""
UNBOUNDED = """HloModule unbounded
ENTRY e { k = f32[?,4] parameter(0) t = (f32[?,4]) tuple(k)
  ROOT g = f32[?,4] get-tuple-element(t), index=0 }
"""
GOOD = [np.ones((2, 3), np.float32), s32(1), np.zeros(2, ml_dtypes.bfloat16)]


# ---------------------------------------------------------------- arrays

BAD = [
    # number of the wrong input, its value, the message
    (0, np.ones((2, 3)), "input p.0: expected f32[2,3] (float32), got float64[2,3]"),
    (0, np.ones((3, 2), np.float32), "input p.0: expected f32[2,3] (float32), got float32[3,2]"),
    (1, np.int64(1), "input p.1: expected s32[] (int32), got int64[]"),
    (1, 1, "input p.1: expected s32[] (int32), got int64[]"),
    (2, f32([0.1, 0]), "input b: expected bf16[2] (bfloat16), got float32[2]"),
]


@pytest.mark.parametrize(("number", "value", "message"), BAD, ids=[row[2][6:20] for row in BAD])
def test_an_input_of_another_type_or_shape_is_an_error(
    number: int, value: object, message: str
) -> None:
    inputs = [value if k == number else array for k, array in enumerate(GOOD)]
    with pytest.raises(hlo.HloError) as caught:
        run(hlo.parse(PAIR), inputs)
    assert message in caught.value.message
    assert "parameter" in caught.value.span.text


@pytest.mark.parametrize("count", [0, 2, 4])
def test_another_number_of_inputs_is_an_error(count: int) -> None:
    with pytest.raises(hlo.HloError, match=f"expected 3 inputs, got {count}") as caught:
        run(hlo.parse(PAIR), (GOOD * 2)[:count])
    assert "p.0 f32[2,3], p.1 s32[], b bf16[2]" in str(caught.value)


def test_float32_is_accepted_for_types_that_numpy_lacks_if_the_values_are_exact() -> None:
    given = [*GOOD[:2], f32([0.5, -3])]
    actual = run(hlo.parse(PAIR), given)[1]
    assert actual.dtype == ml_dtypes.bfloat16
    assert actual.tolist() == [0.5, -3]


def test_random_inputs_match_the_parameters_and_are_deterministic() -> None:
    entry = hlo.parse(PAIR).entry
    arrays, again, other = (random_inputs(entry, seed) for seed in (3, 3, 4))
    assert len(arrays) == len(parameter_leaves(entry)) == 3
    run(entry, arrays)
    assert all(np.array_equal(a, b) for a, b in zip(arrays, again, strict=True))
    assert not np.array_equal(arrays[0], other[0])


@pytest.mark.parametrize(
    "kind", ["pred", "s1", "s2", "u1", "s4", "u64", "f8e4m3fn", "c64", "f4e2m1fn"]
)
def test_every_type_has_random_inputs(kind: str) -> None:
    entry = hlo.parse(
        f"ENTRY e {{ p = {kind}[50] parameter(0) ROOT c = {kind}[50] copy(p) }}"
    ).entry
    (array,) = random_inputs(entry, 1)
    (actual,) = run(entry, [array])
    assert actual.dtype == array.dtype
    if array.dtype.kind != "c":
        assert np.isfinite(array.astype(np.float32)).all()


def test_the_memory_estimate_counts_live_values() -> None:
    text = """ENTRY e { p = f32[256] parameter(0) a = f32[256] negate(p) b = f32[256] negate(a)
      ROOT c = f32[256] negate(b) }"""
    assert estimated_bytes(hlo.parse(text).entry) == 3 * 1024  # p, a and b; then p, b and c


def test_a_program_that_exceeds_the_memory_is_an_error_with_its_size() -> None:
    with pytest.raises(hlo.HloError, match=r"estimated memory 58.2 TiB exceeds") as caught:
        run(hlo.parse(HUGE), [f32(1)], max_operations=10**15)
    assert caught.value.label == "`n` takes 58.2 TiB"
    small = hlo.parse("ENTRY e { p = f32[256] parameter(0) ROOT a = f32[256] negate(p) }")
    message = "estimated memory 2048 bytes exceeds the 2047 bytes available"
    with pytest.raises(hlo.HloError, match=message):
        run(small, [np.ones(256, np.float32)], memory=2047)


# ---------------------------------------------------------------- the command


def save(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_results_are_written_and_read_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, inputs, out = save(tmp_path / "m.hlo", PAIR), tmp_path / "in.npz", tmp_path / "out.npz"
    np.savez(inputs, **{"in0": GOOD[0], "p.1": GOOD[1], "b": f32([2, -0.5]), "out0": 1})
    assert cli.run(["run", file, "--inputs", str(inputs), "--output", str(out)]) == 0
    assert capsys.readouterr().out == f"{file}: 2 arrays in {out}\n"
    stored = np.load(out)
    assert stored.files == ["out0", "out1"]
    assert stored["out0"].tolist() == [[-1] * 3] * 2
    assert (stored["out1"].dtype, stored["out1"].tolist()) == (np.float32, [2, -0.5])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.npz", "m.hlo", "out.npz"]


def test_without_files_inputs_are_random_and_results_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = save(tmp_path / "m.hlo", PAIR)
    assert cli.run(["run", file, "--seed", "4"]) == 0
    first = capsys.readouterr().out
    assert [line.split()[:2] for line in first.splitlines()] == [
        ["out0:", "f32[2,3]"],
        ["out1:", "bf16[2]"],
    ]
    assert cli.run(["run", file, "--seed", "4"]) == 0
    assert capsys.readouterr().out == first
    assert cli.run(["run", file]) == 0
    assert capsys.readouterr().out != first


FAULTS = [
    # a program, further arguments, the message
    (LOOP, ["--max-iterations", "50"], "the loop does not terminate within 50 iterations"),
    (ELIDED, [], "the values of constant `c` are elided"),
    (UNSOUND, [], "error[shape]: `n` is declared s32[6], but its inferred shape is s32[5]"),
    (
        HUGE,
        ["--max-operations", "1000000000000000"],
        "error[memory]: estimated memory 58.2 TiB exceeds",
    ),
    (UNBOUNDED, [], "error[execution]: k is f32[?,4]: execution needs bounded sizes"),
    (UNBOUNDED, ["--loops"], "error[execution]: k is f32[?,4]: execution needs bounded sizes"),
    (CONSTANT, ["--inputs", "constant.npz"], "constant.npz: not an input of this program: c"),
    (PAIR, ["--inputs", "missing.npz"], "error[io]: missing.npz: No such file or directory"),
    (PAIR, ["--inputs", "none.npz"], "none.npz: not an .npz file of arrays"),
    (PAIR, ["--inputs", "one.npy"], "one.npy: not an .npz file of arrays"),
    (PAIR, ["--inputs", "few.npz"], "few.npz: missing in1: the input p.1, s32[]"),
    (PAIR, ["--inputs", "more.npz"], "more.npz: not an input of this program: extra"),
    (PAIR, ["--inputs", "one.npz"], "one.npz: missing in1, in2\n"),
    (PAIR, ["--inputs", "twice.npz"], "twice.npz: the input p.1 is given twice, as in1 and p.1"),
    (PAIR, ["--inputs", "object.npz"], "object.npz: in1 has dtype object, expected int32"),
    (
        PAIR,
        ["--inputs", "device.npz", "--replicas", "3"],
        "device.npz: missing device1.in0, device2.in0\n",
    ),
    (
        PAIR,
        ["--inputs", "both.npz", "--replicas", "1"],
        "not an input of this program: device0.in0",
    ),
    (PAIR, ["--inputs", "wrong.npz"], "input p.1: expected s32[] (int32), got float64[]"),
]


@pytest.mark.parametrize(("text", "arguments", "message"), FAULTS, ids=[r[2][:30] for r in FAULTS])
def test_errors_are_reported_and_nothing_is_written(
    text: str,
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "m.hlo", text)
    save(tmp_path / "none.npz", "nothing")
    full = {"in0": GOOD[0], "in1": GOOD[1], "in2": f32([0, 0])}
    np.save("one.npy", GOOD[0])
    np.savez("few.npz", in0=GOOD[0], in2=GOOD[2])
    np.savez("one.npz", in0=GOOD[0])
    np.savez("twice.npz", **full, **{"p.1": GOOD[1]})
    np.savez("object.npz", **{**full, "in1": np.array(["x", None], dtype=object)})
    np.savez("device.npz", **{"device0.in0": GOOD[0], "in1": GOOD[1], "in2": f32([0, 0])})
    np.savez("both.npz", **full, **{"device0.in0": GOOD[0]})
    np.savez("more.npz", **full, extra=1)
    np.savez("wrong.npz", **{**full, "in1": 1.0})
    np.savez("constant.npz", in0=f32([1, 2, 3]), c=f32([10, 20, 30]))
    before = sorted(tmp_path.iterdir())
    assert cli.run(["run", "m.hlo", "--output", "out.npz", *arguments]) == 1
    assert message in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


def test_inputs_may_have_the_names_of_others(tmp_path: Path) -> None:
    module = hlo.parse("""ENTRY e { in1 = s32[] parameter(0) in0 = s32[] parameter(1)
      ROOT t = (s32[], s32[]) tuple(in1, in0) }""")
    np.savez(tmp_path / "in.npz", in0=s32(5), in1=s32(6))
    given = archive.read(str(tmp_path / "in.npz"), module.entry, 1, 0)
    assert [int(array) for array in given.inputs] == [5, 6]


def test_long_results_are_printed_without_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = save(tmp_path / "i.hlo", "ENTRY e { ROOT i = s32[4,5] iota(), iota_dimension=1 }")
    assert cli.run(["run", file]) == 0
    assert capsys.readouterr().out == "out0: s32[4,5] (20 elements, see --output)\n"


def test_elided_constants_have_values_from_the_file_or_random_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, inputs = save(tmp_path / "m.hlo", ELIDED), str(tmp_path / "in.npz")
    np.savez(inputs, in0=f32([1, 2, 3]), c=f32([10, 20, 30]))
    assert cli.run(["run", file, "--inputs", inputs]) == 0
    assert capsys.readouterr().out == "out0: f32[3] 11.0 22.0 33.0\n"
    assert cli.run(["run", file, "--elided", "random"]) == 0
    first = capsys.readouterr().out
    assert cli.run(["run", file, "--elided", "random"]) == 0
    assert capsys.readouterr().out == first
    np.savez(inputs, in0=f32([1, 2, 3]), c=f32([10, 20]))
    assert cli.run(["run", file, "--inputs", inputs]) == 1
    assert "constant `c`: expected f32[3], got float32[2]" in capsys.readouterr().err


def test_devices_have_their_own_inputs_and_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
      ENTRY e { p = f32[2] parameter(0) ROOT s = f32[2] all-reduce(p), to_apply=add }"""
    file, inputs = save(tmp_path / "m.hlo", text), str(tmp_path / "in.npz")
    np.savez(inputs, **{"in0": f32([1, 2.5]), "device1.in0": f32([3, 5.25])})
    assert cli.run(["run", file, "--inputs", inputs, "--replicas", "2"]) == 0
    out = "device0.out0: f32[2] 4.0 7.75\ndevice1.out0: f32[2] 4.0 7.75\n"
    assert capsys.readouterr().out == out


@pytest.mark.parametrize(
    "sizes", ["2147483648,2147483648", "4611686018427387904", "1,1000000000000"]
)
@pytest.mark.parametrize("element_type", ["f32", "s16", "pred", "c64"])
def test_random_inputs_beyond_the_memory_are_an_error(element_type: str, sizes: str) -> None:
    shape = f"{element_type}[{sizes}]"
    module = hlo.parse(f"ENTRY e {{ p = {shape} parameter(0)  ROOT c = {shape} copy(p) }}")
    for execute in (lambda: random_inputs(module.entry, 0), lambda: run(module, [])):
        with pytest.raises(hlo.HloError, match=r"estimated memory .* exceeds") as caught:
            execute()
        assert caught.value.span.text.startswith("p = ")

"""Execution against XLA's CPU backend, if jax is installed (extra ``[xla]``)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hlo
from indexing.execution import random_inputs, run, xla
from tests.execution.test_arithmetic import TABLE, arrays_of, line_of
from tests.execution.test_worked_examples import COMPUTATIONS
from tests.execution.test_worked_examples import TABLE as EXAMPLES

DATA = Path(__file__).parent / "data"
ROUNDING = 4e-6

PLAIN = [
    # text of an entry, and its plain form
    (
        "p = f32[2,3]{0,1} parameter(0) ROOT b = s32[3,2]{1,0} bitcast(p)",
        "%p = f32[2,3] parameter(0); %b.physical = f32[3,2] transpose(%p), dimensions={1,0}; "
        "ROOT %b = s32[3,2] bitcast-convert(%b.physical)",
    ),
    (
        "p = u32[2]{0} parameter(0) ROOT b = u8[4,2]{0,1} bitcast(p)",
        "%p = u32[2] parameter(0); %b.bits = u8[2,4] bitcast-convert(%p); "
        "ROOT %b = u8[4,2] transpose(%b.bits), dimensions={1,0}",
    ),
    (
        "p = u8[2,4]{1,0} parameter(0) ROOT b = u32[2]{0} bitcast(p)",
        "%p = u8[2,4] parameter(0); ROOT %b = u32[2] bitcast-convert(%p)",
    ),
    (
        "p = f32[2] parameter(0) s = (f32[2], f32[2], u32[]) copy-start(p), "
        "cross_program_prefetch_index=0 "
        'ROOT d = f32[2]{0} copy-done(s), metadata={op_name="x"}',
        "%p = f32[2] parameter(0); ROOT %d = f32[2] copy(%p)",
    ),
]


@pytest.mark.parametrize(("entry", "expected"), PLAIN)
def test_plain_text_has_neither_layouts_nor_bitcasts(entry: str, expected: str) -> None:
    lines = xla.plain_text(hlo.parse(f"ENTRY e {{ {entry} }}")).splitlines()
    assert "; ".join(lines[2:-1]) == expected


def same(actual: Any, expected: Any, rounding: float) -> None:
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    if actual.dtype.kind in "iub" or actual.dtype.name.startswith(("int", "uint")):
        np.testing.assert_array_equal(actual, expected)
        return
    wide = np.complex128 if actual.dtype.kind == "c" else np.float64
    ours, theirs = actual.astype(wide), expected.astype(wide)
    finite = np.abs(np.where(np.isfinite(theirs), theirs, 0)).max(initial=0)
    np.testing.assert_allclose(ours, theirs, rtol=rounding, atol=rounding * finite)


MODULES = sorted(path.stem for path in DATA.glob("*.hlo") if "dynamic" not in path.stem)


@pytest.mark.parametrize("name", MODULES)
def test_a_stored_module_agrees_with_xla(name: str) -> None:
    pytest.importorskip("jaxlib", reason="XLA is an extra: pip install hlo-indexing[xla]")
    module = hlo.load(str(DATA / f"{name}.hlo"))
    inputs = random_inputs(module.entry, seed=9)
    if name == "cholesky_triangular_solve":
        inputs[0] = (inputs[0] @ inputs[0].T + 4 * np.eye(len(inputs[0]))).astype(np.float32)
    for actual, expected in zip(run(module, inputs), xla.run(module, inputs), strict=True):
        same(actual, expected, ROUNDING)


@pytest.mark.parametrize(("op", "operands", "expected"), TABLE, ids=[row[0] for row in TABLE])
def test_arithmetic_agrees_with_xla(op: str, operands: Any, expected: list[Any]) -> None:
    pytest.importorskip("jaxlib", reason="XLA is an extra: pip install hlo-indexing[xla]")
    module, inputs = line_of(op, operands, expected), arrays_of(operands)
    for actual, theirs in zip(run(module, inputs), xla.run(module, inputs), strict=True):
        same(actual, theirs, 0)


OLD = "reshape(v), dimensions="  # XLA no longer parses this form


@pytest.mark.parametrize(
    ("section", "line"),
    [(section, line) for section, line, _ in EXAMPLES if OLD not in line],
    ids=[row[0] for row in EXAMPLES if OLD not in row[1]],
)
def test_worked_examples_agree_with_xla(section: str, line: str) -> None:
    pytest.importorskip("jaxlib", reason="XLA is an extra: pip install hlo-indexing[xla]")
    module = hlo.parse(f"{COMPUTATIONS} ENTRY e {{ {line} }}")
    for actual, theirs in zip(run(module, []), xla.run(module, []), strict=True):
        same(actual, theirs, 0)


def test_collectives_agree_with_xla() -> None:
    pytest.importorskip("jaxlib", reason="XLA is an extra: pip install hlo-indexing[xla]")
    module = hlo.parse("""HloModule m, num_partitions=4
    add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
    ENTRY e { p = f32[4,3] parameter(0)
      a = f32[4,3] all-reduce(p), channel_id=1, use_global_device_ids=true,
        replica_groups={{0,2},{1,3}}, to_apply=add
      b = f32[8,3] all-gather(a), channel_id=2, use_global_device_ids=true,
        replica_groups=[2,2]<=[4], dimensions={0}
      c = f32[2,3] reduce-scatter(a), channel_id=3, use_global_device_ids=true,
        replica_groups={{3,0},{1,2}}, dimensions={0}, to_apply=add
      d = f32[4,3] all-to-all(a), channel_id=4, replica_groups={{0,1,2,3}}, dimensions={0}
      f = f32[4,3] collective-permute(a), channel_id=5, source_target_pairs={{0,1},{1,3},{3,0}}
      i = u32[] partition-id()
      ROOT t = (f32[8,3], f32[2,3], f32[4,3], f32[4,3], u32[]) tuple(b, c, d, f, i) }""")
    inputs = [random_inputs(module.entry, seed) for seed in range(4)]
    ours, theirs = run(module, inputs, replicas=4), xla.run(module, inputs)
    for actual, expected in zip(ours, theirs, strict=True):
        for array, other in zip(actual, expected, strict=True):
            same(array, other, ROUNDING)


def _fail_to_start() -> None:
    with xla._messages_of_failures():
        os.write(2, b"a library is missing\n")
        raise OSError("no client")


def test_messages_of_native_code_are_shown_only_with_a_failure(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with xla._messages_of_failures():
        os.write(2, b"no accelerator\n")
    assert capfd.readouterr().err == ""
    os.write(2, b"later\n")
    with pytest.raises(OSError, match="no client"):
        _fail_to_start()
    assert capfd.readouterr().err == "later\na library is missing\n"


@pytest.mark.skipif(not xla.is_available(), reason="needs jaxlib (extra xla)")
def test_a_comparison_with_xla_leaves_standard_error_to_the_command() -> None:
    text = "ENTRY e { p = f32[2,3] parameter(0) ROOT t = f32[3,2] transpose(p), dimensions={1,0} }"
    command = [sys.executable, "-m", "indexing.cli", "validate", "-"]
    done = subprocess.run(command, input=text, capture_output=True, encoding="utf-8", check=True)
    assert "kernels = xla, maps = xla" in done.stdout
    assert done.stderr == ""

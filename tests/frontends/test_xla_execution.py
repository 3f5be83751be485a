"""XLA:CPU in a process of its own."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import hlo
from indexing.codegen.whole_modules import against_xla
from indexing.execution import xla
from indexing.frontends.xla_execution import run_elsewhere

pytestmark = pytest.mark.skipif(not xla.is_available(), reason="jax is not installed")

SQUARE = """ENTRY e { p = bf16[4] parameter(0)  m = bf16[4] multiply(p, p)
  ROOT t = (bf16[4], bf16[4]) tuple(m, p) }"""


def test_results_are_those_of_xla_in_this_process() -> None:
    module = hlo.parse(SQUARE)
    inputs = [np.arange(4).astype(ml_dtypes.bfloat16)]
    ours, theirs = run_elsewhere(module, inputs), xla.run(module, inputs)
    assert [each.tobytes() for each in ours] == [each.tobytes() for each in theirs]
    assert [each.dtype for each in ours] == [each.dtype for each in theirs]


def test_what_xla_rejects_is_a_reason() -> None:
    text = """ENTRY e { p = f32[4] parameter(0)
      ROOT c = f32[4] custom-call(p), custom_call_target="nobody_knows" }"""
    with pytest.raises(RuntimeError, match="nobody_knows"):
        run_elsewhere(hlo.parse(text), [np.ones(4, np.float32)])


def test_the_end_of_the_process_is_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "aborting.py").write_text(
        "import os, sys\nprint('F0 hlo.cc:7] Check failed: a == b', file=sys.stderr, flush=True)\n"
        "os.abort()\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    execute = partial(run_elsewhere, worker="aborting")
    report = against_xla(hlo.parse(SQUARE), 0, 100, execute)
    (finding,) = report.findings
    assert finding.status == "skipped"
    assert finding.details == ("XLA ended the process that executes: Check failed: a == b",)

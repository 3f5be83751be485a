"""An op of a user's package: every command answers about it as about the ops of this project."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from indexing.cli.group import COMMANDS
from tests.test_layers import ROOT

PACKAGE = '''
import numpy as np
from hlo.ops.op import op
from indexing.ops.element import Work
from indexing.ops.elementwise import FLOATS, UnaryElementwise
from indexing.ops.functions import ScalarFunction

def softsign(x):
    return np.asarray(x / (x.dtype.type(1) + np.abs(x)))

@op("acme-softsign", samples=["f32[2,3] acme-softsign(f32[2,3] p)"])
class Softsign(UnaryElementwise):
    """``out[i] = x[i] / (1 + |x[i]|)``."""
    takes = FLOATS
    is_splittable = True
    work_of_element = Work(flops=3)
    function = ScalarFunction.of(softsign, "acme_softsign")
    def kernel(self, operand):
        return softsign(operand)
'''
FUSED = """HloModule own

f {
  x = f32[8,6] parameter(0)
  s = f32[8,6] acme-softsign(x), metadata={source_file="own.py" source_line=3}
  ROOT t = f32[6,8] transpose(s), dimensions={1,0}
}

ENTRY e {
  p = f32[8,6] parameter(0)
  a = f32[8,6] acme-softsign(p)
  ROOT r = f32[6,8] fusion(a), kind=kLoop, calls=f
}
"""
UNFUSED = """HloModule own

ENTRY e {
  p = f32[8,6] parameter(0)
  t = f32[6,8] transpose(p), dimensions={1,0}
  a = f32[6,8] acme-softsign(t)
  ROOT r = f32[6,8] acme-softsign(a)
}
"""
HALVES = "(d0) -> (d0 * 2), domain: d0 in [0, 3]", "(d0) -> (d0 floordiv 2), domain: d0 in [0, 7]"
INPUT = np.arange(-24, 24, dtype=np.float32).reshape(8, 6)

# The arguments of each command, and a part of its answer.
CASES: dict[str, tuple[tuple[str, ...], str]] = {
    "maps": (("m.hlo",), "a f32[8,6]: (d0, d1) -> (d1, d0)"),
    "summary": (("m.hlo",), "unknown accesses: none"),
    "bytes": (("m.hlo",), "288 flops"),  # 2 instructions of 48 elements of 3 operations
    "memory": (("m.hlo",), "576 bytes at step"),  # 3 arrays of 48 elements
    "ls": (("m.hlo",), "acme-softsign"),
    "source": (("own.py:3", "m.hlo"), "1 of 2  fusion e/r"),
    "simplify": ((HALVES[1],), HALVES[1]),
    "compose": (HALVES, "(d0) -> (d0), domain: d0 in [0, 3]"),
    "check": (("m.hlo",), "ok, 6 instructions"),
    "tile": (("m.hlo", "-i", "r", "--sizes", "2,4"), "sizes [4, 2], strides [1, 1]"),
    "access": (("m.hlo", "-i", "s"), "coalesced"),
    "shard": (("m.hlo", "--mesh", "x=2", "--spec", "p=x,_"), "0 bytes sent"),
    "run": (("m.hlo", "--inputs", "in.npz", "-o", "out.npz"), "1 array in out.npz"),
    "validate": (("m.hlo", "--no-xla", "--strict"), "4 ok, 0 skipped, 0 wrong"),
    "diff": (("m.hlo", "n.hlo"), "proved at level values"),
    "kernels": (
        (str(ROOT / "tests/kernels/data/cpu_loop_gelu"),),
        "proved",
    ),  # of a module without the op
    "passes": (("dump",), "p     1        1"),
    "triage": (("dump",), "no difference"),
    "report": (("m.hlo", "-o", "report.html"), ""),
    "ops": (("acme-softsign",), "exact: identity"),
    "explain": (("op-constraint",), "op-constraint"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, the modules, and a dump of two passes."""
    path = tmp_path_factory.mktemp("acme")
    (path / "dump").mkdir()
    (path / "acme.py").write_text(PACKAGE)
    for name, text in (("m", FUSED), ("n", UNFUSED)):
        (path / f"{name}.hlo").write_text(text)
    np.savez(path / "in.npz", in0=INPUT)
    for number, text, place in (
        (0, FUSED, "pipeline-start.before_p"),
        (1, UNFUSED, "p.before_pipeline-end"),
    ):
        file = f"module_0001.own.{number:04}.passes.after_{place}.txt"
        (path / "dump" / file).write_text(text)
    return path


def test_every_command_has_a_case() -> None:
    assert CASES.keys() == COMMANDS.keys() - {"dump", "pallas"}  # which read no module


@pytest.mark.parametrize("command", CASES)
def test_commands_answer_about_an_op_of_another_package(folder: Path, command: str) -> None:
    arguments, expected = CASES[command]
    program = "import acme; from indexing.cli import main; main()"
    run = subprocess.run(
        [sys.executable, "-c", program, command, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert expected in run.stdout
    if command == "run":
        half = INPUT / (1 + abs(INPUT))
        np.testing.assert_allclose(np.load(folder / "out.npz")["out0"], (half / (1 + abs(half))).T)
    for word in ("not registered", "unsupported", "no per-element rule", "internal"):
        assert word not in run.stdout + run.stderr

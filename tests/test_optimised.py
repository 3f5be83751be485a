"""``PYTHONOPTIMIZE=2``, without asserts and docstrings, changes no result of the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
ATTENTION = "examples/attention.opt.hlo"
WINDOW = "examples/reduce_window.pre.hlo"
BROKEN = "ENTRY e { p = f32[2,3] parameter(0)  ROOT t = f32[4] transpose(p), dimensions={0,0} }"
MAP = "(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 31], d0 + 3 in [5, 20]"

COMMANDS = [
    ["check", ATTENTION, WINDOW, "BROKEN"],
    ["maps", ATTENTION, "--opcode", "fusion", "--direction", "both", "--verify"],
    ["maps", WINDOW, "--all", "--to", "parameters", "--format", "json", "--exact"],
    ["maps", WINDOW, "BROKEN", "--all", "--explain"],
    ["run", WINDOW, "--seed", "3"],
    ["run", WINDOW, "--loops"],
    ["run", "BROKEN"],
    ["validate", WINDOW, "--no-xla"],
    ["simplify", MAP, "(d0) -> (d1)", "--explain"],
    ["simplify", MAP, "--verify"],
    ["compose", "(d0) -> (d0 * 2), domain: d0 in [0, 3]", "(d0) -> (d0), domain: d0 in [0, 6]"],
    ["ops"],
    ["no-such-command"],
    ["--help"],
]
SCRIPT = """\
import contextlib, io, json, sys
from indexing import cli
answers = []
for arguments in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.run(arguments)
    answers.append([status, out.getvalue(), err.getvalue()])
json.dump([sys.flags.optimize, answers], sys.stdout)
"""


def answers(commands: list[list[str]], optimise: str) -> list[Any]:
    """Status, output and errors of each command under a level of optimisation."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps(commands),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONOPTIMIZE": optimise},
        capture_output=True,
        text=True,
        check=True,
    )
    level, results = json.loads(done.stdout)
    assert level == int(optimise)
    return list(results)


@pytest.mark.slow
def test_results_do_not_depend_on_asserts_and_docstrings(tmp_path: Path) -> None:
    broken = tmp_path / "broken.hlo"
    broken.write_text(BROKEN)
    commands = [[word.replace("BROKEN", str(broken)) for word in words] for words in COMMANDS]
    plain, optimised = answers(commands, "0"), answers(commands, "2")
    for words, before, after in zip(commands, plain, optimised, strict=True):
        assert after == before, words
    assert [status for status, *_ in plain] == [1, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0, 0, 2, 0]


def test_help_names_the_command_without_docstrings() -> None:
    (maps, transpose) = answers([["maps", "--help"], ["ops", "transpose"]], "2")
    assert maps[0] == transpose[0] == 0
    assert "Print indexing maps of HLO modules" in maps[1]
    assert "Transpose(" not in transpose[1]
    assert "dimensions must be a permutation" in transpose[1]

"""No control character of the input reaches a terminal, in any result or message."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hlo
from indexing import cli
from indexing.cli import progress
from indexing.cli.colours import COLOURS
from indexing.cli.reporter import Reporter
from indexing.dataflow import answering
from tests.compiled import interpreted_only

ROOT = Path(__file__).parents[2]

# Clears the screen, colours, rings, overwrites the line, forges one, and reverses the text.
HOSTILE = (
    "\x1b[2J\x1b[31m\x07\r\x08\x00\x7f\x9b31m\x85\u2028\u202e\u2066\u200f[red]x\nerror: forged"
)
NAME = HOSTILE.replace("\x00", "")  # of a file, or an argument
TEXT = NAME.replace('"', "")
STRINGS = f"""\
HloModule m, frontend_attributes={{key="{TEXT}"}}
ENTRY e {{
  p = f32[3] parameter(0), metadata={{op_name="{TEXT}" source_file="{TEXT}" source_line=1}}
  q = f32[3] custom-call(p), custom_call_target="{TEXT}", backend_config="{TEXT}"
  i = s32[] custom-call(), custom_call_target="{TEXT}"
  d = f32[2] dynamic-slice(q, i), dynamic_slice_sizes={{2}}, sharding={{replicated}}
  ROOT r = (f32[2], f32[3]) tuple(d, q)
}}
"""
STRANGE = f"""\
ENTRY e {{
  p = f32[3] parameter(0)
  q = f32[3] no-such-opcode(p), new="{TEXT}"
  ROOT n = f32[3] negate(q), new="{TEXT}"
}}
"""
RUNS = "ENTRY e { p = f32[3] parameter(0)  ROOT n = f32[3] negate(p) }"
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
FILE = f"{NAME}.hlo"
FILES = {
    FILE: STRINGS.encode(),
    f"run {FILE}": RUNS.encode(),
    f"strange {FILE}": STRANGE.encode(),
    f"broken {FILE}": b"ENTRY e { p = f32[2] parameter(0)  ROOT " + HOSTILE.encode(),
    f"binary {FILE}": b"\xff\x9b31m",
    f"corrupt {FILE}.gz": b"\x1f\x8b" + HOSTILE.encode(),
    f"corrupt {FILE}.pb": HOSTILE.encode(),
    f"corrupt {NAME}.npz": HOSTILE.encode(),
}

COMMANDS = [
    ["check", *FILES, f"missing {FILE}"],
    ["check", *FILES, "--format", "json"],
    ["check", ".", "--totals"],
    ["check", ".", "--resume", f"{NAME}.journal"],
    ["check", ".", "--resume", FILE],
    ["check", ".", "--include", NAME],
    ["ls", *FILES],
    ["report", FILE],
    ["report", FILE, f"strange {FILE}"],
    ["report", f"broken {FILE}"],
    ["ls", FILE, "--format", "json"],
    ["maps", FILE, f"strange {FILE}", "--all", "--direction", "both"],
    ["maps", FILE, "--all", "--to", "parameters", "--explain"],
    ["maps", FILE, "--all", "--to", "parameters", "--verify"],
    *[["maps", FILE, "--all", "--format", name] for name in ("json", "isl", "mlir", "latex")],
    ["maps", *FILES, "--all", "--jobs", "2"],
    ["maps", FILE, "--instruction", NAME, "--opcode", NAME],
    ["maps", FILE, "--instruction", "r", "--operand", "7"],
    ["maps", FILE, "--format", NAME],
    ["maps", FILE, "--operand", NAME],
    ["maps", FILE, "--reads", NAME, "--op-name", NAME],
    ["maps", FILE, "--at", NAME],
    ["maps", FILE, "-i", f"/{NAME}/"],
    ["maps", f"--{NAME}", FILE],
    ["maps", f"-{NAME}", FILE],
    ["maps"],
    ["run", FILE],
    ["run", FILE, "--loops"],
    ["run", f"run {FILE}", "--inputs", "names.npz"],
    ["run", f"run {FILE}", "--inputs", f"corrupt {NAME}.npz"],
    ["run", f"run {FILE}", "--inputs", f"missing {NAME}.npz"],
    ["run", f"run {FILE}", "--output", f"missing {NAME}/out.npz"],
    ["run", f"run {FILE}", "--output", f"{NAME}.npz"],
    ["run", f"run {FILE}", "--tile", NAME],
    ["run", f"run {FILE}", f"surplus {NAME}"],
    ["validate", FILE, f"run {FILE}"],
    ["validate", FILE, "--instruction", NAME],
    ["validate", FILE, f"run {FILE}", "--format", "json"],
    ["run", f"run {FILE}", "--format", "json"],
    ["access", FILE],
    ["access", FILE, "-i", NAME],
    ["access", FILE, "--device", NAME, "--threads", NAME],
    ["access", FILE, "--format", "json"],
    ["access", FILE, "-i", "d", "--format", "svg"],
    ["maps", FILE, "--all", "--at", "...", "--format", "svg"],
    ["bytes", FILE, "--format", "svg"],
    ["memory", FILE],
    ["memory", FILE, "--assignment", NAME],
    ["shard", FILE, "--rule"],
    ["shard", FILE, "--mesh", "x=2"],
    ["shard", FILE, "--rule", "-i", NAME],
    ["shard", FILE, "--sbp"],
    ["shard", FILE, "--mesh", NAME],
    ["shard", FILE, "--mesh", "x=2", "--spec", NAME],
    ["shard", FILE, "--mesh", "x=2", "--spec", f"{NAME}=_"],
    ["shard", FILE, "--mesh", "x=2", "--spec", f"p0={NAME}"],
    ["shard", FILE, "--mesh", "x=2", "--out-spec", NAME],
    ["ops", NAME],
    ["explain", NAME],
    ["simplify", NAME],
    ["simplify", f"(d0) -> (d0 + {NAME}), domain: d0 in [0, 3]"],
    ["simplify", f"(d0) -> (d0), domain: d0 in [0, 3] {NAME}", "--explain", "--verify"],
    ["compose", NAME, NAME],
    [NAME],
    [f"--{NAME}"],
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        Path(name).write_bytes(content)
    arrays: dict[str, Any] = {NAME: np.ones(3)}
    np.savez("names.npz", **arrays)


def run_command(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """The output and the errors of the command."""
    cli.run(arguments)
    captured = capsys.readouterr()
    assert "error[internal]" not in captured.err
    return captured.out, captured.err


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda words: ascii(" ".join(words))[:60])
def test_no_command_writes_a_control_character(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    text = "".join(run_command(*arguments, capsys=capsys))
    assert text
    assert not CONTROL.search(text)
    assert "\nerror: forged" not in text


@pytest.mark.parametrize(
    "arguments", [["maps", f"strange {FILE}", "--all"], ["validate", FILE, f"run {FILE}"]]
)
def test_a_terminal_gets_the_colours_of_the_command_only(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = run_command(*arguments, capsys=capsys)[0]
    width = 400 if arguments[0] == "validate" else None  # the table of a terminal
    monkeypatch.setattr(Reporter, "__init__", outcome_style(Reporter.__init__, width))
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("FORCE_COLOR", "1")
    text = run_command(*arguments, capsys=capsys)[0]
    assert COLOURS["unknown"] in text or "\x1b[33m" in text
    assert text.count(COLOURS["unknown"]) == plain.count("unknown: ")
    for colour in [*COLOURS.values(), "\x1b[32m", "\x1b[33m", "\x1b[3m"]:  # those of the table, too
        text = text.replace(colour, "")
    assert not CONTROL.search(text)
    assert "[red]x" in text


def outcome_style(init: object, width: int | None) -> object:
    def initialise(reporter: Reporter) -> None:
        init(reporter)  # type: ignore[operator]  # `Reporter.__init__`
        reporter.colours, reporter.width = "always", width

    return initialise


def test_the_bar_shows_no_control_character(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[str] = []
    bar = progress.Bar()
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(progress, "_start_bar", lambda text, *_: shown.append(text))
    waits = iter([False, True])
    monkeypatch.setattr(bar._done, "wait", lambda _: next(waits))
    bar.update(NAME, 3, 7)
    bar._watch()
    assert len(shown) == 1
    assert not CONTROL.search(shown[0])


@interpreted_only
def test_an_internal_error_and_its_traceback_are_escaped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise KeyError(NAME) from ValueError(NAME)

    monkeypatch.setattr(answering, "to_operands", fails)
    for debug in ([], ["--debug"]):
        assert cli.run([*debug, "maps", FILE]) == 1
        assert not CONTROL.search(capsys.readouterr().err)


def test_errors_of_the_library_are_printable_wherever_the_text_is_hostile() -> None:
    """HOSTILE is inserted at each place of a module."""
    text = STRINGS.replace(TEXT, "t")
    errors = 0
    for place in range(len(text)):
        try:
            module = hlo.parse(text[:place] + HOSTILE + text[place:], NAME)
            faults = hlo.verify(module)
        except hlo.HloError as error:
            faults = [error]
        errors += len(faults)
        for fault in faults:
            assert not CONTROL.search(str(fault))
            assert not re.search("^error: forged", str(fault), re.MULTILINE)
    assert errors > len(text) // 2


def test_bytes_of_an_argument_that_are_not_utf8_are_escaped() -> None:
    command: list[str | bytes] = [sys.executable, "-m", "indexing.cli", "check", b"\x9b31m.hlo"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    done = subprocess.run(command, env=environment, capture_output=True)
    assert done.stderr == b"error[io]: \\udc9b31m.hlo: No such file or directory\n"

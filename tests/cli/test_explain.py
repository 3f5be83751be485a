"""`hlo-indexing explain`: the pages of the error codes."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from indexing import cli
from indexing.cli.error_pages import codes

FAULTY = "ENTRY e { p = f32[2] parameter(0)  ROOT r = f32[3] reshape(p) }"


def explain(capsys: pytest.CaptureFixture[str], *names: str) -> str:
    assert cli.run(["explain", *names]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("code", codes())
def test_every_page_is_printed(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = explain(capsys, f"error[{code}]")
    page = codes()[code].read_text()
    assert text.startswith(f"error[{code}]\n\n")
    assert "](" not in text
    assert "```" not in text
    blocks = page.split("```")[1::2]
    lines = [line for block in blocks for line in block.splitlines()[1:] if line]
    assert [line[4:] for line in text.splitlines() if line.startswith("    ")] == lines
    assert "\nRepair\n" in text


def test_without_a_code_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    lines = explain(capsys).splitlines()
    assert [line.split()[0] for line in lines] == list(codes())
    assert all(line.endswith(".") for line in lines)


def test_a_misspelt_code_has_a_similar_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["explain", "op-constrain"]) == 1
    assert capsys.readouterr().err == (
        "error[name]: unknown error code `op-constrain`\n  = help: did you mean `op-constraint`?\n"
    )


def test_errors_on_a_terminal_name_the_command_once(tmp_path: Path) -> None:
    file = tmp_path / "faulty.hlo"
    file.write_text(FAULTY)
    command = [sys.executable, "-m", "indexing.cli", "check", str(file), str(tmp_path / "no.hlo")]
    shown = on_terminal([*command])
    assert shown.count("explain") == 1
    assert shown.rstrip().endswith(
        "for examples and repairs: hlo-indexing explain op-constraint io"
    )
    assert "explain" not in on_terminal([*command, "--quiet"])
    piped = subprocess.run(command, capture_output=True, text=True)
    assert "error[io]" in piped.stderr
    assert "explain" not in piped.stderr


def on_terminal(command: list[str]) -> str:
    """Return what a command writes on standard error, a terminal."""
    ours, its = pty.openpty()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=its)
    os.close(its)
    parts = []
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(ours)
    return b"".join(parts).decode()

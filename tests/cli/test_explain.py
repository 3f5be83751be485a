"""`hlo-indexing explain`: the pages of the error codes, and the terms of the glossary."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from indexing import cli
from indexing.cli.error_pages import codes
from indexing.cli.glossary_terms import terms

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
    *lines, gap, words = explain(capsys).splitlines()
    assert gap == ""
    assert words.removeprefix("terms: ").split(", ") == list(terms())
    assert [line.split()[0] for line in lines] == list(codes())
    assert all(line.endswith(".") for line in lines)


@pytest.mark.parametrize("word", ["may", "access-edge", "access edge", "moved", "Exact"])
def test_a_term_of_the_glossary_is_explained(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = explain(capsys, word)
    assert text.startswith(f"{word.replace('-', ' ').lower()}: ")
    assert "](" not in text
    assert "<a" not in text


def test_every_term_of_the_glossary_is_found() -> None:
    page = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text()
    assert len(terms()) == page.count("<a id=")
    assert min(len(text) for text in terms().values()) > 20


def test_a_word_that_is_a_code_and_a_term_has_both(capsys: pytest.CaptureFixture[str]) -> None:
    text = explain(capsys, "budget")
    assert text.startswith("error[budget]\n")
    assert text.splitlines()[-1].startswith("budget: a limit on ")


def test_a_misspelt_code_has_a_similar_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["explain", "op-constrain"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "error[name]: unknown error code or term `op-constrain`",
        "  = help: did you mean `op-constraint`?",
    ]


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

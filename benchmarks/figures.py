"""Measured figures in pages of Markdown, with the commands that print them.

A page holds figures between two comments. The first names the command:

    <!-- measured: python -m benchmarks.counts -->
    ...
    <!-- end of measured -->

Before ``python``, `compiled` asks for the wheel with compiled modules, in `COMPILED`. `{NAME}` is
what the command of `INPUTS` with this name writes.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
COMPILED: Final = ROOT / "build" / "compiled"  # written by `make compiled`

INPUTS: Final = {"gpt2": "benchmarks.gpt2", "dumps": "benchmarks.pass_dumps"}

END: Final = "<!-- end of measured -->"
BLOCK: Final = re.compile(
    rf"(?P<head><!-- measured: (?P<command>[^\n]+) -->\n)(?P<body>.*?)(?P<end>{END})", re.DOTALL
)


class MeasurementError(Exception):
    """A command that ended with an error; the argument says how."""


@dataclass(frozen=True, slots=True)
class Block:
    """The figures of one command in a page.

    >>> Block(Path("docs/speed.md"), "compiled python -m benchmarks.simplify", "").module
    'benchmarks.simplify'
    """

    page: Path
    command: str
    body: str

    @property
    def module(self) -> str:
        """The Python module that measures."""
        words = shlex.split(self.command)
        return words[words.index("-m") + 1]


def pages() -> list[Path]:
    """Return the pages that may have figures."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> Iterator[Block]:
    """Yield the figures of a page, in order."""
    for match in BLOCK.finditer(page.read_text(encoding="utf-8")):
        yield Block(page, match["command"], match["body"])


def measure(command: str, files: Mapping[str, str]) -> str:
    """Run a command, and return its output as Markdown.

    Raises:
        MeasurementError: the command fails, or the compiled wheel is missing.
    """
    words = shlex.split(command.format_map(files))
    folder = ROOT
    if words[0] == "compiled":
        words, folder = words[1:], COMPILED
        if not folder.is_dir():
            raise MeasurementError("the compiled wheel is missing: run `make compiled`")
    conditions = _output(["-m", "benchmarks.environment"], folder)
    return as_markdown(_output(words[1:], folder), conditions.strip())


def _output(arguments: list[str], folder: Path) -> str:
    """Return what Python prints in a folder."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise MeasurementError(f"exit status {done.returncode}: {last}")
    return done.stdout


def as_markdown(output: str, conditions: str) -> str:
    """Return what a command printed, after the conditions of the measurement.

    Tables of Markdown stay as they are; other text becomes a block of code.

    >>> as_markdown("maps: 12", "2026-11-23: Python 3.11")
    '```text\\n2026-11-23: Python 3.11\\nmaps: 12\\n```\\n'
    """
    text = output.strip("\n") + "\n"
    if "\n|---" in text:
        return f"\n{text}\n{conditions}\n"
    return f"```text\n{conditions}\n{text}```\n"


def rewritten(page: str, outputs: Mapping[str, str]) -> str:
    """Return the text of a page with the outputs of commands; other figures stay as they are."""

    def new(match: re.Match[str]) -> str:
        return match["head"] + outputs.get(match["command"], match["body"]) + match["end"]

    return BLOCK.sub(new, page)

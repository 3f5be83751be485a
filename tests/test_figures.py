"""Figures in README.md and docs/: commands that exist, outputs that are dated and complete."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.figures import (
    INPUTS,
    ROOT,
    Block,
    MeasurementError,
    blocks,
    measure,
    pages,
    rewritten,
)

BLOCKS = [block for page in pages() for block in blocks(page)]
DATE = re.compile(r"20\d\d-\d\d-\d\d: Python 3\.\d+")
PAGE = "\n".join(
    [
        "# Page",
        *("<!-- measured: python -m a -->", "1", "<!-- end of measured -->"),
        "Text.",
        *("<!-- measured: compiled python -m b -->", "2", "<!-- end of measured -->"),
    ]
)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block.page.name}: {block.command}")
def test_figures_name_their_command_and_conditions(block: Block) -> None:
    assert find_spec(block.module)
    block.command.format_map(dict.fromkeys(INPUTS, "file"))  # no other input
    assert DATE.search(block.body)
    assert len(block.body.splitlines()) > 3


def test_every_begin_has_its_end() -> None:
    text = "".join(page.read_text() for page in pages())
    assert text.count("<!-- measured: ") == len(BLOCKS) == text.count("<!-- end of measured -->")


def test_only_the_figures_of_the_commands_that_ran_change() -> None:
    assert rewritten(PAGE, {"compiled python -m b": "3\n"}) == PAGE.replace("\n2\n", "\n3\n")
    assert rewritten(PAGE, {}) == PAGE


def test_measured_output_follows_its_conditions() -> None:
    lines = measure("python -m platform --terse", {}).splitlines()
    assert [lines[0], lines[-1]] == ["```text", "```"]
    assert DATE.match(lines[1])
    assert len(lines) == 4


def test_a_command_that_fails_says_why() -> None:
    with pytest.raises(MeasurementError, match=r"exit status 1: .*no_such_module"):
        measure("python -m benchmarks.no_such_module", {})


def test_list_prints_the_commands_of_the_pages(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "--list", "simplify"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == list(
        dict.fromkeys(block.command for block in BLOCKS if "simplify" in block.command)
    )

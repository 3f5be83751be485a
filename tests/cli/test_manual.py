"""The manual pages are those of the commands, and contain no mistakes of roff."""

import shutil
import subprocess
import tomllib
import zipfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from indexing.cli.group import COMMANDS, cli
from indexing.cli.manual import pages

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "man"
PAGES = sorted(FOLDER.glob("*"))

# Pages have no date, so that they are reproducible; mandoc prefers short lines.
TOLERATED = ("STYLE: input text line longer than 80 bytes", 'WARNING: missing date, using ""')


def test_the_pages_are_up_to_date() -> None:
    """`make docs` writes them."""
    stored = {path.name: path.read_text(encoding="utf-8") for path in PAGES}
    assert stored.keys() == pages().keys()
    assert [name for name, text in pages().items() if stored[name] != text] == []


def test_every_option_has_a_paragraph() -> None:
    context = click.Context(cli, info_name="hlo-indexing")
    for name, page in pages().items():
        command = name.removeprefix("hlo-indexing").strip("-").removesuffix(".1").strip(".")
        if command not in COMMANDS:
            continue
        for option in cli.get_command(context, command).params:  # type: ignore[union-attr]
            if isinstance(option, click.Option) and not option.hidden:
                assert f"\\fB{option.opts[-1].replace('-', chr(92) + '-')}\\fR" in page, option
        assert ".SH EXAMPLES\n" in page


def run(*command: str) -> tuple[str, str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_groff_and_mandoc_accept_the_page(page: Path) -> None:
    tools = [tool for tool in ("groff", "mandoc") if shutil.which(tool)]
    if not tools:
        pytest.skip("needs groff or mandoc")
    if "groff" in tools:
        assert run("groff", "-man", "-ww", "-z", str(page)) == ("", "")
    if "mandoc" in tools:
        out, err = run("mandoc", "-T", "lint", str(page))
        assert err == ""
        assert [line for line in out.splitlines() if not any(t in line for t in TOLERATED)] == []


@pytest.mark.parametrize("tool", [["groff", "-man", "-Tascii"], ["mandoc", "-Tascii"]])
def test_examples_are_printed_as_they_are_typed(tool: list[str]) -> None:
    if shutil.which(tool[0]) is None:
        pytest.skip(f"needs {tool[0]}")
    out, _ = run(*tool, str(FOLDER / "hlo-indexing-maps.1"))
    assert "hlo-indexing maps m.hlo -i '*fusion*' --sort bytes --limit 3\n" in out
    assert """hlo-indexing maps m.hlo --reads "p['q']" --kind reducing\n""" in out


def test_a_wheel_installs_the_pages(tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    shared = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert shared == {"docs/man": "share/man/man1"}
    if find_spec("hatchling") is None:
        pytest.skip("needs hatchling, to build a wheel")
    builder = import_module("hatchling.builders.wheel").WheelBuilder
    (wheel,) = builder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    names = zipfile.ZipFile(wheel).namelist()
    folder = f"hlo_indexing-{project['project']['version']}.data/data/share/man/man1/"
    assert {name for name in names if "/man1/" in name} == {folder + page.name for page in PAGES}

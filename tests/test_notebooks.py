"""Notebooks run, show in the repository what they print today, and are one course."""

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.notebooks import DIGEST, NOTEBOOKS, PNG, ROOT, execute, outputs

TITLE = re.compile(r"# (\d+)\. (.*\?)\n")
LINK = re.compile(r"\[[^\]]*\]\((?!https?:)([^)#\s]+)[^)]*\)")
ROW = re.compile(r"^\| (\d+) \| \[(.*\?)\]\((.*?)\) \|", re.MULTILINE)


def stored_outputs(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def prose(path: Path) -> str:
    return "\n".join(
        cell.source for cell in stored_outputs(path).cells if cell.cell_type == "markdown"
    )


every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)


@every_notebook
def test_a_notebook_shows_its_outputs(path: Path) -> None:
    """`make notebooks` writes the outputs."""
    if any("import jax" in source for source, _ in outputs(stored_outputs(path))):
        pytest.importorskip("jax", reason="needs jax, to trace functions")
    assert outputs(execute(path)) == outputs(stored_outputs(path))


@every_notebook
def test_a_notebook_has_pictures_that_every_viewer_shows(path: Path) -> None:
    pictures = [
        output
        for cell in stored_outputs(path).cells
        for output in cell.get("outputs", ())
        if "<drawing of " in output.get("data", {}).get("text/plain", "")
    ]
    assert len(pictures) >= 2
    for picture in pictures:
        assert set(picture.data) == {PNG, "text/plain"}
        assert DIGEST in picture.metadata


def test_the_course_lists_the_questions_of_all_notebooks() -> None:
    rows = ROW.findall((ROOT / "notebooks" / "README.md").read_text())
    titles = [TITLE.match(prose(path)) for path in NOTEBOOKS]
    names = [path.name for path in NOTEBOOKS]
    assert rows == [
        (*title.groups(), name) for title, name in zip(titles, names, strict=True) if title
    ]
    assert [number for number, _, _ in rows] == [str(k + 1) for k in range(len(NOTEBOOKS))]
    assert [path.name[:3] for path in NOTEBOOKS] == [f"{int(number):02}_" for number, _, _ in rows]


@every_notebook
def test_a_notebook_ends_with_its_answer_and_where_to_go_next(path: Path) -> None:
    headings = re.findall(r"^## (.*)$", prose(path), re.MULTILINE)
    assert headings[-3:] == ["The answer", "Exercises", "Next"]
    links = LINK.findall(prose(path))
    assert [link for link in links if not (path.parent / link).exists()] == []
    following = NOTEBOOKS[NOTEBOOKS.index(path) + 1 :][:1]
    last = LINK.findall(prose(path).rpartition("## Next")[2])
    assert {each.name for each in following} <= set(last)
    assert any(link.startswith("../docs/") for link in last)

"""Notebooks run, and show in the repository what they print today."""

from pathlib import Path

import nbformat
import pytest

from tests.notebooks import NOTEBOOKS, executed, outputs


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_shows_its_outputs(path: Path) -> None:
    """`make notebooks` writes the outputs."""
    assert outputs(executed(path)) == outputs(nbformat.read(path, as_version=4))

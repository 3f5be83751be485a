"""Execution of the notebooks; ``python -m tests.notebooks`` writes their outputs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import nbformat
from nbclient import NotebookClient

ROOT: Final = Path(__file__).parent.parent
NOTEBOOKS: Final = sorted((ROOT / "notebooks").glob("*.ipynb"))


def executed(path: Path) -> Any:
    """Return the notebook with the outputs of its cells.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell ends with an exception.
    """
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook,
        timeout=None,
        startup_timeout=3600,  # None is not accepted
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": path.parent}},
    ).execute(env={**os.environ, "PYTHONPATH": str(ROOT)})
    for name in set(notebook.metadata) - {"kernelspec"}:
        del notebook.metadata[name]  # the version of Python
    return notebook


def outputs(notebook: Any) -> list[tuple[str, list[Any]]]:
    """Return the source and the outputs of each code cell."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [(cell.source, [_shown(output) for output in cell.outputs]) for cell in cells]


def _shown(output: Any) -> Any:
    return output.text if output.output_type == "stream" else output.data


if __name__ == "__main__":
    for path in NOTEBOOKS:
        nbformat.write(executed(path), path)

"""Execution of the notebooks; ``python -m tests.notebooks`` writes their outputs.

Pictures are stored as PNG, which every viewer shows: GitHub and nbviewer strip the styles of SVG
(https://github.com/jupyter/nbconvert/issues/1894).  Chromium draws them.  Another version of it, or
of its fonts, draws other pixels, so the stored output also has the digest of the SVG: tests compare
digests, and a picture is drawn again only if its digest changes.
"""

from __future__ import annotations

import base64
import hashlib
import math
import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import nbformat
from nbclient import NotebookClient

from tests.screenshots import screenshot

ROOT: Final = Path(__file__).parent.parent
NOTEBOOKS: Final = sorted((ROOT / "notebooks").glob("*.ipynb"))
SVG: Final = "image/svg+xml"
PNG: Final = "image/png"
DIGEST: Final = "svg_sha256"
"""The key of an output's metadata that has the digest of the SVG."""

_COLOURS: Final = 64
_SCALE: Final = 2
"""Pixels of an image for each pixel of the picture, for screens with a high resolution."""
_TITLE: Final = re.compile(r"<drawing of (['\"])(.*)\1>")
_LONG_FLOAT: Final = re.compile(r"\d+\.\d{8,}")
_LOG: Final = re.compile(r"[IW]\d{4} |WARNING: All log messages")
_SIZE: Final = re.compile(r'<svg [^>]*width="([\d.]+)" height="([\d.]+)"')


def execute(path: Path) -> Any:
    """Return the notebook with the outputs of its cells; pictures are SVG.

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
        del notebook.metadata[name]  # the version of Python, and the states of sliders
    for cell in notebook.cells:
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if not _is_log(output)]
        for output in cell.get("outputs", ()):
            if svg := output.get("data", {}).get(SVG):
                title = _TITLE.sub(r"\2", output.data["text/plain"])
                output.data = {SVG: svg, "text/plain": output.data["text/plain"]}
                output.metadata = {DIGEST: hashlib.sha256(svg.encode()).hexdigest()}
                output.metadata[PNG] = {"alt": title, "width": _size(svg)[0]}
                cell.metadata = {"mystnb": {"image": {"alt": title}}}  # the site reads it here
    return notebook


def _is_log(output: Any) -> bool:
    """Return True for what plugins of JAX log when they are loaded: it depends on the machine."""
    text = output.text if output.output_type == "stream" and output.name == "stderr" else ""
    return bool(text) and all(_LOG.match(line) for line in text.splitlines())


def outputs(notebook: Any) -> list[tuple[str, list[Any]]]:
    """Return the source and the outputs of each code cell, with the digests of pictures."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [(cell.source, [_shown_output(output) for output in cell.outputs]) for cell in cells]


def with_images(notebook: Any, stored: Any) -> Any:
    """Return an executed notebook with PNG images, those of the stored one if they are the same."""
    images = {
        output.metadata[DIGEST]: output.data[PNG]
        for output in _outputs(stored)
        if DIGEST in output.get("metadata", {})
    }
    for output in _outputs(notebook):
        if svg := output.get("data", {}).pop(SVG, None):
            digest = output.metadata[DIGEST]
            output.data[PNG] = images.get(digest) or base64.b64encode(_png(svg)).decode()
    return notebook


def _outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]


def _shown_output(output: Any) -> Any:
    if output.output_type == "stream":
        return _round(output.text)
    data = {kind: _round(text) for kind, text in output.data.items() if kind not in (SVG, PNG)}
    return data, dict(output.metadata)


def _round(text: str) -> str:
    """Return a text with its floats rounded: the last digits of f32 depend on the processor."""
    return _LONG_FLOAT.sub(lambda match: f"{float(match[0]):.4g}", text)


def _size(svg: str) -> tuple[int, int]:
    """Return the width and the height of a picture in pixels, rounded up."""
    match = _SIZE.match(svg)
    assert match is not None, "not the text of a Drawing"
    return math.ceil(float(match[1])), math.ceil(float(match[2]))


def _png(svg: str) -> bytes:
    """Return a picture as an image with few colours."""
    with TemporaryDirectory() as name:
        file = Path(name) / "picture.svg"
        file.write_text(svg, encoding="utf-8")
        return screenshot(file, _size(svg), _SCALE, _COLOURS)


def main(paths: list[Path]) -> None:
    """Execute notebooks, all by default, and write them."""
    for path in paths or NOTEBOOKS:
        stored = nbformat.read(path, as_version=4)
        nbformat.write(with_images(execute(path), stored), path)


if __name__ == "__main__":
    main([Path(name).resolve() for name in sys.argv[1:]])

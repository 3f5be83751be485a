"""The pictures of the documentation: ``python -m tests.drawing.gallery`` writes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import hlo
import indexing
from tests.screenshots import screenshot

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "pictures"


def reads() -> indexing.Drawing:
    """Return what a tile of a pooling window reads."""
    pooling = hlo.load(ROOT / "examples" / "reduce_window.pre.hlo").entry["reduce_window_sum.7"]
    drawing = indexing.output_to_input(pooling).plot(0, slice(1, 5), slice(2, 7), operand=0)
    assert isinstance(drawing, indexing.Drawing)
    return drawing


def traffic() -> indexing.Drawing:
    """Return the bytes and the roofline of a small GPT-2."""
    module = hlo.load(ROOT / "examples" / "gpt2_tiny.opt.hlo")
    drawing = indexing.traffic(module).plot(device="A100", top=8)
    assert isinstance(drawing, indexing.Drawing)
    return drawing


PICTURES: dict[str, Callable[[], indexing.Drawing]] = {"reads.svg": reads, "bytes.svg": traffic}


REPORT = "report.png"
"""The picture of a page; Chromium draws it, so the tests do not compare it."""


def report_page() -> bytes:
    """Return what a browser shows of the report of a small GPT-2."""
    module = hlo.load(ROOT / "examples" / "gpt2_tiny.opt.hlo")
    module.source.filename = module.source.filename.rpartition("/")[2]
    with TemporaryDirectory() as name:
        file = Path(name) / "report.html"
        indexing.report(module).save(file)
        return screenshot(file, (1280, 680), 1, 64)


def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / REPORT).write_bytes(report_page())
    for name, drawn in PICTURES.items():
        drawn().save(FOLDER / name)


if __name__ == "__main__":
    main()

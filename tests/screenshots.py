"""Images of files that Chromium opens."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory


def screenshot(file: Path, size: tuple[int, int], scale: int, colours: int) -> bytes:
    """Return an SVG or HTML file as PNG.

    Args:
        size: the width and the height of the window, in CSS pixels.
        scale: the pixels of the image for each of them, in both directions.
        colours: the maximum number of colours.
    """
    from PIL import Image

    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("pictures changed, and no Chromium draws them: apt-get install chromium")
    with TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(
            [
                browser,
                "--headless",
                "--no-sandbox",
                "--hide-scrollbars",
                "--virtual-time-budget=5000",
                f"--force-device-scale-factor={scale}",
                f"--user-data-dir={folder / 'profile'}",
                f"--window-size={size[0]},{size[1]}",
                f"--screenshot={folder / 'picture.png'}",
                file.resolve().as_uri(),
            ],
            check=True,
            capture_output=True,
        )
        image = Image.open(folder / "picture.png").convert("RGB")
    few = image.quantize(colours, dither=Image.Dither.NONE)
    png = io.BytesIO()
    few.save(png, "PNG", optimize=True)
    return png.getvalue()

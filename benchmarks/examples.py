"""The modules that are measured if no other file is named."""

from __future__ import annotations

from pathlib import Path
from typing import Final

EXAMPLES: Final = Path(__file__).parent.parent / "examples"


def largest_example() -> Path:
    """Return the largest module of ``examples/``."""
    return max(EXAMPLES.glob("*.hlo"), key=lambda path: path.stat().st_size)

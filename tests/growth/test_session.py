"""Memory over a session of modules: constant, once caches are full."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
COUNT = 300
GROWTH = 100_000
"""Bytes for each module of the second half; 284,000 with caches of 65,536 entries."""


@pytest.mark.slow
def test_memory_is_constant_after_many_modules() -> None:
    """The process starts with empty caches, which the first half of the modules fills."""
    command = [sys.executable, "-m", "tests.growth.session", str(COUNT)]
    output = subprocess.run(command, capture_output=True, check=True, cwd=ROOT, text=True).stdout
    half, full = map(int, output.split())
    assert (full - half) / (COUNT - COUNT // 2) < GROWTH


SOME = 180
MAX_OBJECTS = 1
"""Objects for each module.

A round also leaves some of its own, for any number of modules: 30 to 110 at first, none later.
"""


@pytest.mark.slow
def test_modules_leave_no_objects_outside_of_caches() -> None:
    command = [sys.executable, "-m", "tests.growth.remainder", str(SOME)]
    output = subprocess.run(command, capture_output=True, check=True, cwd=ROOT, text=True).stdout
    _, before, after = map(int, output.split())
    assert after - before < MAX_OBJECTS * SOME

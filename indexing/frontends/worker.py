"""Processes of this package that JAX and XLA may abort: started, awaited, with the last lines.

A worker is a module with ``main(folder)``: it reads its request from a folder, and writes its
answer there.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from indexing.frontends.named_functions import is_of_program

_LOG: Final = re.compile(r"[IW]\d{4} |WARNING: All log messages")
_LAST_LINES: Final = 8


def package_path() -> str:
    """Return a ``PYTHONPATH`` with which a process imports this package from any folder."""
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    return os.pathsep.join(filter(None, paths))


def run_worker(
    module: str, folder: Path, environment: Mapping[str, str] = {}, timeout: float | None = None
) -> str:
    """Run ``python -m module folder``; return how it ended and its last lines, without logs.

    Args:
        environment: variables beside those of this process.
        timeout: limit on the seconds of the process.
    Raises:
        subprocess.TimeoutExpired: the time is over.
    """
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            [sys.executable, "-m", module, str(folder)],
            env={**os.environ, "PYTHONPATH": package_path(), **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            check=False,
        )
        output.seek(0)
        lines = output.read().decode(errors="replace").strip().splitlines()
    last = [line for line in lines if not _LOG.match(line)][-_LAST_LINES:]
    status = done.returncode
    how = f"by signal {-status}" if status < 0 else f"with status {status}"
    return "\n".join([f"{how}; its last lines:", *last])


def error_text(error: Exception) -> str:
    """Return an error with the last line of the user's program, as ``layers.py:12: ``."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if is_of_program(f.filename)]
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}: " if frames else ""
    return f"{place}{type(error).__name__}: {error}"

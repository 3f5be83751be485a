"""The conditions of a measurement, in one line: date, machine and versions.

python -m benchmarks.environment
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Final

from indexing.cli.build import build

PEERS: Final = ("jaxlib", "islpy", "sympy", "apache-tvm", "tinygrad", "distributed")


def processor() -> str:
    """Return the model of the processor, or its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return next((name for name in names if name != "unknown"), platform.machine())


def environment() -> str:
    """Return the date, the machine and the versions of the peers that are installed."""
    versions = []
    for package in PEERS:
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    machine = f"{os.cpu_count()} cores of {processor()}"
    python = f"Python {platform.python_version()}, this project {build()}"
    return f"{date.today()}: {python}, {machine}; {', '.join(versions)}"


@contextmanager
def cached_bytecode() -> Iterator[Mapping[str, str]]:
    """Yield variables of commands that keep bytecode, as those of an installed package do."""
    with tempfile.TemporaryDirectory() as folder:
        variables = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        yield variables


if __name__ == "__main__":
    print(environment())

"""Measure all figures of README.md and docs/, and write them into these pages.

    python -m benchmarks [--list] [PATTERN...]

Each page names the commands that print its figures (`benchmarks.figures`), which run one after the
other. PATTERN selects commands that contain it. If a command fails, its figures stay as they were,
and the exit status is 1. It is also 1 if a time relative to a peer is more than 15 % above that of
the last release (`benchmarks.history`). Run `make compiled` first for the figures of compiled
modules, on a machine that does nothing else: all of them take about half an hour.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter

from benchmarks import history
from benchmarks.figures import INPUTS, ROOT, MeasurementError, blocks, measure, pages, rewritten


def commands(patterns: list[str]) -> dict[str, list[Path]]:
    """Return the commands that match one of `patterns`, or all, each with its pages."""
    printed_in: dict[str, list[Path]] = {}
    for page in pages():
        for block in blocks(page):
            if not patterns or any(pattern in block.command for pattern in patterns):
                printed_in.setdefault(block.command, []).append(page)
    return printed_in


def write(chosen: Mapping[str, list[Path]], folder: Path) -> bool:
    """Write what each command prints into its pages; return True if all commands succeed."""
    files = {name: str(folder / f"{name}.hlo") for name in INPUTS}
    for name, module in INPUTS.items():
        if any(f"{{{name}}}" in command for command in chosen):
            subprocess.run([sys.executable, "-m", module, files[name]], cwd=ROOT, check=True)
    failed = False
    for command, with_figures in chosen.items():
        start = perf_counter()
        try:
            output = measure(command, files)
        except MeasurementError as error:
            print(f"error: {command}: {error}", file=sys.stderr, flush=True)
            failed = True
            continue
        print(f"{perf_counter() - start:6.0f} s  {command}", flush=True)
        for page in with_figures:
            page.write_text(rewritten(page.read_text(encoding="utf-8"), {command: output}), "utf-8")
    return not failed


def main() -> int:
    """Measure what the arguments select, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    parser.add_argument("--list", action="store_true", help="only print the commands")
    options = parser.parse_args()
    chosen = commands(options.patterns)
    if options.list:
        print(*chosen, sep="\n")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        is_written = write(chosen, Path(folder))
    if any("-m benchmarks.speed" in command for command in chosen) and is_written:
        return history.main(["--check"])
    return int(not is_written)


if __name__ == "__main__":
    sys.exit(main())

"""The folder of dumps of passes that a command reads, and of kernels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from indexing.cli.reporter import Reporter

if TYPE_CHECKING:
    from indexing.equivalence.dumps import ModuleDumps


def note_kernels(reporter: Reporter, folder: str, question: str) -> None:
    """Note what to write for a folder that has kernels, but no dumps of passes."""
    from indexing.kernels.dumps import has_kernels

    if os.path.isdir(folder) and has_kernels(folder):
        reporter.note(f"{folder} has dumps of kernels: {question}")


def listed_modules(reporter: Reporter, folder: str) -> Sequence[ModuleDumps]:
    """Return the modules of a folder of dumps; report what cannot be read, and outputs in it."""
    from indexing.equivalence.dumps import dump_files, modules_in

    faults: list[OSError] = []
    with reporter.reporting(folder):
        paths = dump_files(folder, faults)
        for fault in faults:
            reporter.exception(fault.filename, fault)
        reporter.paths.reads(map(str, paths))
        return modules_in(folder, paths)
    return ()

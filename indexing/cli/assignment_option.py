"""The options of commands that read XLA's buffer assignment and its report of memory usage."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

import click

from indexing.cli.paths import InputPath

if TYPE_CHECKING:
    from indexing.memory.buffers.assignment import BufferAssignment
    from indexing.memory.buffers.usage_report import UsageReport

_MODULE: Final = re.compile(r"(.*after_optimizations)(?:_after_buffer_assignment)?\.txt$")


def _existing(_: click.Context, option: click.Parameter, path: str | None) -> str | None:
    """Return the path of a file that exists; the error names it, not the module."""
    if path is not None and not os.path.isfile(path):
        raise click.BadParameter(f"{path}: there is no such file", param=option)
    return path


assignment_option = click.option(
    "--assignment",
    metavar="FILE",
    type=InputPath(),
    callback=_existing,
    help="XLA's buffer assignment of the module, as dumped: *-buffer-assignment.txt",
)


usage_option = click.option(
    "--usage",
    metavar="FILE",
    type=InputPath(),
    callback=_existing,
    help="XLA's report of the module's memory usage, as dumped: *-memory-usage-report.txt",
)


def dumped_beside(file: str, name: str) -> str | None:
    """Return the dump of this name that XLA wrote with a compiled module; None if there is none.

    >>> dumped_beside("no/module_0001.jit_f.cpu_after_optimizations.txt", "buffer-assignment")
    """
    module = _MODULE.match(file)
    path = f"{module[1]}-{name}.txt" if module else ""
    return path if os.path.isfile(path) else None


def load_usage(file: str | None) -> UsageReport | None:
    """Return the report of memory usage in a file; None without a file.

    Raises:
        HloError: the file is not such a report.
    """
    from indexing.memory.buffers.usage_report import UsageReport

    return None if file is None else UsageReport.load(file)


def load_assignment(file: str | None) -> BufferAssignment | None:
    """Return the buffer assignment in a file; None without a file.

    Raises:
        HloError: the file is not a buffer assignment.
    """
    from indexing.memory.buffers.assignment import BufferAssignment

    return None if file is None else BufferAssignment.load(file)

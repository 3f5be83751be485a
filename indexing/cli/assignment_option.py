"""The options of commands that read XLA's buffer assignment and its report of memory usage."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from indexing.cli.paths import InputPath

if TYPE_CHECKING:
    from hlo.modules.module import Module
    from indexing.memory.buffers.assignment import BufferAssignment
    from indexing.memory.buffers.usage_report import UsageReport
    from indexing.memory.buffers.xla_dump import XlaDump

Dump = TypeVar("Dump", bound="XlaDump")

_MODULE: Final = re.compile(r"(.*after_optimizations)(?:_after_buffer_assignment)?\.txt$")


def _existing(_: click.Context, option: click.Parameter, path: str | None) -> str | None:
    """Return the path of a file that exists; the error names it, not the module."""
    if path is not None and not os.path.isfile(path):
        raise click.BadParameter(f"{path}: there is no such file", param=option)
    return path


def _dump_option(name: str, what: str, ending: str) -> Callable[[Any], Any]:
    """Return the option for a file that XLA dumps with a module."""
    return click.option(
        name,
        metavar="FILE",
        type=InputPath(),
        callback=_existing,
        help=f"XLA's {what}, as dumped: *-{ending}.txt; by default the one beside the module",
    )


assignment_option = _dump_option(
    "--assignment", "buffer assignment of the module", "buffer-assignment"
)
usage_option = _dump_option("--usage", "report of the module's memory usage", "memory-usage-report")


def dumped_beside(file: str, ending: str) -> str | None:
    """Return the dump with this ending that XLA wrote with a compiled module; None without one.

    >>> dumped_beside("no/module_0001.jit_f.cpu_after_optimizations.txt", "buffer-assignment")
    """
    module = _MODULE.match(file)
    path = f"{module[1]}-{ending}.txt" if module else ""
    return path if os.path.isfile(path) else None


def load_usage(module: Module, file: str | None) -> UsageReport | None:
    """Return the report of memory usage in a file, by default that beside a module.

    Raises:
        HloError: the file is not such a report, or that of another module.
    """
    from indexing.memory.buffers.usage_report import UsageReport

    return _load_dump(UsageReport, module, file)


def load_assignment(module: Module, file: str | None) -> BufferAssignment | None:
    """Return the buffer assignment in a file, by default that beside a module.

    Raises:
        HloError: the file is not a buffer assignment, or that of another module.
    """
    from indexing.memory.buffers.assignment import BufferAssignment

    return _load_dump(BufferAssignment, module, file)


def _load_dump(kind: type[Dump], module: Module, file: str | None) -> Dump | None:
    path = file or dumped_beside(module.filename, kind.ending)
    if path is None:
        return None
    dump = kind.load(path)
    if (error := dump.of_another_module(module)) is not None:
        raise error
    return dump

"""The option `--assignment` of commands that read XLA's buffer assignment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from indexing.cli.paths import InputPath

if TYPE_CHECKING:
    from indexing.memory.buffers.assignment import BufferAssignment

assignment_option = click.option(
    "--assignment",
    metavar="FILE",
    type=InputPath(),
    help="XLA's buffer assignment of the module, as dumped: *-buffer-assignment.txt",
)


def load_assignment(file: str | None) -> BufferAssignment | None:
    """Return the buffer assignment in a file; None without a file.

    Raises:
        HloError: the file is not a buffer assignment.
    """
    from indexing.memory.buffers.assignment import BufferAssignment

    return None if file is None else BufferAssignment.load(file)

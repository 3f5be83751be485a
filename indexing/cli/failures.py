"""Exceptions that end a run, and those that are reported as errors of an input."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Final

import click


class OutputError(Exception):
    """A result cannot be written, for example because the disk is full.

    Attributes:
        file: where the results are written to.
    """

    def __init__(self, file: str, strerror: str) -> None:
        super().__init__(strerror)
        self.file = file
        self.strerror = strerror


_ENDS_RUN: Final = (
    *(click.ClickException, click.exceptions.Exit, click.Abort),
    *(OutputError, BrokenPipeError),
)


class Reporting:
    """A block whose exceptions are reported, except for those that end the run.

    A module has one for each instruction, so it is no generator.

    Args:
        report: reports an exception at a location.
        location: the file and the instruction of the block.
    """

    __slots__ = ("_location", "_report")

    def __init__(self, report: Callable[[str, Exception], None], location: str) -> None:
        self._report = report
        self._location = location

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Report the exception, and suppress it."""
        if not isinstance(error, Exception) or isinstance(error, _ENDS_RUN):
            return False
        self._report(self._location, error)
        return True

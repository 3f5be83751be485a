"""The files that a command reads and writes: none is both, and none is written twice.

Every argument and option with the path of a file has one of the types `InputPath` and `OutputPath`,
which tell the reporter of the command about it before anything is written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, NoReturn, TypeAlias

import click

from indexing.cli.completion import FilePath

Key: TypeAlias = tuple[int, int] | str
"""The device and number of a file; the resolved path of a file that does not exist."""

REPAIR: Final = "write to another one"


class Paths:
    """The files of one run.

    Args:
        report: reports an exception at a location; called with the path of a refused output.

    >>> paths = Paths(lambda path, error: print(f"{path}: {error}"))
    >>> paths.reads(["m.hlo"])
    >>> paths.writes("--output", "m.hlo")
    Traceback (most recent call last):
        ...
    click.exceptions.Exit: 1
    """

    def __init__(self, report: Callable[[str, Exception], None]) -> None:
        self._report = report
        self._inputs: list[str] = []
        self._outputs: dict[Key, tuple[str, str]] = {}  # the option and the path

    def reads(self, names: Iterable[str]) -> None:
        """Add files that the command reads; ``-`` is standard input.

        An output that is one of them is reported, and ends the run.
        """
        added = list(names)
        self._inputs += added
        for name in added if self._outputs else ():
            if output := self._outputs.get(_key(name)):
                self._refuse_same(output[1], _input(name, output[1]))

    def writes(self, option: str, path: str) -> None:
        """Add the file that an option writes.

        It is reported, and ends the run, if it is an input or the file of another option.
        """
        own = _key(path)
        if other := self._outputs.get(own):
            self._refuse_same(path, f"the file of {other[0]}")
        for name in self._inputs:
            if _key(name) == own:
                self._refuse_same(path, _input(name, path))
        self._outputs[own] = option, path

    def _refuse_same(self, path: str, other: str) -> None:
        self.refuse(path, OSError(f"{other} is the same file: {REPAIR}"))

    def refuse(self, path: str, error: OSError) -> NoReturn:
        """Report the error of an output, and end the run."""
        self._report(path, error)
        raise click.exceptions.Exit(1)


def _input(name: str, output: str) -> str:
    """Name an input in the error of an output, which has the path already if both are equal."""
    if name == "-":
        return "standard input"
    return "the input" if name == output else f"the input {name}"


def _key(name: str) -> Key:
    """Return what all names of a file share: links, hard links, relative and absolute paths."""
    try:
        status = os.stat(0 if name == "-" else name)
    except OSError:
        return os.path.realpath(name)
    return status.st_dev, status.st_ino


class InputPath(FilePath):
    """The path of a file or folder that the command reads, ``-``, or a function of JAX.

    Attributes:
        stage: the stage of a function of JAX, unless an option says another; if it is empty, the
            command has the name of the function in place of a file.
    """

    def __init__(self, stage: str = "lowered") -> None:
        self.stage = stage

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> str:
        path = self.check_path(value, param, context)
        if (paths := _paths(context)) is not None:
            paths.reads([path])
        return path


class OutputFolder(FilePath):
    """The path of a folder in which the command writes files."""

    name = "folder"

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> str:
        path = self.check_path(value, param, context)
        if os.path.exists(path) and not os.path.isdir(path):
            self.fail(f"expected the path of a folder, got a file, {path}", param, context)
        return path


class OutputPath(FilePath):
    """The path of a regular file that the command writes.

    Attributes:
        stdout: what ``-`` stands for: standard output, for "text" or "binary" results; "none" if
            the results of the command are written there.
    """

    def __init__(self, stdout: Literal["none", "text", "binary"] = "none") -> None:
        self.stdout = stdout

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> str:
        from indexing.execution.output_file import check_writable, is_stdout

        path = self.check_path(value, param, context)
        paths = _paths(context)
        if paths is None or param is None:
            return path
        is_stream = is_stdout(path)
        if is_stream and self.stdout == "none":
            self.fail(f"expected the path of a file, got standard output, {path}", param, context)
        if not (is_stream and self.stdout == "text"):
            try:
                check_writable(path)
            except OSError as error:
                paths.refuse(path, error)
            except UnicodeEncodeError:
                self.fail(
                    f"the path {path!r} has a character that no file name has", param, context
                )
        if not is_stream:
            paths.writes(param.opts[0], path)
        return path


def _paths(context: click.Context | None) -> Paths | None:
    """Return the files of a command that runs; None while a line is completed."""
    if context is None or context.resilient_parsing:
        return None
    return getattr(context.obj, "paths", None)

"""XLA:CPU in a process of its own, which XLA may end."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import hlo
from indexing.execution import xla

Array = NDArray[Any]

STDERR: Final = "stderr.txt"
"""File in the folder of dumps with what XLA writes to standard error."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An execution without results.

    Attributes:
        reason: the signal that ended the process, "timeout", or the first line of XLA's error.
        is_end: True if XLA ended the process.
    """

    reason: str
    is_end: bool = False


class XlaProcess:
    """A process that compiles and executes modules; a new one is started after it is ended."""

    def __init__(self) -> None:
        self._process: Any = None
        self._connection: Connection | None = None

    def run(
        self, text: str, inputs: Sequence[Array], folder: Path, seconds: float = 60.0
    ) -> list[Array] | Failure:
        """Return the outputs of a module; XLA leaves the dumps of its passes in `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        if self._connection is None:
            self._start()
        assert self._connection is not None
        try:
            self._connection.send((text, list(inputs), folder))
            if not self._connection.poll(seconds):
                self.stop()
                return Failure("timeout", is_end=True)
            answer: list[Array] | Failure = self._connection.recv()
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode
            self.stop()
            return Failure(signal.Signals(-code).name if code < 0 else f"exit {code}", is_end=True)
        return answer

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None

    def __enter__(self) -> XlaProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()


def _serve(connection: Connection) -> None:
    while True:
        try:
            text, inputs, folder = connection.recv()
        except EOFError:
            return
        log = os.open(folder / STDERR, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 2)
        os.close(log)
        try:
            results = xla.run(hlo.parse(text), inputs, dump_to=folder)
            connection.send([np.asarray(each) for each in results])
        except Exception as error:  # XLA rejects the module
            connection.send(Failure(str(error).splitlines()[0] if str(error) else repr(error)))

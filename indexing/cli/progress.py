"""A progress bar on the terminal, for what takes more than a second.

It stands on standard error and vanishes at the end. Where results go to a terminal too, it makes
way for them, and comes back when nothing has been printed for a second.
"""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE: Final = 1.0  # seconds without a result, before the bar appears
_POLL: Final = 0.2


class Bar:
    """What is being done, and how much of it is done; shown only if standard error is a terminal.

    >>> with Bar() as bar:
    ...     for done in range(3):
    ...         bar.at("maps", done, 3)
    """

    def __init__(self) -> None:
        self.is_used = sys.stderr.isatty()
        self.makes_way = self.is_used and sys.stdout.isatty()
        self._state: tuple[str, int, int | None] = ("", 0, None)
        self._quiet_since = time.monotonic()
        self._shown: Progress | None = None
        self._lock = threading.Lock()
        self._done = threading.Event()

    def __enter__(self) -> Bar:
        if self.is_used:
            self._watcher = threading.Thread(target=self._watch, daemon=True)
            self._watcher.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.is_used:
            self._done.set()
            self._watcher.join()
            self._remove()

    def at(self, what: str, done: int, total: int | None = None) -> None:
        """Say what is being done, and that `done` of `total` things are done."""
        self._state = what, done, total

    def make_way(self) -> None:
        """A result is about to be printed."""
        if self.makes_way:
            self._quiet_since = time.monotonic()
            self._remove()

    def _remove(self) -> None:
        with self._lock:
            if self._shown is not None:
                self._shown.stop()
                self._shown = None

    def _watch(self) -> None:
        """Show the bar when its time has come, and keep it up to date."""
        while not self._done.wait(_POLL):
            with self._lock:
                what, done, total = self._state
                if self._shown is not None:
                    task = self._shown.task_ids[0]
                    self._shown.update(task, description=what, completed=done, total=total)
                elif time.monotonic() - self._quiet_since >= PATIENCE and not self._done.is_set():
                    self._shown = _started(what, done, total)


def _started(what: str, done: int, total: int | None) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()
    shown = Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    shown.add_task(what, completed=done, total=total)
    shown.start()
    return shown

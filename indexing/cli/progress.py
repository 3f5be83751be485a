"""A progress bar for commands that take more than a second.

The bar is printed on standard error and removed at the end.  If results are printed on a terminal
as well, each result removes the bar; it reappears after a second without results.
"""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Final

from hlo.text.source import printable

if TYPE_CHECKING:
    from rich.progress import Progress

DELAY: Final = 1.0  # seconds without a result before the bar appears
_POLL: Final = 0.2


class Bar:
    """A progress bar, shown only if standard error is a terminal.

    >>> with Bar() as bar:
    ...     for done in range(3):
    ...         bar.update("maps", done, 3)
    """

    def __init__(self, is_wanted: bool = True) -> None:
        self.is_used = is_wanted and sys.stderr.isatty()
        self.shares_terminal = self.is_used and sys.stdout.isatty()
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

    def update(self, task: str, done: int, total: int | None = None) -> None:
        """Set the task's description and its progress, `done` of `total`."""
        self._state = task, done, total

    def hide(self) -> None:
        """Remove the bar before a result is printed on the same terminal."""
        if self.shares_terminal:
            self._quiet_since = time.monotonic()
            self._remove()

    def _remove(self) -> None:
        with self._lock:
            if self._shown is not None:
                self._shown.stop()
                self._shown = None

    def _watch(self) -> None:
        """Show the bar once `DELAY` has passed, and keep it up to date."""
        while not self._done.wait(_POLL):
            with self._lock:
                task_name, done, total = self._state
                description = printable(task_name)
                if self._shown is not None:
                    task = self._shown.task_ids[0]
                    self._shown.update(task, description=description, completed=done, total=total)
                elif time.monotonic() - self._quiet_since >= DELAY and not self._done.is_set():
                    self._shown = _start_bar(description, done, total)


def _start_bar(description: str, done: int, total: int | None) -> Progress:
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
    shown.add_task(description, completed=done, total=total)
    shown.start()
    return shown

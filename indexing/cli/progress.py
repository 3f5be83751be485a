"""A progress bar for commands that take more than two seconds.

The bar is printed on standard error and removed at the end.  If results are printed on a terminal
as well, each result removes the bar; it reappears after two seconds without results.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Final

from hlo.text.source import printable

if TYPE_CHECKING:
    from rich.progress import Progress

DELAY: Final = 2.0  # seconds without a result before the bar appears
_POLL: Final = 0.2


class Bar:
    """A progress bar, shown only if standard error is a terminal.

    A run has one; where it is entered again, it stays until the first block ends.

    Args:
        is_wanted: decides when the bar would be shown.

    >>> with Bar() as bar:
    ...     for done in range(3):
    ...         bar.update("maps", done, 3)
    """

    def __init__(self, is_wanted: Callable[[], bool] = lambda: True) -> None:
        self._is_wanted = is_wanted
        self._depth = 0
        self.is_used = sys.stderr.isatty()
        self.shares_terminal = self.is_used and sys.stdout.isatty()
        self._state: tuple[str, int, int | None] = ("", 0, None)
        self._started = self._quiet_since = time.monotonic()
        self._shown: Progress | None = None
        self._lock = threading.Lock()
        self._done = threading.Event()

    def __enter__(self) -> Bar:
        self._depth += 1
        if self.is_used and self._depth == 1:
            self._watcher = threading.Thread(target=self._watch, daemon=True)
            self._watcher.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._depth -= 1
        if self.is_used and not self._depth:
            self._done.set()
            self._watcher.join()
            self._remove()

    def update(self, task: str, done: int, total: int | None = None) -> None:
        """Set the task's description and its progress, `done` of `total`."""
        self._state = task, done, total

    def hide(self, *, for_message: bool = False) -> None:
        """Remove the bar before a result, or a message, is printed on the same terminal."""
        if self.shares_terminal or (for_message and self.is_used):
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
                elif self._is_due():
                    self._shown = _start_bar(description, done, total, self._started)

    def _is_due(self) -> bool:
        """Return True if the bar is to be shown."""
        is_late = time.monotonic() - self._quiet_since >= DELAY
        return is_late and self._is_wanted() and not self._done.is_set()


def _start_bar(description: str, done: int, total: int | None, started: float) -> Progress:
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
    task = shown.add_task(description, completed=done, total=total)
    shown.tasks[task].start_time = started  # the time is that of the whole run
    shown.start()
    return shown

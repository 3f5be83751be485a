"""Signals while a kernel runs.

Python responds to a signal between two instructions of its own; a NumPy kernel is one of them, and
may run for minutes.  A thread therefore ends the process if the main thread does not respond.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from indexing.cli import INTERRUPTED, end_with_messages

PATIENCE: Final = 1.0
"""Seconds that the main thread has to respond to a signal."""

ENDING: Final = frozenset(
    {signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}
)
"""Signals that end the command."""


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """End the process on a signal, although the main thread executes a kernel.

    It ends if the main thread does not leave the context within `PATIENCE` seconds, and at once
    on a second signal.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or os.name == "nt":  # Windows cannot select pipes
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    thread = threading.Thread(target=_watch, args=(reader,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)
        thread.join()
        os.close(reader)


class TimeIsUp(BaseException):
    """The time of `time_limited` is over; no handler of errors catches it."""


@contextmanager
def time_limited(seconds: float | None) -> Iterator[None]:
    """Raise `TimeIsUp` in the main thread after some seconds; None is no limit.

    Windows has no timers of this kind: there the limit does nothing.
    """
    if seconds is None or not hasattr(signal, "setitimer"):
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        raise TimeIsUp

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _watch(reader: int) -> None:
    """Wait for a signal, then for the end of the context or for a second signal."""
    first = _next(reader)
    if first is None:
        return
    ready, _, _ = select.select([reader], [], [], PATIENCE)
    number = _next(reader) if ready else first
    if number is not None:
        end_with_messages(INTERRUPTED if number == signal.SIGINT else 128 + number)


def _next(reader: int) -> int | None:
    """Wait for the next signal; return its number, or None at the end of the context."""
    while data := os.read(reader, 1):
        if data[0] in ENDING:
            return data[0]
    return None

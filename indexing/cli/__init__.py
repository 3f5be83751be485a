"""The command `hlo-indexing`: its exit status, and its response to signals and closed streams.

In come arguments and files; out come an answer and an exit status.  Read `group` first.

Imports every room.  This module loads at once, so that an interrupt finds a handler; `group` has
the commands.  Exit status: 0 success, 1 error in the input, 2 usage error, 130 interrupted, 141
output closed by its reader, 128 + n ended by signal n.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # `typing` takes longer to import than this module
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import NoReturn

INTERRUPTED = 130  # the exit status of a command that SIGINT ends
PATIENCE = 0.2  # seconds that the reader of the output has after an interrupt


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its status."""
    try:
        import gc
        import signal

        for number in {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}:  # not on Windows
            if signal.getsignal(number) is signal.SIG_DFL:  # `nohup` ignores SIGHUP
                signal.signal(number, _end)
        status = _run_on_streams(sys.argv[1:] if arguments is None else arguments)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # there is nothing left to interrupt
        gc.freeze()  # the interpreter would free each instruction, a tenth of the time
    except KeyboardInterrupt:
        status = INTERRUPTED
    if status == INTERRUPTED:
        _end_at_once()
    sys.exit(status)


def _end_at_once() -> NoReturn:
    """Report the interrupt and end.

    The interpreter would wait for the reader of the output, and free all modules, which can take a
    second.
    """
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_messages(INTERRUPTED)


def end_with_messages(status: int) -> NoReturn:
    """Write what the command has not written yet, and end the process; from any thread."""
    import threading

    message = "interrupted\n" if status == INTERRUPTED else ""
    writer = threading.Thread(target=_write_rest, args=(message,), daemon=True)
    writer.start()
    writer.join(PATIENCE)
    os._exit(status)


def _write_rest(message: str) -> None:
    """Write the message, and the results that the command has not written yet."""
    import contextlib

    for stream, text in ((sys.stderr, message), (sys.stdout, "")):
        if stream is not None:  # closed by the shell
            with contextlib.suppress(OSError):
                stream.write(text)
                stream.flush()


def _end(number: int, frame: FrameType | None) -> None:
    """End the command by an exception, so that its temporary files are removed."""
    raise SystemExit(128 + number)


def _run_on_streams(arguments: Sequence[str]) -> int:
    """Run the command; the shell may have closed its streams, or its disk may be full."""
    import gc
    import io

    if sys.stderr is None:  # closed by the shell: `2>&-`
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends
    if sys.stdout is None:
        sys.stderr.write("error[io]: standard output is closed\n")
        return 1
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for any terminal encoding
    os.environ.setdefault("JAX_PLATFORMS", "cpu")  # other plugins would look for their devices
    # Products in executions are small: threads of NumPy wait for each other longer than they work.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(50_000, 20, 50)  # most objects are long-lived: collect rarely
    status = run(arguments)
    if status == INTERRUPTED:
        return status
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # reported before; flushing at exit must not raise again
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return status


def run(arguments: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    try:
        from indexing.cli.group import invoke

        return invoke(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return 141

"""Results and errors of every command.

Results are printed on standard output, errors and notes on standard error.  An error in one file or
instruction does not stop the others.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from hlo.modules.module import Module

STYLES: dict[str, dict[str, Any]] = {
    "name": {"bold": True},
    "may": {"fg": "yellow"},
    "unknown": {"fg": "red"},
}


class Reporter:
    """Printer of one run: prints results, reports each error once, records failure."""

    def __init__(self) -> None:
        self.debug = False
        self.failed = False
        self.reported: set[str] = set()
        self.opcodes: set[str] = set()  # requested opcodes that occur in a file
        self.coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def paint(self, text: str, style: str) -> str:
        """Return `text` in the colours of `style` on a terminal, and unchanged elsewhere."""
        return click.style(text, **STYLES[style]) if self.coloured else text

    def print(self, line: str) -> None:
        """Print one line of the result."""
        sys.stdout.write(line + "\n")

    def note(self, message: str) -> None:
        """Print a note about the run on standard error."""
        sys.stdout.flush()
        sys.stderr.write(message + "\n")

    def error(self, message: str) -> None:
        """Report an error in the input, once; the run continues and exits with status 1."""
        self.failed = True
        if message not in self.reported:
            self.reported.add(message)
            sys.stdout.flush()
            sys.stderr.write(message + "\n")

    @contextmanager
    def reporting(self, location: str) -> Iterator[None]:
        """Report exceptions raised inside as errors at `location`, without a traceback."""
        from hlo.text.source import HloError

        try:
            yield
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except HloError as error:
            self.error(str(error))
        except OSError as error:
            self.error(f"error[io]: {location}: {error.strerror or error}")
        except Exception as error:
            from indexing.maps.certificate import CertificateError
            from simplifier.exact.context import NotAffineError

            if isinstance(error, CertificateError | NotAffineError):
                code = "verify" if isinstance(error, CertificateError) else "isl"
                self.error(f"error[{code}]: {location}: {error}")
                return
            if self.debug:
                raise
            self.error(
                f"error[internal]: {location}: {type(error).__name__}: {error}\n"
                "  = note: this is a bug in hlo-indexing, not in the input\n"
                "  = help: run `hlo-indexing --debug ...` for the traceback"
            )

    def note_proofs(self, proofs: Mapping[str, int]) -> None:
        """Print the summary of ``--verify`` on standard error.

        Args:
            proofs: the number of maps ``proved`` equal to their simplified form, and ``unchanged``.
        """
        proved, unchanged = proofs.get("proved", 0), proofs.get("unchanged", 0)
        is_all = not self.failed and proved + unchanged > 1
        number = ("all " if is_all else "") + counted(proved + unchanged, "map")
        self.note(f"verified {number}: {proved} simplified, {unchanged} unchanged")

    def report_errors(self, module: Module) -> bool:
        """Report each error that `hlo.verify` finds in `module`; return True if there are any."""
        from hlo import verify

        errors = verify(module)
        for error in errors:
            self.error(str(error))
        return bool(errors)

    def modules(self, files: Sequence[str]) -> Iterator[Module]:
        """Yield each module of each file; report and skip files that cannot be read."""
        from hlo import load_all

        for file in files:
            modules: list[Module] = []
            with self.reporting(file):
                modules = load_all(file)
            yield from modules


def counted(number: int, noun: str) -> str:
    """Return `number` with its noun in singular or plural.

    >>> counted(1, "error"), counted(2, "error")
    ('1 error', '2 errors')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"

"""Results and errors of every command.

Results are printed on standard output, errors and notes on standard error.  An error in one file or
instruction does not stop the others.
"""

from __future__ import annotations

import json
import operator
import os
import re
import sys
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from io import TextIOWrapper
from itertools import dropwhile
from typing import TYPE_CHECKING, Any, Final, TextIO

from hlo.text.names import counted_noun
from hlo.text.source import HloError, printable
from indexing.cli.colours import COLOURED, MARKS
from indexing.cli.failures import OutputError as OutputError
from indexing.cli.failures import Reporting
from indexing.cli.paths import Paths
from indexing.cli.progress import Bar
from indexing.cli.terminals import error_width, fit_lines, fit_message, terminal_width

if TYPE_CHECKING:
    import click

    from hlo.formats.outline import OutlineStore
    from hlo.modules.module import Module
    from indexing.maps.indexing_map import IndexingMap
    from indexing.views.selection import Condition

_PLAIN: Final = re.compile("[ -~]*")


class Reporter:
    """Printer of one run: prints results, reports each error once, records failure.

    Only this class writes results and messages, and it escapes the control characters in them.
    """

    def __init__(self) -> None:
        self.debug = False
        self.failed = False
        self.paths = Paths(self.exception)  # what the run reads and writes
        self.verdict = 0  # the exit status of a run that does not fail: a verdict is a result
        self.max_bytes: int | None = None  # limit on the size of an input, if it is given
        self.uses_cache = True  # take outlines of modules from the user's cache, and store them
        self.reported: set[str] = set()
        self.matched: set[Condition] = set()  # conditions that an instruction of a file meets
        self.missed: dict[Condition, tuple[str, str]] = {}  # unmet: the file, a similar name
        self.undecided: dict[IndexingMap, str] = {}  # maps not proved by --verify: the obstacle
        self.has_printed = False
        self.has_answer = False  # for at least one of the selected instructions
        self.counts: Counter[str] = Counter()  # instructions, maps by grade, errors by code, ...
        self.lines = 0  # of results
        self.width = terminal_width()  # None: results are not printed on a terminal
        self.wraps = True  # results are text for people, not a format that programs read
        self.colours = "auto"  # one of `COLOUR_CHOICES`
        self._environment = {name: os.environ.get(name) for name in ("NO_COLOR", "FORCE_COLOR")}
        self.is_quiet = False  # print no notes
        self.bar = Bar(lambda: not self.is_quiet)
        self._path: str | None = None  # of the file that results are written to
        self._continued: int | None = None  # the size of that file to which results are appended
        self._file: TextIOWrapper | None = None
        self._output = ExitStack()

    @property
    def coloured(self) -> bool:
        """True if results are printed in colours."""
        if self.colours != "auto":
            return self.colours == "always"
        if self._environment["NO_COLOR"]:
            return False
        return self.width is not None or bool(self._environment["FORCE_COLOR"])

    def write_to(self, path: str) -> None:
        """Write the results of the run to a file, in place of standard output."""
        from indexing.execution.output_file import is_stdout

        if not is_stdout(path):
            self._path, self.width = path, None

    @property
    def input_limit(self) -> int:
        """The limit on the size of each input."""
        return limit_of(self.max_bytes)

    @property
    def output_name(self) -> str:
        """The path of the output file; ``-`` for standard output."""
        return "-" if self._path is None else os.path.abspath(self._path)

    def continue_results(self, end: int) -> None:
        """Cut the output file off at `end`, and append the results, in place of replacing it.

        Raises:
            OSError: the file is shorter, or cannot be written.
        """
        if self._path is not None:
            size = os.path.getsize(self._path) if os.path.exists(self._path) else 0
            if size < end:
                raise OSError(
                    f"the file has {size} bytes, and the journal counts {end}: restore it, or "
                    "remove both"
                )
            self._continued, self.has_printed = end, end > 0

    def position(self) -> int | None:
        """Write all results; return the size of an output file that they are appended to."""
        self.flush()
        if self._continued is None:
            return None
        assert self._path is not None
        self._stream().flush()
        return self._stream().buffer.tell()

    def rewind(self, position: int) -> None:
        """Remove the results from `position`."""
        binary = self._stream().buffer
        binary.seek(position)
        binary.truncate()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Replace the output file when the block ends.

        It stays unchanged if the block raises an exception, or fails without a result.
        """
        try:
            with self._output:
                yield
                if self._path is not None and not self.failed:
                    self._stream()  # an empty file if there are no results
                if self._file is not None:
                    self._file.flush()
        except OSError as error:
            if self._path is None or isinstance(error, BrokenPipeError):
                raise
            self.error(f"error[io]: {self._path}: {error.strerror or error}")

    def _stream(self) -> TextIO:
        """Return the stream of the results; open the output file on first use."""
        if self._path is None:
            return sys.stdout
        if self._file is None:
            from indexing.execution.output_file import continue_file, replace_file

            opened = (
                replace_file(self._path)
                if self._continued is None
                else continue_file(self._path, self._continued)
            )
            binary = self._output.enter_context(opened)
            self._file = TextIOWrapper(
                binary, "utf-8", errors="backslashreplace", newline="\n", write_through=True
            )
            self._output.callback(self._file.detach)
        return self._file

    def paint(self, text: str, style: str) -> str:
        """Return `text` in the colours of `style` on a terminal, and unchanged elsewhere."""
        return f"{MARKS[style]}{text}{MARKS['end']}" if self.coloured else text

    def print(self, *lines: str) -> None:
        """Print lines of the result; an empty line only after other lines."""
        if not self.has_printed:
            lines = tuple(dropwhile(operator.not_, lines))
        if not lines:
            return
        self.has_printed = True
        self.bar.hide()
        if self.width is not None and self.wraps:
            lines = fit_lines(lines, self.width)
        self.lines += len(lines)
        if not _PLAIN.fullmatch("".join(lines)):
            lines = tuple(map(printable, lines))
        text = "\n".join([*lines, ""])
        if self.coloured:
            text = text.translate(COLOURED)
        try:
            self._stream().write(text)
        except OSError as error:
            raise self._output_error(error) from None

    def print_answer(
        self, notation: str, lines: Iterable[str], records: Iterable[Mapping[str, Any]]
    ) -> None:
        """Print the lines of a text, or in JSON an object for each record."""
        for line in map(json.dumps, records) if notation == "json" else lines:
            self.print(line)

    def print_document(self, text: str) -> None:
        """Print a whole file of HTML or SVG: its bytes are UTF-8, whatever standard output has."""
        self.has_printed = True
        self.bar.hide()
        self.lines += text.count("\n")
        text = text.removesuffix("\n") + "\n"
        stream = self._stream()
        try:
            stream.flush()
            if isinstance(stream, TextIOWrapper):
                stream.buffer.write(text.encode())
                stream.buffer.flush()
            else:  # replaced by a stream without bytes
                stream.write(text)
        except OSError as error:
            raise self._output_error(error) from None

    def table(self, title: str, rows: Sequence[tuple[str, ...]]) -> None:
        """Print a table on a terminal.

        Args:
            title: the line above it.
            rows: the headings, and the rows, whose first cell is a status.
        """
        from indexing.cli.status_table import print_table

        self.bar.hide()
        self.flush()
        self.lines += len(rows)
        print_table(title, rows, self.coloured)

    def flush(self) -> None:
        """Write all results."""
        try:
            sys.stdout.flush()
        except OSError as error:
            raise self._output_error(error) from None

    def note(self, message: str) -> None:
        """Print a note about the run on standard error, unless the run is quiet."""
        if not self.is_quiet:
            self.bar.hide(for_message=True)
            self.flush()
            sys.stderr.write("\n".join([*fit_message([printable(message)]), ""]))

    def _output_error(self, error: OSError) -> Exception:
        """Return the exception for a failed write, which is no error of an input."""
        if isinstance(error, BrokenPipeError):
            return error
        return OutputError(self._path or "standard output", error.strerror or str(error))

    def error(self, *lines: str) -> None:
        """Report an error in the input, once; the run continues and exits with status 1."""
        self.failed = True
        message = "".join([f"{printable(line)}\n" for line in lines])
        if message not in self.reported:
            self.reported.add(message)
            self.count_error(lines[0])
            self.bar.hide(for_message=True)
            self.flush()
            sys.stderr.write("".join([f"{line}\n" for line in fit_message(map(printable, lines))]))

    def count_instructions(self, module: Module) -> int:
        """Count the instructions of a module, and return their number."""
        size = sum(map(len, module.computations.values()))
        self.counts["instructions"] += size
        return size

    def count_error(self, line: str) -> None:
        """Count an error by its code; `line` begins with it."""
        self.counts[line.partition("]")[0] + "]"] += 1

    def note_explanations(self) -> None:
        """Name the command that explains the reported errors, to a person at a terminal."""
        codes = [key[len("error[") : -1] for key in self.counts if key.startswith("error[")]
        if codes and sys.stderr.isatty():
            self.note(f"for examples and repairs: hlo-indexing explain {' '.join(codes)}")

    def hlo_error(self, error: HloError) -> None:
        """Report an error with its source location."""
        self.error(*error.lines(error_width()))

    def reporting(self, location: str) -> Reporting:
        """Report exceptions raised inside as errors at `location`, without a traceback."""
        return Reporting(self.exception, location)

    def exception(self, location: str, error: Exception) -> None:
        """Report an exception as an error at `location`."""
        if isinstance(error, HloError):
            self.hlo_error(error)
        elif isinstance(error, MemoryError):
            reason = f": {error}" if str(error) else ""
            help_ = "use a machine with more memory, fewer --jobs, or a smaller input"
            self.error(f"error[memory]: {location}: memory ran out{reason}", f"  = help: {help_}")
        elif isinstance(error, OSError):
            self.error(f"error[io]: {location}: {error.strerror or error}")
        else:
            self._other_exception(location, error)

    def _other_exception(self, location: str, error: Exception) -> None:
        from indexing.frontends.compilation import CompilationError
        from indexing.maps.certificate import CertificateError
        from simplifier.exact.context import BudgetExhaustedError, NotAffineError

        if isinstance(error, CertificateError | NotAffineError | BudgetExhaustedError):
            code = "verify" if isinstance(error, CertificateError) else "isl"
            self.error(*f"error[{code}]: {location}: {error}".split("\n"))
            return
        if isinstance(error, CompilationError):
            self.error(*f"error[jax]: {location}: {error}".split("\n"))
            return
        self.error(
            f"error[internal]: {location}: {type(error).__name__}: {error}",
            "  = note: this is a bug in hlo-indexing, not in the input",
            *(
                "".join(traceback.format_exception(error)).splitlines()
                if self.debug
                else ["  = help: run `hlo-indexing --debug ...` for the traceback"]
            ),
        )

    def note_proofs(self, proofs: Mapping[str, int]) -> None:
        """Print the summary of ``--verify`` on standard error.

        Args:
            proofs: the number of maps ``proved`` equal to their simplified form, of ``unchanged``
                and of ``undecided`` ones.
        """
        proved, unchanged = proofs.get("proved", 0), proofs.get("unchanged", 0)
        undecided = proofs.get("undecided", 0)
        is_all = not (self.failed or undecided) and proved + unchanged > 1
        number = ("all " if is_all else "") + counted_noun(proved + unchanged, "map")
        rest = f"; isl could not decide {counted_noun(undecided, 'other map')}" if undecided else ""
        self.note(f"verified {number}: {proved} simplified, {unchanged} unchanged{rest}")

    def report_errors(self, module: Module) -> bool:
        """Report each error that `hlo.verify` finds in `module`; return True if there are any."""
        from hlo import verify

        errors = verify(module)
        for error in errors:
            self.hlo_error(error)
        return bool(errors)

    def modules(self, files: Sequence[str], *, lazy: bool = False) -> Iterator[Module]:
        """Yield each module of each file; report and skip files that cannot be read.

        Args:
            lazy: only some instructions are needed; see `hlo.load_all`.
        """
        for file in files:
            modules: list[Module] = []
            with self.reporting(file):
                modules = load_modules(file, self.max_bytes, lazy, self.uses_cache)
            yield from modules

    def only_module(self, file: str) -> Module | None:
        """Return the module of a file; None after an error, also if it has several."""
        modules = list(self.modules([file]))
        if len(modules) > 1:
            self.error(
                f"error[input]: {file}: expected one module, but the file contains {len(modules)}"
            )
        return modules[0] if len(modules) == 1 else None


def reporter_of(context: click.Context) -> Reporter:
    """Return the reporter of a command."""
    reporter = context.obj
    assert isinstance(reporter, Reporter)
    return reporter


def load_modules(
    file: str, max_bytes: int | None, lazy: bool = False, uses_cache: bool = False
) -> list[Module]:
    """Load the modules of `file`; None stands for the default limit on its size."""
    from hlo.formats.files import load_outlined

    return load_outlined(file, limit_of(max_bytes), lazy, outlines(uses_cache))


def outlines(uses_cache: bool) -> OutlineStore | None:
    """Return the outlines in the cache; None without it."""
    if not uses_cache:
        return None
    from indexing.frontends.outlines import OutlineCache

    return OutlineCache()


def limit_of(max_bytes: int | None) -> int:
    """Return a limit on the size of an input; None stands for the default."""
    from hlo.formats.reading import MAX_BYTES

    return MAX_BYTES if max_bytes is None else max_bytes

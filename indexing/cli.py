"""The command `hlo-indexing`.

What a command needs is imported inside it, so that ``--help`` answers at once. Results go to
standard output, everything else to standard error. Exit status: 0 fine, 1 something is wrong in
the input, 2 wrong usage; 130 interrupted, 141 nobody reads the output.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from hlo import HloError
    from hlo.module import Instruction, Module
    from indexing.map import IndexingMap

STYLES: dict[str, dict[str, Any]] = {
    "name": {"bold": True},
    "may": {"fg": "yellow"},
    "unknown": {"fg": "red"},
}


class Reporter:
    """One run of the command: prints results, reports what is wrong, and remembers that it did."""

    def __init__(self) -> None:
        self.debug = False
        self.failed = False
        self.reported: set[str] = set()
        self.coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def paint(self, text: str, style: str) -> str:
        """`text` in the colours of `style` on a terminal, as it is elsewhere."""
        return click.style(text, **STYLES[style]) if self.coloured else text

    def print(self, line: str) -> None:
        """Print one line of the result."""
        sys.stdout.write(line + "\n")

    def error(self, message: str) -> None:
        """Report something wrong in the input, once; the run goes on and ends with status 1."""
        self.failed = True
        if message not in self.reported:
            self.reported.add(message)
            sys.stdout.flush()
            sys.stderr.write(message + "\n")

    @contextmanager
    def reporting(self, place: str) -> Iterator[None]:
        """Report what goes wrong about `place`, and go on: never a traceback."""
        from hlo.source import HloError

        try:
            yield
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except HloError as error:
            self.error(str(error))
        except OSError as error:
            self.error(f"error[io]: {place}: {error.strerror or error}")
        except Exception as error:
            from indexing.simplify import CertificateError

            if isinstance(error, CertificateError):
                self.error(f"error[verify]: {place}: {error}")
                return
            if self.debug:
                raise
            self.error(
                f"error[internal]: {place}: {type(error).__name__}: {error}\n"
                "  = note: this is a mistake in hlo-indexing, not in the input\n"
                "  = help: --debug shows where it happened"
            )

    def modules(self, files: Sequence[str]) -> Iterator[Module]:
        """Each module of each file; a file that cannot be read is reported and left out."""
        from hlo import load_all

        for file in files:
            modules: list[Module] = []
            with self.reporting(file):
                modules = load_all(file)
            yield from modules


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="hlo-indexing", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an internal error.")
@click.pass_obj
def cli(reporter: Reporter, debug: bool) -> None:
    """Which elements of one tensor another one needs: indexing maps of HLO modules."""
    reporter.debug = debug


FORMATS = click.Choice(["text", "json", "isl", "mlir", "latex"])
MAP_FORMATS = click.Choice(["text", "isl", "mlir", "latex"])


@cli.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--instruction",
    "-i",
    "names",
    metavar="NAME",
    multiple=True,
    help="Answer for this instruction, NAME or COMPUTATION/NAME. May be repeated.",
)
@click.option(
    "--opcode",
    "opcodes",
    metavar="OPCODE",
    multiple=True,
    help="Answer for every instruction with this opcode. May be repeated.",
)
@click.option(
    "--all", "everything", is_flag=True, help="Answer for every instruction of every computation."
)
@click.option(
    "--direction",
    default="output-to-input",
    show_default=True,
    type=click.Choice(["output-to-input", "input-to-output", "both"]),
)
@click.option(
    "--to",
    "target",
    default="operands",
    show_default=True,
    type=click.Choice(["operands", "parameters"]),
    help="Where maps lead: the instruction's operands, or the parameters of its computation.",
)
@click.option("--operand", metavar="N", type=click.IntRange(min=0), help="Only operand N.")
@click.option(
    "--output",
    metavar="N",
    type=click.IntRange(min=0),
    help="Only output N of an instruction with several.",
)
@click.option(
    "--exact", is_flag=True, help="Say in disjoint exact pieces what is one `may` map otherwise."
)
@click.option("--no-simplify", is_flag=True, help="Show maps as they were composed.")
@click.option("--verify", is_flag=True, help="Prove that each simplified map equals the original.")
@click.option("--format", "notation", default="text", show_default=True, type=FORMATS)
@click.pass_obj
def maps(
    reporter: Reporter,
    files: Sequence[str],
    names: Sequence[str],
    opcodes: Sequence[str],
    everything: bool,
    direction: str,
    target: str,
    operand: int | None,
    output: int | None,
    exact: bool,
    no_simplify: bool,
    verify: bool,
    notation: str,
) -> None:
    """Print indexing maps of the modules in FILE... (`-` is standard input).

    Without --instruction, --opcode or --all, answers for the root of the ENTRY computation. An
    instruction with several outputs is answered for each; operands that only other outputs read
    are left out there.
    """
    from indexing.report import DIRECTIONS, Query, answer, lines

    if target == "parameters" and direction != "output-to-input":
        raise click.UsageError("--to parameters answers output-to-input only.")
    if verify and no_simplify:
        raise click.UsageError("--verify proves simplification, which --no-simplify leaves out.")
    query = Query(
        directions=DIRECTIONS[direction],
        to_parameters=target == "parameters",
        operand=operand,
        output=output,
        exact=exact,
        simplify=not no_simplify,
        verify=verify,
    )
    import_module("indexing.ops")  # registers what is known of each opcode
    for module in reporter.modules(files):
        with reporter.reporting(module.filename):
            for error in broken(module):
                reporter.error(str(error))
        for instruction in chosen(reporter, module, names, opcodes, everything):
            place = f"{module.filename}: {instruction.computation.name}: {instruction.name}"
            with reporter.reporting(place):
                if lacking := query.beyond(instruction):
                    if not (everything or opcodes):
                        reporter.error(f"error[name]: {place} has no {lacking}")
                    continue
                for block in answer(instruction, query, module.filename):
                    for line in lines(block, notation, reporter.paint):
                        reporter.print(line)


def broken(module: Module) -> Iterator[HloError]:
    """What is wrong with instructions of `module`, asked about or not: they have no meaning.

    Unlike `hlo.verify`, attributes that nobody knows are let pass: a newer XLA may have them.
    """
    from hlo.bind import check_instruction

    return filter(None, map(check_instruction, module.instructions))


def chosen(
    reporter: Reporter,
    module: Module,
    names: Sequence[str],
    opcodes: Sequence[str],
    everything: bool,
) -> Iterator[Instruction]:
    """The instructions of `module` that are asked about, in text order; reports missing ones."""
    if not (names or opcodes or everything):
        yield module.entry.root
        return
    wanted = {name.removeprefix("%") for name in names}
    missing = set(wanted)
    for instruction in module.instructions:
        name = instruction.name
        spellings = {name, f"{instruction.computation.name}/{name}"} & wanted
        missing -= spellings
        if everything or spellings or instruction.opcode in opcodes:
            yield instruction
    for name in sorted(missing):
        reporter.error(
            f"error[name]: {module.filename}: no instruction is called `{name}`"
            + nearest(name, module)
        )


def nearest(name: str, module: Module) -> str:
    """A help line with the names in `module` that look like `name`; empty when none does."""
    from difflib import get_close_matches

    close = get_close_matches(name, dict.fromkeys(i.name for i in module.instructions))
    return f"\n  = help: did you mean {' or '.join(f'`{n}`' for n in close)}?" if close else ""


@cli.command()
@click.argument("maps", metavar="[MAP]...", nargs=-1)
@click.option("--verify", is_flag=True, help="Prove that each simplified map equals the original.")
@click.option("--explain", is_flag=True, help="Show the steps that led there, too.")
@click.option("--format", "notation", default="text", show_default=True, type=MAP_FORMATS)
@click.pass_obj
def simplify(
    reporter: Reporter, maps: Sequence[str], verify: bool, explain: bool, notation: str
) -> None:
    """Print each MAP simplified; without MAP, the maps on standard input, one a line."""
    from indexing.simplify import Rewrite

    source = "<map>" if maps else "<stdin>"
    for line, text in enumerate(maps or sys.stdin, 1):
        if text.strip():
            with reporter.reporting(f"{source}:{line}"):
                found = read_map(text, source, 1 if maps else line)
                trace: list[Rewrite] = []
                simple = found.simplify(certify=verify, trace=trace if explain else None)
                show_map(reporter, simple, notation)
                for rewrite in trace:
                    reporter.print(f"  {rewrite.law}: {rewrite.after}")


@cli.command()
@click.argument("first")
@click.argument("second")
@click.option("--no-simplify", is_flag=True, help="Show the map as it was composed.")
@click.option("--verify", is_flag=True, help="Prove that the simplified map equals the original.")
@click.option("--format", "notation", default="text", show_default=True, type=MAP_FORMATS)
@click.pass_obj
def compose(
    reporter: Reporter, first: str, second: str, no_simplify: bool, verify: bool, notation: str
) -> None:
    """Print the map x -> SECOND(FIRST(x)), simplified."""

    with reporter.reporting("compose"):
        before, after = read_map(first), read_map(second)
        try:
            composed = before.then(after)
        except ValueError as error:  # the spaces differ
            reporter.error(f"error[compose]: {error}")
            return
        show_map(reporter, composed if no_simplify else composed.simplify(certify=verify), notation)


def read_map(text: str, source: str = "<map>", line: int = 1) -> IndexingMap:
    """The map that `text` spells, which stands on `line` of `source`."""
    import indexing
    from hlo.source import HloError

    try:
        return indexing.parse_map(text, source)
    except HloError:
        if line == 1:
            raise
    return indexing.parse_map("\n" * (line - 1) + text, source)  # fails again, in the right place


def show_map(reporter: Reporter, found: IndexingMap, notation: str) -> None:
    """Print one map on one line."""
    from indexing.report import NOTATIONS

    reporter.print(NOTATIONS[notation](found))


@cli.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.pass_obj
def check(reporter: Reporter, files: Sequence[str]) -> None:
    """Check syntax, attributes and shapes of each FILE; report every error with its place."""
    import hlo

    import_module("indexing.ops")  # registers what is known of each opcode
    for module in reporter.modules(files):
        with reporter.reporting(module.filename):
            errors = hlo.verify(module)
            for error in errors:
                reporter.error(str(error))
            size = sum(1 for _ in module.instructions)
            outcome = counted(len(errors), "error") if errors else "ok"
            reporter.print(f"{module.filename}: {outcome}, {counted(size, 'instruction')}")


@cli.command()
@click.option(
    "--format",
    "notation",
    default="text",
    show_default=True,
    type=click.Choice(["text", "json", "markdown"]),
)
@click.pass_obj
def ops(reporter: Reporter, notation: str) -> None:
    """List the declared ops: what each computes, its attributes, its rules, and what is known."""
    from indexing.op_table import op_lines

    for line in op_lines(notation):
        reporter.print(line)


def counted(number: int, noun: str) -> str:
    """`number` with its noun.

    >>> counted(1, "error"), counted(2, "error")
    ('1 error', '2 errors')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and end the process with its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # whatever the terminal's encoding is
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run the command; its exit status."""
    try:
        with cli.make_context("hlo-indexing", list(arguments)) as context:
            reporter = context.ensure_object(Reporter)
            with reporter.reporting("hlo-indexing"):
                cli.invoke(context)
            sys.stdout.flush()
            return 1 if reporter.failed else 0
    except click.exceptions.Exit as wish:
        return wish.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return 130
    except BrokenPipeError:
        # Nobody reads on: what is still buffered must not complain when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


if __name__ == "__main__":
    main()

"""``hlo-indexing check``: errors in modules, with their source locations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import click

from hlo.text.names import counted_noun
from indexing.cli.assignment_option import assignment_option, load_assignment
from indexing.cli.corpus import Corpus
from indexing.cli.corpus_options import corpus_options
from indexing.cli.options import (
    files_argument,
    format_option,
    limit_option,
    max_input_size_option,
)
from indexing.cli.progress import Bar
from indexing.cli.reporter import Reporter
from indexing.cli.selected import did_you_mean
from indexing.cli.tasks import Task, WholeFiles, answer_files
from indexing.cli.terminals import error_width

if TYPE_CHECKING:
    from hlo import HloError
    from hlo.modules.module import Instruction, Module
    from indexing.equivalence.shared_memory import SharedMemory

DEFAULT_ROWS = 12


@click.command("check")
@files_argument
@click.option(
    "--in-place",
    is_flag=True,
    help="Also check that results in the memory of operands do not overwrite what is still read",
)
@limit_option(
    f"With --in-place: print at most N results and pairs; by default {DEFAULT_ROWS}, in JSON all"
)
@assignment_option
@max_input_size_option
@format_option(click.Choice(["text", "json"]))
@corpus_options
@click.pass_obj
def command(
    reporter: Reporter,
    corpus: Corpus,
    in_place: bool,
    limit: int | None,
    assignment: str | None,
    notation: str,
) -> None:
    """Verify the syntax, attributes and shapes of each FILE.

    A FILE is HLO text, a protobuf, StableHLO, or a folder of them, such as dumps of
    XLA; `-` is standard input. Report every error of a module that parses, and the
    first error of any other, with its source location. `ops OPCODE` describes the constraints of an
    op, such as C1.

    An unknown opcode is not an error: a warning on stderr gives its first location. Neither is a
    sharding among the frontend attributes that does not fit the array: a warning shows it, and
    the sharding is ignored.

    With --in-place, results that are written into the memory of an operand are checked and listed:
    updates of slices and scatters, and results that attributes or the header of a scheduled module
    alias with operands. An element that is read after its place is overwritten is an error. If XLA
    dumped its buffer assignment beside FILE, or with --assignment, so are all arrays that share
    memory in it.

    JSON has an object for each module, with its errors, its warnings and unknown opcodes.

    \b
    Examples:
      hlo-indexing check m.hlo
      hlo-indexing check *.hlo --quiet
      hlo-indexing check dumps --stage before_optimizations
      hlo-indexing check m.hlo --in-place
      hlo-indexing check dumps/*after_optimizations.txt --in-place --limit 99
    """
    for option, value in (("--assignment", assignment), ("--limit", limit)):
        if value is not None and not in_place:
            raise click.UsageError(f"{option} requires --in-place")
    question = CheckQuestion(notation, in_place, limit or DEFAULT_ROWS, assignment)
    answer_files(reporter, corpus, question)


@dataclass(frozen=True, slots=True)
class CheckQuestion(WholeFiles):
    """The errors of each module.

    Attributes:
        notation: the output format.
        in_place: also check results in the memory of operands.
        limit: the number of results and pairs in text.
        assignment: the file with XLA's buffer assignment; None for the one beside the module.
    """

    notation: str
    in_place: bool = False
    limit: int = DEFAULT_ROWS
    assignment: str | None = None

    def answer(self, reporter: Reporter, task: Task, bar: Bar) -> None:
        """Print the errors of each module of a file."""
        import_module("indexing.ops")  # registers the ops
        bar.hide()
        if self.notation == "json":
            check_as_json(reporter, task, self)
        else:
            check_as_text(reporter, task, self)

    def shared(self, module: Module, errors: Sequence[HloError]) -> SharedMemory | None:
        """Return what is decided about memory that is written in place; None if not asked."""
        if not self.in_place:
            return None
        from indexing.equivalence.shared_memory import SharedMemory, check_in_place

        if errors:
            return SharedMemory()
        return check_in_place(module, load_assignment(module, self.assignment))


def check_as_text(reporter: Reporter, task: Task, question: CheckQuestion) -> None:
    """Report the errors of each module of a file, and print their number."""
    from hlo import verify
    from hlo.modules.shardings import sharding_warnings
    from indexing.views.in_place_lines import in_place_lines

    for module in task.modules(reporter):
        with reporter.reporting(module.filename):
            errors = verify(module)
            shared = question.shared(module, errors)
            errors = [*errors, *(shared.errors if shared else ())]
            for error in errors:
                reporter.hlo_error(error)
            for ignored in sharding_warnings(module):
                for line in warning_lines(ignored.error, error_width()):
                    reporter.note(line)
            for line in unchecked_warnings(module):
                reporter.note(line)
            size = reporter.count_instructions(module)
            outcome = counted_noun(len(errors), "error") if errors else "ok"
            lines = [f"{module.filename}: {outcome}, {counted_noun(size, 'instruction')}"]
            if shared is not None:
                lines += in_place_lines(shared, question.limit)
            reporter.print(*lines)


def check_as_json(reporter: Reporter, task: Task, question: CheckQuestion) -> None:
    """Print the errors of each module of a file as JSON."""
    from hlo import HloError, verify
    from hlo.modules.shardings import sharding_warnings
    from hlo.ops.op import OPS
    from hlo.text.names import similar
    from indexing.views.command_records import check_json

    with reporter.reporting(task.file):
        try:
            modules = task.load()
        except HloError as error:
            _count_errors(reporter, [error])
            reporter.print(check_json(error.span.source.filename, None, [error]))
            return
        for module in modules:
            errors = verify(module)
            shared = question.shared(module, errors)
            errors = [*errors, *(shared.errors if shared else ())]
            reporter.count_instructions(module)
            _count_errors(reporter, errors)
            unknown = [(each, similar(each.opcode, OPS)) for each in first_unregistered(module)]
            warnings = sharding_warnings(module)
            reporter.print(check_json(module.filename, module, errors, unknown, warnings, shared))


def _count_errors(reporter: Reporter, errors: Sequence[HloError]) -> None:
    """Count errors that are printed as JSON."""
    reporter.failed |= bool(errors)
    for error in errors:
        reporter.count_error(str(error))


def warning_lines(error: HloError, width: int | None) -> list[str]:
    """Return a fault that is ignored as the lines of a warning, with its place."""
    first, *others = error.lines(width)
    return [f"warning{first.removeprefix('error')}", *others]


def unchecked_warnings(module: Module) -> Iterator[str]:
    """Yield the lines of a warning for each opcode of a module that is not registered."""
    from hlo.modules.bind import why_unsupported
    from hlo.ops.op import OPS

    for instruction in first_unregistered(module):
        opcode = instruction.opcode
        reason = why_unsupported(instruction)
        message = f"{reason or f'unknown opcode `{opcode}`'}: `{instruction.name}` is not checked"
        yield f"warning: {instruction.span.place()}: {message}"
        if not reason:
            yield from did_you_mean(opcode, OPS.keys() - {opcode})


def first_unregistered(module: Module) -> list[Instruction]:
    """Return the first instruction with each opcode that is not registered."""
    from hlo.modules.bind import op_class

    first: dict[str, Instruction] = {}
    for instruction in module.instructions:
        if instruction.opcode not in first and op_class(instruction) is None:
            first[instruction.opcode] = instruction
    return list(first.values())

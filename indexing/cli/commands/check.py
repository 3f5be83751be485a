"""``hlo-indexing check``: errors in modules, with their source locations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import click

from indexing.cli.options import max_input_size_option
from indexing.cli.printing import did_you_mean
from indexing.cli.reporter import Reporter, counted

if TYPE_CHECKING:
    from hlo.modules.module import Instruction, Module


@click.command("check")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@max_input_size_option
@click.pass_obj
def command(reporter: Reporter, files: Sequence[str]) -> None:
    """Verify the syntax, attributes and shapes of each FILE.

    A FILE is HLO text, a protobuf (.pb) or StableHLO (.mlir); `-` is standard input. Report every
    error of a module that parses, and the first error of any other, with its source location.
    `ops OPCODE` describes the constraints of an op, such as C1.

    An unknown opcode is not an error: a warning on stderr gives its first location.
    """
    import hlo

    import_module("indexing.ops")  # registers the ops
    for module in reporter.modules(files):
        with reporter.reporting(module.filename):
            errors = hlo.verify(module)
            for error in errors:
                reporter.hlo_error(error)
            for line in unchecked(module):
                reporter.note(line)
            size = sum(1 for _ in module.instructions)
            outcome = counted(len(errors), "error") if errors else "ok"
            reporter.print(f"{module.filename}: {outcome}, {counted(size, 'instruction')}")


def unchecked(module: Module) -> Iterator[str]:
    """Yield the lines of a warning for each opcode of a module that is not registered."""
    from hlo.modules.bind import op_class
    from hlo.ops.op import OPS

    first: dict[str, Instruction] = {}
    for instruction in module.instructions:
        if instruction.opcode not in first and op_class(instruction) is None:
            first[instruction.opcode] = instruction
    for opcode, instruction in first.items():
        message = f"unknown opcode `{opcode}`: `{instruction.name}` is not checked"
        yield f"warning: {instruction.span.place()}: {message}"
        yield from did_you_mean(opcode, OPS)

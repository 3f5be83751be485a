"""``hlo-indexing check``: errors in modules, with their source locations."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import click

from indexing.cli.options import max_input_size_option
from indexing.cli.reporter import Reporter, counted


@click.command("check")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@max_input_size_option
@click.pass_obj
def command(reporter: Reporter, files: Sequence[str]) -> None:
    """Verify the syntax, attributes and shapes of each FILE, HLO text or a protobuf (.pb).

    Report every error of a module that parses, and the first error of any other, with its source
    location. `-` is standard input. `ops OPCODE` describes the constraints of an op, such as C1.
    """
    import hlo

    import_module("indexing.ops")  # registers the ops
    for module in reporter.modules(files):
        with reporter.reporting(module.filename):
            errors = hlo.verify(module)
            for error in errors:
                reporter.hlo_error(error)
            size = sum(1 for _ in module.instructions)
            outcome = counted(len(errors), "error") if errors else "ok"
            reporter.print(f"{module.filename}: {outcome}, {counted(size, 'instruction')}")

"""The options that select instructions beside `--instruction`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from indexing.cli.completion import complete_instructions, complete_opcodes
from indexing.cli.options import F, PatternText, gather_options, limit_option, with_options

if TYPE_CHECKING:
    from indexing.views.selection import Selection

_OPCODE = click.option(
    "--opcode",
    "opcodes",
    metavar="OPCODE",
    multiple=True,
    type=PatternText(),
    shell_complete=complete_opcodes,
    help="Select every instruction with this opcode, a glob or /regex/; may be repeated",
)
_READS = click.option(
    "--reads",
    metavar="NAME",
    multiple=True,
    type=PatternText(),
    shell_complete=complete_instructions,
    help="Only instructions that read the value of NAME, an instruction or the argument "
    "of a JAX function, also through tuples, loops and calls; may be repeated",
)
_OP_NAME = click.option(
    "--op-name",
    "op_names",
    metavar="PATTERN",
    multiple=True,
    type=PatternText(),
    help="Only instructions whose metadata has this op_name, a glob or /regex/; may be repeated",
)
_SORT = click.option(
    "--sort",
    "order",
    type=click.Choice(["name", "bytes", "elements"]),
    help="Order the instructions of each file by name, or with the largest result first",
)
_LIMIT = limit_option("Print at most N instructions of each file")


def kind_option(command: F) -> F:
    """The option ``--kind``, whose value is the argument `kinds`."""
    from indexing.views.access_kinds import ACCESS_KINDS

    return click.option(
        "--kind",
        "kinds",
        multiple=True,
        type=click.Choice(list(ACCESS_KINDS)),
        help="Only instructions with a map of this kind; may be repeated",
    )(command)


listing_options = [_OPCODE, _READS, _OP_NAME, kind_option, _SORT, _LIMIT]
"""The options of `ls`."""


def _selection_class() -> type[Selection]:
    from indexing.views.selection import Selection

    return Selection


def selection_options(command: F) -> F:
    """The options that select instructions with ``--instruction``: the argument `selection`."""
    options = [
        *(_OPCODE, _READS, _OP_NAME),
        kind_option,
        click.option(
            "--all",
            "everything",
            is_flag=True,
            help="Select every instruction of every computation",
        ),
        *(_SORT, _LIMIT),
    ]
    return with_options(gather_options("selection", _selection_class)(command), options)

"""``hlo-indexing maps``: the maps of modules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import click

from indexing.commands.reporter import Reporter

if TYPE_CHECKING:
    from hlo import HloError
    from hlo.module import Instruction, Module

FORMATS = click.Choice(["text", "json", "isl", "mlir", "latex"])


@click.command("maps")
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
def command(
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

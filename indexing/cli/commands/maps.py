"""``hlo-indexing maps``: the maps of modules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from indexing.cli.printing import Request, answer_all, report_missing
from indexing.cli.progress import Bar
from indexing.cli.reporter import Reporter, counted

if TYPE_CHECKING:
    pass

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
@click.option("--explain", is_flag=True, help="Show below each map which law changed what.")
@click.option("--format", "notation", default="text", show_default=True, type=FORMATS)
@click.option(
    "--jobs",
    "-j",
    metavar="N",
    type=click.IntRange(min=1),
    default=1,
    help="Spread files and computations over N processes; the output is the same.",
)
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
    explain: bool,
    notation: str,
    jobs: int,
) -> None:
    """Print indexing maps of the modules in FILE... (`-` is standard input).

    Without --instruction, --opcode or --all, answers for the root of the ENTRY computation. An
    instruction with several outputs is answered for each; operands that only other outputs read
    are left out there. With --to parameters, answers for several instructions leave out the
    parameters that are not read.
    """
    from indexing.views.report import DIRECTIONS, Query

    if target == "parameters" and direction != "output-to-input":
        raise click.UsageError("--to parameters answers output-to-input only.")
    if verify and no_simplify:
        raise click.UsageError("--verify proves simplification, which --no-simplify leaves out.")
    if explain and no_simplify:
        raise click.UsageError("--explain tells of simplification, which --no-simplify leaves out.")
    if explain and jobs > 1:
        raise click.UsageError("--explain records in one process: leave out --jobs.")
    query = Query(
        directions=DIRECTIONS[direction],
        to_parameters=target == "parameters",
        operand=operand,
        output_id=output,
        exact=exact,
        simplify=not no_simplify,
        verify=verify,
        explain=explain,
    )
    request = Request(query, tuple(names), tuple(opcodes), everything, notation)
    with Bar() as bar:
        if jobs > 1:
            from indexing.cli.parallel import spread

            proved = spread(reporter, files, request, jobs, bar)
        else:
            proved = answer_here(reporter, files, request, bar)
    if verify:
        reporter.note(
            f"verified: {counted(proved['proved'], 'simplified map')} proved equal to what was "
            f"composed, {proved['needless']} needed no simplification"
        )


def answer_here(
    reporter: Reporter, files: Sequence[str], request: Request, bar: Bar
) -> Counter[str]:
    """Print the answers for `files`, found in this process; what was proved on the way."""
    from indexing.maps.certificate import proofs
    from indexing.maps.explanation import explained

    before = proofs()
    bar.at("reading", 0)
    with explained() if request.query.explain else nullcontext():
        for module in reporter.modules(files):
            answer_all(reporter, module, list(module.computations.values()), request, bar)
            report_missing(reporter, module, request.names)
    return proofs() - before

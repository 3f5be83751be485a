"""``hlo-indexing maps``: the maps of modules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from typing import TYPE_CHECKING

import click

from indexing.cli.progress import Bar
from indexing.cli.reporter import Reporter, counted

if TYPE_CHECKING:
    from hlo import HloError
    from hlo.modules.module import Computation, Instruction, Module
    from indexing.views.report import Block, Query

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
        output=output,
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


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked about which instructions, and how the answers are written."""

    query: Query
    names: tuple[str, ...]
    opcodes: tuple[str, ...]
    everything: bool
    notation: str

    @property
    def is_one(self) -> bool:
        """The root of ENTRY alone is asked about."""
        return not (self.names or self.opcodes or self.everything)


def answer_all(
    reporter: Reporter,
    module: Module,
    computations: Sequence[Computation],
    request: Request,
    bar: Bar,
) -> None:
    """Print what is asked about instructions of `computations`, and what is wrong with them."""
    from indexing.views.report import lines

    import_module("indexing.ops")  # registers what is known of each opcode
    with reporter.reporting(module.filename):
        for error in broken(computations):
            reporter.error(str(error))
    total, done = sum(map(len, computations)), 0
    for computation, chosen in groupby(
        wanted(module, computations, request), lambda i: i.computation
    ):
        for block in answers(reporter, module, computation, list(chosen), request):
            bar.at(f"{module.filename}: {computation.name}", done, total)
            bar.make_way()
            with reporter.reporting(f"{block.file}: {block.computation}: {block.instruction}"):
                for line in lines(block, request.notation, reporter.paint):
                    reporter.print(line)
        done += len(computation)


def answers(
    reporter: Reporter,
    module: Module,
    computation: Computation,
    instructions: Sequence[Instruction],
    request: Request,
) -> Iterator[Block]:
    """The answers for some instructions of a computation."""
    from indexing.views.report import answer, answers_to_parameters

    query = request.query
    if query.to_parameters and len(instructions) > 1 and is_sound(module):
        with reporter.reporting(f"{module.filename}: {computation.name}"):
            asked = set(instructions)
            yield from answers_to_parameters(computation, asked, query, module.filename)
        return
    for instruction in instructions:
        place = f"{module.filename}: {computation.name}: {instruction.name}"
        with reporter.reporting(place):
            if lacking := query.beyond(instruction):
                if not (request.everything or request.opcodes):
                    reporter.error(f"error[name]: {place} has no {lacking}")
                continue
            yield from answer(instruction, query, module.filename)


def broken(computations: Sequence[Computation]) -> Iterator[HloError]:
    """What is wrong with instructions, asked about or not: they have no meaning.

    Unlike `hlo.verify`, attributes that nobody knows are let pass: a newer XLA may have them.
    """
    from indexing.dataflow.edges import fault_of

    for computation in computations:
        yield from filter(None, map(fault_of, computation.instructions))


def is_sound(module: Module) -> bool:
    """No instruction is broken, so that all of a computation can be answered in one sweep."""
    return module.remembered(is_sound, lambda: not any(broken(list(module.computations.values()))))


def wanted(
    module: Module, computations: Sequence[Computation], request: Request
) -> Iterator[Instruction]:
    """The instructions of `computations` that are asked about, in text order."""
    if request.is_one:
        if module.entry in computations:
            yield module.entry.root
        return
    names = {name.removeprefix("%") for name in request.names}
    for computation in computations:
        for instruction in computation.instructions:
            if (
                request.everything
                or instruction.opcode in request.opcodes
                or (names and not names.isdisjoint(spellings(instruction)))
            ):
                yield instruction


def spellings(instruction: Instruction) -> tuple[str, str]:
    """How an instruction may be called: NAME, or COMPUTATION/NAME."""
    return instruction.name, f"{instruction.computation.name}/{instruction.name}"


def report_missing(reporter: Reporter, module: Module, names: Sequence[str]) -> None:
    """Report the names that no instruction of `module` has."""
    missing = {name.removeprefix("%") for name in names}
    if missing:
        missing.difference_update(*map(spellings, module.instructions))
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

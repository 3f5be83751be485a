"""``hlo-indexing validate``: maps against kernels, and modules against XLA."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import click

from indexing.cli.reporter import Reporter

if TYPE_CHECKING:
    from hlo.modules.module import Instruction, Module
    from indexing.codegen.validation import Report

MOST = 1 << 20


@click.command("validate")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--instruction",
    "-i",
    "names",
    metavar="NAME",
    multiple=True,
    help="Only this instruction, NAME or COMPUTATION/NAME. May be repeated.",
)
@click.option(
    "--seed", metavar="N", default=0, show_default=True, type=int, help="Of random operands."
)
@click.option(
    "--most",
    metavar="N",
    default=MOST,
    show_default=True,
    type=click.IntRange(min=1),
    help="Skip instructions with an array of more elements.",
)
@click.option("--no-xla", is_flag=True, help="Leave out the comparison with XLA.")
@click.pass_obj
def command(
    reporter: Reporter,
    files: Sequence[str],
    names: Sequence[str],
    seed: int,
    most: int,
    no_xla: bool,
) -> None:
    """Compute every instruction and every fusion in FILE... from its maps, and compare.

    Operands are random. The maps are checked as loop nests, in NumPy and as loops of Python,
    against the op's kernel; and the kernel is poked: when one element of an operand changes, only
    what needs it by the maps may move. The entry computation is compared with XLA, where jaxlib is
    installed. What is not checked is said, and why. Ends with status 1 if something is wrong.
    """
    import_module("indexing.ops")  # registers what is known of each opcode
    for module in reporter.modules(files):
        if not reporter.is_sound(module):
            continue
        counts: Counter[str] = Counter()
        rows: list[tuple[str, ...]] = []
        for instruction in _chosen(reporter, module, names):
            place = f"{module.filename}: {instruction.computation.name}: {instruction.name}"
            with reporter.reporting(place):
                from indexing.codegen.validation import validated

                report = validated(instruction, seed, most)
                counts[report.status] += 1
                rows += _rows(reporter, report)
        if not (names or no_xla):
            with reporter.reporting(module.filename):
                from indexing.codegen.whole_modules import against_xla

                report = against_xla(module, seed, most * 16)
                counts[report.status] += 1
                rows += _rows(reporter, report)
        _show(reporter, module, rows)
        summary = ", ".join(f"{counts[status]} {status}" for status in ("ok", "skipped", "wrong"))
        reporter.print(f"{module.filename}: {summary}")


def _chosen(reporter: Reporter, module: Module, names: Sequence[str]) -> Iterator[Instruction]:
    """What is checked of a module, in text order; names that nothing has are reported."""
    from indexing.codegen.validation import is_checked

    missing = {name.removeprefix("%") for name in names}
    wanted = set(missing)
    for instruction in module.instructions:
        spellings = {instruction.name, f"{instruction.computation.name}/{instruction.name}"}
        if wanted:
            missing -= spellings
            if spellings & wanted:
                yield instruction
        elif is_checked(instruction):
            yield instruction
    for name in sorted(missing):
        reporter.error(f"error[name]: {module.filename}: no instruction is called `{name}`")


def _rows(reporter: Reporter, report: Report) -> Iterator[tuple[str, ...]]:
    """The lines of one instruction: what was right and what was not checked, or what is wrong."""
    instruction = report.instruction
    place = instruction.computation.name, instruction.name, instruction.opcode
    skipped = [
        f"{finding.check} skipped: {detail}"
        for finding in report.findings
        if finding.status == "skipped"
        for detail in finding.details
    ]
    details = "; ".join(dict.fromkeys(skipped))
    if report.status != "wrong":
        yield report.status, *place, report.checks or "nothing", details
        return
    reporter.failed = True
    for finding in dict.fromkeys(report.findings):
        if finding.status == "wrong":
            for detail in finding.details:
                yield "wrong", *place, finding.check, detail


def _show(reporter: Reporter, module: Module, rows: Sequence[tuple[str, ...]]) -> None:
    """A table on a terminal; elsewhere a line for each row, the same wherever it goes."""
    if not reporter.coloured:
        for status, computation, name, opcode, check, details in rows:
            place = ": ".join(filter(None, [module.filename, computation, name]))
            text = f"{status}: {place}: {opcode}: {check}"
            reporter.print(f"{text}: {details}" if details else text)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=module.filename)
    for heading in ("", "computation", "instruction", "opcode", "check", "details"):
        table.add_column(heading, overflow="fold")
    styles = {"ok": "green", "wrong": "bold red", "skipped": "yellow"}
    for status, *cells in rows:
        table.add_row(status, *cells, style=styles[status])
    Console().print(table)

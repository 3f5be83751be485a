"""``hlo-indexing diff``: two modules compared."""

from __future__ import annotations

from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING

import click

from indexing.cli.colours import paint_outcomes
from indexing.cli.comparison_options import (
    ComparisonOptions,
    WorkOptions,
    comparison_options,
    work_options,
)
from indexing.cli.options import (
    exact_arithmetic_option,
    format_option,
    level_option,
    max_input_size_option,
)
from indexing.cli.parsed_text import ParsedText
from indexing.cli.paths import InputPath, OutputPath
from indexing.cli.reporter import Reporter
from indexing.cli.signals import TimeIsUp, ending_on_signals, time_limited

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hlo.modules.module import Module
    from indexing.equivalence.shares import OutputDivision
    from indexing.equivalence.verdicts import Differs, Level, Verdict
    from indexing.memory.movement.traffic_values import Traffic

DIFFERENT, UNDECIDED = 1, 3
"""Exit statuses of comparisons."""


class ParameterNumbers(ParsedText):
    """Pairs of parameter numbers, such as ``0=1,1=0``."""

    name = "numbers"

    def parse(self, text: str) -> dict[int, int]:
        numbers: dict[int, int] = {}
        for part in text.split(","):
            before, _, after = part.strip().partition("=")
            if not (before.isdecimal() and after.isdecimal()):
                raise ValueError(f"{part.strip()!r} is not a pair of parameter numbers such as 0=1")
            if int(before) in numbers:
                raise ValueError(f"parameter {before} of A is given twice")
            numbers[int(before)] = int(after)
        return numbers


@click.command("diff")
@click.argument("before", metavar="A", type=InputPath())
@click.argument("after", metavar="B", type=InputPath())
@level_option
@click.option(
    "--to",
    type=click.Choice(["parameters"]),
    default="parameters",
    show_default=True,
    expose_value=False,
    help="Compare the dependency of outputs on these arrays",
)
@click.option(
    "--parameters",
    metavar="I=J,...",
    type=ParameterNumbers(),
    help="Let parameter I of A correspond to parameter J of B, such as 0=1,1=0; by default equal "
    "numbers correspond",
)
@exact_arithmetic_option
@click.option(
    "--bitwise",
    is_flag=True,
    help="Exit with status 1 if the proof uses laws that are inexact for floats",
)
@click.option(
    "--allow-fewer",
    is_flag=True,
    help="At level reads, exit with status 0 also if B reads fewer elements",
)
@work_options
@comparison_options
@click.option(
    "--save-inputs",
    metavar="IN.npz",
    type=OutputPath(),
    help="Write the inputs on which the modules differ, for `hlo-indexing run --inputs IN.npz`",
)
@max_input_size_option
@format_option(click.Choice(["text", "json"]))
@click.pass_obj
def command(
    reporter: Reporter,
    before: str,
    after: str,
    level: Level,
    parameters: dict[int, int] | None,
    exact_arithmetic: bool,
    bitwise: bool,
    allow_fewer: bool,
    work: WorkOptions,
    shown: ComparisonOptions,
    save_inputs: str | None,
    notation: str,
) -> None:
    """Compare the HLO modules in files A and B, such as a module before and after a pass.

    Each file is HLO text, a protobuf or StableHLO; `-` is standard input.
    Parameters correspond by number, or as --parameters gives them; outputs correspond by leaf: a
    result `(x)` corresponds to a result `x`.

    \b
    Levels:
      reads    the parameter elements that each output element reads
      counts   the same, with the number of reads
      values   the formula of each output element
      numbers  the outputs of executions on several inputs: finds differences, proves nothing

    A proof at level values lists the laws that hold only for real numbers, with their uses;
    --exact-arithmetic rejects them. A difference is printed only if executions of both modules show
    it, with an output element, both values, and the chain of reads of each module, instruction by
    instruction. An undecided comparison is printed with the outputs that are proved equal, the
    strongest level that is proved, and the smallest subterms that are not. The last line has the
    bytes that both modules move.

    The first line has the verdict in words: `equal to the last bit`; `equal over the reals`, with
    laws that floats obey up to rounding; `differs`, also if outputs differ in number or shape;
    `differs by rounding`, if executions differ, but agree with f64 in place of bf16, f16 and f32;
    `undecided`. At other levels it is `equal reads`, `fewer reads` or `equal counts`.

    The exit status is 0 if the modules are proved equal, 1 if they differ, and 3 if the comparison
    is undecided. It is 1 for `fewer reads` without --allow-fewer, and for `equal over the reals`
    with --bitwise.

    --map lists which instruction became which: by values that are proved equal, by `op_name`, or by
    neighbours. --cost compares two compilations of one program, such as by two versions of XLA:
    executed instructions that correspond are one group.

    --jobs divides the outputs at level values among processes, if both modules together have at
    least 1,000 instructions. Each process computes what its outputs need. If an output is not
    proved equal, or if its proof needs a definition or a limit that all outputs share, the first
    process compares all outputs itself, and discards the work of the other processes. Outputs that
    need almost the same instructions are compared in one process.

    \b
    Examples:
      hlo-indexing diff before.hlo after.hlo
      hlo-indexing diff before.hlo after.hlo --map --cost
      hlo-indexing diff before.hlo after.hlo --level reads
      hlo-indexing diff before.hlo after.hlo --save-inputs in.npz
      hlo-indexing diff before.hlo after.hlo --exact-arithmetic --format json | jq .verdict
    """
    from indexing.equivalence.verdicts import Differs, Proved
    from indexing.views.verdict_tables import comparison_record, traffic_line, verdict_lines

    import_module("indexing.ops")  # registers the ops
    first, second = map(reporter.only_module, (before, after))
    if first is None or second is None or any(map(reporter.report_errors, [first, second])):
        return
    verdicts: list[Verdict] = []
    with ending_on_signals(), reporter.reporting(f"{before}, {after}"):
        numbers = parameters or {}
        divide = work.division(reporter, first, second, numbers)
        options = level, numbers, exact_arithmetic, work.time_limit, divide
        verdicts.append(_compare(first, second, *options))
    if not verdicts:
        return
    (verdict,) = verdicts
    moved = _traffic_of_both(reporter, [first, second])
    texts = chain(verdict_lines(verdict, level), [traffic_line(*moved)] if moved else ())
    record = comparison_record(before, after, verdict, moved)
    with reporter.reporting(f"{before}, {after}"):
        more = list(shown.lines(first, second, record, reporter.input_limit))
    lines = paint_outcomes(chain(texts, more), reporter.paint)
    reporter.print_answer(notation, lines, [record])
    if isinstance(verdict, Differs):
        if save_inputs is not None:
            _save(reporter, save_inputs, verdict)
        reporter.verdict = DIFFERENT
        return
    if save_inputs is not None:
        reporter.note(f"{save_inputs} is not written: no execution shows a difference")
    if not isinstance(verdict, Proved):
        reporter.verdict = UNDECIDED
    elif (verdict.fewer_reads and not allow_fewer) or (bitwise and verdict.laws):
        reporter.verdict = DIFFERENT


def _compare(
    before: Module,
    after: Module,
    level: Level,
    parameters: dict[int, int],
    exact_arithmetic: bool,
    time_limit: float | None,
    divide: OutputDivision | None,
) -> Verdict:
    """Return the verdict of a comparison, which a limit on its time may end."""
    from indexing.equivalence.compare import compare_programs
    from indexing.equivalence.values.engine import ValueComparison
    from indexing.equivalence.verdicts import Undecided

    formulas = ValueComparison(exact_arithmetic=exact_arithmetic, divide=divide)
    try:
        with time_limited(time_limit):
            return compare_programs(before, after, level, formulas, parameters)
    except TimeIsUp:
        reason = f"time: the comparison took more than {time_limit:g} s"
        equal = [number for number, result in enumerate(formulas.done) if result]
        return Undecided(reason, equal_outputs=tuple(equal) if level == "values" else ())


def _save(reporter: Reporter, path: str, verdict: Differs) -> None:
    from indexing.execution import archive

    with reporter.reporting(path):
        archive.write(path, archive.name_results(verdict.inputs, "in"))


def _traffic_of_both(reporter: Reporter, modules: Sequence[Module]) -> list[Traffic]:
    """Return the traffic of both modules; nothing if it cannot be counted."""
    from indexing.memory.movement.analysis import traffic

    moved: list[Traffic] = []
    for module in modules:
        with reporter.reporting(module.filename):
            moved.append(traffic(module))
    return moved if len(moved) == len(modules) else []

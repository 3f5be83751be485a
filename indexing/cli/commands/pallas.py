"""``hlo-indexing pallas``: the blocks of the Pallas calls of a function of JAX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from indexing.cli.commands.diff import DIFFERENT, UNDECIDED
from indexing.cli.options import ByteSize, format_option
from indexing.cli.parsed_text import ParsedText
from indexing.cli.reporter import Reporter
from indexing.frontends.function_names import EXAMPLE, FORM, is_function

if TYPE_CHECKING:
    from indexing.pallas.report import PallasReport
    from indexing.pallas.value_ranges import ValueRange


class RangesText(ParsedText):
    """Values of scalars and of symbolic sizes.

    >>> RangesText().convert("s: 0:9", None, None)
    {'s': (0, 9)}
    """

    name = "ranges"

    def parse(self, text: str) -> Mapping[str | int, ValueRange]:
        from indexing.pallas.value_ranges import parse_ranges

        return parse_ranges(text)


@click.command("pallas")
@click.argument("function", metavar="FUNCTION")
@click.option(
    "--shapes",
    metavar="SHAPES",
    default="",
    help="The arguments: shapes such as 'f32[8,128],s32[4]', or a list of JSON with pytrees of "
    "shapes; sizes may be symbols, such as 'f32[8*n,128]'",
)
@click.option(
    "--ranges",
    metavar="RANGES",
    type=RangesText(),
    help="Values of scalars and of symbolic sizes, from the first to the last, perhaps in steps: "
    "'s: 0:9, n: 8:4096:8'",
)
@click.option("--chip", metavar="CHIP", help="Compare VMEM with that of a TPU, such as v5e")
@click.option(
    "--vmem-limit",
    metavar="BYTES",
    type=ByteSize(),
    help="Compare VMEM with a limit, such as 16MiB",
)
@format_option(click.Choice(["text", "json"]))
@click.pass_obj
def command(
    reporter: Reporter,
    function: str,
    shapes: str,
    ranges: Mapping[str | int, ValueRange] | None,
    chip: str | None,
    vmem_limit: int | None,
    notation: str,
) -> None:
    """Check the blocks of the Pallas calls of a function of JAX, without running it.

    FUNCTION is jax:FILE.py:FUNCTION or jax:MODULE:FUNCTION. A process of its own traces it; each
    `pallas_call` in it, also within jit, scan, while, cond and custom derivatives, has a table with
    a row for each input and output. Every fault has a grid point and an element. The exit status
    is 1 if there is a fault, and 3 if an answer is `may`: it depends on values at run time.

    \b
    Columns:
      bounds    inside; padded by elements outside of the array; out; may
      copies    blocks copied in, or written back from an output: a block stays between steps
      bytes     the bytes of these copies, within the array
      covered   whether each element of an output is in a block
      visits    once; consecutive; apart, which loses values; overlap
      race      whether steps of a parallel dimension write one element
      hazard    whether a step reads an input that an earlier step has overwritten, by an alias

    \b
    Examples:
      hlo-indexing pallas jax:blocks.py:matvec --shapes 'f32[24,640],f32[1,640]'
      hlo-indexing pallas jax:blocks.py:pages --shapes 's32[4],f32[160,128]' --ranges 's: 0:9'
      hlo-indexing pallas jax:blocks.py:scale --shapes 'f32[n,128]' --ranges 'n: 8:4096:8'
    """
    if not is_function(function):
        raise click.UsageError(f"{function!r} is not a function: write {FORM}, such as {EXAMPLE}")
    report = _check_function(reporter, function, shapes, ranges or {}, chip, vmem_limit)
    if report is None:
        return
    from indexing.views.pallas_tables import report_json, report_lines

    reporter.print(*(report_json(report) if notation == "json" else report_lines(report)))
    reporter.verdict = DIFFERENT if report.faults else UNDECIDED if report.is_undecided else 0


def _check_function(
    reporter: Reporter,
    function: str,
    shapes: str,
    ranges: Mapping[str | int, ValueRange],
    chip: str | None,
    vmem_limit: int | None,
) -> PallasReport | None:
    """Trace and check a function, or report why it cannot be traced."""
    from indexing.devices.tpus import vmem_capacity
    from indexing.frontends.named_functions import shape_trees
    from indexing.pallas.process import CheckRequest, TracingError, check_elsewhere

    try:
        shape_trees(shapes, is_symbolic=True)
        if chip is not None:
            vmem_capacity(chip)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    try:
        return check_elsewhere(CheckRequest(function, shapes, ranges, chip, vmem_limit))
    except TracingError as error:
        first, *rest = str(error).splitlines()
        reporter.error(f"error[jax]: {function}: {first}", *[f"  {line}" for line in rest])
        return None

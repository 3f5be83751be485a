"""``hlo-indexing maps``: indexing maps of modules."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from indexing.cli.corpus import Corpus
from indexing.cli.corpus_options import corpus_options
from indexing.cli.integers import IntegerRange
from indexing.cli.map_question import MapQuestion
from indexing.cli.map_texts import MAP_ONLY
from indexing.cli.options import (
    PointText,
    assume_option,
    before_option,
    exact_option,
    files_argument,
    format_option,
    gather_options,
    instruction_option,
    max_input_size_option,
    operand_option,
    source_option,
    target_option,
    values_option,
    verify_option,
)
from indexing.cli.printing import (
    MAX_OUTPUTS,
    Request,
    note_unmarked,
    report_no_match,
    reported_valid,
)
from indexing.cli.reporter import Reporter
from indexing.cli.selection_options import selection_options
from indexing.cli.tasks import answer_files
from indexing.cli.unused_options import note_unused

if TYPE_CHECKING:
    from indexing.views.map_query import GivenValues
    from indexing.views.regions import Point
    from indexing.views.selection import Selection

FORMATS = click.Choice(["text", "json", *MAP_ONLY, "svg"])


@dataclass(frozen=True, slots=True)
class MapOptions:
    """The options of the maps of an instruction."""

    direction: str
    target: str
    operand: int | str | None
    point: Point | None
    values: GivenValues
    assume: tuple[str, ...]
    output: int | None
    all_outputs: bool
    exact: bool
    no_simplify: bool
    verify: bool
    explain: bool
    with_source: bool
    before: str | None


@click.command("maps")
@files_argument
@instruction_option
@selection_options
@click.option(
    "--direction",
    default="output-to-input",
    show_default=True,
    type=click.Choice(["output-to-input", "input-to-output", "both"]),
    help="Choose the direction of the maps",
)
@target_option(
    "Stop at the operands, or compose maps down to the parameters of the computation "
    "(output-to-input only)",
)
@operand_option(
    "Print only the maps of this operand, or of this parameter with --to parameters: its "
    "number, its name, a glob or /regex/",
)
@click.option(
    "--at",
    "point",
    metavar="INDICES",
    type=PointText(),
    help="Print the elements of each operand that one element or tile needs, such as 1,0:32,5; "
    "`:` is a whole dimension, `...` all others",
)
@values_option
@assume_option
@click.option(
    "--output",
    metavar="N",
    type=IntegerRange(min=0),
    help="Print only the maps of output N",
)
@click.option(
    "--all-outputs",
    is_flag=True,
    help=f"Print the ENTRY root as text even if it has more than {MAX_OUTPUTS} outputs",
)
@exact_option(
    "Return disjoint exact maps instead of one over-approximation where that is possible; "
    "other maps stay `may`",
)
@click.option("--no-simplify", is_flag=True, help="Do not simplify composed maps")
@verify_option
@click.option(
    "--explain",
    is_flag=True,
    help="List the simplification laws applied to each map, and why it over-approximates",
)
@source_option
@before_option
@max_input_size_option
@format_option(FORMATS)
@corpus_options
@gather_options("options", lambda: MapOptions)
@click.pass_obj
def command(
    reporter: Reporter,
    corpus: Corpus,
    selection: Selection,
    options: MapOptions,
    notation: str,
) -> None:
    """Print indexing maps of the modules in FILE...

    A FILE is HLO text, a protobuf, StableHLO, or a folder of them, such as dumps of
    XLA; `-` is standard input.

    Without options that select instructions, print the maps of the root of the ENTRY computation.
    --instruction and --opcode select instructions; --reads, --op-name and --kind restrict them, or
    all instructions. Each output of an instruction is listed separately; operands read only by
    other outputs are omitted. With --to parameters and several instructions, parameters that are
    not read are omitted as well. If instructions are selected by a pattern, only what their maps
    need is checked: `hlo-indexing check` verifies whole modules.

    On a terminal, text is aligned and wrapped: bounds of dimensions are printed once, and maps that
    another map of the operand contains are only counted. Elsewhere, each line is one record; see
    docs/python.md.

    The formats isl, mlir, xla, xla2025 and latex print the maps alone, one on each line. A note on
    standard error counts unknown accesses, which have no map, and maps whose grade is `may`. With
    --at, svg draws the elements that the tile needs, and how often it reads them.

    With --verify, a map that isl disproves is an error and is not printed. A map that isl cannot
    decide within its budget is printed, with a note on standard error, and the exit status is 0;
    maps composed from it are not proved either.

    With --set, runtime values that follow from integer parameters of the computation, such as a
    position or lengths, are substituted in its maps.

    \b
    Notation (docs/notation.md explains it in full):
      d0, s0, rt0     dimension, range variable (all its values), runtime value
      i0              range variable whose values are the iterations of a loop
      rt0 = NAME[..]  the element whose value is rt0, `clamped to` bounds;
                      with `if in`, nothing is read for other values of rt0
      may:            over-approximation: at most these elements; others are exact
      {1}             the leaf of a tuple-shaped operand
      KNOWN EMPTY     no element is read

    \b
    Kinds of maps (--kind):
      transposing     two dimensions are used in the opposite order
      windowed        a result adds a range variable to a dimension
      broadcasting    a dimension is unused: several elements need the same one
      reducing        a range variable is used: an element needs several
      runtime, may, unknown

    \b
    Examples:
      hlo-indexing maps m.hlo -i '*fusion*' --sort bytes --limit 3
      hlo-indexing maps m.hlo --reads "p['q']" --kind reducing
      hlo-indexing maps m.hlo -i dot.7 --at 0:32,5
      hlo-indexing maps m.hlo -i dot.7 --at 0:32,5 --format svg -o reads.svg
      hlo-indexing maps m.hlo --to parameters --set pos.1=5
      hlo-indexing maps after.hlo --all --source --before before.hlo
      hlo-indexing maps dumps --all --format json -o maps.jsonl --resume journal
    """
    from indexing.maps.explanation import explain_steps
    from indexing.views.map_query import DIRECTIONS_BY_OPTION, Query

    workers = corpus.workers
    _check_options(
        {
            "--to parameters": options.target == "parameters",
            "--all": selection.everything,
            "--assume": bool(options.assume),
            "--verify": options.verify,
            "--explain": options.explain,
            "--at": options.point is not None,
            "--source": options.with_source,
            "--before": options.before is not None,
            "--format svg": notation == "svg",
        },
        {
            "--direction input-to-output": options.direction == "input-to-output",
            "--direction both": options.direction == "both",
            "--instruction": bool(selection.names),
            "--opcode": bool(selection.opcodes),
            "--no-simplify": options.no_simplify,
            **{each: workers is not None and workers.option == each for each in ELSEWHERE},
            "--resume": corpus.journal is not None,
            **{f"--format {name}": notation == name for name in MAP_ONLY},
            "--explain": options.explain,
            "--verify": options.verify,
            "--source": options.with_source,
            "--sort": selection.order is not None,
            "--limit": selection.limit is not None,
            "--kind": bool(selection.kinds),
        },
    )
    if notation == "svg" and options.point is None:
        raise click.UsageError("--format svg draws the elements that a tile needs: it needs --at")
    if options.before is not None and not options.with_source:
        raise click.UsageError("--before adds lines of a program: it needs --source")
    before = None
    if options.before is not None:
        before = reporter.only_module(options.before)
        if before is None or not reported_valid(before, reporter):
            return
    query = Query(
        directions=DIRECTIONS_BY_OPTION[options.direction],
        to_parameters=options.target == "parameters",
        operand=options.operand,
        output_id=options.output,
        exact=options.exact,
        simplify=not options.no_simplify,
        verify=options.verify,
        explain=options.explain,
        source=options.with_source,
        before=before,
        values=options.values,
        assume=options.assume,
    )
    is_one_file = len(corpus.files) == 1
    request = Request(query, selection, notation, options.all_outputs, options.point, is_one_file)
    if notation == "svg":
        from indexing.cli.pictures import draw_maps

        draw_maps(reporter, corpus.files, request)
    else:
        with explain_steps() if options.explain else nullcontext():
            answer_files(reporter, corpus, MapQuestion(request))
    report_no_match(reporter, request)
    note_unmarked(reporter, notation)
    _note_unused_options(reporter, options)
    if options.verify:
        reporter.note_proofs(reporter.counts)


def _note_unused_options(reporter: Reporter, options: MapOptions) -> None:
    """Note values and assumptions that no map has used."""
    if not reporter.has_answer or options.direction == "input-to-output":
        return
    given = {"--set": bool(options.values), "--assume": bool(options.assume)}
    used = {option: reporter.counts[option] > 0 for option, is_given in given.items() if is_given}
    note_unused(reporter, used, options.target)


ELSEWHERE = ("--jobs", "--scheduler")
EXCLUDED = {
    "--to parameters": ["--direction input-to-output", "--direction both"],
    "--all": ["--instruction", "--opcode"],
    "--assume": ["--direction input-to-output"],
    "--verify": ["--no-simplify"],
    "--explain": ["--no-simplify", *ELSEWHERE, *[f"--format {name}" for name in MAP_ONLY]],
    "--at": ["--explain", *[f"--format {name}" for name in MAP_ONLY]],
    "--source": [f"--format {name}" for name in MAP_ONLY],
    "--before": ELSEWHERE,
    "--format svg": [
        *("--explain", *ELSEWHERE, "--resume", "--no-simplify", "--verify"),
        *("--source", "--sort", "--limit", "--kind"),
    ],
}
"""For each option, the options that it cannot be used with."""


def _check_options(given: Mapping[str, bool], others: Mapping[str, bool]) -> None:
    """Reject options that contradict each other."""
    for option, excluded in EXCLUDED.items():
        for other in excluded:
            if given[option] and others[other]:
                raise click.UsageError(f"{option} cannot be used with {other}")

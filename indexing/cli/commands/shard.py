"""``hlo-indexing shard``: splits of arrays over devices."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING

import click

from indexing.cli.completion import FilePath
from indexing.cli.options import format_option, instruction_option, max_input_size_option
from indexing.cli.reporter import Reporter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hlo.modules.module import Instruction, Module


@click.command("shard")
@click.argument("file", metavar="FILE", type=FilePath())
@instruction_option
@click.option(
    "--rule",
    "view",
    flag_value="rule",
    default=True,
    help="Print the sharding rule of each instruction, in the notation of Shardy",
)
@click.option(
    "--sbp",
    "view",
    flag_value="sbp",
    help="Print the signatures of instructions along one mesh axis: splits, broadcasts, partial "
    "values",
)
@click.option(
    "--shards",
    metavar="N",
    type=click.IntRange(min=2),
    help="Print the signatures for N shards, by default those for every number that divides the "
    "sizes",
)
@max_input_size_option
@format_option(click.Choice(["text", "json"]))
@click.pass_obj
def command(
    reporter: Reporter,
    file: str,
    names: tuple[str, ...],
    view: str,
    shards: int | None,
    notation: str,
) -> None:
    """Print how the arrays of an HLO module can be split over devices.

    FILE is HLO text, a protobuf (.pb) or StableHLO (.mlir); `-` is HLO text on standard input.

    With --rule: the factors that the dimensions of operands and results share, derived from the
    maps of the instruction. `([i, k], [k, j])->([i, j])` is the rule of a matrix product: a factor
    of a result passes through; along a `reduction` factor devices compute partial results; of a
    `need_replication` factor each device needs all values, of a `permutation` factor those of other
    devices. Without --instruction, the rules of all instructions of ENTRY are printed; with it,
    also the reasons for the kind of each factor.

    With --sbp: the states of operands and results in which devices along one mesh axis compute the
    results: `S(i)`, split along dimension i; `B`, the whole array on every device; `P(sum)`,
    partial values of which the sum is the array. A halo is the elements that a device needs from
    its neighbours. Where a device `needs its place`, its program depends on its number. Splits and
    partial sums of one operand that are in no signature are listed with an element that breaks
    them. Without --instruction, the root of ENTRY is chosen.

    \b
    Examples:
      hlo-indexing shard m.hlo --rule
      hlo-indexing shard m.hlo --rule -i ynn_fusion.3
      hlo-indexing shard m.hlo --rule -i 'ynn*' --format json | jq '{instruction, rule}'
      hlo-indexing shard m.hlo --sbp -i ynn_fusion.7
      hlo-indexing shard m.hlo --sbp --shards 4 -i ynn_fusion.7 --format json | jq .signatures
    """
    if shards is not None and view != "sbp":
        raise click.UsageError("--shards has no effect without --sbp")
    reporter.check_inputs([file])
    if view == "sbp":
        _print_signatures(reporter, file, names, shards, notation)
    else:
        _print_rules(reporter, file, names, notation)


def _print_rules(reporter: Reporter, file: str, names: tuple[str, ...], notation: str) -> None:
    from indexing.sharding.derived_rules import sharding_rule
    from indexing.views.sharding_tables import rule_lines, rule_records

    for module, instructions in _selected(reporter, file, names):
        rules = []
        for instruction in instructions:
            with reporter.reporting(_place(instruction)):
                rules.append((instruction, sharding_rule(instruction)))
        if notation == "json":
            for record in rule_records(module.filename, rules):
                reporter.print(json.dumps(record))
        else:
            for line in rule_lines(
                module.filename, rules, explain=bool(names), paint=reporter.paint
            ):
                reporter.print(line)


def _print_signatures(
    reporter: Reporter, file: str, names: tuple[str, ...], shards: int | None, notation: str
) -> None:
    from indexing.views.signature_tables import SignatureTable

    for module, instructions in _selected(reporter, file, names):
        for instruction in instructions if names else [module.entry.root]:
            with reporter.reporting(_place(instruction)):
                table = SignatureTable.of(module.filename, instruction, shards)
                if notation == "json":
                    reporter.print(json.dumps(table.record()))
                else:
                    for line in table.lines(reporter.paint):
                        reporter.print(line)


def _place(instruction: Instruction) -> str:
    computation = instruction.computation
    return f"{computation.module.filename}: {computation.name}: {instruction.name}"


def _selected(
    reporter: Reporter, file: str, names: tuple[str, ...]
) -> Iterator[tuple[Module, list[Instruction]]]:
    """Yield each module with the selected instructions, by default those of ENTRY that compute."""
    from indexing.cli.printing import note_matches, report_missed
    from indexing.views.selection import Selection
    from indexing.views.sharding_tables import computing

    import_module("indexing.ops")  # registers the ops
    selection = Selection(names)
    for module in reporter.modules([file], lazy=selection.is_partial):
        if names:
            yield module, selection.instructions(module, list(module.computations.values()))
        else:
            yield module, computing(module.entry.instructions)
        note_matches(reporter, module, selection.conditions, is_one_file=True)
    report_missed(reporter, selection.conditions, is_one_file=True)

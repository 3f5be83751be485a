"""``hlo-indexing shard``: plans of programs, and the splits of instructions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from indexing.cli.integers import IntegerRange
from indexing.cli.options import (
    ByteSize,
    format_option,
    gather_options,
    instruction_option,
    limit_option,
    max_input_size_option,
)
from indexing.cli.paths import InputPath
from indexing.cli.pictures import print_figures
from indexing.cli.reporter import Reporter
from indexing.cli.selected import place_of, selected_modules
from indexing.cli.sharding_options import MeshText, SpecText, parsed_out_specs, parsed_specs

if TYPE_CHECKING:
    from hlo.modules.module import Module
    from hlo.shardings.mesh import Mesh
    from hlo.shardings.sharding import Sharding
    from indexing.sharding.planning.given_specs import ShardingSpec
    from indexing.sharding.planning.plan import Plan
    from indexing.sharding.planning.stated_shardings import StatedShardings


MAX_PLANS: Final = 200
"""Default for the plans that a search makes, as of `indexing.best_shardings`."""

MAX_LISTED: Final = 8
"""Limit on the parameters that an error lists."""


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Limits of a search: the bytes that a device holds, the plans made, the choices printed."""

    memory_limit: int | None
    max_plans: int
    limit: int


@click.command("shard")
@click.argument("file", metavar="FILE", type=InputPath())
@click.option(
    "--mesh",
    metavar="AXES",
    type=MeshText(),
    help="Choose the mesh of devices: names and sizes of its axes, such as x=4,y=2",
)
@click.option(
    "--spec",
    "specs",
    metavar="NAME=SPEC",
    multiple=True,
    type=SpecText(),
    help="Split a parameter, by its name, that of its argument in JAX, such as p['q'], or p0, p1, "
    "...: for each dimension an axis, several axes in parentheses, or _, such as p0=x,_ or "
    "w=_,(x,y); may be repeated. The name of another instruction fixes the split of its result",
)
@click.option(
    "--out-spec",
    "out_specs",
    metavar="SPEC",
    multiple=True,
    help="Split the result: one SPEC for each of its arrays; `any` leaves the choice to the plan",
)
@click.option(
    "--search",
    is_flag=True,
    help="Search the splits of the other parameters for which devices send the fewest bytes",
)
@click.option(
    "--memory-limit",
    metavar="SIZE",
    type=ByteSize(),
    help="With --search, limit the bytes that a device holds, such as 80GiB",
)
@click.option(
    "--max-plans",
    metavar="N",
    type=IntegerRange(min=1),
    default=MAX_PLANS,
    show_default=True,
    help="With --search, make at most N plans",
)
@limit_option("With --search, print at most N choices", default=5)
@click.option(
    "--rule",
    is_flag=True,
    help="Print the sharding rule of each instruction, in the notation of Shardy",
)
@click.option(
    "--sbp",
    is_flag=True,
    help="Print the signatures of instructions along one mesh axis: splits, broadcasts, partial "
    "values",
)
@click.option(
    "--shards",
    metavar="N",
    type=IntegerRange(min=2),
    help="Print the signatures for N shards, by default those for every number that divides the "
    "sizes",
)
@instruction_option
@max_input_size_option
@format_option(click.Choice(["text", "json", "hlo", "svg"]))
@gather_options("limits", lambda: SearchLimits)
@click.pass_obj
def command(
    reporter: Reporter,
    file: str,
    mesh: Mesh | None,
    specs: tuple[tuple[str, str], ...],
    out_specs: tuple[str, ...],
    search: bool,
    rule: bool,
    sbp: bool,
    limits: SearchLimits,
    shards: int | None,
    names: tuple[str, ...],
    notation: str,
) -> None:
    """Split the program of an HLO module over a mesh of devices.

    FILE is HLO text, a protobuf or StableHLO; `-` is standard input.
    Calls and fusions of ENTRY are inlined. The splits of the parameters propagate along the
    sharding rules of the instructions. Between conflicting splits an estimated cost decides: the
    bytes that a device sends, and a hundredth of a byte for each operation and element. The table
    has the split of each instruction, and the collectives that it needs with the bytes that a
    device sends. Sizes that the shards do not divide are padded. Without --mesh, the mesh and the
    shardings are those that the module states: of parameters and results, by calls of `Sharding`,
    and in the attributes of Shardy; lines below the table give choices that send less. `--format
    hlo` prints the program that each device executes, `--format svg` draws the parts that devices
    hold.

    With --search: the splits of the parameters that --spec does not name are chosen. The table has
    the choices whose plans send the fewest bytes; ties are broken by the fewest bytes held.
    Replicated parameters send nothing; --memory-limit excludes choices that hold more.

    With --rule: the factors that the dimensions of operands and results share, in the notation of
    Shardy. `([i, k], [k, j])->([i, j])` is the rule of a matrix product: a factor of a result
    passes through; along a `reduction` factor devices compute partial results; of a
    `need_replication` factor each device needs all values, of a `permutation` factor those of other
    devices. Without --instruction, the rules of all instructions of ENTRY are printed; with it,
    also the reasons for the kind of each factor.

    With --sbp: the states of operands and results in which devices along one mesh axis compute the
    results: `S(i)`, split along dimension i; `B`, the whole array on every device; `P(sum)`,
    partial values whose sum is the array. A halo consists of the elements that a device needs from
    its neighbours. Where a device `needs its place`, its program depends on its number. Splits and
    partial sums of one operand that are in no signature are listed with an element that breaks
    them. Without --instruction, the root of ENTRY is chosen.

    \b
    Examples:
      hlo-indexing shard m.hlo --mesh x=2 --spec p0=_,x
      hlo-indexing shard m.hlo --mesh x=4,y=2 --spec x.1=y,_,_ --spec p0=_,x -i 'dot*'
      hlo-indexing shard m.hlo --mesh x=2 --spec p0=_,x --out-spec _,_,x -i 'dot*'
      hlo-indexing shard m.hlo --mesh x=2 --spec p0=_,x --format json | jq .bytes_sent
      hlo-indexing shard m.hlo --mesh x=2 --spec p0=_,x --format svg -o plan.svg
      hlo-indexing shard m.hlo --mesh x=2 --search --max-plans 9 --memory-limit 200KiB
      hlo-indexing shard m.hlo --rule
      hlo-indexing shard m.hlo --rule -i ynn_fusion.3
      hlo-indexing shard m.hlo --sbp -i ynn_fusion.7
      hlo-indexing shard m.hlo --sbp --shards 4 -i ynn_fusion.7 --format json | jq .signatures
    """
    view = _chosen_view(search=search, rule=rule, sbp=sbp)
    if shards is not None and view != "sbp":
        raise click.UsageError("--shards has no effect without --sbp")
    if limits.memory_limit is not None and view != "search":
        raise click.UsageError("--memory-limit has no effect without --search")
    if notation in ("hlo", "svg") and view is not None:
        raise click.UsageError(f"--format {notation} has no effect with --{view}")
    if view in ("rule", "sbp") and any((mesh, specs, out_specs)):
        raise click.UsageError(f"--mesh, --spec and --out-spec have no effect with --{view}")
    if view == "sbp":
        _print_signatures(reporter, file, names, shards, notation)
    elif view == "rule":
        _print_rules(reporter, file, names, notation)
    else:
        request = GivenPlan(mesh, specs, out_specs)
        if view == "search":
            _print_search(reporter, file, request, limits, notation)
        else:
            _print_plans(reporter, file, names, request, notation)


def _chosen_view(**flags: bool) -> str | None:
    """Return the name of the flag that is given, or None."""
    given = [name for name, is_given in flags.items() if is_given]
    if len(given) > 1:
        raise click.UsageError(f"--{given[0]} and --{given[1]} exclude each other")
    return given[0] if given else None


# ---------------------------------------------------------------- plans


class GivenPlan(NamedTuple):
    """The options of a plan, which may leave the mesh and shardings to the module."""

    mesh: Mesh | None
    specs: tuple[tuple[str, str], ...]
    out_specs: tuple[str, ...]

    def of_module(self, module: Module, *, searches: bool = False) -> PlanRequest:
        """Return the request for a module: what is not given is what its attributes state.

        Args:
            searches: leave the shardings of inner instructions free.
        """
        if self.mesh is not None:
            return PlanRequest.of(self.mesh, self.specs, self.out_specs)
        from indexing.sharding.planning.stated_shardings import stated_shardings

        stated = stated_shardings(module)
        if stated is None:
            raise click.UsageError(
                f"{module.filename} states no shardings over one mesh: pass --mesh, such as x=4"
            )
        given = PlanRequest.of(stated.mesh, self.specs, self.out_specs)
        if searches:
            return given._replace(out_specs=given.out_specs or list(stated.results))
        specs = stated.with_specs(given.specs, module.entry.parameters)
        out_specs = given.out_specs or list(stated.results)
        return PlanRequest(stated.mesh, specs, out_specs, stated)


class PlanRequest(NamedTuple):
    """The mesh of a plan, and the shardings that are given."""

    mesh: Mesh
    specs: Mapping[str, ShardingSpec]
    out_specs: list[Sharding | None] | None
    stated: StatedShardings | None = None  # what the module states, if no mesh is given

    @classmethod
    def of(
        cls, mesh: Mesh, specs: tuple[tuple[str, str], ...], out_specs: tuple[str, ...]
    ) -> PlanRequest:
        return cls(mesh, parsed_specs(specs, mesh), parsed_out_specs(out_specs, mesh))


def _print_plans(
    reporter: Reporter, file: str, names: tuple[str, ...], given: GivenPlan, notation: str
) -> None:
    from indexing.sharding.planning.sharded_programs import shard
    from indexing.views.better_shardings import better_lines
    from indexing.views.sharding_tables import plan_lines, plan_record

    import_module("indexing.ops")  # registers the ops
    for module in reporter.modules([file]):
        with reporter.reporting(module.filename), _report_spec_faults(reporter, module):
            request = given.of_module(module)
            plan = shard(module, request.mesh, request.specs, out_specs=request.out_specs)
            if notation == "svg":
                from indexing.drawing.plan_pictures import plan_figure

                print_figures(reporter, [plan_figure(plan)])
            elif notation == "hlo":
                reporter.print(*str(plan.module).rstrip().split("\n"))
            elif notation == "json":
                reporter.print(json.dumps(plan_record(module.filename, plan)))
            elif (shown := _names_shown(reporter, plan, names)) or not names:
                reporter.print(*plan_lines(module.filename, plan, shown, reporter.paint))
                if request.stated is not None:
                    reporter.print(*better_lines(module, request.stated, plan))


def _print_search(
    reporter: Reporter,
    file: str,
    given: GivenPlan,
    limits: SearchLimits,
    notation: str,
) -> None:
    from indexing.sharding.planning.search import best_shardings
    from indexing.views.sharding_tables import search_lines, search_record

    import_module("indexing.ops")  # registers the ops
    for module in reporter.modules([file]):
        with reporter.reporting(module.filename), _report_spec_faults(reporter, module):
            request = given.of_module(module, searches=True)
            best = best_shardings(
                module,
                request.mesh,
                specs=request.specs,
                out_specs=request.out_specs,
                memory_limit=limits.memory_limit,
                max_plans=limits.max_plans,
                keep=limits.limit,
            )
            lines = search_lines(module.filename, best)
            reporter.print_answer(notation, lines, [search_record(module, best)])


@contextmanager
def _report_spec_faults(reporter: Reporter, module: Module) -> Iterator[None]:
    """Report the spec of a parameter that does not exist, or that does not fit its array."""
    from hlo.text.names import UnknownName

    try:
        yield
    except UnknownName as error:
        names = [parameter.name for parameter in module.entry.parameters]
        rest = ", ..." if len(names) > MAX_LISTED else ""
        listed = ", ".join(names[:MAX_LISTED]) + rest
        reporter.error(
            f"error[name]: {module.filename}: --spec: {error}",
            f"  = help: the parameters are {listed or 'none'}",
        )
    except ValueError as error:
        reporter.error(f"error[sharding]: {module.filename}: {str(error).removeprefix('shard: ')}")


def _names_shown(reporter: Reporter, plan: Plan, names: tuple[str, ...]) -> set[str]:
    """Return the names of the selected instructions, by default all but constants."""
    from indexing.views.sharding_tables import planned_instructions

    planned = planned_instructions(plan)
    if not names:
        return {name for name, each in planned.items() if each.opcode != "constant"}
    ((_, selected),) = selected_modules(reporter, plan.program, names)
    return {name for name, each in planned.items() if each in selected}


# ---------------------------------------------------------------- rules and signatures


def _print_rules(reporter: Reporter, file: str, names: tuple[str, ...], notation: str) -> None:
    from indexing.sharding.rules.derived_rules import sharding_rule
    from indexing.views.sharding_tables import computing, rule_lines, rule_records

    for module, instructions in selected_modules(reporter, file, names):
        rules = []
        for instruction in instructions if names else computing(module.entry.instructions):
            with reporter.reporting(place_of(instruction)):
                rules.append((instruction, sharding_rule(instruction)))
        lines = rule_lines(module.filename, rules, explain=bool(names), paint=reporter.paint)
        reporter.print_answer(notation, lines, rule_records(rules))


def _print_signatures(
    reporter: Reporter, file: str, names: tuple[str, ...], shards: int | None, notation: str
) -> None:
    from indexing.views.signature_tables import SignatureTable

    for module, instructions in selected_modules(reporter, file, names):
        for instruction in instructions if names else [module.entry.root]:
            with reporter.reporting(place_of(instruction)):
                table = SignatureTable.of(instruction, shards)
                lines = table.lines(reporter.paint)
                reporter.print_answer(notation, lines, map(SignatureTable.record, [table]))

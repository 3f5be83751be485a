"""Sharding rules and plans as ``hlo-indexing shard`` prints them: tables, or JSON records.

`schemas/shard.json` is the JSON schema.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hlo.shapes.shape import AnyShape, Shape, leaves
from indexing.sharding.rules.sharding_rules import Factors, ShardingRule, factor_name
from indexing.views.map_tables import Paint, plain
from indexing.views.plans import plan_table, shardings_table
from indexing.views.records import SCHEMA_VERSION, instruction_record, shape_record
from indexing.views.tables import align_columns

if TYPE_CHECKING:
    from hlo.modules.module import Instruction, Module
    from hlo.shardings.sharding import Sharding
    from indexing.sharding.planning.plan import Plan, PlannedCollective
    from indexing.sharding.planning.search import BestShardings

Rules = Sequence[tuple["Instruction", ShardingRule]]
"""Instructions of one module, with their sharding rules."""


def view_record(instruction: Instruction, view: str) -> dict[str, Any]:
    """Return the keys that the records of all views have."""
    return {
        **instruction_record(instruction),
        "shape": shape_record(instruction.shape),
        "view": view,
        "schema_version": SCHEMA_VERSION,
    }


def rule_lines(file: str, rules: Rules, *, explain: bool, paint: Paint = plain) -> Iterator[str]:
    """Yield a table with a rule on each line for each computation.

    Args:
        file: the name of the file.
        rules: the rules of instructions.
        explain: print below each rule the reasons for the kinds of its factors.
        paint: colours a text.
    """
    for name in dict.fromkeys(instruction.computation.name for instruction, _ in rules):
        listed = [(i, rule) for i, rule in rules if i.computation.name == name]
        yield f"{file}: {name}"
        rows = [(paint(i.name, "name"), i.opcode, str(rule)) for i, rule in listed]
        for line, (_, rule) in zip(align_columns(rows), listed, strict=True):
            yield f"  {line}"
            if explain:
                yield from (f"    {reason}" for reason in rule.explain().splitlines())


def rule_records(rules: Rules) -> Iterator[dict[str, Any]]:
    """Yield a record for each rule."""
    for instruction, rule in rules:
        proofs = rule.proofs or ((),) * len(rule.factors)
        yield view_record(instruction, "rule") | {
            "rule": str(rule),
            "operands": [_names(dims) for dims in rule.operands],
            "results": [_names(dims) for dims in rule.results],
            "factors": [
                {
                    "name": factor_name(number),
                    "size": factor.size,
                    "kind": factor.kind,
                    "reduction": factor.reduction or None,
                    "masked": factor.is_masked,
                    "reasons": list(reasons),
                }
                for number, (factor, reasons) in enumerate(zip(rule.factors, proofs, strict=True))
            ],
        }


def _names(dims: Factors) -> list[list[str]]:
    """Return the names of the factors of each dimension of an array."""
    return [list(map(factor_name, numbers)) for numbers in dims]


def has_rule(instruction: Instruction) -> bool:
    """Return True for an instruction that computes: not a parameter, a constant or a tuple."""
    return instruction.opcode not in _WITHOUT_RULE


_WITHOUT_RULE = frozenset({"parameter", "constant", "tuple", "get-tuple-element"})


def computing(instructions: Iterable[Instruction]) -> list[Instruction]:
    """Return the instructions that have a sharding rule."""
    return [instruction for instruction in instructions if has_rule(instruction)]


# ---------------------------------------------------------------- plans


def plan_lines(file: str, plan: Plan, shown: Container[str], paint: Paint = plain) -> Iterator[str]:
    """Yield a heading, a table with a row for each instruction and collective, and notes.

    Args:
        file: the name of the file.
        plan: the plan.
        shown: the names of the instructions that have rows; collectives of others are left out.
        paint: colours a text.
    """
    table = plan_table(plan)
    yield f"{file}: {table.head}"
    rows: list[Sequence[object]] = []
    is_shown = False
    for name, *cells in table.rows:
        if name:  # the rows without a name belong to the one before
            is_shown = name in shown or name not in plan.specs
        if is_shown:
            rows.append((paint(str(name), "name") if name else "", *cells))
    yield from (f"  {line}" for line in replace(table, rows=rows).lines())


def plan_record(file: str, plan: Plan) -> dict[str, Any]:
    """Return the record of a plan."""
    instructions = []
    for name, instruction in planned_instructions(plan).items():
        shardings = plan.specs[name]
        listed = shardings if isinstance(shardings, tuple) else (shardings,)
        instructions.append(
            {
                "instruction": name,
                "opcode": instruction.opcode,
                "shape": shape_record(instruction.shape),
                "specs": [str(sharding) for sharding in listed],
                "local_dims": [_local_dims(each) for each in _leaves(instruction, listed)],
            }
        )
    return {
        "file": file,
        "computation": plan.program.entry.name,
        "view": "plan",
        "mesh": dict(plan.mesh.axes),
        "devices": plan.mesh.size,
        "instructions": instructions,
        "collectives": list(map(_collective_record, plan.collectives)),
        "bytes_sent": plan.bytes_sent,
        "peak_bytes": plan.peak_bytes,
        "is_cheapest": plan.is_cheapest,
        "reasons": [str(reason) for reason in plan.reasons],
        "schema_version": SCHEMA_VERSION,
    }


def search_lines(file: str, best: BestShardings) -> Iterator[str]:
    """Yield a heading, a table with a row for each choice, and notes."""
    table = shardings_table(best)
    yield f"{file}: {table.head}"
    yield from (f"  {line}" for line in table.lines())


def search_record(module: Module, best: BestShardings) -> dict[str, Any]:
    """Return the record of a search."""
    return {
        "file": module.filename,
        "computation": module.entry.name,
        "view": "search",
        "mesh": dict(best.mesh.axes),
        "devices": best.mesh.size,
        "memory_limit": best.memory_limit,
        "planned": best.planned,
        "choices": best.choices,
        "is_optimal": best.is_optimal,
        "least_held": best.least_held,
        "ranked": [
            {
                "specs": {name: str(spec) for name, spec in ranked.specs.items()},
                "bytes_sent": ranked.plan.bytes_sent,
                "peak_bytes": ranked.plan.peak_bytes,
            }
            for ranked in best.ranked
        ],
        "schema_version": SCHEMA_VERSION,
    }


def planned_instructions(plan: Plan) -> dict[str, Instruction]:
    """Return the instructions of a plan by their names in `Plan.specs`."""
    return dict(zip(plan.specs, plan.assignment.instructions, strict=True))


def _collective_record(collective: PlannedCollective) -> dict[str, Any]:
    return {
        "instruction": collective.instruction,
        "loop": collective.loop,
        "kind": collective.kind,
        "axes": [str(axis) for axis in collective.axes],
        "bytes": collective.bytes_sent,
        "executions": collective.executions.number,
        "total_bytes": collective.total_bytes,
        "name": collective.name,
        "reason": collective.reason,
    }


def _leaves(
    instruction: Instruction, shardings: Sequence[Sharding]
) -> list[tuple[AnyShape, Sharding]]:
    shapes = [shape for _, shape in leaves(instruction.shape)]
    return list(zip(shapes, shardings, strict=True))


def _local_dims(leaf: tuple[AnyShape, Sharding]) -> list[int] | None:
    shape, sharding = leaf
    return list(sharding.local_dims(shape.dims)) if isinstance(shape, Shape) else None

"""Sharding rules as ``hlo-indexing shard`` prints them: tables, or JSON records.

`schemas/shard.json` is the JSON schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from indexing.sharding.rules import Factors, ShardingRule, factor_name
from indexing.views.alignment import aligned
from indexing.views.records import SCHEMA_VERSION, shape_record
from indexing.views.report import Paint, plain

if TYPE_CHECKING:
    from hlo.modules.module import Instruction

Rules = Sequence[tuple["Instruction", ShardingRule]]
"""Instructions of one module, with their sharding rules."""


def instruction_record(file: str, instruction: Instruction, view: str) -> dict[str, Any]:
    """Return the keys that the records of all views have."""
    return {
        "file": file,
        "computation": instruction.computation.name,
        "instruction": instruction.name,
        "opcode": instruction.opcode,
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
        for line, (_, rule) in zip(aligned(rows), listed, strict=True):
            yield f"  {line}"
            if explain:
                yield from (f"    {reason}" for reason in rule.explain().splitlines())


def rule_records(file: str, rules: Rules) -> Iterator[dict[str, Any]]:
    """Yield a record for each rule."""
    for instruction, rule in rules:
        proofs = rule.proofs or ((),) * len(rule.factors)
        yield instruction_record(file, instruction, "rule") | {
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

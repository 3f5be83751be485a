"""Findings about the reads of exact maps through a fusion: see `indexing.codegen.observation`."""

from __future__ import annotations

from collections.abc import Iterator

from indexing.codegen.checked_instruction import CheckedInstruction
from indexing.codegen.findings import Finding, Tightness, claim_text
from indexing.codegen.influence import Influence
from indexing.codegen.mask_pokes import border_values
from indexing.codegen.observation import (
    MAX_RUNS,
    Observation,
    Unobserved,
    is_sampled,
    values_near_constants,
)
from indexing.dataflow.queries import output_to_input
from indexing.ops.base import MappedOp


def observation_findings(case: CheckedInstruction, number: int) -> Iterator[Finding | Tightness]:
    """Yield a finding for each exact map of a fusion with reads that no poke shows.

    Then yield how many reads of each operand array were shown.

    `CheckedInstruction.influence` tests the maps of single ops.

    Args:
        number: the number of the output.
    """
    if not case.is_static or isinstance(case.instruction.op, MappedOp):
        return
    operands = list(case.distinct_operands())
    trial = Influence(
        [array for _, _, array in operands],
        case.attempt,
        case.images,
        case.draw,
        case.random,
        values_near_constants(case.instruction.called_computations),
        border_values(case.instruction),
        case.aim,
    )
    answer = output_to_input(case.instruction, number)
    for operand, path, array in operands:
        maps = case.maps_to(answer, operand, path)
        observation = Observation(trial, case.image, array, number, maps)
        name = case.array_name(operand, path)
        shown = claimed = 0
        nonempty = [m for m in maps if not m.is_known_empty]
        for exact in [m for m in nonempty if m.grade == "exact"]:
            left = observation.unobserved_reads(exact)
            yield from _findings(left, name)
            shown += left.tried - left.missing
            claimed += left.tried + left.unreached
        yield Tightness(
            number,
            operand,
            path,
            shown,
            claimed,
            any(map(is_sampled, nonempty)),
            answer.unknown[operand] is None
            and all(m.grade == "exact" for m in nonempty)
            and (claimed > 0 or not nonempty),
        )


def _findings(left: Unobserved, name: str) -> Iterator[Finding]:
    """Yield the finding of one exact map to the array `name`, if it has reads to report."""
    if not left.tried:
        reason = f"no read of the exact map to {name} is reached with random operands"
        yield Finding("exact", "skipped", (reason,))
    elif left.missing and left.at is None:
        reason = f"{left.missing} of {left.tried} reads of {name} are not observed"
        yield Finding("exact", "skipped", (f"{MAX_RUNS} executions ended: {reason}",))
    elif left.missing:
        effect = f"none of {left.executions:,} executions with other values shows an effect"
        details = f"{claim_text(left.at or (), name, left.element or ())}, but {effect}"
        if left.missing > 1:
            details += f"; {left.missing} of {left.tried} reads are not observed"
        yield Finding("exact", "not observed", (details,))

"""Findings about the reads of exact maps through a fusion: see `indexing.codegen.observation`."""

from __future__ import annotations

from collections.abc import Iterator

from indexing.codegen.checked_instruction import CheckedInstruction
from indexing.codegen.findings import Finding, claim_text
from indexing.codegen.influence import Influence
from indexing.codegen.observation import MAX_RUNS, Observation, values_near_constants
from indexing.dataflow.queries import output_to_input
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.base import MappedOp


def observation_findings(case: CheckedInstruction, number: int) -> Iterator[Finding]:
    """Yield a finding for each exact map of a fusion with reads that no poke shows.

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
    )
    answer = output_to_input(case.instruction, number)
    for operand, path, array in operands:
        maps = case.maps_to(answer, operand, path)
        observation = Observation(trial, case.image, array, number, maps)
        for exact in [m for m in maps if m.grade == "exact" and not m.is_known_empty]:
            yield from _findings(observation, exact, case.array_name(operand, path))


def _findings(observation: Observation, exact: IndexingMap, name: str) -> Iterator[Finding]:
    """Yield the finding of one exact map to the array `name`, if it has reads to report."""
    left = observation.unobserved_reads(exact)
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

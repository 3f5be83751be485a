"""Validation of maps against kernels: execute loop nests, and perturb operands.

The checks of one instruction, on random operands:

* *numpy* and *loops*: both forms of the loop nest of each output compute the result of the kernel
  (for a fusion, of the interpreter);
* *poke*, a perturbation test: changing one element of an operand changes only outputs that depend
  on it by the maps; conversely, some change of an element that an exact map reads changes the
  output.  Through a fusion, a map is exact for each path, and the value of an element may be
  irrelevant: a read that no change shows is *not observed*, which is no fault.

Maps that do not fit the shapes, and maps that cannot be evaluated, are wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from hlo.modules.module import Instruction
from hlo.text.source import HloError
from indexing.codegen.checked_instruction import CheckedInstruction
from indexing.codegen.findings import Finding, Report, Tightness
from indexing.codegen.fusion_reads import observation_findings
from indexing.codegen.mask_pokes import mask_findings
from indexing.codegen.random_operands import given_operands
from indexing.codegen.validation_limits import why_not_executed
from indexing.dataflow.soundness import require_sound
from indexing.maps.answers import Unknown
from indexing.ops.base import RoutingOp
from indexing.ops.element import declarations_of


def is_checked(instruction: Instruction) -> bool:
    """Return True unless the instruction is a parameter, a constant, or only routes values."""
    if isinstance(instruction.op, RoutingOp):
        return False
    return not declarations_of(instruction).is_given


def validate_instruction(instruction: Instruction, seed: int, max_elements: int) -> Report:
    """Run all checks of one instruction.

    Args:
        instruction: the instruction.
        seed: seed of the random operands.
        max_elements: skip the instruction if an array has more elements.
    Raises:
        HloError: the instruction is invalid.
    """
    require_sound([instruction])
    if reason := why_not_executed(instruction, max_elements):
        return Report(instruction, (Finding("all", "skipped", (reason,)),))
    try:
        given = given_operands(instruction)
        if isinstance(given, Unknown):
            return Report(instruction, (Finding("all", "skipped", (given.reason,)),))
        case = CheckedInstruction(instruction, seed, given)
    except (HloError, MemoryError) as error:
        reason = getattr(error, "message", str(error))
        return Report(instruction, (Finding("all", "skipped", (reason,)),))
    outcomes = [each for number in case.results for each in _check_output(case, number)]
    findings = tuple([each for each in outcomes if isinstance(each, Finding)])
    tightness = tuple([each for each in outcomes if isinstance(each, Tightness)])
    return Report(instruction, findings, tightness)


def _check_output(case: CheckedInstruction, number: int) -> Iterator[Finding | Tightness]:
    """Run all checks of one output; maps that cannot be evaluated are wrong."""
    faults = list(_attempt_check("maps", partial(case.forms, number)))
    yield from faults
    if faults:
        return
    yield from _attempt_check("nest", partial(case.nests, number))
    for check in (
        case.perturbation,
        partial(mask_findings, case),
        case.influence,
        partial(observation_findings, case),
    ):
        yield from _attempt_check("poke", partial(check, number))


def _attempt_check(
    check: str, findings: Callable[[], Iterable[Finding | Tightness]]
) -> Iterator[Finding | Tightness]:
    """Yield findings; a failure of the check itself means that the maps are wrong.

    Maps of sound instructions can be evaluated, and loop nests can be generated from them.
    """
    try:
        yield from findings()
    except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, HloError):
            raise
        reason = f"the maps cannot be evaluated: {type(error).__name__}: {error}"
        yield Finding(check, "wrong", (reason,))

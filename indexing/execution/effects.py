"""Which instructions have to run: those that the result needs, and those with an effect."""

from __future__ import annotations

from hlo.modules.module import Computation, Instruction
from indexing.dataflow.walk import needed_by
from indexing.ops.element import ElementOp


def needed(computation: Computation) -> list[Instruction]:
    """The instructions that the root needs or that have an effect, in text order, no parameters."""
    needing = [computation.root, *filter(has_effect, computation.instructions)]
    return [i for i in needed_by(needing) if i.opcode != "parameter"]


def has_effect(instruction: Instruction) -> bool:
    """The instruction, or one that it calls, does more than its value shows."""
    op = instruction.op
    if "custom_call_has_side_effect" in instruction.attributes:
        return True
    if isinstance(op, ElementOp) and op.has_effect:
        return True
    return any(has_effects(called) for called in instruction.called_computations)


def has_effects(computation: Computation) -> bool:
    """One of the instructions has an effect."""
    return computation.module.remembered(
        (has_effects, computation), lambda: any(map(has_effect, computation.instructions))
    )

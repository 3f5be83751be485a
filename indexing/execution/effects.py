"""Dead-code elimination: keep instructions that the result needs or that have side effects."""

from __future__ import annotations

from hlo.modules.module import Computation, Instruction
from hlo.modules.recursion import bottom_up
from indexing.dataflow.needed import needed_by
from indexing.ops.element import ElementOp


def needed(computation: Computation) -> list[Instruction]:
    """Return the instructions that the root needs or that have side effects, without parameters.

    The order is that of the text.
    """
    needing = [computation.root, *filter(has_effect, computation.instructions)]
    return [i for i in needed_by(needing) if i.opcode != "parameter"]


def has_effect(instruction: Instruction) -> bool:
    """Return True if an instruction, or one in a computation that it calls, has a side effect."""
    op = instruction.op
    if "custom_call_has_side_effect" in instruction.attributes:
        return True
    if isinstance(op, ElementOp) and op.has_effect:
        return True
    return any(has_effects(called) for called in instruction.called_computations)


def has_effects(computation: Computation) -> bool:
    """Return True if an instruction of the computation has a side effect."""
    return bottom_up(computation, has_effects, lambda c: any(map(has_effect, c.instructions)))

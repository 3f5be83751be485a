"""Dead-code elimination: keep instructions that the result needs or that have side effects."""

from __future__ import annotations

from hlo.modules.effects import has_effect
from hlo.modules.module import Computation, Instruction
from indexing.dataflow.needed import dependencies_of


def needed_instructions(computation: Computation) -> list[Instruction]:
    """Return the instructions that the root needs or that have side effects, without parameters.

    The order is that of the text.
    """
    needing = [computation.root, *filter(has_effect, computation.instructions)]
    return [i for i in dependencies_of(needing) if i.opcode != "parameter"]

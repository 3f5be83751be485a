"""The computations that devices execute, and the instructions that have no local form."""

from __future__ import annotations

from hlo.modules.bind import why_unsupported
from hlo.modules.effects import has_own_effect
from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import Shape, leaves
from hlo.text.source import HloError
from indexing.ops.element import declarations_of
from indexing.ops.structured_ops import InlineOp


def computations_of(entry: Computation) -> tuple[list[Computation], list[Computation]]:
    """Return the computations that devices execute, and those that ops apply; callees first."""
    executed, applied = {entry: None}, dict[Computation, None]()
    waiting = [entry]
    while waiting:
        computation = waiting.pop()
        for instruction in computation.instructions:
            if computation in executed and isinstance(instruction.op, InlineOp):
                message = f"{instruction.opcode} `{instruction.name}` must be flattened first"
                raise HloError(message, instruction.span, "partition", "use `flatten`")
            is_branching = declarations_of(instruction).is_control_flow and computation in executed
            kind = executed if is_branching else applied
            for called in instruction.called_computations:
                if called not in kind:
                    kind[called] = None
                    waiting.append(called)
    order = entry.module.computations.values()
    return [c for c in order if c in executed], [c for c in order if c in applied]


def require_local_form(instruction: Instruction) -> None:
    """Check that an instruction has a local form.

    Raises:
        HloError: it has none.
    """
    reason, opcode = "", instruction.opcode
    if not declarations_of(instruction).has_local_form:
        reason = f"{opcode} is an exchange with other devices, the host or an effect"
    elif instruction.op is None:
        reason = why_unsupported(instruction) or f"{opcode} is not a registered op"
    elif opcode == "custom-call" and has_own_effect(instruction):
        reason = "a custom call with side effects would have them on every device"
    for _, leaf in leaves(instruction.shape):
        if not isinstance(leaf, Shape):
            reason = reason or f"it has a value {leaf}"
        elif leaf.is_dynamic:
            reason = reason or f"{leaf} has a dynamic size"
    if reason:
        message = f"`{instruction.name}` cannot be divided over devices: {reason}"
        help = "pass its value as a parameter, or execute the program unpartitioned"  # noqa: A001 - as in `HloError`
        raise HloError(message, instruction.span, "partition", reason, help=help)

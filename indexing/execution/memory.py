"""An estimate of the peak memory of a program, made before it is executed."""

from __future__ import annotations

import os
import sys
from typing import Final

from hlo.formats.reading import size_text
from hlo.modules.module import Computation, Instruction
from hlo.modules.recursion import bottom_up
from indexing.execution.interpreter import plan
from indexing.execution.values import ExecutionError, bytes_of, check_representable
from indexing.ops.element import CopyRule, element_of

DEVICE_BYTES: Final = 1 << 15
"""What the thread of one of several devices takes, besides arrays."""


def estimated_bytes(computation: Computation) -> int:
    """Return the peak memory in bytes: arguments, live values, and those of called computations.

    >>> import hlo
    >>> module = hlo.parse("ENTRY e { p = f32[256] parameter(0) ROOT n = f32[256] negate(p) }")
    >>> estimated_bytes(module.entry)
    2048
    """
    return bottom_up(computation, estimated_bytes, _estimate_bytes, _called_by_steps)


def _called_by_steps(computation: Computation) -> list[Computation]:
    return [c for step in plan(computation) for c in step.instruction.called_computations]


def _estimate_bytes(computation: Computation) -> int:
    for instruction in computation.instructions:
        check_representable(instruction)
    live = sum(bytes_of(parameter.shape) for parameter in computation.parameters)
    allocated = {
        step.instruction.index: _allocated_bytes(step.instruction) for step in plan(computation)
    }
    peak = live
    for step in plan(computation):
        called = [estimated_bytes(c) for c in step.instruction.called_computations]
        live += allocated[step.instruction.index]
        peak = max(peak, live + max(called, default=0))
        live -= sum(allocated.get(index, 0) for index in step.dead)  # parameters stay
    root = computation.root
    results = root.operands if root.opcode == "tuple" else [root]
    return max(peak, live + sum(map(_copied_bytes, results)))


def _allocated_bytes(instruction: Instruction) -> int:
    return 0 if _is_view(instruction) else bytes_of(instruction.shape)


def _is_view(instruction: Instruction) -> bool:
    """Return True if the value allocates no memory: a parameter or a view of an operand."""
    element = element_of(instruction)
    return (isinstance(element, CopyRule) and element.is_view) or instruction.opcode == "parameter"


def _copied_bytes(result: Instruction) -> int:
    """Bytes of the copy that `run` makes of a result that is a view."""
    return bytes_of(result.shape) if _is_view(result) else 0


def available_bytes() -> int:
    """Return the available memory in bytes; without ``/proc/meminfo``, the physical memory.

    On Windows, which has neither, it counts as unlimited.
    """
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            fields = dict(line.split(":", 1) for line in lines)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError):
        if not hasattr(os, "sysconf"):
            return sys.maxsize
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_memory(computation: Computation, memory: int | None, devices: int = 1) -> None:
    """Check that the estimated memory of a computation is available.

    Raises:
        ExecutionError: the estimate exceeds `memory`, or the available memory if that is None, or
            a dimension is unbounded.
    """
    overhead = DEVICE_BYTES if devices > 1 else 0
    required = (estimated_bytes(computation) + overhead) * devices
    largest = computation.memoised(_largest_array, lambda: _largest_array(computation))
    check_bytes(required, memory, largest)


def _largest_array(computation: Computation) -> Instruction:
    """Return the instruction of a computation that allocates most, or a parameter."""
    executed = [step.instruction for step in plan(computation)]
    arrays = [*computation.parameters, *[i for i in executed if _allocated_bytes(i)]]
    return max(arrays, key=lambda i: bytes_of(i.shape), default=computation.root)


def check_bytes(required: int, memory: int | None, largest: Instruction) -> None:
    """Check that `required` bytes are available.

    Args:
        required: the estimated memory.
        memory: the limit; None for the available memory.
        largest: the instruction with the largest array, which the error points at.
    Raises:
        ExecutionError: `required` exceeds the limit.
    """
    limit = available_bytes() if memory is None else memory
    if required > limit:
        message = f"estimated memory {size_text(required)} exceeds the {size_text(limit)} available"
        label = f"`{largest.name}` takes {size_text(bytes_of(largest.shape))}"
        raise ExecutionError(message, largest.span, "memory", label)

"""How much memory a program needs, estimated before it runs."""

from __future__ import annotations

import os

from hlo.modules.module import Computation, Instruction
from indexing.execution.interpreter import plan
from indexing.execution.values import ExecutionError, bytes_of
from indexing.ops.element import CopyRule, element_of


def estimated_bytes(computation: Computation) -> int:
    """Bytes at the moment when most is held: arguments, values that are still needed, and those
    of the computation that is called then.

    >>> import hlo
    >>> module = hlo.parse("ENTRY e { p = f32[256] parameter(0) ROOT n = f32[256] negate(p) }")
    >>> estimated_bytes(module.entry)
    2048
    """
    key = estimated_bytes, computation
    return computation.module.remembered(key, lambda: _estimated(computation))


def _estimated(computation: Computation) -> int:
    held = sum(bytes_of(parameter.shape) for parameter in computation.parameters)
    own = {i.index: _own(i) for i in computation.instructions}
    most = held
    for step in plan(computation):
        called = [estimated_bytes(c) for c in step.instruction.called_computations]
        held += own[step.instruction.index]
        most = max(most, held + max(called, default=0))
        held -= sum(own[index] for index in step.dead)
    root = computation.root
    results = root.operands if root.opcode == "tuple" else [root]
    return max(most, held + sum(map(_copied, results)))


def _own(instruction: Instruction) -> int:
    return 0 if _is_view(instruction) else bytes_of(instruction.shape)


def _is_view(instruction: Instruction) -> bool:
    """The value is in the memory of an operand or argument, or can be made without its own."""
    element = element_of(instruction)
    return (isinstance(element, CopyRule) and element.is_view) or instruction.opcode == "parameter"


def _copied(result: Instruction) -> int:
    """Bytes of a result that is nobody's own memory until it is given to the caller."""
    return bytes_of(result.shape) if _is_view(result) else 0


def available_bytes() -> int:
    """Bytes of memory that are free, as far as the system tells."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            fields = dict(line.split(":", 1) for line in lines)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_room(computation: Computation, memory: int | None, devices: int = 1) -> None:
    """Refuse what does not fit.

    Raises:
        ExecutionError: the estimate is more than `memory`, or than what is available.
    """
    arrays = [i for i in computation.instructions if _own(i) or i.opcode == "parameter"]
    largest = max(arrays, key=lambda i: bytes_of(i.shape), default=computation.root)
    check_bytes(estimated_bytes(computation) * devices, memory, largest)


def check_bytes(needed: int, memory: int | None, largest: Instruction) -> None:
    """Refuse what needs so many bytes, most of them for `largest`, where there is less room.

    Raises:
        ExecutionError: `needed` is more than `memory`, or than what is available.
    """
    room = available_bytes() if memory is None else memory
    if needed > room:
        message = f"about {_size(needed)} of memory are needed, but {_size(room)} are available"
        label = f"`{largest.name}` alone takes {_size(bytes_of(largest.shape))}"
        raise ExecutionError(message, largest.span, "memory", label)


def _size(count: int) -> str:
    """Bytes in words.

    >>> _size(5 * 2**30)
    '5.0 GiB'
    """
    for unit, name in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"

"""Bytes that a device holds at most while it executes a program.

Instructions execute in text order.  The parameters are held throughout, every other array from the
instruction that makes it to its last use, and the results until the end.  Tuples and their elements
share the arrays of their operands.  A loop updates its carried arrays in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hlo.modules.module import Computation, Instruction, Module
from hlo.shapes.shape import Shape, leaves
from indexing.ops.control import callees
from indexing.sharding.planning.leaf_classes import branches_of

_IN_PLACE: Final = frozenset({"opt-barrier", "while"})


def peak_bytes(module: Module) -> int:
    """Return the maximum of the bytes that are held at a time, parameters and results included.

    >>> import hlo
    >>> peak_bytes(hlo.parse('''ENTRY e { p = f32[10] parameter(0)  a = f32[10] negate(p)
    ...   b = f32[5] slice(a), slice={[0:5]}  ROOT c = f32[5] negate(b) }'''))
    100
    """
    held = sum(sum(_sizes(parameter)) for parameter in module.entry.parameters)
    return held + _peak(module.entry, {})


def _sizes(instruction: Instruction) -> list[int]:
    shapes = [shape for _, shape in leaves(instruction.shape)]
    return [shape.bytes if isinstance(shape, Shape) else 0 for shape in shapes]


def _peak(computation: Computation, memo: dict[Computation, int]) -> int:
    """Return the maximum of the bytes that a computation holds besides its parameters."""
    if computation in memo:
        return memo[computation]
    sizes, buffers = _buffers(computation)
    last = dict.fromkeys(range(len(sizes)), -1)
    for position, instruction in enumerate(computation.instructions):
        for operand in (instruction, *instruction.operands):
            for buffer in buffers[operand]:
                last[buffer] = position
    for buffer in buffers[computation.root]:
        last[buffer] = len(computation)
    ending: dict[int, list[int]] = {}
    for buffer, position in last.items():
        ending.setdefault(position, []).append(buffer)
    held = peak = 0
    started: set[int] = set()
    for position, instruction in enumerate(computation.instructions):
        new = [buffer for buffer in buffers[instruction] if buffer not in started]
        started.update(new)
        held += sum(sizes[buffer] for buffer in new)
        inner = [_peak(called, memo) for called in _executed_computations(instruction)]
        peak = max(peak, held + max(inner, default=0))
        held -= sum(sizes[buffer] for buffer in ending.get(position, ()))
    memo[computation] = peak
    return peak


def _buffers(computation: Computation) -> tuple[list[int], dict[Instruction, Sequence[int]]]:
    """Return the sizes of the arrays, and the arrays of the leaves of each instruction.

    The arrays of parameters have size 0: the caller holds them.
    """
    sizes: list[int] = []
    buffers: dict[Instruction, Sequence[int]] = {}
    for instruction in computation.instructions:
        operands = [buffers[operand] for operand in instruction.operands]
        if instruction.opcode == "tuple":
            buffers[instruction] = [buffer for each in operands for buffer in each]
        elif instruction.opcode == "get-tuple-element":
            index = int(instruction.attributes["index"].normal)
            paths = [path for path, _ in leaves(instruction.operands[0].shape)]
            pairs = zip(paths, operands[0], strict=True)
            buffers[instruction] = [buffer for path, buffer in pairs if path[0] == index]
        elif instruction.opcode in _IN_PLACE:
            buffers[instruction] = operands[0]
        else:
            own = _sizes(instruction)
            buffers[instruction] = range(len(sizes), len(sizes) + len(own))
            sizes += [0] * len(own) if instruction.opcode == "parameter" else own
    return sizes, buffers


def _executed_computations(instruction: Instruction) -> list[Computation]:
    match instruction.opcode:
        case "while":
            return callees(instruction, "condition", "body")
        case "conditional":
            return branches_of(instruction)
        case _:
            return []

"""The structure of a module as columns: computations, instructions, operands, calls."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from hlo.modules.module import Computation, Instruction, Module
from hlo.modules.patterns import op_name_of
from hlo.shapes.shape import AnyShape, leaves
from indexing.memory.executions import executions
from indexing.memory.spaces import size_of
from indexing.views.listing import short_shape


class DistinctTexts:
    """Numbers of distinct texts, in the order of their first use.

    >>> listed = DistinctTexts()
    >>> [listed.of(text) for text in ("add", "dot", "add")], listed.texts
    ([0, 1, 0], ['add', 'dot'])
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def of(self, text: str) -> int:
        """Return the number of a text."""
        return self._numbers.setdefault(text, len(self._numbers))

    @property
    def texts(self) -> list[str]:
        """The texts in the order of their numbers."""
        return list(self._numbers)


def computations_in_order(module: Module) -> Sequence[Computation]:
    """Return ENTRY, the computations that the program executes, and the others."""
    executed = executions(module)
    rest = [c for c in module.computations.values() if c not in executed]
    return [*executed, *rest]


def numbers_of(module: Module) -> dict[Instruction, int]:
    """Return the numbers of the instructions in the page."""
    every = [i for c in computations_in_order(module) for i in c.instructions]
    return {instruction: k for k, instruction in enumerate(every)}


def structure(module: Module, computations: Sequence[Computation]) -> dict[str, Any]:
    """Return the structure of a module as a value for JSON.

    The number of an instruction counts the instructions of all `computations`.  Operands are
    numbers of instructions, callees numbers of computations.
    """
    executed = executions(module)
    numbers = numbers_of(module)
    return {
        "file": module.filename,
        "name": module.name,
        "computations": [
            {
                "name": c.name,
                "count": len(c.instructions),
                "root": numbers[c.root],
                "parameters": [numbers[parameter] for parameter in c.parameters],
                "executions": str(executed[c]) if c in executed else None,
            }
            for c in computations
        ],
        "operands": [[numbers[operand] for operand in each.operands] for each in numbers],
        "calls": _calls(numbers, computations),
        **_columns(list(numbers)),
    }


def _calls(
    numbers: dict[Instruction, int], computations: Sequence[Computation]
) -> dict[int, list[int]]:
    """Return the computations that each instruction calls."""
    places = {computation: k for k, computation in enumerate(computations)}
    return {
        number: [places[called] for called in each.called_computations]
        for each, number in numbers.items()
        if each.called_computations
    }


def _columns(instructions: Sequence[Instruction]) -> dict[str, Any]:
    """Return the names, opcodes, shapes, sizes and ``op_name`` of instructions."""
    opcodes, shapes, op_names = DistinctTexts(), DistinctTexts(), DistinctTexts()
    return {
        "names": [each.name for each in instructions],
        "opcode": [opcodes.of(each.opcode) for each in instructions],
        "shape": [shapes.of(short_shape(each.shape)) for each in instructions],
        "size": [result_bytes(each) for each in instructions],
        "op_name": [op_names.of(op_name_of(each)) for each in instructions],
        "opcodes": opcodes.texts,
        "shapes": shapes.texts,
        "op_names": op_names.texts,
    }


def result_bytes(instruction: Instruction) -> int | None:
    """Return the bytes of the arrays of a result without padding; None if they are unbounded."""
    return _dense_bytes(instruction.shape)


@lru_cache(maxsize=1 << 11)
def _dense_bytes(shape: AnyShape) -> int | None:
    sizes = [size_of(leaf) for _, leaf in leaves(shape)]
    known = [size.dense for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None

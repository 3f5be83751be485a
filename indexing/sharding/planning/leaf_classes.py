"""Leaves of values that have one sharding: those that loops carry and tuples pass on.

The leaves of a ``while``, of the parameters of its body and condition, and of the root of its body
are one class: the sharding of a carried array is a fixed point by construction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from hlo.modules.module import Computation, Instruction, Module
from hlo.shapes.shape import OpaqueShape, Shape, leaves
from indexing.ops.control import BRANCHES, callees
from indexing.ops.element import declarations_of

LeafClass: TypeAlias = int


def is_structural(instruction: Instruction) -> bool:
    """Return True if an instruction passes leaves on unchanged."""
    return instruction.opcode == "opt-barrier" or declarations_of(instruction).passes_leaves


class PassedLeaf(NamedTuple):
    """A leaf that an instruction takes from an operand, and may reshard.

    Attributes:
        instruction: the instruction: a tuple, a loop or a conditional.
        source, target: the classes of the leaf before and after.
    """

    instruction: Instruction
    source: LeafClass
    target: LeafClass


@dataclass(frozen=True, slots=True)
class LeafClasses:
    """The classes of the leaves of a program.

    Attributes:
        of: the classes of the leaves of each instruction, in order.
        shapes: the shape of each class.
        passed: the leaves that tuples, loops and conditionals take.
        outputs: the classes of the leaves of the program's result.
    """

    of: dict[Instruction, tuple[LeafClass, ...]]
    shapes: tuple[Shape | OpaqueShape, ...]
    passed: tuple[PassedLeaf, ...]
    outputs: tuple[LeafClass, ...]


def branches_of(conditional: Instruction) -> list[Computation]:
    """Return the branches of a conditional, in the order of its operands."""
    return callees(conditional, *BRANCHES)


def leaf_classes(module: Module) -> LeafClasses:
    """Return the classes of the leaves of a flattened program."""
    return _Classes(module).classes()


class _Classes:
    """Merges leaves into classes (union-find)."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.numbers: dict[Instruction, tuple[int, ...]] = {}
        self.shapes: list[Shape | OpaqueShape] = []
        for instruction in module.instructions:
            shapes = [shape for _, shape in leaves(instruction.shape)]
            first = len(self.shapes)
            self.numbers[instruction] = tuple(range(first, first + len(shapes)))
            self.shapes += shapes
        self.parent = list(range(len(self.shapes)))

    def root(self, number: int) -> int:
        while self.parent[number] != number:
            self.parent[number] = self.parent[self.parent[number]]
            number = self.parent[number]
        return number

    def join(self, one: Instruction, other: Instruction) -> None:
        for a, b in zip(self.numbers[one], self.numbers[other], strict=True):
            self.parent[self.root(a)] = self.root(b)

    def classes(self) -> LeafClasses:
        executed = self._executed_instructions()
        for instruction in executed:
            self._join(instruction)
        roots = {self.root(leaf) for i in executed for leaf in self.numbers[i]}
        order = {leaf: k for k, leaf in enumerate(sorted(roots))}
        of = {i: tuple([order[self.root(k)] for k in self.numbers[i]]) for i in executed}
        passed = tuple(
            [
                PassedLeaf(instruction, source, target)
                for instruction in executed
                for source, target in _passed_leaves(instruction, of)
                if source != target
            ]
        )
        shapes = tuple([self.shapes[leaf] for leaf in sorted(order)])
        return LeafClasses(of, shapes, passed, of[self.module.entry.root])

    def _executed_instructions(self) -> list[Instruction]:
        """Return the instructions of the entry, of loops and of branches, callers first."""
        computations = dict.fromkeys([self.module.entry])
        instructions: list[Instruction] = []
        waiting = [self.module.entry]
        while waiting:
            for instruction in waiting.pop().instructions:
                instructions.append(instruction)
                if declarations_of(instruction).is_control_flow:
                    for called in instruction.called_computations:
                        if called not in computations:
                            computations[called] = None
                            waiting.append(called)
        return instructions

    def _join(self, instruction: Instruction) -> None:
        match instruction.opcode:
            case "get-tuple-element":
                start = _offset(instruction)
                operand = self.numbers[instruction.operands[0]]
                for k, leaf in enumerate(self.numbers[instruction]):
                    self.parent[self.root(leaf)] = self.root(operand[start + k])
            case "opt-barrier":
                self.join(instruction, instruction.operands[0])
            case "while":
                condition, body = callees(instruction, "condition", "body")
                for other in (*condition.parameters, *body.parameters, body.root):
                    self.join(other, instruction)
            case "conditional":
                for branch in branches_of(instruction):
                    self.join(branch.root, instruction)


def _offset(instruction: Instruction) -> int:
    """Return the number of leaves before the element that a get-tuple-element selects."""
    index = int(instruction.attributes["index"].normal)
    paths = [path for path, _ in leaves(instruction.operands[0].shape)]
    return sum(path[0] < index for path in paths)


def _passed_leaves(
    instruction: Instruction, of: dict[Instruction, tuple[LeafClass, ...]]
) -> Iterator[tuple[LeafClass, LeafClass]]:
    match instruction.opcode:
        case "tuple":
            sources = [leaf for operand in instruction.operands for leaf in of[operand]]
            yield from zip(sources, of[instruction], strict=True)
        case "while":
            yield from zip(of[instruction.operands[0]], of[instruction], strict=True)
        case "conditional":
            for operand, branch in zip(
                instruction.operands[1:], branches_of(instruction), strict=True
            ):
                yield from zip(of[operand], of[branch.parameters[0]], strict=True)

"""The arrays of a program, with tuples taken apart and calls put in place.

>>> import hlo, indexing.ops
>>> module = hlo.parse('''
... double { x = f32[3] parameter(0)  ROOT y = f32[3] add(x, x) }
... ENTRY e { p = f32[3] parameter(0)  ROOT f = f32[3] fusion(p), kind=kLoop, calls=double }''')
>>> inputs, (result,) = values_of(module.entry.root)
>>> result.instruction.name, [operand is inputs[0] for operand in result.operands]
('y', [True, True])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from hlo.modules.module import Computation, Instruction
from hlo.shapes.literal import read_literal
from hlo.shapes.shape import AnyShape, Shape, TupleShape, leaves
from indexing.maps.answers import Path
from indexing.ops.base import Array, RoutingOp
from indexing.ops.structured_ops import InlineOp


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """One array: a leaf of what an instruction gives.

    Attributes:
        instruction: what computes it.
        leaf: which leaf of the result it is.
        shape: its shape.
        operands: those of the instruction, with tuples as tuples; None for a token.
        number: larger than those of the operands.
        group: the same object for all leaves of one execution of the instruction.
    """

    instruction: Instruction
    leaf: int
    shape: Shape
    operands: tuple[Tree, ...]
    number: int
    group: object
    is_input: bool = False

    def operand(self, source: Instruction) -> Value:
        """The array that the operand `source` is."""
        found = self.operands[self.instruction.operands.index(source)]
        assert isinstance(found, Value)
        return found


Tree: TypeAlias = "Value | tuple[Tree, ...] | None"


def values_of(target: Instruction | Computation) -> tuple[list[Value], list[Value]]:
    """The inputs of an instruction or a computation, and the arrays that it gives.

    A fusion or a call is the computation that it calls, with the operands as inputs.
    """
    flat = _Flattening()
    if isinstance(target, Computation):
        inputs = [flat.inputs(p, p.shape) for p in target.parameters]
        result = flat.through(target, inputs)
    else:
        names: Iterable[Instruction] = target.operands
        if isinstance(target.op, InlineOp):
            names = target.called_computations[0].parameters
        inputs = [flat.inputs(p, p.shape) for p in names]
        result = flat.result(target, tuple(inputs))
    return list(_arrays(tuple(inputs))), list(_arrays(result))


def _arrays(tree: Tree) -> Iterator[Value]:
    if isinstance(tree, tuple):
        for inner in tree:
            yield from _arrays(inner)
    elif tree is not None:
        yield tree


class _Flattening:
    """Gives each array one value, and the same one to arrays that are computed alike."""

    def __init__(self) -> None:
        self.count = 0
        self.known: dict[object, Tree] = {}

    def inputs(self, instruction: Instruction, shape: AnyShape) -> Tree:
        return self._leaves(instruction, shape, (), is_input=True)

    def through(self, computation: Computation, inputs: list[Tree]) -> Tree:
        """The result of a computation for these arguments."""
        trees = dict(zip(computation.parameters, inputs, strict=True))
        needed = {computation.root}
        for instruction in reversed(computation.instructions[: computation.root.index + 1]):
            if instruction in needed:
                needed.update(instruction.operands)
        for instruction in computation.instructions[: computation.root.index + 1]:
            if instruction in needed and instruction not in trees:
                operands = tuple([trees[operand] for operand in instruction.operands])
                trees[instruction] = self.result(instruction, operands)
        return trees[computation.root]

    def result(self, instruction: Instruction, operands: tuple[Tree, ...]) -> Tree:
        """What an instruction gives for these operands."""
        op = instruction.op
        if isinstance(op, InlineOp):
            return self.through(instruction.called_computations[0], list(operands))
        if isinstance(op, RoutingOp):
            found = {}
            for path, _ in leaves(instruction.shape):
                operand, operand_path = op.route(path)
                found[path] = _at(operands[operand], operand_path)
            return _assembled(instruction.shape, (), found)
        key = op, instruction.opcode, instruction.shape, operands, instruction.called_computations
        if op is None or key not in self.known:
            self.known[key] = self._leaves(instruction, instruction.shape, operands)
        return self.known[key]

    def _leaves(
        self,
        instruction: Instruction,
        shape: AnyShape,
        operands: tuple[Tree, ...],
        is_input: bool = False,
    ) -> Tree:
        found: dict[Path, Tree] = {}
        group = object()
        for leaf, (path, kind) in enumerate(leaves(shape)):
            found[path] = None
            if isinstance(kind, Shape):
                self.count += 1
                found[path] = Value(instruction, leaf, kind, operands, self.count, group, is_input)
        return _assembled(shape, (), found)


def _at(tree: Tree, path: Path) -> Tree:
    for step in path:
        assert isinstance(tree, tuple)
        tree = tree[step]
    return tree


def _assembled(shape: AnyShape, path: Path, found: dict[Path, Tree]) -> Tree:
    if isinstance(shape, TupleShape):
        return tuple([_assembled(s, (*path, k), found) for k, s in enumerate(shape.elements)])
    return found.get(path)


def literal(value: Value) -> Array:
    """The array that a constant says.

    Raises:
        HloError: its values are not in the text, with the code "elided".
    """
    instruction = value.instruction
    assert instruction.literal is not None
    found = read_literal(instruction.literal.span, instruction.shape)
    path, _ = leaves(instruction.shape)[value.leaf]
    for step in path:
        found = found[step]
    return np.asarray(found)

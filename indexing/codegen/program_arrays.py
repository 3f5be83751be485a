"""The arrays of a program, with tuples taken apart, calls inlined and equal computations unified.

>>> import hlo, indexing.ops
>>> module = hlo.parse('''
... double { x = f32[3] parameter(0)  ROOT y = f32[3] add(x, x) }
... ENTRY e { p = f32[3] parameter(0)  ROOT f = f32[3] fusion(p), kind=kLoop, calls=double }''')
>>> inputs, (result,) = arrays_of(module.entry.root)
>>> result.name, [operand is inputs[0] for operand in result.operands]
('y', [True, True])
>>> [call.name for call in result.ref.calls]
['f']
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import AnyShape, Shape, TupleShape, dtype, leaves
from indexing.codegen.graph import Buffer, Origin
from indexing.codegen.text import identifier
from indexing.dataflow.walk import needed_by
from indexing.maps.arrays import ArrayRef, Path
from indexing.ops.base import RoutingOp
from indexing.ops.structured_ops import InlineOp

Calls: TypeAlias = tuple[Instruction, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ProgramArray(Buffer):
    """An array of the program, as the buffer that it is if it gets one.

    Attributes:
        ref: the array; the first one of several equal computations.
        leaf: its number among the leaves of the instruction's result.
        operands: those of the instruction, with tuples as tuples; None for a token.
        number: larger than those of the operands.
        group: the same object for all leaves of one execution of the instruction.
    """

    ref: ArrayRef
    leaf: int
    shape: Shape
    operands: tuple[Tree, ...]
    number: int
    group: object = field(repr=False)

    @property
    def instruction(self) -> Instruction:
        """The instruction that computes it."""
        return self.ref.instruction

    def operand(self, number: int) -> ProgramArray:
        """The array that operand `number` is."""
        array = self.operands[number]
        assert isinstance(array, ProgramArray)
        return array


Tree: TypeAlias = "ProgramArray | tuple[Tree, ...] | None"


def arrays_of(
    target: Instruction | Computation,
) -> tuple[tuple[ProgramArray, ...], tuple[ProgramArray, ...]]:
    """The inputs of an instruction or a computation, and its results.

    A fusion or a call is the computation that it calls, with the operands as inputs.
    """
    flat = _Flattening()
    if isinstance(target, Computation):
        inputs = [flat.leaves(ArrayRef(p), ()) for p in target.parameters]
        result = flat.inlined(target, inputs, ())
    else:
        named: Sequence[Instruction] = target.operands
        if isinstance(target.op, InlineOp):
            named = target.called_computations[0].parameters
        inputs = [flat.leaves(ArrayRef(p), ()) for p in named]
        result = flat.result(target, tuple(inputs), ())
    return tuple(_arrays(tuple(inputs))), tuple(_arrays(result))


def _arrays(tree: Tree) -> Iterator[ProgramArray]:
    if isinstance(tree, tuple):
        for inner in tree:
            yield from _arrays(inner)
    elif tree is not None:
        yield tree


class _Flattening:
    """Makes one `ProgramArray` for all equal computations."""

    def __init__(self) -> None:
        self.count = 0
        self.known: dict[object, Tree] = {}

    def inlined(self, computation: Computation, inputs: list[Tree], calls: Calls) -> Tree:
        """The result of a computation for these arguments."""
        trees = dict(zip(computation.parameters, inputs, strict=True))
        for instruction in needed_by([computation.root]):
            if instruction not in trees:
                operands = tuple([trees[operand] for operand in instruction.operands])
                trees[instruction] = self.result(instruction, operands, calls)
        return trees[computation.root]

    def result(self, instruction: Instruction, operands: tuple[Tree, ...], calls: Calls) -> Tree:
        """The value of an instruction for these operands."""
        op = instruction.op
        if isinstance(op, InlineOp):
            called = instruction.called_computations[0]
            return self.inlined(called, list(operands), (*calls, instruction))
        if isinstance(op, RoutingOp):
            routed = {}
            for path, _ in leaves(instruction.shape):
                operand, operand_path = op.route(path)
                routed[path] = _at(operands[operand], operand_path)
            return _assembled(instruction.shape, (), routed)
        key = op, instruction.opcode, instruction.shape, operands, instruction.called_computations
        if op is None or key not in self.known:
            self.known[key] = self.leaves(ArrayRef(instruction, (), calls), operands, "stage")
        return self.known[key]

    def leaves(self, ref: ArrayRef, operands: tuple[Tree, ...], origin: Origin = "input") -> Tree:
        """The leaves of a value as new arrays."""
        arrays: dict[Path, Tree] = {}
        instruction, group = ref.instruction, object()
        for leaf, (path, shape) in enumerate(leaves(instruction.shape)):
            if isinstance(shape, Shape):
                self.count += 1
                arrays[path] = ProgramArray(
                    name=identifier(instruction.name),
                    dims=shape.dims,
                    dtype=dtype(shape.element_type),
                    origin=origin,
                    ref=ref._replace(path=path),
                    leaf=leaf,
                    shape=shape,
                    operands=operands,
                    number=self.count,
                    group=group,
                )
        return _assembled(instruction.shape, (), arrays)


def _at(tree: Tree, path: Path) -> Tree:
    for step in path:
        assert isinstance(tree, tuple)
        tree = tree[step]
    return tree


def _assembled(shape: AnyShape, path: Path, arrays: dict[Path, Tree]) -> Tree:
    if isinstance(shape, TupleShape):
        return tuple([_assembled(s, (*path, k), arrays) for k, s in enumerate(shape.elements)])
    return arrays.get(path)

"""The arrays of a program: tuples flattened, calls inlined, common subexpressions merged.

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
from hlo.modules.recursion import Recursive, unrolled
from hlo.shapes.shape import AnyShape, Shape, TupleShape, dtype, leaves
from indexing.codegen.graph import Buffer, BufferRole
from indexing.codegen.text import identifier
from indexing.dataflow.needed import needed_by
from indexing.maps.arrays import ArrayRef, Path
from indexing.ops.base import RoutingOp
from indexing.ops.structured_ops import InlineOp


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ProgramArray(Buffer):
    """An array of the program.

    Attributes:
        ref: the array in the module; of several equal ones, the first.
        leaf: its number among the leaves of the instruction's result.
        shape: its shape.
        operands: the operands of the instruction, with tuples as tuples and tokens as None.
        number: a topological number, larger than those of the operands.
        group: an object shared by all leaves of one instruction.
    """

    ref: ArrayRef
    leaf: int
    shape: Shape
    operands: tuple[Tree, ...]
    number: int
    group: object = field(repr=False)

    @property
    def instruction(self) -> Instruction:
        """The instruction that computes the array."""
        return self.ref.instruction

    def operand(self, number: int) -> ProgramArray:
        """Return operand `number`, which is an array."""
        array = self.operands[number]
        assert isinstance(array, ProgramArray)
        return array


Tree: TypeAlias = "ProgramArray | tuple[Tree, ...] | None"


def arrays_of(
    target: Instruction | Computation,
) -> tuple[tuple[ProgramArray, ...], tuple[ProgramArray, ...]]:
    """Return the input arrays and the result arrays of an instruction or a computation.

    The body of a fusion or call is inlined, with the operands as inputs.
    """
    flat = _Flattening()
    if isinstance(target, Computation):
        inputs = [flat.leaves(ArrayRef(p), ()) for p in target.parameters]
        result = unrolled(flat.inlined(target, inputs))
    else:
        named: Sequence[Instruction] = target.operands
        if isinstance(target.op, InlineOp):
            named = target.called_computations[0].parameters
        inputs = [flat.leaves(ArrayRef(p), ()) for p in named]
        result = unrolled(flat.result(target, tuple(inputs)))
    return tuple(_arrays(tuple(inputs))), tuple(_arrays(result))


def _arrays(tree: Tree) -> Iterator[ProgramArray]:
    if isinstance(tree, tuple):
        for inner in tree:
            yield from _arrays(inner)
    elif tree is not None:
        yield tree


class _Flattening:
    """Flattens a program; equal computations share one `ProgramArray`."""

    def __init__(self) -> None:
        self.count = 0
        self.computed: dict[object, Tree] = {}
        self.calls: list[Instruction] = []

    def inlined(self, computation: Computation, inputs: list[Tree]) -> Recursive[Tree]:
        """Return the result of a computation applied to these arguments."""
        trees = dict(zip(computation.parameters, inputs, strict=True))
        for instruction in needed_by([computation.root]):
            if instruction not in trees:
                operands = tuple([trees[operand] for operand in instruction.operands])
                trees[instruction] = yield from self.result(instruction, operands)
        return trees[computation.root]

    def result(self, instruction: Instruction, operands: tuple[Tree, ...]) -> Recursive[Tree]:
        """Return the value of an instruction applied to these operands."""
        op = instruction.op
        if isinstance(op, InlineOp):
            called = instruction.called_computations[0]
            self.calls.append(instruction)
            tree: Tree = yield self.inlined(called, list(operands))
            self.calls.pop()
            return tree
        if isinstance(op, RoutingOp):
            routed = {}
            for path, _ in leaves(instruction.shape):
                operand, operand_path = op.route(path)
                routed[path] = _at(operands[operand], operand_path)
            return _assembled(instruction.shape, (), routed)
        key = op, instruction.opcode, instruction.shape, operands, instruction.called_computations
        if op is None or key not in self.computed:
            self.computed[key] = self.leaves(
                ArrayRef(instruction, (), tuple(self.calls)), operands, "stage"
            )
        return self.computed[key]

    def leaves(self, ref: ArrayRef, operands: tuple[Tree, ...], role: BufferRole = "input") -> Tree:
        """Return new arrays for the leaves of a value, in the structure of its shape."""
        arrays: dict[Path, Tree] = {}
        instruction, group = ref.instruction, object()
        for leaf, (path, shape) in enumerate(leaves(instruction.shape)):
            if isinstance(shape, Shape):
                self.count += 1
                arrays[path] = ProgramArray(
                    name=identifier(instruction.name),
                    dims=shape.dims,
                    dtype=dtype(shape.element_type),
                    role=role,
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

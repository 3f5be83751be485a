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
from typing import Final, TypeAlias

from hlo.modules.module import Computation, Instruction
from hlo.modules.recursion import Recursive, unrolled
from hlo.shapes.shape import AnyShape, Shape, TupleShape, dtype, leaves
from indexing.codegen.graph import Buffer, BufferRole
from indexing.codegen.text import identifier
from indexing.dataflow.needed import needed_by
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef, Path, array_leaves
from indexing.ops.base import RoutingOp
from indexing.ops.structured_ops import InlineOp

MAX_COPIED: Final = 1 << 14
"""Limit on the instructions that inlining repeats: a chain of computations, each of which calls the
next one twice, has exponentially many."""


class NoLoopNest(Exception):
    """An instruction has no loop-nest form; raised to abandon the nest."""

    def __init__(self, unknown: Unknown) -> None:
        super().__init__(unknown.reason)
        self.unknown = unknown


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

    Raises:
        NoLoopNest: the computations that calls share have too many copies (`MAX_COPIED`).
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
        for operand, value in zip(target.operands, inputs, strict=True):
            _require_types(target, operand.shape, value)
        result = unrolled(flat.result(target, tuple(inputs)))
    return tuple(_arrays(tuple(inputs))), tuple(_arrays(result))


def _arrays(tree: Tree) -> Iterator[ProgramArray]:
    if isinstance(tree, tuple):
        for inner in tree:
            yield from _arrays(inner)
    elif tree is not None:
        yield tree


def _require_types(instruction: Instruction, declared: AnyShape, value: Tree) -> None:
    """Check that the arrays of a value have the declared types, as nests only forward them.

    Raises:
        NoLoopNest: the precision of a floating-point type differs.
    """
    for array, (_, _, leaf) in zip(_arrays(value), array_leaves(declared), strict=True):
        if array.shape.element_type != leaf.element_type:
            types = f"{array.shape.element_type} as {leaf.element_type}"
            reason = f"{instruction.opcode} `{instruction.name}` passes {types}"
            raise NoLoopNest(Unknown(reason, instruction))


class _Flattening:
    """Flattens a program; equal computations share one `ProgramArray`.

    Attributes:
        calls: the calls around the instruction that is flattened, outermost first.
        inlined_calls: the result of each computation that is called, by its arguments.
        inlined_once: the computations that have been inlined.
        copied: the number of instructions of computations that have been inlined again.
    """

    def __init__(self) -> None:
        self.count = 0
        self.computed: dict[object, Tree] = {}
        self.calls: list[Instruction] = []
        self.inlined_calls: dict[object, Tree] = {}
        self.inlined_once: set[Computation] = set()
        self.copied = 0

    def inlined(self, computation: Computation, inputs: list[Tree]) -> Recursive[Tree]:
        """Return the result of a computation applied to these arguments."""
        self._count_copies(computation)
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
            call = called, operands
            if call not in self.inlined_calls:
                for parameter, argument in zip(called.parameters, operands, strict=True):
                    _require_types(instruction, parameter.shape, argument)
                self.calls.append(instruction)
                self.inlined_calls[call] = yield self.inlined(called, list(operands))
                self.calls.pop()
            _require_types(instruction, instruction.shape, self.inlined_calls[call])
            return self.inlined_calls[call]
        if isinstance(op, RoutingOp):
            routed = {}
            for path, _ in leaves(instruction.shape):
                operand, operand_path = op.route(path)
                routed[path] = _at(operands[operand], operand_path)
            value = _assembled(instruction.shape, (), routed)
            _require_types(instruction, instruction.shape, value)
            return value
        key = op, instruction.opcode, instruction.shape, operands, instruction.called_computations
        if op is None or key not in self.computed:
            self.computed[key] = self.leaves(
                ArrayRef(instruction, (), tuple(self.calls)), operands, "stage"
            )
        return self.computed[key]

    def _count_copies(self, computation: Computation) -> None:
        """Count the instructions of a computation that has been inlined before."""
        if computation in self.inlined_once:
            self.copied += len(computation)
        self.inlined_once.add(computation)
        if self.copied > MAX_COPIED:
            reason = f"budget: inlined calls repeat more than {MAX_COPIED} instructions"
            raise NoLoopNest(Unknown(reason, computation.root))

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

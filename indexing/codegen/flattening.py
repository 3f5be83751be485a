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

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hlo.modules.module import Computation, Instruction
from hlo.modules.recursion import Recursive, unrolled
from hlo.shapes.shape import AnyShape, Shape, TupleShape, dtype, leaves
from indexing.codegen.graph import BufferRole, Index
from indexing.codegen.program_arrays import (
    CarriedLeaf,
    LoopArrays,
    NoLoopNest,
    ProgramArray,
    Tree,
    arrays_in,
)
from indexing.codegen.text import MAX_REPEATED, identifier
from indexing.dataflow.loops.counted import loop_facts
from indexing.dataflow.loops.facts import InductionVariable, LoopFacts, TripCount
from indexing.dataflow.needed import needed_by
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef, Path, array_leaves
from indexing.ops.base import RoutingOp
from indexing.ops.control import While, callees
from indexing.ops.integer_rules import range_of
from indexing.ops.structured_ops import InlineOp
from simplifier.atoms import Variable
from simplifier.interval import contains
from simplifier.linear import Expr

MAX_COPIED: Final = 1 << 14
"""Limit on the instructions that inlining repeats: a chain of computations, each of which calls the
next one twice, has exponentially many."""


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
        flat.hidden_calls = 1
        inputs = [flat.leaves(ArrayRef(p), ()) for p in named]
        for operand, value in zip(target.operands, inputs, strict=True):
            _require_types(target, operand.shape, value)
        result = unrolled(flat.result(target, tuple(inputs)))
    return tuple(arrays_in(tuple(inputs))), tuple(arrays_in(result))


def _require_types(instruction: Instruction, declared: AnyShape, value: Tree) -> None:
    """Check that the arrays of a value have the declared types, as nests only forward them.

    Raises:
        NoLoopNest: the precision of a floating-point type differs.
    """
    for array, (_, _, leaf) in zip(arrays_in(value), array_leaves(declared), strict=True):
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
        hidden_calls: the number of outermost `calls` whose operands are inputs, of any value.
        values: the value of each inlined instruction, with the other calls around it.
    """

    def __init__(self) -> None:
        self.count = 0
        self.computed: dict[object, Tree] = {}
        self.calls: list[Instruction] = []
        self.inlined_calls: dict[object, Tree] = {}
        self.inlined_once: set[Computation] = set()
        self.copied = 0
        self.hidden_calls = 0
        self.values: dict[tuple[Instruction, tuple[Instruction, ...]], Tree] = {}

    def inlined(self, computation: Computation, inputs: list[Tree]) -> Recursive[Tree]:
        """Return the result of a computation applied to these arguments."""
        self._count_copies(computation)
        trees = dict(zip(computation.parameters, inputs, strict=True))
        calls = self._known_calls()
        self.values.update({(parameter, calls): tree for parameter, tree in trees.items()})
        for instruction in needed_by([computation.root]):
            if instruction not in trees:
                operands = tuple([trees[operand] for operand in instruction.operands])
                tree = yield from self.result(instruction, operands)
                trees[instruction] = self.values[instruction, calls] = tree
        return trees[computation.root]

    def _known_calls(self) -> tuple[Instruction, ...]:
        """Return the calls around the instruction that follow from the program."""
        return tuple(self.calls[self.hidden_calls :])

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
            if isinstance(op, While):
                self.computed[key] = yield from self.loop(instruction, operands[0])
            else:
                ref = ArrayRef(instruction, (), tuple(self.calls))
                self.computed[key] = self.leaves(ref, operands, "stage")
        return self.computed[key]

    # ------------------------------------------------------------ loops

    def loop(self, loop: Instruction, operand: Tree) -> Recursive[Tree]:
        """Return the value of a counted ``while`` applied to this operand.

        Raises:
            NoLoopNest: the program gives no formula of the trip count.
        """
        facts, count = self._counted(loop)
        if not count.upper:
            return operand
        _, body = callees(loop, "condition", "body")
        iteration = Variable(f"i{self._loops_around(loop)}", 0, count.upper - 1)
        known = dict(known_values(facts, count.upper))
        inside = *self.calls, loop
        kept: dict[Path, ProgramArray] = {}  # the loop does not change them
        carried: dict[Path, ProgramArray] = {}
        places = list(zip(array_leaves(loop.shape), arrays_in(operand), strict=True))
        for (leaf, path, shape), first in places:
            if path in facts.invariants:
                kept[path] = first
            else:
                ref = ArrayRef(body.parameters[0], path, inside)
                value = known[path].at(iteration) if path in known else None
                carried[path] = self._array(ref, leaf, shape, object(), known=value)
        self.calls.append(loop)
        _require_types(loop, loop.shape, operand)
        body_result = yield self.inlined(body, [_assembled(loop.shape, (), kept | carried)])
        _require_types(loop, loop.shape, body_result)
        self.calls.pop()
        after = {path: value for (_, path, _), value in
                 zip(array_leaves(loop.shape), arrays_in(body_result), strict=True)}  # fmt: skip
        changed = {leaf: CarriedLeaf(carried[path], first, after[path])
                   for (leaf, path, _), first in places
                   if path not in kept and (path not in known or count.number is None)}  # fmt: skip
        self.count += 1
        outside = frozenset(kept.values())
        group = LoopArrays(loop, iteration, *self._formula(loop, count), changed, outside,
                           self.count)  # fmt: skip
        results = dict(kept)
        for (leaf, path, shape), _ in places:
            if path not in kept:
                is_known = path in known and count.number is not None
                value = known[path].at(count.upper) if is_known else None
                ref = ArrayRef(loop, path, tuple(self.calls))
                results[path] = self._array(ref, leaf, shape, group, known=value)
        return _assembled(loop.shape, (), results)

    def _loops_around(self, loop: Instruction) -> int:
        """Return the number of loops around a loop.

        Raises:
            NoLoopNest: there are too many.
        """
        depth = sum(isinstance(call.op, While) for call in self.calls)
        if depth >= MAX_REPEATED:
            raise _no_loop(loop, f"budget: it is within {MAX_REPEATED} other loops")
        return depth

    def _counted(self, loop: Instruction) -> tuple[LoopFacts, TripCount]:
        """Return the facts about a loop and its trip count.

        Raises:
            NoLoopNest: the program gives no formula of the trip count.
        """
        if len(self.calls) < self.hidden_calls:
            reason = "the values of its operand decide the number of iterations"
            raise _no_loop(loop, reason)
        facts = loop_facts(loop, self._known_calls())
        count = facts.trip_count
        if isinstance(count, Unknown):
            raise _no_loop(loop, count.reason)
        if any(shape.is_dynamic for _, _, shape in array_leaves(loop.shape)):
            raise _no_loop(loop, "it carries an array of dynamic shape")
        if count.origin != "derived":
            raise _no_loop(loop, "its condition does not decide the number of iterations")
        return facts, count

    def _formula(
        self, loop: Instruction, count: TripCount
    ) -> tuple[Expr, tuple[tuple[Variable, ProgramArray, Index], ...]]:
        """Return a trip count as a formula, and the integers that it mentions.

        Raises:
            NoLoopNest: there is no formula, or its integers are not at hand.
        """
        if count.iterations is None:
            raise _no_loop(loop, f"only bounds of its trip count are known, {count}")
        runtime = []
        for rt in count.runtime:
            assert isinstance(rt.array, ArrayRef)
            instruction, path, calls = rt.array
            array = _at(self.values.get((instruction, calls)), path)
            if not isinstance(array, ProgramArray):
                raise _no_loop(loop, f"`{instruction.name}` decides its number of iterations")
            runtime.append((rt.variable, array, rt.index))
        return count.iterations, tuple(runtime)

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
        arrays: dict[Path, ProgramArray] = {}
        instruction, group = ref.instruction, object()
        for leaf, (path, shape) in enumerate(leaves(instruction.shape)):
            if isinstance(shape, Shape):
                own = ref._replace(path=path)
                arrays[path] = self._array(own, leaf, shape, group, operands, role)
        return _assembled(instruction.shape, (), arrays)

    def _array(
        self,
        ref: ArrayRef,
        leaf: int,
        shape: Shape,
        group: object,
        operands: tuple[Tree, ...] = (),
        role: BufferRole = "stage",
        known: Expr | None = None,
    ) -> ProgramArray:
        self.count += 1
        return ProgramArray(
            name=identifier(ref.instruction.name),
            dims=shape.dims,
            dtype=dtype(shape.element_type),
            role=role,
            ref=ref,
            leaf=leaf,
            shape=shape,
            operands=operands,
            number=self.count,
            group=group,
            known=known,
        )


def known_values(facts: LoopFacts, count: int) -> Iterator[tuple[Path, InductionVariable]]:
    """Yield the induction variables of known start and step that do not wrap around."""
    for variable in facts.variables:
        limits = range_of(variable.element_type)
        values = variable.at(Variable("i", 0, count))
        is_known = variable.start.is_constant and variable.step.is_constant
        if is_known and limits is not None and contains(limits, values.bounds):
            yield variable.path, variable


def _no_loop(loop: Instruction, reason: str) -> NoLoopNest:
    return NoLoopNest(Unknown(f"no loop nest for while `{loop.name}`: {reason}", loop))


def _at(tree: Tree, path: Path) -> Tree:
    for step in path:
        tree = tree[step] if isinstance(tree, tuple) else None
    return tree


def _assembled(shape: AnyShape, path: Path, arrays: Mapping[Path, Tree]) -> Tree:
    if isinstance(shape, TupleShape):
        return tuple([_assembled(s, (*path, k), arrays) for k, s in enumerate(shape.elements)])
    return arrays.get(path)

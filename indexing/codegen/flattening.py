"""The arrays of a program: tuples flattened, calls inlined, common subexpressions merged.

>>> import hlo, indexing.ops
>>> module = hlo.parse('''
... double { x = f32[3] parameter(0)  ROOT y = f32[3] add(x, x) }
... ENTRY e { p = f32[3] parameter(0)  ROOT f = f32[3] fusion(p), kind=kLoop, calls=double }''')
>>> inputs, (result,) = arrays_of(module.entry.root)
>>> result.name, [operand == {(): inputs[0]} for operand in result.operands]
('y', [True, True])
>>> [call.name for call in result.ref.calls]
['f']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hlo.modules.module import Computation, Instruction
from hlo.modules.recursion import Recursive, run_recursive
from hlo.shapes.element_type import range_of
from hlo.shapes.shape import AnyShape, Shape, dtype
from indexing.codegen.graph import BufferRole, Index
from indexing.codegen.program_arrays import (
    CarriedLeaf,
    Leaves,
    LoopArrays,
    NoLoopNest,
    ProgramArray,
    arrays_in,
)
from indexing.codegen.text import MAX_REPEATED, identifier
from indexing.dataflow.loops.counted import loop_facts
from indexing.dataflow.loops.facts import InductionVariable, LoopFacts, TripCount
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef, Path, array_leaves
from indexing.ops.base import RoutingOp
from indexing.ops.control import While, callees
from indexing.ops.structured_ops import InlineOp
from indexing.programs.arrays import ProgramArrays, key_of
from simplifier.atoms import Variable
from simplifier.interval import contains
from simplifier.linear import Expr

_FORWARDING: Final = (InlineOp, RoutingOp)

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
        result = flat.inline(target, inputs)
    else:
        named: Sequence[Instruction] = target.operands
        if isinstance(target.op, InlineOp):
            named = target.called_computations[0].parameters
        flat.hidden_calls = 1
        inputs = [flat.leaves(ArrayRef(p), ()) for p in named]
        for operand, value in zip(target.operands, inputs, strict=True):
            _require_types(target, operand.shape, value)
        result = run_recursive(flat.apply_to(target, tuple(inputs)))
    return tuple(arrays_in(inputs)), tuple(result.values())


def _require_types(instruction: Instruction, declared: AnyShape, value: Leaves) -> None:
    """Check that the arrays of a value have the declared types, as nests only forward them.

    Raises:
        NoLoopNest: the precision of a floating-point type differs.
    """
    for array, (_, _, leaf) in zip(value.values(), array_leaves(declared), strict=True):
        if array.shape.element_type != leaf.element_type:
            types = f"{array.shape.element_type} as {leaf.element_type}"
            reason = f"{instruction.opcode} `{instruction.name}` passes {types}"
            raise NoLoopNest(Unknown(reason, instruction))


class _Flattening(ProgramArrays[ProgramArray]):
    """Flattens a program; equal computations share one `ProgramArray`.

    Attributes:
        inlined_once: the computations that have been inlined.
        copied: the number of instructions of computations that have been inlined again.
        hidden_calls: the number of outermost `calls` whose operands are inputs, of any value.
        known: the values of inlined instructions, by the other calls around them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.computations: dict[object, Leaves] = {}
        self.inlined_once: set[Computation] = set()
        self.copied = 0
        self.hidden_calls = 0
        self.known: dict[tuple[Instruction, ...], Mapping[Instruction, Leaves]] = {}

    def enter(self, computation: Computation, values: Mapping[Instruction, Leaves]) -> None:
        """Count the instructions of a repeated computation, and compare the types of arguments."""
        if computation in self.inlined_once:
            self.copied += len(computation)
        self.inlined_once.add(computation)
        if self.copied > MAX_COPIED:
            reason = f"budget: inlined calls repeat more than {MAX_COPIED} instructions"
            raise NoLoopNest(Unknown(reason, computation.root))
        for parameter, value in values.items():
            _require_types(self.calls[-1] if self.calls else parameter, parameter.shape, value)
        self.known[self._known_calls()] = values

    def _known_calls(self) -> tuple[Instruction, ...]:
        """Return the calls around the instruction that follow from the program."""
        return tuple(self.calls[self.hidden_calls :])

    def apply_to(self, instruction: Instruction, operands: tuple[Leaves, ...]) -> Recursive[Leaves]:
        """Return the value of an instruction applied to these operands."""
        op = instruction.op
        if isinstance(op, While):
            key = self._key(instruction, operands)
            if key not in self.computations:
                self.computations[key] = yield from self.loop(instruction, operands[0])
            return self.computations[key]
        if not isinstance(op, _FORWARDING):
            return self.compute_value(instruction, operands)
        value = yield from super().apply_to(instruction, operands)
        _require_types(instruction, instruction.shape, value)
        return value

    def compute_value(self, instruction: Instruction, operands: tuple[Leaves, ...]) -> Leaves:
        """Return the value of an instruction; equal ones have one."""
        key = self._key(instruction, operands)
        if instruction.op is None or key not in self.computations:
            ref = ArrayRef(instruction, (), tuple(self.calls))
            self.computations[key] = self.leaves(ref, operands, "stage")
        return self.computations[key]

    def _key(self, instruction: Instruction, operands: tuple[Leaves, ...]) -> object:
        op, called = instruction.op, instruction.called_computations
        return op, instruction.opcode, instruction.shape, key_of(operands), called

    # ------------------------------------------------------------ loops

    def loop(self, loop: Instruction, operand: Leaves) -> Recursive[Leaves]:
        """Return the value of a counted ``while`` applied to this operand.

        Raises:
            NoLoopNest: the program gives no formula of the trip count.
        """
        facts, count = self._count_trips(loop)
        if not count.upper:
            return operand
        _, body = callees(loop, "condition", "body")
        iteration = Variable(f"i{self._loops_around(loop)}", 0, count.upper - 1)
        known = dict(known_values(facts, count.upper))
        inside = *self.calls, loop
        kept: dict[Path, ProgramArray] = {}  # the loop does not change them
        carried: dict[Path, ProgramArray] = {}
        places = list(array_leaves(loop.shape))
        for leaf, path, shape in places:
            if path in facts.invariants:
                kept[path] = operand[path]
            else:
                ref = ArrayRef(body.parameters[0], path, inside)
                value = known[path].at(iteration) if path in known else None
                carried[path] = self._array(ref, leaf, shape, object(), known=value)
        self.calls.append(loop)
        _require_types(loop, loop.shape, operand)
        start = {path: (kept if path in kept else carried)[path] for _, path, _ in places}
        after = (yield self.values_of(body, [start], [body.root]))[body.root]
        _require_types(loop, loop.shape, after)
        self.calls.pop()
        changed = {leaf: CarriedLeaf(carried[path], operand[path], after[path])
                   for leaf, path, _ in places
                   if path not in kept and (path not in known or count.number is None)}  # fmt: skip
        self.count += 1
        outside = frozenset(kept.values())
        group = LoopArrays(loop, iteration, *self._formula(loop, count), changed, outside,
                           self.count)  # fmt: skip
        results = {}
        for leaf, path, shape in places:
            if path in kept:
                results[path] = kept[path]
            else:
                is_known = path in known and count.number is not None
                value = known[path].at(count.upper) if is_known else None
                ref = ArrayRef(loop, path, tuple(self.calls))
                results[path] = self._array(ref, leaf, shape, group, known=value)
        return results

    def _loops_around(self, loop: Instruction) -> int:
        """Return the number of loops around a loop.

        Raises:
            NoLoopNest: there are too many.
        """
        depth = sum(isinstance(call.op, While) for call in self.calls)
        if depth >= MAX_REPEATED:
            raise _no_loop(loop, f"budget: it is within {MAX_REPEATED} other loops")
        return depth

    def _count_trips(self, loop: Instruction) -> tuple[LoopFacts, TripCount]:
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
            array = self.known.get(calls, {}).get(instruction, {}).get(path)
            if array is None:
                raise _no_loop(loop, f"`{instruction.name}` decides its number of iterations")
            runtime.append((rt.variable, array, rt.index))
        return count.iterations, tuple(runtime)

    def leaves(
        self, ref: ArrayRef, operands: tuple[Leaves, ...], role: BufferRole = "input"
    ) -> Leaves:
        """Return new arrays for the leaves of a value, in the structure of its shape."""
        group = object()
        return {
            path: self._array(ref._replace(path=path), leaf, shape, group, operands, role)
            for leaf, path, shape in array_leaves(ref.instruction.shape)
        }

    def _array(
        self,
        ref: ArrayRef,
        leaf: int,
        shape: Shape,
        group: object,
        operands: tuple[Leaves, ...] = (),
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

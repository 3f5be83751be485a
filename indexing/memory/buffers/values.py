"""Values in memory: each leaf that an instruction writes, followed through the whole schedule.

The schedule is the order of the text, with the computations of `while`, `call` and `conditional`
in place of their calls: the condition of a loop, its body, then the loop itself.  A value is alive
from the step that writes it to the last step that reads it, both inclusive, as in XLA's live
ranges.  A buffer holds the values that share memory: those of a loop's state, or of an update in
place.

Source: XLA ``xla/hlo/utils/hlo_live_range.cc`` and ``hlo_dataflow_analysis.cc``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from hlo.modules.module import Computation, Instruction, Module
from hlo.shapes.shape import Shape, leaves
from indexing.dataflow.soundness import fault_of
from indexing.maps.arrays import ArrayRef, Path
from indexing.memory.buffers.assignment import BufferAssignment
from indexing.memory.buffers.shared_results import (
    Places,
    assigned_shares,
    declared_shares,
    places_of,
)
from indexing.ops.control import BRANCHES, While, callees
from indexing.ops.element import declarations_of, shared_leaf
from indexing.ops.structured_ops import InlineOp
from simplifier.unknown import Unknown

MAX_STEPS: Final = 1 << 20
"""Limit on the steps of a schedule: computations that call others twice, which call others twice,
have exponentially many."""
MAX_DEPTH: Final = 128
"""Limit on the depth of nested calls."""


Origin: TypeAlias = Literal["given", "written", "taken"]


class ReadStep(NamedTuple):
    """A read of a value.

    Attributes:
        step: the number of the step.
        operand, path: the leaf of the instruction's operand; no leaf if the read is that of a loop
            or a conditional, after the step.
    """

    step: int
    operand: int | None = None
    path: Path = ()

    def is_after(self, step: int) -> bool:
        """Return True if the read follows what the instruction of a step writes."""
        return self.step > step or (self.step == step and self.operand is None)


@dataclass(eq=False, slots=True)
class Value:
    """The contents of an array from a step that writes it on.

    Attributes:
        array: the leaf that is written.
        shape: its shape.
        first, last: the steps in which it is alive.
        origin: an instruction writes it; it is given, as an argument or a constant; or a loop or a
            conditional takes it from others.
        reads: the reads by instructions, in the order of their steps.
        heirs: the values that a loop or a conditional makes of it, after a step each, in the same
            memory.
        is_result: what calls the program reads it, or owns its memory.
        above: a value in the same memory; None for the value that stands for them.
    """

    array: ArrayRef
    shape: Shape
    first: int
    last: int
    origin: Origin = "written"
    reads: list[ReadStep] = field(default_factory=list)
    heirs: list[tuple[int, Value]] = field(default_factory=list)
    is_result: bool = False
    above: Value | None = None

    @property
    def buffer(self) -> Value:
        """The value that stands for all values in the same memory."""
        top = self
        while top.above is not None:
            top = top.above
        while self.above is not None and self.above is not top:
            self.above, self = top, self.above
        return top

    def share(self, other: Value) -> None:
        """Place two values in the same memory."""
        mine, theirs = self.buffer, other.buffer
        if mine is not theirs:
            theirs.above = mine


Leaves: TypeAlias = "dict[Path, Value]"
"""The values of the arrays of one result."""


@dataclass(slots=True)
class Lives:
    """The values of a module, and the steps of its schedule.

    Attributes:
        steps: the instructions in the order of their execution.
        values: all values, in the order in which they are written.
        arguments, results: the values of parameters and of the root of ENTRY.
        choices: the first and the last step of each branch of each conditional.
    """

    steps: list[Instruction] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    choices: list[list[tuple[int, int]]] = field(default_factory=list)
    arguments: list[Value] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)

    @property
    def now(self) -> int:
        """The number of the next step."""
        return len(self.steps)

    def write(self, array: ArrayRef, shape: Shape, origin: Origin = "written") -> Value:
        """Return a new value, alive in the next step."""
        value = Value(array, shape, self.now, self.now, origin)
        self.values.append(value)
        return value

    def keep(self, values: Iterable[Value], until: int | None = None) -> None:
        """Keep values alive, by default up to the next step."""
        at = self.now if until is None else until
        for value in values:
            value.last = max(value.last, at)

    def read(self, operands: Iterable[Leaves]) -> None:
        """Let the instruction of the next step read its operands."""
        for number, operand in enumerate(operands):
            for path, value in operand.items():
                value.last = self.now
                value.reads.append(ReadStep(self.now, number, path))

    def test(self, values: Iterable[Value]) -> None:
        """Let a loop or a conditional read values after the steps so far."""
        for value in values:
            value.reads.append(ReadStep(self.now - 1))


def lives_of(module: Module, assignment: BufferAssignment | None = None) -> Lives | Unknown:
    """Return the values of a module along its schedule, or why they are unknown.

    Args:
        assignment: XLA's buffer assignment: results that it places in the memory of operands share
            a buffer with them.
    Raises:
        HloError: an instruction is invalid.
    """
    lives = Lives()
    entry = module.entry
    arguments = {p: _new(lives, p, "given") for p in entry.parameters}
    lives.arguments += [value for given in arguments.values() for value in given.values()]
    places = {} if assignment is None else places_of(assignment)
    root = _Schedule(lives, places).computation(entry, [arguments[p] for p in entry.parameters])
    if isinstance(root, Unknown):
        return root
    lives.results += root.values()
    kept = dict.fromkeys([*lives.arguments, *lives.results])
    for alias in module.header("input_output_alias", ()):
        parameter = entry.parameters[alias.parameter]
        given, taken = arguments[parameter].get(alias.index), root.get(alias.output)
        if given is not None and taken is not None and given.shape == taken.shape:
            given.share(taken)
            if given is not taken:
                kept.pop(given, None)  # its memory is the result's after the last read
    lives.keep(kept, max(lives.now - 1, 0))
    for value in kept:
        value.is_result = True
    return lives


def _new(lives: Lives, instruction: Instruction, origin: Origin) -> Leaves:
    """Return new values of all arrays of an instruction."""
    return {
        path: lives.write(ArrayRef(instruction, path), shape, origin)
        for path, shape in leaves(instruction.shape)
        if isinstance(shape, Shape)
    }


class _Schedule:
    """Follows the values through the steps of a schedule."""

    def __init__(self, lives: Lives, places: Places) -> None:
        self.lives = lives
        self.places = places
        self.depth = 0

    def computation(self, called: Computation, arguments: list[Leaves]) -> Leaves | Unknown:
        """Append the steps of a computation; return the values of its root."""
        if self.depth > MAX_DEPTH:
            return Unknown(f"calls are nested more than {MAX_DEPTH} deep", called.root)
        self.depth += 1
        values = self._steps(called, arguments)
        self.depth -= 1
        return values

    def _steps(self, called: Computation, arguments: list[Leaves]) -> Leaves | Unknown:
        held: dict[Instruction, Leaves] = {}
        numbers = {parameter: n for n, parameter in enumerate(called.parameters)}
        for each in called.instructions:
            if self.lives.now > MAX_STEPS:
                return Unknown(f"the schedule has more than {MAX_STEPS:,} steps", each)
            if (fault := fault_of(each)) is not None:
                raise fault
            if each in numbers:
                held[each] = arguments[numbers[each]]
                self.lives.steps.append(each)
                continue
            operands = [held[operand] for operand in each.operands]
            values = self._step(each, operands)
            if isinstance(values, Unknown):
                return values
            held[each] = values
            self.lives.steps.append(each)
        return held[called.root]

    def _step(self, each: Instruction, operands: list[Leaves]) -> Leaves | Unknown:
        """Return the values of an instruction, after the steps of what it calls."""
        declared = declarations_of(each)
        if isinstance(each.op, While):
            return self._loop(each, operands[0])
        if each.opcode == "call" and isinstance(each.op, InlineOp):
            return self.computation(each.called_computations[0], operands)
        if declared.is_control_flow:
            return self._branches(each, operands)
        if not declared.passes_leaves:
            if declared.is_view and isinstance(each.operands[0].shape, Shape):
                self.lives.keep(operands[0].values())  # a bitcast reads nothing
            else:
                self.lives.read(operands)
        shares = {share.path: share.operand for share in declared_shares(each)}
        values: Leaves = {}
        for path, shape in leaves(each.shape):
            if isinstance(shape, Shape):
                values[path] = self._value(ArrayRef(each, path), shape, operands)
                base = operands[shares[path]].get(()) if path in shares else None
                if base is not None and base.shape == shape:
                    base.share(values[path])
        for share in assigned_shares(each, self.places):
            operands[share.operand][()].share(values[share.path])
        return values

    def _value(self, array: ArrayRef, shape: Shape, operands: list[Leaves]) -> Value:
        """Return the value of a leaf: that of an operand's leaf, or a new one."""
        shared = shared_leaf(array.instruction, array.path)
        same = None if shared is None else operands[shared[0]].get(shared[1])
        is_given = declarations_of(array.instruction).is_given
        origin: Origin = "given" if is_given else "written"
        return self.lives.write(array, shape, origin) if same is None else same

    def _loop(self, loop: Instruction, state: Leaves) -> Leaves | Unknown:
        """Return the state after a loop; all states share the memory of the first."""
        condition, body = callees(loop, "condition", "body")
        self.lives.keep(state.values())
        tested = self._renew_values(condition.parameters[0], state)
        end = self.computation(condition, [tested])
        if isinstance(end, Unknown):
            return end
        self.lives.test(end.values())
        self.lives.keep([*tested.values(), *end.values()])
        left = self.lives.now
        before = self._renew_values(body.parameters[0], tested)
        after = self.computation(body, [before])
        if isinstance(after, Unknown):
            return after
        self.lives.keep(after.values())
        for path, value in after.items():
            value.heirs.append((self.lives.now - 1, tested[path]))  # the next iteration's
        result = self._renew_values(loop, tested, left)
        for path, value in after.items():
            state[path].share(value)
        return result

    def _renew_values(
        self, holder: Instruction, state: Mapping[Path, Value], at: int | None = None
    ) -> Leaves:
        """Return new values in the memory of others, with their contents at a step."""
        renewed = _new(self.lives, holder, "taken")
        for path, value in renewed.items():
            state[path].share(value)
            state[path].heirs.append(((self.lives.now if at is None else at) - 1, value))
        return renewed

    def _branches(self, choice: Instruction, operands: list[Leaves]) -> Leaves | Unknown:
        """Return the result of a conditional, which shares the memory of all branches' results."""
        results: list[Leaves] = []
        branches: list[tuple[int, int]] = []
        self.lives.test(operands[0].values())
        for number, branch in enumerate(callees(choice, *BRANCHES)):
            start = self.lives.now
            result = self.computation(branch, [operands[number + 1]])
            if isinstance(result, Unknown):
                return result
            branches.append((start, self.lives.now - 1))
            results.append(result)
        self.lives.choices.append(branches)
        everything = [*operands, *results]
        self.lives.keep(value for leaf in everything for value in leaf.values())
        chosen = _new(self.lives, choice, "taken")
        for result, (_, end) in zip(results, branches, strict=True):
            for path, value in chosen.items():
                value.share(result[path])
                result[path].heirs.append((end, value))
        return chosen

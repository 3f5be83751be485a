"""`ProgramArrays`: the arrays of programs, with calls inlined and tuples routed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

from hlo.modules.effects import has_own_effect
from hlo.modules.module import Computation, Instruction
from hlo.modules.recursion import Recursive, bottom_up, run_recursive
from hlo.shapes.shape import leaves
from indexing.dataflow.needed import dependencies_of
from indexing.maps.arrays import Path
from indexing.ops.base import RoutingOp
from indexing.ops.collective_bases import Collective
from indexing.ops.structured_ops import InlineOp

ArrayT = TypeVar("ArrayT")
Value: TypeAlias = Mapping[Path, ArrayT]
Values: TypeAlias = Mapping[Instruction, Value[ArrayT]]


class ProgramArrays(ABC, Generic[ArrayT]):
    """The arrays of programs.  A value is a mapping from paths to the arrays of its leaves.

    Attributes:
        calls: the calls around the instruction that is applied, outermost first.
    """

    def __init__(self) -> None:
        self.calls: list[Instruction] = []
        self._inlined: dict[Hashable, Value[ArrayT]] = {}

    @abstractmethod
    def enter(self, computation: Computation, values: Values[ArrayT]) -> None:
        """Check the budget and the arguments of a computation that will be inlined.

        Args:
            values: the values of its parameters; those of its instructions will be added.
        """

    @abstractmethod
    def compute_value(
        self, instruction: Instruction, operands: tuple[Value[ArrayT], ...]
    ) -> Value[ArrayT]:
        """Return the value of an instruction that is neither a call nor routes tuples."""

    def inline(self, computation: Computation, inputs: Sequence[Value[ArrayT]]) -> Value[ArrayT]:
        """Return the result of a computation applied to these arguments."""
        return self.values(computation, inputs, [computation.root])[computation.root]

    def values(
        self,
        computation: Computation,
        inputs: Sequence[Value[ArrayT]],
        roots: Sequence[Instruction],
    ) -> Values[ArrayT]:
        """Return the values of a computation's instructions on which `roots` depend.

        Args:
            inputs: the arguments of the computation.
        """
        return run_recursive(self.values_of(computation, inputs, roots))

    def values_of(
        self,
        computation: Computation,
        inputs: Sequence[Value[ArrayT]],
        roots: Sequence[Instruction],
    ) -> Recursive[Values[ArrayT]]:
        """Return `values` within a recursion."""
        values = dict(zip(computation.parameters, inputs, strict=True))
        self.enter(computation, values)
        for instruction in dependencies_of(roots):
            if instruction not in values:
                operands = tuple([values[operand] for operand in instruction.operands])
                values[instruction] = yield from self.apply_to(instruction, operands)
        return values

    def apply_to(
        self, instruction: Instruction, operands: tuple[Value[ArrayT], ...]
    ) -> Recursive[Value[ArrayT]]:
        """Return the value of an instruction applied to these operands, within a recursion."""
        op = instruction.op
        if isinstance(op, InlineOp):
            called = instruction.called_computations[0]
            call = called, key_of(operands)
            if call not in self._inlined or has_unique_values(called):
                self.calls.append(instruction)
                values = yield self.values_of(called, operands, [called.root])
                self._inlined[call] = values[called.root]
                self.calls.pop()
            return self._inlined[call]
        if isinstance(op, RoutingOp):
            sources = [(path, *op.route(path)) for path, _ in leaves(instruction.shape)]
            return {path: operands[number][inside] for path, number, inside in sources
                    if inside in operands[number]}  # fmt: skip
        return self.compute_value(instruction, operands)


def key_of(values: Iterable[Value[ArrayT]]) -> Hashable:
    """Return a key that is equal for values with the same arrays."""
    return tuple([tuple(value.items()) for value in values])


def is_unique(instruction: Instruction) -> bool:
    """Return True if equal instructions may have other values, such as random numbers.

    Collectives have an effect, but their values are a function of their operands on all devices.
    """
    is_own = has_own_effect(instruction) and not isinstance(instruction.op, Collective)
    return is_own or any(map(has_unique_values, instruction.called_computations))


def has_unique_values(computation: Computation) -> bool:
    """Return True if equal applications of a computation may have other values."""
    return bottom_up(computation, has_unique_values, lambda c: any(map(is_unique, c)))

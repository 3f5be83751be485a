"""The arrays of a program, and those of its counted loops; `flattening` makes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.codegen.graph import Buffer, Index
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef, Path
from simplifier.atoms import Variable
from simplifier.linear import Expr


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
        operands: the arrays of each operand of the instruction, by path; tokens have none.
        number: a topological number, larger than those of the operands.
        group: an object shared by all leaves of one instruction.
        known: the value of an induction variable, over the iterations of the loops around it.
    """

    ref: ArrayRef
    leaf: int
    shape: Shape
    operands: tuple[Leaves, ...]
    number: int
    group: object = field(repr=False)
    known: Expr | None = None

    @property
    def instruction(self) -> Instruction:
        """The instruction that computes the array."""
        return self.ref.instruction

    def operand(self, number: int) -> ProgramArray:
        """Return operand `number`, which is an array."""
        (array,) = self.operands[number].values()
        return array


Leaves: TypeAlias = Mapping[Path, ProgramArray]


class CarriedLeaf(NamedTuple):
    """A leaf that a counted loop changes.

    Attributes:
        carried: its value at the start of an iteration, a parameter of the body.
        first: its value before the loop.
        following: its value after an iteration.
    """

    carried: ProgramArray
    first: ProgramArray
    following: ProgramArray


@dataclass(frozen=True, slots=True, eq=False)
class LoopArrays:
    """The arrays of a counted loop; the `group` of its results.

    Attributes:
        instruction: the ``while``.
        iteration: the number of the iteration, from 0.
        count: the number of iterations, over `runtime`.
        runtime: the integers that `count` mentions: a variable, the array, the index.
        leaves: the leaves that the loop changes, by their number.  Induction variables are not
            listed: their values are `ProgramArray.known`.
        outside: the arrays that the body takes from outside of the loop.
        number: a topological number, smaller than those of the results.
    """

    instruction: Instruction
    iteration: Variable
    count: Expr
    runtime: tuple[tuple[Variable, ProgramArray, Index], ...]
    leaves: Mapping[int, CarriedLeaf]
    outside: frozenset[ProgramArray]
    number: int


def arrays_in(values: Iterable[Leaves]) -> Iterator[ProgramArray]:
    """Yield the arrays of some values, in the order of the leaves."""
    for value in values:
        yield from value.values()

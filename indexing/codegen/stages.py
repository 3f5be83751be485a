"""Stages that fill arrays, loops that repeat stages, and the nest of all stages of a program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlo.modules.module import Computation, Instruction
from indexing.codegen.graph import (
    Array,
    Buffer,
    Index,
    IndexValue,
    Node,
    Reduction,
    roots_of,
    topological_order,
    with_cases,
)
from indexing.maps.displayed import Displayed
from simplifier.atoms import Variable, point_count


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """A loop nest that fills buffers of equal sizes.

    Attributes:
        buffers: the buffers; several for a reduction with several totals.
        dims: the loop over each dimension, outermost first.
        body: the element at an index, or a reduction with a total for each buffer.
        at: the index that an update in place stores the element at; None for a stage that fills
            the buffer at the index of the loops.
    """

    buffers: tuple[Buffer, ...]
    dims: tuple[Variable, ...]
    body: Node | Reduction
    at: Index | None = None

    @property
    def name(self) -> str:
        """The name of the (first) buffer."""
        return self.buffers[0].name

    def nodes(self) -> Iterator[Node]:
        """Yield the nodes of the stage in topological order, each once."""
        return topological_order(roots_of(self.body), with_cases)

    @property
    def iterations(self) -> int:
        """The number of iterations of its innermost loop."""
        ranges = self.body.ranges if isinstance(self.body, Reduction) else ()
        return point_count((*self.dims, *ranges))


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """An array that each iteration of a loop replaces.

    Attributes:
        buffer: its buffer, which an earlier stage fills with the first value.
        following: the buffer of the next value; `buffer` itself if the loop updates it in place.
    """

    buffer: Buffer
    following: Buffer

    @property
    def is_in_place(self) -> bool:
        """True if the stages of the loop update the buffer."""
        return self.following is self.buffer


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """A counted loop over stages: a ``while`` whose trip count is a number or a formula.

    Attributes:
        instruction: the ``while``.
        variable: the number of the iteration, from 0.
        count: the number of iterations.
        carried: the arrays that an iteration passes to the next one.
        stages: the stages of one iteration, in execution order.
    """

    instruction: Instruction
    variable: Variable
    count: IndexValue
    carried: tuple[Carried, ...]
    stages: tuple[Stage | Repeat, ...]

    @property
    def iterations(self) -> int:
        """The maximum number of iterations of the innermost loops."""
        return (self.variable.upper + 1) * sum(stage.iterations for stage in self.stages)


def all_loops(stages: Iterable[Stage | Repeat]) -> Iterator[Repeat]:
    """Yield the loops over stages, outer loops first."""
    for stage in stages:
        if isinstance(stage, Repeat):
            yield stage
            yield from all_loops(stage.stages)


def all_stages(stages: Iterable[Stage | Repeat]) -> Iterator[Stage]:
    """Yield stages and the stages of loops, in the order of the text."""
    for stage in stages:
        if isinstance(stage, Repeat):
            yield from all_stages(stage.stages)
        else:
            yield stage


@dataclass(frozen=True, eq=False, repr=False)
class Nest(Displayed):
    """The stages that compute an array.

    Attributes:
        target: the instruction or computation.
        output_id: the number of its output that is computed.
        name: the name of the generated function.
        inputs: the arrays that `run` takes: the leaves of the operands, in order.
        constants: the array constants of the program.
        stages: stages and loops, in execution order; the last one fills the result.
        output: the buffer of the result.
    """

    target: Instruction | Computation
    output_id: int
    name: str
    inputs: tuple[Buffer, ...]
    constants: tuple[Buffer, ...]
    stages: tuple[Stage | Repeat, ...]
    output: Buffer

    def __repr__(self) -> str:
        return f"<loop nest {self.name!r}, {len(self.inputs)} inputs, {len(self.stages)} stages>"

    @property
    def parameters(self) -> tuple[Buffer, ...]:
        """The parameters of the generated function: inputs, then constants."""
        return (*self.inputs, *self.constants)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """All buffers: inputs, constants, and the buffers that stages fill."""
        filled = [buffer for stage in all_stages(self.stages) for buffer in stage.buffers]
        return tuple(dict.fromkeys([*self.parameters, *filled]))

    @property
    def iterations(self) -> int:
        """The number of iterations of the innermost loops."""
        return sum(stage.iterations for stage in self.stages)

    def with_constants(self, arrays: tuple[Array, ...]) -> tuple[Any, ...]:
        """Check the input arrays and append the constants.

        Raises:
            ValueError: the number of arrays, a shape or a type differs from `inputs`.
        """
        if len(arrays) != len(self.inputs):
            names = ", ".join(buffer.name for buffer in self.inputs)
            noun = "array" if len(self.inputs) == 1 else "arrays"
            raise ValueError(
                f"`{self.name}`: expected {len(self.inputs)} {noun} ({names}), got {len(arrays)}"
            )
        inputs = tuple([np.asarray(array) for array in arrays])
        for buffer, array in zip(self.inputs, inputs, strict=True):
            if array.shape != buffer.dims or array.dtype != buffer.dtype:
                expected = _type_text(buffer.dtype, buffer.dims)
                actual = _type_text(array.dtype, array.shape)
                raise ValueError(
                    f"`{self.name}`: input `{buffer.name}`: expected {expected}, got {actual}"
                )
        return (*inputs, *[constant.value for constant in self.constants])


def _type_text(dtype: np.dtype[Any], dims: tuple[int, ...]) -> str:
    return f"{dtype.name}[{','.join(map(str, dims))}]"

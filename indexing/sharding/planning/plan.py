"""`Plan`: a program divided over a mesh, with all that devices exchange."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from numpy.typing import NDArray

import indexing.methods as methods
from hlo.arguments import checked, checked_constructor
from hlo.modules.module import Instruction, Module
from hlo.shapes.shape import Shape, leaves
from hlo.shardings.mesh import Axis, Mesh
from hlo.shardings.sharding import Sharding
from indexing.maps.displayed import Displayed
from indexing.memory.executions import Executions
from indexing.sharding.partition.assignment import Assignment
from indexing.sharding.planning.array_shards import assembled_array
from indexing.sharding.planning.exchanges import WholeGather

LeafSharding: TypeAlias = Sharding | tuple[Sharding, ...]
"""The sharding of an array; of a tuple, those of its leaves."""


@dataclass(frozen=True, slots=True)
class PlannedCollective:
    """A collective of a plan.

    Attributes:
        kind: the opcode.
        axes: the mesh axes along which devices exchange values.
        bytes_sent: the bytes that a device sends in one execution, on the device that sends most.
        executions: the number of executions: loops multiply it by their trip counts.
        instruction: the instruction of the program that needs the collective.
        loop: the loop body of which it is a part; empty outside of loops and branches.
        name: the instruction of the local program.
        reason: why it is needed.
    """

    kind: str
    axes: tuple[Axis, ...]
    bytes_sent: int
    executions: Executions
    instruction: str
    loop: str
    name: str
    reason: str

    @property
    def total_bytes(self) -> int:
        """Bytes sent in all executions; in as many as are certain, if the number is unknown."""
        number = self.executions.number
        return self.bytes_sent * (max(self.executions.lower, 1) if number is None else number)


@dataclass(frozen=True, slots=True)
class PaddedDimension:
    """A dimension whose size is no multiple of its number of shards.

    Attributes:
        instruction: the name of the instruction.
        dimension: the dimension.
        size: its size.
        shards: the number of shards.
    """

    instruction: str
    dimension: int
    size: int
    shards: int

    @property
    def place(self) -> str:
        """The instruction and the dimension, as text."""
        return f"`{self.instruction}` dimension {self.dimension}"

    @property
    def padding(self) -> str:
        """The shards and their padding, as text."""
        part = -(-self.size // self.shards)
        padding = part * self.shards - self.size
        return f"{self.size} elements in {self.shards} shards of {part}, {padding} of padding"

    def __str__(self) -> str:
        return f"{self.place}: {self.padding}"


PlanReason: TypeAlias = WholeGather | PaddedDimension


@checked_constructor
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan(Displayed):
    """A program divided over the devices of a mesh (`shard`).

    Attributes:
        program: the program without calls and fusions; its names are those of the original one.
        module: the program that each device executes: local shapes, and collectives.
        mesh: the mesh.
        assignment: the axes that split each instruction, on a mesh whose axes are used whole.
        specs: the sharding of each instruction of `program`, by name; of instructions in loops and
            branches, by ``computation/name``.
        collectives: what devices exchange.
        halos: those of `collectives` that exchange the borders of shards.
        peak_bytes: the bytes that a device holds at most while it executes `module` in text order:
            parameters throughout, others from definition to last use, results until the end.
        reasons: arrays that are gathered whole, with the least exchange that would do, and
            dimensions that are padded.
        is_cheapest: no other choice of splits that the given specs propagate to has a smaller
            estimated cost.

    >>> import hlo, indexing
    >>> dot = hlo.parse('''ENTRY e {
    ...   p = f32[8,16] parameter(0)
    ...   q = f32[16,4] parameter(1)
    ...   ROOT dot = f32[8,4] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }''')
    >>> plan = indexing.shard(dot.entry, {"x": 4}, {"p": ("x", None)})
    >>> plan.module.entry.root.shape.dims, plan.collectives, plan.bytes_sent
    ((2, 4), (), 0)
    >>> [str(each) for each in plan.parameters], [str(each) for each in plan.results], plan.plot()
    (['[x, _]', '[_, _]'], ['[x, _]'], <drawing of 'plan of e on x=4'>)
    """

    program: Module
    module: Module
    mesh: Mesh
    assignment: Assignment
    specs: Mapping[str, LeafSharding]
    collectives: tuple[PlannedCollective, ...]
    halos: tuple[PlannedCollective, ...]
    peak_bytes: int
    reasons: tuple[PlanReason, ...]
    is_cheapest: bool

    @property
    def bytes_sent(self) -> int:
        """Bytes that a device sends in all collectives; loops count with their trip counts."""
        return sum(collective.total_bytes for collective in self.collectives)

    @property
    def parameters(self) -> tuple[Sharding, ...]:
        """The sharding of each array of the parameters."""
        return self._shardings(self.program.entry.parameters)

    @property
    def results(self) -> tuple[Sharding, ...]:
        """The sharding of each array of the result."""
        return self._shardings([self.program.entry.root])

    def _shardings(self, instructions: Sequence[Instruction]) -> tuple[Sharding, ...]:
        assigned = self.assignment.instructions
        return tuple([sharding for each in instructions for sharding in assigned[each].results])

    def shards(self, inputs: Sequence[Any], fill: Any = 0) -> list[list[NDArray[Any]]]:
        """Return the local inputs of each device.

        Args:
            inputs: an array for each leaf of the parameters.
            fill: the value of padding.

        >>> import hlo, indexing, numpy as np
        >>> text = "ENTRY e { p = f32[4] parameter(0)  ROOT n = f32[4] negate(p) }"
        >>> plan = indexing.shard(hlo.parse(text), {"x": 2}, {"p": ("x",)})
        >>> shards = plan.shards([np.arange(4, dtype=np.float32)])
        >>> [[array.tolist() for array in own] for own in shards]
        [[[0.0, 1.0]], [[2.0, 3.0]]]
        """
        return methods.plan_shards(self, inputs, fill)

    def assemble(self, outputs: Sequence[Sequence[NDArray[Any]]]) -> tuple[NDArray[Any], ...]:
        """Return the arrays of the result from those of each device.

        Raises:
            ValueError: devices that hold the same elements differ.

        >>> import hlo, indexing, numpy as np
        >>> module = hlo.parse("ENTRY e { p = f32[6] parameter(0)  ROOT n = f32[6] negate(p) }")
        >>> plan = indexing.shard(module.entry, {"x": 2}, {"p": ("x",)})
        >>> (whole,) = plan.assemble([[np.array([1, 2, 3])], [np.array([4, 5, 6])]])
        >>> whole.tolist()
        [1, 2, 3, 4, 5, 6]
        """
        shapes = [shape for _, shape in leaves(self.program.entry.root.shape)]
        return tuple(
            [
                assembled_array([device[k] for device in outputs], sharding, shape.dims)
                for k, (sharding, shape) in enumerate(zip(self.results, shapes, strict=True))
                if isinstance(shape, Shape)
            ]
        )

    def run(self, inputs: Sequence[Any], fill: Any = 0) -> tuple[NDArray[Any], ...]:
        """Execute the local program on simulated devices and return the arrays of the result.

        Args:
            inputs: an array for each leaf of the parameters.
            fill: the value of padding of parameters.
        Raises:
            ExecutionError: the inputs do not match the parameters, or an instruction cannot be
                executed.

        >>> import hlo, indexing, numpy as np
        >>> text = "ENTRY e { p = f32[4] parameter(0)  ROOT n = f32[4] negate(p) }"
        >>> plan = indexing.shard(hlo.parse(text), {"x": 2}, {"p": ("x",)})
        >>> (result,) = plan.run([np.arange(4, dtype=np.float32)])
        >>> result.tolist()
        [-0.0, -1.0, -2.0, -3.0]
        """
        return methods.plan_outputs(self, inputs, fill)

    @checked
    def plot(self, backend: methods.Backend = "svg", theme: methods.Theme = "auto") -> Any:
        """Return a picture of the devices that hold each part of parameters and results.

        Bars are the bytes that a device sends in each collective.

        Args:
            backend, theme: as in `Answer.plot`.
        Returns:
            A `Drawing`.
        Raises:
            ImportError: matplotlib is not installed.
        """
        return methods.plot_plan(self, backend, theme)

    def __str__(self) -> str:
        return methods.plan_text(self)

    def __repr__(self) -> str:
        return f"<plan of {self.program.name!r} on {self.mesh}, {self.bytes_sent:,} bytes sent>"

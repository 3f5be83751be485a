"""Plain data of Pallas calls: grids, blocks, index maps, semantics; nothing of JAX is left.

`indexing.pallas.tracing` fills these records, and the verdicts of this room read nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.constraints import Constraint
from simplifier.linear import Expr
from simplifier.unknown import Unknown

BlockKind: TypeAlias = Literal["blocked", "squeezed", "element"]
MemorySpace: TypeAlias = Literal["vmem", "smem", "none"]
"""Where a block lives: in VMEM, in SMEM, or outside of the pipeline (``ANY``, HBM, semaphores)."""

PIPELINED: tuple[MemorySpace, ...] = ("vmem", "smem")


@dataclass(frozen=True, slots=True)
class BlockDimension:
    """One dimension of a block.

    Attributes:
        kind: "blocked": the index counts blocks; "squeezed": it counts elements, and the kernel
            sees no such dimension; "element": it counts elements of the padded array.
        size: the number of elements.
        padding: the elements of padding before and after the array.
    """

    kind: BlockKind
    size: int
    padding: tuple[int, int] = (0, 0)

    def start(self, index: Expr) -> Expr:
        """Return the first element of the block at an index.

        >>> from simplifier.linear import variable
        >>> BlockDimension("element", 20, (2, 2)).start(variable("i", 0, 3) * 16)
        Expr('i * 16 - 2')
        """
        match self.kind:
            case "blocked":
                return index * self.size
            case "squeezed":
                return index
            case "element":
                return index - self.padding[0]

    def __str__(self) -> str:
        if self.kind == "squeezed":
            return "None"
        if self.kind == "blocked":
            return str(self.size)
        return f"Element({self.size}{f', {self.padding}' if any(self.padding) else ''})"


@dataclass(frozen=True, slots=True)
class BlockSpecification:
    """An input or output of a call, with its blocks.

    Attributes:
        origin: JAX's name of the operand, such as ``args[0]`` or ``outputs``.
        source: the function and the line of the index map; "" if unknown.
        is_output: True for an output.
        sizes: the sizes of the array.
        element_type: HLO's name of the type of its elements; JAX's for another type.
        bits: the bits of an element.
        block: the dimensions of a block; `Unknown` for kinds without a fixed place.
        index: the results of the index map; `Unknown` if it cannot be represented.
        runtime: the scalars that the index map reads.
        space: where the block lives.
        buffer_count: the number of buffers that the specification asks for; `None` by default.
        may_revisit: True if an output may be visited again later (``RevisitMode.ANY``).
        is_whole: True if the block is the array and the index map is a literal 0.
    """

    origin: str
    source: str
    is_output: bool
    sizes: tuple[Expr, ...]
    element_type: str
    bits: int
    block: tuple[BlockDimension, ...] | Unknown
    index: tuple[Expr, ...] | Unknown
    runtime: tuple[RuntimeVariable, ...]
    space: MemorySpace
    buffer_count: int | None = None
    may_revisit: bool = False
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class ScalarOperand:
    """A scalar-prefetch operand: its name in index maps, and its sizes."""

    name: str
    sizes: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class ScratchBuffer:
    """A scratch buffer of a call."""

    sizes: tuple[int, ...]
    element_type: str
    bits: int
    space: MemorySpace


@dataclass(frozen=True, slots=True)
class GridDimension:
    """One dimension of a grid.

    Attributes:
        name: the name of the program id in index maps.
        size: the number of steps: constant, symbolic, or a variable for a dynamic grid.
        semantics: "parallel" or "arbitrary".
        is_vmapped: True if ``jax.vmap`` has added the dimension.
    """

    name: str
    size: Expr
    semantics: Literal["parallel", "arbitrary"] = "arbitrary"
    is_vmapped: bool = False

    @property
    def is_parallel(self) -> bool:
        """True if the steps of the dimension have no order."""
        return self.semantics == "parallel"


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One ``pallas_call``.

    Attributes:
        name: the name of the kernel.
        target: "tpu": a sequence of steps with a pipeline; "gpu": independent programs.
        grid: the dimensions of the grid.
        symbols: symbolic sizes, and the variables of dynamic grids.
        dynamic: the names of those variables that are computed when the program runs.
        conditions: constraints on the symbols.
        operands: inputs, then outputs.
        aliases: pairs of an input and an output in one buffer, as numbers of operands.
        scalars: the scalar-prefetch operands.
        scratch: the scratch buffers.
        vmem_limit: the limit of VMEM that the call states, in bytes.
    """

    name: str
    target: Literal["tpu", "gpu"]
    grid: tuple[GridDimension, ...]
    symbols: tuple[RuntimeVariable, ...]
    dynamic: frozenset[str]
    conditions: tuple[Constraint, ...]
    operands: tuple[BlockSpecification, ...]
    aliases: tuple[tuple[int, int], ...] = ()
    scalars: tuple[ScalarOperand, ...] = ()
    scratch: tuple[ScratchBuffer, ...] = ()
    vmem_limit: int | None = None

    @property
    def static_grid(self) -> tuple[int, ...] | None:
        """The sizes of the grid; `None` if one is symbolic or dynamic."""
        return constant_sizes([dimension.size for dimension in self.grid])


def constant_sizes(sizes: Sequence[Expr]) -> tuple[int, ...] | None:
    """Return sizes as integers; `None` if one of them is no constant.

    >>> from simplifier.linear import constant, variable
    >>> constant_sizes([constant(3), constant(5)]), constant_sizes([variable("n", 1, 9)])
    ((3, 5), None)
    """
    if all(size.is_constant for size in sizes):
        return tuple([size.constant for size in sizes])
    return None

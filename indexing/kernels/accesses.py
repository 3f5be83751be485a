"""Memory that a kernel accesses, and its accesses at each point."""

from __future__ import annotations

from dataclasses import dataclass

from indexing.equivalence.values.terms.terms import Formula
from indexing.kernels.domains import Guards
from indexing.kernels.ir import MlirOp, MlirType
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr


@dataclass(eq=False, slots=True)
class KernelBuffer:
    """Memory that a kernel uses: that of an argument, or a tile in shared memory.

    Attributes:
        number: the number of the argument; of a tile, -1 and below.
        memory: equal for arguments in the same memory (``xla.slice_index``).
        alignment: the bytes of which its address is a multiple.
    """

    number: int
    type: MlirType
    memory: object
    alignment: int = 1

    @property
    def is_shared(self) -> bool:
        """True for a tile in shared memory."""
        return self.number < 0


@dataclass(frozen=True, slots=True)
class KernelAccess:
    """A read or a write of one element of a buffer at each point.

    Attributes:
        variables: the loop variables around it; those of threads and blocks are left out.
        guards: the conditions under which it happens.
        value: what is written; None for a read.
        order: the position in the execution of one point.
        interval: the number of barriers before it.
        is_certain: False if it may also depend on values.
        current: the value before the write in `value`, if the op reads and writes at once.
    """

    buffer: KernelBuffer
    index: tuple[Expr, ...]
    variables: tuple[Variable, ...]
    guards: Guards
    op: MlirOp
    value: Formula | None
    order: int
    interval: int
    is_certain: bool
    current: Formula | None = None


@dataclass(frozen=True, slots=True)
class Promise:
    """A condition that the text of a kernel asserts: a range of an argument, a domain, a width.

    Attributes:
        exchanges: the number of barriers and shuffles before it.
        variables: the variables of the loops around it.
        order: the number of accesses before it.
    """

    condition: Constraint
    guards: Guards
    op: MlirOp
    what: str
    is_certain: bool
    exchanges: int
    variables: tuple[Variable, ...]
    order: int


@dataclass(slots=True)
class ControlPlace:
    """Where in the control flow the execution is."""

    guards: Guards = ()
    variables: tuple[Variable, ...] = ()
    is_certain: bool = True

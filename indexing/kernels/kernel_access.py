"""Sectors of memory that the warps of a kernel touch, with the loops that XLA emitted.

A read or a write of the kernel's text is one instruction of each warp, for each iteration of the
loops around it.  Equal reads are one read, as common subexpressions are eliminated; a read whose
element no iteration of a loop changes is executed once.  Adjacent, aligned elements of an innermost
loop are one instruction, up to the widest load of the GPU (`indexing.memory.warps.thread_loads`):
XLA's pass ``xla-vectorize-loads-stores`` turns loops of 2 to 32 iterations into vectors, and LLVM
those of longer loops, which XLA unrolls.

Source: XLA ``xla/codegen/emitters/transforms/vectorize_loads_stores.cc``, ``GetVectorType``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any, Final

import indexing.methods as methods
from hlo.arguments import checked
from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.devices.gpus import Gpu
from indexing.equivalence.values.terms.terms import Formula
from indexing.kernels.domains import Guards, NotHandled, violation
from indexing.kernels.run import KernelRun, logical_index
from indexing.kernels.symbolic import KernelAccess, KernelBuffer
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.memory.warps.access import MemoryAccess, array_access
from indexing.memory.warps.thread_loads import THREAD_DIMS, VECTOR
from simplifier.atoms import Variable, variables_in
from simplifier.linear import Expr, as_expr
from simplifier.substitute import Substitution

MAX_VECTOR_SIZE: Final = 32
MAX_VECTOR_BITS: Final = 256
"""Limits of XLA on the iterations of a loop that become one vector."""


@dataclass(frozen=True, slots=True)
class KernelArray:
    """The access of a kernel to one of its arrays.

    Attributes:
        role: ``operand`` or ``output``.
        number: the number of the operand, or of the output leaf.
        name: the name of the operand, or of the fusion.
        access: what all warps load or store; `Unknown` with the reason.
    """

    role: str
    number: int
    name: str
    access: MemoryAccess | Unknown


@dataclass(frozen=True, slots=True)
class KernelAccesses:
    """The loads and stores of a kernel in global memory.

    Attributes:
        name: the name of the kernel.
        arrays: an entry for each operand, then for each output leaf.  Those that a kernel does not
            load or store have no sectors.
    """

    name: str
    arrays: tuple[KernelArray, ...]

    @property
    def loads(self) -> tuple[MemoryAccess | Unknown, ...]:
        """The access to each operand."""
        return tuple([each.access for each in self.arrays if each.role == "operand"])

    @property
    def stores(self) -> tuple[MemoryAccess | Unknown, ...]:
        """The access to each output leaf."""
        return tuple([each.access for each in self.arrays if each.role == "output"])

    @property
    def loaded(self) -> SectorCount | Unknown:
        """The sectors of all loads; unknown if those of an operand are."""
        return _total(self.loads)

    @property
    def stored(self) -> SectorCount | Unknown:
        """The sectors of all stores; unknown if those of an output are."""
        return _total(self.stores)

    @checked
    def plot(self, backend: methods.Backend = "svg", theme: methods.Theme = "auto") -> Any:
        """Return a picture of each array: the sectors that a warp touches.

        Args:
            backend, theme: as in `Answer.plot`.
        Returns:
            A `Drawing`.
        Raises:
            ImportError: matplotlib is not installed.
        """
        return methods.plot_kernel_accesses(self, backend, theme)


@dataclass(frozen=True, slots=True)
class SectorCount:
    """Sectors that warps touch.

    Attributes:
        touched: the sectors, added over all warps and instructions.
        ideal: the fewest sectors with room for the distinct bytes that each warp requests.
        is_exact: False if `touched` is an upper bound.
    """

    touched: int
    ideal: int
    is_exact: bool

    @property
    def efficiency(self) -> float:
        """``ideal / touched``; 1 is the optimum, also of no sectors."""
        return self.ideal / self.touched if self.touched else 1.0


def _total(accesses: Sequence[MemoryAccess | Unknown]) -> SectorCount | Unknown:
    """Return the sectors of several arrays."""
    known = [each for each in accesses if isinstance(each, MemoryAccess)]
    for each in accesses:
        if isinstance(each, Unknown):
            return each
    return SectorCount(
        sum([each.sectors for each in known]),
        sum([each.ideal_sectors for each in known]),
        all(each.grade == "exact" for each in known),
    )


def accesses_of(
    name: str, run: KernelRun, fusion: Instruction, device: Gpu, budget: int
) -> KernelAccesses:
    """Return what the warps of a kernel of a GPU load and store; see `Kernel.access`."""
    return KernelAccesses(name, tuple(_AccessCounter(run, fusion, device, budget).arrays()))


@dataclass(frozen=True, slots=True)
class _AccessCounter:
    run: KernelRun
    fusion: Instruction
    device: Gpu
    budget: int

    def arrays(self) -> Iterator[KernelArray]:
        """Yield the access to each operand and to each output."""
        program = self.run.program
        for number, shape in enumerate(program.inputs):
            operand = self.fusion.operands[number]
            buffer = self.run.arguments[number]
            access = self.access(buffer, False, shape, ArrayRef(operand))
            yield KernelArray("operand", number, operand.name, access)
        for number, (shape, buffer) in enumerate(
            zip(program.shapes, self.run.results, strict=True)
        ):
            access = self.access(buffer, True, shape, ArrayRef(self.fusion))
            yield KernelArray("output", number, self.fusion.name, access)

    def access(
        self, buffer: KernelBuffer, is_store: bool, shape: Shape, array: ArrayRef
    ) -> MemoryAccess | Unknown:
        """Return all loads of an operand, or all stores to an output."""
        schedules: dict[IndexingMap, None] = {}
        for each in self.run.execution.accesses:
            is_own = each.buffer.memory == buffer.memory if is_store else each.buffer is buffer
            if is_own and (each.value is not None) == is_store:
                try:
                    schedules[self.schedule(each, shape)] = None
                except NotHandled as error:
                    return Unknown(str(error), self.fusion)
        return array_access(tuple(schedules), shape, self.device, array=array, budget=self.budget)

    def schedule(self, access: KernelAccess, shape: Shape) -> IndexingMap:
        """Return the map of an access from threads and loops, its vector as ``unroll_id``."""
        index = logical_index(shape, access.index)
        guards = tuple([c for c in access.guards if not c.is_true])
        loops = access.variables
        if access.value is None:
            loops, guards = _hoisted(loops, index, guards)
        ranges, swap = _unrolled(loops, shape.element_bits)
        index = tuple([swap(e) for e in index])
        guards = _substituted(guards, swap)
        runtime = [self.start(v) for v in self._values([*index, *[c.expr for c in guards]])]
        is_exact = access.is_certain and all(is_read for _, is_read in runtime)
        return IndexingMap.of(
            points_of(self.run), index, ranges=ranges, runtime=[rt for rt, _ in runtime],
            constraints=guards, grade="exact" if is_exact else "may",
        )  # fmt: skip

    def _values(self, exprs: list[Expr]) -> list[Variable]:
        held = self.run.execution.algebra.table.runtime
        return sorted({v for v in variables_in(exprs) if v in held}, key=lambda v: v.name)

    def start(self, variable: Variable) -> tuple[RuntimeVariable, bool]:
        """Return a value that decides an address, with the element of an operand that it is.

        The second item is True if the value is the element itself, and False if it is computed
        from the element: not all values within its bounds occur then.

        Raises:
            NotHandled: the value depends on several elements of operands, or on none.
        """
        term = self.run.execution.algebra.table.runtime[variable]
        reads = set(_reads(term))
        if len(reads) != 1:
            raise NotHandled(f"an address depends on {term}, which is not one element")
        (read,) = reads
        source = _operand(read)
        if source is None or set(self._values(list(read.index))):
            raise NotHandled(f"an address depends on {term}, which is no element of an operand")
        array = self.fusion.operands[source]
        rt = RuntimeVariable(variable, array, read.index, variable.bounds)
        return rt, read is term


def points_of(run: KernelRun) -> list[Variable]:
    """Return the variables of threads and blocks, all dimensions of threads included."""
    threads = {f"th_{k}": v for k, v in run.execution.threads.items()}
    sized = [threads.get(name, Variable(name, 0, 0)) for name in THREAD_DIMS]
    return [*sized, *run.execution.blocks.values()]


def _hoisted(
    loops: tuple[Variable, ...], index: tuple[Expr, ...], guards: Guards
) -> tuple[tuple[Variable, ...], Guards]:
    """Return the loops and the conditions of a load without loops that do not change its element.

    A thread that loads the element loads it in the first iteration, and keeps it in a register.
    """
    for loop in set(loops) - set(variables_in(index)):
        first = _substituted(guards, Substitution({loop: as_expr(loop.lower)}))
        if all(violation(guards, condition) is None for condition in first):
            loops, guards = tuple([v for v in loops if v != loop]), first
    return loops, guards


def _substituted(guards: Guards, swap: Substitution) -> Guards:
    every = [c.with_expr(swap(c.expr)) for c in guards]
    return tuple([c for c in every if not c.is_true])


def _unrolled(loops: tuple[Variable, ...], bits: int) -> tuple[tuple[Variable, ...], Substitution]:
    """Return the loops with the innermost one split, so that its last part may be a vector.

    >>> loops, swap = _unrolled((Variable("i0", 0, 19),), 32)
    >>> [(v.name, v.size) for v in loops], str(swap(Variable("i0", 0, 19).as_expr()))
    ([('i0', 5), ('unroll_id', 4)], 'i0 * 4 + unroll_id')
    """
    inner = loops[-1] if loops else Variable("none", 0, 0)
    size = gcd(inner.size, MAX_VECTOR_SIZE)
    while size * bits > MAX_VECTOR_BITS and size > 1:
        size //= 2
    if size == 1 or inner.lower:
        return loops, Substitution({})
    vector, rest = Variable(VECTOR, 0, size - 1), Variable(inner.name, 0, inner.size // size - 1)
    outer = (rest,) if rest.upper else ()
    value = vector.as_expr() + (rest * size if rest.upper else 0)
    return (*loops[:-1], *outer, vector), Substitution({inner: value})


def _reads(term: Formula) -> Iterator[Formula]:
    """Yield the elements of arrays in a scalar term."""
    if term.kind == "read":
        yield term
    for each in term.arguments:
        yield from _reads(each)


def _operand(read: Formula) -> int | None:
    """Return the number of the operand whose element a term is."""
    assert read.array is not None
    match read.array.kind, read.array.head:
        case "symbol", ("parameter", int(number), ()):
            return number
    return None

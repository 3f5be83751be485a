"""Sectors of memory that the warps of a kernel touch, with the loops that XLA emitted.

A read or a write of the kernel's text is one instruction of each warp, for each iteration of the
loops around it.  Equal reads are one read, as common subexpressions are eliminated.  A read whose
element no iteration of a loop changes is executed once, and one that no result needs never.

Adjacent, aligned elements of an innermost loop are one instruction, up to the widest load of the
GPU (`indexing.memory.warps.thread_loads`): XLA's pass ``xla-vectorize-loads-stores`` turns loops of
2 to 32 iterations into vectors, and LLVM those of longer loops, which XLA unrolls.

Source: XLA ``xla/codegen/emitters/transforms/vectorize_loads_stores.cc``, ``GetVectorType``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import gcd
from typing import Any, Final

import indexing.methods as methods
from hlo.arguments import checked
from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.devices.gpus import Gpu
from indexing.equivalence.values.terms.terms import Formula
from indexing.kernels.accesses import KernelAccess
from indexing.kernels.domains import Guards, NotHandled, violation
from indexing.kernels.run import KernelRun, logical_index
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.memory.warps.access import MemoryAccess, array_access
from indexing.memory.warps.thread_loads import THREAD_DIMS, VECTOR
from simplifier.atoms import Variable, variables_in
from simplifier.constraints import Constraint
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
        program, used = self.run.program, self.used_operands()
        for number, shape in enumerate(program.inputs):
            operand = self.fusion.operands[number]
            reads = [each for each in self.run.execution.accesses if self.reads(each, number)]
            own = reads if used is None or number in used else []
            access = self.access(own, shape, ArrayRef(operand))
            yield KernelArray("operand", number, operand.name, access)
        for number, (shape, buffer) in enumerate(
            zip(program.shapes, self.run.results, strict=True)
        ):
            own = [
                each
                for each in self.run.execution.accesses
                if each.value is not None and each.buffer.memory == buffer.memory
            ]
            access = self.access(own, shape, ArrayRef(self.fusion))
            yield KernelArray("output", number, self.fusion.name, access)

    def reads(self, access: KernelAccess, number: int) -> bool:
        """Return True if an access reads an operand, also through the output in its memory."""
        if access.value is not None:
            return False
        buffer = self.run.arguments[number]
        is_output = access.buffer.number >= len(self.run.program.inputs)
        return access.buffer is buffer or (is_output and access.buffer.memory == buffer.memory)

    def used_operands(self) -> frozenset[int] | None:
        """Return the operands on which a value or an address depends; None if all may be used.

        The compiler eliminates the loads of others, such as of what a scatter overwrites.
        """
        accesses = self.run.execution.accesses
        if not all(each.is_certain for each in accesses):
            return None
        pending = [each.value for each in accesses if each.value is not None]
        exprs = [e for a in accesses for e in _exprs(a.index, a.guards)]
        pending += self._values(exprs).values()
        seen: set[Formula] = set()
        while pending:
            term = pending.pop()
            if term not in seen:
                seen.add(term)
                pending += [*term.children, *([term.array] if term.array is not None else [])]
        numbers = [_operand_of(term) for term in seen]
        return frozenset([number for number in numbers if number is not None])

    def access(
        self, accesses: Sequence[KernelAccess], shape: Shape, array: ArrayRef
    ) -> MemoryAccess | Unknown:
        """Return all loads of an operand, or all stores to an output."""
        schedules: dict[IndexingMap, None] = {}
        for each in accesses:
            try:
                schedules[self.schedule(each, shape)] = None
            except NotHandled as error:
                return Unknown(str(error), self.fusion)
        return array_access(tuple(schedules), shape, self.device, array=array, budget=self.budget)

    def schedule(self, access: KernelAccess, shape: Shape) -> IndexingMap:
        """Return the map of an access from threads and loops, its vector as ``unroll_id``.

        Raises:
            NotHandled: a value that decides the address is no element of an operand.
        """
        index = logical_index(shape, access.index)
        guards = tuple([c for c in access.guards if not c.is_true])
        values, masked = self._values(_exprs(index, guards)), self._mask_variables(guards)
        guards = tuple([c for c in guards if c not in masked])
        loops = access.variables
        if access.value is None:
            deciding = {v for term in values.values() for v in term.free}
            loops, guards = _hoist(loops, {*variables_in(index), *deciding}, guards)
        loops, unrolled = _unroll(loops, shape.element_bits)
        narrow = {v: _narrow_variable(v, masked) for v in values}
        swap = Substitution({v: own.as_expr() for v, own in narrow.items()})
        index = tuple([unrolled(swap(e)) for e in index])
        guards = _substitute(_substitute(guards, swap), unrolled)
        runtime, is_exact = self._starts(values, narrow, _exprs(index, guards))
        is_exact = is_exact and access.is_certain and not masked
        return IndexingMap.of(
            points_of(self.run), index, ranges=loops,
            runtime=[rt.substituted(unrolled) for rt in runtime],
            constraints=guards, grade="exact" if is_exact else "may",
        )  # fmt: skip

    def _starts(
        self,
        values: Mapping[Variable, Formula],
        narrow: Mapping[Variable, Variable],
        exprs: Sequence[Expr],
    ) -> tuple[list[RuntimeVariable], bool]:
        """Return the values in expressions; False if one is computed from an element."""
        used = set(variables_in(exprs))
        starts = [self.start(narrow[v], term) for v, term in values.items() if narrow[v] in used]
        return [rt for rt, _ in starts], all(is_element for _, is_element in starts)

    def _values(self, exprs: Sequence[Expr]) -> dict[Variable, Formula]:
        """Return the runtime variables in expressions, with their values."""
        held = self.run.execution.algebra.table.runtime
        values = sorted({v for v in variables_in(exprs) if v in held}, key=lambda v: v.name)
        return {v: held[v] for v in values}

    def _mask_variables(self, guards: Guards) -> dict[Constraint, Variable]:
        """Return the conditions that are bounds of one runtime value, such as a valid row."""
        values = self._values([c.expr for c in guards])
        return {c: v for c in guards for v in values if c.expr == v.as_expr()}

    def start(self, variable: Variable, term: Formula) -> tuple[RuntimeVariable, bool]:
        """Return a value that decides an address, with the element of an operand that it is.

        The second item is True if the value is the element itself, and False if it is computed
        from the element: not all values within its bounds occur then.

        Raises:
            NotHandled: the value depends on several elements of operands, or on none.
        """
        reads = set(_reads(term))
        if len(reads) != 1:
            raise NotHandled(f"an address depends on {term}, which is not one element")
        (read,) = reads
        source = _operand_of(read.array)
        if source is None or self._values(read.index):
            raise NotHandled(f"an address depends on {term}, which is not an element of an operand")
        array = self.fusion.operands[source]
        return RuntimeVariable(variable, array, read.index, variable.bounds), read is term


def _narrow_variable(variable: Variable, masked: Mapping[Constraint, Variable]) -> Variable:
    """Return a runtime variable within the bounds of its conditions."""
    own = [c for c, v in masked.items() if v == variable]
    low = max([variable.lower, *[c.lower for c in own]])
    high = min([variable.upper, *[c.upper for c in own]])
    return Variable(variable.name, low, high) if low <= high else variable


def points_of(run: KernelRun) -> list[Variable]:
    """Return the variables of threads and blocks, all dimensions of threads included."""
    threads = {f"th_{k}": v for k, v in run.execution.threads.items()}
    sized = [threads.get(name, Variable(name, 0, 0)) for name in THREAD_DIMS]
    return [*sized, *run.execution.blocks.values()]


def _hoist(
    loops: tuple[Variable, ...], deciding: AbstractSet[Variable], guards: Guards
) -> tuple[tuple[Variable, ...], Guards]:
    """Return the loops and the conditions of a load without loops that do not change its element.

    A thread that loads the element loads it in the first iteration, and keeps it in a register.

    Args:
        deciding: the variables on which the element depends.
    """
    for loop in [v for v in loops if v not in deciding]:
        first = _substitute(guards, Substitution({loop: as_expr(loop.lower)}))
        if all(violation(guards, condition) is None for condition in first):
            loops, guards = tuple([v for v in loops if v != loop]), first
    return loops, guards


def _exprs(index: tuple[Expr, ...], guards: Guards) -> list[Expr]:
    return [*index, *[c.expr for c in guards]]


def _substitute(guards: Guards, swap: Substitution) -> Guards:
    every = [c.with_expr(swap(c.expr)) for c in guards]
    return tuple([c for c in every if not c.is_true])


def _unroll(loops: tuple[Variable, ...], bits: int) -> tuple[tuple[Variable, ...], Substitution]:
    """Return the loops with the innermost one split, so that its last part may be a vector.

    >>> loops, swap = _unroll((Variable("i0", 0, 19),), 32)
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


def _operand_of(array: Formula | None) -> int | None:
    """Return the number of the operand that an array is; None for other terms."""
    if array is None:
        return None
    match array.kind, array.head:
        case "symbol", ("parameter", int(number), ()):
            return number
    return None

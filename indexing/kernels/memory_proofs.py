"""`MemoryProof`: the elements that a kernel writes, and that no read sees what others write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from indexing.kernels.accesses import KernelAccess, KernelBuffer
from indexing.kernels.domains import Guards, NotHandled, is_impossible, over
from indexing.kernels.run import KernelRun
from indexing.kernels.verdicts import KernelDiffers
from indexing.maps.answers import Unknown
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.properties import is_surjective_onto
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr
from simplifier.substitute import Substitution


class MemoryProof:
    """Proofs about the writes and reads of one kernel, whatever the values are.

    Attributes:
        points: the variables of the thread and the block that have several values.
    """

    def __init__(self, run: KernelRun) -> None:
        self.run, self.execution, self.program = run, run.execution, run.program
        every = [*self.execution.threads.values(), *self.execution.blocks.values()]
        self.points = [v for v in every if v.lower < v.upper]

    # ------------------------------------------------------------ coverage

    def writes_to(self, buffer: KernelBuffer) -> list[KernelAccess]:
        """Return the writes to the memory of a buffer."""
        return [
            a
            for a in self.execution.accesses
            if a.value is not None and a.buffer.memory == buffer.memory
        ]

    def coverage(self, output: int) -> KernelDiffers | str:
        """Return an element that is not written, or why it is not proved that each is once."""
        buffer = self.run.results[output]
        writes = self.writes_to(buffer)
        dims = buffer.type.dims
        if 0 in dims:
            return ""
        if any(not w.is_certain for w in writes):
            return "a write under a condition on values"
        if any(self._runtime_in(w) for w in writes) or self.operand_in(buffer) is not None:
            return self._doubt_of_writes(buffer, writes)
        maps = [over(self._variables(w), w.index, w.guards) for w in writes]
        return self.holes(output, maps, dims)

    def _doubt_of_writes(self, buffer: KernelBuffer, writes: Sequence[KernelAccess]) -> str:
        """Return why it is not proved that a buffer in place is written once at each element."""
        if self.operand_in(buffer) is None:
            return "an output that is written at an offset that depends on values"
        return self.repeated(writes)

    def repeated(self, writes: Sequence[KernelAccess]) -> str:
        """Return why it is not proved that writes are to different elements; "" if it is."""
        for m in map(self._local, writes):
            if m is None:
                return "the place of a write depends on values other than by an offset"
            single = m.is_injective()
            if isinstance(single, Unknown):
                return single.reason
            if single is not True:
                return "an element in place may be written several times"
        pairs = combinations(writes, 2)
        if any(self._overlap(*pair) for pair in pairs):
            return "two ops may write one element in place"
        return ""

    def holes(
        self, output: int, maps: Sequence[IndexingMap], dims: tuple[int, ...]
    ) -> KernelDiffers | str:
        size = 1
        for each in dims:
            size *= each
        counts = [m.count_domain() for m in maps]
        known = [count for count in counts if not isinstance(count, Unknown)]
        is_counted = len(known) == len(counts) and sum(known) == size
        if is_counted and len(maps) == 1 and maps[0].is_injective() is True:
            return ""  # each in bounds, none twice
        if not maps:
            return KernelDiffers("no element is written", element=(0,) * len(dims), output=output)
        return self._hole(output, maps, dims)

    def _hole(
        self, output: int, maps: Sequence[IndexingMap], dims: tuple[int, ...]
    ) -> KernelDiffers | str:
        """Return an element that no point writes, by the images of the writes."""
        images = [IndexingMap.of([], m.results, ranges=m.dims, constraints=m.constraints)
                  for m in maps]  # fmt: skip
        onto = is_surjective_onto(images, dims)
        if onto is True or (not isinstance(onto, Unknown) and onto.holds):
            return ""
        if isinstance(onto, Unknown):
            return onto.reason
        witness = onto.witness
        if witness is None or not witness.results:
            return "an element is not written"
        element = tuple(witness.results[0])
        return KernelDiffers("an element is never written", element=element, output=output)

    def operand_in(self, buffer: KernelBuffer) -> int | None:
        """Return the number of the operand in the memory of a buffer, if there is one."""
        operands = self.run.arguments[: len(self.program.inputs)]
        return next((b.number for b in operands if b.memory == buffer.memory), None)

    def _variables(self, access: KernelAccess) -> list[Variable]:
        return [*self.points, *access.variables]

    def _runtime_in(self, access: KernelAccess) -> set[Variable]:
        table = self.program.elements.table.runtime
        exprs = [*access.index, *[c.expr for c in access.guards]]
        return {v for e in exprs for v in e.variables() if v in table}

    def _local(self, access: KernelAccess) -> IndexingMap | None:
        """Return the map of a write from its points, offsets by values left out."""
        runtime = self._runtime_in(access)
        zero = Substitution({v: as_expr(0) for v in runtime})
        index = [zero(e) for e in access.index]
        for expr, local in zip(access.index, index, strict=True):
            offset = expr - local
            if not set(offset.variables()) <= runtime:
                return None
        if any(set(c.expr.variables()) & runtime for c in access.guards):
            return None
        return over(self._variables(access), index, access.guards)

    def _overlap(self, one: KernelAccess, other: KernelAccess) -> bool:
        """Return True unless two writes are proved to write different elements."""
        swap = self._rename_point(other)
        equal = [Constraint(a - swap(b), 0, 0) for a, b in zip(one.index, other.index, strict=True)]
        if any(c.is_false for c in equal):
            return False
        moved = [c.with_expr(swap(c.expr)) for c in other.guards]
        return not is_impossible((*one.guards, *moved, *equal))

    def _rename_point(self, access: KernelAccess) -> Substitution:
        """Return the substitution of other variables for those of a point."""
        return Substitution(
            {v: v.renamed(f"o_{v.name}").as_expr() for v in self._variables(access)}
        )

    # ------------------------------------------------------------ memory that is read and written

    def hazards(self) -> str:
        """Return a read that may see what another point wrote, in words; "" if there is none."""
        accesses = self.execution.accesses
        outputs = {buffer.memory for buffer in self.run.results}
        reads = [a for a in accesses if a.value is None and a.buffer.memory in outputs]
        for read in reads:
            for write in self.writes_to(read.buffer):
                if not self._is_safe(read, write):
                    return (
                        f"the read in line {read.op.span.line} may see an element that another "
                        f"point overwrites"
                    )
        written = {a.buffer.memory for a in accesses if a.value is not None}
        for memory in written:
            invariant = [b for b in self.run.arguments if b.memory == memory]
            if invariant and memory not in outputs:
                return "an argument is written that is not an output"
        return ""

    def _is_safe(self, read: KernelAccess, write: KernelAccess) -> bool:
        """Return True if a read is proved to see no element that was overwritten."""
        same_point = set(read.variables) == set(write.variables)
        if same_point and read.order < write.order and read.index == write.index:
            return True  # writes are injective: no other point writes it
        return not self._overlap(read, write)

    def outside(self, writes: Sequence[KernelAccess], index: Sequence[Expr]) -> Iterator[Guards]:
        """Yield domains whose union is the elements that are not written."""
        if not writes:
            yield ()
            return
        if len(writes) > 1:
            raise NotHandled("an output in place that several ops write")
        (write,) = writes
        m = self._local(write)
        assert m is not None
        boxes = [self._in_bounds(*each) for each in zip(
            m.results, write.index, write.buffer.type.dims, strict=True)]  # fmt: skip
        size = 1
        for low, high in boxes:
            size *= high - low + 1
        if m.count_domain() != size:
            raise NotHandled("an output in place of which no box is written")
        runtime = self._runtime_in(write)
        before: list[Constraint] = []
        for at, expr, local, (low, high) in zip(index, write.index, m.results, boxes, strict=True):
            offset = at - (expr - local if runtime else as_expr(0))
            bottom, top = offset.bounds
            for start, end in ((bottom, low - 1), (high + 1, top)):
                if start <= end:
                    yield (*before, Constraint(offset, start, end))
            before.append(Constraint(offset, low, high))

    @staticmethod
    def _in_bounds(local: Expr, index: Expr, size: int) -> tuple[int, int]:
        """Return the bounds of a result, which is in bounds where it is the index, as promised."""
        low, high = local.bounds
        return (max(low, 0), min(high, size - 1)) if local == index else (low, high)

"""`ScatterProof`: each update of a scatter is combined once with the element that HLO names.

A point of the kernel combines one update.  The proof needs the map from points to updates, which
the loop of the emitter has, the starts of windows as runtime variables, and the condition that a
window is in bounds, which HLO tests for the window as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hlo.shapes.element_type import range_of
from indexing.equivalence.values.formulas.numbering import NumberedArray
from indexing.equivalence.values.matching.case_matching import CaseMatching
from indexing.equivalence.values.terms.terms import Formula
from indexing.kernels.accesses import KernelAccess
from indexing.kernels.domains import Guards, NotHandled, implies, over
from indexing.kernels.lanes import ANY_ORDER
from indexing.kernels.memory_proofs import MemoryProof
from indexing.kernels.run import KernelRun
from indexing.maps.answers import Unknown
from indexing.ops.scatter import Scatter
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr

UNIQUE: Final = "no two updates have one target, as `unique_indices` states"

Point = tuple[Expr, ...]


class ScatterProof:
    """The proof of a kernel whose only output is a scatter of its operand, in place.

    Attributes:
        premises: conditions on which the proof relies.
    """

    def __init__(self, run: KernelRun, memory: MemoryProof, output: NumberedArray) -> None:
        self.run, self.memory, self.program = run, memory, run.program
        self.elements, self.frame = self.program.elements, self.program.frame
        assert output.instruction is not None
        assert isinstance(output.instruction.op, Scatter)
        self.instruction, self.op = output.instruction, output.instruction.op
        self.arrays = [next(iter(tree.values())) for tree in output.operands]
        self.premises: dict[str, None] = {}

    @classmethod
    def of(cls, run: KernelRun, memory: MemoryProof) -> ScatterProof | None:
        """Return the proof of a kernel; None if its instruction is no scatter of one array."""
        output = run.program.outputs[0]
        is_scatter = output.instruction is not None and isinstance(output.instruction.op, Scatter)
        if len(run.results) != 1 or not is_scatter or len(output.operands) != 3:
            return None
        return cls(run, memory, output)

    def reason(self) -> str:
        """Return why the kernel is not proved; "" if it is."""
        buffer = self.run.results[0]
        operand, base = self.memory.operand_in(buffer), self.arrays[0].argument
        if operand is None or base is None or base[0] != operand:
            return "a scatter whose operand is not in the memory of the result"
        if self.op.input_batching_dims:
            return "a scatter with batch dimensions"
        writes = self.memory.writes_to(buffer)
        if len(writes) != 1 or not writes[0].is_certain:
            return f"a scatter with {len(writes)} writes, or under a condition on values"
        (write,) = writes
        if not all(self._is_own(read, write) for read in self.run.execution.accesses):
            return "a scatter that reads the memory of the result elsewhere"
        reasons = [self._by(updates, write) for updates in self._candidates(write)]
        return "" if "" in reasons else (reasons or ["a scatter without a loop over updates"])[-1]

    def _is_own(self, read: KernelAccess, write: KernelAccess) -> bool:
        """Return True unless an access reads what other points may have written."""
        if read.value is not None or read.buffer.memory != write.buffer.memory:
            return True
        return (read.index, read.variables) == (write.index, write.variables) and (
            read.order < write.order
        )

    def _candidates(self, write: KernelAccess) -> Iterator[Point]:
        """Yield the maps of loops around a write whose results may be the indices of an update."""
        updates = self.arrays[2].shape
        assert updates is not None
        known = {*self.memory.points, *write.variables}
        for results in self.run.execution.loop_results:
            if (
                len(results) == updates.rank
                and {v for e in results for v in e.variables()} <= known
            ):
                yield results

    # ------------------------------------------------------------ one correspondence

    def _by(self, updates: Point, write: KernelAccess) -> str:
        """Return why points do not combine the updates at these indices; "" if they do."""
        runtime = self.program.elements.table.runtime
        inner = [c for c in write.guards if runtime.keys() & set(c.expr.variables())]
        outer = tuple([c for c in write.guards if c not in inner])
        starts = self._starts(updates)
        expected = self._windows(starts)
        if not _are_same(outer, inner, expected):
            return "a scatter whose condition is not that each window is in bounds"
        if not all(
            _are_equal(write.guards, *pair) for pair in self._places(updates, starts, write)
        ):
            return "a scatter that writes other elements"
        return self._doubt_of_cover(updates, outer, write) or self._conflict(write) or self._value(
            updates, write)  # fmt: skip

    def _starts(self, updates: Point) -> dict[int, Expr]:
        """Return the start of the window of an update, by the dimension of the operand."""
        indices = self.arrays[1].shape
        assert indices is not None
        at = [e for k, e in enumerate(updates) if k not in self.op.update_window_dims]
        limits = range_of(indices.element_type)
        assert limits is not None
        starts: dict[int, Expr] = {}
        for number, k in enumerate(self.op.scatter_dims_to_operand_dims):
            index = list(at)
            if self.op.index_vector_dim < indices.rank:
                index.insert(self.op.index_vector_dim, as_expr(number))
            term = self.elements.at(self.arrays[1], self.frame, index)
            starts[k] = self.elements.algebra.index_of(term, limits)
        return starts

    def _windows(self, starts: dict[int, Expr]) -> Guards:
        """Return the conditions that the window of an update is in bounds."""
        base, updates = self.arrays[0].shape, self.arrays[2].shape
        assert base is not None
        assert updates is not None
        sizes = self.op.window_sizes(base.rank, updates.dims)
        return tuple([Constraint(e, 0, base.dims[k] - sizes[k]) for k, e in starts.items()])

    def _places(
        self, updates: Point, starts: dict[int, Expr], write: KernelAccess
    ) -> Iterator[tuple[Expr, Expr]]:
        """Yield the index that is written and that of HLO, in dimensions of several elements."""
        window = iter([updates[k] for k in sorted(self.op.update_window_dims)])
        for k, (index, size) in enumerate(zip(write.index, write.buffer.type.dims, strict=True)):
            offset = as_expr(0) if k in self.op.inserted_window_dims else next(window)
            if size > 1:
                yield index, starts.get(k, as_expr(0)) + offset

    def _doubt_of_cover(self, updates: Point, outer: Guards, write: KernelAccess) -> str:
        """Return why it is not proved that the points have each update once."""
        shape = self.arrays[2].shape
        assert shape is not None
        limits = [Constraint(e, 0, n - 1) for e, n in zip(updates, shape.dims, strict=True)]
        if not all(implies(outer, c) for c in limits):
            return "a scatter of updates beyond those that there are"
        points = over([*self.memory.points, *write.variables], updates, outer)
        single = points.is_injective()
        if isinstance(single, Unknown) or single is not True:
            return "a scatter that may combine an update twice"
        return "" if self.memory.holes(0, [points], shape.dims) == "" else (
            "a scatter that does not combine each update")  # fmt: skip

    def _conflict(self, write: KernelAccess) -> str:
        """Return why the order of writes is of account."""
        if write.current is None and self.memory.points and not self.op.unique_indices:
            return "a scatter without atomic ops whose updates may have one target"
        self.premises[UNIQUE if self.op.unique_indices else ANY_ORDER] = None
        return ""

    def _value(self, updates: Point, write: KernelAccess) -> str:
        """Return how the value that is written differs from the update, combined with the old."""
        current = write.current
        if current is None:
            operand = self.memory.operand_in(write.buffer)
            assert operand is not None
            current = self.program.read(operand, write.index)
        update = self.elements.at(self.arrays[2], self.frame, updates)
        combined = self.elements.apply_computation(
            self.instruction.called_computations[0], [current, update]
        )
        if isinstance(combined, Unknown):
            return combined.reason
        if not isinstance(combined, Formula) or write.value is None:
            raise NotHandled("a scatter of several values")
        value = self.run.execution.scalars.of_type(write.value, combined.type)
        if CaseMatching(self.elements.algebra).equal(value, combined, write.guards):
            return ""
        return f"the kernel combines {value}, the instruction {combined}"


def _are_equal(guards: Guards, one: Expr, other: Expr) -> bool:
    return implies(guards, Constraint(one - other, 0, 0))


def _are_same(outer: Guards, ours: Sequence[Constraint], theirs: Sequence[Constraint]) -> bool:
    """Return True if two lists of conditions are equal where outer ones hold."""
    return all(implies((*outer, *theirs), c) for c in ours) and all(
        implies((*outer, *ours), c) for c in theirs
    )

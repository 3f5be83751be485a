"""`Proof`: the steps by which a kernel is proved to compute its instruction, or refuted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from indexing.equivalence.values.laws.normalising import Normalising, RealAlgebra
from indexing.equivalence.values.matching.case_matching import CaseMatching
from indexing.equivalence.values.terms.terms import Formula
from indexing.kernels.control import LAUNCH
from indexing.kernels.domains import (
    BrokenCondition,
    Guards,
    NotHandled,
    Point,
    is_impossible,
    over,
    violation,
)
from indexing.kernels.random_values import differing_point
from indexing.kernels.run import KernelRun, logical_index
from indexing.kernels.symbolic import KernelAccess, KernelBuffer, Promise
from indexing.kernels.verdicts import (
    KernelDiffers,
    KernelProved,
    KernelUndecided,
    KernelVerdict,
)
from indexing.maps.answers import Unknown
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.properties import is_surjective_onto
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr
from simplifier.substitute import Substitution

IN_BOUNDS: Final = "in bounds"
PRED_BYTES: Final = "bytes of PRED operands are 0 or 1"


@dataclass(frozen=True, slots=True)
class _Pair:
    """The value that memory has at an element, and that of the instruction.

    Attributes:
        domain: the points of the pair.
        index: the element, or its place in memory.
        is_kept: True if no point writes the element, which keeps that of an operand.
    """

    ours: Formula
    theirs: Formula
    domain: Guards
    index: tuple[Expr, ...]
    is_kept: bool = False


class Proof:
    """The steps of the proof of one kernel."""

    def __init__(self, run: KernelRun) -> None:
        self.run, self.execution, self.program = run, run.execution, run.program
        every = [*self.execution.threads.values(), *self.execution.blocks.values()]
        self.threads = [v for v in self.execution.threads.values() if v.lower < v.upper]
        self.points = [v for v in every if v.lower < v.upper]
        self.matching = CaseMatching(self.program.elements.algebra)
        self.premises: dict[str, None] = {}

    def verdict(self) -> KernelVerdict:
        """Return the verdict."""
        fault, reason = self._promises()
        if fault is not None:
            return fault
        outputs = range(len(self.run.results))
        memory = [reason for reason in [self._hazards()] if reason]
        for output in outputs:
            covered = self._coverage(output)
            if isinstance(covered, KernelDiffers):
                return covered
            memory += [covered] if covered else []
        if memory:
            return KernelUndecided(memory[0])
        values = self._values(outputs)
        if isinstance(values, KernelDiffers):
            return values
        if reason or values is not None:
            return KernelUndecided(reason or str(values), level=None if reason else "reads")
        if any(shape.element_type == "pred" for shape in self.program.inputs):
            self.premises[PRED_BYTES] = None
        self.premises.update(self.execution.premises)
        return KernelProved(premises=tuple(self.premises))

    # ------------------------------------------------------------ promises

    def _promises(self) -> tuple[KernelDiffers | None, str]:
        """Return an access out of bounds, and why another promise is not proved."""
        reason = ""
        checked: set[tuple[Constraint, Guards, bool]] = set()
        for promise in self.execution.promises:
            key = promise.condition, promise.guards, IN_BOUNDS in promise.what
            if key in checked:
                continue
            checked.add(key)
            outcome = violation(promise.guards, promise.condition)
            if outcome is None:
                continue
            if isinstance(outcome, Unknown):
                reason = reason or f"{promise.what}: {outcome.reason}"
                continue
            is_fault = IN_BOUNDS in promise.what or LAUNCH in promise.what
            if is_fault and self._is_real(promise, outcome):
                return self._differs(promise, outcome), ""
            if not is_fault and self._is_unused(promise):
                continue
            line = promise.op.span.line
            reason = reason or f"{promise.what}, line {line}: {outcome.condition} does not hold"
        return None, reason

    def _is_unused(self, promise: Promise) -> bool:
        """Return True if no point stores a value where a promise does not hold.

        Values of points that store nothing reach others through barriers and shuffles only.
        """
        if promise.exchanges < self.execution.exchanges:
            return False
        writes = [a for a in self.execution.accesses if a.value is not None]
        late = [a for a in writes if a.interval == self.execution.interval]
        return all(
            a.is_certain and violation((*promise.guards, *a.guards), promise.condition) is None
            for a in late
        )

    def _is_real(self, promise: Promise, outcome: BrokenCondition) -> bool:
        """Return True if a point that violates a promise is reached whatever the values are."""
        runtime = {v.name for v in self.program.elements.table.runtime}
        return promise.is_certain and not runtime & outcome.point.keys()

    def _differs(self, promise: Promise, outcome: BrokenCondition) -> KernelDiffers:
        op = promise.op
        what = (
            f"{promise.what}, `{op.name}` in line {op.span.line}: {outcome.condition} does not hold"
        )
        return self._at(what, outcome.point)

    def _at(
        self, what: str, point: dict[str, int], element: tuple[int, ...] | None = None,
        output: int | None = None,
    ) -> KernelDiffers:  # fmt: skip
        full = {"bl_x": 0, "th_x": 0} | {v.name: v.lower for v in self.points} | point

        def part(prefix: str) -> tuple[tuple[str, int], ...]:
            return tuple([(n, x) for n, x in sorted(full.items()) if n.startswith(prefix)])

        return KernelDiffers(what, part("bl_"), part("th_"), part("i"), element, output)

    # ------------------------------------------------------------ coverage

    def writes_to(self, buffer: KernelBuffer) -> list[KernelAccess]:
        """Return the writes to the memory of a buffer."""
        return [
            a
            for a in self.execution.accesses
            if a.value is not None and a.buffer.memory == buffer.memory
        ]

    def _coverage(self, output: int) -> KernelDiffers | str:
        """Return an element that is not written, or why it is not proved that each is once."""
        buffer = self.run.results[output]
        writes = self.writes_to(buffer)
        dims = buffer.type.dims
        if 0 in dims:
            return ""
        if any(not w.is_certain for w in writes):
            return "a write under a condition on values"
        if any(self._runtime_in(w) for w in writes) or self._operand_in(buffer) is not None:
            return self._written_once(buffer, writes)
        maps = [over(self._variables(w), w.index, w.guards) for w in writes]
        return self._holes(output, maps, dims)

    def _written_once(self, buffer: KernelBuffer, writes: Sequence[KernelAccess]) -> str:
        """Return why it is not proved that a buffer in place is written once at each element."""
        if self._operand_in(buffer) is None:
            return "an output that is written at an offset that depends on values"
        return self._repeated(writes)

    def _repeated(self, writes: Sequence[KernelAccess]) -> str:
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

    def _holes(
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

    def _operand_in(self, buffer: KernelBuffer) -> int | None:
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
        swap = self._renamed(other)
        equal = [Constraint(a - swap(b), 0, 0) for a, b in zip(one.index, other.index, strict=True)]
        if any(c.is_false for c in equal):
            return False
        moved = [c.with_expr(swap(c.expr)) for c in other.guards]
        return not is_impossible((*one.guards, *moved, *equal))

    def _renamed(self, access: KernelAccess) -> Substitution:
        """Return the substitution of other variables for those of a point."""
        return Substitution(
            {v: v.renamed(f"o_{v.name}").as_expr() for v in self._variables(access)}
        )

    # ------------------------------------------------------------ memory that is read and written

    def _hazards(self) -> str:
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
                return "an argument is written that is no output"
        return ""

    def _is_safe(self, read: KernelAccess, write: KernelAccess) -> bool:
        """Return True if a read is proved to see no element that was overwritten."""
        same_point = set(read.variables) == set(write.variables)
        if same_point and read.order < write.order and read.index == write.index:
            return True  # writes are injective: no other point writes it
        return not self._overlap(read, write)

    # ------------------------------------------------------------ values

    def _values(self, outputs: Sequence[int]) -> KernelDiffers | str | None:
        for output in outputs:
            writes = self.writes_to(self.run.results[output])
            for pair in self._pairs(output):
                reason = self._compare(output, pair)
                if isinstance(reason, KernelDiffers) and self._repeated(writes):
                    return "an element may be written several times, at first with another value"
                if reason is not None:
                    return reason
        return None

    def _pairs(self, output: int) -> Iterator[_Pair]:
        """Yield the value in memory and that of the instruction, with the points of the pair."""
        buffer = self.run.results[output]
        writes = self.writes_to(buffer)
        kind = self.program.shapes[output]
        for write in writes:
            assert write.value is not None
            value = self.execution.scalars.of_type(write.value, kind.element_type)
            yield _Pair(value, self.program.element(output, write.index), write.guards, write.index)
        operand = self._operand_in(buffer)
        if operand is not None:
            yield from self._kept(output, operand, writes)

    def _kept(self, output: int, operand: int, writes: Sequence[KernelAccess]) -> Iterator[_Pair]:
        """Yield the elements that are not written: those of the operand in the same memory."""
        own = [
            Variable(f"d{k}", 0, n - 1) for k, n in enumerate(self.run.results[output].type.dims)
        ]
        index = [v.as_expr() if v.upper else as_expr(0) for v in own]
        kept, element = self.program.read(operand, index), self.program.element(output, index)
        for domain in self._outside(writes, index):
            if not is_impossible(domain):
                yield _Pair(kept, element, domain, tuple(index), is_kept=True)

    def _outside(self, writes: Sequence[KernelAccess], index: Sequence[Expr]) -> Iterator[Guards]:
        """Yield domains whose union are the elements that are not written."""
        if not writes:
            yield ()
            return
        if len(writes) > 1:
            raise NotHandled("an output in place that several ops write")
        (write,) = writes
        m = self._local(write)
        assert m is not None
        boxes = [result.bounds for result in m.results]
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

    def _compare(self, output: int, pair: _Pair) -> KernelDiffers | str | None:
        ours, theirs = pair.ours, pair.theirs
        domain = tuple([c for c in pair.domain if not c.is_true])
        if self.matching.equal(ours, theirs, domain):
            return None
        algebra = RealAlgebra(self.program.elements.algebra, exact_arithmetic=False)
        normal = Normalising(algebra)
        simple, other = normal(ours), normal(theirs)
        if CaseMatching(algebra).equal(simple, other, domain):
            self.premises.update(dict.fromkeys(normal.uses(ours, theirs)))
            return None
        point = differing_point(self.program.elements.algebra, ours, theirs, domain)
        if point is not None:
            element = self._element(output, pair.index, point)
            if pair.is_kept:
                what = "another value than the instruction's is kept"
                return KernelDiffers(what, element=element, output=output)
            what = "another value than the instruction's is written"
            return self._at(what, point, element, output)
        before, after = self.matching.pair or (ours, theirs)
        return f"the kernel writes {before}, the instruction has {after}"

    def _element(self, output: int, index: Sequence[Expr], point: Point) -> tuple[int, ...] | None:
        """Return the element at a point, on which the other variables have no influence."""
        index = logical_index(self.program.shapes[output], index)
        variables = {v for expr in index for v in expr.variables()}
        if variables & self.program.elements.table.runtime.keys():
            return None
        at = {v: point.get(v.name, v.lower) for v in variables}
        return tuple([expr.value(at) for expr in index])

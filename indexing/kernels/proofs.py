"""`Proof`: the steps by which a kernel is proved to compute its instruction, or refuted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from indexing.equivalence.values.laws.normalising import Normalising, RealAlgebra
from indexing.equivalence.values.matching.case_matching import CaseMatching
from indexing.equivalence.values.terms.terms import Formula
from indexing.kernels.accesses import KernelAccess, Promise
from indexing.kernels.control import LAUNCH
from indexing.kernels.domains import (
    BrokenCondition,
    Guards,
    NotHandled,
    Point,
    is_impossible,
    violation,
)
from indexing.kernels.memory_proofs import MemoryProof
from indexing.kernels.random_values import differing_point
from indexing.kernels.run import KernelRun, logical_index
from indexing.kernels.scatters import ScatterProof
from indexing.kernels.vector_ops import ALIGNED
from indexing.kernels.verdicts import (
    KernelDiffers,
    KernelProved,
    KernelUndecided,
    KernelVerdict,
)
from indexing.maps.answers import Unknown
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr

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
        self.memory = MemoryProof(run)
        self.points = self.memory.points
        self.matching = CaseMatching(self.program.elements.algebra)
        self.premises: dict[str, None] = {}

    def verdict(self) -> KernelVerdict:
        """Return the verdict."""
        fault, reason = self._promises()
        if fault is not None:
            return fault
        scatter = ScatterProof.of(self.run, self.memory)
        if scatter is not None:
            reason = reason or scatter.reason()
            self.premises.update(scatter.premises)
            return KernelUndecided(reason) if reason else self._prove_outputs()
        return self._verdict(reason)

    def _verdict(self, reason: str) -> KernelVerdict:
        """Return the verdict on elements that have one formula each."""
        if any(access.current is not None for access in self.execution.accesses):
            raise NotHandled("an atomic op outside of a scatter")
        outputs = range(len(self.run.results))
        memory = [reason for reason in [self.memory.hazards()] if reason]
        for output in outputs:
            covered = self.memory.coverage(output)
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
        return self._prove_outputs()

    def _prove_outputs(self) -> KernelProved:
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
            is_fault = any(what in promise.what for what in (IN_BOUNDS, LAUNCH, ALIGNED))
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
        execution = self.execution
        loops = set(promise.variables) & execution.carrying & execution.exchanging
        if promise.exchanges < execution.exchanges or loops:
            return False  # loops: a later iteration exchanges values
        writes = [a for a in self.execution.accesses if a.value is not None]
        late = [
            a
            for a in writes
            if a.interval == self.execution.interval
            and (a.order >= promise.order or set(a.variables) & set(promise.variables))
        ]
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
        fault = promise.what.replace(IN_BOUNDS, "out of bounds").replace("aligned", "not aligned")
        what = f"{fault}, `{op.name}` in line {op.span.line}: {outcome.condition} does not hold"
        return self._at(what, outcome.point)

    def _at(
        self, what: str, point: dict[str, int], element: tuple[int, ...] | None = None,
        output: int | None = None,
    ) -> KernelDiffers:  # fmt: skip
        full = {"bl_x": 0, "th_x": 0} | {v.name: v.lower for v in self.points} | point

        def part(prefix: str) -> tuple[tuple[str, int], ...]:
            return tuple([(n, x) for n, x in sorted(full.items()) if n.startswith(prefix)])

        return KernelDiffers(what, part("bl_"), part("th_"), part("i"), element, output)

    # ------------------------------------------------------------ values

    def _values(self, outputs: Sequence[int]) -> KernelDiffers | str | None:
        for output in outputs:
            writes = self.memory.writes_to(self.run.results[output])
            for pair in self._pairs(output):
                reason = self._compare(output, pair)
                if isinstance(reason, KernelDiffers) and self.memory.repeated(writes):
                    return "an element may be written several times, at first with another value"
                if reason is not None:
                    return reason
        return None

    def _pairs(self, output: int) -> Iterator[_Pair]:
        """Yield the value in memory and that of the instruction, with the points of the pair."""
        buffer = self.run.results[output]
        writes = self.memory.writes_to(buffer)
        kind = self.program.shapes[output]
        for write in writes:
            assert write.value is not None
            value = self.execution.scalars.of_type(write.value, kind.element_type)
            yield _Pair(value, self.program.element(output, write.index), write.guards, write.index)
        operand = self.memory.operand_in(buffer)
        if operand is not None:
            yield from self._kept_elements(output, operand, writes)

    def _kept_elements(
        self, output: int, operand: int, writes: Sequence[KernelAccess]
    ) -> Iterator[_Pair]:
        """Yield the elements that are not written: those of the operand in the same memory."""
        own = [
            Variable(f"d{k}", 0, n - 1) for k, n in enumerate(self.run.results[output].type.dims)
        ]
        index = [v.as_expr() if v.upper else as_expr(0) for v in own]
        kept, element = self.program.read(operand, index), self.program.element(output, index)
        for domain in self.memory.outside(writes, index):
            if not is_impossible(domain):
                yield _Pair(kept, element, domain, tuple(index), is_kept=True)

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

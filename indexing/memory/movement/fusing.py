"""`fuse`: the effect of fusing a producer into a consumer on bytes and operations.

>>> import hlo
>>> entry = hlo.parse('''ENTRY e {
...   p = f32[9] parameter(0)
...   n = f32[9] exponential(p)
...   a = f32[9] negate(n)
...   ROOT b = f32[4,9] broadcast(a), dimensions={1}
... }''').entry
>>> effect = fuse(entry["a"], entry["b"])
>>> effect.saved, effect.recompute, effect.flops_added, effect.reasons
(72, Fraction(4, 1), 27, ())
>>> fuse(entry["n"], entry["a"]).recompute
Fraction(1, 1)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

from hlo.arguments import checked
from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, leaf_shape, leaves, unbounded_leaf
from indexing.maps.arrays import ArrayRef
from indexing.maps.displayed import Displayed
from indexing.maps.indexing_map import Grade, IndexingMap
from indexing.maps.map_set import MapSet
from indexing.memory.executions import Executions
from indexing.memory.movement.amounts import Amount, total_amount
from indexing.memory.movement.analysis import grade_of, instruction_traffic, larger, sum_of_works
from indexing.memory.movement.loop_evaluations import WALK, is_whole, map_sets
from indexing.memory.movement.point_counts import Counter
from indexing.memory.movement.traffic_values import InstructionTraffic
from indexing.memory.movement.writes import (
    dense_bytes,
    is_view,
    moves_bytes,
    readers,
    updates_of,
    writes_of,
)
from indexing.ops.element import Work
from indexing.ops.structured_ops import InlineOp
from simplifier.unknown import Unknown

MAX_NAMED_READERS: Final = 3
"""Number of other readers of a producer that a reason names."""

SetsByOutput: TypeAlias = dict[ArrayRef, MapSet]
"""The maps to one array, by the output of the consumer from which they start."""


@dataclass(frozen=True, repr=False)
class FusionEffect(Displayed):
    """The change of bytes and operations if a producer is fused into a consumer.

    The fused loop evaluates the producer for each read of the consumer, as `traffic` counts it.

    Attributes:
        producer, consumer: the traffic of both without the fusion.
        read: bytes that the fusion reads, each element once.
        written: bytes that the fusion writes.
        is_kept: the producer is still computed, because others read its result.
        recompute: the number of evaluated elements of the producer per element.
        work_added: operations that the fusion does in addition to those of both instructions;
            negative if it needs only a part of the producer.
        reasons: why figures are unknown, or why less is saved.
        evaluated_grade: "may" if `recompute` and `work_added` are upper bounds.
    """

    producer: InstructionTraffic
    consumer: InstructionTraffic
    read: Amount
    written: int | Unknown
    is_kept: bool
    recompute: Fraction | Unknown
    work_added: Work | Unknown
    reasons: tuple[str, ...]
    evaluated_grade: Grade = "exact"

    @property
    def flops_added(self) -> int | Unknown:
        """The operations of `work_added`, without transcendental functions."""
        return self.work_added if isinstance(self.work_added, Unknown) else self.work_added.flops

    @property
    def before(self) -> Amount | Unknown:
        """Bytes that both instructions move."""
        return _sum(self.producer.bytes, self.consumer.bytes)

    @property
    def after(self) -> Amount | Unknown:
        """Bytes that the fusion moves, and the producer if it is kept."""
        written = self.written
        fused = written if isinstance(written, Unknown) else self.read.plus(Amount(written))
        return _sum(fused, self.producer.bytes if self.is_kept else Amount(0))

    @property
    def saved(self) -> int | Unknown:
        """The bytes that the fusion saves; negative if it moves more.

        `Unknown` if the bytes before or after are upper bounds.
        """
        before, after = self.before, self.after
        if isinstance(before, Unknown):
            return before
        if isinstance(after, Unknown):
            return after
        if "may" in (before.grade, after.grade):
            return Unknown(f"{before} bytes before and {after} after: upper bounds")
        return before.number - after.number

    def __repr__(self) -> str:
        names = f"`{self.producer.instruction.name}` into `{self.consumer.instruction.name}`"
        return f"<effect of fusing {names}>"

    def __str__(self) -> str:
        names = f"`{self.producer.instruction.name}` into `{self.consumer.instruction.name}`"
        added = f"{self._at_most(self.flops_added)} flops"
        if not isinstance(self.work_added, Unknown) and self.work_added.transcendentals:
            added += f" and {self.work_added.transcendentals:,} transcendentals"
        times = "once" if self.recompute == 1 else f"{self._at_most(self.recompute)} times"
        if self.recompute == 1 and self.evaluated_grade == "may":
            times = "at most once"
        lines = [
            f"fusing {names} saves {_figure_text(self.saved)} bytes and adds {added}; "
            f"the producer is evaluated {times}"
        ]
        if isinstance(self.saved, Unknown):
            lines.append(f"the bytes saved are unknown: {self.saved.reason}")
        return "\n  ".join([*lines, *self.reasons])

    def _at_most(self, figure: int | Fraction | Unknown) -> str:
        is_bound = self.evaluated_grade == "may" and not isinstance(figure, Unknown)
        return f"{'at most ' if is_bound else ''}{_figure_text(figure)}"


@checked
def fuse(producer: Instruction, consumer: Instruction) -> FusionEffect:
    """Return the effect of fusing `producer` into `consumer`, both fusions or single ops.

    Between the two, there may be bitcasts, tuples and elements of tuples.

    Raises:
        HloError: an instruction is invalid.
        ValueError: the consumer does not read the producer, or one of them moves no bytes.

    >>> import hlo, indexing
    >>> entry = hlo.parse('''ENTRY e {
    ...   p = f32[9] parameter(0)
    ...   a = f32[9] exponential(p)
    ...   ROOT b = f32[4,9] broadcast(a), dimensions={1}
    ... }''').entry
    >>> effect = indexing.fuse(entry["a"], entry["b"])
    >>> effect.saved, effect.recompute  # `a` is neither written nor read: twice 36 bytes
    (72, Fraction(4, 1))
    """
    for each in (producer, consumer):
        if not moves_bytes(each):
            raise ValueError(f"{each.opcode} `{each.name}` computes no array: it cannot be fused")
    views = _views_between(producer, consumer)
    counter, once = Counter(), Executions(1, 1)
    first, second = [instruction_traffic(each, once, counter) for each in (producer, consumer)]
    reached = _reached_arrays(producer, consumer, views)
    inside = {producer, consumer, *views}
    updates = updates_of(consumer)
    kept = [u for u in updates if u.is_in_place and u.base.instruction not in inside]
    amounts = list(_reads(reached, inside, {u.base for u in kept}, counter))
    amounts += [
        each.distinct for t in (first, second) for each in t.operands if each.operand is None
    ]
    others = _other_readers(producer, consumer)
    evaluations = _Evaluations(producer, consumer, reached, counter)
    recompute = evaluations.recompute
    lost = [u.instruction for u in updates if u.is_in_place and u not in kept]
    return FusionEffect(
        first,
        second,
        read=total_amount(amounts),
        written=dense_bytes(writes_of(consumer, tuple(kept))),
        is_kept=bool(others),
        recompute=recompute,
        work_added=_work_added(evaluations, bool(others), first),
        reasons=tuple(_reasons(others, recompute, lost)),
        evaluated_grade=evaluations.grade,
    )


def _reasons(
    others: list[Instruction], recompute: Fraction | Unknown, updates: list[Instruction]
) -> Iterator[str]:
    """Yield why less is saved, or figures are unknown.

    Args:
        others: the other readers of the producer.
        updates: the updates that are no longer in place.
    """
    if others:
        names = [f"`{reader.name}`" for reader in others[:MAX_NAMED_READERS]]
        if len(others) > MAX_NAMED_READERS:
            names.append(f"{len(others) - MAX_NAMED_READERS} more")
        *first, last = names
        subject = f"{', '.join(first)} and {last} read" if first else f"{last} reads"
        yield f"{subject} the producer, which is still computed"
    if isinstance(recompute, Unknown):
        yield recompute.reason
    for update in updates:
        yield f"the update `{update.name}` is no longer in place"


def _views_between(producer: Instruction, consumer: Instruction) -> set[Instruction]:
    """Return the views through which the consumer reads the producer."""
    leading: dict[Instruction, bool] = {producer: True}
    if producer.computation is consumer.computation:
        for each in producer.computation.instructions[producer.index + 1 : consumer.index + 1]:
            reads = any(leading.get(operand, False) for operand in each.operands)
            leading[each] = reads and (is_view(each) or each is consumer)
    if not leading.get(consumer, False) or consumer is producer:
        raise ValueError(
            f"`{consumer.name}` does not read `{producer.name}`, except through other instructions"
        )
    return {each for each, is_leading in leading.items() if is_leading} - {producer, consumer}


def _reached_arrays(
    producer: Instruction, consumer: Instruction, views: set[Instruction]
) -> dict[ArrayRef, SetsByOutput]:
    """Return the maps from the outputs of the consumer to the arrays of the fusion."""
    within = [producer, *views, consumer]
    WALK.prepare(within, backward=True)
    reached: dict[ArrayRef, SetsByOutput] = {}
    for path, _ in leaves(consumer.shape):
        output = ArrayRef(consumer, path)
        for array, maps in WALK.backward(output, within).items():
            reached.setdefault(array, {})[output] = maps
    return reached


def _reads(
    reached: Mapping[ArrayRef, SetsByOutput],
    inside: set[Instruction],
    bases: set[ArrayRef],
    counter: Counter,
) -> Iterator[Amount]:
    """Yield the bytes that the fusion reads of each array outside."""
    for array, sets in reached.items():
        shape = leaf_shape(array.instruction.shape, array.path)
        if array.instruction in inside or array in bases or not isinstance(shape, Shape):
            continue
        if unbounded_leaf(shape):
            continue
        elements = Amount(shape.size, "may")
        if all(each.unknown is None for each in sets.values()):
            elements = counter.results(_merge_sets(sets), shape)
        yield elements._replace(number=-(-elements.number * shape.element_bits // 8))


def _merge_sets(sets: SetsByOutput) -> tuple[IndexingMap, ...]:
    return tuple(dict.fromkeys([m for each in sets.values() for m in each.effective]))


def _other_readers(producer: Instruction, consumer: Instruction) -> list[Instruction]:
    """Return the instructions besides the consumer that need the result in memory."""
    others: dict[Instruction, None] = {}
    for path, _ in leaves(producer.shape):
        others.update(dict.fromkeys(readers(ArrayRef(producer, path))))
    others.pop(consumer, None)
    return sorted(others, key=lambda each: each.index)


@dataclass(frozen=True)
class _Evaluations:
    """The evaluations of a producer by the loop of a consumer.

    Attributes:
        reached: the maps from the consumer's outputs.
    """

    producer: Instruction
    consumer: Instruction
    reached: Mapping[ArrayRef, SetsByOutput]
    counter: Counter

    @property
    def _outputs(self) -> list[tuple[ArrayRef, SetsByOutput]]:
        return [(a, sets) for a, sets in self.reached.items() if a.instruction is self.producer]

    @property
    def recompute(self) -> Fraction | Unknown:
        """The number of evaluated elements of the producer per element, of the largest output."""
        for each in (self.producer, self.consumer):
            if is_whole(each):
                return Unknown(f"{each.opcode} `{each.name}` has no per-element rule", each)
        factor: Fraction | Unknown | None = None
        for array, sets in self._outputs:
            factor = larger(factor, self._factor(array, sets))
        return Fraction(0) if factor is None else factor

    def _factor(self, array: ArrayRef, sets: SetsByOutput) -> Fraction | Unknown:
        shape = leaf_shape(array.instruction.shape, array.path)
        for each in sets.values():
            if each.unknown is not None:
                return each.unknown
            if (uncounted := each.uncounted) is not None:
                return uncounted
        if not isinstance(shape, Shape) or unbounded_leaf(shape):
            return Unknown(f"`{array.instruction.name}` has no known number of elements")
        reads = self.counter.points(_merge_sets(sets))
        if isinstance(reads, Unknown):
            return reads
        return Fraction(reads.number, shape.size) if shape.size else Fraction(1)

    @property
    def grade(self) -> Grade:
        """ "may" if the evaluations are upper bounds."""
        reached = [sets for _, sets in self._outputs]
        if isinstance(self.producer.op, InlineOp):
            reached += self._inner().values()
        return grade_of([self.counter.points(_merge_sets(sets)) for sets in reached])

    @property
    def work(self) -> Work | Unknown:
        """The operations of the evaluations of the producer in the fusion."""
        factors: dict[Instruction, Fraction | Unknown] = {}
        if not isinstance(self.producer.op, InlineOp):
            factors[self.producer] = self.recompute
        else:
            for array, sets in self._inner().items():
                inner = array.instruction
                factors[inner] = larger(factors.get(inner), self._factor(array, sets))
        return sum_of_works(factors)

    def _inner(self) -> dict[ArrayRef, SetsByOutput]:
        """Return the maps from the consumer's outputs to the arrays inside of the producer."""
        inner: dict[ArrayRef, SetsByOutput] = {}
        own = map_sets(self.producer)
        for result, sets in self._outputs:
            for array, reads in own[result].items():
                for output, before in sets.items():
                    by_output = inner.setdefault(array, {})
                    if output not in by_output:
                        by_output[output] = WALK.edges.empty_map_set(output, array)
                    unknown = before.unknown if reads.unknown is None else reads.unknown
                    reasons = before.reasons + reads.reasons
                    by_output[output].add_composed(before.maps, reads.maps, unknown, reasons)
        return inner


def _work_added(
    evaluations: _Evaluations, is_kept: bool, producer: InstructionTraffic
) -> Work | Unknown:
    work = evaluations.work
    evaluated = producer.evaluated
    if isinstance(work, Unknown) or isinstance(evaluations.recompute, Unknown):
        return work if isinstance(work, Unknown) else Unknown(str(evaluations.recompute))
    if isinstance(evaluated, Unknown):
        return evaluated
    if not is_kept and producer.evaluated_grade == "may":
        return Unknown("the operations of the producer alone are an upper bound")
    return work if is_kept else work.plus(evaluated.times(-1))


def _sum(first: Amount | Unknown, second: Amount | Unknown) -> Amount | Unknown:
    if isinstance(first, Unknown):
        return first
    return second if isinstance(second, Unknown) else first.plus(second)


def _figure_text(figure: int | Fraction | Unknown) -> str:
    if isinstance(figure, Unknown):
        return "unknown"
    return f"{figure:,}" if isinstance(figure, int) else f"{float(figure):.4g}"

"""The reads of an instruction's result, in the form from which sharding rules are derived."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hlo.shapes.shape import AnyShape, OpaqueShape, Shape, leaves
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.simplify import TIGHTENED
from indexing.ops.base import MappedOp
from indexing.ops.element import ElementRule, ReductionRule
from simplifier.atoms import Variable
from simplifier.linear import Expr


@dataclass(frozen=True, slots=True)
class ArrayRead:
    """The index of the elements of one array that an element of a result needs.

    Attributes:
        operand: number of the array among the leaves of the operands.
        indices: the index, an expression for each dimension.
        dims: the variables of the dimensions of the result.
        steps: the range variables over which the result is reduced.
        runtime: the runtime variables.
        constrained: the variables in constraints of the domain.
        is_value: the array is one that the element rule reduces or copies.
    """

    operand: int
    indices: tuple[Expr, ...]
    dims: tuple[Variable, ...]
    steps: tuple[Variable, ...]
    runtime: frozenset[Variable]
    constrained: frozenset[Variable]
    is_value: bool


@dataclass(frozen=True, slots=True)
class ResultReads:
    """The reads of an element of one array of the result.

    Attributes:
        rule: the element rule.
        combiner: the function that combines partial results, or None.
        reads: the reads of arrays whose maps are known.
        unknown: the arrays whose maps are unknown, each with the reason.
    """

    rule: ElementRule
    combiner: str | None
    reads: tuple[ArrayRead, ...]
    unknown: tuple[tuple[int, str], ...]

    def has_all_steps(self, step: Variable) -> bool:
        """Return True if every value is read in all steps, from 0, of a range variable."""
        same = [(read, v) for read in self.reads for v in read.steps if v.name == step.name]
        values = [(read, v) for read, v in same if read.is_value]
        bounds = {v.bounds for _, v in values} | {step.bounds}
        constrained = any(v in read.constrained for read, v in values)
        return step.lower == 0 and len(bounds) == 1 and not constrained


def arrays_of(*shapes: AnyShape) -> tuple[Shape | OpaqueShape, ...]:
    """Return the leaves of shapes."""
    return tuple([leaf for shape in shapes for _, leaf in leaves(shape)])


def reads_of_op(
    op: MappedOp, out: AnyShape, operands: tuple[AnyShape, ...], names: Sequence[str | None]
) -> list[ResultReads]:
    """Return the reads of each array of an op's result, by the maps of its element rule.

    Args:
        out: shape of the result.
        operands: shapes of the operands.
        names: for each array of the result, the function that a called computation applies.
    """
    return [_reads_of_op(op, out, operands, k, name) for k, name in enumerate(names)]


def _reads_of_op(
    op: MappedOp, out: AnyShape, operands: tuple[AnyShape, ...], number: int, name: str | None
) -> ResultReads:
    rule = op.element(leaves(out)[number][1], *operands)
    entries = op.reads(out, operands, number)
    values = rule.values if isinstance(rule, ReductionRule) else getattr(rule, "operands", ())
    indirect = {rt.source for entry in entries for m in tight_maps(entry) for rt in m.runtime}
    reads: list[ArrayRead] = []
    unknown = []
    for operand, entry in enumerate(entries):
        if not isinstance(entry, tuple):
            unknown.append((operand, str(entry.reason)))
        for m in tight_maps(entry):
            steps = m.ranges if isinstance(rule, ReductionRule) else ()
            if operand not in indirect:
                reads.append(read_of(m, operand, m.results, operand in values, steps))
            for rt in m.runtime:
                assert isinstance(rt.source, int)
                reads.append(read_of(m, rt.source, rt.index, False, steps))
    combiner = None
    if isinstance(rule, ReductionRule):
        combiner = name if rule.uses_computation else "sum"
    return ResultReads(rule, combiner, tuple(reads), tuple(unknown))


def tight_maps(entry: object) -> Iterator[IndexingMap]:
    """Yield the maps of an entry with tight bounds; range variables keep their names."""
    _, tightened = TIGHTENED
    for m in entry if isinstance(entry, tuple) else ():
        tight = tightened(m) if m.constraints else m
        if not tight.is_known_empty:
            yield tight


def read_of(
    m: IndexingMap,
    operand: int,
    indices: tuple[Expr, ...],
    is_value: bool = False,
    steps: tuple[Variable, ...] = (),
) -> ArrayRead:
    """Return the read of an array at `indices`, expressions over the variables of a map."""
    runtime = frozenset([rt.variable for rt in m.runtime])
    constrained = frozenset([v for c in m.constraints for v in c.expr.variables()])
    return ArrayRead(operand, indices, m.dims, steps, runtime, constrained, is_value)

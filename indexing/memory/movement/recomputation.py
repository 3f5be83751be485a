"""Recomputation in fusions, weighed by its work."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import AnyShape, Shape, leaves, unbounded_leaf
from indexing.memory.movement.traffic_values import InstructionTraffic
from indexing.ops.element import IotaRule, element_of
from indexing.ops.work import loop_work_of
from simplifier.unknown import Unknown


def weighted_recompute(each: InstructionTraffic) -> Fraction | Unknown:
    """Return the operations of the loop of a fusion, per operation that computes a value.

    That is the mean of the recompute factors, weighed by the work of the instructions.  Scalars
    and values of constants and iotas alone have no weight: no data is read to compute them.
    `Unknown` if the work or the factor of an instruction is unknown.

    >>> import hlo, indexing
    >>> fusion = hlo.parse('''f {
    ...   p = f32[8] parameter(0)  i = s32[] parameter(1)
    ...   n = f32[8] negate(p)  b = f32[8,4] broadcast(n), dimensions={0}
    ...   ROOT e = f32[8,4] exponential(b) }
    ... ENTRY e { p = f32[8] parameter(0)  i = s32[] parameter(1)
    ...   ROOT r = f32[8,4] fusion(p, i), kind=kLoop, calls=f }''').entry.root
    >>> weighted_recompute(indexing.traffic(fusion).instructions[0])  # (8 * 4 + 32) / (8 + 32)
    Fraction(8, 5)
    """
    once, again = 0, Fraction(0)
    same = 0  # that of values which are computed once: integers add faster
    for inner, factor in each.recompute.items():
        if is_free(inner):
            continue
        work = loop_work_of(inner)
        if isinstance(work, Unknown):
            return work
        operations = work.flops + work.transcendentals
        if not operations:
            continue
        if isinstance(factor, Unknown):
            return factor
        once += operations
        if factor.numerator <= factor.denominator:
            same += operations
        else:
            again += operations * factor
    return (again + same) / once if once else Fraction(1)


def is_free(instruction: Instruction) -> bool:
    """Return True for a value that costs nothing to compute or to read again.

    It is a scalar, or it is made of scalars and iotas alone.
    """
    return instruction not in _with_data(instruction.computation)


def _with_data(computation: Computation) -> frozenset[Instruction]:
    """Return the instructions of a computation that are not free."""

    def find() -> frozenset[Instruction]:
        computed: set[Instruction] = set()
        for each in computation.instructions:
            if _is_small(each.shape):
                continue
            has_data = not computed.isdisjoint(each.operands)
            if has_data or not (each.operands or _is_iota(each)):
                computed.add(each)
        return frozenset(computed)

    return computation.memoised(_with_data, find)


@lru_cache(maxsize=1 << 11)
def _is_small(shape: AnyShape) -> bool:
    """Return True for a shape of at most one element."""
    arrays = [leaf for _, leaf in leaves(shape) if isinstance(leaf, Shape)]
    return unbounded_leaf(shape) is None and sum(each.size for each in arrays) <= 1


def _is_iota(instruction: Instruction) -> bool:
    return isinstance(element_of(instruction), IotaRule)

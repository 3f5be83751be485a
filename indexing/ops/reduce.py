"""Reduce: combine the elements along dimensions of one or of several arrays by a computation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from hlo.ops.attributes import computation, int_list
from hlo.ops.op import (
    HOLDS,
    Fault,
    Shape,
    Signature,
    attribute,
    constraint,
    dimensions_fault,
    mismatch_fault,
    op,
    signature,
)
from hlo.ops.unify import (
    Dim,
    PartialShape,
    array,
    dims_of,
    same_but_precision,
    same_shape,
    with_rank,
)
from hlo.shapes.shape import AnyShape, TupleShape
from indexing.maps.indexing_map import Grade, IndexingMap, dims, ranges
from indexing.ops.base import Array, VariadicOp
from indexing.ops.element import (
    ElementRule,
    ReductionRule,
    ShardReduction,
    Work,
    bounded_count,
    element_count,
)
from indexing.ops.reductions import reduce_axes, reduce_rows, ufunc_of
from simplifier.unknown import Unknown


def pairs_fault(operands: tuple[Shape, ...]) -> Fault:
    """Fault of operands that are not n arrays of the same sizes followed by n scalars."""
    if len(operands) % 2:
        label = f"{len(operands)} operands, expected an even number"
        return Fault(label, help="write one init value for each array")
    half = len(operands) // 2
    if fault := mismatch_fault(operands[:half]):
        return fault
    for number, init in enumerate(operands[half:], half):
        if init.rank:
            return Fault(f"init value {number} is {init.with_layout(None)}, not a scalar", number)
        of_array = operands[number - half].element_type
        if not same_but_precision(init.element_type, of_array):
            label = f"init value {number} is {init.element_type}, its array {of_array}"
            return Fault(label, number, f"convert the init value to {of_array}")
    return HOLDS


def unify_pairs(operands: Sequence[PartialShape], rank: int | None = None) -> list[PartialShape]:
    """Unify the shapes of n arrays of the same sizes, of rank `rank` if given, and n scalars."""
    half = len(operands) // 2
    arrays = operands[:half] if rank is None else [with_rank(s, rank) for s in operands[:half]]
    return [*same_shape(*arrays), *[with_rank(init, 0) for init in operands[half:]]]


def results(sizes: Sequence[Dim | int], operands: tuple[Shape, ...]) -> Shape | TupleShape:
    """Shape of an array of these sizes for each init value; a tuple for several init values."""
    arrays = [array(init.element_type, sizes) for init in operands[len(operands) // 2 :]]
    return arrays[0] if len(arrays) == 1 else TupleShape(tuple(arrays))


def has_elements(operands: tuple[Shape, ...]) -> bool:
    """Return True if the first operand is an array that always has elements.

    The operands of an invalid instruction may be no arrays.

    >>> has_elements((Shape("f32", (3,)),)), has_elements((Shape("f32", (3,), dynamic=(True,)),))
    (True, False)
    """
    first = operands[0] if operands else None
    return isinstance(first, Shape) and not first.is_dynamic and 0 not in first.dims


class PairedReduction(VariadicOp):
    """A reduction of n arrays of the same sizes by a computation, from n init values."""

    __slots__ = ()
    accumulates: ClassVar[bool] = True
    counts_reads: ClassVar[bool] = True
    min_operands: ClassVar[int] = 2

    @signature("to_apply")
    def reduces(self, *operands: Shape) -> Signature:
        half = len(operands) // 2
        return Signature.reducer(totals=operands[half:], values=operands[:half])

    @constraint("C1", "operands must be n arrays of the same sizes and n scalar init values")
    def has_inits(self, *operands: Shape) -> Fault:
        return pairs_fault(operands)


@op(
    "reduce",
    samples=[
        "f32[3] reduce(f32[2,3,5] p, f32[] z), dimensions={0,2}, to_apply=add",
        "f32[2,5] reduce(f32[2,3,5] p, f32[] z), dimensions={1}, to_apply=maximum",
        "f32[] reduce(f32[7] p, f32[] z), dimensions={0}, to_apply=add",
        "f32[2,3] reduce(f32[2,3] p, f32[] z), dimensions={}, to_apply=add",
        "(f32[3], s32[3]) reduce(f32[3,7] p, s32[3,7] q, f32[] y, s32[] z), "
        "dimensions={1}, to_apply=add_both",
        "f32[3] reduce(f32[0,3] p, f32[] z), dimensions={0}, to_apply=add",
        "f32[5,1] reduce(f32[5,1,2,1] p, f32[] z), dimensions={3,2}, to_apply=add",
    ],
)
class Reduce(PairedReduction):
    """``out[i] = reduce(to_apply, init, operand[.., i, ..])`` over indices along `dimensions`.

    Source: XLA ``docs/operation_semantics.md``, "Reduce".
    """

    reduces_shards: ClassVar[ShardReduction] = "partial"
    is_splittable: ClassVar[bool] = True
    obstacle: ClassVar[str] = "a variadic reduction of nothing reads only its own init value"
    dimensions: tuple[int, ...] = attribute(int_list)
    to_apply: str = attribute(computation)

    def unify_operands(self, *operands: PartialShape) -> Sequence[PartialShape]:
        return unify_pairs(operands)

    @constraint("C2", "dimensions must be distinct dimensions of the arrays")
    def names_dimensions(self, *operands: Shape) -> Fault:
        return dimensions_fault(self.dimensions, operands[0].rank)

    def _kept_dims(self, operand: Shape) -> list[int]:
        return [k for k in range(operand.rank) if k not in self.dimensions]

    def infer_shape(self, *operands: Shape) -> Shape | TupleShape:
        sizes = dims_of(operands[0])
        return results([sizes[k] for k in self._kept_dims(operands[0])], operands)

    def output_to_input(self, out: Shape, *operands: Shape) -> list[IndexingMap]:
        source = operands[0]
        reduced_dims = sorted(self.dimensions)
        i, s = dims(out), ranges(*[source.dims[k] for k in reduced_dims])
        place = dict(zip([*self._kept_dims(source), *reduced_dims], [*i, *s], strict=True))
        values = IndexingMap.of(i, [place[k] for k in range(source.rank)], ranges=s)
        init = IndexingMap.of(i, [], grade=self._grade_of_inits(operands))
        half = len(operands) // 2
        return [values] * half + [init] * half

    def _grade_of_inits(self, operands: tuple[Shape, ...]) -> Grade:
        """Grade of the maps to the init values: "may" for a variadic reduction of nothing.

        Result k of such a reduction is init value k and reads no other one.
        """
        is_empty = any(operands[0].dims[k] == 0 for k in self.dimensions)
        return "may" if is_empty and len(operands) > 2 else "exact"

    def element(self, out: Shape, *operands: Shape) -> ElementRule:
        half = len(operands) // 2
        return ReductionRule(
            tuple(range(half, 2 * half)),
            tuple(range(half)),
            uses_computation=True,
            always_steps=has_elements(operands),
        )

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        steps = element_count(operands[0]) - element_count(out)
        return applied[0].times(max(0, steps))

    def applications(self, out: AnyShape, operands: tuple[AnyShape, ...]) -> int:
        return bounded_count(operands[0])

    def kernel(self, *operands: Array, to_apply: Callable[..., Any]) -> Any:
        half = len(operands) // 2
        ufunc = ufunc_of(to_apply)
        if ufunc is not None and half == 1:
            return reduce_axes(ufunc, operands[1], operands[0], self.dimensions)
        kept = [k for k in range(operands[0].ndim) if k not in self.dimensions]
        sizes = [operands[0].shape[k] for k in kept]
        count = math.prod([operands[0].shape[k] for k in self.dimensions])
        order = [*sorted(self.dimensions), *kept]
        rows = [values.transpose(order).reshape(count, *sizes) for values in operands[:half]]
        inits = [np.broadcast_to(init, sizes) for init in operands[half:]]
        totals = tuple(reduce_rows(to_apply, inits, rows))
        return totals if half > 1 else totals[0]

"""Sort and topk: the source of an element depends on all values along a dimension.

Source: XLA ``docs/operation_semantics.md``, "Sort" and "TopK".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from hlo.modules.module import Instruction
from hlo.ops.attributes import boolean, computation, int_list, integer
from hlo.ops.op import (
    HOLDS,
    Fault,
    Shape,
    Signature,
    attribute,
    constraint,
    custom_call,
    declared,
    dimensions_fault,
    mismatch_fault,
    op,
    signature,
)
from hlo.ops.unify import PartialShape, Unranked, array, dims_of, may_be_at_most, same_shape
from hlo.shapes.shape import AnyShape, TupleShape
from indexing.maps.indexing_map import IndexingMap, dims, ranges
from indexing.ops.base import Array, UnaryOp, VariadicOp
from indexing.ops.element import ElementRule, OpaqueRule, Work, bounded_count, element_count
from indexing.ops.needed_operands import NeededOperands, ParametersRead
from indexing.ops.numerics import is_integer, total_order
from simplifier.unknown import Unknown


def along(start: Shape, end: Shape, dimension: int) -> IndexingMap:
    """The map from an element to all elements of another array along `dimension`.

    A change of any of them can move another element, or itself, to the place of the element.

    >>> print(along(Shape("f32", (3, 2)), Shape("f32", (3, 9)), 1))
    (d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 2], d1 in [0, 1], s0 in [0, 8]
    """
    i, s = dims(start), ranges(end.dims[dimension])
    place = [s[0] if k == dimension else d for k, d in enumerate(i)]
    return IndexingMap.of(i, place, ranges=s)


def along_last(start: Shape, end: Shape) -> IndexingMap:
    """`along` the last dimension; "may" for one element, on which no index depends."""
    row = along(start, end, start.rank - 1)
    return row if end.dims[-1] > 1 else row.with_grade("may")


@op(
    "sort",
    samples=[
        "f32[3,5] sort(f32[3,5] p), dimensions={1}, to_apply=less_than",
        "(s32[3,2,1], f32[3,2,1]) sort(s32[3,2,1] p, f32[3,2,1] q), dimensions={0}, "
        "is_stable=true, to_apply=first_less_than",
        "f32[1] sort(f32[1] p), dimensions={0}, to_apply=less_than",
        "f32[2,0] sort(f32[2,0] p), dimensions={1}, to_apply=less_than",
    ],
)
class Sort(VariadicOp):
    """The operands sorted along one dimension: ``to_apply(later, earlier)`` is false.

    All operands are permuted in the same way: `to_apply` compares ``(a_0, b_0, a_1, b_1, ..)``.
    If the comparison reads an operand, every element of a row can come to every place.
    """

    depends_on_order: ClassVar[bool] = True
    is_splittable: ClassVar[bool] = True
    values_decide_reads: ClassVar[bool] = True
    computes_slices: ClassVar[bool] = True
    obstacle: ClassVar[str] = "the order of the elements depends on their values"
    rule: ClassVar[ElementRule] = OpaqueRule("reads depend on element values")
    dimensions: tuple[int, ...] = attribute(int_list)
    is_stable: bool = attribute(boolean, default=False)
    to_apply: str = attribute(computation)

    def unify_operands(self, *operands: PartialShape) -> Sequence[PartialShape]:
        return same_shape(*operands)

    def infer_unranked(self, *operands: PartialShape) -> PartialShape:
        return operands[0] if len(operands) == 1 else Unranked()

    @signature("to_apply")
    def compares(self, *operands: Shape) -> Signature:
        scalars = [operand.with_dims(()) for operand in operands]
        return Signature(tuple([s for s in scalars for _ in range(2)]), Shape("pred", ()))

    @constraint("C1", "the operands must have the same dimensions")
    def same_dims(self, *operands: Shape) -> Fault:
        return mismatch_fault(operands)

    @constraint("C2", "dimensions must be one dimension of the operands")
    def names_dimension(self, *operands: Shape) -> Fault:
        if len(self.dimensions) != 1:
            return Fault(f"{len(self.dimensions)} dimensions, expected 1", "dimensions")
        return dimensions_fault(self.dimensions, operands[0].rank)

    def infer_shape(self, *operands: Shape) -> Shape | TupleShape:
        arrays = tuple([operand.with_layout(None) for operand in operands])
        return arrays[0] if len(arrays) == 1 else TupleShape(arrays)

    def output_to_input(self, out: Shape, *operands: Shape) -> list[IndexingMap]:
        return [along(out, out, self.dimensions[0]).with_grade("may")] * len(operands)

    def needed_operands(
        self, instruction: Instruction, output_id: int, parameters_read: ParametersRead
    ) -> NeededOperands:
        """Return the operands that the comparison reads, and the one that is permuted."""
        read = parameters_read(instruction.called_computations[0], 0)
        certain = {number // 2 for number, grade in read.items() if grade == "exact"}
        shape = instruction.operands[output_id].shape
        if isinstance(shape, Shape) and shape.dims[self.dimensions[0]] == 1:
            certain = {output_id}  # nothing is compared
        elif certain:
            certain.add(output_id)
        operands = sorted({output_id, *(number // 2 for number in read)})
        return NeededOperands(dict.fromkeys(operands, "may"), certain=frozenset(certain))

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        elements = element_count(operands[0])
        return Work(flops=elements * max(0, elements - 1).bit_length())

    def applications(self, out: AnyShape, operands: tuple[AnyShape, ...]) -> int:
        """Return the number of elements that are compared: none along a dimension of size 1."""
        first = operands[0]
        is_compared = isinstance(first, Shape) and first.dims[self.dimensions[0]] > 1
        return bounded_count(first) if is_compared else 0

    def kernel(self, *operands: Array, to_apply: Callable[..., Any]) -> Any:
        axis, key = self.dimensions[0], getattr(to_apply, "sort_key", None)
        if key is None:
            order = merge_sorted([np.moveaxis(array, axis, 0) for array in operands], to_apply)
            places = np.moveaxis(order, 0, axis)
        else:
            places = key.order(operands, axis)
        arrays = tuple([np.take_along_axis(array, places, axis) for array in operands])
        return arrays if len(arrays) > 1 else arrays[0]


def merge_sorted(columns: Sequence[Array], is_before: Callable[..., Any]) -> Array:
    """Return the permutation of a stable merge sort along the first dimension.

    Each pass merges all pairs of sorted runs of all columns. Bisection gives the number of elements
    of the other run that precede an element.

    >>> merge_sorted([np.array([3, 1, 2, 1])], np.less)
    array([1, 3, 2, 0])
    """
    count, *others = columns[0].shape
    flat = [array.reshape(count, math.prod(others)) for array in columns]
    order = np.broadcast_to(np.arange(count)[:, None], flat[0].shape)
    run = 1
    while run < count and order.size:
        order = _merge_runs(flat, order, run, is_before)
        run *= 2
    return order.reshape(count, *others)


def _merge_runs(flat: list[Array], order: Array, run: int, is_before: Callable[..., Any]) -> Array:
    """Return the permutation after merging each even run of `run` elements with the next run."""
    count = order.shape[0]
    place = np.arange(count)[:, None]
    begin = place // (2 * run) * (2 * run)
    is_left = place - begin < run
    middle = np.minimum(begin + run, count)
    low = np.broadcast_to(np.where(is_left, middle, begin), order.shape)
    high = np.broadcast_to(np.where(is_left, np.minimum(begin + 2 * run, count), middle), low.shape)
    first, mine = low, [np.take_along_axis(array, order, 0) for array in flat]
    while (searching := low < high).any():
        half = (low + high) // 2
        at = np.minimum(half, count - 1)
        other = [np.take_along_axis(array, at, 0) for array in mine]
        pairs = [
            (np.where(is_left, theirs, ours), np.where(is_left, ours, theirs))
            for ours, theirs in zip(mine, other, strict=True)
        ]
        precedes = np.asarray(is_before(*[x for pair in pairs for x in pair]))
        is_after = precedes == is_left  # the left run is first among equal elements
        low = np.where(searching & is_after, half + 1, low)
        high = np.where(searching & ~is_after, half, high)
    target = np.where(is_left, place, place - middle + begin) + (low - first)
    merged = np.empty_like(order)
    np.put_along_axis(merged, target, order, 0)
    return merged


@op(
    "topk",
    samples=[
        "(f32[3,2], s32[3,2]) topk(f32[3,5] p), k=2, largest=true",
        "(s16[3], s32[3]) topk(s16[3] p), k=3, largest=false",
        "(u8[2,0], s32[2,0]) topk(u8[2,3] p), k=0",
    ],
)
class TopK(UnaryOp):
    """The `k` largest (or smallest) elements of the last dimension in order, and their indices."""

    depends_on_order: ClassVar[bool] = True
    is_splittable: ClassVar[bool] = True
    computes_slices: ClassVar[bool] = True
    obstacle: ClassVar[str] = "the index of the only element depends on no value"
    rule: ClassVar[ElementRule] = OpaqueRule("reads depend on element values")
    k: int = attribute(integer)
    largest: bool = attribute(boolean, default=True)

    @constraint("C1", "the last dimension of the operand must have at least k elements")
    def has_elements(self, operand: Shape) -> Fault:
        if not operand.rank:
            return Fault("the operand is a scalar", 0)
        if self.k >= 0 and may_be_at_most(self.k, operand.dims[-1]):
            return HOLDS
        return Fault(f"k is {self.k}, the last dimension has size {operand.dims[-1]}", "k")

    def infer_shape(self, operand: Shape) -> TupleShape:
        values = array(operand.element_type, [*dims_of(operand)[:-1], self.k])
        return TupleShape((values, values.with_element_type("s32")))

    def output_to_input(self, out: Shape, operand: Shape) -> IndexingMap:
        return along_last(out, operand)

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        return Unknown("the number of comparisons depends on the algorithm, XLA counts none")

    def kernel(self, operand: Array) -> tuple[Array, Array]:
        return largest_elements(operand, self.k, self.largest)


@custom_call(
    "TopK",
    samples=['(f32[3,2], s32[3,2]) custom-call(f32[3,5] p), custom_call_target="TopK"'],
)
class TopKCall(UnaryOp):
    """The largest elements of the last dimension in order, and their indices.

    Source: XLA ``xla/service/topk_rewriter.cc``, which replaces a sort and slices by the call.
    """

    depends_on_order: ClassVar[bool] = True
    obstacle: ClassVar[str] = TopK.obstacle
    rule: ClassVar[ElementRule] = TopK.rule
    shape: AnyShape = declared(any_shape=True)

    @constraint("C1", "the results must be values and s32 indices, of a part of the last dimension")
    def has_results(self, operand: Shape) -> Fault:
        match self.shape:
            case TupleShape((Shape() as values, Shape() as indices)) if operand.rank:
                is_part = values.dims[:-1] == operand.dims[:-1] and values.rank == operand.rank
                types = values.element_type, indices.element_type
                if (
                    is_part
                    and types == (operand.element_type, "s32")
                    and indices.dims == values.dims
                    and may_be_at_most(values.dims[-1], operand.dims[-1])
                ):
                    return HOLDS
        return Fault(f"the result is {self.shape}, the operand {operand}")

    def infer_shape(self, operand: Shape) -> AnyShape:
        return self.shape

    def output_to_input(self, out: Shape, operand: Shape) -> IndexingMap:
        return along_last(out, operand)

    def kernel(self, operand: Array) -> tuple[Array, Array]:
        assert isinstance(self.shape, TupleShape)
        values = self.shape.elements[0]
        assert isinstance(values, Shape)
        return largest_elements(operand, values.dims[-1])


def largest_elements(operand: Array, k: int, largest: bool = True) -> tuple[Array, Array]:
    """Return the `k` largest or smallest elements of the last dimension, and their indices."""
    keys = operand if is_integer(operand) else total_order(operand)
    if largest:
        keys = np.flip(keys, -1)
    order = np.argsort(keys, -1, kind="stable")
    if largest:  # stable: equal elements stay in order
        order = operand.shape[-1] - 1 - np.flip(order, -1)
    places = order[..., :k]
    return np.take_along_axis(operand, places, -1), places.astype(np.int32)

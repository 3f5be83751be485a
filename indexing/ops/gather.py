"""Gather: windows of the operand that start at positions read from an array of indices.

The result has *batch* dimensions, one for each dimension of the indices except `index_vector_dim`,
and *offset* dimensions, which run over a window. The start of a window is the index vector at the
batch position; its component k applies to operand dimension ``start_index_map[k]``. The start is
clamped so that the window is inside the operand. An operand dimension with windows of size 1 may be
collapsed (omitted from the result), or be a batching dimension, whose index is taken from the batch
position.

Source: XLA ``docs/operation_semantics.md``, "Gather".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from hlo.ops.attributes import boolean, int_list, integer
from hlo.ops.op import (
    HOLDS,
    Fault,
    Shape,
    attribute,
    constraint,
    count_fault,
    dimensions_fault,
    disjoint_fault,
    op,
)
from hlo.ops.unify import (
    PartialShape,
    array,
    dims_of,
    may_be,
    may_be_at_most,
    same_sizes,
    with_rank,
)
from hlo.shapes.shape import ELEMENT_TYPES, UNBOUNDED
from indexing.maps.indexing_map import Grade, IndexingMap, dims, ranges
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.base import Array, BinaryOp
from indexing.ops.dynamic import START_IS_CLAMPED
from indexing.ops.element import CopyRule, ElementRule, ShardReduction
from indexing.ops.numerics import clamp
from indexing.ops.positions import list_by_position
from indexing.ops.sliding import windows_of
from simplifier.linear import Affine


@op(
    "gather",
    samples=[
        "f32[3,2,2,3] gather(f32[4,6,7] p, s32[3,2,2] i), offset_dims={1,3}, "
        "collapsed_slice_dims={1}, start_index_map={2,0}, index_vector_dim=2, slice_sizes={2,1,3}",
        "f32[4,5,7] gather(f32[4,6,7] p, s32[4,5,1] i), offset_dims={2}, "
        "collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, "
        "start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,7}",
        "f32[5,3] gather(f32[6,3] p, s32[5] i), offset_dims={1}, collapsed_slice_dims={0}, "
        "start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}",
        "f32[2,3,2] gather(f32[5,4] p, s32[2,2] i), offset_dims={1,2}, collapsed_slice_dims={}, "
        "start_index_map={1,0}, index_vector_dim=0, slice_sizes={3,2}",
        "f32[2] gather(f32[5] p, s32[1] i), offset_dims={0}, collapsed_slice_dims={}, "
        "start_index_map={0}, index_vector_dim=0, slice_sizes={2}",
        "f32[2,3] gather(f32[5,3,2] p, s32[2,3] i), offset_dims={}, collapsed_slice_dims={0}, "
        "start_index_map={0}, operand_batching_dims={1,2}, start_indices_batching_dims={1,0}, "
        "index_vector_dim=2, slice_sizes={1,1,1}",
        "f32[3,2] gather(f32[4,5] p, s32[3,2] i), offset_dims={1}, collapsed_slice_dims={0}, "
        "start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,2}",
        "f32[0,2] gather(f32[4,2] p, s32[0,1] i), offset_dims={1}, collapsed_slice_dims={0}, "
        "start_index_map={0}, index_vector_dim=1, slice_sizes={1,2}",
    ],
)
class Gather(BinaryOp):
    """``out[batch, offset] = operand[clamp(indices[batch, :]) + offset]``."""

    reduces_shards: ClassVar[ShardReduction] = "masked"
    is_splittable: ClassVar[bool] = True
    obstacle: ClassVar[str] = START_IS_CLAMPED
    rule: ClassVar[ElementRule] = CopyRule()
    offset_dims: tuple[int, ...] = attribute(int_list)
    collapsed_slice_dims: tuple[int, ...] = attribute(int_list, default=())
    start_index_map: tuple[int, ...] = attribute(int_list)
    operand_batching_dims: tuple[int, ...] = attribute(int_list, default=())
    start_indices_batching_dims: tuple[int, ...] = attribute(int_list, default=())
    index_vector_dim: int = attribute(integer)
    slice_sizes: tuple[int, ...] = attribute(int_list)
    indices_are_sorted: bool = attribute(boolean, default=False, in_value=False)

    # ------------------------------------------------------------ constraints

    def unify_operands(self, *operands: PartialShape) -> Sequence[PartialShape]:
        batching = zip(self.operand_batching_dims, self.start_indices_batching_dims, strict=False)
        base = with_rank(operands[0], len(self.slice_sizes))
        return same_sizes([base, operands[1]], *[((0, k), (1, n)) for k, n in batching])

    @constraint("C1", "the indices must be integers")
    def has_integers(self, left: Shape, right: Shape) -> Fault:
        kind = ELEMENT_TYPES[right.element_type].kind
        if kind in ("integral", "unsigned"):
            return HOLDS
        return Fault(f"operand 1 is {right.with_layout(None)}", 1)

    @constraint("C2", "index_vector_dim must be in [0, rank(indices)]")
    def has_vector(self, left: Shape, right: Shape) -> Fault:
        if 0 <= self.index_vector_dim <= right.rank:
            return HOLDS
        return Fault(f"{self.index_vector_dim} is not in [0, {right.rank}]", "index_vector_dim")

    @constraint("C3", "start_index_map must name an operand dimension for each index component")
    def maps_starts(self, left: Shape, right: Shape) -> Fault:
        count = self._components(right)
        count = len(self.start_index_map) if count == UNBOUNDED else count
        return count_fault(
            self.start_index_map, count, "component of an index vector", "start_index_map"
        ) or dimensions_fault(self.start_index_map, left.rank, "start_index_map")

    @constraint("C4", "slice_sizes must have a size for each operand dimension, at most its size")
    def has_windows(self, left: Shape, right: Shape) -> Fault:
        if fault := count_fault(self.slice_sizes, left.rank, "operand dimension", "slice_sizes"):
            return fault
        for k, (width, size) in enumerate(zip(self.slice_sizes, left.dims, strict=True)):
            if not (width >= 0 and may_be_at_most(width, size)):
                label = f"size {width} does not fit into dimension {k} of size {size}"
                return Fault(label, "slice_sizes")
        return HOLDS

    @constraint("C5", "collapsed and batching dimensions must be distinct, with slice size 0 or 1")
    def collapses(self, left: Shape, right: Shape) -> Fault:
        both = (*self.collapsed_slice_dims, *self.operand_batching_dims)
        if fault := disjoint_fault(
            left.rank,
            collapsed_slice_dims=self.collapsed_slice_dims,
            operand_batching_dims=self.operand_batching_dims,
        ):
            return fault
        wide = [k for k in both if self.slice_sizes[k] > 1]
        if not wide:
            return HOLDS
        label = f"dimension {wide[0]} has slice size {self.slice_sizes[wide[0]]}"
        return Fault(label, "slice_sizes")

    @constraint("C6", "offset_dims must name a result dimension for each window dimension")
    def offsets(self, left: Shape, right: Shape) -> Fault:
        windowed, batch = self._window_dims(left.rank), self._batch_sizes(right)
        return count_fault(
            self.offset_dims, len(windowed), "window dimension", "offset_dims"
        ) or dimensions_fault(self.offset_dims, len(windowed) + len(batch), "offset_dims")

    @constraint("C7", "batching dimensions must match in number and size, without start indices")
    def pairs_batching(self, left: Shape, right: Shape) -> Fault:
        ours, theirs = self.operand_batching_dims, self.start_indices_batching_dims
        at = "start_indices_batching_dims"
        fault = count_fault(theirs, len(ours), "entry of operand_batching_dims", at)
        fault = fault or dimensions_fault((*theirs, self.index_vector_dim), right.rank + 1, at)
        if fault := fault or dimensions_fault(theirs, right.rank, at):
            return fault
        for k, n in zip(ours, theirs, strict=True):
            if k in self.start_index_map:
                return Fault(f"dimension {k} has a start index", "operand_batching_dims")
            if not may_be(left.dims[k], right.dims[n]):
                sizes = f"operand dimension {k} has size {left.dims[k]}"
                return Fault(f"{sizes}, indices dimension {n} has size {right.dims[n]}", at)
        return HOLDS

    # ------------------------------------------------------------ roles of the dimensions

    def _components(self, indices: Shape) -> int:
        """Length of an index vector; 1 if the indices have no index vector dimension."""
        return (*indices.dims, 1)[self.index_vector_dim]

    def _window_dims(self, rank: int) -> list[int]:
        """Operand dimensions that are offset dimensions of the result, in order."""
        omitted = {*self.collapsed_slice_dims, *self.operand_batching_dims}
        return [k for k in range(rank) if k not in omitted]

    def _batch_of_indices(self, rank: int) -> list[int]:
        """Dimensions of the indices that are batch dimensions of the result, in order."""
        return [k for k in range(rank) if k != self.index_vector_dim]

    def _batch_sizes(self, indices: Shape) -> list[int]:
        return [indices.dims[k] for k in self._batch_of_indices(indices.rank)]

    def _batch_dims(self, out_rank: int) -> list[int]:
        return [k for k in range(out_rank) if k not in self.offset_dims]

    def _batch_number(self, k: int) -> int:
        """The number, among the batch dimensions, of dimension k of the indices."""
        return k - (k > self.index_vector_dim)

    def _result(self, batch: Sequence[Any], offsets: Sequence[Any]) -> list[Any]:
        """Batch and offset values in the order of the result's dimensions."""
        rank = len(batch) + len(offsets)
        return list_by_position(
            rank,
            [
                *zip(self._batch_dims(rank), batch, strict=True),
                *zip(sorted(self.offset_dims), offsets, strict=True),
            ],
        )

    def _vector(self, batch: Sequence[Any], component: Any, rank: int) -> list[Any]:
        """The index, in the indices, of a component of the vector at a batch position."""
        index = list(batch)
        if self.index_vector_dim < rank:
            index.insert(self.index_vector_dim, component)
        return index

    def _starts(
        self, left: Shape, right: Shape, batch: Sequence[Affine]
    ) -> dict[int, RuntimeVariable]:
        """The runtime variable of each operand dimension that has a start index."""
        return {
            dim: RuntimeVariable.start(
                k, left.dims[dim], self.slice_sizes[dim], 1, self._vector(batch, k, right.rank)
            )
            for k, dim in enumerate(self.start_index_map)
        }

    def _grade(self, left: Shape) -> Grade:
        """Return "may" if a window fills a dimension: every start index is clamped to 0 there."""
        free = all(left.dims[k] > self.slice_sizes[k] for k in self.start_index_map)
        return "exact" if free else "may"

    # ------------------------------------------------------------ shape, maps, kernel

    def infer_shape(self, left: Shape, right: Shape) -> Shape:
        offsets = [self.slice_sizes[k] for k in self._window_dims(left.rank)]
        sizes = dims_of(right)
        batch = [sizes[k] for k in self._batch_of_indices(right.rank)]
        return array(left.element_type, self._result(batch, offsets))

    def output_to_input(
        self, out: Shape, left: Shape, right: Shape
    ) -> tuple[IndexingMap, IndexingMap]:
        i = dims(out)
        batch = [i[k] for k in self._batch_dims(out.rank)]
        offset = dict(
            zip(self._window_dims(left.rank), [i[k] for k in sorted(self.offset_dims)], strict=True)
        )
        offset |= {
            k: batch[self._batch_number(n)]
            for k, n in zip(
                self.operand_batching_dims, self.start_indices_batching_dims, strict=True
            )
        }
        starts = self._starts(left, right, batch)
        index: list[Affine] = []
        for k in range(left.rank):
            value: Affine = offset.get(k, 0)
            index.append(starts[k].expr + value if k in starts else value)
        has_vector = self.index_vector_dim < right.rank
        s = ranges(*[self._components(right)][:has_vector])
        vector = self._vector(batch, s[0] if s else None, right.rank)
        return (
            IndexingMap.of(i, index, runtime=starts.values()),
            IndexingMap.of(i, vector, ranges=s, grade=self._grade(left)),
        )

    def kernel(self, left: Array, right: Array) -> Array:
        batch_sizes = [right.shape[k] for k in self._batch_of_indices(right.ndim)]
        windowed = self._window_dims(left.ndim)
        offset_sizes = [self.slice_sizes[k] for k in windowed]
        sizes = [*batch_sizes, *offset_sizes]
        if 0 in (*left.shape, *self.slice_sizes, *batch_sizes):
            windows = np.zeros(sizes, left.dtype)
        else:
            windows = windows_of(left, self.slice_sizes)[self._first(left, right, batch_sizes)]
            windows = np.broadcast_to(windows, [*batch_sizes, *self.slice_sizes]).reshape(sizes)
        axes = self._result(range(len(batch_sizes)), range(len(batch_sizes), len(sizes)))
        return windows.transpose(axes)

    def _first(self, left: Array, right: Array, batch_sizes: list[int]) -> tuple[Array, ...]:
        """For each dimension of the operand, the start indices of the windows by batch position."""
        vectors = right
        if self.index_vector_dim < right.ndim:
            vectors = np.moveaxis(right, self.index_vector_dim, -1)
        else:
            vectors = right[..., None]
        first = [np.zeros((1,) * len(batch_sizes), np.int64)] * left.ndim
        for k, dim in enumerate(self.start_index_map):
            last = left.shape[dim] - self.slice_sizes[dim]
            first[dim] = clamp(vectors[..., k], 0, last)
        pairs = zip(self.operand_batching_dims, self.start_indices_batching_dims, strict=True)
        for k, n in pairs:
            number = self._batch_number(n)
            first[k] = np.arange(batch_sizes[number]).reshape(
                [-1 if b == number else 1 for b in range(len(batch_sizes))]
            )
        return tuple(np.broadcast_arrays(*first, np.empty(batch_sizes, bool))[:-1])

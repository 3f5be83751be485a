"""Ragged-dot: a dot whose left operand has a dimension that is split into groups of any size."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

import numpy as np

from hlo.ops.attributes import int_list, word, word_list
from hlo.ops.op import HOLDS, Fault, Shape, attribute, constraint, declared, op
from hlo.ops.unify import array, dims_of, may_be_same_dims
from hlo.shapes.shape import ELEMENT_TYPES, AnyShape, dtype
from indexing.maps.indexing_map import IndexingMap, dims, ranges
from indexing.ops.base import Array, OperandMaps, TernaryOp, every_element
from indexing.ops.dot import Dot
from indexing.ops.element import Work
from simplifier.unknown import Unknown

RaggedMode: TypeAlias = Literal["free", "contracting", "batch"]


@op(
    "ragged-dot",
    samples=[
        "f32[3,2] ragged-dot(f32[3,4] p, f32[2,4,2] q, s32[2] r), lhs_contracting_dims={1}, "
        "rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}",
        "f32[3,2,1] ragged-dot(f32[2,4] p, f32[4,1] q, s32[3] r), lhs_contracting_dims={1}, "
        "rhs_contracting_dims={0}, lhs_ragged_dims={1}",
        "f32[3,2,1] ragged-dot(f32[3,2,2] p, f32[3,2,1] q, s32[2] r), lhs_batch_dims={0}, "
        "rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, "
        "lhs_ragged_dims={0}",
        "f32[2,3,1] ragged-dot(f32[2,3,2] p, f32[2,2,2,1] q, s32[2,2] r), lhs_batch_dims={0}, "
        "rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={2}, "
        "lhs_ragged_dims={1}, rhs_group_dims={0}",
    ],
)
class RaggedDot(TernaryOp):
    """A dot for each group; operand 2 contains the group sizes along the ragged dimension.

    Groups are contiguous and start at index 0. The ragged dimension is

    * *free*: row i of group g is multiplied by ``right[g, ..]``; rows after the last group give 0;
    * *contracting*: each group is summed separately: ``out[g, ..]``;
    * *batch*: each batch entry is multiplied as in `Dot`.

    The group of an index depends on the values of operand 2, therefore all maps are "may".

    Source: XLA ``xla/xla_data.proto``, ``RaggedDotDimensionNumbers``; JAX's documentation of
    ``jax.lax.ragged_dot_general`` for the three modes.
    """

    linear_operands: ClassVar[tuple[int, ...]] = (0, 1)
    accumulates: ClassVar[bool] = True
    is_splittable: ClassVar[bool] = True
    shape: Shape | None = declared(default=None)
    obstacle: ClassVar[str] = "the groups of rows depend on runtime values"
    lhs_batch_dims: tuple[int, ...] = attribute(int_list, default=())
    lhs_contracting_dims: tuple[int, ...] = attribute(int_list, default=())
    rhs_batch_dims: tuple[int, ...] = attribute(int_list, default=())
    rhs_contracting_dims: tuple[int, ...] = attribute(int_list, default=())
    lhs_ragged_dims: tuple[int, ...] = attribute(int_list)
    rhs_group_dims: tuple[int, ...] = attribute(int_list, default=())
    operand_precision: tuple[str, ...] = attribute(word_list, default=(), in_value=False)
    algorithm: str = attribute(word, default="")

    @constraint("C1", "lhs_ragged_dims must be one dimension of the left operand")
    def is_ragged(self, first: Shape, second: Shape, third: Shape) -> Fault:
        if len(self.lhs_ragged_dims) == 1 and 0 <= self.lhs_ragged_dims[0] < first.rank:
            return HOLDS
        label = f"{list(self.lhs_ragged_dims)}, the left operand has rank {first.rank}"
        return Fault(label, "lhs_ragged_dims")

    @constraint("C2", "the right operand must have a group dimension iff the ragged one is free")
    def has_groups(self, first: Shape, second: Shape, third: Shape) -> Fault:
        wanted = self._mode == "free"
        taken = (*self.rhs_batch_dims, *self.rhs_contracting_dims)
        if len(self.rhs_group_dims) != wanted:
            label = f"{len(self.rhs_group_dims)} dimensions, the ragged dimension is {self._mode}"
            return Fault(label, "rhs_group_dims")
        if any(not 0 <= g < second.rank or g in taken for g in self.rhs_group_dims):
            label = f"expected a free dimension below {second.rank} of the right operand"
            return Fault(label, "rhs_group_dims")
        return HOLDS

    @constraint("C3", "the left operand and one group of the right operand must be valid for dot")
    def is_dot(self, first: Shape, second: Shape, third: Shape) -> Fault:
        broken = self._dot.first_fault((first, self._one_group(second)))
        return broken[1] if broken else HOLDS

    @constraint("C4", "group sizes must be integers, one per group and outer index")
    def has_sizes(self, first: Shape, second: Shape, third: Shape) -> Fault:
        outer = tuple([first.dims[k] for k in self._outer(first.rank)])
        is_integer = ELEMENT_TYPES[third.element_type].kind in ("integral", "unsigned")
        groups = [second.dims[g] for g in self.rhs_group_dims] or list(third.dims[-1:])
        fits = any(may_be_same_dims(third.dims, dims) for dims in (groups, (*outer, *groups)))
        if is_integer and third.rank and fits:
            return HOLDS
        return Fault(f"operand 2 is {third.with_layout(None)}", 2)

    @property
    def _mode(self) -> RaggedMode:
        """Role of the ragged dimension in the dot."""
        (ragged,) = self.lhs_ragged_dims
        if ragged in self.lhs_contracting_dims:
            return "contracting"
        return "batch" if ragged in self.lhs_batch_dims else "free"

    def _outer(self, rank: int) -> list[int]:
        """Dimensions of the left operand along which group sizes may differ."""
        (ragged,) = self.lhs_ragged_dims
        if self._mode == "batch":
            return list(self.lhs_batch_dims[: self.lhs_batch_dims.index(ragged)])
        taken = *self.lhs_batch_dims, *self.lhs_contracting_dims
        free = [k for k in range(rank) if k not in taken]
        same_role = list(self.lhs_contracting_dims) if self._mode == "contracting" else free
        return [*self.lhs_batch_dims, *same_role[: same_role.index(ragged)]]

    @property
    def _dot(self) -> Dot:
        """The dot of one group."""
        removed = self.rhs_group_dims
        return Dot(
            lhs_batch_dims=self.lhs_batch_dims,
            lhs_contracting_dims=self.lhs_contracting_dims,
            rhs_batch_dims=_without(removed, self.rhs_batch_dims),
            rhs_contracting_dims=_without(removed, self.rhs_contracting_dims),
        )

    def _one_group(self, right: Shape) -> Shape:
        kept = [n for k, n in enumerate(dims_of(right)) if k not in self.rhs_group_dims]
        return array(right.element_type, kept)

    def infer_shape(self, first: Shape, second: Shape, third: Shape) -> Shape:
        shape = self._dot.infer_shape(first, self._one_group(second))
        groups = dims_of(third)[-1:] if self._mode == "contracting" else ()
        return array((self.shape or shape).element_type, [*groups, *dims_of(shape)])

    def output_to_input(
        self, out: Shape, first: Shape, second: Shape, third: Shape
    ) -> tuple[OperandMaps, OperandMaps, OperandMaps]:
        right = self._one_group(second)
        one = self._one_output(out)
        of_left, of_right = _maps(self._dot.output_to_input(one, first, right))
        if self._mode == "contracting":
            group = IndexingMap.over(out, lambda d: d[1:])
            of_left, of_right = group.then(of_left), group.then(of_right)
        of_right = of_right.then(self._to_groups(right, second))
        return _may(of_left), _may(of_right), _may(every_element(out, third))

    def _one_output(self, out: Shape) -> Shape:
        return out.with_dims(out.dims[1:]) if self._mode == "contracting" else out

    def _to_groups(self, right: Shape, second: Shape) -> IndexingMap:
        """The map from one group of the right operand to all its groups."""
        d = list(dims(right))
        s = ranges(*[second.dims[g] for g in self.rhs_group_dims])
        index = list(d)
        for g, v in zip(self.rhs_group_dims, s, strict=True):
            index.insert(g, v)
        return IndexingMap.of(d, index, ranges=s)

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        """The work of one dot: each index of the ragged dimension is in one group.

        XLA multiplies by the number of groups if they are contracted, and omits the first dimension
        of the result if they are free.
        """
        first, second, _ = operands
        assert isinstance(out, Shape)
        assert isinstance(second, Shape)
        return self._dot.work(self._one_output(out), (first, self._one_group(second)), applied)

    def kernel(self, first: Array, second: Array, third: Array) -> Array:
        kind = dtype(self.shape.element_type) if self.shape else np.result_type(first, second)
        dot = self._dot
        if self._mode == "batch":
            return dot.kernel(first, second).astype(kind)
        ends = third.cumsum(-1)
        parts = []
        for g in range(third.shape[-1]):
            inside = self._inside(first, ends[..., g] - third[..., g], ends[..., g])
            right = second
            for axis in self.rhs_group_dims:
                right = second.take(g, axis)
            parts.append(dot.kernel(np.where(inside, first, first.dtype.type(0)), right))
        products = np.stack(parts)
        return (products if self._mode == "contracting" else products.sum(0)).astype(kind)

    def _inside(self, first: Array, start: Array, end: Array) -> Array:
        """Mask of the left operand: the index along the ragged dimension is in ``[start, end)``."""
        (ragged,) = self.lhs_ragged_dims
        at = np.arange(first.shape[ragged]).reshape(
            [-1 if k == ragged else 1 for k in range(first.ndim)]
        )
        outer = self._outer(first.ndim) if start.ndim else []
        order = sorted(range(len(outer)), key=outer.__getitem__)
        sizes = [first.shape[k] if k in outer else 1 for k in range(first.ndim)]
        low, high = (bound.transpose(order).reshape(sizes) for bound in (start, end))
        return np.asarray((low <= at) & (at < high))


def _without(removed: tuple[int, ...], dimensions: tuple[int, ...]) -> tuple[int, ...]:
    """`dimensions`, renumbered after removal of the dimensions `removed`."""
    return tuple([k - sum(g < k for g in removed) for k in dimensions])


def _may(index_map: IndexingMap) -> IndexingMap:
    return index_map.with_grade("may")


def _maps(entries: tuple[OperandMaps, ...]) -> list[IndexingMap]:
    return [entry for entry in entries if isinstance(entry, IndexingMap)]

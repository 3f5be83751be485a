"""Ragged-dot: a dot whose left operand has a dimension that is split into groups of any size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from hlo.ops.attributes import int_list, word, word_list
from hlo.ops.op import HOLDS, Fault, Shape, attribute, constraint, declared, op
from hlo.ops.unify import array, dims_of, may_be_same_dims
from hlo.shapes.shape import ELEMENT_TYPES, AnyShape, dtype
from indexing.maps.indexing_map import IndexingMap, dims, ranges
from indexing.maps.joining import join_maps
from indexing.ops.base import Array, OperandMaps, TernaryOp, every_element
from indexing.ops.dot import Dot
from indexing.ops.element import Work
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, constant
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
    values_decide_reads: ClassVar[bool] = True
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
        of_left, of_right = self._maps_of_dot(out, first, second)
        of_right = of_right.then(self._to_groups(right, second))
        return _may(of_left), _may(of_right), _may(every_element(out, third))

    def _maps_of_dot(self, out: Shape, first: Shape, second: Shape) -> list[IndexingMap]:
        """Return the maps to the left operand and to one group of the right one."""
        one, right = self._one_output(out), self._one_group(second)
        maps = _maps(self._dot.output_to_input(one, first, right))
        if self._mode == "contracting":
            group = IndexingMap.over(out, lambda d: d[1:])
            maps = [group.then(m) for m in maps]
        return maps

    def maps_of_groups(
        self, out: Shape, first: Shape, second: Shape, sizes: Array
    ) -> tuple[tuple[IndexingMap, ...], tuple[IndexingMap, ...]]:
        """Return the exact maps to both operands for known group sizes, of disjoint parts.

        >>> import hlo, numpy as np
        >>> dot = hlo.parse('''ENTRY e {
        ...   x = f32[6,4] parameter(0)  w = f32[6,5] parameter(1)  n = s32[2] parameter(2)
        ...   ROOT r = f32[2,4,5] ragged-dot(x, w, n), lhs_contracting_dims={0},
        ...     rhs_contracting_dims={0}, lhs_ragged_dims={0} }''').entry.root
        >>> shapes = dot.shape, *[operand.shape for operand in dot.operands[:2]]
        >>> left, right = dot.op.maps_of_groups(*shapes, np.array([2, 3]))
        >>> for m in left:
        ...     print(m)
        (d0, d1, d2)[s0] -> (s0, d1), domain: d0 in [0, 0], d1 in [0, 3], d2 in [0, 4], s0 in [0, 1]
        (d0, d1, d2)[s0] -> (s0, d1), domain: d0 in [1, 1], d1 in [0, 3], d2 in [0, 4], s0 in [2, 4]
        """
        of_left, of_right = self._maps_of_dot(out, first, second)
        if self._mode == "batch":
            return (of_left,), (of_right,)
        parts = [
            (of_left.with_constraints(where), of_right.with_constraints(where).then(to_group))
            for where, to_group in self._groups(of_left, first, second, sizes)
        ]
        inside = [pair for pair in parts if not pair[0].simplify().is_known_empty]
        lefts, rights = (join_maps([pair[k].simplify() for pair in inside]) for k in (0, 1))
        return tuple([m.simplify() for m in lefts]), tuple([m.simplify() for m in rights])

    def _groups(
        self, of_left: IndexingMap, first: Shape, second: Shape, sizes: Array
    ) -> Iterator[tuple[list[Constraint], IndexingMap]]:
        """Yield where an element and its range are in a group, and the map to its right operand."""
        (ragged,) = self.lhs_ragged_dims
        own = [*(self._outer(first.rank) if sizes.ndim > 1 else ()), ragged]
        at = [of_left.results[k] for k in own]  # of an index of the output, and the range
        if self._mode == "contracting":
            at.append(of_left.dims[0].as_expr())
        ends, one = sizes.cumsum(-1), self._one_group(second)
        for *outer, group in np.ndindex(sizes.shape):
            end = int(ends[(*outer, group)])
            bounds = [*[(k, k) for k in outer], (end - int(sizes[(*outer, group)]), end - 1)]
            bounds += [(group, group)] * (len(at) - len(bounds))
            where = [Constraint(e, *within) for e, within in zip(at, bounds, strict=True)]
            yield where, self._to_group(one, group)

    def _one_output(self, out: Shape) -> Shape:
        return out.with_dims(out.dims[1:]) if self._mode == "contracting" else out

    def _to_groups(self, right: Shape, second: Shape) -> IndexingMap:
        """The map from one group of the right operand to all its groups."""
        s = ranges(*[second.dims[g] for g in self.rhs_group_dims])
        return IndexingMap.of(dims(right), self._index_in_groups(right, s), ranges=s)

    def _to_group(self, right: Shape, group: int) -> IndexingMap:
        """The map from one group of the right operand to group number `group`."""
        number = [constant(group)] * len(self.rhs_group_dims)
        return IndexingMap.of(dims(right), self._index_in_groups(right, number))

    def _index_in_groups(
        self, right: Shape, number: Sequence[Variable | Expr]
    ) -> list[Variable | Expr]:
        """Return the index of the right operand from that of one group, and the group."""
        index: list[Variable | Expr] = list(dims(right))
        for g, value in zip(self.rhs_group_dims, number, strict=True):
            index.insert(g, value)
        return index

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
        ends, parts = third.cumsum(-1), []
        for g in range(third.shape[-1]):
            inside = self._inside(first, ends[..., g] - third[..., g], ends[..., g])
            if self._mode == "contracting":
                parts.append(dot.kernel(*self._only_inside(inside, first, second)))
                continue
            right = second
            for axis in self.rhs_group_dims:
                right = right.take(g, axis)
            product = dot.kernel(first, right)
            parts.append(np.where(self._rows(inside, product.ndim), product, product.dtype.type(0)))
        products = np.stack(parts)
        return (products if self._mode == "contracting" else products.sum(0)).astype(kind)

    def _only_inside(self, inside: Array, first: Array, second: Array) -> tuple[Array, Array]:
        """Return both operands with zeros where a mask of the left one is false."""
        ours = (*self.lhs_batch_dims, *self.lhs_contracting_dims)
        theirs = (*self.rhs_batch_dims, *self.rhs_contracting_dims)
        sizes = [1] * second.ndim
        for our, their in zip(ours, theirs, strict=True):
            sizes[their] = inside.shape[our]
        order = [our for _, our in sorted(zip(theirs, ours, strict=True))]
        others = [k for k in range(inside.ndim) if k not in ours]
        of_second = inside.transpose(*order, *others).reshape(sizes)
        zero, other = first.dtype.type(0), second.dtype.type(0)
        return np.where(inside, first, zero), np.where(of_second, second, other)

    def _rows(self, inside: Array, rank: int) -> Array:
        """Return a mask of the left operand as one of its product, of rank `rank`."""
        contracted = self.lhs_contracting_dims
        free = [k for k in range(inside.ndim) if k not in (*self.lhs_batch_dims, *contracted)]
        rows = inside.transpose(*self.lhs_batch_dims, *free, *contracted)
        sizes = rows.shape[: inside.ndim - len(contracted)]
        return rows.reshape(*sizes, *[1] * (rank - len(sizes)))

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

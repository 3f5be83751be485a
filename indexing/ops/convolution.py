"""Convolution: sums of products of a kernel and a window that slides over an array."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np

from hlo.ops.attributes import WindowDimension, integer, window, word_list
from hlo.ops.dim_labels import DimLabels, dim_labels
from hlo.ops.op import HOLDS, Fault, Shape, attribute, constraint, count_fault, declared, op
from hlo.ops.unify import PartialShape, array, dims_of, may_be, may_divide, with_rank
from hlo.shapes.shape import ELEMENT_TYPES, UNBOUNDED, AnyShape, dtype
from indexing.maps.indexing_map import Grade, IndexingMap, dims, ranges
from indexing.ops.base import Array, BinaryOp, OperandMaps
from indexing.ops.dot import sum_of_products
from indexing.ops.element import NO_DECLARED_WORK, ElementRule, ShardReduction, Work
from indexing.ops.inverse import inverses
from indexing.ops.padding_products import PaddingProducts, is_solved, padding_products
from indexing.ops.positions import list_by_position
from indexing.ops.reduce_window import window_fault
from indexing.ops.sliding import add_padding_products, cross_correlation
from indexing.ops.windows import (
    always_covers,
    count_covered,
    index_at,
    only_element,
    position_of,
)
from simplifier.constraints import Constraint
from simplifier.linear import Affine, Expr
from simplifier.unknown import Unknown

T = TypeVar("T")
A = TypeVar("A", int, Affine)
Side: TypeAlias = Literal["lhs", "rhs", "out"]


class ConvolutionSizes(NamedTuple):
    """Iteration sizes of a convolution.

    Attributes:
        batch: batch size of the result.
        inputs, outputs: number of input and output features of one group.
        spatial: spatial sizes of the input, in the order of the window.
    """

    batch: int
    inputs: int
    outputs: int
    spatial: list[int]


@op(
    "convolution",
    samples=[
        "f32[1,2,2,2] convolution(f32[1,5,3,2] p, f32[2,2,3,2] q), "
        "window={size=2x3 stride=2x1 pad=-1_0x1_0}, dim_labels=b01f_i01o->b01f",
        "f32[3,4,3] convolution(f32[2,3,3] p, f32[2,3,2] q), "
        "window={size=2 stride=3 pad=2_3 lhs_dilate=3 rhs_dilate=2}, dim_labels=fb0_0oi->b0f",
        "f32[2,2,4] convolution(f32[2,3,6] p, f32[2,3,4] q), "
        "window={size=2 rhs_reversal=1}, dim_labels=b0f_0io->b0f, feature_group_count=2",
        "f32[2,6,2] convolution(f32[6,1,3] p, f32[6,1,3] q), "
        "window={size=3 pad=1_0 rhs_reversal=1}, dim_labels=bf0_oi0->bf0, batch_group_count=3",
        "s32[2,3] convolution(s8[2,5] p, s8[5,3] q), dim_labels=bf_io->bf",
        "f32[1,1,7] convolution(f32[1,1,5] p, f32[1,1,1] q), "
        "window={size=1 pad=1_1}, dim_labels=bf0_oi0->bf0",
        "f32[2,1,3] convolution(f32[2,0,3] p, f32[1,0,1] q), "
        "window={size=1}, dim_labels=bf0_oi0->bf0",
        "f32[0,1,3] convolution(f32[0,2,3] p, f32[1,2,1] q), "
        "window={size=1}, dim_labels=bf0_oi0->bf0",
        "f32[1,1,2] convolution(f32[1,2,0] p, f32[1,2,2] q), "
        "window={size=2 pad=2_1}, dim_labels=bf0_oi0->bf0",
    ],
)
class Convolution(BinaryOp):
    """``out[b, x, o] = Σ_{s, i} left[b, y, i] · right[s, i, o]``, y below window element s at x.

    The window slides over the spatial dimensions: ``y = x·stride + s·window_dilation − low`` in the
    array dilated by base_dilation. With rhs_reversal, the kernel is read in reverse order.

    With feature groups, the output features of a group read only the input features of that group.
    With batch groups, they read the group's part of the batch: ``left[g·(B / groups) + b, ..]``.

    Padding, and the holes that base_dilation makes, are 0, and the kernel is multiplied by them:
    NaN over padding makes the result NaN.  Therefore the map to the kernel is exact over padding,
    too, where XLA:CPU computes so.  Where it omits the products (`padding_products`), exact maps
    exclude these elements, and the map without `exact` is that of a window without padding, with
    the grade "may" if there is padding.  So is the map with `exact` where it may omit them.

    XLA:TPU writes batch dimensions of a dot as dimensions of the window, with one element on the
    array at each position: a formula gives it, and other products are omitted.

    Source: XLA ``docs/operation_semantics.md``, "Conv (Convolution)" and "ConvWithGeneralPadding"
    (padding inserts zeros); StableHLO, ``convolution``: ``padded_lhs = pad(lhs, 0, ..)``.
    """

    reduces_shards: ClassVar[ShardReduction] = "partial"
    accumulates: ClassVar[bool] = True
    is_splittable: ClassVar[bool] = True
    counts_reads: ClassVar[bool] = True
    obstacle: ClassVar[str] = (
        "elements of the kernel over padding are included; `exact` leaves them out, "
        "where XLA:CPU omits their products"
    )
    map_options: ClassVar[tuple[str, ...]] = ("exact", "of_rule")
    shape: Shape | None = declared(default=None)
    window: tuple[WindowDimension, ...] = attribute(window, default=())
    dim_labels: DimLabels = attribute(dim_labels)
    feature_group_count: int = attribute(integer, default=1)
    batch_group_count: int = attribute(integer, default=1)
    operand_precision: tuple[str, ...] = attribute(word_list, default=(), in_value=False)

    def unify_operands(self, *operands: PartialShape) -> Sequence[PartialShape]:
        return [with_rank(operand, self.dim_labels.rank) for operand in operands]

    @constraint("C1", "dim_labels must name every dimension of both operands")
    def names_dimensions(self, left: Shape, right: Shape) -> Fault:
        if "?" in str(self.dim_labels):
            return Fault("`?` names no dimension of the convolution", "dim_labels")
        for number, shape in enumerate((left, right)):
            if shape.rank != self.dim_labels.rank:
                label = f"operand {number} is {shape.with_layout(None)}"
                return Fault(f"{self.dim_labels.rank} labels, but {label}", "dim_labels")
        return HOLDS

    @constraint("C2", "the window must have one entry for each spatial dimension")
    def has_window(self, left: Shape, right: Shape) -> Fault:
        return count_fault(self.window, self.dim_labels.rank - 2, "spatial dimension", "window")

    @constraint("C3", "sizes, strides and dilations of the window must be positive")
    def is_window(self, left: Shape, right: Shape) -> Fault:
        return window_fault(self.window)

    @constraint("C4", "the window must have the sizes of the kernel's spatial dimensions")
    def fits(self, left: Shape, right: Shape) -> Fault:
        for k, (w, n) in enumerate(zip(self.window, self.dim_labels.order("rhs")[2:], strict=True)):
            if not may_be(w.size, right.dims[n]):
                label = f"size {w.size}, kernel dimension {n} has size {right.dims[n]}"
                return Fault(f"window dimension {k} has {label}", "window")
        return HOLDS

    @constraint("C5", "group counts must be positive, and at most one of them above 1")
    def counts_groups(self, left: Shape, right: Shape) -> Fault:
        for name in ("feature_group_count", "batch_group_count"):
            if getattr(self, name) < 1:
                return Fault(f"{name} is {getattr(self, name)}", name)
        if self.feature_group_count > 1 and self.batch_group_count > 1:
            return Fault(f"feature_group_count is {self.feature_group_count}", "batch_group_count")
        return HOLDS

    @constraint(
        "C6", "input features must be feature_group_count times the kernel's input features"
    )
    def takes_features(self, left: Shape, right: Shape) -> Fault:
        _, features, *_ = self._in_label_order("lhs", left.dims)
        per_group, *_ = self._in_label_order("rhs", right.dims)
        if UNBOUNDED in (features, per_group) or features == per_group * self.feature_group_count:
            return HOLDS
        groups = f"{self.feature_group_count} x {per_group}"
        label = f"the input feature dimension has size {features}, expected {groups}"
        return Fault(label, "feature_group_count")

    @constraint("C7", "group counts must divide the output features, batch groups also the batch")
    def divides(self, left: Shape, right: Shape) -> Fault:
        batch, *_ = self._in_label_order("lhs", left.dims)
        _, features, *_ = self._in_label_order("rhs", right.dims)
        if not may_divide(self.batch_group_count, batch):
            label = f"{self.batch_group_count} does not divide the batch size {batch}"
            return Fault(label, "batch_group_count")
        for name in ("feature_group_count", "batch_group_count"):
            if not may_divide(getattr(self, name), features):
                label = f"{getattr(self, name)} does not divide the output feature size {features}"
                return Fault(label, name)
        return HOLDS

    def infer_shape(self, left: Shape, right: Shape) -> Shape:
        batch, _, *spatial = self._in_label_order("lhs", dims_of(left))
        _, features, *_ = self._in_label_order("rhs", dims_of(right))
        counts = [n.map(w.positions) for w, n in zip(self.window, spatial, strict=True)]
        batch = batch.map(lambda size: size // self.batch_group_count)
        widest = max((left, right), key=lambda s: ELEMENT_TYPES[s.element_type].bits)
        sizes = self._in_dimension_order("out", [batch, features, *counts])
        return array((self.shape or widest).element_type, sizes)

    def output_to_input(
        self, out: Shape, left: Shape, right: Shape, exact: bool = False, of_rule: bool = False
    ) -> tuple[IndexingMap, IndexingMap]:
        """The maps; with `of_rule`, those of the products with elements of the left operand."""
        types = [dtype(each.element_type) for each in (out, left, right)]
        products = "omitted" if of_rule else self.padding_products(left.dims, right.dims, types)
        exact = exact and products == "omitted"
        size, d = self._sizes(left.dims, right.dims), dims(out)
        b, o, *x = self._in_label_order("out", d)
        each = list(zip(self.window, x, size.spatial, strict=True))
        solved = self._window_elements(each, products, always=not exact)
        unsolved = [w.size for w, s in zip(self.window, solved, strict=True) if s is None]
        *free, i = ranges(*unsolved, size.inputs)
        others = iter(free)
        s = [next(others).as_expr() if only is None else only for only in solved]
        y, inside, needed = [], [], []
        for (w, position, n), only, element in zip(each, solved, s, strict=True):
            index, constraints = index_at(w, position, element, n)
            y.append(index)
            if only is not None:
                constraints.append(Constraint(only, 0, w.size - 1))
            inside += constraints
            if exact or only is not None:
                needed += constraints
        group = o // size.outputs
        from_left = self._in_dimension_order("lhs", [*self._in_group(group, b, i, size), *y])
        from_right = self._in_dimension_order("rhs", [i, o, *self._reverse_index(s)])
        is_exact = exact or products == "multiplied" or self._covers_all(size.spatial, solved)
        grade: Grade = "exact" if is_exact else "may"
        return (
            IndexingMap.of(d, from_left, ranges=[*free, i], constraints=inside),
            IndexingMap.of(d, from_right, ranges=[*free, i], constraints=needed, grade=grade),
        )

    @staticmethod
    def _window_elements(
        dimensions: Iterable[tuple[WindowDimension, Affine, int]],
        products: PaddingProducts,
        *,
        always: bool,
    ) -> list[Expr | None]:
        """Return the formulas that replace window elements, as `only_element`."""
        return [
            only_element(w, position, size, always=always) if is_solved(w, size, products) else None
            for w, position, size in dimensions
        ]

    def _in_group(
        self, group: Affine, batch: Affine, feature: Affine, size: ConvolutionSizes
    ) -> list[Affine]:
        """Return the batch and the feature of the left operand that a group reads."""
        return [
            batch + group * size.batch if self.batch_group_count > 1 else batch,
            feature + group * size.inputs if self.feature_group_count > 1 else feature,
        ]

    def _covers_all(self, sizes: Sequence[int], solved: Sequence[Expr | None]) -> bool:
        """Return True if the elements of windows that have no formula are never over padding."""
        dimensions = zip(self.window, sizes, solved, strict=True)
        return all(only is not None or always_covers(w, n) for w, n, only in dimensions)

    def input_to_output(
        self, out: Shape, left: Shape, right: Shape, exact: bool = False, of_rule: bool = False
    ) -> tuple[OperandMaps, OperandMaps]:
        """The inverse maps; a closed form for the left operand, which is simpler with groups."""
        from_left, from_right = self.output_to_input(out, left, right, exact, of_rule)
        if len(from_left.ranges) <= len(self.window):  # window elements are solved
            return inverses(from_left, left), inverses(from_right, right)
        of_left, _ = self.met_by_input(out, left, right)
        return of_left, inverses(from_right, right)

    def met_by_input(
        self, out: Shape, left: Shape, right: Shape
    ) -> tuple[IndexingMap, IndexingMap]:
        """For an element of the left operand: the results that read it, and with which taps."""
        size, d = self._sizes(left.dims, right.dims), dims(left)
        _, _, *counts = self._in_label_order("out", out.dims)
        b, i, *y = self._in_label_order("lhs", d)
        *s, o = ranges(*[w.size for w in self.window], size.outputs)
        positions = [position_of(*each) for each in zip(self.window, y, s, counts, strict=True)]
        inside = [c for _, constraints in positions for c in constraints]
        group = i // max(1, size.inputs) if self.feature_group_count > 1 else b // size.batch
        feature = o + group * size.outputs
        results = self._in_dimension_order(
            "out", [b % size.batch, feature, *[x for x, _ in positions]]
        )
        taps = [i % max(1, size.inputs), feature, *self._reverse_index(s)]
        return (
            IndexingMap.of(d, results, ranges=[*s, o], constraints=inside),
            IndexingMap.of(
                d, self._in_dimension_order("rhs", taps), ranges=[*s, o], constraints=inside
            ),
        )

    def met_by_tap(self, out: Shape, left: Shape, right: Shape) -> tuple[IndexingMap, IndexingMap]:
        """For an element of the kernel: those of the left operand that it meets, for which results.

        Both maps have the same domain; there is one point for each product with the element.
        """
        size, d = self._sizes(left.dims, right.dims), dims(right)
        _, _, *counts = self._in_label_order("out", out.dims)
        i, o, *s = self._in_label_order("rhs", d)
        b, *x = ranges(size.batch, *counts)
        taps = self._reverse_index(s)
        indices = [index_at(*each) for each in zip(self.window, x, taps, size.spatial, strict=True)]
        inside = [c for _, constraints in indices for c in constraints]
        group = o // max(1, size.outputs)
        batch = b + group * size.batch if self.batch_group_count > 1 else b
        feature = i + group * size.inputs if self.feature_group_count > 1 else i
        read = self._in_dimension_order("lhs", [batch, feature, *[y for y, _ in indices]])
        results = self._in_dimension_order("out", [b, o, *x])
        return (
            IndexingMap.of(d, read, ranges=[b, *x], constraints=inside),
            IndexingMap.of(d, results, ranges=[b, *x], constraints=inside),
        )

    def element(self, out: Shape, *operands: Shape) -> ElementRule:
        return sum_of_products(out, *operands)

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        left, right = operands
        if not (isinstance(left, Shape) and isinstance(right, Shape) and isinstance(out, Shape)):
            return NO_DECLARED_WORK
        size = self._sizes(left.dims, right.dims)
        covered = [count_covered(w, n) for w, n in zip(self.window, size.spatial, strict=True)]
        batch, features, *_ = self._in_label_order("out", out.dims)
        return Work(flops=2 * batch * features * size.inputs * math.prod(covered))

    def kernel(self, left: Array, right: Array) -> Array:
        kind = dtype(self.shape.element_type) if self.shape else np.result_type(left, right)
        wide = np.result_type(kind, np.float32) if left.dtype.kind not in "biucO" else kind
        size = self._sizes(left.shape, right.shape)
        counts = [w.positions(n) for w, n in zip(self.window, size.spatial, strict=True)]
        array = left.transpose(self.dim_labels.order("lhs")).astype(wide, copy=False)
        taps = right.transpose(self.dim_labels.order("rhs")).astype(wide, copy=False)
        batches, groups = self.batch_group_count, self._groups
        features = self.feature_group_count * size.inputs
        array = array.reshape(batches, size.batch, features, *size.spatial)
        array = array.swapaxes(0, 1).reshape(size.batch, groups, size.inputs, *size.spatial)
        array = np.moveaxis(array, (1, 2), (0, -1))  # group, batch, .., input
        taps = taps.reshape(size.inputs, groups, size.outputs, *taps.shape[2:])
        taps = np.moveaxis(taps, (1, 0, 2), (0, -2, -1))  # group, .., input, output
        taps = np.flip(taps, tuple([k for k, w in enumerate(self.window, 1) if w.is_reversed]))
        out = cross_correlation(array, taps, self.window)
        types = [kind, left.dtype, right.dtype]
        if self.padding_products(left.shape, right.shape, types) == "multiplied":
            out = add_padding_products(out, taps, self.window, size.spatial)
        out = out.astype(kind, copy=False)
        out = np.moveaxis(out, (1, 0, -1), (0, 1, 2))  # batch, group, output, ..
        out = out.reshape(size.batch, groups * size.outputs, *counts)
        return np.moveaxis(out, range(out.ndim), self.dim_labels.order("out"))

    def padding_products(
        self, left: Sequence[int], right: Sequence[int], types: Iterable[np.dtype[Any]]
    ) -> PaddingProducts:
        """`padding_products` for the sizes of the operands, and types that include the result's."""
        size = self._sizes(left, right)
        positions = math.prod(map(WindowDimension.positions, self.window, size.spatial))
        result = size.batch * self._groups * size.outputs * positions
        counts, groups = (math.prod(left), math.prod(right), result), self.feature_group_count
        return padding_products(
            self.window, size.spatial, counts, types, groups, self.batch_group_count
        )

    @property
    def _groups(self) -> int:
        return self.feature_group_count * self.batch_group_count

    def _sizes(self, left: Sequence[int], right: Sequence[int]) -> ConvolutionSizes:
        batch, _, *spatial = self._in_label_order("lhs", left)
        inputs, features, *_ = self._in_label_order("rhs", right)
        return ConvolutionSizes(
            batch // self.batch_group_count, inputs, features // self._groups, spatial
        )

    def _reverse_index(self, s: Iterable[A]) -> list[A]:
        """The kernel index of a window index, or the reverse."""
        pairs = zip(self.window, s, strict=True)
        return [w.size - 1 - index if w.is_reversed else index for w, index in pairs]

    def _in_label_order(self, side: Side, values: Sequence[T]) -> list[T]:
        """Reorder values, one for each dimension of an array, to the order of `DimLabels.order`."""
        return [values[k] for k in self.dim_labels.order(side)]

    def _in_dimension_order(self, side: Side, values: Iterable[T]) -> list[T]:
        """The inverse of `_in_label_order`."""
        return list_by_position(
            self.dim_labels.rank, zip(self.dim_labels.order(side), values, strict=True)
        )

"""Dynamic-slice and dynamic-update-slice: windows with start indices that are computed at runtime.

A start index is clamped to ``[0, size − window size]``, so that the window is always inside. The
clamped start index of each dimension is a runtime variable. HLO before 2019 has one vector of start
indices instead of a scalar for each dimension.

Source: XLA ``docs/operation_semantics.md``, "DynamicSlice" and "DynamicUpdateSlice".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from hlo.ops.attributes import int_list
from hlo.ops.op import HOLDS, Fault, Shape, attribute, constraint, count_fault, op
from hlo.ops.unify import (
    PartialShape,
    Unranked,
    may_be_at_most,
    may_be_same_dims,
    same_but_precision,
    same_rank,
    with_rank,
)
from hlo.shapes.shape import ELEMENT_TYPES
from indexing.maps.indexing_map import Grade, IndexingMap, dims
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.base import Array, Maps, VariadicOp, every_element
from indexing.ops.element import CopyRule, ElementRule, ShardReduction
from indexing.ops.regions import WindowConstraints, complement_maps, window
from simplifier.linear import Affine

Dims = tuple[int, ...]

START_IS_CLAMPED: Final = "a start index is clamped to 0 in a dimension that the window fills"
_REPLACED: Final = "replaced elements are included; `exact` leaves them out, as do given starts"


def _starts_fault(starts: Sequence[Shape], rank: int, first: int) -> Fault:
    """The fault of start indices that are not one integer scalar for each dimension.

    Operand `first` is the first start index.
    """
    count = f"number of start indices: expected {rank}"
    if _is_vector(starts):
        if may_be_same_dims(starts[0].dims, (rank,)):
            return HOLDS
        return Fault(f"{count}, got {starts[0].dims[0]}", first)
    if len(starts) != rank:
        return Fault(f"{count}, got {len(starts)}")
    for number, start in enumerate(starts, first):
        if start.rank or ELEMENT_TYPES[start.element_type].kind not in ("integral", "unsigned"):
            return Fault(f"operand {number} must be an integer scalar, not {start}", number)
    return HOLDS


def _is_vector(starts: Sequence[Shape]) -> bool:
    """Return True if the start indices are one vector, as in HLO before 2019."""
    return len(starts) == 1 and starts[0].rank == 1


def _start_variables(
    sizes: Dims, window: Dims, starts: Sequence[Shape], first: int
) -> list[RuntimeVariable]:
    """The start of the window in each dimension; operand `first` is the first start index."""
    vector = _is_vector(starts)
    return [
        RuntimeVariable.start(k, size, width, first if vector else first + k, [k] if vector else [])
        for k, (size, width) in enumerate(zip(sizes, window, strict=True))
    ]


def _grade(sizes: Dims, window: Dims) -> Grade:
    """Return "may" if the window fills a dimension: every start index is clamped to 0 there."""
    return "exact" if all(n > w for n, w in zip(sizes, window, strict=True)) else "may"


def _start_reads(out: Shape, sizes: Dims, window: Dims, starts: Sequence[Shape]) -> Maps:
    """The maps from the result to the start indices: every element needs all of them."""
    if _is_vector(starts):
        return (every_element(out, starts[0]).with_grade(_grade(sizes, window)),)
    none = IndexingMap.over(out, lambda i: [])
    return tuple([none.with_grade(_grade((n,), (w,))) for n, w in zip(sizes, window, strict=True)])


def _clamp_starts(sizes: Dims, window: Dims, starts: Sequence[Array]) -> list[int]:
    """The clamped start index of each dimension."""
    values = [int(v) for v in (starts[0] if starts and starts[0].ndim else starts)]
    return [min(max(v, 0), n - w) for v, n, w in zip(values, sizes, window, strict=True)]


@op(
    "dynamic-slice",
    samples=[
        "f32[2,3] dynamic-slice(f32[5,7] p, s32[] i, s32[] j), dynamic_slice_sizes={2,3}",
        "f32[1,2,3] dynamic-slice(f32[4,2,5] p, s32[] i, s32[] j, u8[] k), "
        "dynamic_slice_sizes={1,2,3}",
        "f32[2,3] dynamic-slice(f32[5,7] p, s32[2] i), dynamic_slice_sizes={2,3}",
        "f32[] dynamic-slice(f32[] p), dynamic_slice_sizes={}",
        "f32[2,0] dynamic-slice(f32[5,3] p, s32[] i, s32[] j), dynamic_slice_sizes={2,0}",
    ],
)
class DynamicSlice(VariadicOp):
    """``out[i] = operand[start + i]``, with start clamped so that the window is inside."""

    reduces_shards: ClassVar[ShardReduction] = "masked"
    is_splittable: ClassVar[bool] = True
    counts_reads: ClassVar[bool] = True
    obstacle: ClassVar[str] = START_IS_CLAMPED
    rule: ClassVar[ElementRule] = CopyRule()
    dynamic_slice_sizes: tuple[int, ...] = attribute(int_list)

    def unify_operands(self, *operands: PartialShape) -> Sequence[PartialShape]:
        return [with_rank(operands[0], len(self.dynamic_slice_sizes)), *operands[1:]]

    def infer_unranked(self, *operands: PartialShape) -> PartialShape:
        base = operands[0]
        return self.infer_shape(base) if isinstance(base, Shape) else Unranked()

    @constraint("C1", "dynamic_slice_sizes must have one entry for each dimension of the operand")
    def fits(self, *operands: Shape) -> Fault:
        sizes = self.dynamic_slice_sizes
        return count_fault(sizes, operands[0].rank, "operand dimension", "dynamic_slice_sizes")

    @constraint("C2", "the window must not be larger than the operand in any dimension")
    def stays_inside(self, *operands: Shape) -> Fault:
        for k, (w, n) in enumerate(zip(self.dynamic_slice_sizes, operands[0].dims, strict=True)):
            if not (w >= 0 and may_be_at_most(w, n)):
                label = f"size {w} does not fit into dimension {k} of size {n}"
                return Fault(label, "dynamic_slice_sizes")
        return HOLDS

    @constraint("C3", "there must be one integer start index for each dimension of the operand")
    def has_starts(self, *operands: Shape) -> Fault:
        return _starts_fault(operands[1:], operands[0].rank, 1)

    def infer_shape(self, *operands: Shape) -> Shape:
        return operands[0].with_dims(self.dynamic_slice_sizes)

    def output_to_input(self, out: Shape, *operands: Shape) -> Maps:
        base, starts = operands[0], operands[1:]
        i, rts = dims(out), _start_variables(base.dims, out.dims, starts, 1)
        index = [d + rt.expr for d, rt in zip(i, rts, strict=True)]
        reads = IndexingMap.of(i, index, runtime=rts)
        return reads, *_start_reads(out, base.dims, out.dims, starts)

    def kernel(self, *operands: Array) -> Array:
        base, sizes = operands[0], self.dynamic_slice_sizes
        first = _clamp_starts(base.shape, sizes, operands[1:])
        part = base[tuple([slice(f, f + w) for f, w in zip(first, sizes, strict=True)])]
        return part.copy()


@op(
    "dynamic-update-slice",
    samples=[
        "f32[5,7] dynamic-update-slice(f32[5,7] p, f32[2,3] u, s32[] i, s32[] j)",
        "f32[3,4] dynamic-update-slice(f32[3,4] p, f32[1,4] u, s64[] i, s64[] j)",
        "f32[5,7] dynamic-update-slice(f32[5,7] p, f32[2,3] u, s32[2] i)",
        "f32[3] dynamic-update-slice(f32[3] p, f32[3] u, s32[] i)",
        "f32[] dynamic-update-slice(f32[] p, f32[] u)",
        "f32[5,3] dynamic-update-slice(f32[5,3] p, f32[2,0] u, s32[] i, s32[] j)",
    ],
)
class DynamicUpdateSlice(VariadicOp):
    """``out[i]`` is ``update[i − start]`` inside the window at start, otherwise ``operand[i]``.

    The window has the sizes of the update.
    """

    is_splittable: ClassVar[bool] = True
    rule: ClassVar[ElementRule] = CopyRule((0, 1))
    map_options: ClassVar[tuple[str, ...]] = ("exact",)
    min_operands: ClassVar[int] = 2

    def unify_operands(self, *operands: PartialShape) -> Sequence[PartialShape]:
        return [*same_rank(*operands[:2]), *operands[2:]]

    def infer_unranked(self, *operands: PartialShape) -> PartialShape:
        return operands[0]

    @constraint("C1", "the update must have the operand's rank and element type, of any precision")
    def same_rank(self, *operands: Shape) -> Fault:
        base, update = operands[:2]
        types = base.element_type, update.element_type
        if base.rank == update.rank and same_but_precision(*types):
            return HOLDS
        shapes = f"the update is {update.with_layout(None)}, the operand {base.with_layout(None)}"
        return Fault(shapes, 1)

    @constraint("C2", "the update must not be larger than the operand in any dimension")
    def stays_inside(self, *operands: Shape) -> Fault:
        for k, (w, n) in enumerate(zip(operands[1].dims, operands[0].dims, strict=True)):
            if not may_be_at_most(w, n):
                return Fault(f"size {w} does not fit into dimension {k} of size {n}", 1)
        return HOLDS

    @constraint("C3", "there must be one integer start index for each dimension of the operand")
    def has_starts(self, *operands: Shape) -> Fault:
        return _starts_fault(operands[2:], operands[0].rank, 2)

    def infer_shape(self, *operands: Shape) -> Shape:
        return operands[0].with_layout(None)

    def why_may(self, operand: int) -> str:
        return START_IS_CLAMPED if operand else _REPLACED

    def output_to_input(
        self, out: Shape, *operands: Shape, exact: bool = False
    ) -> tuple[Maps | IndexingMap, ...]:
        update, starts = operands[1], operands[2:]
        i, rts = dims(out), _start_variables(out.dims, update.dims, starts, 2)
        offsets = [d - rt.expr for d, rt in zip(i, rts, strict=True)]
        windows = _windows(offsets, out.dims, update.dims)
        inside = [c for w in windows for c in w.inside]
        return (
            complement_maps(windows, exact, i, i, runtime=rts),
            IndexingMap.of(i, offsets, runtime=rts, constraints=inside),
            *(
                _start_reads(out, out.dims, update.dims, starts)
                if update.size
                else _no_maps(starts)
            ),
        )

    def kernel(self, *operands: Array) -> Array:
        out, update = operands[0].copy(), operands[1]
        first = _clamp_starts(out.shape, update.shape, operands[2:])
        out[tuple([slice(f, f + w) for f, w in zip(first, update.shape, strict=True)])] = update
        return out


def _no_maps(starts: Sequence[Shape]) -> tuple[Maps, ...]:
    """No start index is read for an empty window."""
    return ((),) * len(starts)


def _windows(offsets: Sequence[Affine], sizes: Dims, window_sizes: Dims) -> list[WindowConstraints]:
    """For each dimension, the constraints on the offset from the start of the window."""
    return [
        window(offset, w, w - n, n - 1)
        for offset, n, w in zip(offsets, sizes, window_sizes, strict=True)
    ]

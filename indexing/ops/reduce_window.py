"""Reduce-window: reduce the elements under each position of a sliding window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from hlo.ops.attributes import WindowDimension, computation, window
from hlo.ops.op import (
    HOLDS,
    Fault,
    Shape,
    attribute,
    constraint,
    count_fault,
    op,
)
from hlo.ops.unify import Dim, PartialShape, dims_of
from hlo.shapes.shape import AnyShape, TupleShape
from indexing.maps.indexing_map import IndexingMap, dims, ranges
from indexing.ops.base import Array
from indexing.ops.element import NO_DECLARED_WORK, ElementRule, ReductionRule, Work, bounded_count
from indexing.ops.reduce import PairedReduction, has_elements, results, unify_pairs
from indexing.ops.reductions import ufunc_of
from indexing.ops.sliding import overlaps, window_totals
from indexing.ops.windows import index_at, window_applications, window_map
from simplifier.unknown import Unknown


def window_fault(dimensions: tuple[WindowDimension, ...]) -> Fault:
    """Fault of a window with a size, stride or dilation below 1."""
    for k, w in enumerate(dimensions):
        for name, value in (
            ("size", w.size),
            ("stride", w.stride),
            ("lhs_dilate", w.base_dilation),
            ("rhs_dilate", w.window_dilation),
        ):
            if value < 1:
                return Fault(f"`{name}` of dimension {k} is {value}", "window")
    return HOLDS


def positions(dimensions: tuple[WindowDimension, ...], shape: Shape) -> list[Dim]:
    """Number of window positions in each dimension."""
    return [n.map(w.positions) for w, n in zip(dimensions, dims_of(shape), strict=True)]


@op(
    "reduce-window",
    samples=[
        "f32[6,3] reduce-window(f32[6,7] p, f32[] z), window={size=3x2 stride=2x3 pad=3_2x2_0 "
        "lhs_dilate=2x1 rhs_dilate=2x1}, to_apply=add",
        "f32[5] reduce-window(f32[8] p, f32[] z), window={size=2 pad=-1_-1}, to_apply=maximum",
        "f32[3,5] reduce-window(f32[5,5] p, f32[] z), "
        "window={size=3x2 stride=2x1 pad=1_1x0_1}, to_apply=add",
        "f32[3,5] reduce-window(f32[2,3] p, f32[] z), window={size=1x1 lhs_dilate=2x2}, "
        "to_apply=add",
        "f32[7] reduce-window(f32[5] p, f32[] z), window={size=1 pad=1_1}, to_apply=add",
        "(f32[1,2], s32[1,2]) reduce-window(f32[2,3] p, s32[2,3] q, f32[] y, s32[] z), "
        "window={size=2x2}, to_apply=add_both",
        "f32[3] reduce-window(f32[0] p, f32[] z), window={size=2 pad=2_2}, to_apply=add",
        "f32[] reduce-window(f32[] p, f32[] z), window={}, to_apply=add",
    ],
)
class ReduceWindow(PairedReduction):
    """``out[i] = reduce(to_apply, init, operand[j])`` over the elements j under window position i.

    Window element s is at index ``i·stride + s·window_dilation − low`` of the operand dilated by
    base_dilation. Holes of the dilation and padding are skipped.

    Source: XLA ``docs/operation_semantics.md``, "ReduceWindow".
    """

    is_splittable: ClassVar[bool] = True
    window: tuple[WindowDimension, ...] = attribute(window, default=())
    to_apply: str = attribute(computation)

    def unify_operands(self, *operands: PartialShape) -> Sequence[PartialShape]:
        return unify_pairs(operands, len(self.window))

    @constraint("C2", "window must have one entry for each dimension of the arrays")
    def fits(self, *operands: Shape) -> Fault:
        return count_fault(self.window, operands[0].rank, "operand dimension", "window")

    @constraint("C3", "window sizes, strides and dilations must be positive")
    def is_window(self, *operands: Shape) -> Fault:
        return window_fault(self.window)

    def infer_shape(self, *operands: Shape) -> Shape | TupleShape:
        return results(positions(self.window, operands[0]), operands)

    def output_to_input(self, out: Shape, *operands: Shape) -> list[IndexingMap]:
        i, s = dims(out), ranges(*[w.size for w in self.window])
        indices = map(index_at, self.window, i, s, operands[0].dims)
        half = len(operands) // 2
        return [window_map(i, s, indices)] * half + [IndexingMap.of(i, [])] * half

    def element(self, out: Shape, *operands: Shape) -> ElementRule:
        half = len(operands) // 2
        inits, values = tuple(range(half, 2 * half)), tuple(range(half))
        always_steps = has_elements(operands) and all(
            map(_always_overlaps, self.window, operands[0].dims)
        )
        return ReductionRule(
            inits, values, uses_computation=True, is_windowed=True, always_steps=always_steps
        )

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        return self._work(operands, applied, repeats=False)

    def loop_work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        return self._work(operands, applied, repeats=True)

    def _work(
        self, operands: tuple[AnyShape, ...], applied: tuple[Work, ...], repeats: bool
    ) -> Work | Unknown:
        array = operands[0]
        if not isinstance(array, Shape):
            return NO_DECLARED_WORK
        return applied[0].times(window_applications(self.window, array.dims, repeats))

    def applications(self, out: AnyShape, operands: tuple[AnyShape, ...]) -> int:
        return bounded_count(out)

    def kernel(self, *operands: Array, to_apply: Callable[..., Any]) -> Any:
        half = len(operands) // 2
        arrays, inits = operands[:half], operands[half:]
        sizes = [w.positions(n) for w, n in zip(self.window, arrays[0].shape, strict=True)]
        ufunc = ufunc_of(to_apply)
        if ufunc is not None and half == 1 and arrays[0].dtype.kind != "c":
            return window_totals(ufunc, inits[0], arrays[0], self.window)
        out = [np.full(sizes, init, init.dtype) for init in inits]
        for _, i, j in overlaps(self.window, arrays[0].shape):
            results = to_apply(*[array[i] for array in out], *[array[j] for array in arrays])
            totals = results if isinstance(results, tuple) else (results,)
            for array, total in zip(out, totals, strict=True):
                array[i] = total
        return tuple(out) if half > 1 else out[0]


def _always_overlaps(w: WindowDimension, size: int) -> bool:
    """Return True if each position of a window is known to overlap an element of the operand.

    >>> _always_overlaps(WindowDimension(size=3, low=2, high=2), 4)
    True
    >>> _always_overlaps(WindowDimension(size=3, low=3, high=2), 4)
    False
    """
    if w.base_dilation > 1 or (w.window_dilation > 1 and (w.low > 0 or w.high > 0)):
        return False
    last = (w.positions(size) - 1) * w.stride - w.low
    return w.size > w.low and last < size

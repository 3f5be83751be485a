"""Reduce-window: a window slides over the operands, and each position is folded."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, ClassVar

import numpy as np

from hlo.attributes import WindowDimension, computation, dilated, window
from hlo.op import HOLDS, Fault, Shape, Signature, attribute, constraint, count_fault, op, signature
from hlo.shape import TupleShape
from indexing.map import IndexingMap, dims, ranges
from indexing.op import Array, VariadicOp, every_element
from indexing.ops.reduce import pairs_fault, results
from simplifier.constraints import Constraint
from simplifier.linear import Expr


def window_fault(dimensions: tuple[WindowDimension, ...]) -> Fault:
    """The fault of a window with a size, stride or dilation below 1."""
    for k, w in enumerate(dimensions):
        for name, value in (
            ("size", w.size),
            ("stride", w.stride),
            ("lhs_dilate", w.base_dilation),
            ("rhs_dilate", w.window_dilation),
        ):
            if value < 1:
                return Fault(f"{name} of dimension {k} is {value}", "window")
    return HOLDS


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
class ReduceWindow(VariadicOp):
    """``out[i] = fold(to_apply, init, operand[j])`` over the elements j under window position i.

    Window element s lies at position ``i·stride + s·window_dilation − low`` of the operand dilated
    by base_dilation; positions between and beside the operand's elements hold nothing.
    """

    least: ClassVar[int] = 2
    window: tuple[WindowDimension, ...] = attribute(window, default=())
    to_apply: str = attribute(computation)

    @signature("to_apply")
    def folds(self, *operands: Shape) -> Signature:
        return Signature.folding(operands[len(operands) // 2 :])

    @constraint("C1", "the operands are arrays of the same sizes, then an init scalar for each")
    def has_inits(self, *operands: Shape) -> Fault:
        return pairs_fault(operands)

    @constraint("C2", "the window has one entry for each dimension of the arrays")
    def fits(self, *operands: Shape) -> Fault:
        return count_fault(self.window, operands[0].rank, "operand dimension", "window")

    @constraint("C3", "sizes, strides and dilations of the window are positive")
    def is_window(self, *operands: Shape) -> Fault:
        return window_fault(self.window)

    def infer_shape(self, *operands: Shape) -> Shape | TupleShape:
        sizes = [w.positions(n) for w, n in zip(self.window, operands[0].dims, strict=True)]
        return results(sizes, operands)

    def output_to_input(self, out: Shape, *operands: Shape) -> list[IndexingMap]:
        array = operands[0]
        i, s = dims(out), ranges(*[w.size for w in self.window])
        positions = [
            i[k] * w.stride + s[k] * w.window_dilation - w.low for k, w in enumerate(self.window)
        ]
        values = IndexingMap.of(
            i,
            [at // w.base_dilation for at, w in zip(positions, self.window, strict=True)],
            ranges=s,
            constraints=[
                c
                for at, w, n in zip(positions, self.window, array.dims, strict=True)
                for c in _steps(at, dilated(n, w.base_dilation), w.base_dilation)
            ],
        )
        half = len(operands) // 2
        return [values] * half + [IndexingMap.of(i, [])] * half

    def input_to_output(self, out: Shape, *operands: Shape) -> list[IndexingMap]:
        array = operands[0]
        j, s = dims(array), ranges(*[w.size for w in self.window])
        starts = [
            j[k] * w.base_dilation + w.low - s[k] * w.window_dilation
            for k, w in enumerate(self.window)
        ]
        values = IndexingMap.of(
            j,
            [at // w.stride for at, w in zip(starts, self.window, strict=True)],
            ranges=s,
            constraints=[
                c
                for at, w, n in zip(starts, self.window, out.dims, strict=True)
                for c in _steps(at, dilated(n, w.stride), w.stride)
            ],
        )
        half = len(operands) // 2
        return [values] * half + [every_element(operands[-1], out)] * half

    def kernel(self, *operands: Array, to_apply: Callable[..., Any]) -> Any:
        half = len(operands) // 2
        arrays, inits = operands[:half], operands[half:]
        sizes = [w.positions(n) for w, n in zip(self.window, arrays[0].shape, strict=True)]
        out = [np.full(sizes, init, init.dtype) for init in inits]
        for i in np.ndindex(*sizes):
            totals = [array[i] for array in out]
            for s in product(*[range(w.size) for w in self.window]):
                j = self._element(i, s, arrays[0].shape)
                if j is not None:
                    found = to_apply(*totals, *[array[j] for array in arrays])
                    totals = list(found) if isinstance(found, tuple) else [found]
            for array, total in zip(out, totals, strict=True):
                array[i] = total
        return tuple(out) if half > 1 else out[0]

    def _element(
        self, i: tuple[int, ...], s: tuple[int, ...], sizes: tuple[int, ...]
    ) -> tuple[int, ...] | None:
        """The element under window element s at position i; None between and beside elements."""
        found = []
        for w, position, element, size in zip(self.window, i, s, sizes, strict=True):
            at = position * w.stride + element * w.window_dilation - w.low
            if at % w.base_dilation or not 0 <= at // w.base_dilation < size:
                return None
            found.append(at // w.base_dilation)
        return tuple(found)


def _steps(at: Expr, extent: int, step: int) -> list[Constraint]:
    """``at`` is one of ``0, step, 2·step, ..`` below `extent`."""
    within = [Constraint(at, 0, extent - 1)]
    return within if step == 1 else [*within, Constraint(at % step, 0, 0)]

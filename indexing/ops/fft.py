"""Fourier transforms: each result depends on all elements along the transformed dimensions."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from hlo.ops.attributes import enum, int_list
from hlo.ops.op import HOLDS, Fault, Shape, attribute, constraint, op
from hlo.ops.unify import Dim, array, dims_of, may_be_same_dims
from hlo.shapes.shape import AnyShape
from indexing.maps.indexing_map import IndexingMap, dims, ranges
from indexing.ops.base import Array, UnaryOp
from indexing.ops.element import NOT_A_REDUCTION, ElementRule, Work, element_count
from simplifier.unknown import Unknown

_COMPLEX = {"f32": "c64", "f64": "c128"}
_REAL = {"c64": "f32", "c128": "f64"}


@op(
    "fft",
    samples=[
        "c64[2,3] fft(c64[2,3] p), fft_type=FFT, fft_length={3}",
        "c128[2,3,2] fft(c128[2,3,2] p), fft_type=IFFT, fft_length={3,2}",
        "c64[3,2,3] fft(f32[3,2,5] p), fft_type=RFFT, fft_length={2,5}",
        "c64[3] fft(f32[4] p), fft_type=RFFT, fft_length={4}",
        "f32[2,3,5] fft(c64[2,3,3] p), fft_type=IRFFT, fft_length={3,5}",
        "f64[2,4] fft(c128[2,3] p), fft_type=IRFFT, fft_length={4}",
        "c64[2,1] fft(f32[2,1] p), fft_type=RFFT, fft_length={1}",
        "c64[0,3] fft(c64[0,3] p), fft_type=FFT, fft_length={3}",
    ],
)
class Fft(UnaryOp):
    """The discrete Fourier transform, or its inverse, along the last dimensions.

    `fft_length` has one entry for each transformed dimension. The transform of real numbers (RFFT)
    is symmetric, so RFFT returns only ``n // 2 + 1`` elements of the last dimension. IRFFT takes
    these. The last entry of `fft_length` is n for both.

    Source: XLA ``docs/operation_semantics.md``, "Fft".
    """

    linear_operands: ClassVar[tuple[int, ...]] = (0,)
    accumulates: ClassVar[bool] = True
    is_splittable: ClassVar[bool] = True
    computes_slices: ClassVar[bool] = True
    rule: ClassVar[ElementRule] = NOT_A_REDUCTION
    fft_type: str = attribute(enum("FFT", "IFFT", "RFFT", "IRFFT"))
    fft_length: tuple[int, ...] = attribute(int_list)

    @constraint("C1", "fft_length must have 1 to 3 entries, at most the operand's rank")
    def counts(self, operand: Shape) -> Fault:
        count = len(self.fft_length)
        if 1 <= count <= 3 and count <= operand.rank:
            return HOLDS
        return Fault(
            f"fft_length has length {count}, the operand has rank {operand.rank}", "fft_length"
        )

    @constraint("C2", "the operand of RFFT must be f32 or f64, that of other types c64 or c128")
    def has_type(self, operand: Shape) -> Fault:
        allowed = _COMPLEX if self.fft_type == "RFFT" else _REAL
        if operand.element_type in allowed:
            return HOLDS
        label = f"the operand is {operand.element_type}, expected {' or '.join(allowed)}"
        return Fault(label, "fft_type")

    @constraint(
        "C3",
        "the last operand sizes must be fft_length; for IRFFT, the last must be fft_length/2 + 1",
    )
    def has_lengths(self, operand: Shape) -> Fault:
        expected = list(self.fft_length)
        if self.fft_type == "IRFFT":
            expected[-1] = expected[-1] // 2 + 1
        sizes = list(operand.dims[-len(expected) :])
        if may_be_same_dims(sizes, expected):
            return HOLDS
        given, wanted = (",".join(map(str, s)) for s in (self.fft_length, sizes))
        if self.fft_type != "IRFFT":
            label = f"fft_length is {{{given}}}, expected {{{wanted}}}, the operand's last sizes"
            return Fault(label, "fft_length")
        required = ",".join(map(str, expected))
        label = f"the operand's last sizes are {{{wanted}}}, expected {{{required}}}"
        return Fault(label, "fft_length")

    def infer_shape(self, operand: Shape) -> Shape:
        others: tuple[Dim | int, ...] = dims_of(operand)[: operand.rank - len(self.fft_length)]
        match self.fft_type:
            case "RFFT":
                half = self.fft_length[-1] // 2 + 1
                sizes = (*others, *self.fft_length[:-1], half)
                return array(_COMPLEX[operand.element_type], sizes)
            case "IRFFT":
                return array(_REAL[operand.element_type], (*others, *self.fft_length))
            case _:
                return array(operand.element_type, (*others, *self.fft_length))

    def output_to_input(self, out: Shape, operand: Shape) -> IndexingMap:
        kept = out.rank - len(self.fft_length)
        d, s = dims(out), ranges(*operand.dims[kept:])
        return IndexingMap.of(d, [*d[:kept], *s], ranges=s)

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        logarithms = math.prod([max(1, size).bit_length() - 1 for size in self.fft_length])
        return Work(flops=8 * logarithms * element_count(operands[0]))

    def kernel(self, operand: Array) -> Array:
        axes = range(operand.ndim - len(self.fft_length), operand.ndim)
        transform = getattr(np.fft, f"{self.fft_type.lower()}n")
        lengths = self.fft_length if self.fft_type == "IRFFT" else None
        kind = operand.real.dtype
        if self.fft_type != "IRFFT":
            kind = np.result_type(kind, np.complex64)
        return np.asarray(transform(operand, lengths, axes)).astype(kind)

"""Cholesky and triangular-solve; the last two dimensions of an operand are its matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from hlo.ops.attributes import boolean, enum
from hlo.ops.op import HOLDS, Fault, Shape, attribute, constraint, op
from hlo.ops.unify import PartialShape, same_rank, same_sizes
from hlo.shapes.shape import AnyShape
from indexing.maps.indexing_map import IndexingMap, dims, ranges
from indexing.ops.base import Array, BinaryOp, Maps, OperandMaps, UnaryOp
from indexing.ops.element import NOT_A_REDUCTION, ElementRule, Work, element_count
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Affine, as_expr
from simplifier.unknown import Unknown


def square_fault(shape: Shape) -> Fault:
    """Fault of an operand 0 that is not a batch of square matrices."""
    if shape.rank >= 2 and shape.dims[-1] == shape.dims[-2]:
        return HOLDS
    return Fault(f"operand 0 is {shape.with_layout(None)}", 0)


def precedes(low: Affine, high: Affine, distance: int = 0) -> Constraint:
    """``high − low >= distance``.

    >>> from simplifier.linear import variable
    >>> print(precedes(variable("d0", 0, 4), variable("d1", 0, 2)))
    -d0 + d1 in [0, 2]
    """
    difference = as_expr(high) - as_expr(low)
    return Constraint(difference, distance, max(distance, difference.bounds[1]))


@op(
    "cholesky",
    samples=[
        "f32[3,3] cholesky(f32[3,3] p), lower=true",
        "f64[2,3,3] cholesky(f64[2,3,3] p)",
        "c128[2,2] cholesky(c128[2,2] p), lower=true",
        "f32[1,1] cholesky(f32[1,1] p), lower=true",
        "f32[0,2,2] cholesky(f32[0,2,2] p), lower=true",
    ],
)
class Cholesky(UnaryOp):
    """The triangular L with ``operand = L · Lᴴ`` (lower), or U with ``operand = Uᴴ · U``.

    Only this triangle of the operand is read. The other triangle of the result is undefined and
    reads nothing. Element (i, j) of L reads the triangle of rows 0 to j, and row i up to column j.

    Source: XLA ``docs/operation_semantics.md``, "Cholesky".
    """

    accumulates: ClassVar[bool] = True
    is_splittable: ClassVar[bool] = True
    computes_slices: ClassVar[bool] = True
    rule: ClassVar[ElementRule] = NOT_A_REDUCTION
    types: ClassVar[tuple[str, ...]] = ("inexact",)
    lower: bool = attribute(boolean, default=False)

    def unify_operands(self, *operands: PartialShape) -> Sequence[PartialShape]:
        return same_sizes(operands, [(0, -1), (0, -2)])

    def infer_unranked(self, *operands: PartialShape) -> PartialShape:
        return operands[0]

    @constraint("C1", "the last two dimensions of the operand must have the same size")
    def is_square(self, operand: Shape) -> Fault:
        return square_fault(operand)

    def infer_shape(self, operand: Shape) -> Shape:
        return operand

    def output_to_input(self, out: Shape, operand: Shape) -> Maps:
        d, (s, t) = dims(out), ranges(*out.dims[-2:])
        i, j = self._lower(*d[-2:])
        triangle = self._map(d, (s, t), (s, t), (precedes(j, i), precedes(s, j), precedes(t, s)))
        return triangle, self._map(d, (i, s), (s,), (precedes(j, i, 1), precedes(s, j)))

    def _map(
        self,
        d: tuple[Variable, ...],
        place: tuple[Variable, Variable],
        s: tuple[Variable, ...],
        within: tuple[Constraint, ...],
    ) -> IndexingMap:
        """The map to an index in the lower triangle; mirrored if the triangle is the upper one."""
        return IndexingMap.of(d, [*d[:-2], *self._lower(*place)], ranges=s, constraints=within)

    def _lower(self, row: Variable, column: Variable) -> tuple[Variable, Variable]:
        """Swap row and column if the triangle is the upper one; its own inverse."""
        return (row, column) if self.lower else (column, row)

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        (a,) = operands
        assert isinstance(a, Shape)
        return Work(flops=a.dims[-1] * a.size // 3)

    def kernel(self, operand: Array) -> Array:
        a = operand if self.lower else operand.swapaxes(-1, -2).conj()
        factor = np.zeros_like(a)
        with np.errstate(invalid="ignore", divide="ignore"):
            for j in range(a.shape[-1]):
                row = factor[..., j, :j]
                square = a[..., j, j].real - np.sum((row * row.conj()).real, -1)
                factor[..., j, j] = np.sqrt(square)
                below = factor[..., j + 1 :, :j] @ row.conj()[..., None]
                rest = a[..., j + 1 :, j] - below[..., 0]
                factor[..., j + 1 :, j] = rest / factor[..., j, j, None]
        return factor if self.lower else factor.swapaxes(-1, -2).conj()


@op(
    "triangular-solve",
    samples=[
        "f32[3,2] triangular-solve(f32[3,3] p, f32[3,2] q), left_side=true, lower=true, "
        "transpose_a=NO_TRANSPOSE",
        "f64[2,3,1] triangular-solve(f64[2,3,3] p, f64[2,3,1] q), left_side=true, lower=true, "
        "unit_diagonal=true, transpose_a=TRANSPOSE",
        "f32[2,3] triangular-solve(f32[3,3] p, f32[2,3] q), lower=true, transpose_a=NO_TRANSPOSE",
        "c64[1,3] triangular-solve(c64[3,3] p, c64[1,3] q), transpose_a=ADJOINT",
        "f32[3,2] triangular-solve(f32[3,3] p, f32[3,2] q), left_side=true, "
        "transpose_a=NO_TRANSPOSE",
        "f32[1,2] triangular-solve(f32[1,1] p, f32[1,2] q), left_side=true, unit_diagonal=true, "
        "transpose_a=NO_TRANSPOSE",
        "f32[3,0] triangular-solve(f32[3,3] p, f32[3,0] q), left_side=true, "
        "transpose_a=NO_TRANSPOSE",
    ],
)
class TriangularSolve(BinaryOp):
    """The x of ``op(left) · x = right`` (left_side), or of ``x · op(left) = right``.

    ``op`` is the identity, the transpose or the adjoint. Only the triangle selected by `lower` is
    read, without its diagonal if `unit_diagonal`. By substitution, row i of x reads the rows of the
    right-hand side and of the triangle that are solved up to i.

    Source: XLA ``docs/operation_semantics.md``, "TriangularSolve".
    """

    linear_operands: ClassVar[tuple[int, ...]] = (1,)
    accumulates: ClassVar[bool] = True
    is_splittable: ClassVar[bool] = True
    computes_slices: ClassVar[bool] = True
    rule: ClassVar[ElementRule] = NOT_A_REDUCTION
    types: ClassVar[tuple[str, ...]] = ("T: inexact", "T")
    left_side: bool = attribute(boolean, default=False)
    lower: bool = attribute(boolean, default=False)
    unit_diagonal: bool = attribute(boolean, default=False)
    transpose_a: str = attribute(enum("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))

    def unify_operands(self, *operands: PartialShape) -> Sequence[PartialShape]:
        ranked = same_rank(*operands)
        rank = ranked[0].rank if isinstance(ranked[0], Shape) else 0
        square = [(0, -1), (0, -2), (1, -2 if self.left_side else -1)]
        return same_sizes(ranked, square, *[[(0, k), (1, k)] for k in range(rank - 2)])

    def infer_unranked(self, *operands: PartialShape) -> PartialShape:
        return operands[1]

    @constraint("C1", "the last two dimensions of the left operand must have the same size")
    def is_square(self, left: Shape, right: Shape) -> Fault:
        return square_fault(left)

    @constraint("C2", "batch sizes must be equal, and the matrices must be compatible")
    def fits(self, left: Shape, right: Shape) -> Fault:
        side = -2 if self.left_side else -1
        same_rank = left.rank == right.rank
        if same_rank and left.dims[:-2] == right.dims[:-2] and left.dims[-1] == right.dims[side]:
            return HOLDS
        left_text, right_text = left.with_layout(None), right.with_layout(None)
        return Fault(f"the left operand is {left_text}, the right one {right_text}", 1)

    def infer_shape(self, left: Shape, right: Shape) -> Shape:
        return right

    @property
    def _is_flipped(self) -> bool:
        """True if the equation is ``leftᵀ · y = ..``, where y is x or its transpose."""
        return (self.transpose_a != "NO_TRANSPOSE") == self.left_side

    @property
    def _is_forward(self) -> bool:
        """True for forward substitution, which solves the first row first."""
        return self.lower != self._is_flipped

    def _after(self, earlier: Affine, later: Affine, distance: int = 0) -> Constraint:
        """Row `later` is solved at least `distance` rows after row `earlier`."""
        if self._is_forward:
            return precedes(earlier, later, distance)
        return precedes(later, earlier, distance)

    def _flip(self, row: Variable, column: Variable) -> tuple[Variable, Variable]:
        return (column, row) if self._is_flipped else (row, column)

    def _sides(self, one: Variable, other: Variable) -> tuple[Variable, Variable]:
        """Swap both variables if x is the left factor; its own inverse."""
        return (one, other) if self.left_side else (other, one)

    def output_to_input(
        self, out: Shape, left: Shape, right: Shape
    ) -> tuple[OperandMaps, OperandMaps]:
        d, (s, t) = dims(out), ranges(*left.dims[-2:])
        i, k = self._sides(*d[-2:])
        triangle = self._after(t, s, int(self.unit_diagonal)), self._after(s, i)
        of_left = IndexingMap.of(
            d, [*d[:-2], *self._flip(s, t)], ranges=(s, t), constraints=triangle
        )
        of_right = IndexingMap.of(
            d, [*d[:-2], *self._sides(s, k)], ranges=(s,), constraints=[self._after(s, i)]
        )
        return self._read_triangle(of_left, left), of_right

    def _read_triangle(self, of_left: IndexingMap, left: Shape) -> OperandMaps:
        """`of_left`, or no map if the triangle is only a unit diagonal."""
        return () if self.unit_diagonal and left.dims[-1] == 1 else of_left

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        a, b = operands
        assert isinstance(a, Shape)
        return Work(flops=2 * a.dims[-1] * element_count(b))

    def kernel(self, left: Array, right: Array) -> Array:
        a = left.swapaxes(-1, -2) if self._is_flipped else left
        a = a.conj() if self.transpose_a == "ADJOINT" else a
        b = right if self.left_side else right.swapaxes(-1, -2)
        x, count = np.zeros_like(b), a.shape[-1]
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            for i in range(count) if self._is_forward else reversed(range(count)):
                done = slice(0, i) if self._is_forward else slice(i + 1, count)
                rest = b[..., i, :] - (a[..., i, None, done] @ x[..., done, :])[..., 0, :]
                x[..., i, :] = rest if self.unit_diagonal else rest / a[..., i, i, None]
        return x if self.left_side else x.swapaxes(-1, -2)

"""Cholesky and triangular-solve: triangles of matrices, which are the last two dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from hlo.ops.attributes import boolean, enum
from hlo.ops.op import HOLDS, Fault, Shape, attribute, constraint, op
from hlo.ops.unify import PartialShape, same_rank, same_sizes
from indexing.maps.indexing_map import IndexingMap, dims, ranges
from indexing.ops.base import Array, BinaryOp, Entry, Maps, UnaryOp
from indexing.ops.element import NOT_A_FOLD, ElementRule
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Affine, as_expr


def square_fault(shape: Shape) -> Fault:
    """The fault of operand 0 not being square matrices."""
    if shape.rank >= 2 and shape.dims[-1] == shape.dims[-2]:
        return HOLDS
    return Fault(f"it is {shape.with_layout(None)}", 0)


def ordered(low: Affine, high: Affine, least: int = 0) -> Constraint:
    """``high − low >= least``.

    >>> from simplifier.linear import variable
    >>> print(ordered(variable("d0", 0, 4), variable("d1", 0, 2)))
    -d0 + d1 in [0, 2]
    """
    difference = as_expr(high) - as_expr(low)
    return Constraint(difference, least, max(least, difference.bounds[1]))


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

    Only this triangle of the operand is read; the other triangle of the result is anything, and so
    it needs nothing. Element (i, j) of L needs the triangle of rows 0 to j, and row i up to column
    j: two exact pieces, or one map of all rows up to i.

    Source: XLA ``docs/operation_semantics.md``, "Cholesky".
    """

    map_options: ClassVar[tuple[str, ...]] = ("exact",)
    rule: ClassVar[ElementRule] = NOT_A_FOLD
    lower: bool = attribute(boolean, default=False)

    def unified(self, *operands: PartialShape) -> Sequence[PartialShape]:
        return same_sizes(operands, [(0, -1), (0, -2)])

    def infer_unranked(self, *operands: PartialShape) -> PartialShape:
        return operands[0]

    @constraint("C1", "the last two dimensions of the operand have the same size")
    def is_square(self, operand: Shape) -> Fault:
        return square_fault(operand)

    def infer_shape(self, operand: Shape) -> Shape:
        return operand

    def output_to_input(self, out: Shape, operand: Shape, exact: bool = False) -> Maps:
        d, (s, t) = dims(out), ranges(*out.dims[-2:])
        i, j = self._lower(*d[-2:])
        if not exact:
            within = ordered(j, i), ordered(s, i), ordered(t, s), ordered(t, j)
            return (self._map(d, (s, t), (s, t), within).with_grade("may"),)
        triangle = self._map(d, (s, t), (s, t), (ordered(j, i), ordered(s, j), ordered(t, s)))
        return triangle, self._map(d, (i, s), (s,), (ordered(j, i, 1), ordered(s, j)))

    def _map(
        self,
        d: tuple[Variable, ...],
        place: tuple[Variable, Variable],
        s: tuple[Variable, ...],
        within: tuple[Constraint, ...],
    ) -> IndexingMap:
        """The map to a place in the lower triangle, or in the upper one that mirrors it."""
        return IndexingMap.of(d, [*d[:-2], *self._lower(*place)], ranges=s, constraints=within)

    def _lower(self, row: Variable, column: Variable) -> tuple[Variable, Variable]:
        """Row and column as those of the lower triangle; and back."""
        return (row, column) if self.lower else (column, row)

    def kernel(self, operand: Array) -> Array:
        a = operand if self.lower else operand.swapaxes(-1, -2).conj()
        found = np.zeros_like(a)
        with np.errstate(invalid="ignore", divide="ignore"):
            for j in range(a.shape[-1]):
                row = found[..., j, :j]
                square = a[..., j, j].real - np.sum((row * row.conj()).real, -1)
                found[..., j, j] = np.sqrt(square)
                below = found[..., j + 1 :, :j] @ row.conj()[..., None]
                rest = a[..., j + 1 :, j] - below[..., 0]
                found[..., j + 1 :, j] = rest / found[..., j, j, None]
        return found if self.lower else found.swapaxes(-1, -2).conj()


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

    ``op`` transposes or not. The triangle `lower` says is read, without its diagonal where
    unit_diagonal says that this is all ones. Substitution starts at one end: row i of x needs the
    rows of the right-hand side up to i (or from i), and the rows of the triangle up to i.

    Source: XLA ``docs/operation_semantics.md``, "TriangularSolve".
    """

    rule: ClassVar[ElementRule] = NOT_A_FOLD
    left_side: bool = attribute(boolean, default=False)
    lower: bool = attribute(boolean, default=False)
    unit_diagonal: bool = attribute(boolean, default=False)
    transpose_a: str = attribute(enum("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))

    def unified(self, *operands: PartialShape) -> Sequence[PartialShape]:
        found = same_rank(*operands)
        rank = found[0].rank if isinstance(found[0], Shape) else 0
        square = [(0, -1), (0, -2), (1, -2 if self.left_side else -1)]
        return same_sizes(found, square, *[[(0, k), (1, k)] for k in range(rank - 2)])

    def infer_unranked(self, *operands: PartialShape) -> PartialShape:
        return operands[1]

    @constraint("C1", "the last two dimensions of the left operand have the same size")
    def is_square(self, left: Shape, right: Shape) -> Fault:
        return square_fault(left)

    @constraint("C2", "the operands have the same batch dimensions, and the side to solve fits")
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
        """The equation is ``leftᵀ · y = ..``, where y is x or its transpose."""
        return (self.transpose_a != "NO_TRANSPOSE") == self.left_side

    @property
    def _goes_forward(self) -> bool:
        """The first row is solved first."""
        return self.lower != self._is_flipped

    def _after(self, earlier: Affine, later: Affine, least: int = 0) -> Constraint:
        """One row is solved so many rows after another, or more."""
        if self._goes_forward:
            return ordered(earlier, later, least)
        return ordered(later, earlier, least)

    def _flip(self, row: Variable, column: Variable) -> tuple[Variable, Variable]:
        return (column, row) if self._is_flipped else (row, column)

    def _sides(self, one: Variable, other: Variable) -> tuple[Variable, Variable]:
        """What is solved for first, or, for a solution in rows, last; and back."""
        return (one, other) if self.left_side else (other, one)

    def output_to_input(self, out: Shape, left: Shape, right: Shape) -> tuple[Entry, Entry]:
        d, (s, t) = dims(out), ranges(*left.dims[-2:])
        i, k = self._sides(*d[-2:])
        triangle = self._after(t, s, int(self.unit_diagonal)), self._after(s, i)
        of_left = IndexingMap.of(
            d, [*d[:-2], *self._flip(s, t)], ranges=(s, t), constraints=triangle
        )
        of_right = IndexingMap.of(
            d, [*d[:-2], *self._sides(s, k)], ranges=(s,), constraints=[self._after(s, i)]
        )
        return self._read(of_left, left), of_right

    def _others(self, out: Shape) -> int:
        """How many equations are solved with one triangle."""
        return out.dims[-1 if self.left_side else -2]

    def _read(self, found: IndexingMap, left: Shape) -> Entry:
        """Nothing of a single element that is said to be one."""
        return () if self.unit_diagonal and left.dims[-1] == 1 else found

    def kernel(self, left: Array, right: Array) -> Array:
        a = left.swapaxes(-1, -2) if self._is_flipped else left
        a = a.conj() if self.transpose_a == "ADJOINT" else a
        b = right if self.left_side else right.swapaxes(-1, -2)
        x, count = np.zeros_like(b), a.shape[-1]
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            for i in range(count) if self._goes_forward else reversed(range(count)):
                done = slice(0, i) if self._goes_forward else slice(i + 1, count)
                rest = b[..., i, :] - (a[..., i, None, done] @ x[..., done, :])[..., 0, :]
                x[..., i, :] = rest if self.unit_diagonal else rest / a[..., i, i, None]
        return x if self.left_side else x.swapaxes(-1, -2)

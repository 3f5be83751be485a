"""Factorisations and triangular systems by LAPACK, as JAX calls them on CPU: what they read.

`indexing.execution.lapack` executes the calls.

Source: JAX ``jaxlib/cpu/lapack_kernels.h``, the handlers named ``.._ffi``; LAPACK's documentation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final

from hlo.modules.module import Instruction
from hlo.shapes.shape import AnyShape, Shape
from indexing.maps.indexing_map import Grade, IndexingMap, dims, ranges
from indexing.ops.base import OperandMaps
from indexing.ops.custom_call import letter_setting
from indexing.ops.linear_algebra import Cholesky, TriangularSolve, precedes
from indexing.ops.targets.lapack_call import LapackCall, Read, other_triangle, routine
from indexing.ops.targets.matrix_reads import (
    column_reads,
    pivoted_reads,
    product_reads,
    triangle_reads,
)
from simplifier.constraints import Constraint

_TRANSPOSES: Final = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}


@routine("potrf", "sdcz", "(T[2,3,3]{1,2,0}, s32[2])", "T[2,3,3]{1,2,0}", "uplo = 76 : ui8")
class LapackPotrf(LapackCall):
    """A triangle as `Cholesky` returns it, and the number of the first minor that is not positive.

    The other triangle is that of the operand. A factorisation that fails leaves its triangle
    undefined.
    """

    arguments = ("nn",)
    outcomes = ("nn", "")
    settings: ClassVar[dict[str, str]] = {"uplo": "LU"}

    def reads(self, read: Read) -> OperandMaps:
        lower = read.letter("uplo") == "L"
        if read.output:
            return triangle_reads(read.out, read.shape, lower=lower)
        triangle = Cholesky(lower=lower).output_to_input(read.out, read.shape)
        return *triangle, *other_triangle(read.out, lower=lower)


@routine(
    "trsm",
    "sdcz",
    "T[2,3,2]{1,2,0}",
    "T[2,3,3]{1,2,0}; T[2,3,2]{1,2,0}",
    "diag = 78 : ui8, side = 76 : ui8, trans_x = 84 : ui8, uplo = 76 : ui8",
)
class LapackTrsm(LapackCall):
    """The solution of a triangular system, as `TriangularSolve` returns it."""

    arguments = ("nn", "nm")
    outcomes = ("nm",)
    settings: ClassVar[dict[str, str]] = {
        "side": "LR",
        "uplo": "LU",
        "diag": "NU",
        "trans_x": "NTC",
    }

    def forms(self, instruction: Instruction) -> tuple[str, ...]:
        if letter_setting(instruction, "side") == "L":
            return "nn", "nm", "nm"
        return "nn", "mn", "mn"

    def reads(self, read: Read) -> OperandMaps:
        solve = TriangularSolve(
            left_side=read.letter("side") == "L",
            lower=read.letter("uplo") == "L",
            unit_diagonal=read.letter("diag") == "U",
            transpose_a=_TRANSPOSES[read.letter("trans_x")],
        )
        return solve.output_to_input(read.out, *read.operands)[read.operand]


@routine("getrf", "sdcz", "(T[2,3,2]{1,2,0}, s32[2,2], s32[2])", "T[2,3,2]{1,2,0}")
class LapackGetrf(LapackCall):
    """L and U of a matrix with its rows exchanged, the pivots, and the first that is zero."""

    outcomes = ("mn", "k", "")

    def reads(self, read: Read) -> OperandMaps:
        rows, columns = read.shape.dims[-2:]
        if read.output < 2:
            return tuple(pivoted_reads(read.out, rows, columns, of_pivots=read.output == 1))
        d, (s, t) = dims(read.out), ranges(rows, columns)
        factored = Constraint(t + 0, 0, min(rows, columns) - 1)
        return IndexingMap.of(d, [*d, s, t], ranges=(s, t), constraints=[factored])


class LapackGeqrf(LapackCall):
    """R above the diagonal, reflectors below it, and their factors: column by column.

    Class attributes:
        last: grade of what the reflector of the last row reads; None if its factor is 0.
    """

    outcomes = ("mn", "k")
    last: ClassVar[Grade | None] = None

    def reads(self, read: Read) -> OperandMaps:
        rows, columns = read.shape.dims[-2:]
        is_factor = read.output == 1
        return tuple(column_reads(read.out, rows, columns, of_factors=is_factor, last=self.last))


_MATRIX: Final = "T[2,3,3]{1,2,0}"


@routine("geqrf", "sd", "(T[2,3,3]{1,2,0}, T[2,3])", _MATRIX)
class RealGeqrf(LapackGeqrf):
    """`LapackGeqrf` of real numbers: the factor of the last row's reflector is 0."""


@routine("geqrf", "cz", "(T[2,3,3]{1,2,0}, T[2,3])", _MATRIX)
class ComplexGeqrf(LapackGeqrf):
    """`LapackGeqrf` of complex numbers: the last row's reflector makes its element real."""

    last: ClassVar[Grade | None] = "exact"


class LapackProduct(LapackCall):
    """The first columns of the product of reflectors; column j depends on those up to j."""

    arguments = ("mn", "r")
    outcomes = ("mn",)

    def reads(self, read: Read) -> OperandMaps:
        matrix, factors = read.operands
        return product_reads(read.out, matrix, factors.dims[-1])[read.operand]

    def _why_not(
        self, instruction: Instruction, shapes: Sequence[AnyShape], results: Sequence[AnyShape]
    ) -> str:
        if reason := LapackCall._why_not(self, instruction, shapes, results):
            return reason
        matrix, factors = shapes
        assert isinstance(matrix, Shape)  # `_why_not` of a call
        assert isinstance(factors, Shape)
        if factors.dims[-1] <= matrix.dims[-1] <= matrix.dims[-2]:
            return ""
        return f"the operands are {matrix} and {factors}"


@routine("orgqr", "sd", "T[2,3,2]{1,2,0}", "T[2,3,2]{1,2,0}; T[2,2]{1,0}")
class RealProduct(LapackProduct):
    """The first columns of the product of the reflectors ``1 - τ_t · v_t · v_tᵀ``."""


@routine("ungqr", "cz", "T[2,3,2]{1,2,0}", "T[2,3,2]{1,2,0}; T[2,2]{1,0}")
class ComplexProduct(LapackProduct):
    """The first columns of the product of the reflectors ``1 - τ_t · v_t · v_tᴴ``."""


class LapackEigen(LapackCall):
    """Eigenvectors and eigenvalues of a matrix of which one triangle is read.

    Without eigenvectors, the matrix holds what the routine leaves in it.
    """

    obstacle: ClassVar[str] = (
        "what the routine leaves in memory, and when it fails, is not specified"
    )
    arguments = ("nn",)
    outcomes = ("nn", "n", "")
    settings: ClassVar[dict[str, str]] = {"mode": "NV", "uplo": "LU"}

    def reads(self, read: Read) -> OperandMaps:
        lower, has_vectors = read.letter("uplo") == "L", read.letter("mode") == "V"
        if not read.output and not has_vectors:
            return read.own(grade="may")
        is_generic = read.shape.dims[-1] > 1 and read.output == 0
        is_exact = is_generic or read.output == 1
        return triangle_reads(
            read.out, read.shape, lower=lower, grade="exact" if is_exact else "may"
        )


_EIGEN: Final = "(T[2,3,3]{1,2,0}, R[2,3], s32[2])", _MATRIX, "mode = 86 : ui8, uplo = 76 : ui8"


@routine("syevd", "sd", *_EIGEN)
class Syevd(LapackEigen):
    """Eigenvectors and eigenvalues of a symmetric matrix, of which one triangle is read."""


@routine("heevd", "cz", *_EIGEN)
class Heevd(LapackEigen):
    """Eigenvectors and eigenvalues of a Hermitian matrix, of which one triangle is read."""


class LapackReduction(LapackCall):
    """A tridiagonal matrix in one triangle, with reflectors; the other triangle is not used."""

    obstacle: ClassVar[str] = "which elements of a triangle a reduction reads is not declared"
    arguments = ("nn",)
    outcomes = ("nn", "n", "h", "h", "")
    settings: ClassVar[dict[str, str]] = {"uplo": "LU"}

    def reads(self, read: Read) -> OperandMaps:
        lower = read.letter("uplo") == "L"
        reduced = triangle_reads(read.out, read.shape, lower=lower, grade="may")
        if read.output:
            return reduced
        d = reduced.dims
        i, j = d[-2:] if lower else d[:-3:-1]
        inside = replace(reduced, constraints=(*reduced.constraints, precedes(j, i)))
        return inside, *other_triangle(read.out, lower=lower)


_REDUCTION: Final = "(T[2,3,3]{1,2,0}, R[2,3], R[2,2], T[2,2], s32[2])", _MATRIX, "uplo = 76 : ui8"


@routine("sytrd", "sd", *_REDUCTION)
class Sytrd(LapackReduction):
    """A tridiagonal matrix in one triangle of a symmetric one, with reflectors."""


@routine("hetrd", "cz", *_REDUCTION)
class Hetrd(LapackReduction):
    """A tridiagonal matrix in one triangle of a Hermitian one, with reflectors."""


class LapackWhole(LapackCall):
    """A call whose results each read the whole matrix with their indices in the batch.

    Class attributes:
        exact: the results whose elements depend on every element of the matrix.
    """

    obstacle: ClassVar[str] = "which elements of its matrix a result reads is not declared"
    exact: ClassVar[tuple[int, ...]] = ()

    def reads(self, read: Read) -> OperandMaps:
        rank = len(self.forms(read.instruction)[read.operand])
        return read.own(rank, "exact" if read.output in self.exact else "may")


@routine(
    "gesdd",
    "sdcz",
    "(T[2,3,2]{1,2,0}, R[2,2], T[2,3,2]{1,2,0}, T[2,2,2]{1,2,0}, s32[2])",
    "T[2,3,2]{1,2,0}",
    "mode = 83 : ui8",
)
class LapackGesdd(LapackWhole):
    """The singular values and vectors of each matrix; each singular value reads all of it."""

    outcomes = ("mn", "k", "mu", "vn", "")
    settings: ClassVar[dict[str, str]] = {"mode": "ANS"}
    exact = (1,)


@routine(
    "geev",
    "sd",
    "(T[2,3], T[2,3], C[2,3,3]{1,2,0}, C[2,3,3]{1,2,0}, s32[2])",
    _MATRIX,
    "compute_left = 78 : ui8, compute_right = 86 : ui8",
)
class RealGeev(LapackWhole):
    """The eigenvalues of each matrix, real and imaginary parts, and the eigenvectors."""

    arguments = ("nn",)
    outcomes = ("n", "n", "nn", "nn", "")
    exact = (0,)


@routine(
    "geev",
    "cz",
    "(T[2,3], T[2,3,3]{1,2,0}, T[2,3,3]{1,2,0}, s32[2])",
    _MATRIX,
    "compute_left = 78 : ui8, compute_right = 86 : ui8",
)
class ComplexGeev(LapackWhole):
    """The eigenvalues of each matrix, and the eigenvectors."""

    arguments = ("nn",)
    outcomes = ("n", "nn", "nn", "")
    exact = (0,)


_SCHUR: Final = "mode = 86 : ui8, sort = 78 : ui8"


@routine(
    "gees",
    "sd",
    "(T[2,3,3]{1,2,0}, T[2,3,3]{1,2,0}, T[2,3], T[2,3], s32[2], s32[2])",
    _MATRIX,
    _SCHUR,
)
class RealGees(LapackWhole):
    """The Schur form of each matrix, its vectors, and the eigenvalues in two parts."""

    arguments = ("nn",)
    outcomes = ("nn", "nn", "n", "n", "", "")
    exact = (2,)


@routine(
    "gees",
    "cz",
    "(T[2,3,3]{1,2,0}, T[2,3,3]{1,2,0}, T[2,3], s32[2], s32[2])",
    _MATRIX,
    _SCHUR,
)
class ComplexGees(LapackWhole):
    """The Schur form of each matrix, its vectors, and the eigenvalues."""

    arguments = ("nn",)
    outcomes = ("nn", "nn", "n", "", "")
    exact = (2,)


@routine("gehrd", "sdcz", "(T[2,3,3]{1,2,0}, T[2,2], s32[2])", _MATRIX, "high = 3, low = 1")
class LapackGehrd(LapackWhole):
    """The Hessenberg form of each matrix, with reflectors and their factors."""

    arguments = ("nn",)
    outcomes = ("nn", "h", "")


@routine(
    "geqp3",
    "sdcz",
    "(T[2,3,2]{1,2,0}, s32[2,2], T[2,2])",
    "T[2,3,2]{1,2,0}; s32[2,2]{1,0}",
)
class LapackGeqp3(LapackWhole):
    """R and reflectors of each matrix with its columns exchanged, their order, and the factors."""

    arguments = ("mn", "n")
    outcomes = ("mn", "n", "k")


@routine(
    "gtsv",
    "sdcz",
    "(T[2,3], T[2,3], T[2,3], T[2,3,2]{1,2,0}, s32[2])",
    "T[2,3]{1,0}; T[2,3]{1,0}; T[2,3]{1,0}; T[2,3,2]{1,2,0}",
)
class LapackGtsv(LapackWhole):
    """The solutions of tridiagonal systems: column by column of the right-hand sides."""

    arguments = ("n", "n", "n", "nm")
    outcomes = ("n", "n", "n", "nm", "")

    def reads(self, read: Read) -> OperandMaps:
        if read.operand != 3:
            return read.own(1, "may")
        if read.output != 3:
            return ()
        d, (s,) = dims(read.out), ranges(read.shape.dims[-2])
        return IndexingMap.of(d, [*d[:-2], s, d[-1]], ranges=(s,), grade="may")

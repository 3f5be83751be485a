"""Triangular systems by cuBLAS, and factorisations by cuSOLVER, as JAX calls them.

The last two dimensions of an operand are its matrices.  cuSOLVER's are column-major in memory: in
another layout, they are the transposes of the logical ones, and the calls are not understood.

Source: JAX ``jaxlib/gpu/solver_kernels_ffi.cc``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from hlo.modules.module import Instruction
from hlo.ops.attributes import boolean, enum
from hlo.ops.op import attribute, configured, custom_call
from hlo.shapes.shape import AnyShape, Shape, leaf_shape
from indexing.maps.answers import Path
from indexing.maps.indexing_map import IndexingMap, dims, ranges
from indexing.ops.base import Array, Entries, Maps
from indexing.ops.custom_call import shape_list
from indexing.ops.element import Work
from indexing.ops.linear_algebra import Cholesky, TriangularSolve, precedes
from indexing.ops.targets.definition import Definition
from indexing.ops.targets.known_reads import KnownReads
from indexing.ops.targets.known_values import KnownValues, why_no_op
from indexing.ops.targets.matrix_reads import (
    column_reads,
    is_column_major,
    product_reads,
    triangle_reads,
)
from simplifier.unknown import Unknown

_LAYOUTS: Final = "operand_layout_constraints"


def _sample(target: str, call: str, config: str) -> str:
    return f'{call}, custom_call_target="{target}", backend_config={{{config}}}'


_TRSM: Final = "__cublas$triangularSolve"


@custom_call(
    _TRSM,
    samples=[
        _sample(
            _TRSM,
            "(f32[3,2]{0,1}, s8[3]) custom-call(f32[3,3] p, f32[3,2] q)",
            '"left_side":true,"lower":true,"unit_diagonal":false,"transpose_a":"NO_TRANSPOSE"',
        ),
        _sample(
            _TRSM,
            "(f64[2,1,3], s8[0]) custom-call(f64[2,3,3] p, f64[2,1,3] q)",
            '"left_side":false,"lower":true,"unit_diagonal":true,"transpose_a":"TRANSPOSE"',
        ),
    ],
)
class TriangularSolveCall(KnownValues):
    """The result of a triangular-solve, and the workspace.

    Source: XLA ``xla/service/gpu/transforms/triangular_solve_rewriter.cc``.
    """

    left_side: bool = configured(boolean)
    lower: bool = configured(boolean)
    unit_diagonal: bool = configured(boolean)
    transpose_a: str = configured(enum("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))

    @property
    def solve(self) -> TriangularSolve:
        """The op of HLO."""
        return TriangularSolve(
            left_side=self.left_side,
            lower=self.lower,
            unit_diagonal=self.unit_diagonal,
            transpose_a=self.transpose_a,
        )

    def why_not(self, *operands: Shape) -> str:
        if len(operands) != 2:
            return f"it has {len(operands)} operands, expected 2"
        return why_no_op(self.solve, self.value, *operands)

    def value_maps(self, out: Shape, *operands: Shape, exact: bool, output_id: int) -> Entries:
        left, right = operands
        return self.solve.output_to_input(out, left, right)

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        return self.solve.work(self.value, operands, applied)

    def values(self, arrays: Sequence[Array], operands: Sequence[Shape]) -> tuple[Array, ...]:
        return (self.solve.kernel(*arrays),)

    def definition(self, instruction: Instruction) -> Definition:
        definition = Definition([each.shape for each in instruction.operands])
        left, right = definition.parameters
        names = ("left_side", "lower", "unit_diagonal")
        flags = "".join([f"{name}={str(getattr(self, name)).lower()}, " for name in names])
        call = f"triangular-solve({left.name}, {right.name}), {flags}transpose_a={self.transpose_a}"
        definition.values = [definition.line(self.value.with_layout(None), call)]
        return definition


_POTRF: Final = "cusolver_potrf_ffi"


@custom_call(
    _POTRF,
    samples=[
        _sample(
            _POTRF,
            "(f32[3,3]{0,1}, s32[]) custom-call(f32[3,3]{0,1} p), "
            f"{_LAYOUTS}={{f32[3,3]{{0,1}}}}",
            "lower = true",
        ),
        _sample(
            _POTRF,
            "(c64[2,3,3]{1,2,0}, s32[2]) custom-call(c64[2,3,3]{1,2,0} p), "
            f"{_LAYOUTS}={{c64[2,3,3]{{1,2,0}}}}",
            "lower = false",
        ),
    ],
)
class Potrf(KnownValues):
    """A triangle as `Cholesky` returns it, and the number of the first minor that is not positive.

    The other triangle of the result is that of the operand, or what a batched routine leaves in it.
    The number is 0 if all minors are positive, so it depends on each element: a large one makes a
    minor of the identity negative, and so does one on the diagonal that is negative.
    """

    obstacle: ClassVar[str] = "the other triangle of the result is not specified"
    lower: bool = configured(boolean)
    operand_layout_constraints: tuple[AnyShape, ...] = attribute(shape_list, default=())

    @property
    def value_count(self) -> int:
        return 2

    @property
    def cholesky(self) -> Cholesky:
        """The op of HLO."""
        return Cholesky(lower=self.lower)

    def why_not(self, *operands: Shape) -> str:
        if len(operands) != 1:
            return f"it has {len(operands)} operands, expected 1"
        if not is_column_major(self.operand_layout_constraints, operands[0]):
            return "the matrices are not column-major by operand_layout_constraints"
        info, batch = self.results[1], operands[0].dims[:-2]
        if not isinstance(info, Shape) or (info.element_type, info.dims) != ("s32", batch):
            return f"the second result is {info}, expected one s32 for each matrix"
        return why_no_op(self.cholesky, self.value, *operands)

    def value_maps(self, out: Shape, *operands: Shape, exact: bool, output_id: int) -> Entries:
        (operand,) = operands
        d, (s, t) = dims(out), ranges(*operand.dims[-2:])
        if output_id:
            return (triangle_reads(out, operand, lower=self.lower),)
        triangle = self.cholesky.output_to_input(out, operand)
        if operand.dims[-1] < 2:
            return (triangle,)
        i, j = d[-2:] if self.lower else d[:-3:-1]
        other = IndexingMap.of(
            d, [*d[:-2], s, t], ranges=(s, t), constraints=[precedes(i, j, 1)], grade="may"
        )
        return ((*triangle, other),)

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        return self.cholesky.work(self.value, operands, applied)

    def values(self, arrays: Sequence[Array], operands: Sequence[Shape]) -> tuple[Array, ...]:
        (a,) = arrays
        factor = self.cholesky.kernel(a)
        is_kept = np.tri(a.shape[-1], dtype=bool)
        is_kept = is_kept if self.lower else is_kept.T
        diagonal = np.diagonal(factor, axis1=-2, axis2=-1)
        fails = ~(diagonal.real > 0)
        info = np.where(fails.any(-1), fails.argmax(-1) + 1, 0) if a.shape[-1] else fails.sum(-1)
        return np.where(is_kept, factor, a), np.asarray(info, np.int32)


_GEQRF: Final = "cusolver_geqrf_ffi"


@custom_call(
    _GEQRF,
    samples=[
        "(f32[3,2]{0,1}, f32[2]) custom-call(f32[3,2]{0,1} p), "
        f'{_LAYOUTS}={{f32[3,2]{{0,1}}}}, custom_call_target="{_GEQRF}"'
    ],
)
class Geqrf(KnownReads):
    """R above the diagonal, reflectors below it, and their factors: column by column.

    Row i of R is the product of unit vector i of the Gram-Schmidt process, which the columns up to
    i determine, and the columns after it.  Reflector j, its factor and element (j, j) depend on the
    columns up to j.  The last row has a reflector of one element: LAPACK has the factor 0 for real
    numbers, and what a device has is not specified.

    Class attributes:
        is_logical: True if the matrices are the logical ones, in any layout.
    """

    obstacle: ClassVar[str] = "the reflector of the last row depends on the routine"

    is_logical: ClassVar[bool] = False

    def maps(self, instruction: Instruction, output: Path, operand: int) -> Maps | None:
        matrix = instruction.operands[operand].shape
        out = leaf_shape(instruction.shape, output)
        if operand or not isinstance(matrix, Shape) or not isinstance(out, Shape):
            return None
        if output not in ((0,), (1,)) or not self._has_matrices(matrix):
            return None
        *batch, rows, columns = matrix.dims
        wanted = [(*batch, rows, columns), (*batch, min(rows, columns))]
        if out.dims != wanted[output[0]]:
            return None
        return tuple(column_reads(out, rows, columns, of_factors=output == (1,)))

    def _has_matrices(self, operand: Shape) -> bool:
        if self.is_logical:
            return operand.rank >= 2
        return is_column_major(self.operand_layout_constraints, operand)


@custom_call("Qr", samples=['(f32[3,2], f32[2]) custom-call(f32[3,2] p), custom_call_target="Qr"'])
class Qr(Geqrf):
    """`Geqrf`, as JAX calls it on TPUs.

    Source: JAX ``jax/_src/lax/linalg.py``, `geqrf`.
    """

    is_logical: ClassVar[bool] = True


_ORGQR: Final = "cusolver_orgqr_ffi"


@custom_call(
    _ORGQR,
    samples=[
        "f32[4,3]{0,1} custom-call(f32[4,3]{0,1} p, f32[2] q), "
        f'{_LAYOUTS}={{f32[4,3]{{0,1}}, f32[2]{{0}}}}, custom_call_target="{_ORGQR}"',
        "f64[2,2,2]{1,2,0} custom-call(f64[2,2,2]{1,2,0} p, f64[2,2] q), "
        f'{_LAYOUTS}={{f64[2,2,2]{{1,2,0}}, f64[2,2]{{1,0}}}}, custom_call_target="{_ORGQR}"',
        "c64[1,1]{0,1} custom-call(c64[1,1]{0,1} p, c64[1] q), "
        f'{_LAYOUTS}={{c64[1,1]{{0,1}}, c64[1]{{0}}}}, custom_call_target="{_ORGQR}"',
    ],
)
class Orgqr(KnownValues):
    """The first columns of the product of the reflectors ``1 - τ_t · v_t · v_tᴴ``.

    Column t of the matrix has the elements of v_t below the diagonal; above them are 1, and 0.
    Column j of the result depends on the reflectors up to j.

    Class attributes:
        is_logical: True if the matrices are the logical ones, in any layout.
    """

    is_logical: ClassVar[bool] = False
    operand_layout_constraints: tuple[AnyShape, ...] = attribute(shape_list, default=())

    def why_not(self, *operands: Shape) -> str:
        if len(operands) != 2:
            return f"it has {len(operands)} operands, expected 2"
        matrix, factors = operands
        is_understood = self.is_logical and matrix.rank >= 2
        if not is_understood and not is_column_major(self.operand_layout_constraints, matrix):
            return "the matrices are not column-major by operand_layout_constraints"
        *batch, rows, columns = matrix.dims
        fits = factors.rank == len(batch) + 1 and factors.dims[-1] <= columns <= rows
        if not fits or list(factors.dims[:-1]) != batch or self.value.dims != matrix.dims:
            return f"the operands are {matrix} and {factors}, the value {self.value}"
        return ""

    def value_maps(self, out: Shape, *operands: Shape, exact: bool, output_id: int) -> Entries:
        matrix, factors = operands
        return product_reads(out, matrix, factors.dims[-1])

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        return Unknown("XLA counts no operations of this call")

    def values(self, arrays: Sequence[Array], operands: Sequence[Shape]) -> tuple[Array, ...]:
        matrix, factors = arrays
        rows, columns = matrix.shape[-2:]
        total = np.broadcast_to(np.eye(rows, columns, dtype=matrix.dtype), matrix.shape)
        with np.errstate(all="ignore"):
            for t in reversed(range(factors.shape[-1])):
                v = matrix[..., t].copy()
                v[..., :t], v[..., t] = 0, 1
                row = (v.conj()[..., None, :] @ total) * factors[..., t, None, None]
                total = total - v[..., None] * row
        return (total.astype(matrix.dtype),)


_PRODUCT: Final = "ProductOfElementaryHouseholderReflectors"


@custom_call(
    _PRODUCT,
    samples=[
        f'f32[3,2] custom-call(f32[3,2] p, f32[2] q), custom_call_target="{_PRODUCT}"',
    ],
)
class HouseholderProduct(Orgqr):
    """`Orgqr`, as JAX calls it on TPUs.

    Source: JAX ``jax/_src/lax/linalg.py``, `householder_product`.
    """

    is_logical: ClassVar[bool] = True

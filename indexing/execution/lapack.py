"""LAPACK custom calls, as JAX emits them on CPU, executed through SciPy (extra ``[lapack]``).

Results are the outputs of the routine in the order of its arguments; ``info`` is 0 on success.
Leading dimensions are batch dimensions.

Source: JAX ``jaxlib/cpu/lapack_kernels.h``, the handlers named ``.._ffi``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, dtype, leaves
from hlo.text.source import HloError
from indexing.execution.interpreter import Handler
from indexing.execution.machine import Machine
from indexing.execution.targets import target
from indexing.execution.values import Array, Value, assemble, failure
from indexing.ops.custom_call import letter_setting, setting

Routine = Callable[[Instruction, Sequence[Array], Callable[[str], Any]], Sequence[Any]]
"""Computes one matrix of the batch, from the instruction, its arrays, and a lookup of SciPy's
routines by name."""


def routine(name: str, *letters: str) -> Callable[[Routine], Routine]:
    """Register a function for ``lapack_<letter><name>_ffi`` on one matrix; a decorator.

    Args:
        name: the routine without its type letter, such as ``potrf``.
        letters: type letters, all of ``sdcz`` by default.
    """

    def mark(function: Routine) -> Routine:
        for letter in letters or "sdcz":
            target(f"lapack_{letter}{name}_ffi")(_batch_routine(function, letter))
        return function

    return mark


def _batch_routine(function: Routine, letter: str) -> Handler:
    def handler(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
        def find(name: str) -> Any:
            blas, lapack = _scipy(instruction)
            return getattr(lapack, letter + name, None) or getattr(blas, letter + name)

        shapes = [leaf for _, leaf in leaves(instruction.shape) if isinstance(leaf, Shape)]
        batch = operands[0].shape[: _batch_rank(instruction, operands[0])]
        outs = [np.empty(shape.dims, dtype(shape.element_type)) for shape in shapes]
        for index in np.ndindex(*batch):
            try:
                results = function(instruction, [operand[index] for operand in operands], find)
                for out, value in zip(outs, results, strict=True):
                    out[index] = value
            except HloError:
                raise
            except Exception as error:  # SciPy has classes of its own
                raise failure(instruction, f"the call does not fit LAPACK: {error}") from None
        return assemble(instruction.shape, iter(outs))

    return handler


def _scipy(instruction: Instruction) -> tuple[Any, Any]:
    """Return SciPy's modules ``blas`` and ``lapack``, which are slow to load."""
    try:
        from scipy.linalg import blas, lapack
    except ImportError:
        message = "executing LAPACK calls requires scipy, which is not installed"
        help = "pip install 'hlo-indexing[lapack]'"  # noqa: A001
        raise failure(instruction, message, "custom call", help) from None
    return blas, lapack


def _batch_rank(instruction: Instruction, operand: Array) -> int:
    return operand.ndim - (1 if "gtsv" in instruction.attributes["custom_call_target"].text else 2)


@routine("potrf")
def _potrf(instruction: Instruction, arrays: Sequence[Array], find: Any) -> Sequence[Any]:
    lower = letter_setting(instruction, "uplo", "L") == "L"
    return find("potrf")(arrays[0], lower=lower, clean=False)  # type: ignore[no-any-return] # SciPy


@routine("trsm")
def _trsm(instruction: Instruction, arrays: Sequence[Array], find: Any) -> Sequence[Any]:
    solution = find("trsm")(
        1,
        arrays[0],
        arrays[1],
        side=letter_setting(instruction, "side", "L") == "R",
        lower=letter_setting(instruction, "uplo", "L") == "L",
        trans_a="NTC".index(letter_setting(instruction, "trans_x", "N")),
        diag=letter_setting(instruction, "diag", "N") == "U",
    )
    return (solution,)


@routine("getrf")
def _getrf(instruction: Instruction, arrays: Sequence[Array], find: Any) -> Sequence[Any]:
    factors, pivots, info = find("getrf")(arrays[0])
    return factors, pivots + 1, info  # LAPACK counts rows from 1


@routine("geqrf")
def _geqrf(instruction: Instruction, arrays: Sequence[Array], find: Any) -> Sequence[Any]:
    factors, scales, _, _ = find("geqrf")(arrays[0])
    return factors, scales


@target("Qr", "cusolver_geqrf_ffi")
def _geqrf_of_any_type(
    machine: Machine, instruction: Instruction, operands: Sequence[Value]
) -> Value:
    """Return what the routine of LAPACK returns; these calls have no type in their name."""
    letter = {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}[operands[0].dtype.str[1:]]
    return _batch_routine(_geqrf, letter)(machine, instruction, operands)


@routine("orgqr", "s", "d")
def _orgqr(instruction: Instruction, arrays: Sequence[Array], find: Any) -> Sequence[Any]:
    return (find("orgqr")(arrays[0], arrays[1])[0],)


@routine("ungqr", "c", "z")
def _ungqr(instruction: Instruction, arrays: Sequence[Array], find: Any) -> Sequence[Any]:
    return (find("ungqr")(arrays[0], arrays[1])[0],)


@routine("geqp3")
def _geqp3(instruction: Instruction, arrays: Sequence[Array], find: Any) -> Sequence[Any]:
    factors, pivots, scales, _, _ = find("geqp3")(arrays[0])
    return factors, pivots, scales


@routine("gesdd")
def _gesdd(instruction: Instruction, arrays: Sequence[Array], find: Any) -> Sequence[Any]:
    mode = letter_setting(instruction, "mode", "N")
    left, values, right, info = find("gesdd")(
        arrays[0], compute_uv=mode != "N", full_matrices=mode == "A"
    )
    return arrays[0], values, left, right, info  # LAPACK overwrites the matrix


@routine("syevd", "s", "d")
def _syevd(instruction: Instruction, arrays: Sequence[Array], find: Any) -> Sequence[Any]:
    return _eigen(instruction, arrays, find("syevd"))


@routine("heevd", "c", "z")
def _heevd(instruction: Instruction, arrays: Sequence[Array], find: Any) -> Sequence[Any]:
    return _eigen(instruction, arrays, find("heevd"))


def _eigen(instruction: Instruction, arrays: Sequence[Array], solve: Any) -> Sequence[Any]:
    lower = letter_setting(instruction, "uplo", "L") == "L"
    vectors = letter_setting(instruction, "mode", "V") == "V"
    values, matrix, info = solve(arrays[0], compute_v=vectors, lower=lower)
    return matrix, values, info


@routine("geev", "s", "d")
def _geev(instruction: Instruction, arrays: Sequence[Array], find: Any) -> Sequence[Any]:
    real, imaginary, left, right, info = find("geev")(arrays[0], *_sides(instruction))
    pairs = [_complex_vectors(imaginary, vectors) for vectors in (left, right)]
    return real, imaginary, *pairs, info


@routine("geev", "c", "z")
def _complex_geev(instruction: Instruction, arrays: Sequence[Array], find: Any) -> Sequence[Any]:
    values, left, right, info = find("geev")(arrays[0], *_sides(instruction))
    return values, left, right, info


def _sides(instruction: Instruction) -> tuple[bool, bool]:
    names = ("compute_left", "compute_right")
    left, right = (letter_setting(instruction, name, "V") == "V" for name in names)
    return left, right


def _complex_vectors(imaginary: Array, vectors: Array) -> Array:
    """Combine each conjugate pair, which LAPACK returns as a real and an imaginary column."""
    result = vectors.astype(np.result_type(vectors.dtype, np.complex64))
    for k in np.flatnonzero(imaginary > 0):
        result[:, k] = vectors[:, k] + 1j * vectors[:, k + 1]
        result[:, k + 1] = result[:, k].conj()
    return result


@routine("gehrd")
def _gehrd(instruction: Instruction, arrays: Sequence[Array], find: Any) -> Sequence[Any]:
    size = arrays[0].shape[-1]
    low, high = setting(instruction, "low", 1), setting(instruction, "high", size)
    return find("gehrd")(arrays[0], lo=low - 1, hi=high - 1)  # type: ignore[no-any-return] # SciPy


@routine("sytrd", "s", "d")
def _sytrd(instruction: Instruction, arrays: Sequence[Array], find: Any) -> Sequence[Any]:
    lower = letter_setting(instruction, "uplo", "L") == "L"
    return find("sytrd")(arrays[0], lower=lower)  # type: ignore[no-any-return] # SciPy


@routine("hetrd", "c", "z")
def _hetrd(instruction: Instruction, arrays: Sequence[Array], find: Any) -> Sequence[Any]:
    lower = letter_setting(instruction, "uplo", "L") == "L"
    return find("hetrd")(arrays[0], lower=lower)  # type: ignore[no-any-return] # SciPy


@routine("gtsv")
def _gtsv(instruction: Instruction, arrays: Sequence[Array], find: Any) -> Sequence[Any]:
    below, diagonal, above, right = arrays
    _, middle, _, solution, info = find("gtsv")(below[1:], diagonal, above[:-1], right)
    return below, middle, above, solution, info

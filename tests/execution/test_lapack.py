"""LAPACK custom calls: the factors multiply to the original matrix."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import hlo
from hlo.shapes.shape import dtype
from indexing.execution import run
from tests.execution.arrays import f32

SIZES = {"s": ("f32", np.float32, 1e-5), "d": ("f64", np.float64, 1e-12)}


def call(target: str, out: str, inputs: list[Any], config: str = "") -> Any:
    """Return the results of a custom call; ``T`` in `out` is the type of the routine's letter."""
    kind, dtype, _ = SIZES[target[0]]
    kinds = [f"{kind}[{','.join(map(str, array.shape))}]" for array in inputs]
    parameters = " ".join(f"p{k} = {t} parameter({k})" for k, t in enumerate(kinds))
    names = ", ".join(f"p{k}" for k in range(len(inputs)))
    result = out.replace("T[", f"{kind}[")
    text = f"""ENTRY e {{ {parameters} ROOT r = {result} custom-call({names}),
      custom_call_target="lapack_{target}_ffi", api_version=API_VERSION_TYPED_FFI,
      backend_config={{{config}}} }}"""
    return run(hlo.parse(text), [array.astype(dtype) for array in inputs])


def matrices(*shape: int) -> Any:
    return np.random.default_rng(11).standard_normal(shape)


@pytest.mark.parametrize("letter", ["s", "d"])
def test_potrf(letter: str) -> None:
    a = matrices(2, 4, 4)
    a = a @ a.swapaxes(-1, -2) + 4 * np.eye(4)
    factor, info = call(f"{letter}potrf", "(T[2,4,4], s32[2])", [a], "uplo = 76 : ui8")
    low = np.tril(factor)
    np.testing.assert_allclose(low @ low.swapaxes(-1, -2), a, rtol=SIZES[letter][2])
    assert info.tolist() == [0, 0]
    upper, _ = call(f"{letter}potrf", "(T[2,4,4], s32[2])", [a], "uplo = 85 : ui8")
    np.testing.assert_allclose(np.triu(upper).swapaxes(-1, -2), low, rtol=SIZES[letter][2])


def test_without_scipy_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.linalg", None)
    with pytest.raises(hlo.HloError, match="requires scipy, which is not installed") as caught:
        call("spotrf", "(T[4,4], s32[])", [np.eye(4)], "uplo = 76 : ui8")
    assert caught.value.help == "pip install 'hlo-indexing[lapack]'"


@pytest.mark.parametrize("out", ["(T[3,2], s32[])", "(T[2,3], s32[])", "(T[2,2], s32[], s32[])"])
def test_results_that_do_not_fit_the_routine_are_an_error(out: str) -> None:
    with pytest.raises(hlo.HloError, match="the call does not fit LAPACK"):
        call("dpotrf", out, [np.zeros((2, 2 + ("2,3" in out)))], "uplo = 76 : ui8")


def test_potrf_reports_a_minor_that_is_not_positive() -> None:
    _, info = call("dpotrf", "(T[2,2], s32[])", [np.diag([1.0, -1.0])], "uplo = 76 : ui8")
    assert int(info) == 2


@pytest.mark.parametrize("side", "LR")
@pytest.mark.parametrize("uplo", "LU")
@pytest.mark.parametrize("trans", "NT")
@pytest.mark.parametrize("diag", "NU")
def test_trsm(side: str, uplo: str, trans: str, diag: str) -> None:
    a = matrices(3, 3) + 4 * np.eye(3)
    b = matrices(3, 2) if side == "L" else matrices(2, 3)
    letters = {"side": side, "uplo": uplo, "trans_x": trans, "diag": diag}
    config = ", ".join(f"{name} = {ord(letter)} : ui8" for name, letter in letters.items())
    (x,) = call("dtrsm", f"T[{b.shape[0]},{b.shape[1]}]", [a, b], config)
    triangle = np.tril(a) if uplo == "L" else np.triu(a)
    if diag == "U":
        np.fill_diagonal(triangle, 1)
    triangle = triangle.T if trans == "T" else triangle
    np.testing.assert_allclose(triangle @ x if side == "L" else x @ triangle, b, rtol=1e-12)


def test_getrf_counts_rows_from_one() -> None:
    a = matrices(4, 3)
    factors, pivots, info = call("dgetrf", "(T[4,3], s32[3], s32[])", [a])
    low, up = np.tril(factors, -1) + np.eye(4, 3), np.triu(factors[:3])
    order = list(range(4))
    for k, pivot in enumerate(pivots):
        order[k], order[pivot - 1] = order[pivot - 1], order[k]
    np.testing.assert_allclose(low @ up, a[order], rtol=1e-12, atol=1e-14)
    assert int(info) == 0


def test_geqrf_and_orgqr() -> None:
    a = matrices(4, 3)
    factors, scales = call("dgeqrf", "(T[4,3], T[3])", [a])
    (q,) = call("dorgqr", "T[4,3]", [factors, scales])
    np.testing.assert_allclose(q @ np.triu(factors[:3]), a, rtol=1e-12)
    np.testing.assert_allclose(q.T @ q, np.eye(3), atol=1e-14)


def test_gesdd() -> None:
    a = matrices(4, 3)
    out = "(T[4,3], T[3], T[4,3], T[3,3], s32[])"
    _, values, left, right, info = call("dgesdd", out, [a], "mode = 83 : ui8")
    np.testing.assert_allclose(left @ np.diag(values) @ right, a, rtol=1e-12)
    assert int(info) == 0


def test_syevd() -> None:
    a = matrices(2, 3, 3)
    a = a + a.swapaxes(-1, -2)
    out = "(T[2,3,3], T[2,3], s32[2])"
    vectors, values, _ = call("dsyevd", out, [a], "mode = 86 : ui8, uplo = 76 : ui8")
    np.testing.assert_allclose(a @ vectors, vectors * values[:, None, :], atol=1e-12)


def test_geev() -> None:
    a = matrices(4, 4)
    out = "(T[4], T[4], c128[4,4], c128[4,4], s32[])"
    config = "compute_left = 86 : ui8, compute_right = 86 : ui8"
    real, imaginary, left, right, _ = call("dgeev", out, [a], config)
    values = real + 1j * imaginary
    assert np.abs(imaginary).max() > 0  # there are conjugate pairs
    np.testing.assert_allclose(a @ right, right * values, atol=1e-12)
    np.testing.assert_allclose(left.conj().T @ a, values[:, None] * left.conj().T, atol=1e-12)


def test_gehrd_sytrd_geqp3_and_gtsv() -> None:
    a = matrices(4, 4)
    reduced, scales, _ = call("dgehrd", "(T[4,4], T[3], s32[])", [a], "low = 1, high = 4")
    h = np.triu(reduced, -1)
    np.testing.assert_allclose(np.sort_complex(np.linalg.eigvals(h)), _eigenvalues(a), atol=1e-12)
    assert scales.shape == (3,)
    s = a + a.T
    _, d, e, _, _ = call("dsytrd", "(T[4,4], T[4], T[3], T[3], s32[])", [s], "uplo = 76 : ui8")
    t = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
    np.testing.assert_allclose(np.linalg.eigvalsh(t), np.linalg.eigvalsh(s), atol=1e-12)
    low, diagonal, up, b = matrices(4), matrices(4) + 5, matrices(4), matrices(4, 2)
    *_, x, info = call("dgtsv", "(T[4], T[4], T[4], T[4,2], s32[])", [low, diagonal, up, b])
    t = np.diag(diagonal) + np.diag(up[:-1], 1) + np.diag(low[1:], -1)
    np.testing.assert_allclose(t @ x, b, rtol=1e-12)
    assert int(info) == 0


def _eigenvalues(a: Any) -> Any:
    return np.sort_complex(np.linalg.eigvals(a))


def test_a_top_k_custom_call_takes_k_from_the_result_shape() -> None:
    text = """ENTRY e { p = f32[2,4] parameter(0)
      ROOT r = (f32[2,2], s32[2,2]) custom-call(p), custom_call_target="TopK" }"""
    values, indices = run(hlo.parse(text), [f32([[1, 3, 3, 2], [-1, -4, -2, -3]])])
    assert (values.tolist(), indices.tolist()) == ([[3, 3], [-1, -2]], [[1, 2], [0, 2]])


@pytest.mark.parametrize("kind", ["f32", "f64", "c64", "c128"])
@pytest.mark.parametrize("target", ["Qr", "cusolver_geqrf_ffi"])
def test_calls_of_other_devices_without_a_type_are_geqrf(target: str, kind: str) -> None:
    text = f"""ENTRY e {{ p = {kind}[4,3] parameter(0)
      ROOT r = ({kind}[4,3], {kind}[3]) custom-call(p), custom_call_target="{target}",
        operand_layout_constraints={{{kind}[4,3]{{0,1}}}} }}"""
    module = hlo.parse(text)
    whole = matrices(4, 3) + 1j * matrices(3, 4).T
    a = (whole if kind[0] == "c" else whole.real).astype(dtype(kind))
    factors, scales = run(module, [a])
    expected = scipy.linalg.lapack.get_lapack_funcs("geqrf", [a])(a)[:2]
    assert factors.dtype == a.dtype
    assert factors.tobytes() == np.ascontiguousarray(expected[0]).tobytes()
    assert (scales == expected[1]).all()

"""Edge cases of arithmetic: one line of HLO and its value in XLA.

Values are from XLA's ``docs/operation_semantics.md`` if it defines them, otherwise from XLA's CPU
backend (`test_against_xla` compares the same lines).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from scipy.special import erf

import hlo
from indexing.execution import run
from tests.execution.arrays import f32, s8

NAN, INF = math.nan, math.inf
LOW, HIGH = -(2**31), 2**31 - 1

# an op, its operands by type, the result
TABLE: list[tuple[str, dict[str, list[Any]], list[Any]]] = [
    ("s32 divide", {"s32": [7, -7, 7, -7, 5, -5, 0, LOW], "s32 ": [2, 2, -2, -2, 0, 0, 0, -1]},
     [3, -3, -3, 3, -1, -1, -1, LOW]),
    ("s32 remainder", {"s32": [7, -7, 7, -7, 5, -5, LOW], "s32 ": [2, 2, -2, -2, 0, 0, -1]},
     [1, -1, 1, -1, 5, -5, 0]),
    ("u8 divide", {"u8": [255, 7, 0], "u8 ": [2, 0, 0]}, [127, 255, 255]),
    ("u8 remainder", {"u8": [255, 7], "u8 ": [16, 0]}, [15, 7]),
    ("s4 divide", {"s4": [-8, 7, -7, 3], "s4 ": [-1, 2, 2, 0]}, [-8, 3, -3, -1]),
    ("s8 add", {"s8": [127, -128], "s8 ": [1, -1]}, [-128, 127]),
    ("s4 multiply", {"s4": [7, -8], "s4 ": [7, -8]}, [1, 0]),
    ("s4 maximum", {"s4": [7, -8], "s4 ": [-7, -1]}, [7, -1]),
    ("s4 abs", {"s4": [-8, -7, 7]}, [-8, 7, 7]),
    ("s4 sign", {"s4": [-8, 0, 7]}, [-1, 0, 1]),
    ("u4 not", {"u4": [0, 5, 15]}, [15, 10, 0]),
    ("u4 xor", {"u4": [12, 5], "u4 ": [10, 5]}, [6, 0]),
    ("s4 clamp", {"s4": [-2, -2], "s4 ": [-8, 7], "s4  ": [3, 3]}, [-2, 3]),
    ("s32 power", {"s32": [2, -2, 0, 1, -1, 0, 3, -3], "s32 ": [-1, 3, -2, -5, -3, 0, 40, -1]},
     [0, -8, 0, 1, -1, 1, 689956897, 0]),
    ("f32 remainder", {"f32": [5.5, -5.5, 5.5, INF, 1.0], "f32 ": [2.0, 2.0, -2.0, 2.0, INF]},
     [1.5, -1.5, 1.5, NAN, 1.0]),
    ("s8 shift-left", {"s8": [1, 1, 1, -1, 5], "s8 ": [7, 8, -1, 1, 100]}, [-128, 0, 0, -2, 0]),
    ("s8 shift-right-arithmetic", {"s8": [-128, -128, -5, 5, -5], "s8 ": [7, 8, 1, 9, -1]},
     [-1, -1, -3, 0, -1]),
    ("u8 shift-right-arithmetic", {"u8": [128, 127, 255], "u8 ": [7, 7, 200]}, [255, 0, 255]),
    ("s8 shift-right-logical", {"s8": [-1, -1, -128, 7], "s8 ": [1, 8, 7, -1]}, [127, 0, 1, 0]),
    ("u32 shift-right-logical", {"u32": [2**32 - 1, 4], "u32 ": [31, 32]}, [1, 0]),
    ("s16 count-leading-zeros", {"s16": [0, 1, -1, 256]}, [16, 15, 0, 7]),
    ("u4 popcnt", {"u4": [0, 15, 5]}, [0, 4, 2]),
    ("f32 maximum", {"f32": [NAN, 1.0, -0.0, NAN], "f32 ": [1.0, NAN, 0.0, NAN]},
     [NAN, NAN, 0.0, NAN]),
    ("f32 minimum", {"f32": [NAN, 1.0, -2.0], "f32 ": [1.0, NAN, INF]}, [NAN, NAN, -2.0]),
    ("bf16 maximum", {"bf16": [NAN, 1.0], "bf16 ": [1.0, 2.0]}, [NAN, 2.0]),
    ("f32 sign", {"f32": [-3.0, 0.0, 2.0, NAN, -INF]}, [-1.0, 0.0, 1.0, NAN, -1.0]),
    ("f32 round-nearest-afz", {"f32": [0.5, -0.5, 1.5, 2.5, -2.5]}, [1.0, -1.0, 2.0, 3.0, -3.0]),
    ("f32 round-nearest-even", {"f32": [0.5, -0.5, 1.5, 2.5, -2.5]}, [0.0, -0.0, 2.0, 2.0, -2.0]),
    ("f32 rsqrt", {"f32": [4.0, 0.0, -1.0, INF]}, [0.5, INF, NAN, 0.0]),
    ("pred is-finite", {"f32": [1.0, INF, NAN]}, [True, False, False]),
    ("s8 convert", {"f32": [1.5, -2.7, 300.0, -300.0, NAN, INF]}, [1, -2, 127, -128, 0, 127]),
    ("u8 convert", {"f32": [1.5, -2.7, 300.0, NAN, INF]}, [1, 0, 255, 0, 255]),
    ("s64 convert", {"f32": [3e9, NAN, INF, -INF]}, [3000000000, 0, 2**63 - 1, -(2**63)]),
    ("u64 convert", {"f64": [2.0**64, 1e19, -1.0]}, [2**64 - 1, 10**19, 0]),
    ("s4 convert", {"f32": [100.0, -3.9, NAN]}, [7, -3, 0]),
    ("s4 convert", {"s32": [5, 9, -9, 300]}, [5, -7, 7, -4]),
    ("u8 convert", {"s32": [-1, 256, 300]}, [255, 0, 44]),
    ("pred convert", {"f32": [0.0, -0.0, 0.5, NAN]}, [False, False, True, True]),
    ("f32 convert", {"s32": [16777217, -1]}, [16777216.0, -1.0]),
    ("bf16 convert", {"f32": [1.00390625, 1.01171875, 3.4e38]}, [1.0, 1.015625, INF]),
    ("f8e4m3fn convert", {"f32": [300.0, 1e6, -0.3]}, [288.0, NAN, -0.3125]),
    ("f8e5m2 convert", {"f32": [300.0, 1e6]}, [320.0, INF]),
    ("f32 clamp", {"f32": [0.0, 0.0, NAN], "f32 ": [NAN, -1.0, 1.0], "f32  ": [1.0, 1.0, 1.0]},
     [NAN, 0.0, NAN]),
    ("u32 bitcast-convert", {"f32": [1.0, -0.0]}, [0x3F800000, 0x80000000]),
]  # fmt: skip


def type_of(key: str) -> str:
    return key.strip()


def line_of(op: str, operands: dict[str, list[Any]], result: list[Any]) -> hlo.Module:
    """A module with one instruction, whose operands are parameters."""
    kind, opcode = op.split()
    count = len(result)
    kinds = list(map(type_of, operands))
    parameters = [f"p{k} = {t}[{count}] parameter({k})" for k, t in enumerate(kinds)]
    names = ", ".join(f"p{k}" for k in range(len(kinds)))
    return hlo.parse(
        f"ENTRY e {{ {' '.join(parameters)} ROOT r = {kind}[{count}] {opcode}({names}) }}"
    )


def arrays_of(operands: dict[str, list[Any]]) -> list[Any]:
    from hlo.shapes.shape import dtype

    return [np.array(values).astype(dtype(type_of(key))) for key, values in operands.items()]


@pytest.mark.parametrize(("op", "operands", "expected"), TABLE, ids=[f"{row[0]}" for row in TABLE])
def test_an_op_computes_its_value(
    op: str, operands: dict[str, list[Any]], expected: list[Any]
) -> None:
    (actual,) = run(line_of(op, operands, expected), arrays_of(operands))
    values = [value.item() if hasattr(value, "item") else value for value in actual]
    assert [str(float(v)) for v in values] == [str(float(w)) for w in expected]


TOTAL = [-NAN, -INF, -1.0, -0.0, 0.0, 1.0, INF, NAN]


@pytest.mark.parametrize("kind", ["f32", "bf16", "f16", "f8e5m2", "f64"])
def test_the_total_order_includes_nan_and_signed_zeros(kind: str) -> None:
    from hlo.shapes.shape import dtype

    row = np.array(TOTAL).astype(dtype(kind))
    row[0] = -row[-1]  # the sign of a NaN
    text = f"""ENTRY e {{ p = {kind}[8] parameter(0) q = {kind}[8] parameter(1)
      ROOT r = pred[8] compare(p, q), direction=LT, type=TOTALORDER }}"""
    module = hlo.parse(text)
    for shift in range(8):
        (actual,) = run(module, [row, np.roll(row, shift)])
        assert actual.tolist() == [k < (k - shift) % 8 for k in range(8)]


@pytest.mark.parametrize(
    ("direction", "expected"),
    [("EQ", False), ("NE", True), ("LT", False), ("GE", False), ("GT", False), ("LE", False)],
)
def test_nan_is_unordered(direction: str, expected: bool) -> None:
    text = f"""ENTRY e {{ p = f32[] parameter(0) q = f32[] parameter(1)
      ROOT r = pred[] compare(p, q), direction={direction} }}"""
    for pair in ((NAN, 1.0), (1.0, NAN), (NAN, NAN)):
        (actual,) = run(hlo.parse(text), list(map(f32, pair)))
        assert bool(actual) is expected


QUOTIENTS = [
    # a, b, and a / b
    (complex(1, -2), complex(0, 0), complex(INF, -INF)),
    (complex(1, -2), complex(-0.0, 0), complex(-INF, INF)),
    (complex(INF, 1), complex(2, 0), complex(INF, NAN)),
    (complex(INF, INF), complex(1, 1), complex(INF, NAN)),
    (complex(3, 4), complex(INF, -INF), complex(0, 0)),
    (complex(3, 4), complex(NAN, 1), complex(NAN, NAN)),
    (complex(4, 2), complex(1, 1), complex(3, -1)),
]


@pytest.mark.parametrize(("a", "b", "expected"), QUOTIENTS)
def test_complex_quotients_by_zero_and_infinity(a: complex, b: complex, expected: complex) -> None:
    text = "ENTRY e { p = c64[] parameter(0) q = c64[] parameter(1) ROOT r = c64[] divide(p, q) }"
    (actual,) = run(hlo.parse(text), [np.complex64(a), np.complex64(b)])
    pairs = ((float(actual.real), expected.real), (float(actual.imag), expected.imag))
    assert all(x == w or (x != x and w != w) for x, w in pairs), actual


def test_sums_of_narrow_types_accumulate_in_f32() -> None:
    """256 times 1 + 2^-7 is 258 in bf16; a bf16 total would stop at 256."""
    text = """add { a = bf16[] parameter(0) b = bf16[] parameter(1) ROOT c = bf16[] add(a, b) }
    ENTRY e { p = bf16[256] parameter(0) z = bf16[] constant(0)
      ROOT r = bf16[] reduce(p, z), dimensions={0}, to_apply=add }"""
    (actual,) = run(hlo.parse(text), [np.full(256, 1.0078125).astype(ml_dtypes.bfloat16)])
    assert float(actual) == 258.0


REDUCTIONS = [
    ("add", operator.add),
    ("multiply", operator.mul),
    ("maximum", max),
    ("minimum", min),
    ("and", operator.and_),
    ("or", operator.or_),
    ("xor", operator.xor),
]


@pytest.mark.parametrize(("op", "function"), REDUCTIONS)
@pytest.mark.parametrize("how", ["reduce", "reduce-window", "scatter"])
def test_reductions_of_narrow_integers_wrap_around(
    op: str, function: Callable[[int, int], int], how: str
) -> None:
    """The result is that of Python integers, modulo 16 in the range of s4."""
    numbers = [-8, 5, 3, 1, -3]
    values = np.array(numbers).astype(ml_dtypes.int4)
    lines = {
        "reduce": "s4[] reduce(p, z), dimensions={0}",
        "reduce-window": "s4[1] reduce-window(p, z), window={size=5}",
        "scatter": "s4[1] scatter(o, i, p), update_window_dims={}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1",
    }
    text = f"""fold {{ a = s4[] parameter(0) b = s4[] parameter(1) ROOT c = s4[] {op}(a, b) }}
    ENTRY e {{ p = s4[5] parameter(0) z = s4[] constant(7) o = s4[1] constant({{7}})
      i = s32[5,1] constant({{{{0}},{{0}},{{0}},{{0}},{{0}}}})
      ROOT r = {lines[how]}, to_apply=fold }}"""
    (actual,) = run(hlo.parse(text), [values])
    assert actual.reshape(-1).tolist() == [(reduce(function, numbers, 7) + 8) % 16 - 8]


def test_a_dot_of_integers_accumulates_in_the_result_type() -> None:
    text = """ENTRY e { p = s8[2] parameter(0) q = s8[2] parameter(1)
      ROOT r = s32[] dot(p, q), lhs_contracting_dims={0}, rhs_contracting_dims={0} }"""
    (actual,) = run(hlo.parse(text), [s8([127, -128]), s8([127, -128])])
    assert int(actual) == 127 * 127 + 128 * 128


@pytest.mark.parametrize(
    ("exponent_bits", "mantissa_bits", "expected"),
    [
        (8, 23, [1e-40, 1.1e-38, 1.2e-38, -2.8e-45, 3e38, 1.1]),  # the format of f32
        (9, 2**31, [1e-40, 1.1e-38, 1.2e-38, -2.8e-45, 3e38, 1.1]),
        (2**31, 23, [1e-40, 1.1e-38, 1.2e-38, -2.8e-45, 3e38, 1.1]),
        (8, 10, [1.0331493e-40, 1.0997301e-38, 1.1996012e-38, -0.0, 3.0007322e38, 1.0996094]),
        (5, 10, [0.0, 0.0, 0.0, -0.0, np.inf, 1.0996094]),
    ],
)
def test_reduce_precision_flushes_subnormals_of_narrower_exponents_only(
    exponent_bits: int, mantissa_bits: int, expected: list[float]
) -> None:
    """The expected values are XLA's."""
    text = f"""ENTRY e {{ p = f32[6] parameter(0)  ROOT r = f32[6] reduce-precision(p),
      exponent_bits={exponent_bits}, mantissa_bits={mantissa_bits} }}"""
    values = np.array([1e-40, 1.1e-38, 1.2e-38, -3e-45, 3e38, 1.1], np.float32)
    (result,) = run(hlo.parse(text), [values])
    assert np.array_equal(result, np.array(expected, np.float32))
    assert np.array_equal(np.signbit(result), np.signbit(values))


@pytest.mark.parametrize("kind, dtype, allowed", [
    ("f64", np.float64, 2.0**-50), ("f32", np.float32, 2.0**-23),
    ("f16", np.float16, 0), ("bf16", ml_dtypes.bfloat16, 0),
])  # fmt: skip
def test_erf_is_that_of_scipy(kind: str, dtype: Any, allowed: float) -> None:
    x = np.concatenate([np.linspace(-7, 7, 2003), [0.0, -0.0, INF, -INF, NAN, 1e-40]])
    x = x.astype(dtype)[None]
    text = f"ENTRY e {{ p = {kind}[1,{x.size}] parameter(0) ROOT r = {kind}[1,{x.size}] erf(p) }}"
    (result,) = run(hlo.parse(text), [x])
    expected = erf(x.astype(np.float64)).astype(dtype)
    assert result.dtype == dtype
    assert result.shape == x.shape
    wide, expected = result.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_allclose(wide, expected, rtol=allowed, atol=0)
    np.testing.assert_array_equal(np.signbit(wide), np.signbit(expected))


def test_erf_of_nothing_is_nothing() -> None:
    (result,) = run(
        hlo.parse("ENTRY e { p = f32[0,3] parameter(0) ROOT r = f32[0,3] erf(p) }"),
        [np.zeros((0, 3), np.float32)],
    )
    assert result.shape == (0, 3)

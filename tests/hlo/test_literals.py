"""Literals: their values in NumPy, and invalid literals."""
# ruff: noqa: E501 - a row of a table is a line

from typing import Any

import numpy as np
import pytest

import hlo
from hlo.shapes.literal import array
from hlo.shapes.shape import dtype, parse_shape
from hlo.text.source import HloError

INF, NAN = float("inf"), float("nan")

# fmt: off
VALUES = [
    # shape              text                                            value
    ("f32[]",            "1",                                            1),
    ("f32[]",            "-0",                                           -0.0),
    ("f64[]",            "1e-3",                                         0.001),
    ("f32[]",            "-inf",                                         -INF),
    ("bf16[3]",          "{nan, 7, -nan}",                               [NAN, 7, NAN]),
    ("pred[]",           "true",                                         True),
    ("pred[2,3]",        "{ { 0, 1, 0 }, { 1, 0, 1 } }",                 [[0, 1, 0], [1, 0, 1]]),
    ("s32[2,2]",         "{{1 2} {3, -4}}",                              [[1, 2], [3, -4]]),
    ("s32[2,1]{0,1}",    "{ { /*i1=0*/ 5 }, {/*i1=0*/ 6} }",             [[5], [6]]),
    ("s4[3]",            "{-8, 7, 0}",                                   [-8, 7, 0]),
    ("u64[]",            "18446744073709551615",                         2**64 - 1),
    ("u64[]",            "-1",                                           2**64 - 1),
    ("s64[]",            "-9223372036854775808",                         -(2**63)),
    ("c64[2]",           "{(1, -2), 3}",                                 [1 - 2j, 3]),
    ("c128[]",           "(-inf, nan)",                                  complex(-INF, NAN)),
    ("f32[0]",           "{}",                                           []),
    ("f32[2,0,3]",       "{ { /*i0=0*/ }, { /*i0=1*/ } }",               np.empty((2, 0, 3))),
    ("f32[0,3]",         "{}",                                           np.empty((0, 3))),
    ("f32[2,3]",         "5",                                            [[5, 0, 0], [0, 0, 0]]),
    ("s32[1,1]",         "5",                                            [[5]]),
    ("f8e4m3fn[2]",      "{448, -448}",                                  [448, -448]),
]
WRONG = [
    # shape              text                  column  message
    ("f32[]",            "",                   1,      "expected a value in a literal"),
    ("f32[]",            "x",                  1,      "expected a number in a literal"),
    ("f32[]",            "1 2",                3,      "expected the end of the literal in a literal"),
    ("f32[2]",           "{1,{2}}",            4,      "expected a value in a literal"),
    ("f32[2,3]",         "{1, 2, 3}",          2,      "expected `{` in a literal"),
    ("f32[2,3]",         "{{1,2,3}}",          9,      "dimension 0 of f32[2,3] has size 2, but the literal has 1 element"),
    ("f32[2]",           "{1,2",               5,      "expected a value in a literal"),
    ("s32[]",            "1.5",                1,      "`1.5` is not a value of s32"),
    ("s32[]",            "true",               1,      "`true` is not a value of s32"),
    ("u4[2]",            "{1, 16}",            5,      "`16` is not a value of u4"),
    ("s4[]",             "-9",                 1,      "`-9` is not a value of s4"),
    ("pred[]",           "2",                  1,      "`2` is not a value of pred"),
    ("f16[2]",           "{1, -65520}",        5,      "the value overflows f16"),
    ("bf16[]",           "1e100",              1,      "the value overflows bf16"),
    ("f64[]",            "1.8e308",            1,      "`1.8e308` is not a value of f64"),
    ("f32[]",            "(1, 2)",             1,      "a pair of numbers is a complex value, but the element type is f32"),
    ("c64[]",            "(1 2)",              4,      "expected `,` between real and imaginary part in a literal"),
    ("bf16[]",           "nan(0x3ff)",         1,      "`nan(0x3ff)` is not a value of bf16"),
    ("(f32[], s32[])",   "(1)",                3,      "expected `,` before element 1 of (f32[], s32[]) in a literal"),
    ("token[]",          "1",                  1,      "a literal must be an array or a tuple, not token[]"),
    ("s32[0]",           "5",                  1,      "s32[0] has no elements, but the literal has a value"),
    ("c64[0]",           "(1, 2)",             1,      "c64[0] has no elements, but the literal has a value"),
    ("s32[2,0]",         "{ {5}, {} }",        4,      "s32[2,0] has no elements, but the literal has a value"),
    ("(s32[0], ())",     "(5, ())",            2,      "s32[0] has no elements, but the literal has a value"),
    ("(s32[0])",         "()",                 2,      "expected a value in a literal"),
    ("s32[0]",           "",                   1,      "expected a value in a literal"),
    ("f32[<=0]",         "-0",                 1,      "f32[<=0] has no elements, but the literal has a value"),
    ("f32[?]",           "0",                  1,      "a literal must have known sizes, but its shape is f32[?]"),
    ("f32[?]",           "{}",                 2,      "a literal must have known sizes, but its shape is f32[?]"),
    ("f32[2,?]",         "{ {1}, {2} }",       4,      "a literal must have known sizes, but its shape is f32[2,?]"),
    ("s32[]",            "9" * 5000,           1,      f"`{'9' * 37}...` is not a value of s32"),
]
# fmt: on


@pytest.mark.parametrize("shape, text, value", VALUES)
def test_a_literal_has_its_value(shape: str, text: str, value: Any) -> None:
    values = array(text, parse_shape(shape))
    assert isinstance(values, np.ndarray)
    kind = dtype(parse_shape(shape).element_type)  # type: ignore[union-attr]  # arrays only
    assert values.dtype == kind
    wanted = np.array(value).astype(kind)
    assert values.shape == wanted.shape
    if kind.name.startswith(("bfloat", "float8")):  # NumPy does not compare NaNs of these types
        values, wanted = values.astype(np.float64), wanted.astype(np.float64)
    np.testing.assert_array_equal(values, wanted)


@pytest.mark.parametrize("shape, text, column, message", WRONG)
def test_an_invalid_literal_is_an_error(shape: str, text: str, column: int, message: str) -> None:
    with pytest.raises(HloError) as caught:
        array(text, parse_shape(shape))
    assert (caught.value.message, caught.value.span.column) == (message, column)
    assert caught.value.code == "literal"


def test_a_tuple_has_a_tuple_of_values() -> None:
    values = array("(1, ({2, 3}, ()))", parse_shape("(f32[], (s32[2], ()))"))
    assert isinstance(values, tuple)
    one, two = values
    assert isinstance(one, np.ndarray)
    assert isinstance(two, tuple)
    assert (float(one), list(two[0]), two[1]) == (1.0, [2, 3], ())


def test_signs_and_payloads_of_nan_are_preserved() -> None:
    values = array("{nan(0x7f), -nan(0x3f), -nan}", parse_shape("bf16[3]"))
    assert isinstance(values, np.ndarray)
    assert [hex(bits) for bits in values.view(np.uint16)] == ["0x7fff", "0xffbf", "0xffc0"]


@pytest.mark.parametrize("text", ["{...}", "...", "{ {...} }"])
def test_an_elided_literal_has_no_value(text: str) -> None:
    with pytest.raises(HloError) as caught:
        array(text, parse_shape("f32[2,3]"))
    assert caught.value.code == "elided"


def test_an_array_larger_than_memory_is_an_error() -> None:
    with pytest.raises(HloError, match="not enough memory"):
        array("1", parse_shape("f32[1000000000,1000000000]"))


@pytest.mark.parametrize("size", [2**62, 2**63 - 1, 2**63, 2**64, 10**40])
def test_a_constant_of_more_elements_than_memory_has_an_error_with_a_place(size: int) -> None:
    errors = []
    try:
        errors = hlo.verify(hlo.parse(f"ENTRY e {{ ROOT c = s32[{size}] constant(1) }}"))
    except hlo.HloError as error:  # XLA's sizes have 63 bits
        errors = [error]
    assert errors[0].span.line == 1

"""Calls of cuBLAS and cuDNN against ops of HLO: proved, and refuted where a step differs."""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np
import pytest

import hlo
from indexing import equivalent
from indexing.equivalence import Differs, Proved
from indexing.execution import run

PARAMETERS: Final = "p = f32[4,4] parameter(0)  q = f32[4,4] parameter(1)  "
DOT: Final = "d = f32[4,4] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}  "
MATRIX: Final = "r = f32[4,4] parameter(2)  "
VECTOR: Final = "b = f32[4] parameter(2)  "
GELU: Final = """
  c = f32[] constant(0.797884583)  cs = f32[4,4] broadcast(c), dimensions={}
  k = f32[] constant(0.044715)  ks = f32[4,4] broadcast(k), dimensions={}
  h = f32[] constant(0.5)  hs = f32[4,4] broadcast(h), dimensions={}
  o = f32[] constant(1)  os = f32[4,4] broadcast(o), dimensions={}
  d2 = f32[4,4] multiply(d, d)  d3 = f32[4,4] multiply(d2, d)  kd = f32[4,4] multiply(ks, d3)
  x = f32[4,4] add(d, kd)  cx = f32[4,4] multiply(cs, x)  t = f32[4,4] tanh(cx)
  ot = f32[4,4] add(os, t)  w = f32[4,4] multiply(hs, ot)  ROOT g = f32[4,4] multiply(d, w) """


def ops(more: str, operand: str = "") -> str:
    return f"ENTRY e {{ {PARAMETERS}{operand}{DOT}{more} }}"


VALUE: Final = "x = f32[4,4] get-tuple-element(c), index=0"


def call(operand: str = "", root: str = f"ROOT {VALUE}", **config: Any) -> str:
    dot = {"lhs_contracting_dimensions": ["1"], "rhs_contracting_dimensions": ["0"]}
    gemm = {"alpha_real": 1, "beta": 0, "alpha_imag": 0, "epilogue": "DEFAULT"} | config
    text = json.dumps({"gemm_backend_config": gemm | {"dot_dimension_numbers": dot}})
    names = "p, q" + "".join([f", {name}" for name in ("r", "b") if f"{name} =" in operand])
    return (
        f"ENTRY e {{ {PARAMETERS}{operand}c = (f32[4,4]{{1,0}}, s8[64]{{0}}) custom-call({names}), "
        f'custom_call_target="__cublas$lt$matmul", backend_config={text}  {root} }}'
    )


SUM: Final = "ROOT s = f32[4,4] add(d, r)"
BIAS: Final = "v = f32[4,4] broadcast(b), dimensions={1}  s = f32[4,4] add(d, v)  "
RELU: Final = (
    "z = f32[] constant(0)  zs = f32[4,4] broadcast(z), dimensions={}  "
    "ROOT m = f32[4,4] maximum(s, zs)"
)
BY_COLUMN: Final = BIAS.replace("={1}", "={0}")
SCALED: Final = (
    "a = f32[] constant(2)  as = f32[4,4] broadcast(a), dimensions={}  "
    "ad = f32[4,4] multiply(as, d)  f = f32[] constant(3)  fs = f32[4,4] broadcast(f), "
    "dimensions={}  fr = f32[4,4] multiply(fs, r)  ROOT s = f32[4,4] add(ad, fr)"
)
# fmt: off
EQUAL: Final = [
    (ops(SUM, MATRIX), call(MATRIX, beta=1), 0),
    (ops(SCALED, MATRIX), call(MATRIX, alpha_real=2, beta=3), 1),
    (ops(f"{BIAS}{RELU}", VECTOR), call(VECTOR, epilogue="BIAS_RELU"), 0),
    (ops(GELU), call(epilogue="GELU"), 1),
]
UNEQUAL: Final = [
    (ops(SUM, MATRIX), call(MATRIX, beta=2)),
    (ops(SUM, MATRIX), call(MATRIX, beta=1, alpha_real=0.5)),
    (ops(SUM, MATRIX), call(MATRIX, beta=1, epilogue="RELU")),
    (ops(f"{BY_COLUMN}{RELU}", VECTOR), call(VECTOR, epilogue="BIAS_RELU")),
    (ops(GELU.replace("0.044715", "0.4")), call(epilogue="GELU")),
    (ops(GELU), call(epilogue="RELU")),
]
# fmt: on


@pytest.mark.parametrize(("before", "after", "laws"), EQUAL)
def test_a_call_is_its_product_and_the_steps_after_it(before: str, after: str, laws: int) -> None:
    modules = hlo.parse(before), hlo.parse(after)
    chance = np.random.default_rng(3)
    shapes: list[Any] = [p.shape for p in modules[0].entry.parameters]
    given = [chance.uniform(-1, 1, shape.dims).astype(np.float32) for shape in shapes]
    (ours,), (theirs,) = [run(module, given) for module in modules]
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    for pair in (modules, modules[::-1]):
        verdict = equivalent(*pair)
        assert isinstance(verdict, Proved), verdict
        assert sum(verdict.laws.values()) == laws


@pytest.mark.parametrize(("before", "after"), UNEQUAL)
def test_a_call_with_another_step_differs(before: str, after: str) -> None:
    for pair in ((before, after), (after, before)):
        verdict = equivalent(*map(hlo.parse, pair))
        assert isinstance(verdict, Differs), verdict


def test_a_bias_on_the_wrong_axis_is_reported_with_an_element() -> None:
    verdict = equivalent(*map(hlo.parse, UNEQUAL[3]))
    assert isinstance(verdict, Differs)
    assert "differs at [" in str(verdict)


def test_a_call_that_both_programs_have_needs_no_law() -> None:
    sums = (
        "ROOT s = f32[4,4] add(x, x)",
        "n = f32[4,4] negate(x)  ROOT s = f32[4,4] subtract(x, n)",
    )
    before, after = [call(root=f"{VALUE}  {text}", epilogue="GELU") for text in sums]
    verdict = equivalent(hlo.parse(before), hlo.parse(after))
    assert isinstance(verdict, Proved), verdict
    assert not verdict.laws

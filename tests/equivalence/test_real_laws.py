"""Rewrites of floats that hold in the reals only: named, counted, and switched off."""

import pytest

import hlo
import indexing.ops  # noqa: F401 - registers the ops
from indexing.equivalence.values.engine import compare_values
from indexing.equivalence.values.results import EqualFormulas

ADD = "add.f { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }"
XY = "x = f32[3] parameter(0)  y = f32[3] parameter(1)"
FIVE = "c = f32[] constant(5)  b = f32[3] broadcast(c), dimensions={}"

# fmt: off
REWRITES = {
    "log(exp(x)) = x": (
        f"{XY}  e = f32[3] exponential(x)  ROOT r = f32[3] log(e)",
        f"{XY}  ROOT r = f32[3] copy(x)"),
    "sqrt(x * x) = |x|": (
        f"{XY}  m = f32[3] multiply(x, x)  ROOT r = f32[3] sqrt(m)",
        f"{XY}  ROOT r = f32[3] abs(x)"),
    "exp(x) * exp(y) = exp(x + y)": (
        f"{XY}  e = f32[3] exponential(x)  f = f32[3] exponential(y)  "
        "ROOT r = f32[3] multiply(e, f)",
        f"{XY}  s = f32[3] add(x, y)  ROOT r = f32[3] exponential(s)"),
    "(x * y) * z = x * (y * z)": (
        f"{XY}  {FIVE}  m = f32[3] multiply(x, b)  ROOT r = f32[3] multiply(m, b)",
        f"{XY}  c = f32[] constant(25)  b = f32[3] broadcast(c), dimensions={{}}  "
        "ROOT r = f32[3] multiply(x, b)"),
    "x / y = x * (1 / y)": (
        f"{XY}  {FIVE}  ROOT r = f32[3] divide(x, b)",
        f"{XY}  c = f32[] constant(0.2)  b = f32[3] broadcast(c), dimensions={{}}  "
        "ROOT r = f32[3] multiply(x, b)"),
    "(x + y) + z = x + (y + z)": (
        f"{XY}  s = f32[3] add(x, y)  ROOT r = f32[3] add(s, x)",
        f"{XY}  s = f32[3] add(x, x)  ROOT r = f32[3] add(y, s)"),
    "select(p, x, -0) = select(p, x, 0)": (
        f"{XY}  p = pred[3] compare(x, y), direction=LT  c = f32[] constant(-0)  "
        "b = f32[3] broadcast(c), dimensions={}  ROOT r = f32[3] select(p, x, b)",
        f"{XY}  p = pred[3] compare(x, y), direction=LT  c = f32[] constant(0)  "
        "b = f32[3] broadcast(c), dimensions={}  ROOT r = f32[3] select(p, x, b)"),
    "z * 1 = z": (
        "z = c64[3] parameter(0)  c = c64[] constant((1,0))  "
        "b = c64[3] broadcast(c), dimensions={}  ROOT r = c64[3] multiply(z, b)",
        "z = c64[3] parameter(0)  ROOT r = c64[3] copy(z)"),
    "sum(c * x) = c * sum(x)": (
        f"{XY}  p = pred[3] compare(x, y), direction=LT  c = f32[] constant(-1)  "
        "b = f32[3] broadcast(c), dimensions={}  z = f32[] constant(0)  "
        "w = f32[3] broadcast(z), dimensions={}  s = f32[3] select(p, b, w)  "
        "ROOT r = f32[] reduce(s, z), dimensions={0}, to_apply=add.f",
        f"{XY}  p = pred[3] compare(x, y), direction=LT  c = f32[] constant(1)  "
        "b = f32[3] broadcast(c), dimensions={}  z = f32[] constant(0)  "
        "w = f32[3] broadcast(z), dimensions={}  s = f32[3] select(p, b, w)  "
        "t = f32[] reduce(s, z), dimensions={0}, to_apply=add.f  ROOT r = f32[] negate(t)"),
    "x + 0 = x": (
        f"{XY}  c = f32[] constant(0)  b = f32[3] broadcast(c), dimensions={{}}  "
        "ROOT r = f32[3] add(x, b)", f"{XY}  ROOT r = f32[3] copy(x)"),
}
# fmt: on


@pytest.mark.parametrize("law", REWRITES)
def test_laws_of_the_reals_are_counted_and_switched_off(law: str) -> None:
    before, after = (hlo.parse(f"{ADD}\nENTRY e {{ {body} }}").entry for body in REWRITES[law])
    (result,) = compare_values(before, after)
    assert isinstance(result, EqualFormulas)
    assert result.laws[law] >= 1
    (strict,) = compare_values(before, after, exact_arithmetic=True)
    assert not strict

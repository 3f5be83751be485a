"""The recompute factor of a fusion, weighed by work, against an enumeration of its loop."""

from __future__ import annotations

from fractions import Fraction

import pytest

import hlo
import indexing
from indexing.memory.movement.recomputation import is_free, weighted_recompute
from indexing.views.module_summary import summary

SOFTMAX_PART = """\
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
f {
  x = f32[3,5] parameter(0)
  e = f32[3,5] exponential(x)
  z = f32[] constant(0)
  s = f32[3] reduce(e, z), dimensions={1}, to_apply=add
  b = f32[3,5] broadcast(s), dimensions={0}
  ROOT d = f32[3,5] divide(e, b)
}
ENTRY m { x = f32[3,5] parameter(0)  ROOT r = f32[3,5] fusion(x), kind=kLoop, calls=f }
"""
# The start of a slice, and a mask of an iota: evaluated for each of the 12 elements.
FREE = """\
f {
  x = f32[16] parameter(0)  i = s32[] parameter(1)
  j = s32[] multiply(i, i)  k = s32[] add(j, i)
  c = s32[4] iota(), iota_dimension=0
  q = s32[4] multiply(c, c)
  y = f32[4] convert(q)
  w = f32[4,3] broadcast(y), dimensions={0}
  s = f32[4] dynamic-slice(x, k), dynamic_slice_sizes={4}
  t = f32[4,3] broadcast(s), dimensions={0}
  ROOT o = f32[4,3] add(t, w)
}
ENTRY m { x = f32[16] parameter(0)  i = s32[] parameter(1)
  ROOT r = f32[4,3] fusion(x, i), kind=kLoop, calls=f }
"""


def factor(text: str) -> Fraction:
    ratio = weighted_recompute(indexing.traffic(hlo.parse(text).entry.root).instructions[0])
    assert isinstance(ratio, Fraction)
    return ratio


def test_the_factor_is_the_mean_weighed_by_work() -> None:
    # each of 15 quotients: an exponential, a sum of 5 exponentials in 4 additions, a division
    again = 15 * (1 + 5 + 4 + 1)
    once = 15 + 3 * 4 + 15
    assert factor(SOFTMAX_PART) == Fraction(again, once)


def test_a_scalar_start_and_an_iota_weigh_nothing() -> None:
    assert factor(FREE) == 1
    fusion = hlo.parse(FREE).computations["f"]
    free = [each.name for each in fusion if is_free(each)]
    assert free == ["i", "j", "k", "c", "q", "y", "w"]


@pytest.mark.parametrize("start", ["f32[4] constant({1,2,3,4})", "f32[4] parameter(2)"])
def test_an_array_of_data_weighs(start: str) -> None:
    """The near miss: the same values from an array that is read."""
    arguments = "x, i, y" if "parameter" in start else "x, i"
    text = (
        FREE.replace("f32[4] convert(q)", start)
        .replace("w = f32[4,3] broadcast(y)", "v = f32[4] negate(y)\n  w = f32[4,3] broadcast(v)")
        .replace("fusion(x, i)", f"fusion({arguments})")
    )
    text = text.replace("ENTRY m {", "ENTRY m { y = f32[4] parameter(2) ")
    assert factor(text) == Fraction(12 + 12, 4 + 12)  # `v` for each of 12 elements, the sum once


def test_scalars_and_iotas_are_no_re_read_operands() -> None:
    module = hlo.parse("""ENTRY e {
      i = s32[4] iota(), iota_dimension=0
      z = f32[] parameter(0)  p = f32[4] parameter(1)
      a = s32[1000,4] broadcast(i), dimensions={1}
      b = f32[1000,4] broadcast(z), dimensions={}
      c = f32[1000,4] broadcast(p), dimensions={1}
      ROOT t = (s32[1000,4], f32[1000,4], f32[1000,4]) tuple(a, b, c) }""")
    assert [each.operand_name for each in summary(module).reread] == ["p"]

"""One function that compilers write in two ways, proved; and near misses, executed.

A row has a program before, one after, and one that differs from the latter in one place.  The
interpreter executes all three on special numbers.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

import hlo
from indexing import equivalent
from indexing.equivalence import Proved
from indexing.execution import run

PREFIX: Final = """
max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] maximum(a, b) }
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
maxn { a = bf16[] parameter(0)  b = bf16[] parameter(1)  ROOT c = bf16[] maximum(a, b) }
addn { a = bf16[] parameter(0)  b = bf16[] parameter(1)  ROOT c = bf16[] add(a, b) }
maxr { a = f32[] parameter(0)  b = f32[] parameter(1)  c = f32[] maximum(a, b)
  d = bf16[] convert(c)  ROOT e = f32[] convert(d) }
addr { a = f32[] parameter(0)  b = f32[] parameter(1)  c = f32[] add(a, b)
  d = bf16[] convert(c)  ROOT e = f32[] convert(d) }
argmax { a = f32[] parameter(0)  i = s32[] parameter(1)  b = f32[] parameter(2)
  j = s32[] parameter(3)  g = pred[] compare(a, b), direction=GT
  n = pred[] compare(a, a), direction=NE  o = pred[] or(g, n)  v = f32[] select(o, a, b)
  k = s32[] select(o, i, j)  ROOT t = (f32[], s32[]) tuple(v, k) }
mixed { a = f32[] parameter(0)  i = s32[] parameter(1)  b = f32[] parameter(2)
  j = s32[] parameter(3)  g = pred[] compare(i, j), direction=GT
  v = f32[] select(g, a, b)
  k = s32[] select(g, i, j)  ROOT t = (f32[], s32[]) tuple(v, k) }
oru8 { a = u8[] parameter(0)  b = u8[] parameter(1)  ROOT c = u8[] or(a, b) }
oru32 { a = u32[] parameter(0)  b = u32[] parameter(1)  ROOT c = u32[] or(a, b) }
less { a = f32[] parameter(0)  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }
ENTRY e { x = f32[4,6] parameter(0)  y = f32[4,6] parameter(1)  z = f32[] constant(0)
  zero = f32[4,6] broadcast(z), dimensions={}  m = f32[] constant(-inf)
  i = s32[4,6] iota(), iota_dimension=1  k = s32[] constant(0)
  """
ARG: Final = "t = (f32[4], s32[4]) reduce(x, i, m, k), dimensions={1}, to_apply=%s"
NARROW: Final = "n = bf16[4,6] convert(x)  w = f32[4,6] convert(n)  "
PACKED: Final = """p = pred[4,6] compare(x, y), direction=LT  n = u32[4,6] convert(p)
  j = u32[4,6] iota(), iota_dimension=1  c5 = u32[] constant(5)
  f5 = u32[4,6] broadcast(c5), dimensions={{}}  h = u32[4,6] subtract(f5, j)
  c3 = u32[] constant(3)  f3 = u32[4,6] broadcast(c3), dimensions={{}}  w = u32[4,6] add(f3, j)
  l = u32[4,6] shift-left(n, {places})  b = {kind}[4,6] convert(l)  zb = {kind}[] constant(0)
  o = {kind}[4] reduce(b, zb), dimensions={{1}}, to_apply=or{kind}
  u = u32[4] convert(o)  v = u32[4,6] broadcast(u), dimensions={{0}}
  c1 = u32[] constant(1)  f1 = u32[4,6] broadcast(c1), dimensions={{}}
  t = u32[4,6] shift-left(f1, {read})  a = u32[4,6] and(t, v)  q = pred[4,6] convert(a)
  ROOT r = f32[4,6] select(q, x, zero)"""
ROUND: Final = "c = bf16[4] convert(%s)  ROOT r = f32[4] convert(c)"

# fmt: off
TABLE: Final = {
    # name: (before, after, near miss)
    "a maximum beside its place": (
        "ROOT r = f32[4] reduce(x, m), dimensions={1}, to_apply=max",
        ARG % "argmax" + "  ROOT r = f32[4] get-tuple-element(t), index=0",
        ARG % "mixed" + "  ROOT r = f32[4] get-tuple-element(t), index=0"),
    "a maximum by comparison": (
        "ROOT r = f32[4,6] maximum(x, y)",
        "g = pred[4,6] compare(x, y), direction=GE  n = pred[4,6] compare(x, x), direction=NE  "
        "o = pred[4,6] or(n, g)  ROOT r = f32[4,6] select(o, x, y)",
        "g = pred[4,6] compare(x, y), direction=GE  n = pred[4,6] compare(y, y), direction=NE  "
        "o = pred[4,6] or(n, g)  ROOT r = f32[4,6] select(o, x, y)"),
    "a minimum by comparison": (
        "ROOT r = f32[4,6] minimum(x, y)",
        "g = pred[4,6] compare(x, y), direction=LT  n = pred[4,6] compare(x, x), direction=NE  "
        "o = pred[4,6] or(n, g)  ROOT r = f32[4,6] select(o, x, y)",
        "g = pred[4,6] compare(x, y), direction=LT  "
        "ROOT r = f32[4,6] select(g, x, y)"),
    "squares of absolute values": (
        "a = f32[4,6] abs(x)  ROOT r = f32[4,6] multiply(a, a)",
        "ROOT r = f32[4,6] multiply(x, x)",
        "a = f32[4,6] abs(x)  ROOT r = f32[4,6] multiply(x, a)"),
    "absolute values are not negative": (
        "a = f32[4,6] abs(x)  p = pred[4,6] compare(a, zero), direction=LT  "
        "ROOT r = f32[4,6] select(p, x, y)",
        "ROOT r = f32[4,6] copy(y)",
        "a = f32[4,6] abs(x)  p = pred[4,6] compare(a, zero), direction=LE  "
        "ROOT r = f32[4,6] select(p, x, y)"),
    "a function of a constant": (
        "h = f32[] constant(-0.7071067)  f = f32[] erf(h)  b = f32[4,6] broadcast(f), "
        "dimensions={}  ROOT r = f32[4,6] multiply(x, b)",
        "f = f32[] constant(-0.68268938)  b = f32[4,6] broadcast(f), dimensions={}  "
        "ROOT r = f32[4,6] multiply(x, b)",
        "f = f32[] constant(-0.6826)  b = f32[4,6] broadcast(f), dimensions={}  "
        "ROOT r = f32[4,6] multiply(x, b)"),
    "a sum of negative constants": (
        "p = pred[4,6] compare(x, y), direction=LT  c = f32[] constant(2)  d = f32[] constant(3)  "
        "b = f32[4,6] broadcast(c), dimensions={}  f = f32[4,6] broadcast(d), dimensions={}  "
        "s = f32[4,6] select(p, b, f)  t = f32[4] reduce(s, z), dimensions={1}, to_apply=add  "
        "ROOT r = f32[4] negate(t)",
        "p = pred[4,6] compare(x, y), direction=LT  c = f32[] constant(-2)  d = f32[] constant(-3) "
        "b = f32[4,6] broadcast(c), dimensions={}  f = f32[4,6] broadcast(d), dimensions={}  "
        "s = f32[4,6] select(p, b, f)  ROOT t = f32[4] reduce(s, z), dimensions={1}, to_apply=add",
        "p = pred[4,6] compare(x, y), direction=LT  c = f32[] constant(-2)  d = f32[] constant(3)  "
        "b = f32[4,6] broadcast(c), dimensions={}  f = f32[4,6] broadcast(d), dimensions={}  "
        "s = f32[4,6] select(p, b, f)  ROOT t = f32[4] reduce(s, z), dimensions={1}, to_apply=add"),
    "a maximum of rounded values": (
        NARROW + "ROOT r = f32[4] reduce(w, m), dimensions={1}, to_apply=max",
        f"a = f32[4] reduce(x, m), dimensions={{1}}, to_apply=max  {ROUND % 'a'}",
        f"a = f32[4] reduce(y, m), dimensions={{1}}, to_apply=max  {ROUND % 'a'}"),
    "a maximum that rounds each result": (
        NARROW + "l = bf16[] constant(-inf)  a = bf16[4] reduce(n, l), dimensions={1}, "
        "to_apply=maxn  ROOT r = f32[4] convert(a)",
        NARROW + "ROOT r = f32[4] reduce(w, m), dimensions={1}, to_apply=maxr",
        "ROOT r = f32[4] reduce(y, m), dimensions={1}, to_apply=maxr"),
    "a sum that rounds each result": (
        NARROW + "l = bf16[] constant(0)  a = bf16[4] reduce(n, l), dimensions={1}, "
        "to_apply=addn  ROOT r = f32[4] convert(a)",
        NARROW + "ROOT r = f32[4] reduce(w, z), dimensions={1}, to_apply=addr",
        NARROW + "v = f32[4,6] add(w, w)  ROOT r = f32[4] reduce(v, z), dimensions={1}, "
        "to_apply=addr"),
    "the sign of a rounded value": (
        "a = f32[4,6] negate(x)  n = bf16[4,6] convert(a)  ROOT r = f32[4,6] convert(n)",
        NARROW + "ROOT r = f32[4,6] negate(w)",
        NARROW + "a = f32[4,6] abs(w)  ROOT r = f32[4,6] negate(a)"),
    "a selected value that is rounded": (
        "p = pred[4,6] compare(x, y), direction=LT  s = f32[4,6] select(p, x, zero)  "
        "a = bf16[4,6] convert(s)  ROOT r = f32[4,6] convert(a)",
        NARROW + "p = pred[4,6] compare(x, y), direction=LT  "
        "ROOT s = f32[4,6] select(p, w, zero)",
        NARROW + "p = pred[4,6] compare(w, y), direction=LT  "
        "ROOT s = f32[4,6] select(p, w, zero)"),
    "a rounded maximum of two": (
        "s = f32[4,6] maximum(x, y)  a = bf16[4,6] convert(s)  ROOT r = f32[4,6] convert(a)",
        NARROW + "v = bf16[4,6] convert(y)  u = f32[4,6] convert(v)  "
        "ROOT s = f32[4,6] maximum(w, u)",
        NARROW + "s = f32[4,6] add(w, y)  a = bf16[4,6] convert(s)  ROOT r = f32[4,6] convert(a)"),
    "predicates in the bits of a number": (
        "p = pred[4,6] compare(x, y), direction=LT  ROOT r = f32[4,6] select(p, x, zero)",
        PACKED.format(kind="u8", places="j", read="j"),
        PACKED.format(kind="u8", places="j", read="h")),
    "predicates in the bits of a number that is too narrow": (
        "p = pred[4,6] compare(x, y), direction=LT  ROOT r = f32[4,6] select(p, x, zero)",
        PACKED.format(kind="u32", places="j", read="j"),
        PACKED.format(kind="u8", places="w", read="w")),
    "rows that are sorted in other shapes": (
        "a = f32[2,2,6] reshape(x)  s = f32[2,2,6] sort(a), dimensions={2}, is_stable=true, "
        "to_apply=less  ROOT r = f32[4,6] reshape(s)",
        "a = f32[6,4] transpose(x), dimensions={1,0}  s = f32[6,4] sort(a), dimensions={0}, "
        "is_stable=true, to_apply=less  ROOT r = f32[4,6] transpose(s), dimensions={1,0}",
        "a = f32[2,12] reshape(x)  s = f32[2,12] sort(a), dimensions={1}, is_stable=true, "
        "to_apply=less  ROOT r = f32[4,6] reshape(s)"),
}
# fmt: on
SPECIAL: Final = [np.nan, np.inf, -np.inf, 0.0, 1.0, -1.0, 1.00390625, 1.0078125, 3.0e38, -2.5]


def module(body: str) -> hlo.Module:
    return hlo.parse(f"{PREFIX}{body} }}")


def values(body: str, seed: int) -> np.ndarray:
    """Return the result on numbers of which every third is special."""
    random = np.random.default_rng(seed)
    inputs = random.normal(size=(2, 4, 6)).astype(np.float32)
    if seed:
        mask = random.random((2, 4, 6)) < 1 / 3
        inputs[mask] = random.choice(SPECIAL, int(mask.sum()))
    with np.errstate(all="ignore"):
        return np.asarray(run(module(body), list(inputs))[0])


@pytest.mark.parametrize("name", TABLE)
def test_one_function_in_two_ways_is_proved(name: str) -> None:
    before, after, _ = TABLE[name]
    verdict = equivalent(module(before), module(after))
    assert isinstance(verdict, Proved), verdict
    assert verdict.level == "values"
    for seed in range(30):
        ours, theirs = values(before, seed), values(after, seed)
        assert np.allclose(ours, theirs, rtol=3e-2, atol=3e-2, equal_nan=True), (seed, ours, theirs)


@pytest.mark.parametrize("name", TABLE)
def test_a_near_miss_is_not_proved(name: str) -> None:
    before, _, other = TABLE[name]
    verdict = equivalent(module(before), module(other))
    assert not isinstance(verdict, Proved) or verdict.level != "values", verdict
    ours, theirs = zip(*[(values(before, s), values(other, s)) for s in range(30)], strict=True)
    differs = [not np.array_equal(a, b, equal_nan=True) for a, b in zip(ours, theirs, strict=True)]
    assert any(differs)

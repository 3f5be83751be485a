"""Decisions of the iteration in computations that the body of a loop calls, by execution."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

import hlo
import indexing
from tests.dataflow.influence import Pokes
from tests.dataflow.loop_judge import miss
from tests.dataflow.random_masks import VALUES
from tests.dataflow.test_given_reads import needed_pairs

STATE: Final = "(s32[], f32[4], f32[4], s32[4])"
# As JAX writes k[i], x[i]: an index from the end if it is negative.
FLAG: Final = """
  i = s32[] parameter(0)  a = f32[4] parameter(1)  x = f32[4] parameter(2)  k = s32[4] parameter(3)
  none = s32[] constant(0)  four = s32[] constant(4)  i4 = s32[] add(i, four)
  is_last = pred[] compare(i, none), direction=LT  at = s32[] select(is_last, i4, i)
  k1 = s32[1] dynamic-slice(k, at), dynamic_slice_sizes={1}  flag = s32[] reshape(k1)
  p = pred[] compare(flag, none), direction=GT
  e = f32[1] dynamic-slice(x, i), dynamic_slice_sizes={1}  v = f32[] reshape(e)
  o = f32[] constant(0)  s = f32[] select(p, v, o)"""
STEPS: Final = {
    "sum": "b = f32[4] broadcast(s), dimensions={}  ROOT r = f32[4] add(a, b)",
    "update": "t = f32[1] reshape(s)  ROOT r = f32[4] dynamic-update-slice(a, t, i)",
    "scatter": """j = s32[1] reshape(i)
      ROOT r = f32[4] scatter(a, j, s), update_window_dims={}, inserted_window_dims={0},
        scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=last""",
    "branch": """t = (s32[], f32[4], f32[4]) tuple(i, x, a)
      ROOT r = f32[4] conditional(p, t, a), true_computation=store, false_computation=keep""",
    "number": """one = s32[] constant(1)  q = s32[] minimum(flag, one)
      t = (s32[], f32[4], f32[4]) tuple(i, x, a)
      ROOT r = f32[4] conditional(q, a, t), branch_computations={keep, store}""",
    "inner": "ROOT r = f32[4] call(p, v, a), to_apply=inner",
    "loop": """t = (s32[], f32[4], s32[4], f32[]) tuple(none, a, k, v)
      w = (s32[], f32[4], s32[4], f32[]) while(t), condition=two, body=each
      ROOT r = f32[4] get-tuple-element(w), index=1""",
}
PROGRAM: Final = f"""
last {{ b = f32[] parameter(0)  ROOT c = f32[] parameter(1) }}
keep {{ ROOT b = f32[4] parameter(0) }}
store {{ t = (s32[], f32[4], f32[4]) parameter(0)  n = s32[] get-tuple-element(t), index=0
  y = f32[4] get-tuple-element(t), index=1  b = f32[4] get-tuple-element(t), index=2
  w = f32[1] dynamic-slice(y, n), dynamic_slice_sizes={{1}}
  ROOT u = f32[4] dynamic-update-slice(b, w, n) }}
inner {{ c = pred[] parameter(0)  v = f32[] parameter(1)  b = f32[4] parameter(2)
  m = f32[4] broadcast(v), dimensions={{}}  cs = pred[4] broadcast(c), dimensions={{}}
  d = f32[4] multiply(b, m)  ROOT z = f32[4] select(cs, d, b) }}
two {{ s = (s32[], f32[4], s32[4], f32[]) parameter(0)  n = s32[] constant(2)
  j = s32[] get-tuple-element(s), index=0  ROOT r = pred[] compare(j, n), direction=LT }}
each {{ s = (s32[], f32[4], s32[4], f32[]) parameter(0)  j = s32[] get-tuple-element(s), index=0
  b = f32[4] get-tuple-element(s), index=1  k = s32[4] get-tuple-element(s), index=2
  v = f32[] get-tuple-element(s), index=3  one = s32[] constant(1)  next = s32[] add(j, one)
  k1 = s32[1] dynamic-slice(k, j), dynamic_slice_sizes={{1}}  g = s32[] reshape(k1)
  c = pred[] compare(g, one), direction=GE  o = f32[] constant(0)  d = f32[] select(c, v, o)
  b1 = f32[1] dynamic-slice(b, j), dynamic_slice_sizes={{1}}  d1 = f32[1] reshape(d)
  m = f32[1] add(b1, d1)  u = f32[4] dynamic-update-slice(b, m, j)
  ROOT t = (s32[], f32[4], s32[4], f32[]) tuple(next, u, k, v) }}
step {{ {FLAG}
  STEP }}
next {{ s = {STATE} parameter(0)  i = s32[] get-tuple-element(s), index=0
  a = f32[4] get-tuple-element(s), index=1  x = f32[4] get-tuple-element(s), index=2
  k = s32[4] get-tuple-element(s), index=3  one = s32[] constant(1)  j = s32[] add(i, one)
  f = f32[4] CALL  ROOT t = {STATE} tuple(j, f, x, k) }}
more {{ s = {STATE} parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(4)  ROOT r = pred[] compare(i, n), direction=LT }}
ENTRY e {{ x = f32[4] parameter(0)  k = s32[4] parameter(1)  zero = s32[] constant(0)
  one = f32[] constant(1)  a = f32[4] broadcast(one), dimensions={{}}
  s = {STATE} tuple(zero, a, x, k)
  w = {STATE} while(s), condition=more, body=next
  ROOT r = f32[4] get-tuple-element(w), index=1 }}
"""
CALLS: Final = {
    "call": "call(i, a, x, k), to_apply=step",
    "fusion": "fusion(i, a, x, k), kind=kLoop, calls=step",
}
KINDS: Final = [
    (step, call)
    for step in STEPS
    for call in CALLS
    if call == "call" or step not in ("branch", "number", "inner", "loop")  # no ops of a fusion
]


def parse(step: str, call: str) -> hlo.Module:
    module = hlo.parse(PROGRAM.replace("STEP", STEPS[step]).replace("CALL", CALLS[call]))
    assert not hlo.verify(module)
    return module


@pytest.mark.parametrize("value", [(1, 0, -3, 2), (0, 0, 0, 0), (9, 1, 1, 1)])
@pytest.mark.parametrize(("step", "call"), KINDS)
def test_given_values_decide_in_called_computations(
    step: str, call: str, value: tuple[int, ...]
) -> None:
    root, k = parse(step, call).entry.root, np.array(value, np.int32)
    answer = indexing.to_parameters(root)
    pairs = set()
    for at in range(4):
        region = answer.at(at, k=k)[0]
        assert isinstance(region, indexing.Region)
        assert region.grade == "exact"
        pairs |= {(at, element) for (element,) in region.elements()}
    assert pairs == needed_pairs(root, k)


@pytest.mark.parametrize(("step", "call"), KINDS)
def test_maps_for_any_values_have_every_dependency(step: str, call: str) -> None:
    module = parse(step, call)
    pokes = Pokes.of(module.entry, 0)
    for place in pokes.places():
        pokes.poke(*place, values=VALUES)
    assert not list(miss(module, pokes))

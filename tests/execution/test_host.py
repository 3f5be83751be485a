"""Host queues, channels, and custom calls supplied by the caller."""

from __future__ import annotations

import pytest

import hlo
from indexing.execution import Environment, run
from tests.execution.arrays import f32, s32

FEEDS = """ENTRY e {
  t = token[] after-all()
  i = ((f32[2], s32[]), token[]) infeed(t)
  d = (f32[2], s32[]) get-tuple-element(i), index=0
  x = f32[2] get-tuple-element(d), index=0
  n = f32[2] negate(x)
  u = token[] get-tuple-element(i), index=1
  o = token[] outfeed(n, u)
  ROOT r = (f32[2], token[]) tuple(n, o)
}"""
CHANNELS = """ENTRY e {
  p = f32[2] parameter(0)
  t = token[] after-all()
  s = (f32[2], u32[], token[]) send(p, t), channel_id=3
  sd = token[] send-done(s), channel_id=3
  r = (f32[2], u32[], token[]) recv(sd), channel_id=3
  rd = (f32[2], token[]) recv-done(r), channel_id=3
  ROOT v = f32[2] get-tuple-element(rd), index=0
}"""


def test_infeed_reads_the_callers_values_and_outfeed_collects_results() -> None:
    world = Environment(infeed=[(f32([1, 2]), s32(7))])
    (actual,) = run(hlo.parse(FEEDS), [], environment=world)
    assert actual.tolist() == [-1, -2]
    assert [value.tolist() for value in world.outfeed] == [[-1, -2]]


def test_an_empty_queue_is_an_error() -> None:
    with pytest.raises(hlo.HloError, match="no value left for infeed") as caught:
        run(hlo.parse(FEEDS), [])
    assert "(f32[2], s32[])" in str(caught.value)


def test_an_infeed_value_of_another_shape_is_an_error() -> None:
    world = Environment(infeed=[f32([1, 2, 3])])
    with pytest.raises(hlo.HloError, match=r"infeed `i`: expected .* got float32\[3\]"):
        run(hlo.parse(FEEDS), [], environment=world)


def test_a_program_receives_its_own_sends() -> None:
    world = Environment()
    (actual,) = run(hlo.parse(CHANNELS), [f32([5, 6])], environment=world)
    assert actual.tolist() == [5, 6]
    assert [value.tolist() for value in world.sent[3]] == [[5, 6]]


def test_the_caller_may_supply_the_values_of_a_channel() -> None:
    world = Environment(received={3: [f32([8, 9])]})
    (actual,) = run(hlo.parse(CHANNELS), [f32([5, 6])], environment=world)
    assert actual.tolist() == [8, 9]


def test_a_custom_call_may_be_a_function_of_the_caller() -> None:
    text = """ENTRY e { p = f32[2] parameter(0)
      ROOT r = (f32[2], s32[]) custom-call(p), custom_call_target="pair" }"""
    world = Environment(targets={"pair": lambda x: (x * 2, s32(len(x)))})
    double, count = run(hlo.parse(text), [f32([1, 2])], environment=world)
    assert (double.tolist(), int(count)) == ([2, 4], 2)
    wrong = Environment(targets={"pair": lambda x: x})
    with pytest.raises(hlo.HloError, match="custom-call `r`: expected"):
        run(hlo.parse(text), [f32([1, 2])], environment=wrong)

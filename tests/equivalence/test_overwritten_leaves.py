"""Loops that write every element of an array, before which it may have any values."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

import hlo
from indexing import equivalent
from indexing.equivalence import Differs, Proved
from indexing.execution import run

TEXT: Final = """HloModule m

body {{
  t = (s32[], f32[6,2], f32[6,2]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  written = f32[6,2] get-tuple-element(t), index=1
  x = f32[6,2] get-tuple-element(t), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  rows = s32[] constant({factor})
  offset = s32[] constant({offset})
  scaled = s32[] multiply(i, rows)
  at = s32[] add(scaled, offset)
  row = f32[{size},2] dynamic-slice(x, i, zero), dynamic_slice_sizes={{{size},2}}
  value = f32[{size},2] {value}
  next = f32[6,2] dynamic-update-slice(written, value, at, zero)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[6,2], f32[6,2]) tuple(j, next, x)
}}

condition {{
  t = (s32[], f32[6,2], f32[6,2]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  end = s32[] constant({end})
  ROOT c = pred[] compare(i, end), direction=LT
}}

ENTRY e {{
  x = f32[6,2] parameter(0)
  start = s32[] constant({start})
  first = f32[] constant({first})
  firsts = f32[6,2] broadcast(first), dimensions={{}}
  t = (s32[], f32[6,2], f32[6,2]) tuple(start, firsts, x)
  w = (s32[], f32[6,2], f32[6,2]) while(t), condition=condition, body=body
  ROOT r = f32[6,2] get-tuple-element(w), index=1
}}
"""
PLAIN: Final = {"factor": 1, "offset": 0, "size": 1, "value": "negate(row)", "start": 0, "end": 6}
OLD: Final = "old = f32[1,2] dynamic-slice(written, i, zero), dynamic_slice_sizes={1,2}\n  "
# fmt: off
WRITTEN: Final = [
    {}, {"factor": -1, "offset": 5}, {"end": 9}, {"size": 2, "end": 5},
    {"factor": 2, "size": 2, "end": 3},
    {"start": -1}, {"offset": 2, "start": -2, "end": 4},
]
LACKING: Final = [
    {"end": 5}, {"start": 1}, {"factor": 2, "end": 3}, {"offset": 1}, {"factor": -1, "offset": 4},
    {"factor": 2, "size": 2, "end": 2}, {"value": "add(row, old)"}, {"end": 0},
    {"offset": 2**31 - 1, "start": 1, "end": 7}, {"factor": -1, "offset": -(2**31), "start": 1},
]
# fmt: on


def module(first: int, changed: dict[str, object]) -> hlo.Module:
    text = TEXT.format(first=first, **{**PLAIN, **changed})
    if "old" in str(changed.get("value")):
        text = text.replace("value = ", f"{OLD}value = ")
    return hlo.parse(text)


def agree(before: hlo.Module, after: hlo.Module) -> bool:
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    (ours,), (theirs,) = run(before, [x]), run(after, [x])
    return bool(np.array_equal(ours, theirs))


@pytest.mark.parametrize("changed", WRITTEN, ids=str)
def test_values_before_a_loop_that_writes_all_elements_do_not_matter(
    changed: dict[str, object],
) -> None:
    before, after = module(0, changed), module(7, changed)
    assert agree(before, after)
    verdict = equivalent(before, after)
    assert isinstance(verdict, Proved), verdict
    assert not verdict.laws


@pytest.mark.parametrize("changed", LACKING, ids=str)
def test_values_that_remain_or_are_read_matter(changed: dict[str, object]) -> None:
    before, after = module(0, changed), module(7, changed)
    assert not agree(before, after)
    assert isinstance(equivalent(before, after), Differs)

"""Executions of computations: trip counts multiply, calls add up, branches may be left out."""

from __future__ import annotations

import hlo
from indexing.memory.executions import executions

PROGRAM = """
twice {{ x = s32[] parameter(0)  ROOT y = s32[] add(x, x) }}
small {{ s = (s32[], s32[]) parameter(0)  k = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)  ROOT r = pred[] compare(k, n), direction=LT }}
inner {{ s = (s32[], s32[]) parameter(0)  k = s32[] get-tuple-element(s), index=0
  x = s32[] get-tuple-element(s), index=1  y = s32[] call(x), to_apply=twice
  z = s32[] call(y), to_apply=twice  one = s32[] constant(1)  j = s32[] add(k, one)
  ROOT t = (s32[], s32[]) tuple(j, z) }}
less {{ s = (s32[], s32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  x = s32[] get-tuple-element(s), index=1  n = s32[] constant(5)
  {condition} }}
outer {{ s = (s32[], s32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  x = s32[] get-tuple-element(s), index=1  zero = s32[] constant(0)
  a = (s32[], s32[]) tuple(zero, x)
  w = (s32[], s32[]) while(a), condition=small, body=inner
  y = s32[] get-tuple-element(w), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
  ROOT t = (s32[], s32[]) tuple(j, y) }}
kept {{ x = s32[] parameter(0)  ROOT y = s32[] copy(x) }}
ENTRY main {{ p = s32[] parameter(0)  zero = s32[] constant(0)
  a = (s32[], s32[]) tuple(zero, p)
  w = (s32[], s32[]) while(a), condition=less, body=outer
  y = s32[] get-tuple-element(w), index=1  z = s32[] call(y), to_apply=twice
  ROOT c = s32[] conditional(p, z, z), branch_computations={{twice, kept}} }}
"""
COUNTED = "ROOT r = pred[] compare(i, n), direction=LT"


def counts(condition: str) -> dict[str, str]:
    module = hlo.parse(PROGRAM.format(condition=condition))
    return {computation.name: str(count) for computation, count in executions(module).items()}


def test_trip_counts_multiply_and_calls_add_up() -> None:
    assert counts(COUNTED) == {
        "main": "1",
        "outer": "5",
        "less": "6",
        "inner": "15",
        "small": "20",
        "twice": "31 to 32",  # 15 · 2 in the loops, one call, perhaps a branch
        "kept": "0 to 1",
    }


def test_an_exit_that_depends_on_data_bounds_or_hides_the_number() -> None:
    both = "a = pred[] compare(i, n), direction=LT  b = pred[] compare(x, n), direction=LT  "
    bounded = counts(f"{both} ROOT r = pred[] and(a, b)")
    assert (bounded["outer"], bounded["less"], bounded["inner"]) == ("0 to 5", "1 to 6", "0 to 15")
    open_ = counts("ROOT r = pred[] compare(x, n), direction=LT")
    assert (open_["outer"], open_["less"], open_["inner"]) == (
        "at least 0",
        "at least 1",
        "at least 0",
    )

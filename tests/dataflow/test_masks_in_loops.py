"""Masks in the bodies of loops, which the iteration or a value outside of the loop decides.

The right pairs are formulas, compared with the maps and with executions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

import hlo
import indexing
from indexing.maps.answers import Unknown
from indexing.maps.regions.region import Region
from tests.dataflow.mask_checks import (
    EXECUTIONS,
    Program,
    Reads,
    check_executions,
    check_given_values,
    check_maps,
)

COUNT: Final = 4
BODY: Final = f"""
  p = (s32[], f32[], f32[{COUNT}], s32[]) parameter(0)
  k = s32[] get-tuple-element(p), index=0
  state = f32[] get-tuple-element(p), index=1
  x = f32[{COUNT}] get-tuple-element(p), index=2
  n = s32[] get-tuple-element(p), index=3
  zero = s32[] constant(0)
  one = s32[] constant(1)
  two = s32[] constant(2)
  nothing = f32[] constant(0)
  row = f32[1] dynamic-slice(x, k), dynamic_slice_sizes={{1}}
  each = f32[] reshape(row)"""
AROUND: Final = f"""
  more {{
    p = (s32[], f32[], f32[{COUNT}], s32[]) parameter(0)
    k = s32[] get-tuple-element(p), index=0
    last = s32[] constant({COUNT})
    ROOT r = pred[] compare(k, last), direction=LT
  }}
  chosen {{
    p = pred[] parameter(0)  a = f32[] parameter(1)  b = f32[] parameter(2)
    ROOT r = f32[] select(p, a, b)
  }}"""
LENGTHS: Final = ({"n": -5}, {"n": 0}, {"n": 1}, {"n": 3}, {"n": 4}, {"n": 2**31 - 1})


def loop(next_state: str, reads: Reads, n: Reads | None = None) -> Program:
    """Return a loop that starts at 0, and computes `next` from `state`, `each`, `k` and `n`.

    Args:
        reads: the elements of x that the result needs.
        n: those of n; None if n decides nothing.
    """
    body = f"""body {{{BODY}
      {next_state}
      after = s32[] add(k, one)
      ROOT r = (s32[], f32[], f32[{COUNT}], s32[]) tuple(after, next, x, n)
    }}"""
    return Program(
        f"""x = f32[{COUNT}] parameter(0)
          n = s32[] parameter(1)
          zero = s32[] constant(0)
          nothing = f32[] constant(0)
          t = (s32[], f32[], f32[{COUNT}], s32[]) tuple(zero, nothing, x, n)
          w = (s32[], f32[], f32[{COUNT}], s32[]) while(t), condition=more, body=body
          ROOT r = f32[] get-tuple-element(w), index=1""",
        {"x": reads, "n": n or (lambda **_: [])},
        values=LENGTHS,
        computations=AROUND + body,
    )


def rows(condition: Callable[..., bool]) -> Reads:
    return lambda n: [(k,) for k in range(COUNT) if condition(k, n)]


PROGRAMS: Final = {
    "even_iterations": loop(
        """half = s32[] remainder(k, two)
           even = pred[] compare(half, zero), direction=EQ
           some = f32[] select(even, each, nothing)
           next = f32[] add(state, some)""",
        rows(lambda k, n: k % 2 == 0),
    ),
    "even_iterations_in_a_called_computation": loop(
        """half = s32[] remainder(k, two)
           even = pred[] compare(half, zero), direction=EQ
           some = f32[] call(even, each, nothing), to_apply=chosen
           next = f32[] add(state, some)""",
        rows(lambda k, n: k % 2 == 0),
    ),
    "up_to_a_length": loop(
        """early = pred[] compare(k, n), direction=LT
           more = f32[] add(state, each)
           next = f32[] call(early, more, state), to_apply=chosen""",
        rows(lambda k, n: k < n),
        lambda n: [()],
    ),
    "one_iteration_that_sets": loop(
        """second = pred[] compare(k, two), direction=EQ
           next = f32[] select(second, each, state)""",
        rows(lambda k, n: k == 2),
    ),
    "one_iteration_that_resets": loop(
        """second = pred[] compare(k, two), direction=EQ
           kept = f32[] select(second, nothing, state)
           next = f32[] add(kept, each)""",
        rows(lambda k, n: k >= 2),
    ),
    "an_iteration_of_run_time_that_resets": loop(
        """now = pred[] compare(k, n), direction=EQ
           kept = f32[] select(now, nothing, state)
           next = f32[] add(kept, each)""",
        rows(lambda k, n: not k < n < COUNT),
        lambda n: [()],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_maps_relate_the_right_pairs(name: str) -> None:
    check_maps(PROGRAMS[name])
    check_given_values(PROGRAMS[name])


@pytest.mark.parametrize("execute", EXECUTIONS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_right_pairs_are_those_of_executions(name: str, execute: Callable[..., Any]) -> None:
    check_executions(PROGRAMS[name], execute)


ROLLED_IN_ODD_ITERATIONS = """
body {
  t = (s32[], f32[10], s32[]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[10] get-tuple-element(t), index=1
  n = s32[] get-tuple-element(t), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  odd = s32[] and(i, one)
  is_odd = pred[] compare(odd, one), direction=EQ
  all = pred[10] broadcast(is_odd), dimensions={}
  a = f32[3] slice(x), slice={[7:10]}
  b = f32[7] slice(x), slice={[0:7]}
  rolled = f32[10] concatenate(a, b), dimensions={0}
  y = f32[10] select(all, rolled, x)
  ROOT r = (s32[], f32[10], s32[]) tuple(next, y, n)
}
condition {
  t = (s32[], f32[10], s32[]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] get-tuple-element(t), index=2
  ROOT less = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[10] parameter(0)
  n = s32[] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[10], s32[]) tuple(zero, x, n)
  w = (s32[], f32[10], s32[]) while(t), condition=condition, body=body
  ROOT y = f32[10] get-tuple-element(w), index=1
}"""


def test_reads_without_the_masks_of_the_iteration_are_not_exact() -> None:
    """The masks of all iterations have no closed form; an iteration that rolls may be none."""
    answer = indexing.to_parameters(hlo.parse(ROLLED_IN_ODD_ITERATIONS).entry.root)
    assert {m.grade for m in answer.maps[0]} == {"may"}
    for count in range(6):
        for element in range(10):
            needed = answer.at(element, n=count)[0]
            assert isinstance(needed, Region)
            elements = needed.elements()
            assert not isinstance(elements, Unknown)
            assert elements.tolist() == [[(element - 3 * (count // 2)) % 10]]

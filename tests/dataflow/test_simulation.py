"""Loops whose integers have no formula, computed one iteration after the other, by execution."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

import hlo
import indexing
from hlo import Module
from indexing.dataflow.evaluation import MOST_ITERATIONS
from tests.dataflow.programs import Run
from tests.dataflow.test_scatters import judge
from tests.oracles import union

LOOP: Final = """
more { s = (s32[], s32[], f32[9], f32[9]) parameter(0)
  i = s32[] get-tuple-element(s), index=0  k = s32[] get-tuple-element(s), index=1
  n = s32[] constant(END)
  ROOT r = pred[] compare(TESTED, n), direction=LT }
next { s = (s32[], s32[], f32[9], f32[9]) parameter(0)
  i = s32[] get-tuple-element(s), index=0  k = s32[] get-tuple-element(s), index=1
  x = f32[9] get-tuple-element(s), index=2  y = f32[9] get-tuple-element(s), index=3
  one = s32[] constant(1)  two = s32[] constant(2)  five = s32[] constant(5)
  j = s32[] add(i, one)
  NEXT
  e = f32[1] dynamic-slice(x, PLACE), dynamic_slice_sizes={1}
  w = f32[9] dynamic-update-slice(y, e, i)
  ROOT t = (s32[], s32[], f32[9], f32[9]) tuple(j, m, x, w) }
ENTRY e { x = f32[9] parameter(0)  y = f32[9] parameter(1)
  zero = s32[] constant(0)  first = s32[] constant(1)
  s = (s32[], s32[], f32[9], f32[9]) tuple(zero, first, x, y)
  w = (s32[], s32[], f32[9], f32[9]) while(s), condition=more, body=next
  ROOT r = f32[9] get-tuple-element(w), index=3 }
"""


def loop(following: str, place: str = "k", tested: str = "i", end: int = 4) -> Module:
    """Return a loop that carries a counter and k, and reads x at a place."""
    text = LOOP.replace("NEXT", following).replace("PLACE", place)
    return hlo.parse(text.replace("TESTED", tested).replace("END", str(end)))


PROGRAMS: Final = [
    ("m = s32[] multiply(i, i)", "m", "i", 4),
    ("m = s32[] multiply(i, i)", "k", "i", 5),
    ("m = s32[] multiply(k, two)", "k", "i", 4),
    ("m = s32[] shift-left(one, i)", "m", "i", 6),
    ("m = s32[] xor(i, two)", "m", "i", 7),
    ("m = s32[] multiply(k, five)  q = s32[] remainder(m, j)", "q", "i", 5),
    ("m = s32[] multiply(k, two)", "k", "k", 9),
    ("d = s32[] multiply(k, two)  m = s32[] add(d, one)", "k", "k", 40),
    ("m = s32[] multiply(k, five)", "i", "k", 400),
    ("c = s32[] constant(-99991)  m = s32[] multiply(k, c)", "i", "k", 400),  # wraps around
]


@pytest.mark.parametrize(("following", "place", "tested", "end"), PROGRAMS)
def test_maps_are_those_of_the_unrolled_loop(
    following: str, place: str, tested: str, end: int
) -> None:
    module = loop(following, place, tested, end)
    answer = judge(module)
    assert {m.grade for maps in answer.maps for m in maps} == {"exact"}
    unrolled = indexing.unroll(module.entry["w"])
    assert isinstance(unrolled, Module)
    other = indexing.to_parameters(unrolled.entry.root)
    assert list(map(union, answer.maps)) == list(map(union, other.maps))


@pytest.mark.parametrize(("following", "place", "tested", "end"), PROGRAMS)
def test_trip_counts_are_those_of_executions(
    following: str, place: str, tested: str, end: int
) -> None:
    module = loop(following, place, tested, end)
    zeros = np.zeros(9, np.float32)
    counter, *_ = Run(module.entry, zeros, zeros).values[(), module.entry["w"]]
    count = indexing.trip_count(module.entry["w"])
    assert isinstance(count, indexing.TripCount)
    assert count.number == counter


def test_many_iterations_are_not_computed() -> None:
    following = "h = s32[] multiply(i, i)  m = s32[] shift-right-logical(h, two)"
    end = (MOST_ITERATIONS[0] + 2) ** 2 // 4
    count = indexing.trip_count(loop(following, "i", "k", end).entry["w"])
    assert isinstance(count, indexing.Unknown)


def test_a_counter_that_data_decides_is_not_known() -> None:
    following = "e0 = f32[1] slice(x), slice={[0:1]}  c = s32[1] convert(e0)  m = s32[] reshape(c)"
    module = loop(following)
    assert {m.grade for m in indexing.to_parameters(module.entry.root).maps[0]} == {"exact"}
    assert isinstance(indexing.trip_count(loop(following, tested="k").entry["w"]), indexing.Unknown)

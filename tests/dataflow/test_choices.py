"""Indices that an argmax, a top-k or a loop finds among known integers, and reducers of choices."""

from __future__ import annotations

from itertools import permutations, product
from typing import Final

import numpy as np
import pytest

import hlo
import indexing
from hlo import Computation
from indexing.dataflow.choices import is_choice
from indexing.dataflow.evaluation import function_of
from tests.dataflow.test_scatters import judge

PARAMETERS: Final = """
  a = s32[] parameter(0)  i = s32[] parameter(1)  b = s32[] parameter(2)  j = s32[] parameter(3)"""
LARGER: Final = "more = pred[] compare(a, b), direction=GT  v = s32[] select(more, a, b)"
FIRST: Final = """same = pred[] compare(a, b), direction=EQ
  before = pred[] compare(i, j), direction=LT  tie = pred[] and(same, before)
  own = pred[] or(more, tie)  k = s32[] select(own, i, j)"""

# fmt: off
REDUCERS: Final = [
    # body                                                                        is a choice
    (f"{LARGER} {FIRST}",                                                         True),
    (f"{LARGER} {FIRST}".replace("GT", "LT"),                                     True),
    (f"{LARGER} {FIRST}".replace("LT", "GT"),                                     True),
    (f"{LARGER} k = s32[] select(more, i, j)",                                    False),
    (f"{LARGER} {FIRST}".replace("GT", "GE", 1),                                  False),
    (f"{LARGER} {FIRST}".replace("or(more", "or(same"),                           False),
    (f"{LARGER} more2 = pred[] compare(i, j), direction=GT  k = s32[] select(more2, i, j)", True),
    (f"{LARGER} k = s32[] add(i, j)",                                             False),
    (f"{LARGER} other = pred[] compare(a, i), direction=GT  k = s32[] select(other, i, j)", False),
    (f"{LARGER} k = s32[] select(more, i, a)",                                    False),
    (f"{LARGER} c = s32[] constant(1)  k = s32[] select(more, i, c)",             False),
]
# fmt: on


def reducer(body: str) -> Computation:
    text = f"f {{ {PARAMETERS} {body}  ROOT t = (s32[], s32[]) tuple(v, k) }}"
    return hlo.parse(f"{text} ENTRY e {{ ROOT p = s32[] parameter(0) }}").computations["f"]


@pytest.mark.parametrize(("body", "expected"), REDUCERS)
def test_a_reducer_is_a_choice_if_no_order_matters(body: str, expected: bool) -> None:
    computation = reducer(body)
    assert is_choice(computation, function_of(computation)) == expected


@pytest.mark.parametrize("body", [body for body, expected in REDUCERS if expected])
def test_choices_have_the_same_results_in_all_orders(body: str) -> None:
    """The results of many sequences, of large and negative integers, from any element."""
    function = function_of(reducer(body))
    numbers = [np.int32(n) for n in (-(2**31), -1, 0, 7, 2**31 - 1)]
    for values in product(numbers, repeat=3):
        pairs = list(zip(values, map(np.int32, (3, -5, 3)), strict=True))
        results = set()
        for one, other, last in permutations(pairs):
            results.add(tuple(map(int, function(*function(*one, *other), *last))))
        assert len(results) == 1


ARGMAX: Final = f"""
first {{ {PARAMETERS} {LARGER} {FIRST}  ROOT t = (s32[], s32[]) tuple(v, k) }}
ENTRY e {{ x = f32[5] parameter(0)  p = s32[5] GIVEN  n = s32[5] iota(), iota_dimension=0
  low = s32[] constant(-9)  zero = s32[] constant(0)
  m = (s32[], s32[]) reduce(p, n, low, zero), dimensions={{0}}, to_apply=first
  k = s32[] get-tuple-element(m), index=1
  ROOT r = f32[1] dynamic-slice(x, k), dynamic_slice_sizes={{1}} }}"""
TOP: Final = """
ENTRY e { x = f32[5] parameter(0)  p = s32[5] GIVEN
  m = (s32[2], s32[2]) topk(p), k=2, largest=true  k = s32[2] get-tuple-element(m), index=1
  ROOT r = f32[2] gather(x, k), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0},
    index_vector_dim=1, slice_sizes={1} }"""
SEARCH: Final = """
more { s = (s32[], s32[], s32[5]) parameter(0)  low = s32[] get-tuple-element(s), index=0
  high = s32[] get-tuple-element(s), index=1  ROOT r = pred[] compare(low, high), direction=LT }
halve { s = (s32[], s32[], s32[5]) parameter(0)  low = s32[] get-tuple-element(s), index=0
  high = s32[] get-tuple-element(s), index=1  p = s32[5] get-tuple-element(s), index=2
  sum = s32[] add(low, high)  two = s32[] constant(2)  middle = s32[] divide(sum, two)
  e = s32[1] dynamic-slice(p, middle), dynamic_slice_sizes={1}  at = s32[] reshape(e)
  four = s32[] constant(4)  below = pred[] compare(at, four), direction=LT
  one = s32[] constant(1)  after = s32[] add(middle, one)
  l = s32[] select(below, after, low)  h = s32[] select(below, high, middle)
  ROOT t = (s32[], s32[], s32[5]) tuple(l, h, p) }
ENTRY e { x = f32[5] parameter(0)  p = s32[5] GIVEN  zero = s32[] constant(0)
  five = s32[] constant(5)  s = (s32[], s32[], s32[5]) tuple(zero, five, p)
  w = (s32[], s32[], s32[5]) while(s), condition=more, body=halve
  k = s32[] get-tuple-element(w), index=0
  ROOT r = f32[1] dynamic-slice(x, k), dynamic_slice_sizes={1} }"""
FOUND: Final = [
    *[(ARGMAX, values) for values in ([3, 9, 2, 9, 0], [-9, -9, -9, -9, -9], [0, 1, 2, 3, 4])],
    *[(TOP, values) for values in ([3, 9, 2, 8, 0], [5, 4, 1, 1, 1], [0, 1, 2, 3, 4])],
    *[(SEARCH, values) for values in ([1, 2, 4, 6, 8], [5, 6, 7, 8, 9], [0, 1, 2, 3, 3])],
]


@pytest.mark.parametrize(("text", "values"), FOUND)
def test_found_indices_are_known(text: str, values: list[int]) -> None:
    constant = f"constant({{{', '.join(map(str, values))}}})"
    answer = judge(hlo.parse(text.replace("GIVEN", constant)))
    assert {m.grade for m in answer.maps[0]} == {"exact"}
    given = indexing.to_parameters(hlo.parse(text.replace("GIVEN", "parameter(1)")).entry.root)
    for at in range(answer.instruction.shape.size):  # type: ignore[union-attr]
        assert str(given.at(at, p=values)[0]) == str(answer.at(at)[0])


@pytest.mark.parametrize("values", [[3, 9, 2, 9, 0], [9, 3, 3, 0, 1]])
def test_top_elements_that_are_equal_have_no_known_place(values: list[int]) -> None:
    constant = f"constant({{{', '.join(map(str, values))}}})"
    root = hlo.parse(TOP.replace("GIVEN", constant)).entry.root
    assert any(m.runtime for m in indexing.to_parameters(root).maps[0])

"""Loops whose counters wrap around, whose conditions are disjunctions or carried flags.

Oracles: the unrolled loop, for the start values around the limits of the type; the number of
iterations of an execution.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import hlo
import indexing
from hlo import Module
from indexing import TripCount, Unknown
from tests.dataflow.influence import Array, read
from tests.dataflow.loop_judge import answers, run_of, unroll
from tests.dataflow.loop_programs import LoopText, value_of
from tests.dataflow.programs import execute_program
from tests.oracles import sampled

UPDATED = """
less {{ s = (s32[], s8[], f32[6], f32[3]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  c = s32[] constant(3)  ROOT r = pred[] compare(i, c), direction=LT }}
next {{
  s = (s32[], s8[], f32[6], f32[3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  p = s8[] get-tuple-element(s), index=1
  x = f32[6] get-tuple-element(s), index=2
  u = f32[3] get-tuple-element(s), index=3
  one = s32[] constant(1)
  j = s32[] add(i, one)
  step = s8[] constant({step})
  q = s8[] add(p, step)
  v = f32[1] dynamic-slice(u, i), dynamic_slice_sizes={{1}}
  k = s8[] convert(i)
  {index}
  y = f32[6] dynamic-update-slice(x, v, at)
  ROOT t = (s32[], s8[], f32[6], f32[3]) tuple(j, {carried}, y, u)
}}
ENTRY e {{ p = s8[] parameter(0)  x = f32[6] parameter(1)  u = f32[3] parameter(2)
  i = s32[] constant(0)  s = (s32[], s8[], f32[6], f32[3]) tuple(i, p, x, u)
  w = (s32[], s8[], f32[6], f32[3]) while(s), condition=less, body=next
  ROOT r = f32[6] get-tuple-element(w), index=2 }}
"""
# fmt: off
INDICES = {
    # next p, and the start index of the update
    "carried":  ("q", "at = s8[] copy(p)"),
    "sum":      ("p", "at = s8[] add(p, k)"),
    "negative": ("q", "z = s8[] constant(0)  n = s8[] constant(6)  pn = s8[] add(p, n)  "
                      "is = pred[] compare(p, z), direction=LT  at = s8[] select(is, pn, p)"),
    "twice":    ("p", "a = s8[] add(p, k)  at = s8[] add(a, p)"),
    "unsigned": ("p", "pu = u8[] bitcast-convert(p)  ku = u8[] bitcast-convert(k)  "
                      "a = u8[] add(pu, ku)  at = s8[] bitcast-convert(a)"),
}
# fmt: on
STARTS = [*range(-128, -120), *range(-9, 9), *range(120, 128)]


@pytest.mark.parametrize(("name", "step"), list(product(INDICES, [1, -1, 100])))
def test_an_index_that_wraps_around_is_exact(name: str, step: int) -> None:
    carried, index = INDICES[name]
    loop = hlo.parse(UPDATED.format(step=step, carried=carried, index=index))
    without = unroll(loop)
    (own,), (other,) = answers(loop), answers(without, exact=True)
    assert {m.grade for maps in own.maps for m in maps} == {"exact"}
    for start in sampled(STARTS, name):
        numbers: Array = np.zeros(6, np.float32)
        arguments: list[Array] = [np.asarray(start, np.int8), numbers, numbers[:3]]
        at = [run_of(each, arguments) for each in (loop, without)]
        for parameter in range(3):
            assert np.array_equal(read(own, parameter, at=at[0]), read(other, parameter, at=at[1]))


def test_an_index_that_wraps_around_too_often_is_the_reason() -> None:
    index = "f = s8[] constant(50)  a = s8[] multiply(p, f)  at = s8[] add(a, k)"
    loop = hlo.parse(UPDATED.format(step=1, carried="p", index=index))
    (answer,) = answers(loop)
    texts = {str(reason) for reasons in answer.reasons[2] for reason in reasons}
    assert texts == {"while `w`: an index may wrap around in s8: `a`"}


def loop_while(condition: str, body: str = "", flag: str = "true") -> Module:
    """Return a loop with a counter from p by 2, and a flag, the value `more` of the body."""
    declared = f"  p = s8[] parameter(0)  q = s8[] parameter(1)  flag = pred[] {flag}"
    update = f"  step = s8[] constant(2)\n  j = s8[] add(i, step)\n{body}"
    more = "more" if "more =" in body else "go"
    return LoopText(
        ["i", "go", "n"],
        ["s8[]", "pred[]", "s8[]"],
        ["p", "flag", "q"],
        ["j", more, "n"],
        condition,
        update,
        declared,
    ).entry.module


A = "  a = pred[] compare(i, n), direction={0}\n"
B = "  c = s8[] constant(9)\n  b = pred[] compare(i, c), direction={0}\n"
MORE = "  d = s8[] constant(11)\n  more = pred[] compare({0}, d), direction={1}"
TRUE, FALSE = "constant(true)", "constant(false)"
# fmt: off
CONDITIONS = [
    # condition                                             body                     first flag
    (A.format("LT") + B.format("LT") + "  ROOT r = pred[] or(a, b)",   "",            TRUE),
    (A.format("LE") + B.format("LT") + "  ROOT r = pred[] or(a, b)",   "",            TRUE),
    (A.format("GT") + B.format("LT") + "  ROOT r = pred[] or(a, b)",   "",            TRUE),
    (A.format("NE") + B.format("LT") + "  ROOT r = pred[] or(a, b)",   "",            TRUE),
    (A.format("GE") + B.format("GE") + "  x = pred[] and(a, b)\n  ROOT r = pred[] not(x)",
     "",                                                                              TRUE),
    ("  ROOT r = pred[] copy(go)",                           MORE.format("i", "LT"),  TRUE),
    ("  ROOT r = pred[] copy(go)",                           MORE.format("j", "LT"),  TRUE),
    ("  ROOT r = pred[] copy(go)",                           MORE.format("j", "LT"),  FALSE),
    ("  ROOT r = pred[] copy(go)",                           MORE.format("j", "LT"),
     "compare(p, q), direction=LT"),
    ("  ROOT r = pred[] not(go)",                            MORE.format("j", "GE"),  FALSE),
    ("  ROOT r = pred[] not(go)",                            MORE.format("j", "GE"),  TRUE),
    (B.format("LT") + "  ROOT r = pred[] and(go, b)",        MORE.format("j", "LT"),  TRUE),
    ("  ROOT r = pred[] copy(go)",
     MORE.format("j", "LT").replace("more", "m") + "\n  more = pred[] and(m, go)",    TRUE),
    ("  ROOT r = pred[] copy(go)",                           "",                      TRUE),
]
# fmt: on


@pytest.mark.parametrize(("condition", "body", "flag"), CONDITIONS)
def test_the_number_of_iterations_is_that_of_executions(
    condition: str, body: str, flag: str
) -> None:
    main = loop_while(condition, body, flag).entry
    count = indexing.trip_count(main.root)
    starts = [-128, -60, -1, 0, 3, 8, 9, 10, 11, 20, 125, 127]
    for p, q in sampled(product(starts, [-128, -3, 7, 9, 12]), condition):
        result = execute_program(main, np.int8(p), np.int8(q))
        if isinstance(count, Unknown):
            continue
        assert result is not None
        iterations = int(result[0])
        assert count.lower <= iterations <= count.upper
        if count.iterations is not None:
            assert value_of(count.iterations, count.runtime, {"p": p, "q": q}) == iterations


# fmt: off
TEXTS = [
    # condition                                                          body     p       trip count
    (A.format("LT") + B.format("LT") + "  ROOT r = pred[] or(a, b)",     "",      "0",    "max"),
    ("  ROOT r = pred[] copy(go)",                     MORE.format("i", "LT"),    "0",    "7"),
    ("  ROOT r = pred[] copy(go)",                     MORE.format("j", "LT"),    "0",    "6"),
    (B.format("LT") + "  ROOT r = pred[] and(go, b)",  MORE.format("j", "LT"),    "0",    "5"),
]
# fmt: on


@pytest.mark.parametrize(("condition", "body", "start", "expected"), TEXTS)
def test_flags_and_disjunctions_are_counted(
    condition: str, body: str, start: str, expected: str
) -> None:
    text = str(loop_while(condition, body, TRUE))
    text = text.replace("%p = s8[] parameter(0)", f"%p = s8[] constant({start})")
    text = text.replace("%q = s8[] parameter(1)", "%q = s8[] constant(20)")
    count = indexing.trip_count(hlo.parse(text).entry.root)
    assert isinstance(count, TripCount)
    assert str(count) == ("10" if expected == "max" else expected)


MIXED = """
less {{ s = (s32[], {kind}[], {kind}[4]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  total = {kind}[] get-tuple-element(s), index=1  c = s32[] constant(4)
  more = pred[] compare(i, c), direction=LT  top = {kind}[] constant(6)
  small = pred[] compare(total, top), direction=LT  ROOT r = pred[] and(more, small) }}
next {{ s = (s32[], {kind}[], {kind}[4]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  total = {kind}[] get-tuple-element(s), index=1  xs = {kind}[4] get-tuple-element(s), index=2
  one = s32[] constant(1)  j = s32[] add(i, one)
  row = {kind}[1] dynamic-slice(xs, i), dynamic_slice_sizes={{1}}  x = {kind}[] reshape(row)
  sum = {kind}[] add(total, x)  ROOT t = (s32[], {kind}[], {kind}[4]) tuple(j, sum, xs) }}
ENTRY e {{ xs = {kind}[4] parameter(0)  i = s32[] constant(0)  zero = {kind}[] constant(0)
  s = (s32[], {kind}[], {kind}[4]) tuple(i, zero, xs)
  w = (s32[], {kind}[], {kind}[4]) while(s), condition=less, body=next
  ROOT r = {kind}[] get-tuple-element(w), index=1 }}
"""


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("s32", "`small` reads carried element {1}, whose step is not loop-invariant"),
        ("f32", "`small` compares f32 values"),
    ],
)
def test_the_reason_of_a_mixed_exit_names_the_data(kind: str, data: str) -> None:
    (answer,) = answers(hlo.parse(MIXED.format(kind=kind)))
    bounds = "the number of iterations is in [0, 4]"
    (text,) = {str(reason) for reasons in answer.reasons[0] for reason in reasons}
    assert text == f"while `w`: the loop's exit depends on data: {data}; {bounds}"


OUTLINED = """
less {{ s = (s32[], s32[], f32[5], f32[5]) parameter(0)  j = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1  ROOT r = pred[] compare(j, n), direction=LT }}
cell {{ s = (s32[], s32[], f32[5], f32[5]) parameter(0)  j = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1  y = f32[5] get-tuple-element(s), index=2
  x = f32[5] get-tuple-element(s), index=3  one = s32[] constant(1)  k = s32[] add(j, one)
  v = f32[1] dynamic-slice(x, j), dynamic_slice_sizes={{1}}
  z = f32[5] dynamic-update-slice(y, v, j)
  ROOT t = (s32[], s32[], f32[5], f32[5]) tuple(k, n, z, x) }}
run {{ s = (s32[], s32[], f32[5], f32[5]) parameter(0)
  ROOT w = (s32[], s32[], f32[5], f32[5]) while(s), condition=less, body=cell }}
more {{ s = (s32[], f32[5], f32[5]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)  ROOT r = pred[] compare(i, three), direction=LT }}
row {{ s = (s32[], f32[5], f32[5]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  y = f32[5] get-tuple-element(s), index=1  x = f32[5] get-tuple-element(s), index=2
  one = s32[] constant(1)  k = s32[] add(i, one)  zero = s32[] constant(0)
  four = s32[] constant(4)  n = s32[] {count}
  t = (s32[], s32[], f32[5], f32[5]) tuple(zero, n, y, x)
  c = (s32[], s32[], f32[5], f32[5]) call(t), to_apply=run
  z = f32[5] get-tuple-element(c), index=2  r = f32[5] negate(z)
  ROOT u = (s32[], f32[5], f32[5]) tuple(k, r, x) }}
ENTRY e {{ x = f32[5] parameter(0)  y = f32[5] parameter(1)  i = s32[] constant(0)
  s = (s32[], f32[5], f32[5]) tuple(i, y, x)
  w = (s32[], f32[5], f32[5]) while(s), condition=more, body=row
  ROOT z = f32[5] get-tuple-element(w), index=1 }}
"""


@pytest.mark.parametrize("count", ["copy(i)", "add(i, one)", "subtract(four, i)", "negate(i)"])
def test_the_bound_of_an_outlined_loop_is_a_formula_of_the_outer_counter(count: str) -> None:
    loop = hlo.parse(OUTLINED.format(count=count))
    (own,), (other,) = answers(loop), answers(unroll(loop), exact=True)
    assert {m.grade for maps in own.maps for m in maps} == {"exact"}
    for parameter in range(2):
        assert np.array_equal(read(own, parameter), read(other, parameter))

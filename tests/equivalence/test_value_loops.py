"""Loops and conditionals with equal formulas, and near misses."""

import pytest

import hlo
import indexing.ops  # noqa: F401 - registers the ops
from indexing.equivalence.values.engine import compare_values


def loop(count: str, factor: str = "2", start: str = "x") -> str:
    """A loop that carries (i, x) and multiplies x by a factor until i is `count`."""
    return f"""HloModule m
    less {{ s = (s32[], f32[3]) parameter(0)  i = s32[] get-tuple-element(s), index=0
      n = s32[] constant({count})  ROOT r = pred[] compare(i, n), direction=LT }}
    next {{ s = (s32[], f32[3]) parameter(0)  i = s32[] get-tuple-element(s), index=0
      x = f32[3] get-tuple-element(s), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
      c = f32[] constant({factor})  b = f32[3] broadcast(c), dimensions={{}}
      y = f32[3] multiply(x, b)  ROOT t = (s32[], f32[3]) tuple(j, y) }}
    ENTRY e {{ x = f32[3] parameter(0)  y = f32[3] parameter(1)  z = s32[] constant(0)
      a = (s32[], f32[3]) tuple(z, {start})
      w = (s32[], f32[3]) while(a), condition=less, body=next
      ROOT r = f32[3] get-tuple-element(w), index=1 }}"""


HOISTED = """HloModule m
    less { s = (f32[3], s32[], s32[], f32[3], f32[3]) parameter(0)
      i = s32[] get-tuple-element(s), index=1  n = s32[] get-tuple-element(s), index=2
      ROOT r = pred[] compare(n, i), direction=GT }
    next { s = (f32[3], s32[], s32[], f32[3], f32[3]) parameter(0)
      i = s32[] get-tuple-element(s), index=1  n = s32[] get-tuple-element(s), index=2
      x = f32[3] get-tuple-element(s), index=0  b = f32[3] get-tuple-element(s), index=3
      dead = f32[3] get-tuple-element(s), index=4  more = f32[3] add(dead, x)
      one = s32[] constant(1)  j = s32[] add(one, i)  y = f32[3] multiply(b, x)
      ROOT t = (f32[3], s32[], s32[], f32[3], f32[3]) tuple(y, j, n, b, more) }
    ENTRY e { x = f32[3] parameter(0)  y = f32[3] parameter(1)  z = s32[] constant(0)
      n = s32[] constant(5)  c = f32[] constant(%s)  b = f32[3] broadcast(c), dimensions={}
      a = (f32[3], s32[], s32[], f32[3], f32[3]) tuple(x, z, n, b, y)
      w = (f32[3], s32[], s32[], f32[3], f32[3]) while(a), condition=less, body=next
      ROOT r = f32[3] get-tuple-element(w), index=0 }"""

MULTIPLIED = """ENTRY e { x = f32[3] parameter(0)  y = f32[3] parameter(1)  c = f32[] constant(2)
    b = f32[3] broadcast(c), dimensions={}  ROOT r = f32[3] multiply(b, x) }"""

BRANCHES = """HloModule m
    minus { p = f32[3] parameter(0)  ROOT n = f32[3] negate(p) }
    same { p = f32[3] parameter(0)  ROOT n = f32[3] copy(p) }
    ENTRY e { x = f32[3] parameter(0)  y = f32[3] parameter(1)  i = s32[] parameter(2)
      ROOT r = f32[3] conditional(i, x, y), branch_computations={%s} }"""
SELECTED = """ENTRY e { x = f32[3] parameter(0)  y = f32[3] parameter(1)  i = s32[] parameter(2)
    n = f32[3] negate(x)  z = s32[] constant(0)  p = pred[] compare(i, z), direction=EQ
    b = pred[3] broadcast(p), dimensions={}  ROOT r = f32[3] select(b, n, y) }"""

# fmt: off
PAIRS = [
    # before           after                      equal
    (loop("5"),        HOISTED % "2",             True),   # reordered, hoisted, dead carries
    (loop("5"),        HOISTED % "3",             False),  # another invariant
    (loop("5"),        loop("6"),                 False),  # another trip count
    (loop("5"),        loop("5", start="y"),      False),  # another initial value
    (loop("1"),        MULTIPLIED,                True),   # one iteration
    (loop("2"),        MULTIPLIED,                False),
    (loop("0"),        "ENTRY e { x = f32[3] parameter(0)  y = f32[3] parameter(1)  "
                       "ROOT r = f32[3] copy(x) }", True),
    (BRANCHES % "minus, same", SELECTED,          True),
    (BRANCHES % "same, minus", SELECTED,          False),
]
# fmt: on


@pytest.mark.parametrize("number", range(len(PAIRS)))
def test_loops_are_compared_by_their_bodies(number: int) -> None:
    before, after, is_equal = PAIRS[number]
    ours, theirs = hlo.parse(before), hlo.parse(after)
    for one, two in ((ours, theirs), (theirs, ours)):
        (result,) = compare_values(one.entry, two.entry)
        assert bool(result) == is_equal, result

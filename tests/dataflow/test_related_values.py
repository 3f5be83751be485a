"""Runtime values that depend on each other: what the program never reads, against executions."""

from __future__ import annotations

import pytest

import hlo
from hlo import Module
from tests.dataflow.test_scatters import judge


def update_with_mask(start: str, limit: str, direction: str = "LE", size: int = 1) -> Module:
    """Return an update of 6 elements at a start, of which a mask chooses some."""
    return hlo.parse(f"""ENTRY e {{
      x = f32[6] parameter(0)  u = f32[{size}] parameter(1)  n = s32[] parameter(2)
      two = s32[] constant(2)  zero = s32[] constant(0)  six = s32[] constant(6)
      is_low = pred[] compare(n, zero), direction=LT
      from_end = s32[] add(n, six)
      {start}
      k = f32[6] dynamic-update-slice(x, u, start)
      i = s32[6] iota(), iota_dimension=0
      {limit}
      c = s32[6] broadcast(limit), dimensions={{}}
      p = pred[6] compare(i, c), direction={direction}
      z = f32[] constant(0)
      b = f32[6] broadcast(z), dimensions={{}}
      ROOT r = f32[6] select(p, k, b)
    }}""")


SAME = "start = s32[] copy(n)"
JAX = "start = s32[] select(is_low, from_end, n)"
LIMIT = "limit = s32[] copy(n)"


@pytest.mark.parametrize("start", [SAME, JAX], ids=["same", "of JAX"])
def test_the_keys_after_an_update_at_the_last_position_are_masked(start: str) -> None:
    answer = judge(update_with_mask(start, LIMIT))
    assert [m.dims[0].bounds for m in answer.maps[0]] == [(0, 4)]


@pytest.mark.parametrize(
    ("start", "limit", "direction", "size"),
    [
        ("start = s32[] add(n, two)", LIMIT, "LE", 1),
        ("start = s32[] subtract(n, two)", LIMIT, "LE", 1),
        (SAME, "limit = s32[] add(n, two)", "LE", 1),
        (SAME, "limit = s32[] subtract(n, two)", "LT", 1),
        (SAME, LIMIT, "GE", 1),
        (SAME, LIMIT, "NE", 1),
        (SAME, LIMIT, "EQ", 1),
        (SAME, LIMIT, "LE", 3),
        (JAX, "limit = s32[] negate(n)", "LT", 2),
        ("start = s32[] minimum(n, two)", LIMIT, "GT", 2),
    ],
)
def test_an_update_and_a_mask_of_one_value(
    start: str, limit: str, direction: str, size: int
) -> None:
    judge(update_with_mask(start, limit, direction, size))


def test_values_of_different_parameters_are_not_related() -> None:
    module = hlo.parse("""ENTRY e {
      x = f32[6] parameter(0)  u = f32[1] parameter(1)  n = s32[] parameter(2)
      m = s32[] parameter(3)
      k = f32[6] dynamic-update-slice(x, u, m)
      i = s32[6] iota(), iota_dimension=0
      c = s32[6] broadcast(n), dimensions={}
      p = pred[6] compare(i, c), direction=LE
      z = f32[] constant(0)
      b = f32[6] broadcast(z), dimensions={}
      ROOT r = f32[6] select(p, k, b)
    }""")
    assert len(judge(module).maps[0]) == 2


def test_values_at_different_elements_of_one_array_are_not_related() -> None:
    module = hlo.parse("""
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
    ENTRY e {
      x = f32[4,4] parameter(0)  n = s32[4] parameter(1)
      rows = s32[4,4] broadcast(n), dimensions={0}
      columns = s32[4,4] broadcast(n), dimensions={1}
      p = pred[4,4] compare(rows, columns), direction=LT
      z = f32[] constant(0)
      b = f32[4,4] broadcast(z), dimensions={}
      s = f32[4,4] select(p, x, b)
      ROOT r = f32[4] reduce(s, z), dimensions={1}, to_apply=add
    }""")
    answer = judge(module)
    assert [str(m) for m in answer.maps[0]] == [
        "(d0)[s0]{rt0, rt1} -> (d0, s0), domain: d0 in [0, 3], s0 in [0, 3], "
        "rt0 in [-2147483648, 2147483646], rt1 in [-2147483647, 2147483647], "
        "rt0 - rt1 in [-4294967295, -1]"
    ]

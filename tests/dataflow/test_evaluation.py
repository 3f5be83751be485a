"""Arrays that depend on constants only are evaluated; others, and roundings of others, are not."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
from indexing.dataflow import evaluation
from indexing.dataflow.evaluation import evaluate_array
from indexing.maps.arrays import ArrayRef

CALLED = """
  less { a = s32[] parameter(0)  b = s32[] parameter(1)
    ROOT l = pred[] compare(a, b), direction=LT }
  sum { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT s = s32[] add(a, b) }
  parity { a = s32[] parameter(0)  b = s32[] parameter(1)  one = s32[] constant(1)
    k = s32[] and(a, one)  m = s32[] and(b, one)  ROOT l = pred[] compare(k, m), direction=LT }
  less_second { a = s32[] parameter(2)  b = s32[] parameter(3)  c = s32[] parameter(0)
    d = s32[] parameter(1)  ROOT l = pred[] compare(b, a), direction=GT }
  last { a = s32[] parameter(0)  ROOT b = s32[] parameter(1) }
  minus { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT s = s32[] subtract(a, b) }
  double { a = s32[4] parameter(0)  ROOT d = s32[4] add(a, a) }
"""
C = """
  c = s32[4] constant({ 3, 1, 2, 0 })
  f = f32[4] convert(c)
  t = f32[4] constant({.1, .1, .1, .1})
"""
TIES = """
  n = s32[4] constant({ 1, 1, 2, 0 })
  s = (s32[4], s32[4]) sort(c, n), dimensions={0},"""
PLACES = "ROOT r = s32[4] get-tuple-element(s), index=0"
CUMSUM = "ROOT r = s32[4] reduce-window(c, z), window={size=4 pad=3_0}"
DIMS = """update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},
  index_vector_dim="""
SCATTER = f"""n = s32[4,1] constant({{ {{0}}, {{0}}, {{1}}, {{-1}} }})
  ROOT s = s32[4] scatter(c, n, c), {DIMS}1"""
SCATTER_UNIQUE = SCATTER.replace("{0}, {0}", "{0}, {2}")
SCATTER_ONE = f"""n = s32[1] constant({{ 2 }})  u = s32[] constant(9)
  ROOT s = s32[4] scatter(c, n, u), {DIMS}0"""


def value(lines: str) -> np.ndarray | None:
    """Return the value of the root of a program that starts with `C`."""
    module = hlo.parse(f"{CALLED} ENTRY e {{ p = s32[4] parameter(0)  {C} {lines} }}")
    return evaluate_array(ArrayRef(module.entry.root))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("ROOT s = s32[4] sort(c), dimensions={0}, to_apply=less", [0, 1, 2, 3]),
        ("ROOT d = s32[4] call(c), to_apply=double", [6, 2, 4, 0]),
        ("z = s32[] constant(0)  ROOT r = s32[] reduce(c, z), dimensions={0}, to_apply=sum", 6),
        ("m = f32[4] multiply(f, t)  ROOT r = pred[4] compare(m, t), direction=GT", [1, 0, 1, 0]),
        ("b = u8[4] convert(c)  ROOT r = u8[4] negate(b)", [253, 255, 254, 0]),
        # elements that tie keep their order
        (f"{TIES} is_stable=true, to_apply=less_second {PLACES}", [0, 3, 1, 2]),
        (f"z = s32[] constant(0)  {CUMSUM}, to_apply=sum", [3, 4, 6, 6]),
        (f"{SCATTER}, to_apply=sum", [7, 3, 2, 0]),
        (f"{SCATTER_UNIQUE}, unique_indices=true, to_apply=last", [3, 2, 1, 0]),
        (f"{SCATTER_ONE}, to_apply=last", [3, 1, 9, 0]),
    ],
)
def test_arrays_of_constants_are_evaluated(lines: str, expected: object) -> None:
    assert np.array_equal(np.asarray(value(lines)), np.asarray(expected))


@pytest.mark.parametrize(
    "lines",
    [
        "ROOT r = s32[4] add(c, p)",
        "ROOT r = u32[] partition-id()",
        "ROOT r = f32[4] exponential(f)",
        # a compiler may fuse, reorder or widen two roundings
        "m = f32[4] multiply(f, t)  ROOT r = f32[4] add(m, t)",
        "m = f32[4] multiply(f, t)  v = f32[4] negate(m)  ROOT r = f32[4] add(v, t)",
        "h = bf16[4] convert(f)  ROOT r = bf16[4] add(h, h)",
        "ROOT r = f32[4] divide(f, t)",
        # the order is undefined: of elements that tie, of a reduction, of updates
        "ROOT s = s32[4] sort(c), dimensions={0}, to_apply=parity",
        f"{TIES} to_apply=less_second {PLACES}",
        "z = s32[] constant(0)  ROOT r = s32[] reduce(c, z), dimensions={0}, to_apply=minus",
        f"z = s32[] constant(0)  {CUMSUM}, to_apply=minus",
        f"{SCATTER}, to_apply=minus",
        f"{SCATTER_ONE}, to_apply=minus",
        "n = s32[4,1] constant({ {0}, {0}, {1}, {1} })  ROOT s = s32[4] scatter(c, n, c), "
        "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
        "index_vector_dim=1, to_apply=last",
        "n = s32[99999] iota(), iota_dimension=0  ROOT r = s32[99999] add(n, n)",
    ],
)
def test_other_arrays_are_not(lines: str) -> None:
    assert value(lines) is None


def test_arrays_beyond_the_limit_are_evaluated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "MAX_KEPT", 4)
    lines = "a = s32[4] add(c, c)  b = s32[4] add(a, c)  ROOT d = s32[4] add(b, a)"
    module = hlo.parse(f"{CALLED} ENTRY e {{ {C} {lines} }}")
    for name in ("b", "d", "a", "d"):
        table = evaluate_array(ArrayRef(module.entry[name]))
        factor = {"a": 2, "b": 3, "d": 5}[name]
        assert np.array_equal(np.asarray(table), factor * np.array([3, 1, 2, 0]))

"""Bounds of starts that are computed at run time, against all values of the argument."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import indexing
from indexing import IndexingMap
from indexing.execution import run

PROGRAM = """
ENTRY e {{
  x = f32[{size}] parameter(0)
  n = {kind}[] parameter(1)
  two = {kind}[] constant(2)
  five = {kind}[] constant(5)
  start = {kind}[] {start}
  ROOT r = f32[1] dynamic-slice(x, start), dynamic_slice_sizes={{1}}
}}"""
STARTS = {
    "clamp(two, n, five)": (2, 5),
    "maximum(n, five)": (5, None),
    "minimum(n, five)": (0, 5),
    "and(n, five)": (0, None),
    "remainder(n, five)": (0, 4),
    "add(n, five)": (0, None),
    "negate(n)": (0, None),
}


def read_by(kind: str, start: str, size: int) -> tuple[IndexingMap, set[int]]:
    """The map of the slice, and the starts for all values of the argument."""
    module = hlo.parse(PROGRAM.format(kind=kind, start=start, size=size))
    (read,) = indexing.to_parameters(module.entry.root).maps[0]
    x = np.arange(size, dtype=np.float32)
    low, high = (-128, 127) if kind == "s8" else (0, 255)
    dtype = np.int8 if kind == "s8" else np.uint8
    starts = {int(run(module, [x, dtype(n)])[0][0]) for n in range(low, high + 1)}
    return read, starts


@pytest.mark.parametrize("size", [4, 9, 200])
@pytest.mark.parametrize("kind", ["s8", "u8"])
@pytest.mark.parametrize("start", STARTS)
def test_no_start_is_outside_of_the_bounds(start: str, kind: str, size: int) -> None:
    read, starts = read_by(kind, start, size)
    low, high = read.runtime[0].variable.bounds
    assert low <= min(starts)
    assert max(starts) <= high
    least, largest = STARTS[start]
    if kind == "s8" and least:  # they are attained
        assert low == min(least, size - 1) == min(starts)
    if kind == "s8" and largest:
        assert high == min(largest, size - 1) == max(starts)


@pytest.mark.parametrize("size", [4, 9, 200])
@pytest.mark.parametrize("kind", ["s8", "u8"])
@pytest.mark.parametrize("start", ["multiply(n, two)", "multiply(n, five)", "shift-left(n, two)"])
def test_a_multiple_has_no_other_remainder(start: str, kind: str, size: int) -> None:
    read, starts = read_by(kind, start, size)
    low, high = read.runtime[0].variable.bounds
    allowed = {n for n in range(low, high + 1) if read.evaluate((0,), (), (n,)) is not None}
    assert starts <= allowed
    if size == 9 and start == "multiply(n, two)":  # a start at the clamp is even, too
        assert starts == allowed == {0, 2, 4, 6, 8}


def test_a_reduction_of_single_elements_is_a_formula() -> None:
    module = hlo.parse("""
        both { a = pred[] parameter(0)  b = pred[] parameter(1)  ROOT c = pred[] and(a, b) }
        ENTRY e {
          x = f32[4] parameter(0)
          y = f32[4] parameter(1)
          row = s32[4,1] iota(), iota_dimension=0
          two = s32[] constant(2)
          twos = s32[4,1] broadcast(two), dimensions={}
          isbelow = pred[4,1] compare(row, twos), direction=LT
          true = pred[] constant(true)
          below = pred[4] reduce(isbelow, true), dimensions={1}, to_apply=both
          ROOT r = f32[4] select(below, x, y)
        }""")
    answer = indexing.to_parameters(module.entry.root)
    assert [str(m) for maps in answer.maps for m in maps] == [
        "(d0) -> (d0), domain: d0 in [0, 1]",
        "(d0) -> (d0), domain: d0 in [2, 3]",
    ]

"""Runs of adjacent elements: brute force sorts the positions of all elements in memory."""

from itertools import groupby, product

import pytest

import hlo
import indexing
from hlo import Shape
from indexing import Tiling, Unknown
from indexing.maps.layouts import physical_map
from indexing.maps.regions.boxes import Box
from indexing.tiling.sets.contiguity import box_runs

LAYOUTS = ["{2,1,0}", "{0,1,2}", "{1,0,2}", "{2,0,1}"]


def shape_of(text: str) -> Shape:
    shape = hlo.parse_shape(text)
    assert isinstance(shape, Shape)
    return shape


def positions(box: Box, shape: Shape) -> list[int]:
    indices = [tuple(row) for row in box.elements().tolist()]
    values = [physical_map(shape).evaluate(index) for index in indices]
    return sorted([value[0] for value in values if value is not None])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_runs_are_those_of_sorted_positions(layout: str) -> None:
    shape = shape_of(f"f32[4,3,6]{layout}")
    strided = product((1, 2, 4), (1, 3), (1, 2, 6)), product((1, 3), (1,), (1, 5))
    for sizes, strides in product(*strided):
        steps = tuple([s if n > 1 else 1 for n, s in zip(sizes, strides, strict=True)])
        if any((n - 1) * s >= d for n, s, d in zip(sizes, steps, shape.dims, strict=True)):
            continue
        box = Box((0, 0, 0), sizes, steps)
        at = positions(box, shape)
        groups = [list(g) for _, g in groupby(enumerate(at), lambda pair: pair[1] - pair[0])]
        runs = box_runs(box, shape)
        assert not isinstance(runs, Unknown)
        assert runs.count * runs.length == len(at)
        if set(steps) == {1}:
            assert (runs.length, runs.count) == (len(groups[0]), len(groups)), (box, layout)
        starts = at[:: runs.length]
        assert at == [start + k for start in starts for k in range(runs.length)]
        assert runs.distance == (starts[1] - starts[0] if len(starts) > 1 else None)


def test_padding_and_tiles_of_a_layout() -> None:
    tiled = box_runs(Box((0, 0), (2, 2), (1, 1)), shape_of("f32[4,4]{1,0:T(2,2)}"))
    assert isinstance(tiled, Unknown)
    assert "has tiles" in tiled.reason


TRANSPOSE = """ENTRY e {
  p = f32[6,5]{1,0} parameter(0)
  ROOT t = f32[5,6]{1,0} transpose(p), dimensions={1,0}
}"""


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ((5, 6), "1 run of 30 elements"),
        ((5, 2), "1 run of 10 elements"),
        ((2, 6), "6 runs of 2 elements, 5 apart"),
        ((1, 4), "4 runs of 1 element, 5 apart"),
    ],
)
def test_the_runs_of_an_operand_are_those_of_its_largest_tile(
    sizes: tuple[int, int], text: str
) -> None:
    tiling = indexing.tile(hlo.parse(TRANSPOSE).entry.root, sizes)
    assert isinstance(tiling, Tiling)
    assert str(tiling.operands[0].contiguous) == text


def test_tiles_that_are_no_boxes_have_no_runs() -> None:
    text = "ENTRY e { p = f32[3,4] parameter(0)  ROOT r = f32[12] reshape(p) }"
    tiling = indexing.tile(hlo.parse(text).entry.root, [5])
    assert isinstance(tiling, Tiling)
    runs = tiling.operands[0].contiguous
    assert isinstance(runs, Unknown)
    assert "needs up to" in runs.reason

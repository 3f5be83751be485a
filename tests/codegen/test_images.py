"""The image of one element under a map, listed by arrays and point by point."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given

import hlo
import indexing
from indexing import IndexingMap
from indexing.codegen import images
from indexing.codegen.images import OperandValues
from tests.oracles import fuzz
from tests.tiling.symbolic.needed import Point
from tests.tiling.symbolic.random_maps import tiled_maps

ROOT = hlo.parse("ENTRY e { p = f32[4] parameter(0)  ROOT r = f32[4] negate(p) }").entry.root
VALUES = OperandValues(ROOT, [[]])
DIVIDED = "(d0)[s0] -> (s0 floordiv (s0 - 7) + 9), domain: d0 in [0, 3], s0 in [0, 30]"


def image_by_points(m: IndexingMap, at: tuple[int, ...]) -> set[tuple[int, ...]]:
    inside = product(*[range(v.lower, v.upper + 1) for v in m.ranges])
    return {element for point in inside if (element := m.evaluate(at, point)) is not None}


@fuzz(100)
@given(tiled_maps())
def test_images_are_those_of_each_point(tiled: tuple[IndexingMap, list[int], Point]) -> None:
    m, _, _ = tiled
    if m.runtime:
        return
    for at in product(*[range(v.lower - 1, v.upper + 2) for v in m.dims]):
        assert images.images(VALUES, m, at) == image_by_points(m, at), (m, at)


@pytest.mark.parametrize(
    "text",
    [
        DIVIDED,
        "(d0)[s0, s1] -> (d0 + s0 * 3, s1), domain: d0 in [0, 3], s0 in [2, 8], s1 in [1, 5], "
        "s0 + s1 in [4, 9], (s0 + d0) mod 2 in [0, 0]",
        "(d0)[s0] -> (), domain: d0 in [0, 3], s0 in [0, 40], d0 + s0 in [41, 43]",
    ],
)
def test_images_of_many_values(text: str) -> None:
    m = indexing.parse_map(text)
    for k in range(-1, 5):
        assert images.images(VALUES, m, (k,)) == image_by_points(m, (k,))

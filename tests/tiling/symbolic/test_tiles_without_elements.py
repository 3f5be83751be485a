"""Tiles that need no element: between those of a phase, and beyond the domain of a map."""

from __future__ import annotations

from itertools import product

import pytest

from indexing import parse_map
from tests.tiling.symbolic.needed import check_tiles

# fmt: off
MAPS = [
    # map, domain, sizes of the array
    # a tile may have no position of the phase: a window of these has no values either
    ("(d0)[s0] -> (s0 + d0 floordiv 2)",
     "d0 in [0, 4], s0 in [0, 2], d0 mod 2 in [0, 0]",                "5"),
    ("(d0)[s0] -> (s0 + d0 floordiv 2)",
     "d0 in [0, 4], s0 in [0, 2], d0 mod 2 in [0, 0]",                "7"),
    ("(d0)[s0] -> (s0 + d0 floordiv 2)",
     "d0 in [1, 9], s0 in [0, 1], d0 mod 2 in [1, 1]",                "12"),
    ("(d0)[s0] -> (s0 + d0 floordiv 3)",
     "d0 in [5, 9], s0 in [0, 2], d0 mod 3 in [2, 2]",                "11"),
    ("(d0) -> (d0 floordiv 3 * 2)", "d0 in [5, 9], d0 mod 3 in [2, 2]", "11"),
    ("(d0) -> (d0 floordiv 3 + 1)", "d0 in [4, 9], d0 mod 3 in [1, 1]", "11"),
    # the point of a tile of size 1 may lie outside of the domain
    ("(d0) -> (d0 floordiv 2, d0 floordiv 3)", "d0 in [1, 4]",        "7"),
    ("(d0) -> (d0 floordiv 2, d0 floordiv 3)", "d0 in [0, 4]",        "7"),
    ("(d0, d1) -> (d0, d0 * 2 + d1 * 2 + d0 floordiv 2)", "d0 in [1, 3], d1 in [0, 2]", "4,3"),
    ("(d0, d1) -> (d0, d0 * 2 + d1 * 2 + d0 floordiv 2)", "d0 in [0, 3], d1 in [0, 2]", "4,3"),
    # two dimensions beyond the domain: the product of two negative sizes is positive
    ("(d0, d1) -> (d0 * 3 + d1)", "d0 in [0, 3], d1 in [0, 2]",       "7,7"),
    ("(d0, d1) -> (d0 * 3 + d1 * 2)", "d0 in [0, 3], d1 in [0, 2]",   "7,7"),
    ("(d0, d1) -> (d0 + d1)", "d0 in [0, 3], d1 in [0, 2]",           "5,6"),
    ("(d0, d1)[s0] -> (d0 + d1 * 2 + s0)",
     "d0 in [0, 3], d1 in [0, 2], s0 in [0, 2]",                      "5,5"),
    # windows on a part of the array, as gradients of windows have them
    ("(d0)[s0] -> (d0 - s0 - 1)", "d0 in [1, 6], s0 in [0, 1], d0 - s0 in [1, 5]", "8"),
    ("(d0)[s0] -> (d0 * -2 + s0)", "d0 in [2, 5], s0 in [0, 2]",       "7"),
    ("(d0)[s0] -> (d0 * 2 + s0)", "d0 in [2, 5], s0 in [0, 0]",       "7"),
    # sizes with runtime variables
    ("(d0){rt0} -> ((d0 + rt0) floordiv 2 + 1)",
     "d0 in [0, 4], rt0 in [0, 2], (d0 + rt0) mod 2 in [0, 0]",       "5"),
    ("(d0)[s0]{rt0} -> ((d0 + rt0) floordiv 2 + s0)",
     "d0 in [0, 4], s0 in [0, 1], rt0 in [0, 2], (d0 + rt0) mod 2 in [0, 0]", "5"),
]
# fmt: on


@pytest.mark.parametrize(("results", "domain", "array"), MAPS)
def test_tiles_without_elements_have_empty_boxes(results: str, domain: str, array: str) -> None:
    m = parse_map(f"{results}, domain: {domain}")
    extents = [int(n) for n in array.split(",")]
    choices = product(product(*[range(1, n + 1) for n in extents]), (1, 2))
    assert sum(check_tiles(m, sizes, extents, seed) for sizes, seed in choices)

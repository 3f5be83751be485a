"""Orders of tiles: permutations of the grid, and the maps of those that are loop nests."""

from __future__ import annotations

from itertools import pairwise, product
from math import prod

import pytest

import indexing
from indexing import BlockOrder

GRIDS = [(4, 4), (8, 8), (1, 1), (5, 3), (2, 4, 4), (7, 8), (0, 3), (3, 0, 2), (6,), ()]


@pytest.mark.parametrize("grid", GRIDS)
def test_orders_are_permutations_and_their_maps_agree(grid: tuple[int, ...]) -> None:
    names = ["row", "column"]
    names += ["grouped:2", "grouped:3", "grouped:99", "morton", "hilbert"] * (len(grid) > 1)
    for name in names:
        order = BlockOrder.parse(name, grid)
        assert sorted(order.tiles()) == list(product(*map(range, grid))), name
        if order.map is not None:
            visits = [order.map.evaluate((k,)) for k in range(prod(grid))]
            assert visits == list(order.tiles())
            assert list(BlockOrder.of_map(order.map, grid).tiles()) == visits


@pytest.mark.parametrize("rows, columns, group", [(8, 4, 2), (7, 5, 3), (3, 6, 8)])
def test_groups_are_those_of_triton(rows: int, columns: int, group: int) -> None:
    """The lines of the tutorial, from `pid` to `pid_m` and `pid_n`."""
    expected = []
    for pid in range(rows * columns):
        num_pid_in_group = group * columns
        first_pid_m = pid // num_pid_in_group * group
        group_size_m = min(rows - first_pid_m, group)
        pid_m = first_pid_m + (pid % num_pid_in_group) % group_size_m
        expected.append((pid_m, (pid % num_pid_in_group) // group_size_m))
    assert list(BlockOrder.parse(f"grouped:{group}", (rows, columns)).tiles()) == expected


def test_the_curve_of_hilbert_steps_to_neighbours() -> None:
    tiles = list(BlockOrder.parse("hilbert", (16, 16)).tiles())
    steps = [abs(a - c) + abs(b - d) for (a, b), (c, d) in pairwise(tiles)]
    assert set(steps) == {1}


def test_orders_that_are_no_permutation_are_refused() -> None:
    with pytest.raises(ValueError, match=r"tile \[0, 0\] is visited 2 times"):
        BlockOrder.of_tiles([(0, 0), (0, 0)], grid=(1, 2))
    with pytest.raises(ValueError, match=r"tile \[0, 1\] is visited 0 times"):
        BlockOrder.of_tiles([(0, 0)], grid=(1, 2))
    with pytest.raises(ValueError, match=r"tile \[0, 2\] is outside of the grid \[1, 2\]"):
        BlockOrder.of_tiles([(0, 0), (0, 2)], grid=(1, 2))
    with pytest.raises(ValueError, match="has 2 indices"):
        BlockOrder.of_tiles([(0,)], grid=(1, 2))
    halves = indexing.parse_map("(d0) -> (d0 floordiv 2, 0), domain: d0 in [0, 3]")
    with pytest.raises(ValueError, match="each tile once"):
        BlockOrder.of_map(halves, grid=(2, 2))
    with pytest.raises(ValueError, match="has 6 tiles"):
        BlockOrder.of_map(halves, grid=(2, 3))
    for name in ("diagonal", "grouped:0", "grouped:"):
        with pytest.raises(ValueError, match="unknown block order"):
            BlockOrder.parse(name, (2, 2))
    with pytest.raises(ValueError, match="needs a grid of at least 2 dimensions"):
        BlockOrder.parse("hilbert", (4,))

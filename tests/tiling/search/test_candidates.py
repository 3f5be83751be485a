"""Tile sizes to try: XLA's enumeration, and refinement against its definition."""

from __future__ import annotations

from itertools import product

import pytest

from indexing.tiling.search.candidate_sizes import SizeChoice, TileSizes, dimension_sizes

# XLA ``xla/codegen/tiling/symbolic_tile_analysis_test.cc``, suite ``GetGoodTilingsTest``
# fmt: off
XLA_TILINGS: list[tuple[tuple[int, ...], list[tuple[int, ...]]]] = [
    # dims    tilings
    ((),      [()]),
    ((1,),    [(1,)]),
    ((2,),    [(1,), (2,)]),
    ((3,),    [(1,), (2,), (3,)]),
    ((4,),    [(1,), (2,), (4,)]),
    ((5,),    [(1,), (2,), (4,), (5,)]),
    ((11,),   [(1,), (2,), (4,), (8,), (11,)]),
    # not in XLA's tests; by ``GetFlatTilingsForInputSpace``
    ((3, 2),  [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)]),
    ((0, 2),  [(0, 1), (0, 2)]),
]
# fmt: on


@pytest.mark.parametrize("dims, tilings", XLA_TILINGS)
def test_xla_enumerates_these_tilings(
    dims: tuple[int, ...], tilings: list[tuple[int, ...]]
) -> None:
    sizes = TileSizes.of(dims, "xla")
    assert list(sizes) == tilings
    assert len(sizes) == len(tilings)


def test_powers_differ_from_xla_only_for_empty_dimensions() -> None:
    for size in range(1, 70):
        assert dimension_sizes(size, "powers") == dimension_sizes(size, "xla")
    assert dimension_sizes(0, "powers") != dimension_sizes(0, "xla")


@pytest.mark.parametrize("size", [1, 2, 6, 12, 13, 64, 97, 360])
def test_divisors_are_all_divisors_and_powers(size: int) -> None:
    expected = {k for k in range(1, size + 1) if size % k == 0 or k & (k - 1) == 0}
    assert dimension_sizes(size, "divisors") == tuple(sorted(expected))
    assert dimension_sizes(size, "all") == tuple(range(1, size + 1))


def tiles(size: int, tile: int) -> list[set[int]]:
    return [set(range(first, min(size, first + tile))) for first in range(0, size, tile)]


@pytest.mark.parametrize("size", [1, 2, 7, 12])
def test_refinement_is_that_of_the_tiles(size: int) -> None:
    sizes = TileSizes.of((size,), "all")
    for inner, outer in product(range(1, size + 3), repeat=2):
        nested = all(any(a <= b for b in tiles(size, outer)) for a in tiles(size, inner))
        # a partial last tile may lie in a larger tile that the other tiles cross
        assert nested or not sizes.refines((inner,), (outer,)), (inner, outer)
        if size % inner == 0:
            assert sizes.refines((inner,), (outer,)) == nested, (inner, outer)


CHOICES: list[SizeChoice] = ["powers", "divisors", "xla", "all"]


@pytest.mark.parametrize("choice", CHOICES)
def test_every_tiling_is_reached_by_refinement(choice: SizeChoice) -> None:
    sizes = TileSizes.of((12, 7), choice)
    reached = set(sizes.coarsest())
    frontier = list(reached)
    while frontier:
        outer = frontier.pop()
        for inner in sizes.finer(outer):
            assert sizes.refines(inner, outer)
            if inner not in reached:
                reached.add(inner)
                frontier.append(inner)
    assert reached == set(sizes)


def test_wrong_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="expected one of powers, divisors, xla, all"):
        TileSizes.of((4,), "fibonacci")  # type: ignore[arg-type]  # the wrong value is tested
    with pytest.raises(ValueError, match="each of the 2 dimensions, not 1"):
        TileSizes.of((4, 5), [[1, 2]])
    with pytest.raises(ValueError, match=r"sizes\[1\]=\[0, 2\].*at least 1"):
        TileSizes.of((4, 5), [[1], [0, 2]])
    with pytest.raises(ValueError, match="size -3: expected at least 0"):
        dimension_sizes(-3, "powers")

"""Boxes that partition an array."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
from indexing.maps.indexing_map import IndexingMap
from indexing.programs.partition import Box, are_disjoint, partition_fault
from simplifier.atoms import Variable
from tests.growth.work import calls_in
from tests.oracles import fuzz


def elements(box: Box) -> set[tuple[int, ...]]:
    return set(product(*[range(lower, upper + 1) for lower, upper in box]))


@st.composite
def boxes(draw: st.DrawFn) -> list[Box]:
    bound = st.integers(0, 4)
    rank = draw(st.integers(0, 3))
    count = draw(st.integers(0, 5))
    corners = [[(draw(bound), draw(bound)) for _ in range(rank)] for _ in range(count)]
    return [[(min(pair), max(pair)) for pair in box] for box in corners]


@fuzz(300)
@given(boxes())
def test_boxes_are_disjoint_if_no_two_share_an_element(drawn: list[Box]) -> None:
    pairs = combinations(map(elements, drawn), 2)
    assert are_disjoint(drawn) is all(one.isdisjoint(other) for one, other in pairs)


def test_boxes_that_no_dimension_separates_are_compared_in_pairs() -> None:
    pinwheel = [
        [(0, 1), (0, 0)],
        [(2, 2), (0, 1)],
        [(1, 2), (2, 2)],
        [(0, 0), (1, 2)],
        [(1, 1), (1, 1)],
    ]
    assert are_disjoint(pinwheel)
    assert not are_disjoint([*pinwheel, [(2, 2), (1, 1)]])


@pytest.mark.parametrize("axis", [0, 1])
def test_boxes_along_one_dimension_are_not_compared_in_pairs(axis: int) -> None:
    def row(n: int) -> int:
        boxes = [[(k, k), (0, 6)][:: 1 - 2 * axis] for k in range(n)]
        return len(boxes) if are_disjoint(boxes) else 0

    (small, _), (large, count) = calls_in(lambda: row(16)), calls_in(lambda: row(256))
    assert count == 256
    assert large / 256 <= 1.2 * small / 16


@pytest.mark.parametrize(
    "domains, is_partition",
    [
        ([[(0, 1)], [(2, 5)]], True),
        ([[(0, 2)], [(1, 3)]], False),  # two overlap and leave out as many elements
        ([[(0, 1)], [(2, 4)]], False),
        ([], False),
    ],
)
def test_elements_have_one_source_if_the_domains_cover_each_once(
    domains: list[Box], is_partition: bool
) -> None:
    root = hlo.parse("ENTRY e { p = f32[6] parameter(0) ROOT r = f32[6] copy(p) }").entry.root
    maps = [IndexingMap.identity((6,)) for _ in domains]
    maps = [
        replace(m, dims=(Variable("d0", *box[0]),), results=(Variable("d0", *box[0]).as_expr(),))
        for m, box in zip(maps, domains, strict=True)
    ]
    assert (partition_fault(root, 6, maps) is None) == is_partition

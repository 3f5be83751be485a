"""A map that leads only to elements to which another map leads is inside the other."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from indexing import IndexingMap, parse_map
from indexing.maps.containment import containers
from indexing.maps.equality import is_contained

# fmt: off
ROWS = [
    # maps, and for each the position of a map that contains it
    (["(d0) -> (d0), domain: d0 in [0, 3]",
      "(d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 3]"],    [1, None]),
    (["(d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 3]",
      "(d0) -> (d0), domain: d0 in [0, 3]",
      "(d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 6]"],    [2, 2, None]),
    (["(d0) -> (d0 + 1), domain: d0 in [0, 3]",    # 4 is outside
      "(d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 3]"],    [None, None]),
    (["(d0) -> (d0), domain: d0 in [0, 4]",    # at d0 = 4
      "(d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 4]"],    [None, None]),
    (["(d0) -> (d0), domain: d0 in [0, 3], d0 mod 2 in [0, 0]",
      "(d0) -> (d0), domain: d0 in [0, 3]"],    [1, None]),
    (["(d0) -> (d0 mod 2 * 2), domain: d0 in [0, 3]",    # as at both ends
      "(d0) -> (d0 floordiv 2 * 2), domain: d0 in [0, 3]"],    [None, None]),
    (["(d0)[s0] -> (s0 * 2), domain: d0 in [0, 3], s0 in [0, 2]",
      "(d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 4], s0 mod 2 in [0, 0]"], [1, None]),
]
# fmt: on


def pairs(m: IndexingMap) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    return set(m.points())


@pytest.mark.parametrize(("texts", "inside"), ROWS)
def test_the_larger_of_two_maps_contains_the_smaller(
    texts: list[str], inside: list[int | None]
) -> None:
    maps = list(map(parse_map, texts))
    assert containers(maps) == inside
    for part, whole in product(maps, repeat=2):
        assert is_contained(part, whole) == (pairs(part) <= pairs(whole))


def test_a_superset_contains_no_exact_map() -> None:
    row = parse_map("(d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 3]")
    one = IndexingMap.identity((4,))
    assert containers([one, row.with_grade("may")]) == [None, None]
    assert containers([one.with_grade("may"), row]) == [1, None]


@pytest.mark.parametrize("position", [0, 70, 140])
def test_the_largest_of_many_maps_contains_the_others(position: int) -> None:
    maps = [IndexingMap.over((3,), lambda d, k=k: [d[0] + k]) for k in range(140)]
    whole = IndexingMap.over((3,), lambda d, s: [s[0]], ranges=(142,))
    maps.insert(position, whole)
    assert containers(maps) == [None if m is whole else position for m in maps]


# fmt: off
WITH_VALUES = [
    # part, whole, and the answer
    ("(d0){rt0} -> (d0), domain: d0 in [0, 3], rt0 in [0, 5], d0 + rt0 in [0, 5]",
     "(d0) -> (d0), domain: d0 in [0, 3]",    True),
    ("(d0) -> (d0), domain: d0 in [0, 3]",                              # not for rt0 = 5
     "(d0){rt0} -> (d0), domain: d0 in [0, 3], rt0 in [0, 5], d0 + rt0 in [0, 5]",    False),
    ("(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 3], rt0 in [0, 5]",
     "(d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 8]",    True),
    ("(d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 8]",
     "(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 3], rt0 in [0, 5]",    False),
    ("(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 3], rt0 in [0, 5]",
     "(d0)[s0]{rt0} -> (s0 + rt0), domain: d0 in [0, 3], s0 in [0, 3], rt0 in [0, 5]",    True),
    ("(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 3], rt0 in [0, 5]",   # another value
     "(d0)[s0]{rt1} -> (s0 + rt1), domain: d0 in [0, 3], s0 in [0, 3], rt1 in [0, 5]",    False),
]
# fmt: on


@pytest.mark.parametrize(("part", "whole", "inside"), WITH_VALUES)
def test_a_map_contains_another_for_every_value_at_run_time(
    part: str, whole: str, inside: bool
) -> None:
    assert is_contained(parse_map(part), parse_map(whole)) is inside
    assert containers([parse_map(part), parse_map(whole)])[0] == (1 if inside else None)


def test_a_map_for_some_values_at_run_time_contains_no_map_for_all_of_them() -> None:
    """The start is clamped to [0, 2]; the larger map is its case for 2."""
    whole = parse_map("(d0)[s0]{rt0} -> (s0), domain: d0 in [0, 3], s0 in [0, 2], rt0 in [2, 2]")
    (rt,) = whole.runtime
    one = parse_map("(d0) -> (1), domain: d0 in [0, 3]")
    assert is_contained(one, replace(whole, runtime=(replace(rt, clamp=(0, 2)),))) is False
    assert is_contained(one, replace(whole, runtime=(replace(rt, clamp=(2, 2)),))) is True

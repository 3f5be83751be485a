"""Coalescing of maps: the union stays; brute force and ISL are the oracles."""

from __future__ import annotations

import hypothesis.strategies as st
import islpy as isl
import pytest
from hypothesis import given

import hlo
import indexing
from indexing import IndexingMap, dims
from indexing.maps import map_set
from indexing.maps.coalescing import FEW, coalesce_maps
from indexing.maps.map_set import MapSet
from indexing.maps.options import Options
from indexing.maps.over_approximation import hull
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.maps.space_pairs import SpacePair
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from tests.oracles import fuzz, union


def maps_of(texts: list[str]) -> list[IndexingMap]:
    return [indexing.parse_map(text) for text in texts]


def texts_of(maps: list[IndexingMap]) -> list[str]:
    return [str(m).replace("\n", " ") for m in maps]


def isl_union(maps: list[IndexingMap]) -> isl.Map:
    """Return the union of maps that ISL reads from their own notation."""
    whole, *others = [isl.Map(str(m.to_isl())) for m in maps]
    for other in others:
        whole = whole.union(other)
    return whole


# fmt: off
TAPS = [f"(d0) -> (d0 - {k}), domain: d0 in [{k}, 7]" for k in range(4)]
JOINED = [
    # maps, and the maps that remain
    (TAPS, ["(d0)[s0] -> (d0 - s0), domain: d0 in [0, 7], s0 in [0, 3], d0 - s0 in [0, 7]"]),
    # a stride between offsets
    ([f"(d0) -> (d0 + {3 * k}), domain: d0 in [0, 8]" for k in range(4)],
     ["(d0)[s0] -> (d0 + s0 * 3), domain: d0 in [0, 8], s0 in [0, 3]"]),
    # neighbouring domains
    ([f"(d0, d1) -> (d1), domain: d0 in [{3 * k}, {3 * k + 2}], d1 in [0, 4]" for k in range(4)],
     ["(d0, d1) -> (d1), domain: d0 in [0, 11], d1 in [0, 4]"]),
    # complementary pieces
    ([f"(d0)[s0] -> (s0), domain: d0 in [0, 9], s0 in [0, 9], d0 - s0 in [{low}, {high}]"
      for low, high in ((-9, -4), (-3, -1), (0, 0), (1, 9))],
     ["(d0)[s0] -> (s0), domain: d0 in [0, 9], s0 in [0, 9]"]),
    # classes of residues
    ([f"(d0) -> (d0 floordiv 4), domain: d0 in [0, 19], d0 mod 4 in [{k}, {k}]" for k in range(4)],
     ["(d0) -> (d0 floordiv 4), domain: d0 in [0, 19]"]),
    # single points
    ([f"(d0) -> (3), domain: d0 in [{k}, {k}]" for k in (1, 3, 5, 7, 9)],
     ["(d0) -> (3), domain: d0 in [1, 9], d0 mod 2 in [1, 1]"]),
    # a pair in each block of two
    (["(d0) -> (d0), domain: d0 in [0, 6], d0 mod 2 in [0, 0]",
      "(d0) -> (d0 + 1), domain: d0 in [0, 6], d0 mod 2 in [0, 0]",
      "(d0) -> (d0 - 1), domain: d0 in [1, 7], d0 mod 2 in [1, 1]",
      "(d0) -> (d0), domain: d0 in [1, 7], d0 mod 2 in [1, 1]"],
     ["(d0)[s0] -> (s0 + (d0 floordiv 2) * 2), domain: d0 in [0, 7], s0 in [0, 1]"]),
]
KEPT = [
    TAPS[:3],                                                           # fewer than a reader minds
    ["(d0, d1) -> (d0, d1), domain: d0 in [0, 4], d1 in [0, 4]",
     "(d0, d1) -> (d1, d0), domain: d0 in [0, 4], d1 in [0, 4]"],       # a transpose
    [f"(d0) -> (d0 + {k}), domain: d0 in [0, 8]" for k in (0, 1, 4, 9)],  # gaps
    [*TAPS[:2], *[text.replace("- ", "+ 8 - ") for text in TAPS[2:]]],
    # a cross: its relation is a diamond, which relates both range variables
    ["(d0, d1) -> (d0, d1), domain: d0 in [0, 6], d1 in [0, 6]",
     "(d0, d1) -> (d0 + 1, d1), domain: d0 in [0, 5], d1 in [0, 6]",
     "(d0, d1) -> (d0 - 1, d1), domain: d0 in [1, 6], d1 in [0, 6]",
     "(d0, d1) -> (d0, d1 + 1), domain: d0 in [0, 6], d1 in [0, 5]",
     "(d0, d1) -> (d0, d1 - 1), domain: d0 in [0, 6], d1 in [1, 6]"],
]
# fmt: on


@pytest.mark.parametrize("texts, expected", JOINED)
def test_maps_are_joined_to_one_with_the_same_union(texts: list[str], expected: list[str]) -> None:
    maps = maps_of(texts)
    joined = coalesce_maps(maps, Options())
    assert texts_of(joined) == expected
    assert union(joined) == union(maps)
    assert isl_union(joined).is_equal(isl_union(maps))
    assert coalesce_maps([m.with_grade("may") for m in maps], Options()) == [
        m.with_grade("may") for m in joined
    ]


@pytest.mark.parametrize("texts", KEPT)
def test_maps_that_a_reader_knows_are_kept(texts: list[str]) -> None:
    maps = maps_of(texts)
    assert coalesce_maps(maps, Options()) == maps


@st.composite
def families(draw: st.DrawFn) -> list[IndexingMap]:
    """Maps from 12 x 4 to 12 x 4: shifts, blocks, classes of residues and triangles."""
    maps = []
    for _ in range(draw(st.integers(4, 10))):
        low = draw(st.integers(0, 11))
        d0, d1 = Variable("d0", low, draw(st.integers(low, 11))), Variable("d1", 0, 3)
        shift, stride = draw(st.integers(-3, 3)), draw(st.sampled_from([1, 1, 2, 3]))
        s0 = Variable("s0", 0, draw(st.sampled_from([0, 1, 4, 11])))
        first = draw(st.sampled_from([d0 + shift, s0 * stride, d0 // 2 + s0, d0 % 4 + shift]))
        second = draw(st.sampled_from([d1 + 0, d1 + 0, d1 * 0 + 2]))
        constraints = [Constraint(first, 0, 11)]
        if draw(st.booleans()):
            residue = draw(st.integers(0, 2))
            constraints.append(Constraint(d0 % 3, residue, residue))
        if draw(st.booleans()):
            constraints.append(Constraint(d0 - first, 0, 11))
        maps.append(
            IndexingMap.of((d0, d1), (first, second), ranges=(s0,), constraints=constraints)
        )
    return [m.simplify() for m in maps]


@given(families(), st.booleans(), st.sampled_from([0, 3]))
@fuzz(150)
def test_any_maps_keep_their_union_grade_by_grade(
    maps: list[IndexingMap], is_readable: bool, may: int
) -> None:
    graded = [m.with_grade("may") if k < may else m for k, m in enumerate(maps)]
    joined = coalesce_maps(graded, Options(), is_readable)
    assert len(joined) <= len(graded)
    for grade in ("exact", "may"):
        before, after = ([m for m in each if m.grade == grade] for each in (graded, joined))
        assert union(after) == union(before)


@given(families(), st.integers(0, 5))
@fuzz(100)
def test_data_and_control_are_not_joined(maps: list[IndexingMap], count: int) -> None:
    """An element that a map of data reads is data."""
    several = MapSet((), SpacePair(dims((12, 4)), (12, 4)))
    control = [m for m in maps[:count] if m not in maps[count:]]
    several.extend(maps, control=control)
    several.coalesce(is_readable=False)
    data = [m for m in maps if m not in control]
    assert union(m for m in several.maps if m not in several.control) == union(data)
    assert union(several.maps) == union(maps)
    assert union(several.control) <= union(control)


def shift_map(k: int, array: str, index: int = 0) -> IndexingMap:
    """Return ``d0 -> d0 + rt0 + k`` with a runtime variable."""
    d0, value = Variable("d0", 0, 7), Variable("rt0", 0, 2)
    rt = RuntimeVariable(value, array, ((d0 // 2 + index),))
    return IndexingMap.of((d0,), (d0 + value + k,), runtime=(rt,))


def test_maps_with_one_runtime_value_are_joined() -> None:
    joined = coalesce_maps([shift_map(k, "n") for k in range(4)], Options())
    assert texts_of(joined) == [
        "(d0)[s0]{rt0} -> (d0 + rt0 + s0), domain: d0 in [0, 7], s0 in [0, 3], rt0 in [0, 2]"
    ]
    (rt,) = joined[0].runtime
    assert (rt.source, str(rt.index[0])) == ("n", "d0 floordiv 2")


def test_maps_with_different_runtime_values_are_not_joined() -> None:
    maps = [shift_map(0, "n"), shift_map(1, "m"), shift_map(2, "n", 1), shift_map(3, "m", 1)]
    assert coalesce_maps(maps, Options(), is_readable=False) == maps
    d0, s0, value = Variable("d0", 0, 7), Variable("s0", 0, 1), Variable("rt0", 0, 2)
    rt = RuntimeVariable(value, "n", (s0.as_expr(),))  # one value for each value of s0
    several = [
        IndexingMap.of((d0,), (d0 + value + k,), ranges=(s0,), runtime=(rt,)) for k in range(4)
    ]
    assert coalesce_maps(several, Options(), is_readable=False) == several


def test_two_points_are_no_line() -> None:
    """A floor division by their distance would relate them, and nothing else."""
    points = maps_of(["(d0) -> (2), domain: d0 in [0, 0]", "(d0) -> (19), domain: d0 in [33, 33]"])
    assert coalesce_maps(points, Options(), is_readable=False) == points


def test_counted_maps_are_not_joined() -> None:
    spaces = SpacePair(dims((8,)), (8,))
    for options in (Options(keep_multiplicity=True), Options(simplify=False)):
        counted = MapSet((), spaces, options)
        counted.extend(maps_of(TAPS))
        counted.coalesce(is_readable=False)
        assert len(counted.maps) == 4


SHIFTED_SUMS = """ENTRY e { x = f32[8] parameter(0)  z = f32[] constant(0)
  s = f32[8] pad(x, z), padding=1_-1  a = f32[8] add(x, s)
  t = f32[8] pad(a, z), padding=2_-2  ROOT r = f32[8] add(a, t) }"""


def test_shifted_sums_have_one_map() -> None:
    entry = hlo.parse(SHIFTED_SUMS).entry
    *_, swept = indexing.all_to_parameters(entry)
    for answer in (indexing.to_parameters(entry.root), swept):
        assert texts_of(list(answer.maps[0])) == [
            "(d0)[s0] -> (d0 - s0), domain: d0 in [0, 7], s0 in [0, 3], d0 - s0 in [0, 7]"
        ]


def test_the_maps_of_a_fusion_are_listed_as_composed() -> None:
    """XLA lists four maps for this fusion; those to parameters are one."""
    body = SHIFTED_SUMS.replace("ENTRY e", "f")
    entry = "x = f32[8] parameter(0)  ROOT r = f32[8] fusion(x), kind=kLoop, calls=f"
    fused = f"{body} ENTRY e {{ {entry} }}"
    root = hlo.parse(fused).entry.root
    assert texts_of(list(indexing.output_to_input(root).maps[0])) == [
        "(d0) -> (d0), domain: d0 in [0, 7]",
        "(d0) -> (d0 - 2), domain: d0 in [2, 7]",
        "(d0) -> (d0 - 1), domain: d0 in [1, 7]",
        "(d0) -> (d0 - 3), domain: d0 in [3, 7]",
    ]
    assert len(indexing.to_parameters(root).maps[0]) == 1
    assert FEW <= 4 <= map_set.MAX_LISTED


# ---------------------------------------------------------------- hulls


@given(families())
@fuzz(150)
def test_a_hull_contains_all_maps_and_keeps_the_dimension_that_they_share(
    maps: list[IndexingMap],
) -> None:
    whole = hull(maps, SpacePair(dims((12, 4)), (12, 4))).simplify()
    assert whole.grade == "may"
    related = union([whole])
    assert related >= union(maps)
    assert {result for _, result in related} <= {(a, b) for a in range(12) for b in range(4)}
    if all(m.results[1] == m.dims[1].as_expr() for m in maps if not m.is_known_empty):
        assert all(point[1] == result[1] for point, result in related)


def test_a_hull_bounds_the_distance_from_a_dimension() -> None:
    maps = maps_of([f"(d0) -> (d0 - {k**2}), domain: d0 in [{k**2}, 32]" for k in range(6)])
    whole = hull(maps, SpacePair(dims((33,)), (33,))).simplify()
    assert texts_of([whole]) == [
        "(d0)[s0] -> (s0), domain: d0 in [0, 32], s0 in [0, 32], d0 - s0 in [0, 25]"
    ]

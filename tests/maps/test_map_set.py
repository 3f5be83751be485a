"""Sets of maps: unions of products, inclusion of boxes, full sets; brute force is the oracle."""

from __future__ import annotations

from itertools import product

import hypothesis.strategies as st
import pytest
from hypothesis import given

import indexing
from indexing import IndexingMap, dims
from indexing.maps import map_set, products
from indexing.maps.map_set import MapSet
from indexing.maps.options import Options
from indexing.maps.simplify import compose_and_simplify
from indexing.maps.space_pairs import SpacePair
from simplifier.atoms import Variable
from tests.oracles import fuzz, relation, union

SIZES = (12, 5)
START = dims((3, 5))


@st.composite
def product_maps(draw: st.DrawFn) -> IndexingMap:
    """A `may` map from 3 x 5 to 12 x 5; each result is a dimension, a constant or a progression."""
    d0, d1 = START
    if draw(st.integers(0, 4)) == 0:
        d0 = Variable("d0", 1, 2)
    ranges: list[Variable] = []
    results = []
    for size in SIZES:
        kind = draw(st.sampled_from(["dimension", "constant", "progression", "progression"]))
        if kind == "dimension":
            results.append(draw(st.sampled_from([d0, d1])) + 0)
        elif kind == "constant":
            results.append(d0 * 0 + draw(st.integers(0, size - 1)))
        else:
            stride = draw(st.sampled_from([-3, -2, -1, 1, 1, 2, 2, 3, 3, 4]))
            first = draw(st.integers(0, size - 1))
            steps = (size - 1 - first) // stride if stride > 0 else first // -stride
            count = draw(st.integers(min(2, steps), steps)) if steps > 1 else steps
            ranges.append(Variable(f"s{len(ranges)}", 0, count))
            results.append(ranges[-1] * stride + first)
    return IndexingMap.of((d0, d1), results, ranges=ranges, grade="may")


@given(st.lists(product_maps(), min_size=1, max_size=8))
@fuzz(150)
def test_united_maps_have_the_same_union(maps: list[IndexingMap]) -> None:
    fewer = products.unite_maps(maps)
    assert len(fewer) <= len(maps)
    assert {m.grade for m in fewer} == {"may"}
    assert union(fewer) == union(maps)


@given(st.lists(product_maps(), min_size=1, max_size=8), st.sampled_from([[], [0], [0, 2]]))
@fuzz(150)
def test_a_set_relates_the_same_elements_as_the_maps_added(
    maps: list[IndexingMap], exact: list[int]
) -> None:
    graded = [m.with_grade("exact") if k in exact else m for k, m in enumerate(maps)]
    added = MapSet((), SpacePair(START, SIZES))
    for m in graded:
        added.extend([m.simplify()])
    assert union(added.effective) == union(maps)


@given(st.lists(product_maps(), min_size=2, max_size=10))
@fuzz(150)
def test_the_index_returns_the_boxes_that_cover_a_box(maps: list[IndexingMap]) -> None:
    candidates = [m for m in maps if products.is_box(m)]
    index = products.BoxIndex(candidates)
    for box in candidates:
        wanted = [other for other in candidates if products.covers(other, box)]
        assert sorted(map(str, index.covering(box))) == sorted(map(str, wanted))
        assert all(relation(box) <= relation(other) for other in wanted)


# fmt: off
UNITED = [
    # maps to p[12,5], and the maps that remain
    (["(d0)[s0] -> (s0 * 2, 3), domain: d0 in [0, 2], s0 in [0, 5]",
      "(d0)[s0] -> (s0 * 2 + 1, 3), domain: d0 in [0, 2], s0 in [0, 5]"],
     ["(d0)[s0] -> (s0, 3), domain: d0 in [0, 2], s0 in [0, 11]"]),
    (["(d0)[s0] -> (s0 * -2 + 10, d0), domain: d0 in [0, 2], s0 in [0, 5]",
      "(d0)[s0] -> (s0 * 2 + 1, d0), domain: d0 in [0, 2], s0 in [0, 4]"],
     ["(d0)[s0] -> (s0, d0), domain: d0 in [0, 2], s0 in [0, 10]"]),
    (["(d0)[s0] -> (s0, 3), domain: d0 in [0, 2], s0 in [0, 3]",
      "(d0) -> (4, 3), domain: d0 in [0, 2]",
      "(d0)[s0] -> (s0, 3), domain: d0 in [0, 2], s0 in [7, 11]"],
     ["(d0)[s0] -> (s0, 3), domain: d0 in [0, 2], s0 in [0, 4]",
      "(d0)[s0] -> (s0, 3), domain: d0 in [0, 2], s0 in [7, 11]"]),
    (["(d0)[s0, s1] -> (s0 * 2, s1), domain: d0 in [0, 2], s0 in [0, 5], s1 in [0, 3]",
      "(d0)[s0, s1] -> (s1 * 2 + 1, s0), domain: d0 in [0, 2], s0 in [0, 3], s1 in [0, 5]",
      "(d0)[s0] -> (s0, 4), domain: d0 in [0, 2], s0 in [0, 11]"],
     ["(d0)[s0, s1] -> (s0, s1), domain: d0 in [0, 2], s0 in [0, 11], s1 in [0, 4]"]),
]
KEPT = [
    # a gap
    ["(d0)[s0] -> (s0 * 3, 3), domain: d0 in [0, 2], s0 in [0, 3]",
     "(d0)[s0] -> (s0 * 3 + 1, 3), domain: d0 in [0, 2], s0 in [0, 3]"],
    # another constant, another dimension, other bounds of a dimension
    ["(d0)[s0] -> (s0 * 2, 3), domain: d0 in [0, 2], s0 in [0, 5]",
     "(d0)[s0] -> (s0 * 2 + 1, 2), domain: d0 in [0, 2], s0 in [0, 5]"],
    ["(d0)[s0] -> (s0 * 2, d0), domain: d0 in [0, 2], s0 in [0, 5]",
     "(d0)[s0] -> (s0 * 2 + 1, 2), domain: d0 in [0, 2], s0 in [0, 5]"],
    ["(d0)[s0] -> (s0 * 2, 3), domain: d0 in [0, 2], s0 in [0, 5]",
     "(d0)[s0] -> (s0 * 2 + 1, 3), domain: d0 in [0, 1], s0 in [0, 5]"],
    # no products: one variable in two results, a constraint, a dimension in the progression
    ["(d0)[s0] -> (s0 * 2, s0), domain: d0 in [0, 2], s0 in [0, 4]",
     "(d0)[s0] -> (s0 * 2 + 1, s0), domain: d0 in [0, 2], s0 in [0, 4]"],
    ["(d0)[s0] -> (s0 * 2, 3), domain: d0 in [0, 2], s0 in [0, 5], d0 + s0 in [0, 4]",
     "(d0)[s0] -> (s0 * 2 + 1, 3), domain: d0 in [0, 2], s0 in [0, 5], d0 + s0 in [0, 4]"],
    ["(d0)[s0] -> (s0 * 2 + d0, 3), domain: d0 in [0, 2], s0 in [0, 4]",
     "(d0)[s0] -> (s0 * 2 + d0 + 1, 3), domain: d0 in [0, 2], s0 in [0, 3]"],
]
# fmt: on


@pytest.mark.parametrize("texts, expected", UNITED)
def test_may_maps_are_united_to_intervals(texts: list[str], expected: list[str]) -> None:
    maps = [indexing.parse_map(text).with_grade("may") for text in texts]
    united = [m.simplify() for m in products.unite_maps(maps)]
    assert [str(m).replace("\n", " ") for m in united] == expected
    assert union(united) == union(maps)
    assert products.unite_maps(united) == united


@pytest.mark.parametrize("texts", KEPT)
def test_maps_whose_union_is_no_product_of_intervals_are_kept(texts: list[str]) -> None:
    maps = [indexing.parse_map(text).with_grade("may") for text in texts]
    assert products.unite_maps(maps) == maps


def test_a_progression_that_is_too_long_is_not_enumerated(monkeypatch: pytest.MonkeyPatch) -> None:
    maps = [indexing.parse_map(text).with_grade("may") for text in UNITED[0][0]]
    monkeypatch.setattr(products, "MAX_SPAN", 11)
    assert products.unite_maps(maps) == maps
    monkeypatch.setattr(products, "MAX_SPAN", 12)
    assert len(products.unite_maps(maps)) == 1


def test_exact_maps_are_not_united_and_multiplicity_is_kept() -> None:
    maps = [indexing.parse_map(text) for text in UNITED[0][0]]
    spaces = SpacePair(dims((3,)), SIZES)
    exact = MapSet((), spaces)
    exact.extend(maps)
    assert list(exact.maps) == maps
    counted = MapSet((), spaces, Options(keep_multiplicity=True))
    counted.extend([m.with_grade("may") for m in maps])
    assert len(counted.maps) == 2


def everything(grade: str) -> IndexingMap:
    full = indexing.parse_map("(d0)[s0] -> (s0), domain: d0 in [0, 39], s0 in [0, 49]")
    return full.with_grade("may") if grade == "may" else full


def test_a_full_may_map_absorbs_all_but_some_exact_maps() -> None:
    """An exact map of everything still replaces it."""
    one = [
        indexing.parse_map(f"(d0) -> (d0 + {k}), domain: d0 in [0, 39]").simplify()
        for k in range(map_set.MAX_EXACT_KEPT - 6)
    ]
    spaces = SpacePair(dims((40,)), (50,))
    for order in ([*one, everything("may")], [everything("may"), *one]):
        full = MapSet((), spaces)
        for m in order:
            full.extend([m])
        assert full.effective == (everything("may"),)
        assert list(full.maps) == [everything("may"), *one]
        full.extend([m.then(m) for m in one if not m.is_identity])
        assert len(full.maps) <= 1 + map_set.MAX_EXACT_KEPT
        full.add_composed(one[:1], [everything("exact")])
        assert everything("exact") in full.effective
        assert everything("may") not in full.maps


def test_too_many_exact_maps_become_one_that_keeps_the_dimensions_they_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(map_set, "MAX_MAPS", 10)
    start, sizes = dims((3, 200)), (3, 600)
    text = "(d0, d1) -> (d0, d1 + {}), domain: d0 in [0, 2], d1 in [0, {}]"
    shifts = [indexing.parse_map(text.format(k, 199)) for k in (0, 100, 210)]
    more = [indexing.parse_map(text.format(3 * k**2, 409)) for k in range(8)]
    many = MapSet((), SpacePair(start, sizes))
    many.add_composed(shifts, more)
    assert [str(m).replace("\n", " ") for m in many.effective] == [
        "(d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 2], d1 in [0, 199], s0 in [0, 556], "
        "d1 - s0 in [-357, 0]"
    ]
    assert [m.grade for m in many.effective] == ["may"]
    assert union([m.then(n) for m, n in product(shifts, more)]) <= union(many.effective)
    far = indexing.parse_map("(d0, d1) -> (d0, d1 + 400), domain: d0 in [0, 1], d1 in [0, 9]")
    many.extend([far])
    assert len(many.effective) == 1
    assert union([far]) <= union(many.effective)
    assert {(point[0], element[0]) for point, element in union(many.effective)} == {
        (k, k) for k in range(3)
    }


# fmt: off
MISSES = [
    # two maps, and if the composition is empty
    ("(d0) -> (d0 + 5), domain: d0 in [0, 3]", "(d0) -> (d0 * 2), domain: d0 in [0, 4]", True),
    ("(d0) -> (d0 + 5), domain: d0 in [0, 3]", "(d0) -> (d0 * 2), domain: d0 in [0, 5]", False),
    ("(d0) -> (d0 + 5), domain: d0 in [0, 3]", "(d0) -> (d0 * 2), domain: d0 in [9, 12]", True),
    ("(d0) -> (d0 + 5), domain: d0 in [0, 3]", "(d0) -> (d0 * 2), domain: d0 in [8, 12]", False),
    ("(d0)[s0] -> (d0, s0), domain: d0 in [0, 3], s0 in [0, 2]",
     "(d0, d1) -> (d0), domain: d0 in [0, 3], d1 in [3, 4]", True),
]
# fmt: on


@pytest.mark.parametrize("first, second, is_empty", MISSES)
def test_a_composition_outside_the_domain_is_empty(first: str, second: str, is_empty: bool) -> None:
    a, b = indexing.parse_map(first), indexing.parse_map(second)
    composed = compose_and_simplify(a, b)
    assert composed.is_known_empty is is_empty
    assert composed == a.then(b).simplify()

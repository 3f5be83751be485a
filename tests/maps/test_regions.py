"""Regions and boxes: brute force counts and compares elements, one by one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
import indexing
from indexing import Box, IndexingMap, Region, Unknown, parse_map
from indexing.maps.indexing_map import Grade
from indexing.maps.regions import boxes as box_algebra
from indexing.maps.regions import needed
from indexing.maps.regions.box_unions import union_of
from indexing.maps.regions.images import image_boxes
from tests.maps.any_maps import any_maps, meaning
from tests.oracles import fuzz

Elements = set[tuple[int, ...]]


@st.composite
def some_boxes(draw: st.DrawFn, rank: int) -> list[Box]:
    def box() -> Box:
        numbers = st.tuples(*[st.integers(1, 5)] * rank)
        strides = st.tuples(*[st.integers(1, 4)] * rank)
        return Box(draw(st.tuples(*[st.integers(-3, 6)] * rank)), draw(numbers), draw(strides))

    return [box() for _ in range(draw(st.integers(1, 4)))]


def inside(box: Box) -> Elements:
    """The elements of a box, from its definition."""
    sides = [
        [offset + stride * k for k in range(size)]
        for offset, size, stride in zip(box.offsets, box.sizes, box.strides, strict=True)
    ]
    return set(product(*sides))


def union(boxes: list[Box]) -> Elements:
    return set[tuple[int, ...]]().union(*map(inside, boxes))


def elements(region: Region) -> Elements:
    """The elements of a region, checked against each other: distinct, sorted, counted."""
    rows = region.elements()
    assert not isinstance(rows, Unknown)
    listed = [tuple(row) for row in rows.tolist()]
    assert listed == sorted(set(listed))
    assert region.count() == len(listed)
    return set(listed)


def reached_elements(m: IndexingMap) -> Elements:
    """The results of a map for all points and runtime values."""
    return {results for pairs in meaning(m).values() for _, results in pairs}


# ---------------------------------------------------------------- boxes


@given(st.data(), st.integers(0, 2))
@fuzz(300)
def test_disjoint_boxes_have_the_elements_of_the_union_once(data: st.DataObject, rank: int) -> None:
    boxes = data.draw(some_boxes(rank))
    separate = union_of([[box] for box in boxes])
    assert union(separate) == union(boxes)
    assert sum(box.count() for box in separate) == len(union(boxes))


@given(st.data(), st.integers(1, 2), st.integers(1, 3))
@fuzz(200)
def test_the_union_of_translated_sets_is_the_translated_union(
    data: st.DataObject, rank: int, count: int
) -> None:
    sets = [union_of([[box] for box in data.draw(some_boxes(rank))]) for _ in range(count)]
    by = data.draw(st.tuples(*[st.integers(-40, 40)] * rank))

    def move(boxes: list[Box]) -> list[Box]:
        offsets = [tuple([o + d for o, d in zip(b.offsets, by, strict=True)]) for b in boxes]
        return [Box(o, b.sizes, b.strides) for o, b in zip(offsets, boxes, strict=True)]

    together = union_of(sets)
    assert union(together) == set[tuple[int, ...]]().union(*map(union, sets))
    assert sum(box.count() for box in together) == len(union(together))
    assert union_of(map(move, sets)) == move(together)


@pytest.mark.parametrize("grade", ["exact", "may"])
def test_the_union_with_nothing_is_the_region(grade: Grade) -> None:
    region = Region(1, (Box((0,), (4,), (1,)), Box((6,), (4,), (1,))), grade)
    nothing = Region.of_boxes((), 1)
    for each in (region | nothing, nothing | region):
        assert (each.pieces, each.grade) == (region.pieces, grade)
    upper = Region(1, (), "may")  # nothing is known to be needed, or some values need nothing
    assert (region | upper).grade == (upper | region).grade == "may"


@given(st.data(), st.integers(0, 2))
@fuzz(300)
def test_intersection_and_difference_of_boxes_agree_with_sets(
    data: st.DataObject, rank: int
) -> None:
    first, second = (data.draw(some_boxes(rank))[0] for _ in range(2))
    shared = box_algebra.intersection(first, second)
    rest = box_algebra.difference(first, second)
    assert (inside(shared) if shared else set()) == inside(first) & inside(second)
    assert union(rest) == inside(first) - inside(second)
    assert sum(box.count() for box in rest) == len(union(rest))


@given(st.data(), st.integers(1, 2))
@fuzz(200)
def test_boxes_of_elements_have_these_elements_once(data: st.DataObject, rank: int) -> None:
    wanted = sorted(union(data.draw(some_boxes(rank))))
    boxes = box_algebra.boxes_of_elements(np.array(wanted))
    assert sorted(union(boxes)) == wanted
    assert sum(box.count() for box in boxes) == len(wanted)


def test_a_box_needs_sizes_and_strides_of_at_least_one() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Box((0,), (0,), (1,))
    with pytest.raises(ValueError, match="at least 1"):
        Box((0,), (3,), (-1,))
    with pytest.raises(ValueError, match="equal lengths"):
        Box((0,), (3, 2), (1,))
    assert Box((4,), (1,), (7,)) == Box((4,), (1,), (1,))


# ---------------------------------------------------------------- images


@given(any_maps())
@fuzz(400)
def test_image_boxes_are_the_image(m: IndexingMap) -> None:
    boxes = image_boxes(
        IndexingMap.of(
            (), m.results, ranges=(*m.dims, *m.ranges), runtime=m.runtime, constraints=m.constraints
        )
    )
    assert boxes is not None, "small images are enumerated"
    assert union(boxes) == reached_elements(m)
    assert sum(box.count() for box in boxes) == len(reached_elements(m))


# fmt: off
IMAGES = [
    # results, domain, boxes
    ("s0 * 4 + s1", "s0 in [0, 9], s1 in [0, 3]", "[0:40]"),
    ("s0 * 4 + s1", "s0 in [0, 9], s1 in [0, 2]", "10 boxes"),
    ("s0 * 4 + s1", "s0 in [0, 9], s1 in [0, 5]", "[0:42]"),
    ("s0 * 2 + s1 * 6", "s0 in [0, 2], s1 in [0, 3]", "[0:23:2]"),
    ("s0 * 2 - s1 * 6", "s0 in [0, 2], s1 in [0, 3]", "[-18:5:2]"),
    ("s1, s0 + 5", "s0 in [0, 2], s1 in [0, 3]", "[0:4, 5:8]"),
    ("s0 floordiv 8, s0 mod 8", "s0 in [0, 31]", "[0:4, 0:8]"),
    ("s0 floordiv 8, s0 mod 8", "s0 in [0, 35]", "[0:4, 0:8] [4, 0:4]"),
    ("s0 floordiv 8, s0 mod 8", "s0 in [0, 79999999]", "[0:10000000, 0:8]"),
    ("(s0 * 64 + s1) floordiv 64, s1 mod 64", "s0 in [0, 4095], s1 in [0, 4095]", "[0:4159, 0:64]"),
    ("s0, s0", "s0 in [0, 1]", "[0, 0] [1, 1]"),
    ("s0", "s0 in [0, 9], s0 mod 3 in [1, 1]", "[1:8:3]"),
    ("3", "s0 in [0, 9], s0 mod 3 in [3, 3]", ""),
    ("s0, s0", "s0 in [0, 99999999]", None),
]
# fmt: on


@pytest.mark.parametrize(("results", "domain", "expected"), IMAGES)
def test_images_become_boxes(results: str, domain: str, expected: str | None) -> None:
    names = ", ".join([bound.split()[0] for bound in domain.split("], ") if " mod " not in bound])
    boxes = image_boxes(parse_map(f"()[{names}] -> ({results}), domain: {domain}"))
    if boxes is not None and len(boxes) > 4:
        assert f"{len(boxes)} boxes" == expected
    else:
        assert (None if boxes is None else " ".join(map(str, boxes))) == expected


# ---------------------------------------------------------------- regions of maps


@given(st.data(), any_maps())
@fuzz(300)
def test_at_gives_the_elements_that_the_points_reach(data: st.DataObject, m: IndexingMap) -> None:
    if any(v.is_empty for v in m.dims):
        return
    point: list[int | slice] = []
    chosen: list[range] = []
    for v in m.dims:
        if data.draw(st.booleans()):
            index = data.draw(st.integers(v.lower, v.upper))
            point.append(index)
            chosen.append(range(index, index + 1))
        else:
            start, stop = (data.draw(st.integers(0, 9)) for _ in range(2))
            step = data.draw(st.integers(1, 3))
            point.append(slice(start, stop, step))
            chosen.append(range(start, stop, step))
    region = m.at(*point)
    wanted = {
        results
        for pairs in meaning(m).values()
        for at, results in pairs
        if all(i in side for i, side in zip(at, chosen, strict=True))
    }
    assert elements(region) == wanted
    assert all((element in region) == (element in wanted) for element in reached_elements(m))
    assert (region.grade == "may") == bool(region.runtime) or m.grade == "may" or m.runtime
    boxes = region.boxes()
    if boxes is not None:
        assert region.box == (boxes[0] if len(boxes) == 1 else None)


@given(any_maps(), any_maps())
@fuzz(200)
def test_operations_on_regions_agree_with_sets(first: IndexingMap, second: IndexingMap) -> None:
    if len(first.results) != len(second.results):
        return
    regions = [
        Region.of(
            [
                IndexingMap.of(
                    (),
                    m.results,
                    ranges=(*m.dims, *m.ranges),
                    runtime=m.runtime,
                    constraints=m.constraints,
                )
            ],
            len(m.results),
        )
        for m in (first, second)
    ]
    a, b = reached_elements(first), reached_elements(second)
    assert elements(regions[0] | regions[1]) == a | b
    assert elements(regions[0] & regions[1]) == a & b
    assert (regions[0] == regions[1]) == (a == b)
    assert (regions[0] <= regions[1]) == (a <= b)
    assert regions[0].is_empty == (not a)


LARGE_DIAGONAL = "()[s0] -> (s0, s0 + {0}), domain: s0 in [0, 99999999]"


def test_large_images_that_are_no_boxes_are_compared_by_isl() -> None:
    first, other = (Region.of([parse_map(LARGE_DIAGONAL.format(k))], 2) for k in (0, 1))
    assert first.boxes() is None
    assert first.box is None
    assert first.count() == 100_000_000
    assert (7, 7) in first
    assert (7, 8) not in first
    assert (7, 8) in other
    assert first != other
    assert first == first
    assert not first <= other
    assert (first & other).is_empty
    assert (first | other).count() == 200_000_000
    assert isinstance(first.elements(), Unknown)
    assert str(first.bounding_box) == "[0:100000000, 0:100000000]"
    assert str(first) == "{(s0, s0): s0 in [0, 99999999]}"


def test_text_of_regions_is_slice_notation() -> None:
    m = parse_map("(d0)[s0, s1] -> (d0, s0, s1 * 2 + 5), domain: d0 in [0, 9], s0 in [0, 63], "
                  "s1 in [0, 29]")  # fmt: skip
    assert str(m.at(1)) == "[1, 0:64, 5:64:2]"
    corners = IndexingMap.over((2,), lambda d: [d[0] * 9, 4])
    assert str(corners.at(0) | corners.at(1)) == "[0:10:9, 4]"
    assert str(corners.at(0) | corners.at(1) | IndexingMap.over((), lambda d: [3, 1]).at()) == (
        "[0:10:9, 4] ∪ [3, 1]"
    )
    assert str(Region.of_boxes((), 2)) == "∅"
    assert repr(m.at(1)) == "Region('[1, 0:64, 5:64:2]', rank=3)"


WINDOW = hlo.parse("""ENTRY e {
  p = f32[9,7] parameter(0)
  i = s32[] parameter(1)
  j = s32[] parameter(2)
  ROOT s = f32[5,3] dynamic-slice(p, i, j), dynamic_slice_sizes={5,3}
}""").entry.root


def test_runtime_variables_are_given_by_name_or_source_and_clamped() -> None:
    answer = indexing.output_to_input(WINDOW)
    m = answer.maps[0][0]
    anywhere = m.at(0, 0)
    assert str(anywhere) == "[0:5, 0:5] over rt0 in [0, 4], rt1 in [0, 4]"
    assert anywhere.grade == "may"
    assert str(m.at(0, 0, rt0=2, j=3)) == "[2, 3]"
    assert m.at(0, 0, rt0=2, j=3).grade == "exact"
    assert str(m.at(..., i=100, j=-7)) == "[4:9, 0:3]"  # clamped to [0, 4]
    region, *indices = answer.at(4, slice(0, 2), i=1)
    assert str(region) == "[5, 0:6] over rt1 in [0, 4]"
    assert [str(index) for index in indices] == ["[]", "[]"]


TABLE = hlo.parse("""ENTRY e { t = f32[90,4] parameter(0)  i = s32[3,5] parameter(1)
  j = s32[3,5,1] reshape(i)
  ROOT g = f32[3,5,4] gather(t, j), offset_dims={2}, collapsed_slice_dims={0},
    start_index_map={0}, index_vector_dim=2, slice_sizes={1,4} }""").entry.root


@pytest.mark.parametrize("lookups", [0, 100])
def test_arrays_of_runtime_values_are_looked_up_at_the_elements_of_the_tile(
    lookups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needed, "MAX_LOOKUPS", lookups)
    ids = np.array([[7, 0, 9, 200, 3], [1, 1, 1, -4, 5], [60, 20, 40, 80, 11]])[..., None]
    m = indexing.output_to_input(TABLE).maps[0][0]
    tiles: list[Any] = [
        (2, 1),
        (1, slice(0, 3)),
        (slice(0, 2), 3),
        (slice(0, 3, 2), slice(1, 5, 2)),
    ]
    for tile in tiles:
        rows = np.clip(ids[tile], 0, 89)
        region = m.at(*tile, ..., j=ids)
        count = rows.size
        if count <= max(lookups, 1):
            assert region == Region.of_boxes(
                [Box((r, 0), (1, 4), (1, 1)) for r in rows.ravel().tolist()], 2
            )
            assert region.grade == "exact"
        assert all((r, 3) in region for r in rows.flat)
        assert m.at(*tile, ..., j=99) == Region.of_boxes([Box((89, 0), (1, 4), (1, 1))], 2)


MASKED = """add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e { n = s32[4] parameter(0)  x = f32[4] parameter(1)  i = s32[] parameter(2)
  base = f32[9] parameter(3)
  k = s32[4] iota(), iota_dimension=0  m = pred[4] compare(n, k), direction=GT
  z = f32[] constant(0)  zs = f32[4] broadcast(z), dimensions={}
  y = f32[4] select(m, x, zs)
  %s }"""


@pytest.mark.parametrize("lookups", [0, 100])
@pytest.mark.parametrize(
    ("root", "reads"),
    [
        (
            "ROOT r = f32[5] reduce-window(y, z), window={size=2 pad=1_1}, to_apply=add",
            lambda d, i: [d - 1, d],
        ),
        ("ROOT r = f32[9] dynamic-update-slice(base, y, i)", lambda d, i: [d - i]),
    ],
)
def test_values_are_not_looked_up_outside_of_their_source(
    root: str, reads: Callable[[int, int], list[int]], lookups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needed, "MAX_LOOKUPS", lookups)
    n = [3, 0, 7, 4]
    instruction = hlo.parse(MASKED % root).entry.root
    assert isinstance(instruction.shape, hlo.Shape)
    answer = indexing.to_parameters(instruction)
    x = [parameter.name for parameter in answer.operands].index("x")
    for d, i in product(range(instruction.shape.dims[0]), range(6)):
        region = answer.at(d, n=n, i=i)[x]
        assert isinstance(region, Region)
        needed_elements = [k for k in reads(d, i) if 0 <= k < 4 and n[k] > k]
        assert all((k,) in region for k in needed_elements)
        assert lookups == 0 or region.count() == len(needed_elements)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros((3, 5, 2), int), r"`j` has shape \(3, 5, 1\); the given value has \(3, 5, 2\)"),
        ([1, 2], "`j` needs one integer, or an array with 3 dimensions; got 1 dimensions"),
        (2.5, "`j` needs integers, got 2.5"),
    ],
)
def test_runtime_values_have_the_type_and_shape_of_the_source(value: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        indexing.output_to_input(TABLE).maps[0][0].at(0, 0, 0, j=value)
    with pytest.raises((TypeError, ValueError), match=message):
        indexing.output_to_input(TABLE).maps[0][0].multiplicity({"j": value})


def test_exact_pieces_for_other_values_than_the_given_ones_are_left_out() -> None:
    text = """ENTRY e { p = f32[9] parameter(0)  u = f32[4] parameter(1)  i = s32[] parameter(2)
      ROOT d = f32[9] dynamic-update-slice(p, u, i) }"""
    answer = indexing.output_to_input(hlo.parse(text).entry.root, exact=True)
    for start in range(-1, 8):
        clamped = min(max(start, 0), 5)
        kept = [k for k in range(9) if not clamped <= k < clamped + 4]
        region = answer.at(..., i=start)[0]
        assert isinstance(region, Region)
        assert region == Region.of_boxes([Box((k,), (1,), (1,)) for k in kept], 1)


def test_variables_of_several_maps_with_one_name_and_bounds_are_named_once() -> None:
    rows = [
        parse_map(f"(d0){{rt0}} -> (rt0, {k}), domain: d0 in [0, 3], rt0 in [0, 8]") for k in "02"
    ]
    first, second = [m.at(1) for m in rows]
    assert str(first | second) == "[0:9, 0:3:2] over rt0 in [0, 8]"


TWO_STARTS = """ENTRY e { p = f32[9] parameter(0)  i = s32[] parameter(1)  j = s32[] parameter(2)
  a = f32[4] dynamic-slice(p, i), dynamic_slice_sizes={4}
  b = f32[4] dynamic-slice(p, j), dynamic_slice_sizes={4}
  ROOT s = f32[4] add(a, b) }"""


def test_different_values_with_one_name_in_their_maps_are_renamed_apart() -> None:
    answer = indexing.to_parameters(hlo.parse(TWO_STARTS).entry.root)
    assert {m.runtime[0].name for m in answer.maps[0]} == {"rt0"}
    region = answer.at(0)[0]
    assert isinstance(region, Region)
    assert str(region) == "[0:6] over rt0 in [0, 5], rt0_1 in [0, 5]"
    assert {str(rt.source_name) for rt in region.runtime} == {"i", "j"}
    assert (region | region) == region
    assert (region | region).runtime == region.runtime
    for name in ("rt0", "rt0_1"):  # no value goes to another variable than the one that is shown
        with pytest.raises((TypeError, ValueError), match=name):
            answer.at(0, **{name: 3})


def test_bounds_of_one_value_in_several_maps_are_united() -> None:
    text = """ENTRY e { p = f32[64] parameter(0)  u = f32[8] parameter(1)  i = s32[] parameter(2)
      ROOT d = f32[64] dynamic-update-slice(p, u, i) }"""
    tiling = indexing.tile(hlo.parse(text).entry.root, (8,), direction="input-to-output")
    assert isinstance(tiling, indexing.Tiling)
    (finished,) = tiling.finished(0)
    assert str(finished) == "at least ∅ for all rt0 in [0, 56]"


def test_answers_unite_all_maps_of_an_operand() -> None:
    text = """ENTRY e { p = f32[4,4] parameter(0)  q = f32[3,4] parameter(1)
      c = f32[7,4] concatenate(p, q), dimensions={0}
      t = f32[4,4] transpose(p), dimensions={1,0}
      s = f32[4,4] slice(c), slice={[2:6],[0:4]}
      ROOT a = f32[4,4] add(s, t) }"""
    p, q = indexing.to_parameters(hlo.parse(text).entry.root).at(slice(1, 3), 0)
    assert str(p) == "[0, 1:3] ∪ [3, 0]"
    assert str(q) == "[0, 0]"


def test_a_point_outside_of_one_map_is_a_point_of_the_answer() -> None:
    text = """ENTRY e { p = f32[4,4] parameter(0)  q = f32[3,4] parameter(1)
      ROOT c = f32[7,4] concatenate(p, q), dimensions={0} }"""
    answer = indexing.output_to_input(hlo.parse(text).entry.root)
    assert [str(region) for region in answer.at(5, 1)] == ["∅", "[1, 1]"]
    assert [str(region) for region in answer.at(0, ...)] == ["[0, 0:4]", "∅"]
    outsides: list[Any] = [7, np.int64(7), -1]
    for outside in outsides:
        with pytest.raises(IndexError, match=rf"d0 = {outside} is outside \[0, 6\]"):
            answer.at(outside, ...)
        with pytest.raises(IndexError, match=rf"d1 = {outside} is outside \[0, 3\]"):
            answer.at(..., outside)


def test_answers_name_unknown_operands_and_leaves_of_tuples() -> None:
    text = """ENTRY e { p = (f32[4], f32[3,2]) parameter(0)  q = f32[4] parameter(1)
      a = f32[4] get-tuple-element(p), index=0
      ROOT r = f32[4] subtract(q, a) }"""
    p, q = indexing.to_parameters(hlo.parse(text).entry.root).at(2)
    assert isinstance(p, tuple)
    assert [str(leaf) for leaf in p] == ["[2]", "∅"]
    assert str(q) == "[2]"
    strange = "ENTRY e { p = f32[4] parameter(0)  ROOT c = f32[4] mystery(p) }"
    (unknown,) = indexing.output_to_input(hlo.parse(strange).entry.root).at(0)
    assert isinstance(unknown, Unknown)


I3 = np.arange(3)
CALLED = r"an array int64\[3\]; write m\(d0, d1, s0=…, rt0=…\), which accepts arrays"

# fmt: off
WRONG = [
    # arguments of `at`                     error        message
    (lambda m: m.at(1),                     ValueError,  "2 dimensions; got 1"),
    (lambda m: m.at(1, 2, 3),               ValueError,  "2 dimensions; got 3"),
    (lambda m: m.at(..., 1, ..., 2),        ValueError,  "2 dimensions; got 4"),
    (lambda m: m.at(1, 12),                 IndexError,  r"d1 = 12 is outside \[0, 6\]"),
    (lambda m: m.at(1, -1),                 IndexError,  r"d1 = -1 is outside \[0, 6\]"),
    (lambda m: m.at(1, 2.0),                TypeError,   "d1 needs an integer or a slice, got 2.0"),
    (lambda m: m.at(1, slice(-3, None)),    ValueError,  "do not count from the end"),
    (lambda m: m.at(1, slice(None, None, -1)), ValueError, "step of d1 must be at least 1, got -1"),
    (lambda m: m.at(1, 2, rt7=0),           TypeError,   "'rt7'"),
    (lambda m: m.at(1, 2, rt0="x"),         TypeError,   "`rt0` needs integers"),
    (lambda m: m(1),                        TypeError,   "2 dimensions; got 1 indices"),
    (lambda m: m(1, 2),                     TypeError,   "needs values of s0, rt0: pass s0=…"),
    (lambda m: m(1, 2.5, s0=0, rt0=0),      TypeError,   "d1 needs integers, got 2.5"),
    (lambda m: m(1, 2, s0=0, rt0=0, x=1),   TypeError,   "has no variable 'x' to set"),
    (lambda m: m(1, 99, s0=0, rt0=0, outside="raise"), IndexError, "d1 = 99"),
    (lambda m: m([1, 77], 2, s0=0, rt0=0, outside="raise"), IndexError, "d0 = 77"),
    (lambda m: m(1, 2, s0=0, rt0=0, outside="x"), ValueError, "`outside`"),
    (lambda m: m.evaluate([I3, 1], [0], [0]), TypeError, rf"evaluate: `dims` must .* not {CALLED}"),
    (lambda m: m.evaluate(I3, I3),          TypeError,   CALLED),
    (lambda m: m.evaluate([[1, 2], 3]),     TypeError,   r"`dims` .* not \[1, 2\]; write m\("),
    (lambda m: m.evaluate([1, 2], 0),       TypeError,   "`ranges` must be a .*integers, not 0"),
    (lambda m: m.evaluate([1, 2], [.5]),    TypeError,   r"`ranges` .* not \[0.5\]"),
    (lambda m: list(m.points(I3)),          TypeError,   "`runtime` must be"),
    (lambda m: m.at(I3, 2),                 TypeError,   r"d0 .* array int64\[3\]; write m\(…\)"),
    (lambda m: m.fix(d0=I3),                TypeError,   r"d0 .* array int64\[3\]; write m\(…\)"),
    (lambda m: m.fix(d7=1),                 TypeError,   "did you mean `d0`"),
    (lambda m: m.fix(d0=1.5),               TypeError,   "d0 needs an integer"),
    (lambda m: m.restrict(d0=3),            TypeError,   r"slice such as slice\(0, 32\), got 3"),
    (lambda m: m.restrict(x=slice(3)),      TypeError,   "has no variable 'x' to set"),
    (lambda m: m @ 3,                       TypeError,   "unsupported operand"),
    (lambda m: (1,) in m.at(0, 0),          ValueError,  "2 indices, got 1"),
    (lambda m: "ab" in m.at(0, 0),          TypeError,   "integer"),
    (lambda m: m.at(0, 0) | Region.of_boxes((), 1), ValueError, "ranks 2 and 1"),
]
# fmt: on
RUNTIME = parse_map(
    "(d0, d1)[s0]{rt0} -> (d0 + rt0, d1 * 2 + s0), "
    "domain: d0 in [0, 4], d1 in [0, 6], s0 in [0, 1], rt0 in [0, 7]"
)


@pytest.mark.parametrize(("ask", "error", "message"), WRONG)
def test_wrong_arguments_are_named(ask: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ask(RUNTIME)  # type: ignore[operator]


def test_single_points_may_be_integers_of_numpy() -> None:
    expected = RUNTIME.evaluate((1, 2), (0,), (3,))
    assert RUNTIME.evaluate(np.array([1, 2]), [np.int8(0)], [np.uint64(3)]) == expected  # type: ignore[list-item,arg-type]
    assert expected == (4, 4)


# ---------------------------------------------------------------- evaluation and selection


@given(any_maps())
@fuzz(200)
def test_calls_on_arrays_agree_with_evaluate(m: IndexingMap) -> None:
    call: Any = m  # mypy takes all keywords for `outside`
    grids = np.meshgrid(
        *[np.arange(v.lower - 1, v.upper + 2) for v in m.variables], indexing="ij", sparse=True
    )
    count = len(m.dims)
    names = [v.name for v in m.variables[count:]]
    values = dict(zip(names, grids[count:], strict=True))
    if not m.variables:
        assert m() == m.evaluate()
        return
    columns = call(*grids[:count], **values)
    assert columns is not None
    assert len(columns) == len(m.results)
    shape = np.broadcast_shapes(*[grid.shape for grid in grids])
    for place in np.ndindex(*shape):
        at = [int(np.broadcast_to(grid, shape)[place]) for grid in grids]
        split = count, count + len(m.ranges)
        one = m.evaluate(at[: split[0]], at[split[0] : split[1]], at[split[1] :])
        assert call(*at[:count], **dict(zip(names, at[count:], strict=True))) == one
        own = [column[place] for column in columns]
        if one is None:
            assert all(value is np.ma.masked for value in own)
        else:
            assert tuple(own) == one


def test_calls_do_not_overflow() -> None:
    m = IndexingMap.over((1 << 40,), lambda d: [d[0] * (1 << 40)])
    assert m(np.array([1 << 39]))[0].tolist() == [1 << 79]  # type: ignore[index]
    assert m(np.array([1 << 63], np.uint64))[0].tolist() == [None]  # type: ignore[index]


@given(st.data(), any_maps())
@fuzz(200)
def test_fix_and_restrict_select_pairs(data: st.DataObject, m: IndexingMap) -> None:
    if not m.dims or any(v.is_empty for v in m.dims):
        return
    d0 = m.dims[0]
    value = data.draw(st.integers(d0.lower - 1, d0.upper + 1))
    pairs = {pair for own in meaning(m).values() for pair in own}
    fixed = {pair for own in meaning(m.fix(d0=value)).values() for pair in own}
    assert fixed == {(at[1:], results) for at, results in pairs if at[0] == value}
    part = slice(
        data.draw(st.integers(0, 4)), data.draw(st.integers(0, 9)), data.draw(st.integers(1, 3))
    )
    kept = {pair for own in meaning(m.restrict(d0=part)).values() for pair in own}
    indices = range(part.start, part.stop, part.step)
    assert kept == {(at, results) for at, results in pairs if at[0] in indices}


@given(any_maps())
@fuzz(100)
def test_count_is_the_number_of_pairs(m: IndexingMap) -> None:
    assert m.count() == len({pair for own in meaning(m).values() for pair in own})


def test_matmul_applies_the_right_map_first() -> None:
    outer = IndexingMap.over((7, 3), lambda d: [d[0] * 3 + d[1]])
    inner = IndexingMap.over((21,), lambda d: [d[0] // 3, d[0] % 3])
    assert (outer @ inner).is_equal(inner.then(outer)) is True
    assert (outer @ inner)(20) == (20,)

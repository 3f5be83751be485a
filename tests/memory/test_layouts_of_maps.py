"""`to_cute`, `to_linear_layout` and back: equal maps, by isl and at all points."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

import hlo
from indexing import IndexingMap, parse_map
from indexing.maps.layouts import physical_map
from indexing.memory import CuteLayout, LinearLayout, Swizzle, parse_cute
from indexing.memory.layouts import of_maps
from simplifier.unknown import Unknown
from tests.memory.cute_layouts import SWIZZLES, layouts, offset
from tests.memory.linear_layouts import linear_layouts
from tests.oracles import fuzz

# fmt: off
OF_SHAPES = [
    # shape                     layout
    ("f32[2,3]",                "(2,3):(3,1)"),
    ("f32[2,3]{0,1}",           "(2,3):(1,2)"),
    ("f32[]",                   "():()"),
    ("f32[5]",                  "5:1"),
    ("f32[4,1,6]",              "(4,1,6):(6,0,1)"),
    ("f32[4,6]{1,0:T(2,2)}",    "((2,2),(2,3)):((2,12),(1,4))"),
    ("f32[4,8]{1,0:T(4)}",      "(4,8):(8,1)"),
    ("bf16[16,128]{1,0:T(8,128)(2,1)}", "((2,8),128):((1,256),2)"),
]

CUTE_REFUSALS = [
    ("(d0) -> (d0 mod 7), domain: d0 in [0, 9]", "the modulus 7 of d0 does not divide the size 10"),
    ("(d0) -> (d0 floordiv 4 + (d0 floordiv 6) * 5), domain: d0 in [0, 23]",
     "the modulus 4 of d0 does not divide the modulus 6"),
    ("(d0, d1) -> ((d0 * 3 + d1) floordiv 4), domain: d0 in [0, 3], d1 in [0, 2]",
     "the term (-d0 + d1) floordiv 4, with the modulus 4, is no digit of one dimension"),
    ("(d0) -> (d0 * 3 mod 8), domain: d0 in [0, 7]",
     "the term (d0 * 3) floordiv 8, with the modulus 8, is no digit of one dimension"),
    ("(d0) -> (d0, 1), domain: d0 in [0, 7]", "the map has 2 results, not one offset"),
    ("(d0) -> (d0), domain: d0 in [1, 7]", "d0 starts at 1, and coordinates start at 0"),
    ("(d0)[s0] -> (d0 + s0), domain: d0 in [0, 7], s0 in [0, 1]", "by the range variable s0"),
    ("(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 7], rt0 in [0, 1]", "the runtime variable rt0"),
    ("(d0, d1) -> (d0), domain: d0 in [0, 7], d1 in [0, 7], d0 + d1 in [0, 7]",
     "the domain is no box, because of the constraint d0 + d1 in [0, 7]"),
    ("(d0) -> (d0), domain: d0 in [0, -1]", "the domain is empty"),
    ("(d0, d1) -> ((d0 * 3 + d1) floordiv 7), domain: d0 in [0, 99999], d1 in [0, 99999]",
     "is no digit of one dimension; a swizzle is not recognised beyond 1048576 points"),
]

LINEAR_REFUSALS = [
    ("(d0) -> (d0), domain: d0 in [0, 5]", "the size 6 of d0 is not a power of two"),
    ("(d0) -> (d0 floordiv 3), domain: d0 in [0, 7]",
     "the modulus 3 in d0 floordiv 3 is not a power of two"),
    ("(d0) -> (d0 + 1), domain: d0 in [0, 7]", "result 0 is 1 at the origin"),
    ("(d0) -> (-d0), domain: d0 in [0, 7]", "result 0 is negative at some points"),
    ("(d0, d1) -> (d0 + d1), domain: d0 in [0, 1], d1 in [0, 1]",
     "at d0 = 1 plus d1 = 1, result 0 is 2 and the XOR is 0"),
    ("(d0, d1) -> ((d0 + d1) floordiv 2), domain: d0 in [0, 1], d1 in [0, 1]",
     "at d0 = 1, d1 = 1, result 0 is 1 and the XOR is 0"),
    ("(d0) -> (d0 * 3), domain: d0 in [0, 3]",
     "at d0 = 1 plus d0 = 2, result 0 is 9 and the XOR is 5"),
    ("(d0) -> (d0 * 3), domain: d0 in [0, 4294967295]",
     "at d0 = 1 plus d0 = 2, result 0 is 9"),
    ("(d0) -> ((d0 * 5) floordiv 8), domain: d0 in [0, 4194303]",
     "at d0 = 5, result 0 is 3 and the XOR is 2"),
]
# fmt: on


@pytest.mark.parametrize("shape, expected", OF_SHAPES)
def test_physical_layouts_of_hlo_in_the_notation_of_cute(shape: str, expected: str) -> None:
    parsed = hlo.parse_shape(shape)
    assert isinstance(parsed, hlo.Shape)
    m = physical_map(parsed)
    layout = m.to_cute()
    assert str(layout) == expected
    assert IndexingMap.from_cute(expected).is_equal(m)


@pytest.mark.parametrize("text, reason", CUTE_REFUSALS)
def test_maps_without_layout_are_refused_with_the_modulus(text: str, reason: str) -> None:
    answer = parse_map(text).to_cute()
    assert isinstance(answer, Unknown)
    assert reason in answer.reason


@pytest.mark.parametrize("text, reason", LINEAR_REFUSALS)
def test_maps_that_are_not_linear_are_refused(text: str, reason: str) -> None:
    answer = parse_map(text).to_linear_layout()
    assert isinstance(answer, Unknown)
    assert reason in answer.reason


def test_a_may_map_has_no_layout() -> None:
    m = parse_map("(d0) -> (d0), domain: d0 in [0, 7]")
    may = IndexingMap.of(m.dims, m.results, grade="may")
    for answer in (may.to_cute(), may.to_linear_layout()):
        assert isinstance(answer, Unknown)
        assert "over-approximates" in answer.reason


@given(layouts(most=4096), st.integers(-9, 9))
def test_shapes_and_strides_round_trip(layout: CuteLayout, start: int) -> None:
    given_layout = CuteLayout(layout.shape, layout.stride, None, start)
    m = IndexingMap.from_cute(given_layout)
    back = m.to_cute()
    assert isinstance(back, CuteLayout)
    assert back.swizzle is None
    assert back.map.is_equal(m)
    assert back.offsets().tolist() == given_layout.offsets().tolist()
    assert [mode.coalesce() for mode in back.modes] == [m.coalesce() for m in given_layout.modes]


@given(layouts(most=1024), SWIZZLES, st.integers(0, 9))
@fuzz(60)
def test_swizzles_round_trip(layout: CuteLayout, swizzle: Swizzle, start: int) -> None:
    given_layout = CuteLayout(layout.shape, layout.stride, swizzle, start)
    m = IndexingMap.from_cute(given_layout)
    back = m.to_cute()
    assert isinstance(back, CuteLayout), back
    assert back.offsets().tolist() == given_layout.offsets().tolist()
    assert [mode.size for mode in back.modes] == [mode.size for mode in given_layout.modes]


def test_the_swizzled_map_of_the_design_round_trips() -> None:
    m = IndexingMap.from_cute("Sw<2,0,3> o 0 o (4,(2,3)):(2,(1,8))")
    layout = m.to_cute()
    assert isinstance(layout, CuteLayout)
    assert layout.map.is_equal(m)


def test_most_swizzles_are_rejected_by_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    whole = of_maps._axis_leaves

    def compare(offsets: NDArray[np.int64]) -> object:
        sizes.append(len(offsets))
        return whole(offsets)

    monkeypatch.setattr(of_maps, "_axis_leaves", compare)
    layout = parse_cute("Sw<3,4,3> o 0 o 65536:1")
    assert layout.map.to_cute() == layout
    assert sum(sizes) <= 4 * 65536


@given(st.data())
@fuzz(60)
def test_refused_maps_have_no_layout(data: st.DataObject) -> None:
    size = data.draw(st.sampled_from([6, 8, 12]))
    modulus, factor = data.draw(st.integers(2, 9)), data.draw(st.integers(-3, 5))
    m = IndexingMap.over((size,), lambda d: [d[0] * factor + d[0] * 3 % modulus])
    values = [m(i)[0] for i in range(size)]  # type: ignore[index]  # inside the domain
    layout = m.to_cute()
    if isinstance(layout, CuteLayout) and layout.swizzle is not None:
        assert layout.offsets().tolist() == values
        return
    fitting = [
        sizes
        for sizes in factorisations(size)
        if values == [offset(CuteLayout(sizes, strides(sizes, values)), i) for i in range(size)]
    ]
    assert isinstance(layout, CuteLayout) == bool(fitting)


def factorisations(size: int) -> list[tuple[int, ...]]:
    """Return all tuples of sizes above 1 with a product."""
    rest = [
        (first, *sizes)
        for first in range(2, size + 1)
        if size % first == 0
        for sizes in factorisations(size // first)
    ]
    return rest or [()]


def strides(sizes: tuple[int, ...], values: list[int]) -> tuple[int, ...]:
    """Return the strides that a layout of these sizes needs, from the values at its digits."""
    below = [prod(sizes[:k]) for k in range(len(sizes))]
    return tuple([values[place] - values[0] for place in below])


# ---------------------------------------------------------------- linear layouts


@given(linear_layouts())
def test_maps_of_bases_have_the_results_of_the_layout(layout: LinearLayout) -> None:
    m = IndexingMap.from_bases(layout.bases, layout.out_dims)
    assert [d.name for d in m.dims] == [*layout.in_dims]
    for point, results in m.points():
        inputs = dict(zip(layout.in_dims, point, strict=True))
        assert layout(**inputs) == dict(zip(layout.out_dims, results, strict=True))
    images = {results for _, results in m.points()}
    assert layout.is_injective == (len(images) == m.count_domain())
    assert layout.is_surjective == (len(images) == np.prod([*layout.out_dims.values()]))


@given(linear_layouts())
def test_bases_round_trip(layout: LinearLayout) -> None:
    back = layout.map.to_linear_layout()
    assert isinstance(back, LinearLayout)
    assert back.bases == layout.bases


@given(layouts(most=256))
def test_carry_free_layouts_of_cute_are_linear(layout: CuteLayout) -> None:
    assume(all(leaf.size & (leaf.size - 1) == 0 for leaf in layout.leaves))
    linear = layout.map.to_linear_layout()
    if isinstance(linear, LinearLayout):
        (values,) = linear.map(*np.indices([d.upper + 1 for d in layout.map.dims])) or ()
        assert values.reshape(-1, order="F").tolist() == layout.offsets().tolist()
    else:
        assert "and the XOR is" in linear.reason


def test_large_linear_layouts_need_no_enumeration() -> None:
    m = IndexingMap.over((1 << 20, 1 << 20), lambda d: [d[1] % 8 + d[0] * 8 + d[1] // 8 * 8388608])
    layout = m.to_linear_layout()
    assert isinstance(layout, LinearLayout)
    assert layout.is_injective
    assert layout.bases["d1"][2:4] == [[4], [8388608]]


def test_swizzles_are_linear() -> None:
    m = IndexingMap.from_cute("Sw<2,0,3> o 0 o (8,4):(4,1)")
    layout = m.to_linear_layout()
    assert isinstance(layout, LinearLayout)
    assert layout.bases == {"d0": [[4], [9], [18]], "d1": [[1], [2]]}


def test_invalid_bases_are_refused() -> None:
    with pytest.raises(ValueError, match=r"the basis \[4\] of a = 1 is outside"):
        LinearLayout.from_bases({"a": [[4]]}, {"x": 4})
    with pytest.raises(ValueError, match="size of x must be a power of two, not 6"):
        LinearLayout.from_bases({"a": [[4]]}, {"x": 6})
    with pytest.raises(ValueError, match="2 entries for 1 output dimensions"):
        LinearLayout.from_bases({"a": [[4, 1]]}, ["x"])
    with pytest.raises(ValueError, match="`out_dims` must name the outputs"):
        LinearLayout.from_bases({"a": []})
    with pytest.raises(ValueError, match="must be an identifier, not 'a b'"):
        LinearLayout.from_bases({"a b": [[1]]})
    with pytest.raises(ValueError, match="distinct names"):
        LinearLayout.from_bases({"a": [[1, 1]]}, ["x", "x"])
    layout = LinearLayout.from_bases({"a": [[1]]})
    with pytest.raises(IndexError, match=r"a = 2 is outside \[0, 1\]"):
        layout(a=2)
    with pytest.raises(TypeError, match="expected values of"):
        layout(b=0)

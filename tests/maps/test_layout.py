"""Layouts as maps: positions, padding, bitcasts and contiguity."""
# ruff: noqa: E501 - a row of a table is a line

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo.shapes.array_shape import Shape
from hlo.shapes.layout import COMBINE, Layout
from hlo.shapes.memory import to_physical
from hlo.shapes.shape import parse_shape
from indexing.maps.indexing_map import Difference, IndexingMap
from indexing.maps.layouts import (
    is_bitcast,
    is_contiguous,
    layout_change,
    logical_map,
    physical_map,
    row_major_map,
)
from indexing.maps.text import parse_map
from tests.oracles import fuzz


def shape_of(text: str) -> Shape:
    shape = parse_shape(text)
    assert isinstance(shape, Shape)
    return shape


# fmt: off
MAPS = [
    # shape                          index to position (d0, d1, .. to one number)                               position to index
    ("f32[]",                        "() -> (0)",                                                                "(d0) -> (), domain: d0 in [0, 0]"),
    ("f32[7]{0}",                    "(d0) -> (d0), domain: d0 in [0, 6]",                                       "(d0) -> (d0), domain: d0 in [0, 6]"),
    ("f32[2,3]{1,0}",                "(d0, d1) -> (d0 * 3 + d1), domain: d0 in [0, 1], d1 in [0, 2]",            "(d0) -> (d0 floordiv 3, d0 mod 3), domain: d0 in [0, 5]"),
    ("f32[2,3]{0,1}",                "(d0, d1) -> (d0 + d1 * 2), domain: d0 in [0, 1], d1 in [0, 2]",            "(d0) -> (d0 mod 2, d0 floordiv 2), domain: d0 in [0, 5]"),
    ("f32[2,3,5]{0,2,1}",            "(d0, d1, d2) -> (d0 + d1 * 10 + d2 * 2), domain: d0 in [0, 1], d1 in [0, 2], d2 in [0, 4]",
                                     "(d0) -> (d0 mod 2, d0 floordiv 10, (d0 mod 10) floordiv 2), domain: d0 in [0, 29]"),
    ("f32[3,5]{1,0:T(2,2)}",         "(d0, d1) -> ((d0 floordiv 2) * 12 + (d1 floordiv 2) * 4 + (d0 mod 2) * 2 + d1 mod 2), domain: d0 in [0, 2], d1 in [0, 4]",
                                     "(d0) -> ((d0 floordiv 12) * 2 + (d0 mod 4) floordiv 2, ((d0 mod 12) floordiv 4) * 2 + d0 mod 2), domain: d0 in [0, 23], (d0 floordiv 12) * 2 + (d0 mod 4) floordiv 2 in [0, 2], ((d0 mod 12) floordiv 4) * 2 + d0 mod 2 in [0, 4]"),
    ("f32[]{:T(256)}",               "() -> (0)",                                                                "(d0) -> (), domain: d0 in [0, 0]"),
    ("f32[3]{0:L(8)}",               "(d0) -> (d0), domain: d0 in [0, 2]",                                       "(d0) -> (d0), domain: d0 in [0, 2]"),
]
BITCASTS = [
    # source                     target                       reads                                     stays
    ("f32[6,4]",                 "f32[2,3,4]",                None,                                     True),
    ("f32[6,4]{0,1}",            "f32[2,3,4]{0,1,2}",         None,                                     False),
    ("f32[6,4]{0,1}",            "f32[2,3,4]{1,0,2}",         None,                                     True),   # minor 3, then 2: one dimension of 6
    ("f32[2,3]{1,0}",            "f32[2,3]{0,1}",             None,                                     False),
    ("f32[2,1]{1,0}",            "f32[2,1]{0,1}",             None,                                     True),   # a dimension of size 1 may have any position in the order
    ("f32[2,3]{1,0}",            "f32[3,2]{0,1}",             "(d0, d1) -> (d1, d0), domain: d0 in [0, 2], d1 in [0, 1]", True),   # a transpose that only renames
    ("f32[2,3]{1,0}",            "f32[3,2]{1,0}",             "(d0, d1) -> (d1, d0), domain: d0 in [0, 2], d1 in [0, 1]", False),
    ("f32[2,3]",                 "s32[3,2]",                  None,                                     True),
    ("f32[2,3]",                 "f16[2,3]",                  None,                                     False),  # elements of another width
    ("f32[2,3]",                 "f32[2,4]",                  None,                                     False),
    ("f32[16,256]{1,0:T(8,128)}", "f32[16,256]{1,0:T(8,128)}", None,                                    True),
    ("f32[16,256]{1,0:T(8,128)}", "f32[2,8,256]{2,1,0:T(8,128)}", None,                                 True),   # whole rows of tiles
    ("f32[16,256]{1,0:T(8,128)}", "f32[16,256]{1,0}",         None,                                     False),
    ("f32[8,128]{1,0:T(8,128)}", "f32[8,128]{1,0}",           None,                                     True),   # one tile has no inside order of its own
    ("f32[3]{0:T(4)}",           "f32[3]{0}",                 None,                                     False),  # padding takes memory
    ("f32[0,3]",                 "f32[3,0]",                  None,                                     True),
]
READS = [
    # array                    what is read                                                                            one block
    ("f32[4,8]{1,0}",          "(d0) -> (2, d0), domain: d0 in [0, 7]",                                                True),
    ("f32[4,8]{0,1}",          "(d0) -> (2, d0), domain: d0 in [0, 7]",                                                False),
    ("f32[4,8]{1,0}",          "(d0, d1) -> (d0 + 1, d1), domain: d0 in [0, 1], d1 in [0, 7]",                         True),
    ("f32[4,8]{1,0}",          "(d0, d1) -> (d0 + 1, d1), domain: d0 in [0, 1], d1 in [0, 6]",                         False),
    ("f32[4,8]{1,0}",          "(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [3, 20]",                             True),
    ("f32[4,8]{1,0}",          "(d0) -> (0, d0 * 2), domain: d0 in [0, 3]",                                            False),
    ("f32[4,8]{1,0}",          "(d0)[s0] -> (0, d0 * 2 + s0), domain: d0 in [0, 3], s0 in [0, 1]",                     True),
    ("f32[4,8]{1,0}",          "(d0) -> (0, d0 * 2), domain: d0 in [2, 2]",                                            True),
    ("f32[4,8]{1,0}",          "(d0) -> (d0, d0), domain: d0 in [0, 3], d0 in [5, 5]",                                 True),   # nothing
    ("f32[4,8]{1,0:T(2,4)}",   "(d0, d1) -> (d0, d1), domain: d0 in [0, 1], d1 in [0, 7]",                             True),
    ("f32[4,8]{1,0:T(2,4)}",   "(d0) -> (0, d0), domain: d0 in [0, 7]",                                                False),
    ("f32[3,5]{1,0:T(2,2)}",   "(d0, d1) -> (d0, d1), domain: d0 in [0, 2], d1 in [0, 4]",                             False),  # padding is between
    ("f32[4,6]{1,0:T(2,2)}",   "(d0, d1) -> (d0, d1), domain: d0 in [0, 3], d1 in [0, 5]",                             True),
]
# fmt: on


@pytest.mark.parametrize("text, physical, logical", MAPS)
def test_physical_and_logical_maps_have_the_expected_text(
    text: str, physical: str, logical: str
) -> None:
    shape = shape_of(text)
    assert physical_map(shape).is_equal(parse_map(physical))
    assert logical_map(shape).is_equal(parse_map(logical))


@st.composite
def draw_shape(draw: st.DrawFn, most_tiles: int = 2) -> Shape:
    """A small array with any order, padding, tiles and tail padding."""
    dims = tuple(draw(st.lists(st.integers(1, 5), max_size=3)))
    order = tuple(draw(st.permutations(range(len(dims)))))
    sizes = st.one_of(st.integers(1, 4), st.just(COMBINE))
    tile = st.tuples(st.lists(sizes, max_size=2), st.integers(1, 4)).map(lambda t: (*t[0], t[1]))
    extra = draw(st.lists(st.integers(0, 2), min_size=len(dims), max_size=len(dims)))
    layout = Layout(
        order,
        tuple(draw(st.lists(tile, max_size=most_tiles))),
        tail_padding=draw(st.integers(1, 5)),
        padded_dimensions=tuple(n + more for n, more in zip(dims, extra, strict=True)),
    )
    return Shape("f32", dims, layout)


@given(draw_shape())
def test_maps_agree_with_the_layout_functions(shape: Shape) -> None:
    physical, logical = physical_map(shape), logical_map(shape)
    for index in product(*map(range, shape.dims)):
        assert physical.evaluate(index) == (shape.linear_index(index),)
    for position in range(shape.physical_size):
        assert logical.evaluate((position,)) == shape.multi_index(position)
        assert (logical.evaluate((position,)) is None) == shape.is_padding(position)


@fuzz(30)
@given(draw_shape())
def test_logical_and_physical_maps_are_inverse(shape: Shape) -> None:
    there_and_back = physical_map(shape).then(logical_map(shape))
    assert there_and_back.is_equal(IndexingMap.identity(shape))


@fuzz(30)
@given(st.data())
def test_a_layout_change_permutes_memory(data: st.DataObject) -> None:
    source = data.draw(draw_shape())
    order = tuple(data.draw(st.permutations(range(source.rank))))
    target = source.with_layout(Layout(order, tail_padding=data.draw(st.integers(1, 3))))
    change = layout_change(source=source, target=target)
    held: Any = np.arange(1, source.size + 1).reshape(source.dims)
    before = to_physical(held, source.layout_or_default)
    after = to_physical(held, target.layout_or_default)
    for position, value in enumerate(after):
        where = change.evaluate((position,))
        assert value == (0 if where is None else before[where[0]])


def test_a_layout_change_keeps_the_dimensions() -> None:
    with pytest.raises(ValueError, match="a layout change keeps the dimensions"):
        layout_change(source=shape_of("f32[2,3]"), target=shape_of("f32[3,2]"))
    with pytest.raises(ValueError, match="number of elements must not change"):
        row_major_map(source=shape_of("f32[2,3]"), target=shape_of("f32[2,2]"))


@pytest.mark.parametrize("source, target, reads, stays", BITCASTS)
def test_a_bitcast_moves_no_element(
    source: str, target: str, reads: str | None, stays: bool
) -> None:
    given_reads = parse_map(reads) if reads else None
    answer = is_bitcast(source=shape_of(source), target=shape_of(target), reads=given_reads)
    assert bool(answer) is stays


def test_a_moved_element_is_the_witness_against_a_bitcast() -> None:
    answer = is_bitcast(source=shape_of("f32[2,3]{1,0}"), target=shape_of("f32[2,3]{0,1}"))
    assert isinstance(answer, Difference)
    index = tuple(answer.witness.values())
    assert shape_of("f32[2,3]{1,0}").linear_index(index) != shape_of("f32[2,3]{0,1}").linear_index(
        index
    )


@pytest.mark.parametrize("array, reads, one_block", READS)
def test_a_read_without_gaps_is_contiguous(array: str, reads: str, one_block: bool) -> None:
    assert is_contiguous(parse_map(reads), shape_of(array)) is one_block


@fuzz(30)
@given(draw_shape(most_tiles=1))
def test_contiguity_agrees_with_enumeration(shape: Shape) -> None:
    read = sorted(int(shape.linear_index(i)) for i in product(*map(range, shape.dims)))
    expected = not read or read[-1] - read[0] + 1 == len(read)
    assert is_contiguous(IndexingMap.identity(shape), shape) is expected

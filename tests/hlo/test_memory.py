"""Arrays in memory: XLA's worked examples, padding, and conversion to buffers and back."""
# ruff: noqa: E501 - a row of a table is a line

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo.shapes.layout import COMBINE, Layout
from hlo.shapes.memory import from_physical, linear_index, multi_index, to_physical
from hlo.shapes.shape import UNBOUNDED, Shape

LETTERS = np.array([list("abc"), list("def")])
ROW, COLUMN = Layout((1, 0)), Layout((0, 1))
TILED = Layout((1, 0), tiles=((2, 2),))
_ = ""  # padding in an array of strings

# fmt: off
STORED = [
    # layout                                                        buffer
    (COLUMN,                                                        list("adbecf")),
    (ROW,                                                           list("abcdef")),
    (Layout((-2, -1)),                                              list("adbecf")),
    (Layout((0, 1), padded_dimensions=(3, 5)),                      ["a", "d", _, "b", "e", _, "c", "f", _, _, _, _, _, _, _]),
    (Layout((1, 0), padded_dimensions=(2, 4)),                      ["a", "b", "c", _, "d", "e", "f", _]),
    (Layout((1, 0), tiles=((2, 2),)),                               ["a", "b", "d", "e", "c", _, "f", _]),
    (Layout((0, 1), tiles=((2, 2),)),                               ["a", "d", "b", "e", "c", "f", _, _]),
    (Layout((1, 0), tiles=((COMBINE, 4),)),                         ["a", "b", "c", "d", "e", "f", _, _]),
    (Layout((1, 0), tail_padding=4),                                ["a", "b", "c", "d", "e", "f", _, _]),
    (Layout((1, 0), tiles=((2, 2),), padded_dimensions=(2, 5)),     ["a", "b", "d", "e", "c", _, "f", _, _, _, _, _]),
]
MEASURES = [
    # shape                                                           rank true size physical bytes physical bytes
    (Shape("f32", ()),                                                0,   0,   1,   1,       4,    4),
    (Shape("f32", (3, 5)),                                            2,   2,   15,  15,      60,   60),
    (Shape("f32", (3, 1, 5, 1)),                                      4,   2,   15,  15,      60,   60),
    (Shape("f32", (3, 0)),                                            2,   2,   0,   0,       0,    0),
    (Shape("f32", (3, 5), TILED),                                     2,   2,   15,  24,      60,   96),
    (Shape("bf16", (3, 5), Layout((1, 0), padded_dimensions=(4, 8))), 2,   2,   15,  32,      30,   64),
    (Shape("s4", (3, 5)),                                             2,   2,   15,  15,      15,   15),
    (Shape("s4", (3, 5), Layout((1, 0), element_bits=4)),             2,   2,   15,  15,      8,    8),
    (Shape("pred", (3,), Layout((0,), tail_padding=8)),               1,   1,   3,   8,       3,    8),
    (Shape("f32", (2, 3), dynamic=(True, False)),                     2,   2,   6,   6,       24,   24),
]
STRIDES = [
    # dims       layout                                        strides
    ((),         Layout(),                                     ()),
    ((2, 3),     ROW,                                          (3, 1)),
    ((2, 3),     COLUMN,                                       (1, 2)),
    ((2, 3, 5),  Layout((1, 2, 0)),                            (15, 1, 3)),
    ((2, 3),     Layout((0, 1), padded_dimensions=(4, 9)),     (1, 4)),
    ((2, 3),     Layout((1, 0), tail_padding=4),               (3, 1)),
]
INVALID = [
    # call                                                     why it fails
    (lambda: Layout((1, 1)),                                            "not a permutation"),
    (lambda: Layout((1, -1)),                                           "not a permutation"),
    (lambda: Layout((-3, 0)),                                           "not a permutation"),
    (lambda: Layout((0,), padded_dimensions=(2, 3)),                    "2 padded dimensions"),
    (lambda: Layout((0,), tail_padding=0),                              "positive"),
    (lambda: Layout((0,), physical_shape="f32[2]{0}"),                  "sparse"),
    (lambda: Shape("f32", (4,), Layout((0,), padded_dimensions=(3,))),  "exceed the padded"),
    (lambda: linear_index((0,), (4,), Layout((0,), padded_dimensions=(3,))), "exceed the padded"),
    (lambda: linear_index((0,), (4,), Layout((1, 0))),                  "the layout has rank 2"),
    (lambda: Shape("f32", (4,), Layout((0,), ((2, COMBINE),))).physical_size, "must end in a size"),
    (lambda: Shape("f32", (4,), Layout((0,), ((0,),))).physical_size,   "positive"),
    (lambda: Shape("f32", (4, 4), TILED).strides,                       "has no strides"),
    (lambda: Shape("f32", (UNBOUNDED,)).physical_size,                  "unbounded"),
    (lambda: from_physical([1, 2, 3], ROW, (2, 2)),                     "4 elements"),
]
OUTSIDE = [
    # call
    lambda: Shape("f32", (2, 3)).linear_index((2, 0)),
    lambda: Shape("f32", (2, 3)).linear_index((0, -1)),
    lambda: Shape("f32", (2, 3)).linear_index((0,)),
    lambda: Shape("f32", (2, 3)).linear_index((np.array([0, 2]), 0)),
    lambda: Shape("f32", (2, 3)).multi_index(6),
    lambda: Shape("f32", (2, 3)).multi_index(-1),
    lambda: Shape("f32", (2, 3)).multi_index(np.array([0, 6])),
    lambda: Shape("f32", (2, 3)).is_padding([6]),
    lambda: Shape("f32", (0, 3)).multi_index(0),
    lambda: Shape("f32", (2, 3)).dim(2),
    lambda: Shape("f32", (2, 3)).dim(-3),
]
# fmt: on


@pytest.mark.parametrize("layout, stored", STORED)
def test_a_layout_orders_the_elements_of_the_buffer(layout: Layout, stored: list[str]) -> None:
    buffer = to_physical(LETTERS, layout)
    assert buffer.tolist() == stored
    assert from_physical(buffer, layout, (2, 3)).tolist() == LETTERS.tolist()
    where = np.array(stored) == _
    padding = np.asarray(Shape("f32", (2, 3), layout).is_padding(np.arange(len(stored))))
    assert padding.tolist() == where.tolist()


def test_padding_has_a_value() -> None:
    numbers = np.arange(1, 7).reshape(2, 3)
    padded = Layout((0, 1), padded_dimensions=(3, 5), padding_value=0)
    assert to_physical(numbers, padded).tolist() == [1, 4, 0, 2, 5, 0, 3, 6, 0, 0, 0, 0, 0, 0, 0]
    sevens = Layout((1, 0), padded_dimensions=(2, 4), padding_value=7)
    assert to_physical(numbers, sevens).tolist() == [1, 2, 3, 7, 4, 5, 6, 7]


def test_the_element_of_xlas_example_is_at_17() -> None:
    shape = Shape("f32", (3, 5), TILED)
    assert shape.linear_index((2, 3)) == 17
    assert shape.multi_index(17) == (2, 3)
    assert shape.multi_index(16) == (2, 2)
    assert [shape.multi_index(position) for position in (18, 19, 22, 23)] == [None] * 4


@pytest.mark.parametrize("shape, rank, true, size, physical, data, memory", MEASURES)
def test_physical_sizes_include_padding(
    shape: Shape, rank: int, true: int, size: int, physical: int, data: int, memory: int
) -> None:
    assert (shape.rank, shape.true_rank, shape.size) == (rank, true, size)
    assert (shape.physical_size, shape.bytes, shape.physical_bytes) == (physical, data, memory)


@pytest.mark.parametrize("dims, layout, strides", STRIDES)
def test_strides_are_the_distances_of_adjacent_elements(
    dims: tuple[int, ...], layout: Layout, strides: tuple[int, ...]
) -> None:
    shape = Shape("f32", dims, layout)
    assert shape.strides == strides
    for d, stride in enumerate(strides):
        neighbour = tuple(int(k == d) for k in range(len(dims)))
        assert shape.linear_index(neighbour) == stride


@pytest.mark.parametrize("call, message", INVALID)
def test_invalid_layouts_are_errors(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("call", OUTSIDE)
def test_out_of_range_is_an_index_error(call: Any) -> None:
    with pytest.raises(IndexError):
        call()


def test_dimensions_count_from_the_end() -> None:
    assert Layout((-1, -3, -2)) == Layout((2, 0, 1))
    assert Layout((1, 0), splits=((-1, (2,)),)).splits == ((1, (2,)),)
    assert [Shape("f32", (2, 3, 5)).dim(d) for d in (0, -1, -3)] == [2, 5, 2]


@st.composite
def draw_shape(draw: st.DrawFn) -> Shape:
    """Draw a small array with any order, padding, tiles and tail padding."""
    dims = tuple(draw(st.lists(st.integers(0, 5), max_size=3)))
    sizes = st.one_of(st.integers(1, 4), st.just(COMBINE))
    tile = st.tuples(st.lists(sizes, max_size=2), st.integers(1, 4)).map(lambda t: (*t[0], t[1]))
    extra = draw(st.lists(st.integers(0, 2), min_size=len(dims), max_size=len(dims)))
    layout = Layout(
        tuple(draw(st.permutations(range(len(dims))))),
        tuple(draw(st.lists(tile, max_size=2))),
        tail_padding=draw(st.integers(1, 5)),
        padded_dimensions=tuple(n + more for n, more in zip(dims, extra, strict=True)),
        padding_value=-1,
    )
    return Shape("s32", dims, layout)


@given(draw_shape())
def test_from_physical_inverts_to_physical(shape: Shape) -> None:
    layout = shape.layout_or_default
    array = np.arange(shape.size).reshape(shape.dims)
    buffer = to_physical(array, layout)
    assert buffer.shape == (shape.physical_size,)
    assert (from_physical(buffer, layout, shape.dims) == array).all()
    padding = shape.is_padding(np.arange(shape.physical_size))
    assert ((buffer == -1) == padding).all()


@given(draw_shape())
def test_numbers_and_arrays_give_equal_results(shape: Shape) -> None:
    dims, layout = shape.dims, shape.layout_or_default
    indices = list(np.ndindex(*dims))
    columns = [np.array([i[d] for i in indices], dtype=int) for d in range(len(dims))]
    if dims and indices:
        alone = [linear_index(i, dims, layout) for i in indices]
        assert np.asarray(linear_index(columns, dims, layout)).tolist() == alone
    positions = range(shape.physical_size)
    many = multi_index(positions, dims, layout)
    assert many is not None
    one_by_one = [multi_index(p, dims, layout) for p in positions]
    for position, index in enumerate(one_by_one):
        padding = (-1,) * len(dims)
        assert tuple(int(np.asarray(m)[position]) for m in many) == (index or padding)

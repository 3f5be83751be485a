"""Positions in memory are injective and invertible."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo.shapes.layout import COMBINE, Layout
from hlo.shapes.tiling import extent, index_at, position_of

# fmt: off
PLACES = [
    # dims       layout                                            index      position  extent
    ((3, 5),     Layout((1, 0)),                                   (2, 3),    13,       15),
    ((3, 5),     Layout((0, 1)),                                   (2, 3),    11,       15),
    ((3, 5),     Layout((1, 0), tiles=((2, 2),)),                  (2, 3),    17,       24),
    ((3, 5),     Layout((0, 1), tiles=((2, 2),)),                  (2, 3),    14,       24),
    ((4, 8),     Layout((1, 0), tiles=((2, 4), (2, 1))),           (1, 5),    11,       32),
    ((7,),       Layout((0,), tiles=((2, 4),)),                    (5,),      9,        16),
    ((2, 3, 5),  Layout((2, 1, 0), tiles=((COMBINE, 4),)),         (1, 2, 3), 29,       32),
    ((),         Layout((), tiles=((256,),)),                      (),        0,        256),
    ((3,),       Layout((0,), tail_padding=8),                     (2,),      2,        8),
    ((3, 0),     Layout((1, 0), tiles=((2, 2),)),                  None,      None,     0),
]
# fmt: on


@pytest.mark.parametrize("dims, layout, index, position, room", PLACES)
def test_positions_are_those_of_the_tiled_layout(
    dims: tuple[int, ...],
    layout: Layout,
    index: tuple[int, ...] | None,
    position: int | None,
    room: int,
) -> None:
    assert extent(dims, layout) == room
    if index is not None and position is not None:
        assert position_of(index, dims, layout) == position
        assert index_at(position, dims, layout) == index


@st.composite
def draw_tiled(draw: st.DrawFn) -> tuple[tuple[int, ...], Layout]:
    """Draw small dimensions and a layout with up to two tiles."""
    dims = tuple(draw(st.lists(st.integers(1, 5), max_size=3)))
    order = tuple(draw(st.permutations(range(len(dims)))))
    sizes = st.one_of(st.integers(1, 4), st.just(COMBINE))
    tile = st.tuples(st.lists(sizes, max_size=2), st.integers(1, 4)).map(lambda t: (*t[0], t[1]))
    tiles = tuple(draw(st.lists(tile, max_size=2)))
    return dims, Layout(order, tiles, tail_padding=draw(st.integers(1, 5)))


@given(draw_tiled())
def test_positions_and_indices_are_inverse(case: tuple[tuple[int, ...], Layout]) -> None:
    dims, layout = case
    indices = list(product(*map(range, dims)))
    positions = [position_of(index, dims, layout) for index in indices]
    room = extent(dims, layout)
    assert len(set(positions)) == len(positions)
    assert all(0 <= position < room for position in positions)
    index_of = {position: index_at(position, dims, layout) for position in range(room)}
    assert {p: i for p, i in index_of.items() if i is not None} == dict(
        zip(positions, indices, strict=True)
    )

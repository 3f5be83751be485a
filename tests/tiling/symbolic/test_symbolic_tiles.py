"""Symbolic tiles and closed forms against brute force: the values of a map on every tile."""

import random
from collections.abc import Iterator, Sequence

import pytest

from hlo import parse
from hlo.modules.module import Instruction
from hlo.ops.op import OPS
from indexing import IndexingMap, Unknown, input_to_output, output_to_input, parse_map
from indexing.tiling.symbolic.symbolic_tiles import SymbolicTile, symbolic_tile
from tests.ops.samples import samples_of
from tests.oracles import scale
from tests.tiling.symbolic.needed import Point, check_tiles, extents

MAX_POINTS = 20_000
"""Points of a map to enumerate."""
SEED = 20261122


def points_of(m: IndexingMap) -> int:
    count = 1
    for v in (*m.dims, *m.ranges):
        count *= v.upper - v.lower + 1
    return count


def check(m: IndexingMap, array: Sequence[int], rounds: int) -> None:
    rng = random.Random(f"{SEED} {m}")
    for _ in range(rounds):
        check_tiles(m, [rng.randint(1, n + 1) for n in array], array, rng.randrange(10**6))


# map, tile sizes that are accepted, tile sizes that are not
MAPS = [
    ("(d0) -> (d0 floordiv 6, d0 mod 6), domain: d0 in [0, 47]", "3 12 48 1", "4 9"),
    ("(d0, d1) -> (d0 * 6 + d1), domain: d0 in [0, 7], d1 in [0, 5]", "1,4 3,6 5,1", "2,5 3,2"),
    ("(d0) -> (-d0 + 46), domain: d0 in [0, 46]", "3 12 47", ""),
    ("(d0)[s0] -> (d0 * 2 + s0), domain: d0 in [0, 9], s0 in [0, 2]", "1 4 10", ""),
    # the last tile must have 2 elements, or the values have gaps
    ("(d0)[s0] -> (d0 + s0 * 2), domain: d0 in [0, 8], s0 in [0, 2]", "1 3 9 5", "2 4 8"),
    ("(d0)[s0] -> (d0 + s0 * 2), domain: d0 in [0, 7], s0 in [0, 2]", "1 2 3 4", "7"),
    ("(d0) -> (d0, d0), domain: d0 in [0, 5]", "1", "2"),
    # interior padding
    ("(d0) -> (d0 floordiv 2), domain: d0 in [1, 7], d0 mod 2 in [1, 1]", "1 3 4 8", ""),
    ("(d0) -> (d0 floordiv 3 + 1), domain: d0 in [2, 8], d0 mod 3 in [2, 2]", "1 2 4 9", ""),
    ("(d0) -> (d0 - 5), domain: d0 in [5, 15]", "1 4 16", ""),
    ("(d0) -> (d0 floordiv 3), domain: d0 in [0, 10]", "1 2 5 11", ""),
    ("(d0) -> (d0 * 5 + 18, 3), domain: d0 in [0, 4]", "1 2 5", ""),
    ("(d0) -> ((d0 * 5 + 18) floordiv 6, (d0 * 5) mod 6), domain: d0 in [0, 4]", "1", "2"),
    # reshapes that split and join
    (
        "(d0, d1) -> (d0 * 3 + d1 floordiv 4, d1 mod 4), domain: d0 in [0, 3], d1 in [0, 11]",
        "1,4 1,2 2,12 4,12 3,1 2,4",
        "1,3 2,8",
    ),
    (
        "(d0, d1) -> (d0 + (d0 * -5 + d1) floordiv 20, (-d0 + d1 floordiv 5) mod 4, d1 mod 5), "
        "domain: d0 in [0, 7], d1 in [0, 14]",
        "1,5 4,15 8,15",
        "1,10 2,15",
    ),
    # the prefixes of a scan, and its suffixes
    ("(d0)[s0] -> (s0), domain: d0 in [0, 6], s0 in [0, 6], d0 - s0 in [0, 6]", "1 3 4 7", ""),
    ("(d0)[s0] -> (s0), domain: d0 in [0, 6], s0 in [0, 6], d0 - s0 in [-6, 0]", "1 3 4 7", ""),
    ("(d0)[s0] -> (s0), domain: d0 in [0, 6], s0 in [1, 8], d0 + s0 in [2, 8]", "1 3 4 7", ""),
    ("(d0, d1) -> (d1, 3), domain: d0 in [5, 5], d1 in [0, 6]", "1,2 3,4 6,7", ""),
    (
        "(d0, d1)[s0] -> (d1 + s0 - 1), domain: d0 in [0, 2], d1 in [0, 9], s0 in [0, 2], "
        "d1 + s0 in [1, 10]",
        "1,1 2,4 3,10",
        "",
    ),
]


@pytest.mark.parametrize("text, accepted, refused", MAPS, ids=[row[0] for row in MAPS])
def test_a_tile_has_exactly_the_needed_elements(text: str, accepted: str, refused: str) -> None:
    m = parse_map(text)
    tile = symbolic_tile(m)
    assert isinstance(tile, SymbolicTile), tile
    for sizes in tile_sizes(accepted):
        assert tile.satisfied_by(sizes), f"{sizes}: {tile}"
        check_tiles(m, sizes, extents(m))
    for sizes in tile_sizes(refused):
        assert not tile.satisfied_by(sizes), f"{sizes}: {tile}"
    check(m, extents(m), rounds=30)


def tile_sizes(text: str) -> list[Point]:
    return [tuple(map(int, sizes.split(","))) for sizes in text.split()]


TIED = "(d0, d1) -> (d0, d1), domain: d0 in [0, 5], d1 in [0, 5], d0 + d1 in [0, 5]"
UNKNOWN = [
    ("(d0)[s0] -> (d0 + s0, s0), domain: d0 in [0, 3], s0 in [0, 3]", "s0 in [0, 3] ties"),
    ("(d0, d1) -> (d1), domain: d0 in [2, 5], d1 in [0, 5]", "only tiles with d0 in [2, 5]"),
    (TIED, "d0 + d1 in [0, 5] ties several results"),
]


@pytest.mark.parametrize("text, reason", UNKNOWN, ids=[row[1] for row in UNKNOWN])
def test_what_prevents_a_tile_is_named(text: str, reason: str) -> None:
    tile = symbolic_tile(parse_map(text))
    assert isinstance(tile, Unknown)
    assert reason in tile.reason


def maps_of(instruction: Instruction) -> Iterator[tuple[IndexingMap, Sequence[int]]]:
    """The maps of an instruction in both directions, with the sizes of the tiled array."""
    answer = output_to_input(instruction)
    shape = instruction.shape
    for own in answer.maps:
        for m in own:
            if hasattr(shape, "dims"):
                yield m, shape.dims
    for k, operand in enumerate(instruction.operands):
        for own in input_to_output(instruction, k).maps:
            for m in own:
                if hasattr(operand.shape, "dims"):
                    yield m, operand.shape.dims


@pytest.mark.parametrize("opcode", sorted(OPS))
def test_tiles_of_every_op_have_exactly_the_needed_elements(opcode: str) -> None:
    for sample in samples_of(opcode):
        for m, array in maps_of(sample.instruction):
            if points_of(m) <= MAX_POINTS and not m.is_known_empty and min(array, default=1):
                check(m, array, rounds=scale(4))


def test_sizes_at_runtime_variables_are_constrained_in_the_order_of_dimensions() -> None:
    """The order must not depend on the addresses of variables."""
    text = """ENTRY e {
      x = f32[100] parameter(0)  i = s32[2,3,5,7] parameter(1)
      ROOT g = f32[2,3,5,7] gather(x, i), offset_dims={}, collapsed_slice_dims={0},
        start_index_map={0}, index_vector_dim=4, slice_sizes={1} }"""
    ((m,), _) = output_to_input(parse(text).entry.root).maps
    tile = symbolic_tile(m)
    assert isinstance(tile, SymbolicTile)
    assert str(tile.constraints) == " && ".join([f"ts_{k} in [1, 1]" for k in range(4)])

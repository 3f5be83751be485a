"""XLA's cases of symbolic tiles, and brute force where this project disagrees.

In XLA's notation d0, d1, … are the tile sizes, and the offsets are those of the first tile.

Source: XLA ``xla/codegen/tiling/symbolic_tile_test.cc``, suite ``SymbolicTileTest``.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product
from math import prod
from typing import NamedTuple

import pytest

import hlo
import indexing
from indexing import IndexingMap, parse_map
from indexing.ops.samples import instruction_of
from indexing.tiling.symbolic.symbolic_tiles import SymbolicTile, symbolic_tile
from simplifier import Expr, Variable
from simplifier.reading import parse_expr
from tests.tiling.symbolic.needed import (
    Elements,
    Point,
    box_of,
    extents,
    is_box,
    needed_elements,
    tile_at,
    tiles,
    values,
    values_by_name,
)

MAX_SIZES = 150
"""Tile sizes of one case to compare."""

MAX_ELEMENTS = 60_000
"""Points of the tiles that are evaluated for one choice of sizes."""

MERGE = "f32[48,4] reshape(f32[1,8,6,4] p)"
SPLIT = "f32[4,8,6,4] reshape(f32[192,4] p)"
CONCATENATE = "f32[2,33,7] concatenate(f32[2,5,7] p, f32[2,11,7] q, f32[2,17,7] r), dimensions={1}"
UPDATE = "s32[20,30] dynamic-update-slice(s32[20,30] p, s32[5,10] u, s32[] i, s32[] j)"
GATHER = (
    "f32[1806,7,8,4] gather(f32[33,76,70] p, s32[1806,2] i), offset_dims={1,2,3}, "
    "collapsed_slice_dims={}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={7,8,4}"
)
SPLIT_STRIDE = (
    "((-d2 + 7) floordiv 6) * (((-d1 + 9) floordiv 8) * ((-((-d0 + 5) floordiv 4) + 1) * 48) "
    "+ (-((-d1 + 9) floordiv 8) + 1) * 6) + -((-d2 + 7) floordiv 6) + 1, 1"
)
SPLIT_SIZES = (
    "d0 in [1, 1] && d1 in [1, 1] || d0 in [1, 1] && d2 in [1, 1] || "
    "d0 in [1, 1] && d2 in [6, 6] || d1 in [1, 1] && d2 in [1, 1] || "
    "d1 in [8, 8] && d2 in [1, 1] || d1 in [8, 8] && d2 in [6, 6]"
)


class Golden(NamedTuple):
    """The tile of one operand: offsets, sizes, strides, and the constraints on the sizes."""

    program: str
    operand: int
    offsets: str
    sizes: str
    strides: str
    constraints: str = ""


# fmt: off
TILES = [
    Golden("f32[1,11,17,19] reshape(f32[11,17,19] p)", 0, "0, 0, 0", "d1, d2, d3", "1, 1, 1"),
    Golden(MERGE, 0, "0, 0, 0, 0", "1, (d0 + 5) floordiv 6, d0 - ((d0 - 1) floordiv 6) * 6, d1",
           "0, 1, 1, 1", "6 mod d0 in [0, 0] || d0 mod 6 in [0, 0]"),
    Golden(SPLIT, 0, "0, 0", "(d0 * d1) * d2, d3", SPLIT_STRIDE, SPLIT_SIZES),
    Golden("f32[150] add(f32[150] p, f32[150] q)", 0, "0", "d0", "1"),
    Golden("f32[179] reverse(f32[179] p), dimensions={0}", 0, "-d0 + 179", "d0", "1"),
    Golden("f32[10,21] transpose(f32[21,10] p), dimensions={1,0}", 0, "0, 0", "d1, d0", "1, 1"),
    Golden(CONCATENATE, 0, "0, 0, 0", "d0, d1, d2", "1, 1, 1"),
    Golden(CONCATENATE, 1, "0, -5, 0", "d0, d1, d2", "1, 1, 1"),
    Golden(CONCATENATE, 2, "0, -16, 0", "d0, d1, d2", "1, 1, 1"),
    Golden("f32[8,8] pad(f32[4,4] p, f32[] v), padding=2_2_0x1_3_0", 0, "-2, -1", "d0, d1", "1, 1"),
    Golden(UPDATE, 0, "0, 0", "d0, d1", "1, 1"),
    Golden(UPDATE, 1, "-s0, -s1", "d0, d1", "1, 1"),
    Golden(UPDATE, 2, "", "", ""),
    Golden(UPDATE, 3, "", "", ""),
    Golden(GATHER, 0, "s0, s1, 0", "d1, d2, d3", "1, 1, 1"),
    Golden(GATHER, 1, "0, 0", "d0, 2", "1, 1"),
    Golden("()[s0, s1] -> (s1 * 2 + s0), domain: s0 in [0, 1], s1 in [0, 8]", 0, "0", "18", "1"),
    Golden("(d0, d1, d2)[s0] -> (d0, d1, d2 * 128 + s0), domain: d0 in [0, 3], d1 in [0, 2047], "
           "d2 in [0, 392], s0 in [0, 127]", 0, "0, 0, 0", "d0, d1, d2 * 128", "1, 1, 1"),
]
STRIDES = [  # of SPLIT at tile sizes
    ((4, 8, 6, 4), (1, 1)),
    ((1, 1, 6, 4), (1, 1)),
    ((1, 8, 1, 4), (6, 1)),
    ((2, 1, 1, 4), (48, 1)),
    ((2, 8, 1, 4), (6, 1)),
    ((1, 1, 1, 4), (0, 1)),
]
# fmt: on

DISAGREEMENTS = {(GATHER, 0): "rows of the indices start at different places"}

SLICED = """
computation {{
  p = f32[1,{0},4] parameter(0)
  {1}
  reshape = f32[48,4] reshape(q)
  ROOT slice = f32[5,2] slice(reshape), slice={{[18:43:5], [0:4:2]}}
}}
ENTRY e {{
  p = f32[1,{0},4] parameter(0)
  ROOT fusion = f32[5,2] fusion(p), kind=kLoop, calls=computation
}}
"""
REDUCED = """
max { p = f32[] parameter(0)  q = f32[] parameter(1)  ROOT m = f32[] maximum(p, q) }
computation {
  p = f32[10,8] parameter(0)
  q = f32[20,8] parameter(1)
  concatenate = f32[30,8] concatenate(p, q), dimensions={0}
  low = f32[] constant(-inf)
  ROOT reduce = f32[8] reduce(concatenate, low), dimensions={0}, to_apply=max
}
ENTRY e {
  p = f32[10,8] parameter(0)
  q = f32[20,8] parameter(1)
  ROOT fusion = f32[8] fusion(p, q), kind=kLoop, calls=computation
}
"""
REFUSED_BY_XLA = {
    "reshape": ("f32[4,12,19] reshape(f32[12,4,19] p)", 0),
    "slice of reshape": (SLICED.format("8,6", "q = f32[1,8,6,4] copy(p)"), 0),
    "slice of reshape of transpose": (
        SLICED.format("6,8", "q = f32[1,8,6,4] transpose(p), dimensions={0,2,1,3}"),
        0,
    ),
    "slice of reshape of reverse": (
        SLICED.format("8,6", "q = f32[1,8,6,4] reverse(p), dimensions={1,2}"),
        0,
    ),
    "reduction of concatenation": (REDUCED, 1),
}


def map_of(program: str, operand: int) -> IndexingMap:
    """The map of an operand of a sample, of the root of a module, or a map's text."""
    if program.startswith("("):
        return parse_map(program)
    module = "ENTRY" in program
    instruction = hlo.parse(program).entry.root if module else instruction_of(program)
    (m,) = indexing.output_to_input(instruction).maps[operand]
    return m.simplify()


def tile_of(m: IndexingMap) -> SymbolicTile:
    tile = symbolic_tile(m)
    assert isinstance(tile, SymbolicTile), tile
    return tile


# ---------------------------------------------------------------- XLA's expressions


def expressions(text: str, rank: int) -> list[Expr]:
    """Expressions of XLA's text, with tile sizes d0, d1, … and runtime variables s0, s1, …."""
    names = {f"d{k}": Variable(f"d{k}", 1, 10**6) for k in range(rank)}
    names |= {f"s{k}": Variable(f"s{k}", 0, 10**6) for k in range(rank)}
    depth, parts = 0, [""]
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [parse_expr(part.strip(), names) for part in parts] if text else []


def accepts(constraints: str, sizes: Sequence[int]) -> bool:
    """Return True if `sizes` satisfy XLA's constraints, a disjunction of conjunctions."""
    return not constraints or any(
        all(_within(text, sizes) for text in conjunction.split("&&"))
        for conjunction in constraints.split("||")
    )


def _within(text: str, sizes: Sequence[int]) -> bool:
    expr, _, bounds = text.strip().partition(" in ")
    lower, upper = map(int, bounds.strip("[]").split(","))
    return lower <= _value(expressions(expr, len(sizes))[0], sizes) <= upper


def _value(expr: Expr, sizes: Sequence[int], runtime: Sequence[int] = ()) -> int:
    at = {f"d{k}": size for k, size in enumerate(sizes)}
    at |= {f"s{k}": value for k, value in enumerate(runtime)}
    return int(expr.value({v: at[v.name] for v in expr.variables()}))


def some_sizes(array: Sequence[int]) -> list[Point]:
    """All tile sizes of a small array, and otherwise some: whole dimensions and divisors often."""
    if prod(array) <= MAX_SIZES:
        return list(product(*[range(1, n + 1) for n in array]))
    rng = random.Random(f"{array}")
    often = [[1, n, *[k for k in range(2, n) if n % k == 0]] for n in array]
    chosen = {
        tuple(rng.choice([rng.randint(1, sizes[1]), rng.choice(sizes)]) for sizes in often)
        for _ in range(3 * MAX_SIZES)
    }
    return sorted(chosen)


# ---------------------------------------------------------------- comparison


def golden_box(golden: Golden, sizes: Sequence[int], runtime: Sequence[int]) -> list[range]:
    """XLA's box of the first tile."""
    columns = [
        [_value(expr, sizes, runtime) for expr in expressions(text, max(len(sizes), 4))]
        for text in (golden.offsets, golden.sizes, golden.strides)
    ]
    return [range(o, o + n * max(s, 1), max(s, 1)) for o, n, s in zip(*columns, strict=True)]


def own_box(tile: SymbolicTile, sizes: Sequence[int], runtime: Sequence[int]) -> list[range]:
    """The same of this project, without the bounds of the array."""
    at = values_by_name(tile.offsets.dims, [*sizes, *[0] * len(sizes)])
    at |= values_by_name([rt.variable for rt in tile.map.runtime], runtime)
    columns = (values(m, at) for m in (tile.offsets, tile.sizes, tile.strides))
    return [range(o, o + n * max(s, 1), max(s, 1)) for o, n, s in zip(*columns, strict=True)]


def check_boxes(tile: SymbolicTile, sizes: Sequence[int]) -> None:
    """Check the boxes of the first, the last, and some tiles against the needed elements."""
    array = extents(tile.map)
    grid = [-(-n // size) for size, n in zip(sizes, array, strict=True)]
    rng = random.Random(f"{sizes}")
    indices = {(0,) * len(grid), tuple(n - 1 for n in grid)}
    indices.add(tuple(rng.randrange(n) for n in grid))
    for index in sorted(indices):
        own = tile_at(index, sizes, array)
        if prod(map(len, own)) * prod(v.upper + 1 for v in tile.map.ranges) <= MAX_ELEMENTS:
            expected = needed_elements(tile.map, own)
            assert box_of(tile, sizes, index) == expected, (str(tile), sizes, index)


@pytest.mark.parametrize("golden", TILES, ids=lambda golden: f"{golden.program[:40]} {golden[1]}")
def test_tiles_of_xla(golden: Golden) -> None:
    tile = tile_of(map_of(golden.program, golden.operand))
    rng = random.Random(golden.program)
    runtime = [rng.randint(rt.variable.lower, rt.variable.upper) for rt in tile.map.runtime]
    refused = []
    compared = 0
    for sizes in some_sizes(extents(tile.map)):
        if not accepts(golden.constraints, sizes):
            continue
        if tile.satisfied_by(sizes):
            compared += 1
            assert own_box(tile, sizes, runtime) == golden_box(golden, sizes, runtime), sizes
            if compared % 10 == 1:
                check_boxes(tile, sizes)
        else:
            refused.append(sizes)
    assert compared
    assert bool(refused) == ((golden.program, golden.operand) in DISAGREEMENTS), refused[:9]
    for sizes in refused:
        if prod(sizes) <= MAX_ELEMENTS:
            assert is_wrong(golden, tile.map, sizes), sizes


def is_wrong(golden: Golden, m: IndexingMap, sizes: Sequence[int]) -> bool:
    """Return True if XLA's box of the first tile has not the elements that the tile needs."""
    first = [range(min(size, n)) for size, n in zip(sizes, extents(m), strict=True)]
    start = needed_elements(
        m, [range(1) for _ in sizes]
    )  # at the runtime values of the first element
    assert len(start) == 1
    runtime = min(start)[: len(m.runtime)]  # the offsets are s0 and s1
    return set(product(*golden_box(golden, sizes, runtime))) != needed_elements(m, first)


@pytest.mark.parametrize(("program", "operands"), [(UPDATE, 4), (GATHER, 2)])
def test_operands_of_xla(program: str, operands: int) -> None:
    assert len(indexing.output_to_input(instruction_of(program)).maps) == operands


@pytest.mark.parametrize(("sizes", "strides"), STRIDES)
def test_strides_of_xla(sizes: Point, strides: Point) -> None:
    tile = tile_of(map_of(SPLIT, 0))
    assert tile.satisfied_by(sizes)
    at = values_by_name(tile.offsets.dims, [*sizes, *[0] * len(sizes)])
    counts, own = values(tile.sizes, at), values(tile.strides, at)
    for count, stride, expected in zip(counts, own, strides, strict=True):
        assert stride == expected or count == 1


@pytest.mark.parametrize("name", REFUSED_BY_XLA)
def test_tiles_that_xla_refuses_are_derived_for_the_sizes_of_boxes(name: str) -> None:
    m = map_of(*REFUSED_BY_XLA[name])
    tile = tile_of(m)
    legal = [sizes for sizes in some_sizes(extents(m)) if tile.satisfied_by(sizes)]
    assert legal
    for sizes in legal[:: max(1, len(legal) // 25)]:
        check_boxes(tile, sizes)


def boxes_of_all_tiles(m: IndexingMap, sizes: Sequence[int]) -> list[Elements]:
    """The needed elements of every tile that needs any."""
    return [each for _, own in tiles(sizes, extents(m)) if (each := needed_elements(m, own))]


SPLIT_ROWS = {
    "split": "(d0) -> (d0 floordiv 6, d0 mod 6), domain: d0 in [0, 17]",
    "merged": "(d0, d1) -> (d0 * 6 + d1), domain: d0 in [0, 3], d1 in [0, 5]",
    "cut across": "(d0, d1) -> (d0 * 2 + d1 floordiv 3, d1 mod 3), "
    "domain: d0 in [0, 2], d1 in [0, 5]",
    "reversed": "(d0) -> (-d0 + 10), domain: d0 in [0, 10]",
    "strided": "(d0, d1) -> (d0 * 3 + 1, d1 * 2), domain: d0 in [0, 4], d1 in [0, 3]",
}


@pytest.mark.parametrize("name", SPLIT_ROWS)
def test_constraints_are_tight(name: str) -> None:
    m = parse_map(SPLIT_ROWS[name])
    tile = tile_of(m)
    for sizes in product(*[range(1, n + 1) for n in extents(m)]):
        are_boxes = all(map(is_box, boxes_of_all_tiles(m, sizes)))
        assert tile.satisfied_by(sizes) == are_boxes, (str(tile), sizes)

"""Blocks of masked scores against the mask itself, evaluated for each query and key.

A block is full if all queries of a tile see all of its keys, and skipped if none sees any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import pytest

import hlo
import indexing
from indexing import TiledBlocks, Tiling

PROGRAM = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY e {
  q = f32[2,Q,3] parameter(0)
  k = f32[2,K,3] parameter(1)
  n = s32[] parameter(2)
  lengths = s32[2] parameter(3)
  i = s32[2,Q,K] iota(), iota_dimension=1
  j = s32[2,Q,K] iota(), iota_dimension=2
  width.0 = s32[] constant(W)
  width = s32[2,Q,K] broadcast(width.0), dimensions={}
  distance = s32[2,Q,K] subtract(i, j)
  ns = s32[2,Q,K] broadcast(n), dimensions={}
  last = s32[2,Q,K] add(i, ns)
  length = s32[2,Q,K] broadcast(lengths), dimensions={0}
  below = pred[2,Q,K] compare(j, i), direction=LE
  near = pred[2,Q,K] compare(distance, width), direction=LT
  far = pred[2,Q,K] not(near)
  early = pred[2,Q,K] compare(j, width), direction=LT
  cached = pred[2,Q,K] compare(j, last), direction=LE
  inside = pred[2,Q,K] compare(j, length), direction=LT
  MASK
  score = f32[2,Q,K] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0},
    lhs_contracting_dims={2}, rhs_contracting_dims={2}
  zero = f32[] constant(0)
  zeros = f32[2,Q,K] broadcast(zero), dimensions={}
  masked = f32[2,Q,K] select(mask, score, zeros)
  ROOT sums = f32[2,Q] reduce(masked, zero), dimensions={2}, to_apply=add
}
"""


class Mask(NamedTuple):
    """A mask as HLO, and whether query i sees key j, for the width w and the runtime value n."""

    text: str
    sees: Callable[[int, int, int, int], bool]
    value: str = ""


def wrap(n: int) -> int:
    return (n + 2**31) % 2**32 - 2**31


MASKS = {
    "causal": Mask("copy(below)", lambda i, j, w, n: j <= i),
    "anti-causal": Mask("not(below)", lambda i, j, w, n: j > i),
    "window": Mask("and(below, near)", lambda i, j, w, n: i - w < j <= i),
    "half open": Mask("copy(near)", lambda i, j, w, n: i - j < w),
    "prefix": Mask("or(below, early)", lambda i, j, w, n: j <= i or j < w),
    "hole": Mask("or(early, far)", lambda i, j, w, n: j < w or i - j >= w),
    "lengths": Mask("copy(inside)", lambda i, j, w, n: j < n, "lengths"),
    "causal lengths": Mask("and(below, inside)", lambda i, j, w, n: j <= i and j < n, "lengths"),
    "cache": Mask("copy(cached)", lambda i, j, w, n: j <= wrap(i + n), "n"),
    "cache window": Mask(
        "and(cached, near)", lambda i, j, w, n: j <= wrap(i + n) and i - j < w, "n"
    ),
}

SIZES = [  # queries, keys, width, tile, block
    (12, 12, 4, (1, 4), 4),
    (12, 12, 1, (2, 3), 4),
    (11, 13, 5, (1, 4), 3),
    (7, 17, 3, (2, 16), 5),
    (13, 9, 20, (1, 1), 2),
    (24, 24, 7, (1, 6), 4),
]

VALUES = [-(2**31), -20, *range(-13, 30), 2**31 - 20, 2**31 - 5, 2**31 - 1]


class Case(NamedTuple):
    """A masked program, its tiling and the blocks of its keys."""

    mask: Mask
    keys: int
    width: int
    tiling: Tiling
    blocks: TiledBlocks

    def states(self, index: Sequence[int], value: int) -> tuple[str, ...]:
        """The states of the blocks for one tile."""
        queries = self.tiling.slices(*index)[1]
        states = []
        for start in range(0, self.keys, self.blocks.size):
            block = range(start, min(start + self.blocks.size, self.keys))
            pairs = product(range(queries.start, queries.stop), block)
            seen = {self.mask.sees(i, j, self.width, value) for i, j in pairs}
            states.append("partial" if len(seen) == 2 else "full" if True in seen else "skipped")
        return tuple(states)

    def given(self, value: int) -> dict[str, Any]:
        """The runtime values by name."""
        name = self.mask.value
        return {name: [value, value] if name == "lengths" else value} if name else {}


def case(name: str, sizes: Any) -> Case:
    queries, keys, width, tile_sizes, size = sizes
    mask = MASKS[name]
    text = PROGRAM.replace("MASK", f"mask = pred[2,Q,K] {mask.text}")
    for letter, extent in (("Q", queries), ("K", keys)):
        text = text.replace(f",{letter},", f",{extent},").replace(f",{letter}]", f",{extent}]")
    root = hlo.parse(text.replace("constant(W)", f"constant({width})")).entry.root
    tiling = indexing.tile(root, tile_sizes, to="parameters")
    assert isinstance(tiling, Tiling)
    blocks = tiling.blocks("k", size, dimension=1)
    assert isinstance(blocks, TiledBlocks)
    return Case(mask, keys, width, tiling, blocks)


ALL = pytest.mark.parametrize(
    ("name", "sizes"), [(name, sizes) for name in MASKS for sizes in SIZES], ids=str
)


@ALL
def test_states_are_those_of_the_mask(name: str, sizes: Any) -> None:
    own = case(name, sizes)
    varies = own.mask.value == "lengths" and sizes[3][0] == 2
    for index in own.tiling.tiles():
        seen: list[set[str]] = [set() for _ in range(own.blocks.count)]
        for value in VALUES if own.mask.value else [0]:
            expected = own.states(index, value)
            if not varies:  # else the tile has several values
                assert own.blocks.at(*index, **own.given(value)) == expected, value
            for states, state in zip(seen, expected, strict=True):
                states.add(state)
        assert own.blocks.at(*index) == tuple([s.pop() if len(s) == 1 else "runtime" for s in seen])


@ALL
def test_loop_bounds_are_the_first_and_the_last_block_that_is_read(name: str, sizes: Any) -> None:
    own = case(name, sizes)
    bounds = own.blocks.loop_bounds
    assert isinstance(bounds, tuple)
    for index in own.tiling.tiles():
        for value in VALUES if own.blocks.runtime else [0]:
            states = own.states(index, value)
            read = [k for k, state in enumerate(states) if state != "skipped"]
            if not own.blocks.runtime and own.mask.value:
                read = [k for k, state in enumerate(own.blocks.at(*index)) if state != "skipped"]
            each = [m.evaluate(index, (), [value] * len(m.runtime)) for m in bounds]
            ends = [own_ends for own_ends in each if own_ends is not None]
            if read:
                assert ends == [(read[0], read[-1])], value
            elif all(m.grade == "exact" for m in bounds):
                assert all(last < first for first, last in ends), value


@ALL
def test_counts_pairs_and_bytes_are_sums_over_all_tiles(name: str, sizes: Any) -> None:
    own = case(name, sizes)
    counts, pairs, rows = [dict.fromkeys(own.blocks.counts, 0) for _ in range(3)]
    for index in own.tiling.tiles():
        batches, queries = [s.stop - s.start for s in own.tiling.slices(*index)]
        for k, state in enumerate(own.blocks.at(*index)):
            length = min(own.blocks.size, own.keys - k * own.blocks.size)
            counts[state] += 1
            pairs[state] += batches * queries * length
            rows[state] += batches * length
    assert own.blocks.counts == counts
    assert own.blocks.pairs == pairs
    assert own.blocks.bytes == {state: n * 3 * 4 for state, n in rows.items()}


def test_one_map_bounds_the_loop_of_common_masks() -> None:
    texts = {name: [str(m) for m in _bounds(name)] for name in MASKS}
    domain = "domain: tid_0 in [0, 1], tid_1 in [0, 3]"
    assert texts["causal"] == [f"(tid_0, tid_1) -> (0, tid_1), {domain}"]
    assert texts["window"] == [f"(tid_0, tid_1) -> (max(tid_1 - 1, 0), tid_1), {domain}"]


def test_conditions_of_the_bounds_are_printed_with_them() -> None:
    """Tiles 0 and 1 of 5 queries see 2 and 4 blocks of 3 keys, and tile 2 sees 4."""
    first, second = str(case("causal", (12, 12, 1, (1, 5), 3)).blocks).splitlines()[1:3]
    assert (first, second) == (
        "  loop: from block 0 to block 1, for tid_1 in [0, 0]",
        "  loop: from block 0 to block 3, for tid_1 in [1, 2]",
    )
    # query d sees keys up to d + n, which is negative beyond 2^31 - 1
    text = str(case("cache", (12, 12, 1, (1, 4), 3)).blocks)
    assert ", for rt0 in [-11, 2147483647], rt0 + tid_1 * 4 in [-3, 2147483647]" in text


def _bounds(name: str) -> tuple[indexing.IndexingMap, ...]:
    bounds = case(name, (32, 32, 3, (1, 8), 8)).blocks.loop_bounds
    assert isinstance(bounds, tuple)
    return bounds

"""Wavefronts of shared memory, compared with the enumeration of words and with `tensor_layouts`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexing
from indexing import IndexingMap
from indexing.devices.gpus import Gpu, gpu
from indexing.memory.layouts.cute import CuteLayout
from indexing.memory.layouts.swizzle import Swizzle
from indexing.memory.warps.bank_conflicts import BankConflicts, bank_conflicts
from indexing.memory.warps.swizzle_search import SwizzleSearch, find_swizzle
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.unknown import Unknown
from tests.oracles import fuzz

A100 = gpu("A100")
ROW = IndexingMap.over((32, 1), lambda d: [d[1], d[0]])
COLUMN = IndexingMap.over((32, 1), lambda d: [d[0], d[1]])
TILE = "(32,32):(32,1)"


def count(addresses: list[int | None], access_bytes: int, device: Gpu) -> tuple[int, int]:
    """Wavefronts and phases of one access, word by word."""
    lanes_at_once = min(
        device.threads_per_warp, device.banks * device.bank_bytes // max(4, access_bytes)
    )
    wavefronts = phases = 0
    for warp in range(0, len(addresses), device.threads_per_warp):
        lanes = addresses[warp : warp + device.threads_per_warp]
        for first in range(0, len(lanes), lanes_at_once):
            words = {
                byte // device.bank_bytes
                for address in lanes[first : first + lanes_at_once]
                if address is not None
                for byte in range(address, address + access_bytes)
            }
            banks = Counter(word % device.banks for word in words)
            wavefronts += max(banks.values(), default=0)
            phases += bool(words)
    return wavefronts, phases


def require_conflicts(answer: Any) -> BankConflicts:
    assert isinstance(answer, BankConflicts)
    return answer


@st.composite
def tiles(draw: st.DrawFn) -> tuple[IndexingMap, CuteLayout, int, int]:
    """Accesses of lanes to a tile: the map, a layout with padding and a swizzle, and the widths."""
    element_bits = draw(st.sampled_from([8, 16, 32, 64]))
    access_bytes = draw(st.sampled_from([b for b in (1, 2, 4, 8, 16) if b * 8 >= element_bits]))
    width = access_bytes * 8 // element_bits
    columns = draw(st.sampled_from([16, 32, 64]))
    padded = columns + draw(st.integers(0, 4)) * width
    bits = draw(st.integers(0, 3))
    base, shift = width.bit_length() - 1 + draw(st.integers(0, 2)), bits + draw(st.integers(0, 3))
    layout = CuteLayout((64, columns), (padded, 1), Swizzle.xor(bits, base, max(1, shift)))
    lanes = draw(st.sampled_from([5, 32, 48, 64]))
    a, b, c = (draw(st.integers(0, 7)) for _ in range(3))
    vectors = columns // width
    split = draw(st.sampled_from([1, 2, 4, 8, 32]))
    m = IndexingMap.over(
        (lanes, width),
        lambda d: [
            (d[0] * a + d[0] // split + c) % 64,
            (d[0] * b + d[0] % split) % vectors * width + d[1],
        ],
    )
    limit = draw(st.sampled_from([None, 3]))
    if limit is not None:
        m = m.with_constraints([Constraint(m.dims[0] % limit, 0, 1)])
    return m, layout, element_bits, access_bytes


@fuzz(200)
@given(tiles(), st.sampled_from(["A100", "MI300"]))
def test_wavefronts_are_those_of_all_words(
    tile: tuple[IndexingMap, CuteLayout, int, int], device: str
) -> None:
    m, layout, element_bits, access_bytes = tile
    addresses: list[int | None] = []
    for lane in range(m.dims[0].upper + 1):
        index = m.evaluate((lane, 0))
        addresses.append(None if index is None else layout(*index) * element_bits // 8)
    own = require_conflicts(bank_conflicts(m, layout, device, element_bits, access_bytes))
    assert (own.wavefronts, own.phases) == count(addresses, access_bytes, gpu(device))
    assert sum(degree * number for degree, number in own.histogram.items()) == own.wavefronts
    as_map = require_conflicts(bank_conflicts(m, layout.map, device, element_bits, access_bytes))
    assert as_map == own
    affine = CuteLayout(layout.shape, layout.stride)
    beside = bank_conflicts(m, affine, device, element_bits, access_bytes, swizzle=layout.swizzle)
    assert beside == own
    if own.worst is not None:
        assert len(own.worst.words) == max(own.histogram)
        assert {word % 32 for word in own.worst.words} == {own.worst.bank}


def test_conflicts_are_those_of_tensor_layouts() -> None:
    """One phase of 32 lanes: the conflict factor of another library."""
    analysis = pytest.importorskip("tensor_layouts.analysis", reason="tensor-layouts is optional")
    tensor_layouts = pytest.importorskip("tensor_layouts")
    for stride in range(70):
        theirs = analysis.bank_conflicts(tensor_layouts.Layout(32, stride), element_bytes=4)
        own = bank_conflicts(COLUMN, f"(32,32):({stride},1)")
        assert require_conflicts(own).wavefronts == theirs["max_ways"]
    for bits in range(1, 6):
        swizzled = tensor_layouts.compose(
            tensor_layouts.Swizzle(bits, 0, 5), tensor_layouts.Layout(32, 32)
        )
        theirs = analysis.bank_conflicts(swizzled, element_bytes=4)
        own = bank_conflicts(COLUMN, f"Sw<{bits},0,5> o 0 o (32,32):(32,1)")
        assert require_conflicts(own).wavefronts == theirs["max_ways"]


def test_loops_and_long_vectors_are_several_accesses() -> None:
    rows = IndexingMap.over((32, 4), lambda d, s: [s[0], d[0] * 4 + d[1]], ranges=(3,))
    layout = "(3,128):(128,1)"
    assert str(bank_conflicts(rows, layout, access_bytes=16)) == (
        "12 wavefronts in 12 phases: 0 in excess"
    )
    assert str(bank_conflicts(rows, layout)) == "48 wavefronts in 12 phases: 36 in excess"


def test_the_same_word_is_free() -> None:
    same = IndexingMap.over((32, 1), lambda d: [d[0] * 0, d[1]])
    assert require_conflicts(bank_conflicts(same, TILE)).excess == 0
    halves = IndexingMap.over((32, 1), lambda d: [d[1], d[0]])
    assert (
        require_conflicts(bank_conflicts(halves, TILE, element_bits=16, access_bytes=2)).excess == 0
    )


def test_accesses_that_are_apart_are_unknown() -> None:
    apart = IndexingMap.over((32, 2), lambda d: [d[0], d[1] * 2])
    answer = bank_conflicts(apart, TILE, access_bytes=8)
    assert isinstance(answer, Unknown)
    assert answer.reason == ("lane 0 accesses elements [0, 2]: not adjacent and aligned to 8 bytes")
    odd = IndexingMap.over((8, 2), lambda d: [d[0], d[1] + 1])
    assert isinstance(bank_conflicts(odd, TILE, access_bytes=8), Unknown)


def test_a_layout_below_0_is_unknown() -> None:
    lane = Variable("lane", 0, 31)
    down = IndexingMap.of([lane], [lane, 0])
    answer = bank_conflicts(down, IndexingMap.over((32, 1), lambda d: [3 - d[0]]))
    assert isinstance(answer, Unknown)
    assert "negative position -28" in answer.reason


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"access_bytes": 3}, "expected 1, 2, 4, 8 or 16 bytes"),
        ({"element_bits": 24}, "no whole number of 24 bits"),
        ({"access_bytes": 8}, "no whole number of accesses of 2 elements"),
        ({"device": "A101"}, "did you mean"),
    ],
)
def test_wrong_widths(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        bank_conflicts(COLUMN, TILE, **arguments)


# ---------------------------------------------------------------- search


def require_swizzle(search: object) -> SwizzleSearch:
    assert isinstance(search, SwizzleSearch)
    return search


def every_xor(bits: int) -> list[Swizzle]:
    """All swizzles ``Sw<B,M,S>`` of addresses with so many bits."""
    return [
        Swizzle.xor(b, m, s)
        for b in range(bits + 1)
        for m in range(bits)
        for s in range(max(1, b), bits)
        if b + m + s <= bits
    ]


@pytest.mark.parametrize("family", ["xor", "bits"])
@pytest.mark.parametrize(
    ("rows", "columns", "element_bits"), [(8, 8, 32), (16, 8, 32), (16, 16, 16), (8, 4, 64)]
)
def test_the_minimum_is_that_of_all_swizzles(
    rows: int, columns: int, element_bits: int, family: Any
) -> None:
    """Lanes along rows, and along columns, of small tiles."""
    device = Gpu("small", 0, 0, 8, 1, "for tests", banks=8)
    size = min(8, rows)
    maps = [
        IndexingMap.over((size, 1), lambda d: [d[0], d[1]]),
        IndexingMap.over((min(8, columns), 1), lambda d: [d[1], d[0]]),
        IndexingMap.over((size, 1), lambda d: [d[0] // 2 * 2, d[0] % 2]),
    ]
    layout = f"({rows},{columns}):({columns},1)"
    width = element_bits // 8
    search = require_swizzle(find_swizzle(maps, layout, device, element_bits, width, family=family))
    bits = (rows * columns - 1).bit_length()

    def wavefronts(swizzle: Swizzle) -> int:
        each = [
            bank_conflicts(m, layout, device, element_bits, width, swizzle=swizzle) for m in maps
        ]
        return sum(require_conflicts(answer).wavefronts for answer in each)

    assert wavefronts(search.swizzle) == search.wavefronts >= search.phases
    assert isinstance(search.swizzle.inverse(), Swizzle)
    if family == "xor":
        assert search.wavefronts == min(map(wavefronts, every_xor(bits)))
    assert search.wavefronts <= wavefronts(Swizzle(()))


def test_a_transpose_through_shared_memory_needs_no_padding() -> None:
    search = require_swizzle(indexing.find_swizzle([ROW, COLUMN], TILE))
    assert (str(search.swizzle), search.excess, search.extent) == ("Sw<5,0,5>", 0, 1024)


def test_a_minimum_above_the_bound_is_proved_by_enumeration() -> None:
    """Lanes of one column of an array with 64 columns, and of every other column."""
    diagonal = IndexingMap.over((32, 1), lambda d: [d[0], d[0]])
    search = require_swizzle(find_swizzle([ROW, COLUMN, diagonal], TILE))
    assert search.excess > 0
    assert search.proof == f"all {search.tried} swizzles of the family 'xor' were tried"


def test_vectors_stay_together() -> None:
    vectors = [
        IndexingMap.over((32, 4), lambda d: [d[0], d[1]]),
        IndexingMap.over((8, 4), lambda d: [d[0] * 0, d[0] * 4 + d[1]]),
    ]
    search = require_swizzle(find_swizzle(vectors, TILE, access_bytes=16))
    assert search.excess == 0
    assert search.swizzle.parameters == (3, 2, 3)


def test_families_beyond_the_budget_are_unknown() -> None:
    wide = IndexingMap.over((32, 1), lambda d: [d[0], d[1]])
    answer = find_swizzle([wide], "(32,4096):(4096,1)", family="bits")
    assert isinstance(answer, Unknown)
    assert "more than the budget" in answer.reason


def test_a_lane_outside_of_the_layout_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"lane 16 accesses element \[16, 0\], .* \[16, 32\]"):
        bank_conflicts(COLUMN, "(16,32):(32,1)")


def test_lanes_that_the_thread_map_leaves_out_access_nothing() -> None:
    first = IndexingMap.over((32, 1), lambda d: [d[0], d[1]])
    half = first.restrict(d0=slice(0, 16))
    assert bank_conflicts(half, "(16,32):(32,1)") == bank_conflicts(half, TILE)

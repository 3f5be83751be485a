"""Pictures of warps: compared with addresses that are computed by hand, and with the counts."""

from __future__ import annotations

from collections import defaultdict

import pytest

import hlo
import indexing
from tests.drawing.pictures import SVG, cells, texts, tree

TRANSPOSE = hlo.parse(
    """ENTRY e { p = f32[96,64] parameter(0)
  ROOT t = f32[64,96] transpose(p), dimensions={1,0} }"""
).entry.root


def links(svg: str) -> int:
    return sum(each.get("class") == "link" for each in tree(svg).iter(f"{SVG}path"))


def test_lanes_of_a_transpose_touch_a_sector_each() -> None:
    accesses = indexing.access(TRANSPOSE, threads=32)
    svg = accesses.plot().svg
    shown = cells(svg, "p")
    for lane in range(32):  # lane 0 of the first block computes t[0, 0], which is p[0, 0]
        address = lane * 64 * 4
        assert shown[f"lane {lane}"] == str(address)
        assert shown[f"sector {address // 32 * 32}"] == "1"
    assert sum(index.startswith("sector") for index in shown) == 32
    stored = cells(svg, "t")
    assert [value for index, value in stored.items() if index.startswith("sector")] == ["8"] * 4
    assert links(svg) == 64
    assert cells(svg, "p warps") == {"32 sectors": "192"}
    assert "not coalesced by XLA's rule" in texts(svg)


@pytest.mark.parametrize("unroll", [1, 4])
def test_sectors_are_those_that_are_counted(unroll: int) -> None:
    root = hlo.parse(
        """ENTRY e { p = f32[999] parameter(0)
      ROOT s = f32[499] slice(p), slice={[1:999:2]} }"""
    ).entry.root
    for access in indexing.access(root, threads=64, unroll=unroll):
        assert isinstance(access, indexing.MemoryAccess)
        svg = access.plot().svg
        shown = cells(svg, "p")
        assert access.worst is not None
        sectors = [index for index in shown if index.startswith("sector")]
        assert len(sectors) == access.worst.sectors
        bars = cells(svg, "p warps")
        assert {int(k.split()[0]): int(v) for k, v in bars.items()} == dict(access.histogram)


def test_unknown_accesses_are_listed() -> None:
    root = hlo.parse("ENTRY e { p = f32[5] parameter(0)  ROOT r = f32[5] no-such-opcode(p) }")
    svg = indexing.access(root.entry.root).plot().svg
    assert "load of operand 0: unknown: " in texts(svg)


CONFLICTS = [
    ("(32,32):(32,1)", 4),
    ("(32,32):(33,1)", 4),
    ("(32,32):(36,1)", 16),
    ("(32,32):(32,1)", 16),
    ("Sw<5,0,5> o 0 o (32,32):(32,1)", 4),
]


@pytest.mark.parametrize("layout, access_bytes", CONFLICTS)
def test_banks_are_those_of_bank_conflicts(layout: str, access_bytes: int) -> None:
    width = access_bytes // 4
    lanes = indexing.IndexingMap.over((32, width), lambda d: [d[0], d[1]])
    svg = indexing.plot_banks(lanes, layout, access_bytes=access_bytes).svg
    at = indexing.parse_cute(layout)
    words: dict[tuple[int, int], set[int]] = defaultdict(set)
    at_once = 32 // width
    for lane in range(32):
        for k in range(width):
            word = at(lane, k)
            words[lane // at_once, word % 32].add(word)
    shown = cells(svg, "banks")
    assert len(shown) == 32 * width
    for index, value in shown.items():
        access, warp, phase, bank = map(int, index.split(","))
        assert (access, warp) == (0, 0)
        assert int(value) == len(words[phase, bank])
    counted = indexing.bank_conflicts(lanes, layout, access_bytes=access_bytes)
    assert isinstance(counted, indexing.BankConflicts)
    by_phase: dict[str, int] = {}
    for index, value in shown.items():
        row = index.rpartition(",")[0]
        by_phase[row] = max(by_phase.get(row, 0), int(value))
    assert sum(by_phase.values()) == counted.wavefronts
    assert counted.worst is not None
    worst = cells(svg, "worst phase")
    assert int(worst[f"bank {counted.worst.bank}"]) == len(counted.worst.words)
    assert links(svg) == at_once * width


def test_unknown_conflicts_have_a_reason() -> None:
    lanes = indexing.IndexingMap.over((32, 4), lambda d: [d[0], d[1]])
    svg = indexing.plot_banks(lanes, "(32,32):(1,32)", access_bytes=16).svg
    assert "unknown: lane 0 accesses elements" in texts(svg)


@pytest.mark.parametrize("threads, unroll", [((32, 2), 1), ((4,), 2)])
def test_threads_of_a_schedule(threads: tuple[int, ...], unroll: int) -> None:
    """Thread t of block b computes the elements (b * threads + t) * unroll + k, in order."""
    shape = (5, 12)
    schedule = indexing.thread_map(shape, threads=threads, unroll=unroll)
    shown = cells(indexing.plot_threads(schedule, shape).svg, "elements")
    assert len(shown) == 60
    count = threads[0] * (threads[1] if len(threads) > 1 else 1)
    for index, value in shown.items():
        row, column = map(int, index.split(","))
        vector, k = divmod(row * 12 + column, unroll)
        block, thread = divmod(vector, count)
        words = [
            f"thread {thread}",
            *[f"bl_x {block}"] * bool(block),
            *[f"unroll_id {k}"] * bool(k),
        ]
        assert value == ", ".join(words)


def test_wrong_schedules_are_refused() -> None:
    schedule = indexing.thread_map((4, 4), threads=4)
    with pytest.raises(ValueError, match="the schedule has 2 results for sizes"):
        indexing.plot_threads(schedule, (16,))
    with pytest.raises(ValueError, match="points, more than 262,144"):
        indexing.plot_threads(indexing.thread_map((1 << 20,), threads=128), (1 << 20,))

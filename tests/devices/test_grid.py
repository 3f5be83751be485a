"""GPU grids: the elements that each thread computes, compared with the loops of a kernel."""

# ruff: noqa: E501 - a row is a line
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

import pytest

import hlo
import indexing
from indexing import IndexingMap, coverage, parse_map, thread_map
from indexing.devices.grid import LaunchDimensions, tile_map
from indexing.maps.layouts import logical_map, physical_map
from simplifier.atoms import Variable
from simplifier.linear import as_expr
from tests.oracles import Pair, divisions, join_pairs, union

Counts = tuple[int, int, int]

# fmt: off
SCHEDULES = [
    # shape                     threads     blocks      unroll
    ("f32[6]",                  (2, 1, 1),  (3, 1, 1),  1),
    ("f32[6]",                  (2, 1, 1),  (2, 1, 1),  1),    # two chunks, the second half empty
    ("f32[5,7]",                (4, 1, 1),  (2, 1, 1),  1),
    ("f32[5,7]",                (4, 1, 1),  (3, 1, 1),  2),    # the last vector is partial
    ("f32[5,8]",                (4, 1, 1),  (2, 1, 1),  4),
    ("f32[2,3,5]",              (3, 1, 1),  (7, 1, 1),  5),    # more threads than vectors
    ("f32[5,7]{0,1}",           (4, 1, 1),  (2, 1, 1),  1),
    ("f32[2,3,5]{1,2,0}",       (2, 1, 1),  (2, 1, 1),  3),
    ("f32[11]",                 (2, 2, 1),  (1, 3, 1),  1),
    ("f32[5,7]",                (2, 2, 3),  (2, 1, 2),  1),
    ("f32[3,5]{1,0:T(2,2)}",    (4, 1, 1),  (2, 1, 1),  2),    # tiles are ignored
    ("f32[1,1]",                (4, 1, 1),  (2, 1, 1),  1),
    ("f32[]",                   (4, 1, 1),  (1, 1, 1),  1),
    ("f32[0,3]",                (4, 1, 1),  (2, 1, 1),  2),
]
# fmt: on
IDS = [f"{shape} {threads}x{blocks}/{unroll}" for shape, threads, blocks, unroll in SCHEDULES]


def array(text: str) -> hlo.Shape:
    shape = hlo.parse_shape(text)
    assert isinstance(shape, hlo.Shape)
    return shape


def compute(shape: hlo.Shape, threads: Counts, blocks: Counts, unroll: int) -> Iterator[Pair]:
    """Yield each thread, block, chunk and lane of the kernel's loops with the computed element."""
    size, total = prod(shape.dims), [t * b for t, b in zip(threads, blocks, strict=True)]
    grid = product(*[range(n) for n in (*threads, *blocks)])
    for tx, ty, tz, bx, by, bz in grid:
        x, y, z = bx * threads[0] + tx, by * threads[1] + ty, bz * threads[2] + tz
        number = x + total[0] * (y + total[1] * z)
        chunk = 0
        while (start := (number + chunk * prod(total)) * unroll) < size:
            for lane in range(unroll):
                if start + lane < size:
                    index = [0] * shape.rank
                    rest = start + lane
                    for k in shape.layout_or_default.minor_to_major:
                        rest, index[k] = divmod(rest, shape.dims[k])
                    yield (tx, ty, tz, bx, by, bz, chunk, lane), tuple(index)
            chunk += 1


@pytest.mark.parametrize("text, threads, blocks, unroll", SCHEDULES, ids=IDS)
def test_threads_compute_the_elements_of_the_loops(
    text: str, threads: Counts, blocks: Counts, unroll: int
) -> None:
    shape = array(text)
    schedule = thread_map(shape, threads=threads, blocks=blocks, unroll=unroll)
    assert union([schedule.ranges_to_dims()]) == set(compute(shape, threads, blocks, unroll))
    if shape.size:
        names = [v.name for v in schedule.variables]
        assert names == ["th_x", "th_y", "th_z", "bl_x", "bl_y", "bl_z", "chunk_id", "unroll_id"]


@pytest.mark.parametrize("text, threads, blocks, unroll", SCHEDULES, ids=IDS)
def test_every_element_is_computed_once(
    text: str, threads: Counts, blocks: Counts, unroll: int
) -> None:
    shape = array(text)
    schedule = thread_map(shape, threads=threads, blocks=blocks, unroll=unroll)
    assert coverage(schedule, shape) is True


@pytest.mark.parametrize("text, threads, blocks, unroll", SCHEDULES, ids=IDS)
def test_neighbouring_threads_write_neighbouring_vectors(
    text: str, threads: Counts, blocks: Counts, unroll: int
) -> None:
    """Positions in memory need no division for any untiled layout."""
    shape = array(text)
    if "T(" in text or not shape.size:
        return
    schedule = thread_map(shape, threads=threads, blocks=blocks, unroll=unroll)
    position = schedule.then(physical_map(shape)).simplify()
    assert divisions(str(position.results[0])) == 0


# schedules of XLA's loop emitter, from its documentation and unit tests; the text may differ
# fmt: off
PUBLISHED = [
    # XLA                                       sizes            threads, blocks, unroll  map
    ("docs/emitters.md, Loop emitter",          (6, 512, 4096),  128, 24576, 4, """
        (bl_x floordiv 4096, (bl_x floordiv 8) mod 512, (bl_x mod 8) * 512 + th_x * 4 + unroll_id),
        domain: th_x in [0, 127], th_y in [0, 0], th_z in [0, 0], bl_x in [0, 24575], bl_y in [0, 0], bl_z in [0, 0],
        chunk_id in [0, 0], unroll_id in [0, 3]"""),
    ("loop_test.cc, ThreadId_IndexingUnrolled", (100, 200, 300), 128, 1008, 4, """
        ((((bl_x * 16 + th_x floordiv 8) floordiv 3 + chunk_id * 5376) floordiv 625) mod 100,
         (((bl_x * 128 + th_x) floordiv 3 + chunk_id * 43008) floordiv 25) mod 200,
         (th_x * 4 + bl_x * 512 + chunk_id * 516096) mod 300 + unroll_id),
        domain: th_x in [0, 127], th_y in [0, 0], th_z in [0, 0], bl_x in [0, 1007], bl_y in [0, 0], bl_z in [0, 0],
        chunk_id in [0, 11], unroll_id in [0, 3], (th_x + bl_x * 128) * 4 + chunk_id * 516096 in [0, 5999996]"""),
    ("loop_test.cc, ThreadId_Broadcast",        (10, 20, 30),    128, 47, 1, """
        ((bl_x * 128 + th_x) floordiv 600, ((bl_x * 128 + th_x) floordiv 30) mod 20, (bl_x * 128 + th_x) mod 30),
        domain: th_x in [0, 127], th_y in [0, 0], th_z in [0, 0], bl_x in [0, 46], bl_y in [0, 0], bl_z in [0, 0],
        chunk_id in [0, 0], unroll_id in [0, 0], bl_x * 128 + th_x in [0, 5999]"""),
]
# fmt: on


@pytest.mark.parametrize("name, sizes, threads, blocks, unroll, text", PUBLISHED, ids=[row[0] for row in PUBLISHED])  # fmt: skip
def test_schedules_equal_those_published_by_xla(
    name: str, sizes: Sequence[int], threads: int, blocks: int, unroll: int, text: str
) -> None:
    head = "(th_x, th_y, th_z, bl_x, bl_y, bl_z)[chunk_id, unroll_id] -> "
    published = parse_map(head + text.strip()).ranges_to_dims()
    schedule = thread_map(sizes, threads=threads, blocks=blocks, unroll=unroll)
    assert schedule.ranges_to_dims().is_equal(published)
    assert coverage(schedule, sizes) is True


def test_the_default_number_of_blocks_covers_the_output() -> None:
    assert thread_map((10, 20, 30), threads=128) == thread_map((10, 20, 30), threads=128, blocks=47)
    assert thread_map((10, 20, 30), threads=(16, 8)).dims[3].bounds == (0, 46)


# ---------------------------------------------------------------- composed

# fmt: off
READS = [
    # result                                                          operands
    ("f32[7,5] transpose(p), dimensions={1,0}",                       ["f32[5,7]"]),
    ("f32[7,5] transpose(p), dimensions={1,0}",                       ["f32[5,7]{0,1}"]),
    ("f32[4,9]{0,1} reshape(p)",                                      ["f32[6,6]"]),
    ("f32[5,3] broadcast(p), dimensions={1}",                         ["f32[3]"]),
    ("f32[6] slice(p), slice={[1:12:2]}",                             ["f32[13]"]),
    ("f32[5] reduce(p, q), dimensions={1}, to_apply=add",             ["f32[5,3]", "f32[]"]),
    ("f32[4,2] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}", ["f32[4,3]", "f32[3,2]"]),
    ("f32[8] concatenate(p, q), dimensions={0}",                      ["f32[5]", "f32[3]"]),
]
# fmt: on


@pytest.mark.parametrize("text, operands", READS, ids=[f"{row[0][:30]} of {row[1][0]}" for row in READS])  # fmt: skip
def test_a_thread_loads_the_elements_it_depends_on(text: str, operands: list[str]) -> None:
    names = "pq"
    lines = [f"{names[k]} = {shape} parameter({k})" for k, shape in enumerate(operands)]
    root = hlo.parse(
        "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"
        f"ENTRY e {{ {' '.join(lines)} ROOT r = {text} }}"
    ).entry.root
    assert isinstance(root.shape, hlo.Shape)
    schedule = thread_map(root.shape, threads=4, blocks=2, unroll=2)
    computes = {(at[:6], element) for at, element in compute(root.shape, (4, 1, 1), (2, 1, 1), 2)}
    for operand, maps in zip(root.operands, indexing.output_to_input(root).maps, strict=True):
        assert isinstance(operand.shape, hlo.Shape)
        loads = [schedule.then(reads).simplify(certify=True) for reads in maps]
        expected = join_pairs(computes, union(maps))
        assert union(loads) == expected
        positions = [
            load.then(physical_map(operand.shape)).simplify(certify=True) for load in loads
        ]
        memory = {at: operand.shape.linear_index(at) for _, at in expected}
        assert union(positions) == {(thread, (memory[at],)) for thread, at in expected}


def test_a_schedule_over_memory_equals_one_over_elements() -> None:
    """Both sides may be physical: positions of the output map to positions of the operand."""
    module = hlo.parse("ENTRY e { p = f32[6,8]{0,1} parameter(0) ROOT c = f32[6,8]{1,0} copy(p) }")
    out, operand = module.entry.root.shape, module.entry.parameters[0].shape
    assert isinstance(out, hlo.Shape)
    assert isinstance(operand, hlo.Shape)
    flat = thread_map((out.physical_size,), threads=8, unroll=2)
    (reads,) = indexing.output_to_input(module.entry.root).maps[0]
    through = flat.then(logical_map(out)).then(reads).then(physical_map(operand)).simplify()
    direct = thread_map(out, threads=8, unroll=2).then(reads).then(physical_map(operand)).simplify()
    assert through.is_equal(direct)
    assert coverage(through, (operand.physical_size,)) is True


# ---------------------------------------------------------------- errors


def test_a_wrong_schedule_has_a_witness() -> None:
    complete = thread_map((12,), threads=2, blocks=2, unroll=1)  # three chunks
    first = IndexingMap.of(
        complete.dims,
        complete.substituted({complete.ranges[0]: as_expr(0)})[0],
        ranges=complete.ranges[1:],
    )
    missing = coverage(first, (12,))
    assert not missing
    assert missing.witness is not None
    element = list(missing.witness.results[0])
    assert missing.reason == f"not surjective: element {element} is never reached"
    assert missing.witness.results[0][0] >= 4
    beyond = coverage(thread_map((6,), threads=3, unroll=2), (5,))
    assert not beyond
    assert beyond.reason == "element [5] is out of bounds"
    assert beyond.witness is not None
    assert (beyond.witness.points, beyond.witness.results) == (((2, 0, 0, 0, 0, 0, 0, 1),), ((5,),))
    overlapping = IndexingMap.of([Variable("th_x", 0, 7)], [Variable("th_x", 0, 7) // 2])
    twice = coverage(overlapping, (4,))
    assert not twice
    assert twice.reason == "not injective: two points have the same result"


# fmt: off
WRONG = [
    # arguments                              message
    ({"threads": 0},                        "threads=(0, 1, 1): expected at least 1 along each axis"),
    ({"threads": 4, "blocks": (2, 0)},         "blocks=(2, 0, 1): expected at least 1 along each axis"),
    ({"threads": (1, 1, 1, 1)},             "threads=(1, 1, 1, 1): expected one to three numbers, for x, y and z"),
    ({"threads": ()},                       "threads=(): expected one to three numbers, for x, y and z"),
    ({"threads": 4, "unroll": 0},              "unroll=0: expected at least 1"),
]
# fmt: on


@pytest.mark.parametrize("arguments, message", WRONG, ids=[row[1][:30] for row in WRONG])
def test_invalid_numbers_are_rejected(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        thread_map((6,), **arguments)


def test_thread_ids_are_linear_with_x_fastest() -> None:
    launch = LaunchDimensions((3, 2, 1), (2, 1, 2))
    numbers = {}
    for at in product(*[range(v.upper + 1) for v in launch.dims]):
        numbers[at] = launch.number.value(dict(zip(launch.dims, at, strict=True)))
    assert sorted(numbers.values()) == list(range(launch.count))
    assert numbers[1, 0, 0, 0, 0, 0] == 1
    assert numbers[0, 0, 0, 1, 0, 0] == 3  # the next block along x, before the next thread along y
    assert numbers[0, 1, 0, 0, 0, 0] == 6
    assert numbers[0, 0, 0, 0, 0, 1] == 12


# ---------------------------------------------------------------- tiles

# fmt: off
TILES = [
    # sizes         tile         threads  unroll  order
    ((4, 6),        (2, 3),      2,       1,      None),
    ((5, 7),        (2, 3),      4,       1,      (1, 0)),     # partial tiles
    ((5, 7),        (3, 4),      5,       2,      None),       # threads do not divide a tile
    ((3, 4, 5),     (1, 2, 5),   3,       1,      (2, 0, 1)),
    ((7,),          (9,),        2,       4,      None),
    ((),            (),          2,       1,      None),
    ((0, 3),        (2, 2),      2,       1,      None),
]
# fmt: on


def tile_pairs(
    sizes: Sequence[int], tile: Sequence[int], threads: int, unroll: int, order: Sequence[int]
) -> Iterator[Pair]:
    """Yield each thread, block, loop and lane of a tiled kernel with the computed element."""
    corners = product(*[range(0, sizes[k], tile[k]) for k in order])
    for block, corner in enumerate(corners):
        start = dict(zip(order, corner, strict=True))
        for number, inside in enumerate(product(*map(range, tile))):
            vector, lane = divmod(number, unroll)
            index = tuple([start[k] + inside[k] for k in range(len(sizes))])
            if all(i < size for i, size in zip(index, sizes, strict=True)):
                yield (vector % threads, 0, 0, block, 0, 0, vector // threads, lane), index


@pytest.mark.parametrize("sizes, tile, threads, unroll, order", TILES, ids=[str(row[:3]) for row in TILES])  # fmt: skip
def test_a_block_computes_a_tile(
    sizes: Sequence[int],
    tile: Sequence[int],
    threads: int,
    unroll: int,
    order: Sequence[int] | None,
) -> None:
    schedule = tile_map(sizes, tile, threads=threads, unroll=unroll, order=order)
    expected = set(tile_pairs(sizes, tile, threads, unroll, order or range(len(sizes))))
    assert union([schedule.ranges_to_dims()]) == expected
    assert coverage(schedule, sizes) is True


HEAD = "(th_x, th_y, th_z, bl_x, bl_y, bl_z)[s0] -> "
BOX = "th_x in [0, 127], th_y in [0, 0], th_z in [0, 0], bl_x in [0, 199], bl_y in [0, 0], bl_z in [0, 0], s0 in [0, 7]"
# fmt: off
TRANSPOSES = [
    # XLA, transpose_test.cc       sizes          tile         order      map
    ("ThreadIndexing021 input",    (100, 32, 64), (1, 32, 32), None,      "(bl_x floordiv 2, th_x floordiv 32 + s0 * 4, (bl_x mod 2) * 32 + th_x mod 32)"),
    ("ThreadIndexing021 output",   (100, 64, 32), (1, 32, 32), (0, 2, 1), "(bl_x floordiv 2, th_x floordiv 32 + (bl_x mod 2) * 32 + s0 * 4, th_x mod 32)"),
    ("ThreadIndexing201 input",    (100, 64, 32), (1, 32, 32), None,      "(bl_x floordiv 2, th_x floordiv 32 + (bl_x * 32 + s0 * 4) mod 64, th_x mod 32)"),
    ("ThreadIndexing201 output",   (32, 100, 64), (32, 1, 32), (1, 2, 0), "(th_x floordiv 32 + s0 * 4, bl_x floordiv 2, (bl_x mod 2) * 32 + th_x mod 32)"),
]
# fmt: on


@pytest.mark.parametrize("name, sizes, tile, order, text", TRANSPOSES, ids=[row[0] for row in TRANSPOSES])  # fmt: skip
def test_tiles_equal_those_published_by_xla(
    name: str, sizes: Sequence[int], tile: Sequence[int], order: Sequence[int] | None, text: str
) -> None:
    schedule = tile_map(sizes, tile, threads=128, order=order)
    assert schedule.is_equal(parse_map(f"{HEAD}{text}, domain: {BOX}"))


def test_a_block_of_a_transpose_writes_the_elements_it_reads() -> None:
    """An element belongs to the same block on both sides; its thread may differ."""
    module = hlo.parse(
        "ENTRY e { p = f32[5,7,3] parameter(0) ROOT t = f32[3,5,7] transpose(p), dimensions={2,0,1} }"
    )
    (moves,) = indexing.output_to_input(module.entry.root).maps[0]
    reads = tile_map((5, 7, 3), (1, 2, 2), threads=4)
    writes = tile_map((3, 5, 7), (2, 1, 2), threads=4, order=(1, 2, 0))

    def owners(pairs: set[Pair]) -> dict[tuple[int, ...], int]:
        return {element: thread[3] for thread, element in pairs}

    read, written = owners(union([reads])), owners(union([writes]))
    source = dict(union([moves]))
    assert {source[at]: block for at, block in written.items()} == read


def test_invalid_tiles_are_rejected() -> None:
    with pytest.raises(ValueError, match="expected positive numbers and a tile of rank 2"):
        tile_map((4, 6), (2,), threads=4)
    with pytest.raises(ValueError, match="expected positive numbers"):
        tile_map((4, 6), (2, 0), threads=4)
    with pytest.raises(
        ValueError, match=re.escape("order=(0, 0): expected a permutation of range(2)")
    ):
        tile_map((4, 6), (2, 3), threads=4, order=(0, 0))

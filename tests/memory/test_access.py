"""Sectors and lines that warps touch, compared with the enumeration of all addresses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
import indexing
from hlo.shapes.memory import linear_index
from hlo.shapes.shape import Shape
from indexing import IndexingMap
from indexing.devices.gpus import GPUS, Gpu
from indexing.maps.arrays import ArrayRef
from indexing.memory.warps.access import MemoryAccess
from indexing.memory.warps.transactions import transactions
from indexing.memory.warps.warp_classes import WarpAccesses, warp_classes
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.unknown import Unknown
from tests.ops.samples import MAPPED, Sample, SampleChecks, samples_of
from tests.oracles import fuzz, sampled, tree_expr, trees

SMALL = Gpu("small", 1024, 64, 4, 99, "for tests", 8, 16, 16, vector_bytes=8)
A100 = GPUS["A100"]


class Counts(NamedTuple):
    """The expected numbers of one load."""

    warps: int
    requested: int
    used: int
    ideal: int
    segments: Mapping[int, int]
    histogram: Mapping[int, int]


Table = dict[tuple[int, ...], dict[tuple[int, ...], tuple[int | None, ...]]]
"""By block and by loops: the position of each thread."""


def tables(
    schedule: IndexingMap, reads: IndexingMap, shape: Shape, starts: Mapping[str, int]
) -> dict[int, Table]:
    """The positions that threads read, by enumeration: for each element of a vector, its table."""
    m = schedule.then(reads)
    threads = [v for v in m.dims if v.name.startswith("th")]
    blocks = [v for v in m.dims if v not in threads]
    loops = [v for v in m.ranges if v.name != "unroll_id"]
    vector = [v for v in m.ranges if v.name == "unroll_id"]
    values = [starts[rt.name] for rt in m.runtime]

    def box(variables: list[Variable]) -> list[dict[Variable, int]]:
        spans = [range(v.lower, v.upper + 1) for v in variables]
        return [dict(zip(variables, point, strict=True)) for point in product(*spans)]

    def position(point: Mapping[Variable, int]) -> int | None:
        index = m.evaluate([point[v] for v in m.dims], [point[v] for v in m.ranges], values)
        if index is None:
            return None
        place = linear_index(index, shape.dims, shape.layout_or_default)
        assert isinstance(place, int)
        return place

    every: dict[int, Table] = {}
    by_number = sorted(box(threads), key=lambda p: [p[v] for v in threads[::-1]])
    for own in box(vector):
        table: Table = {}
        for loop in box(loops):
            table[tuple(loop.values())] = {
                tuple(block.values()): tuple(
                    [position({**own, **loop, **block, **thread}) for thread in by_number]
                )
                for block in box(blocks)
            }
        every[next(iter(own.values()), 0)] = without_constant_loops(table)
    return every


def without_constant_loops(table: Table) -> Table:
    """The table without loops that change nothing, which the compiler moves out."""
    axis = 0
    while axis < len(next(iter(table), ())):
        values = {key[axis] for key in table}
        rest = {key[:axis] + key[axis + 1 :]: row for key, row in table.items()}
        if all(table[(*k[:axis], x, *k[axis:])] == row for k, row in rest.items() for x in values):
            table = rest
        else:
            axis += 1
    return table


def count(table: Table, width: int, bits: int, device: Gpu) -> Counts:
    """The expected numbers of one load of `width` elements."""
    warps = requested = used = ideal = 0
    segments, histogram = Counter[int](), Counter[int]()
    lane_bytes = -(-width * bits // 8)
    for blocks in table.values():
        for row in blocks.values():
            for first in range(0, len(row), device.threads_per_warp):
                lanes = [p for p in row[first : first + device.threads_per_warp] if p is not None]
                if not lanes:
                    continue
                starts = {p * bits // 8 for p in lanes}
                touched = {byte + k for byte in starts for k in range(lane_bytes)}
                warps += 1
                requested += len(lanes) * lane_bytes
                used += len(touched)
                ideal += -(-len(touched) // device.sector_bytes)
                for size in {32, 64, 128, device.sector_bytes, device.line_bytes}:
                    segments[size] += len({byte // size for byte in touched})
                histogram[len({byte // device.sector_bytes for byte in touched})] += 1
    return Counts(warps, requested, used, ideal, dict(segments), dict(histogram))


def check(access: MemoryAccess, every: list[dict[int, Table]], shape: Shape) -> None:
    """Compare the loads of one operand with the tables of its maps."""
    bits = shape.element_bits
    instructions = iter([load for load in access.instructions if load.transactions.warps])
    for by_element in every:
        covered: list[Table] = []
        while rest := [k for k, t in by_element.items() if is_active(t) and t not in covered]:
            load = next(instructions)
            assert load.unroll == rest[0]
            width = max(1, load.bytes_per_lane * 8 // bits)
            first = by_element[load.unroll]
            for k in range(width):
                other = by_element[load.unroll + k]
                covered.append(other)
                assert other == shift(first, k)
                if width > 1:
                    assert all(p % width == 0 for p in places(first))
            expected = count(first, width, bits, access.device)
            own = load.transactions
            assert own.segments == expected.segments
            assert own.histogram == expected.histogram
            assert (own.warps, own.bytes_requested) == (expected.warps, expected.requested)
            assert (own.bytes_used, own.ideal_sectors) == (expected.used, expected.ideal)
    assert next(instructions, None) is None


def is_active(table: Table) -> bool:
    return next(places(table), None) is not None


def places(table: Table) -> Iterator[int]:
    """All positions in a table."""
    for blocks in table.values():
        for row in blocks.values():
            yield from (p for p in row if p is not None)


def shift(table: Table, by: int) -> Table:
    return {
        loop: {
            block: tuple([None if p is None else p + by for p in row]) for block, row in b.items()
        }
        for loop, b in table.items()
    }


def check_sample(instruction: hlo.Instruction, unroll: int, device: Gpu, threads: Any) -> int:
    """Compare `access` of an instruction with enumeration; return the number of operands known."""
    number = 0
    accesses = indexing.access(instruction, threads, unroll, device)
    output = next(s for _, s in hlo.shapes.shape.leaves(instruction.shape))
    if isinstance(accesses.store, Unknown):
        return 0
    assert isinstance(output, Shape)
    schedule = indexing.thread_map(output, threads=threads, unroll=unroll)
    check(accesses.store, [tables(schedule, IndexingMap.identity(output), output, {})], output)
    answer = indexing.output_to_input(instruction, exact=True)
    for access, operand, maps, paths in zip(
        accesses, answer.operands, answer.maps, answer.paths, strict=True
    ):
        if isinstance(access, Unknown):
            continue
        shapes = [ArrayRef(operand, path).array_shape for path in paths]
        every = []
        for m, shape in zip(maps, shapes, strict=True):
            assert shape is not None
            starts = {
                rt.name: access.worst_starts.get(start_name(rt), rt.variable.lower)
                for rt in m.runtime
            }
            every.append(tables(schedule, m, shape, starts))
        if shapes and shapes[0] is not None:
            check(access, every, shapes[0])
        number += 1
    return number


def start_name(rt: Any) -> str:
    index = f"[{', '.join(map(str, rt.index))}]" if rt.index else ""
    return f"{rt.source_name}{index}"


CHECKS = SampleChecks()


@CHECKS.of(MAPPED)
def single_elements_are_counted(sample: Sample) -> None:
    check_sample(sample.instruction, 1, SMALL, (3, 2))


@CHECKS.of(MAPPED)
def vectors_are_counted(sample: Sample) -> None:
    check_sample(sample.instruction, 2, SMALL, 5)


@pytest.mark.parametrize("opcode", CHECKS.opcodes)
def test_samples(opcode: str) -> None:
    CHECKS.check(opcode, sampled(samples_of(opcode), opcode))


def test_a_loop_with_one_active_iteration_for_each_thread_is_executed() -> None:
    """Each output element is in one window, so its thread is active in one iteration of six."""
    text = """
        HloModule m
        ge {
          a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT c = pred[] compare(a, b), direction=GE
        }
        add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
        ENTRY e {
          p = f32[4,6] parameter(0)
          q = f32[2,2] parameter(1)
          z = f32[] parameter(2)
          ROOT r = f32[4,6] select-and-scatter(p, q, z),
            window={size=2x3 stride=2x3}, select=ge, scatter=add
        }
        """
    root = hlo.parse(text).entry.root
    assert check_sample(root, 1, SMALL, (3, 2)) == 3
    access = indexing.access(root, (3, 2), 1, SMALL)[1]
    assert isinstance(access, MemoryAccess)
    assert access.instructions[0].transactions.warps == 20


def test_equal_warps_are_not_enumerated() -> None:
    """A million blocks of a padded row: one class of one pattern at 32 alignments."""
    bl, lane = Variable("bl_x", 0, 10**6), Variable("lane", 0, 31)
    accesses = WarpAccesses(bl * 1001 + lane, (), (bl,), lane)
    classes = warp_classes(accesses, 32, budget=64)
    assert not isinstance(classes, Unknown)
    assert [part.positions.shape for part in classes] == [(1, 32)]
    assert sum(a.warps for a in classes[0].alignments.values()) == 10**6 + 1


@st.composite
def warp_accesses(draw: st.DrawFn) -> WarpAccesses:
    """Quasi-affine positions over one to three variables and a lane, with constraints."""
    sizes = draw(st.lists(st.integers(1, 18), min_size=1, max_size=3))
    outer = [Variable(f"v{k}", draw(st.integers(-3, 2)), size) for k, size in enumerate(sizes)]
    lane = Variable("lane", 0, 3)
    every = (*outer, lane)
    position = tree_expr(draw(trees(len(every))), every)
    limits = [
        Constraint(tree_expr(draw(trees(len(every), leaves=5)), every), low, low + width)
        for low, width in draw(
            st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 60)), max_size=3)
        )
    ]
    return WarpAccesses(position, tuple(limits), tuple(outer), lane)


@fuzz(300)
@given(warp_accesses(), st.sampled_from([4, 8, 32, 64]))
def test_classes_of_warps_are_all_warps(accesses: WarpAccesses, bits: int) -> None:
    points = [
        dict(zip(accesses.outer, point, strict=True))
        for point in product(*[range(v.lower, v.upper + 1) for v in accesses.outer])
    ]
    lanes = range(accesses.lane.lower, accesses.lane.upper + 1)
    row = {
        tuple(point.values()): tuple(
            [
                accesses.position.value(at)
                if all(c.lower <= c.expr.value(at) <= c.upper for c in accesses.constraints)
                else None
                for at in [{**point, accesses.lane: lane} for lane in lanes]
            ]
        )
        for point in points
    }
    expected = count({(): row}, 1, bits, SMALL)
    own = transactions(accesses, element_bits=bits, elements=1, device=SMALL)
    assert not isinstance(own, Unknown)
    assert (own.warps, own.histogram) == (expected.warps, expected.histogram)
    assert {k: n for k, n in own.segments.items() if n} == expected.segments
    assert (own.bytes_requested, own.bytes_used) == (expected.requested, expected.used)
    assert own.ideal_sectors == expected.ideal
    if own.worst is not None:
        assert own.worst.sectors == max(own.histogram)
        where = tuple([own.worst.where[v.name] for v in accesses.outer])
        bytes_of = [None if p is None else p * bits // 8 for p in row[where]]
        assert list(own.worst.addresses) == bytes_of


def root(text: str) -> hlo.Instruction:
    return hlo.parse(text).entry.root


def require_access(answer: MemoryAccess | Unknown) -> MemoryAccess:
    assert isinstance(answer, MemoryAccess)
    return answer


@pytest.mark.parametrize(("element", "size"), [("u8", 1), ("bf16", 2), ("f32", 4), ("f64", 8)])
def test_segments_are_those_of_tensor_layouts(element: str, size: int) -> None:
    """One warp with a stride, and a vector of two elements for each lane: another library."""
    tensor_layouts = pytest.importorskip("tensor_layouts", reason="an oracle of the test extra")
    analysis = pytest.importorskip("tensor_layouts.analysis", reason="an oracle of the test extra")
    for stride in range(2, 40, 2):
        array = hlo.parse_shape(f"{element}[{stride * 32}]")
        assert isinstance(array, hlo.Shape)
        lane, vector = Variable("th_x", 0, 31), Variable("unroll_id", 0, 1)
        pairs = IndexingMap.of([lane], [lane * stride + vector], ranges=[vector])
        own = require_access(indexing.array_access(pairs, array))
        theirs = analysis.segment_analysis(
            tensor_layouts.Layout((32, 2), (stride, 1)), element_bytes=size
        )
        assert (own.sectors, own.lines) == (theirs["segments"], theirs["cache_lines"])
        assert own.transactions.bytes_used == theirs["unique_bytes"]
        assert own.bytes_requested == theirs["requested_bytes"]


def test_starts_give_the_best_and_the_worst_alignment() -> None:
    """A run of 32 floats: 4 sectors if it starts at a sector, otherwise 5."""
    window = root("""ENTRY e { p = f32[1000] parameter(0)  i = s32[] parameter(1)
      ROOT s = f32[32] dynamic-slice(p, i), dynamic_slice_sizes={32} }""")
    load = require_access(indexing.access(window, threads=32)[0])
    assert (load.best_starts, load.best.sectors) == ({"i": 0}, 4)
    assert (load.worst_starts, load.sectors, load.lines) == ({"i": 1}, 5, 2)


def test_adjacent_aligned_elements_are_one_vector() -> None:
    plain = root("ENTRY e { p = f32[4096] parameter(0)  ROOT n = f32[4096] negate(p) }")
    load = require_access(indexing.access(plain, unroll=4)[0])
    assert [(i.bytes_per_lane, i.unroll) for i in load.instructions] == [(16, 0)]
    wide = require_access(indexing.access(plain, unroll=8)[0])
    assert [(i.bytes_per_lane, i.unroll) for i in wide.instructions] == [(16, 0), (16, 4)]
    odd = root("""ENTRY e { p = f32[4097] parameter(0)
      ROOT s = f32[4096] slice(p), slice={[1:4097]} }""")
    apart = require_access(indexing.access(odd, unroll=4)[0])
    assert [i.bytes_per_lane for i in apart.instructions] == [4, 8, 4]
    assert apart.bytes_requested == load.bytes_requested
    assert (apart.ratio, load.ratio) == (3.0625, 1)


def test_packed_elements_share_bytes() -> None:
    packed = root("ENTRY e { p = s4[64]{0:E(4)} parameter(0)  ROOT c = s8[64] convert(p) }")
    load = require_access(indexing.access(packed, threads=64)[0])
    assert (load.bytes_requested, load.transactions.bytes_used, load.sectors) == (64, 32, 2)
    pairs = require_access(indexing.access(packed, threads=64, unroll=2)[0])
    assert [i.bytes_per_lane for i in pairs.instructions] == [1]
    assert (pairs.bytes_requested, pairs.sectors) == (32, 1)


def test_an_array_between_lines_touches_more_of_them() -> None:
    plain = root("ENTRY e { p = f32[4096] parameter(0)  ROOT n = f32[4096] negate(p) }")
    aligned = require_access(indexing.access(plain)[0])
    shifted_by_4 = require_access(indexing.access(plain, offset=4)[0])
    assert (aligned.sectors, aligned.lines) == (512, 128)
    assert (shifted_by_4.sectors, shifted_by_4.lines) == (640, 256)
    with pytest.raises(ValueError, match="misaligned"):
        indexing.access(plain, offset=2)


def test_warps_of_64_lanes() -> None:
    plain = root("ENTRY e { p = f32[4096] parameter(0)  ROOT n = f32[4096] negate(p) }")
    load = require_access(indexing.access(plain, device="MI300")[0])
    assert (load.transactions.warps, load.sectors, load.histogram) == (64, 256, {4: 64})


def test_a_launch_of_24576_blocks_is_two_patterns() -> None:
    """An addition with a transposed operand: each load has one pattern of 32 lanes."""
    fusion = root("""fused {
        p = f32[6,512,4096] parameter(0)  q = f32[6,4096,512] parameter(1)
        t = f32[6,512,4096] transpose(q), dimensions={0,2,1}
        ROOT a = f32[6,512,4096] add(p, t) }
      ENTRY e { p = f32[6,512,4096] parameter(0)  q = f32[6,4096,512] parameter(1)
        ROOT f = f32[6,512,4096] fusion(p, q), kind=kLoop, calls=fused }""")
    loads = indexing.access(fusion, unroll=4, budget=128)
    assert [require_access(load).histogram for load in loads] == [{16: 98304}, {32: 393216}]
    assert require_access(loads.store).histogram == {16: 98304}


def test_beyond_the_budget_the_answer_is_unknown() -> None:
    gathered = root("""ENTRY e { p = f32[9973,9967] parameter(0)
      ROOT t = f32[9967,9973] transpose(p), dimensions={1,0} }""")
    few = indexing.access(gathered, budget=1000)
    assert isinstance(few[0], Unknown)
    assert "lanes to enumerate, more than the budget of 1,000" in few[0].reason


def test_a_schedule_needs_threads() -> None:
    plain = root("ENTRY e { p = f32[64] parameter(0)  ROOT n = f32[64] negate(p) }")
    with pytest.raises(ValueError, match="th_x, th_y, th_z from 0"):
        indexing.access(plain, schedule=IndexingMap.identity((64,)))


def test_schedules_of_ones_own() -> None:
    """A tile of 32 x 32 elements for each block reads a transposed operand coalesced."""
    transpose = root("""ENTRY e { p = f32[96,64] parameter(0)
      ROOT t = f32[64,96] transpose(p), dimensions={1,0} }""")
    tiles = indexing.tile_map((96, 64), tile=(32, 32), threads=128)
    reads = tiles.then(IndexingMap.over((96, 64), lambda d: [d[1], d[0]]))
    assert require_access(indexing.access(transpose, schedule=reads)[0]).ratio == 1
    shape = transpose.operands[0].shape
    assert isinstance(shape, hlo.Shape)
    once, twice = [require_access(indexing.array_access([tiles] * n, shape)) for n in (1, 2)]
    assert (once.sectors, once.ideal_sectors, twice.sectors) == (768, 768, 1536)
    assert require_access(indexing.access(transpose)[0]).ratio == 8

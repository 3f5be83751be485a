"""Start indices computed from replica-id and partition-id become functions of the device."""

# ruff: noqa: E501 - a row is a line
from __future__ import annotations

import pytest

import hlo
import indexing
from indexing.maps.indexing_map import IndexingMap

# fmt: off
STARTS = [
    # instructions up to the start index `o`, on 2 replicas of 3 partitions       value, by replica and partition         pieces
    ("o = u32[] partition-id()",                                                  lambda r, p: p,                         1),
    ("o = u32[] replica-id()",                                                    lambda r, p: r,                         1),
    ("i = u32[] partition-id() c = u32[] constant(4) o = u32[] multiply(i, c)",   lambda r, p: 4 * p,                     1),
    ("i = u32[] partition-id() j = s32[] convert(i) c = s32[] constant(5) o = s32[] subtract(c, j)", lambda r, p: 5 - p,  1),
    ("i = u32[] partition-id() c = u32[] constant(1) o = u32[] subtract(i, c)",   lambda r, p: p - 1 if p else 2**32 - 1, 3),    # wraps around
    ("i = u32[] partition-id() t = s32[3] constant({7, 1, 2}) s = s32[1] dynamic-slice(t, i), dynamic_slice_sizes={1} o = s32[] reshape(s)", lambda r, p: (7, 1, 2)[p], 4),
    ("i = u32[] partition-id() c = u32[] constant(50) o = u32[] multiply(i, c)",  lambda r, p: 50 * p,                    3),    # clamped
    ("c = s32[] constant(-3) o = s32[] add(c, c)",                                lambda r, p: -6,                        1),
]
# fmt: on
REPLICAS, PARTITIONS, SIZE, WINDOW = 2, 3, 12, 3


def slice_instruction(start: str) -> hlo.Instruction:
    module = hlo.parse(
        f"""HloModule m, replica_count={REPLICAS}, num_partitions={PARTITIONS}
        ENTRY e {{
          p = f32[{SIZE}] parameter(0)
          {start}
          ROOT r = f32[{WINDOW}] dynamic-slice(p, o), dynamic_slice_sizes={{{WINDOW}}}
        }}"""
    )
    assert hlo.verify(module) == []
    return module.entry.root


def related_pairs(maps: tuple[IndexingMap, ...]) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    assert not any(m.runtime for m in maps)
    return {pair for m in maps for pair in m.points()}


@pytest.mark.parametrize("start, value, pieces", STARTS, ids=[row[0][:50] for row in STARTS])
def test_a_start_is_folded_to_its_value_on_each_device(
    start: str, value: object, pieces: int
) -> None:
    assert callable(value)
    maps = indexing.device_maps_to_parameters(slice_instruction(start)).maps[0]
    wanted = set()
    for number in range(REPLICAS * PARTITIONS):
        at = min(max(value(number // PARTITIONS, number % PARTITIONS), 0), SIZE - WINDOW)
        wanted |= {((number, k), (number, at + k)) for k in range(WINDOW)}
    assert related_pairs(maps) == wanted
    assert len(maps) <= pieces


def test_a_start_inside_a_fusion_is_folded_with_the_operand_of_the_caller() -> None:
    module = hlo.parse(
        """HloModule m, num_partitions=4
        inner {
          a = f32[8] parameter(0)
          b = u32[] parameter(1)
          ROOT s = f32[2] dynamic-slice(a, b), dynamic_slice_sizes={2}
        }
        ENTRY e {
          p = f32[8] parameter(0)
          i = u32[] partition-id()
          two = u32[] constant(2)
          o = u32[] multiply(i, two)
          f = f32[2] fusion(p, o), kind=kLoop, calls=inner
          ROOT g = f32[8] all-gather(f), channel_id=1, replica_groups=[1,4]<=[4],
            dimensions={0}, use_global_device_ids=true
        }"""
    )
    (gathered,) = indexing.device_maps_to_parameters(module.entry.root).maps[0]
    # device k slices its elements 2k and 2k + 1, and the slices of all devices are gathered
    assert related_pairs((gathered,)) == {((v, i), (i // 2, i)) for v in range(4) for i in range(8)}


# fmt: off
UNKNOWN = [
    "q = s32[] parameter(1) i = u32[] partition-id() j = s32[] convert(i) o = s32[] add(q, j)",
    "i = u32[] partition-id() t = s32[3] constant({...}) s = s32[1] dynamic-slice(t, i), dynamic_slice_sizes={1} o = s32[] reshape(s)",
    "a = s32[] constant(0) b = s32[] constant(9) o = s32[] rng(a, b), distribution=rng_uniform",
    "i = u32[] partition-id() f = f32[] convert(i) g = f32[] exponential(f) o = s32[] convert(g)",
]
# fmt: on


@pytest.mark.parametrize("start", UNKNOWN)
def test_a_start_that_the_device_does_not_determine_is_a_runtime_variable(start: str) -> None:
    (slice_map,) = indexing.device_maps_to_parameters(slice_instruction(start)).maps[0]
    (runtime,) = slice_map.runtime
    assert runtime.variable.bounds == (0, SIZE - WINDOW)

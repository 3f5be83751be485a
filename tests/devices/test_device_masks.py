"""Masks computed from replica-id and partition-id: which devices need an operand."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import hlo
import indexing

COUNT, SIZE = 4, 6
SCALAR = "c = pred[] compare(i, k), direction=%s"
SPREAD = "b = pred[] compare(i, k), direction=%s  c = pred[6] broadcast(b), dimensions={}"
ARRAY = (
    "x = u32[6] broadcast(i), dimensions={}  n = u32[6] iota(), iota_dimension=0  "
    "c = pred[6] compare(x, n), direction=%s"
)
TABLE = (
    "t = s32[4] constant({5,0,2,0})  s = s32[1] dynamic-slice(t, i), dynamic_slice_sizes={1}  "
    "j = s32[] reshape(s)  z = s32[] constant(0)  c = pred[] compare(j, z), direction=%s"
)
# fmt: off
MASKS = [
    (SCALAR % "LT", lambda device, k: device < 2),
    (SCALAR % "EQ", lambda device, k: device == 2),
    (SPREAD % "GE", lambda device, k: device >= 2),
    (ARRAY % "GE",  lambda device, k: device >= k),
    (ARRAY % "NE",  lambda device, k: device != k),
    (TABLE % "NE",  lambda device, k: device in (0, 2)),
]
# fmt: on


def program(mask: str, identity: str) -> hlo.Module:
    count = "num_partitions" if identity == "partition-id" else "replica_count"
    return hlo.parse(f"""HloModule m, {count}={COUNT}
    ENTRY e {{ p = f32[6] parameter(0)  q = f32[6] parameter(1)
      i = u32[] {identity}()  k = u32[] constant(2)  {mask}
      ROOT r = f32[6] select(c, p, q) }}""")


def pairs(maps: tuple[indexing.IndexingMap, ...]) -> Iterator[tuple[tuple[int, ...], ...]]:
    for m in maps:
        assert m.grade == "exact"
        yield from m.points()


@pytest.mark.parametrize("identity", ["partition-id", "replica-id"])
@pytest.mark.parametrize(("mask", "is_needed"), MASKS)
def test_the_number_of_the_device_decides_what_is_read(
    mask: str, is_needed: Callable[[int, int], bool], identity: str
) -> None:
    root = program(mask, identity).entry.root
    answer = indexing.device_maps_to_parameters(root)
    places = [(device, k) for device in range(COUNT) for k in range(SIZE)]
    for maps, wanted in zip(answer.maps, (True, False), strict=True):
        expected = {(at, at) for at in places if is_needed(*at) is wanted}
        assert set(pairs(maps)) == expected


def test_without_devices_the_number_is_a_runtime_value() -> None:
    answer = indexing.to_parameters(program(SCALAR % "LT", "partition-id").entry.root)
    assert [str(m) for m in answer.maps[0]] == [
        "(d0){rt0} -> (d0), domain: d0 in [0, 5], rt0 in [0, 1]"
    ]

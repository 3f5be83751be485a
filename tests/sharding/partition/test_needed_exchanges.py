"""The fewest bytes that the maps need of a collective, against numbers derived by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

import hlo
from indexing.sharding.partition.collective_costs import collective_costs
from indexing.sharding.partition.needed_exchanges import needed_exchanges
from simplifier.unknown import Unknown

HEAD = """HloModule m, num_partitions=4
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e {
"""
GROUPS = "channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true"
HALVES = "channel_id=1, replica_groups={{0,2},{1,3}}, use_global_device_ids=true"
START = """i = u32[] partition-id()  two = u32[] constant(2)  o = u32[] multiply(i, two)
  z = u32[] constant(0)"""
TABLE = """t = s32[4] constant({6,4,2,0})  ts = (s32[4], s32[4], u32[]) copy-start(t)
  td = s32[4] copy-done(ts)  i = u32[] partition-id()
  at = s32[1] dynamic-slice(td, i), dynamic_slice_sizes={1}  o = s32[] reshape(at)
  z = s32[] constant(0)"""
PART = "ROOT r = f32[2,3] dynamic-slice(c, o, z), dynamic_slice_sizes={2,3}"
BIG, ALL_REDUCE = "p = f32[8,3] parameter(0)", "all-reduce(%s), to_apply=add, "

# fmt: off
ROWS = [
    # each device reads 24 of 24 elements: 2 * 96 * 3/4 bytes
    (f"{BIG}  ROOT c = f32[8,3] {ALL_REDUCE % 'p'}{GROUPS}", 144, 144),
    # each reads its 6 elements: a reduce-scatter sends 96 * 3/4
    (f"{BIG}  c = f32[8,3] {ALL_REDUCE % 'p'}{GROUPS}  {START}  {PART}", 144, 72),
    # the same, with starts from a table that an asynchronous copy moves
    (f"{BIG}  c = f32[8,3] {ALL_REDUCE % 'p'}{GROUPS}  {TABLE}  {PART}", 144, 72),
    # all read the same 3 elements: each of them is sent 3 times in, 3 times out: 3 * 6 * 4 / 4
    (f"{BIG}  c = f32[8,3] {ALL_REDUCE % 'p'}{GROUPS}  ROOT r = f32[1,3] slice(c), "
     "slice={[5:6],[0:3]}", 144, 18),
    # two of the devices read it: 4 + 2 - 2 messages for each of 24 elements of 4 bytes, / 4
    (f"{BIG}  c = f32[8,3] {ALL_REDUCE % 'p'}{GROUPS}  i = u32[] partition-id()  "
     "two = u32[] constant(2)  b = pred[] compare(i, two), direction=LT  zero = f32[] constant(0)  "
     "zs = f32[8,3] broadcast(zero), dimensions={}  ROOT r = f32[8,3] select(b, c, zs)", 144, 96),
    # nobody reads it
    (f"{BIG}  c = f32[8,3] {ALL_REDUCE % 'p'}{GROUPS}  ROOT r = f32[8,3] negate(p)", 144, 0),
    # each contributes its rows only: a gather of 24 bytes by 3 others
    (f"x = f32[2,3] parameter(0)  n = f32[] constant(0)  w = f32[8,3] broadcast(n), dimensions={{}}"
     f"  {START}  p = f32[8,3] dynamic-update-slice(w, x, o, z)  "
     f"ROOT c = f32[8,3] {ALL_REDUCE % 'p'}{GROUPS}", 144, 72),
    # two groups of two: 96 bytes are sent by each
    (f"{BIG}  ROOT c = f32[8,3] {ALL_REDUCE % 'p'}{HALVES}", 96, 96),
    (f"{BIG}  ROOT c = f32[2,3] reduce-scatter(p), dimensions={{0}}, to_apply=add, {GROUPS}",
     72, 72),
    # 24 bytes to three others
    (f"p = f32[2,3] parameter(0)  ROOT c = f32[8,3] all-gather(p), dimensions={{0}}, {GROUPS}",
     72, 72),
    # each reads the part that it has sent
    (f"p = f32[2,3] parameter(0)  c = f32[8,3] all-gather(p), dimensions={{0}}, {GROUPS}  {START}"
     f"  {PART}", 72, 0),
    # each reads that of device 0, which sends nothing to itself: 3 * 24 / 4
    (f"p = f32[2,3] parameter(0)  c = f32[8,3] all-gather(p), dimensions={{0}}, {GROUPS}  "
     "ROOT r = f32[2,3] slice(c), slice={[0:2],[0:3]}", 72, 18),
    (f"{BIG}  ROOT c = f32[8,3] all-to-all(p), dimensions={{0}}, channel_id=1, "
     "replica_groups={{0,1,2,3}}", 72, 72),
    # device 3 receives zeros, device 1 its own
    (f"{BIG}  ROOT c = f32[8,3] collective-permute(p), channel_id=1, "
     "source_target_pairs={{1,1},{3,0},{0,2}}", 96, 48),
]
# fmt: on


@pytest.mark.parametrize("body, sent, least", ROWS)
def test_bytes_by_hand(body: str, sent: int, least: int) -> None:
    module = hlo.parse(f"{HEAD}{body} }}")
    assert needed_exchanges(module) == {module.entry["c"]: least}
    (cost,) = collective_costs(module)
    assert cost.bytes_sent == sent


def test_rows_are_chosen_at_runtime() -> None:
    text = f"""{HEAD}p = f32[2,3] parameter(0)  o = s32[] parameter(1)  z = s32[] constant(0)
      c = f32[8,3] all-gather(p), dimensions={{0}}, {GROUPS}  {PART} }}"""
    (least,) = needed_exchanges(hlo.parse(text)).values()
    assert isinstance(least, Unknown)
    assert "over-approximated" in least.reason


@pytest.mark.parametrize("sizes", [(2, 3), (5, 1), (1, 7)])
def test_the_least_is_at_most_what_rings_send(sizes: tuple[int, int]) -> None:
    rows, columns = sizes
    text = f"""{HEAD}p = f32[{rows},{columns}] parameter(0)
      c = f32[{4 * rows},{columns}] all-gather(p), dimensions={{0}}, {GROUPS}
      ROOT s = f32[{rows},{columns}] reduce-scatter(c), dimensions={{0}}, to_apply=add,
        {GROUPS} }}"""
    module = hlo.parse(text)
    costs = {cost.instruction: cost.bytes_sent for cost in collective_costs(module)}
    for instruction, least in needed_exchanges(module).items():
        assert least == Fraction(costs[instruction])  # type: ignore[arg-type]

"""Programs of `shard_map`, as Shardy and as GSPMD write them, and the program of one device.

The text before partitioning takes parts of global arrays by a call of Shardy, whose attributes
state a mesh; ``shardy-xla`` replaces it by calls of GSPMD, and the partitioner removes both.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

import hlo
from indexing import equivalent
from indexing.equivalence import Differs, Proved
from indexing.execution import run

MESH: Final = '{xla.sdy.meshes={mesh = #sdy.mesh<["x"=2, "y"=2]>}}'
ADD: Final = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }"
GATHER: Final = "dimensions={1}, channel_id=1, replica_groups={{0,1},{2,3}}"
SUM: Final = "to_apply=add, channel_id=2, replica_groups={{0,2},{1,3}}"
LOCAL: Final = f"""g = f32[2,6] all-gather(l), {GATHER}, use_global_device_ids=true
  n = f32[2,6] multiply(g, g)  s = f32[2,6] all-reduce(n), {SUM}, use_global_device_ids=true
  d = f32[6,3] transpose(m), dimensions={{1,0}}
  o = f32[2,3] dot(s, d), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"""


def sharding(key: str, *arrays: str) -> str:
    """Return the attribute with the axes of the dimensions of each array."""
    each = ", ".join([f"<@mesh, [{array}]>" for array in arrays]).replace('"', '\\"')
    return f'xla.sdy.{key}="#sdy.sharding_per_value<[{each}]>"'


def shardy(entry: str = '{"x"}, {"y"}', other: str = "{}, {}", out: str = '{"x"}, {}') -> str:
    """Return the program before partitioning, with these shardings at the borders."""
    axes = 'xla.sdy.manual_axes="#sdy<manual_axes{\\"x\\", \\"y\\"}>"'
    return f"""HloModule m, num_partitions=4, frontend_attributes={MESH}
{ADD}
body {{ l = f32[2,3] parameter(0)  m = f32[3,6] parameter(1)
  {LOCAL}
  ROOT r = f32[2,3] negate(o) }}
ENTRY e {{
  p = f32[4,6] parameter(0), sharding={{devices=[2,2]<=[4]}}
  q = f32[3,6] parameter(1), sharding={{replicated}}
  t = (f32[2,3], f32[3,6]) custom-call(p, q), custom_call_target="xla.sdy.GlobalToLocalShape",
    custom_call_has_side_effect=true,
    frontend_attributes={{{sharding("in_shardings", entry, other)},{axes}}}
  a = f32[2,3] get-tuple-element(t), index=0
  b = f32[3,6] get-tuple-element(t), index=1
  c = f32[2,3] call(a, b), to_apply=body
  ROOT w = f32[4,3] custom-call(c), custom_call_target="xla.sdy.LocalToGlobalShape",
    custom_call_has_side_effect=true, sharding={{devices=[2,1,2]<=[4] last_tile_dim_replicate}},
    frontend_attributes={{{axes},{sharding("out_shardings", out)}}} }}"""


def lower(**borders: str) -> str:
    """Return the program as JAX lowers it: the mesh states the devices, a border the result."""
    stated = "sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate},"
    text = shardy(**borders).replace("num_partitions=4, ", "").replace(stated, "")
    assert stated not in text
    return text.replace("ROOT w", "w")[:-1] + "  ROOT z = (f32[4,3]) tuple(w) }"


def gspmd(entry: str = "{devices=[2,2]<=[4]}") -> str:
    """Return the program as GSPMD writes it."""
    return f"""HloModule m, num_partitions=4
{ADD}
ENTRY e {{
  p = f32[4,6] parameter(0), sharding={{devices=[2,2]<=[4]}}
  q = f32[3,6] parameter(1), sharding={{replicated}}
  p1 = f32[4,6] custom-call(p), custom_call_target="Sharding", sharding={entry}
  l = f32[2,3] custom-call(p1), custom_call_target="SPMDFullToShardShape", sharding={{manual}}
  q1 = f32[3,6] custom-call(q), custom_call_target="Sharding", sharding={{replicated}}
  m = f32[3,6] custom-call(q1), custom_call_target="SPMDFullToShardShape", sharding={{manual}}
  {LOCAL}
  r = f32[2,3] negate(o)
  ROOT w = f32[4,3] custom-call(r), custom_call_target="SPMDShardToFullShape",
    sharding={{devices=[2,1,2]<=[4] last_tile_dim_replicate}} }}"""


def device() -> str:
    """Return the program of one device."""
    return f"""HloModule m, num_partitions=4
{ADD}
ENTRY e {{ l = f32[2,3] parameter(0)  m = f32[3,6] parameter(1)
  {LOCAL}
  ROOT r = f32[2,3] negate(o) }}"""


def proof(before: str, after: str) -> bool:
    verdict = equivalent(hlo.parse(before), hlo.parse(after))
    return isinstance(verdict, Proved)


def test_shardy_gspmd_and_the_partition_are_one_program() -> None:
    assert proof(shardy(), gspmd())
    assert proof(shardy(), device())
    assert proof(gspmd(), device())
    assert proof(lower(), device())
    assert isinstance(equivalent(hlo.parse(shardy()), hlo.parse(device()), level="reads"), Proved)


def test_the_programs_compute_the_same() -> None:
    """NumPy computes the global result; each device has its rows of it."""
    chance = np.random.default_rng(3)
    p, q = (chance.normal(size=sizes).astype(np.float32) for sizes in ((4, 6), (3, 6)))
    total = (p[:2] ** 2) + (p[2:] ** 2)
    expected = -(np.concatenate([total, total]) @ q.T)
    whole = run(hlo.parse(shardy()), [p, q])
    parts = [[p[2 * (k // 2) :][:2, 3 * (k % 2) :][:, :3], q] for k in range(4)]
    local = run(hlo.parse(device()), parts, replicas=4)
    np.testing.assert_allclose(np.asarray(whole[0]).reshape(-1, 3)[:4], expected, rtol=1e-4)
    for k in range(4):
        rows = expected[2 * (k // 2) :][:2]
        np.testing.assert_allclose(np.asarray(local[k][0]), rows, rtol=1e-4)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("dimensions={1}, channel_id=1, replica_groups={{0,1},{2,3}}",
         "dimensions={1}, channel_id=1, replica_groups={{1,0},{3,2}}"),
        ("dimensions={1}, channel_id=1, replica_groups={{0,1},{2,3}}",
         "dimensions={1}, channel_id=1, replica_groups={{0,2},{1,3}}"),
        ("channel_id=2, replica_groups={{0,2},{1,3}}",
         "channel_id=2, replica_groups={{0,1},{2,3}}"),
        ("negate(o)", "abs(o)"),
    ],
)  # fmt: skip
def test_another_exchange_differs(old: str, new: str) -> None:
    changed = device().replace(old, new)
    assert changed != device()
    for before in (shardy(), gspmd(), lower()):
        assert isinstance(equivalent(hlo.parse(before), hlo.parse(changed)), Differs)


@pytest.mark.parametrize(
    "other",
    [
        shardy(entry='{"y"}, {"x"}'),
        lower(entry='{"y"}, {"x"}'),
        gspmd(entry="{devices=[2,2]<=[2,2]T(1,0)}"),
        gspmd(entry="{devices=[2,2]3,2,1,0}"),
    ],
)
def test_other_parts_are_not_proved(other: str) -> None:
    assert not proof(other, device())
    if "num_partitions" not in other:
        return
    for program in (shardy(), gspmd()):
        assert not proof(program, other)
        assert not proof(other, program)

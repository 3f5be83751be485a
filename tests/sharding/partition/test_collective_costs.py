"""Bytes that collectives send, counted by hand and as an exchange of messages in a ring."""

import pytest

import hlo
from hlo.ops.op import OPS
from hlo.shardings.mesh import Axis, Mesh
from hlo.shardings.sharding import Sharding
from indexing.execution import xla
from indexing.ops.collective_bases import SENT, Collective
from indexing.ops.samples import instruction_of
from indexing.sharding.partition.collective_costs import collective_costs
from indexing.sharding.partition.moves import bytes_sent
from simplifier.unknown import Unknown
from tests.sharding.partition.xla_partitioner import partition

ADD = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }"
ROWS = "replica_groups={{0,1,2,3},{4,5,6,7}}, channel_id=1, use_global_device_ids=true"
COLUMNS = "replica_groups=[4,2]<=[2,4]T(1,0), channel_id=1, use_global_device_ids=true"
BOTH = "replica_groups={{0,1,2,3,4,5,6,7}}, channel_id=1, use_global_device_ids=true"
MESH = Mesh.of({"y": 2, "x": 4})

# fmt: off
TABLE = [
    # collective of f32[8,6]: 192 bytes               axes  bytes sent
    (f"f32[8,6] all-reduce(p), {ROWS}, to_apply=add", "x",  2 * 3 * 192 // 4),
    (f"f32[8,6] all-reduce(p), {COLUMNS}, to_apply=add", "y", 192),
    (f"f32[8,6] all-reduce(p), {BOTH}, to_apply=add", "yx", 2 * 7 * 192 // 8),
    (f"f32[32,6] all-gather(p), {ROWS}, dimensions={{0}}", "x", 3 * 192),
    (f"f32[2,6] reduce-scatter(p), {ROWS}, dimensions={{0}}, to_apply=add", "x", 3 * 192 // 4),
    ("f32[8,6] all-to-all(p), replica_groups={{0,1,2,3},{4,5,6,7}}, channel_id=1, dimensions={0}",
     "x", 3 * 192 // 4),
    ("f32[8,6] collective-permute(p), channel_id=1, source_target_pairs={{0,1},{1,2},{4,5},{5,6}}",
     "x", 192),
    ("f32[8,6] collective-permute(p), channel_id=1, source_target_pairs={{0,0},{5,5}}", "", 0),
    # the groups {0,1,2}, {3,4,5} follow no axis
    ("f32[8,6] all-reduce(p), replica_groups={{0,1,2},{3,4,5}}, channel_id=1, "
     "use_global_device_ids=true, to_apply=add", "", 2 * 2 * 192 // 3),
    # in a chain, every device but the last sends the whole operand on
    ("f32[8,6] collective-broadcast(p), replica_groups={{0,1,2,3},{4,5,6,7}}, channel_id=1",
     "x", 192),
    (f"f32[8,6] collective-reduce(p), {ROWS}, to_apply=add", "x", 192),
]
# fmt: on


@pytest.mark.parametrize(("collective", "axes", "sent"), TABLE)
def test_bytes_and_axes_of_a_collective(collective: str, axes: str, sent: int) -> None:
    text = f"HloModule m, num_partitions=8\n{ADD}\nENTRY e {{ p = f32[8,6] parameter(0)\n"
    (cost,) = collective_costs(hlo.parse(f"{text}ROOT c = {collective} }}"), MESH)
    assert ("".join(map(str, cost.axes)), cost.bytes_sent) == (axes, sent)


OF_RUNTIME_VALUES = [
    "a = s32[8] iota(), iota_dimension=0\nROOT c = f32[8,6] ragged-all-to-all(p, p, a, a, a, a), "
    "replica_groups={{0,1,2,3,4,5,6,7}}, channel_id=1",
    "s = s32[] constant(0)\nt = (s32[], s32[]) tuple(s, s)\n"
    "ROOT c = f32[8,6] collective-permute(p, p, t, t), channel_id=1, slice_sizes={{2,6}}, "
    "source_target_pairs={{0,1}}",
]


@pytest.mark.parametrize("collective", OF_RUNTIME_VALUES)
def test_bytes_that_runtime_values_decide_are_unknown(collective: str) -> None:
    text = f"HloModule m, num_partitions=8\nENTRY e {{ p = f32[8,6] parameter(0)\n{collective} }}"
    (cost,) = collective_costs(hlo.parse(text))
    assert isinstance(cost.bytes_sent, Unknown)
    assert str(cost.total_bytes).endswith(SENT)


def test_bytes_of_arrays_of_unknown_size_are_unknown() -> None:
    text = f"HloModule m, num_partitions=8\n{ADD}\nENTRY e {{ p = f32[?,6] parameter(0)\n"
    (cost,) = collective_costs(
        hlo.parse(f"{text}ROOT c = f32[?,6] all-reduce(p), {ROWS}, to_apply=add }}")
    )
    assert str(cost.bytes_sent).endswith("f32[?,6] has a dimension of unknown size")


COLLECTIVES = [opcode for opcode, cls in OPS.items() if issubclass(cls, Collective)]


@pytest.mark.parametrize("opcode", COLLECTIVES)
def test_every_collective_sends_bytes_or_says_why_they_are_unknown(opcode: str) -> None:
    for sample in OPS[opcode].samples:
        text = str(instruction_of(sample).module).replace("\n", ", replica_count=3\n", 1)
        (cost,) = collective_costs(hlo.parse(text))
        assert isinstance(cost.bytes_sent, Unknown) or cost.bytes_sent > 0, sample


def ring_all_reduce(devices: int, size: int) -> int:
    """Execute the two phases of a ring and return the elements that the first device sends."""
    chunk, sent = size // devices, 0
    values = [[1] * size for _ in range(devices)]
    for phase, combine in (("reduce", True), ("gather", False)):
        for step in range(devices - 1):
            offset = 0 if phase == "reduce" else 1
            for device in range(devices):
                start = (device + offset - step) % devices * chunk
                block = values[device][start : start + chunk]
                target = values[(device + 1) % devices]
                for k, value in enumerate(block):
                    target[start + k] = target[start + k] + value if combine else value
                sent += chunk if device == 0 else 0
    assert values == [[devices] * size] * devices
    return sent


@pytest.mark.parametrize("devices", [2, 3, 5, 8])
def test_an_all_reduce_sends_what_a_ring_sends(devices: int) -> None:
    size = devices * 7
    assert bytes_sent("all-reduce", devices, size) == ring_all_reduce(devices, size)


def test_a_loop_multiplies_by_its_trip_count() -> None:
    module = hlo.parse(
        f"""HloModule m, num_partitions=8
        {ADD}
        less {{ s = (s32[], f32[6]) parameter(0)  i = s32[] get-tuple-element(s), index=0
          n = s32[] constant(10)  ROOT r = pred[] compare(i, n), direction=LT }}
        next {{ s = (s32[], f32[6]) parameter(0)  i = s32[] get-tuple-element(s), index=0
          x = f32[6] get-tuple-element(s), index=1  two = s32[] constant(2)
          j = s32[] add(i, two)  y = f32[6] all-reduce(x), {COLUMNS}, to_apply=add
          ROOT t = (s32[], f32[6]) tuple(j, y) }}
        ENTRY e {{ zero = s32[] constant(0)  x = f32[6] parameter(0)
          a = (s32[], f32[6]) tuple(zero, x)
          ROOT w = (s32[], f32[6]) while(a), condition=less, body=next }}"""
    )
    (cost,) = collective_costs(module, MESH)
    assert (cost.executions.number, cost.bytes_sent, cost.total_bytes) == (5, 24, 120)


@pytest.mark.skipif(not xla.is_available(), reason="needs jaxlib (extra xla)")
def test_the_partitioner_of_xla_sums_a_product_over_the_contracted_axis() -> None:
    module = hlo.parse(
        """ENTRY e { x = f32[16,64] parameter(0)  w = f32[64,32] parameter(1)
        ROOT y = f32[16,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""
    )
    x, y = (Axis("x"),), (Axis("y"),)
    shardings = {"x": Sharding(MESH, (y, x)), "w": Sharding(MESH, (x, ()))}
    (cost,) = collective_costs(partition(module, MESH, shardings), MESH)
    assert (cost.kind, cost.axes, cost.bytes_sent) == ("all-reduce", x, 2 * 3 * (8 * 32 * 4) // 4)

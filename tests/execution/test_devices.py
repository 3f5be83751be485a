"""Programs on several simulated devices."""

from __future__ import annotations

from threading import Condition
from typing import Any

import numpy as np
import pytest

import hlo
from indexing.execution import Environment, rendezvous, run
from tests.execution.arrays import s32

ADD = "add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }"


def on_devices(count: int, line: str, header: str = "HloModule m", size: int = 4) -> list[Any]:
    """Results of ``line`` on each device, where p is 10·device, 10·device + 1, .."""
    module = hlo.parse(
        f"{header}\n{ADD}\nENTRY e {{ p = s32[{size}] parameter(0) ROOT r = {line} }}"
    )
    inputs = [[np.arange(size, dtype=np.int32) + 10 * k] for k in range(count)]
    return [[array.tolist() for array in arrays] for arrays in run(module, inputs, replicas=count)]


def test_groups_are_independent_and_ordered() -> None:
    line = "s32[8] all-gather(p), dimensions={0}, replica_groups={{2,0},{1,3}}"
    first, second = [[20, 21, 22, 23, 0, 1, 2, 3]], [[10, 11, 12, 13, 30, 31, 32, 33]]
    assert on_devices(4, line) == [first, second, first, second]


def test_an_iota_replica_group_list_is_transposed() -> None:
    line = "s32[4] all-reduce(p), to_apply=add, replica_groups=[2,2]<=[2,2]T(1,0)"
    first, second = [[20, 22, 24, 26]], [[40, 42, 44, 46]]
    assert on_devices(4, line) == [first, second, first, second]


def test_reduce_scatter_sends_a_part_of_the_sum_to_each_position() -> None:
    line = "s32[2] reduce-scatter(p), dimensions={0}, to_apply=add, replica_groups={{1,0}}"
    assert on_devices(2, line) == [[[14, 16]], [[10, 12]]]


def test_all_to_all_exchanges_parts() -> None:
    line = "s32[4] all-to-all(p), dimensions={0}, replica_groups={{0,1}}"
    assert on_devices(2, line) == [[[0, 1, 10, 11]], [[2, 3, 12, 13]]]


def test_all_to_all_of_several_operands_exchanges_operands() -> None:
    text = """ENTRY e { p = s32[1] parameter(0) q = s32[1] parameter(1)
      ROOT r = (s32[1], s32[1]) all-to-all(p, q), replica_groups={{0,1}} }"""
    inputs = [[s32([10 * k]), s32([10 * k + 1])] for k in (0, 1)]
    actual = [[a.tolist() for a in each] for each in run(hlo.parse(text), inputs, replicas=2)]
    assert actual == [[[0], [10]], [[1], [11]]]


PAIRS = "source_target_pairs={{0,1},{1,2}}"
STARTED = f"""ENTRY e {{ p = s32[4] parameter(0)
  s = (s32[4], s32[4], u32[], u32[]) collective-permute-start(p), {PAIRS}
  ROOT d = s32[4] collective-permute-done(s) }}"""


def test_a_device_without_a_source_gets_zeros() -> None:
    expected = [[[0, 0, 0, 0]], [[0, 1, 2, 3]], [[10, 11, 12, 13]]]
    assert on_devices(3, f"s32[4] collective-permute(p), {PAIRS}") == expected
    inputs = [[np.arange(4, dtype=np.int32) + 10 * k] for k in range(3)]
    actual = run(hlo.parse(STARTED), inputs, replicas=3)
    assert [[array.tolist() for array in each] for each in actual] == expected


def test_ragged_all_to_all_copies_rows_to_the_senders_offsets() -> None:
    text = """ENTRY e { x = s32[4] parameter(0) o = s32[5] parameter(1) a = s32[2] parameter(2)
      b = s32[2] parameter(3) c = s32[2] parameter(4) d = s32[2] parameter(5)
      ROOT r = s32[5] ragged-all-to-all(x, o, a, b, c, d), replica_groups={{0,1}} }"""
    empty = np.full(5, -1, np.int32)
    # from each device: offsets in x, counts, offsets in the receiver's output, counts to receive
    first = [s32([0, 1, 2, 3]), empty, *map(s32, ([0, 1], [1, 3], [0, 0], [1, 1]))]
    second = [s32([10, 11, 12, 13]), empty, *map(s32, ([3, 0], [1, 1], [1, 3], [3, 1]))]
    actual = [each[0].tolist() for each in run(hlo.parse(text), [first, second], replicas=2)]
    assert actual == [[0, 13, -1, -1, -1], [1, 2, 3, 10, -1]]


MODES = [
    # attributes of an all-reduce among 2 replicas of 2 partitions, and the group of device 0
    ("replica_groups={{0,1}}", [0, 2]),
    ("replica_groups={{0,1}}, channel_id=1", [0, 1, 2, 3]),
    ("replica_groups={{0},{1}}, channel_id=1", [0, 1]),
    ("replica_groups={{0,3},{1,2}}, channel_id=1, use_global_device_ids=true", [0, 3]),
]


@pytest.mark.parametrize(("attributes", "members"), MODES)
def test_the_group_mode_determines_the_members(attributes: str, members: list[int]) -> None:
    line = f"s32[1] all-reduce(p), to_apply=add, {attributes}"
    actual = on_devices(4, line, "HloModule m, replica_count=2, num_partitions=2", size=1)
    assert actual[0] == [[sum(10 * k for k in members)]]


def test_replica_id_and_partition_id_number_the_devices() -> None:
    text = """HloModule m, replica_count=2, num_partitions=2
      ENTRY e { r = u32[] replica-id() p = u32[] partition-id()
      ROOT t = (u32[], u32[]) tuple(r, p) }"""
    actual = [tuple(map(int, each)) for each in run(hlo.parse(text), [], replicas=4)]
    assert actual == [(0, 0), (0, 1), (1, 0), (1, 1)]


PAIR = f"""{ADD} ENTRY e {{ p = s32[1] parameter(0)
  ROOT r = s32[1] all-reduce(p), to_apply=add, replica_groups={{{{0,1}}}} }}"""


def test_a_group_needs_all_its_devices() -> None:
    with pytest.raises(hlo.HloError, match="needs device 1, but 1 device is simulated") as caught:
        run(hlo.parse(PAIR), [s32([1])])
    assert caught.value.help == "simulate 2 devices: --replicas 2"


def test_the_needed_number_of_devices_is_that_of_all_groups_and_pairs() -> None:
    """Without channels, groups and pairs number replicas, here of 2 partitions."""
    text = f"""HloModule m, num_partitions=2
      {PAIR.replace("ROOT r", "r").replace("{0,1}} }", "{0,1}}")}
      ROOT c = s32[1] collective-permute(r), source_target_pairs={{{{0,5}}}} }}"""
    with pytest.raises(hlo.HloError, match="needs device 2, but 2 devices are simulated") as caught:
        run(hlo.parse(text), [s32([1])], replicas=2)
    assert caught.value.help == "simulate 12 devices: --replicas 12"


def test_groups_of_partitions_need_partitions_in_the_header() -> None:
    text = """ENTRY e { p = s32[4] parameter(0)
      ROOT r = s32[4] all-to-all(p), channel_id=1, replica_groups={{0,1}}, dimensions={0} }"""
    for count in (1, 2, 3):
        with pytest.raises(hlo.HloError, match="all-to-all needs device") as caught:
            run(hlo.parse(text), [s32([1, 2, 3, 4])], replicas=count)
        assert "set num_partitions=2 in the module header" in caught.value.help
    run(hlo.parse("HloModule m, num_partitions=2\n" + text), [s32([1, 2, 3, 4])], replicas=2)


@pytest.mark.parametrize(
    ("line", "help_"),
    [
        ("s32[12] all-gather(p), dimensions={0}", "[12] needs groups of 3 devices: see --replicas"),
        ("s32[4] all-gather(p), dimensions={0}", ""),
    ],
)
def test_a_result_for_another_number_of_devices_is_an_error(line: str, help_: str) -> None:
    message = r"among 2 devices: declared sizes \[\d+\], computed \[8\]"
    with pytest.raises(hlo.HloError, match=message) as caught:
        on_devices(2, line)
    assert caught.value.help == help_


def test_an_all_to_all_needs_an_operand_for_each_device() -> None:
    text = """ENTRY e { p = s32[1] parameter(0)  q = s32[1] parameter(1)
      ROOT r = (s32[1], s32[1]) all-to-all(p, q) }"""
    inputs = [s32([1]), s32([2])]
    for count, devices in ((1, "1 device"), (3, "3 devices")):
        with pytest.raises(hlo.HloError, match=f"among {devices} has 2 operands") as caught:
            run(hlo.parse(text), inputs, replicas=count)
        assert caught.value.help == "it needs groups of 2 devices: see --replicas"
    actual = run(hlo.parse(text), inputs, replicas=2)
    assert [[int(array[0]) for array in each] for each in actual] == [[1, 1], [2, 2]]


@pytest.mark.parametrize(
    "line",
    [
        "s32[4] all-reduce(p), to_apply=add",
        "s32[2] reduce-scatter(p), dimensions={0}, to_apply=add",
        "s32[8] all-gather(p), dimensions={0}",
        "s32[4] all-to-all(p), dimensions={0}",
    ],
)
def test_results_of_devices_share_no_memory(line: str) -> None:
    module = hlo.parse(f"{ADD} ENTRY e {{ p = s32[4] parameter(0) ROOT r = {line} }}")
    one, other = run(module, [[s32([1, 2, 3, 4])], [s32([5, 6, 7, 8])]], replicas=2)
    assert not np.shares_memory(one[0], other[0])


def test_a_collective_wakes_each_device_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else, the time of an exchange is quadratic in the number of devices."""
    waits = []

    class Counted(Condition):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout)
            return super().wait(timeout)

    monkeypatch.setattr(rendezvous, "Condition", Counted)
    count = 48
    sums = on_devices(count, "s32[4] all-reduce(p), to_apply=add")
    assert sums == [[[11280, 11328, 11376, 11424]]] * count
    assert len(waits) < count


def test_a_deadlock_is_an_error() -> None:
    """The first device leaves its loop after one iteration, the second after two."""
    text = f"""{ADD}
    more {{ p = (s32[], s32[1]) parameter(0) i = s32[] get-tuple-element(p), index=0
      z = s32[] constant(0) ROOT r = pred[] compare(i, z), direction=GT }}
    trip {{ p = (s32[], s32[1]) parameter(0) i = s32[] get-tuple-element(p), index=0
      x = s32[1] get-tuple-element(p), index=1 o = s32[] constant(1) j = s32[] subtract(i, o)
      y = s32[1] all-reduce(x), to_apply=add ROOT r = (s32[], s32[1]) tuple(j, y) }}
    ENTRY e {{ n = s32[] parameter(0) x = s32[1] parameter(1) t = (s32[], s32[1]) tuple(n, x)
      ROOT w = (s32[], s32[1]) while(t), condition=more, body=trip }}"""
    inputs = [[s32(1), s32([1])], [s32(2), s32([10])]]
    with pytest.raises(hlo.HloError, match="all-reduce deadlocks: device 0 never reaches it"):
        run(hlo.parse(text), inputs, replicas=2)
    both = [[s32(2), s32([1])], [s32(2), s32([10])]]
    actual = run(hlo.parse(text), both, replicas=2)
    assert [each[1].tolist() for each in actual] == [[22], [22]]


def test_the_error_of_one_device_takes_precedence_over_the_deadlock_it_causes() -> None:
    text = f"""{ADD} ENTRY e {{ t = token[] after-all()
      i = (s32[1], token[]) infeed(t) x = s32[1] get-tuple-element(i), index=0
      ROOT r = s32[1] all-reduce(x), to_apply=add }}"""
    environments = [Environment(infeed=[s32([1])]), Environment()]
    with pytest.raises(hlo.HloError, match="no value left for infeed"):
        run(hlo.parse(text), [], replicas=2, environment=environments)


# ---------------------------------------------------------------- regions

REGION = r"""HloModule m, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=2, "y"=3]>}}
body { p = s32[2,1] parameter(0)
  ROOT n = s32[2,3] all-gather(p), channel_id=1, replica_groups={{0,1,2},{3,4,5}}, dimensions={1},
    use_global_device_ids=true }
ENTRY e { p = s32[4,3] parameter(0)
  a = s32[2,1] custom-call(p), custom_call_target="xla.sdy.GlobalToLocalShape",
    frontend_attributes={
    xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\"x\"}, {\"y\"}]>]>",
    xla.sdy.manual_axes="#sdy<manual_axes{\"x\", \"y\"}>"}
  b = s32[2,3] call(a), to_apply=body
  ROOT c = s32[4,9] custom-call(b), custom_call_target="xla.sdy.LocalToGlobalShape",
    frontend_attributes={xla.sdy.manual_axes="#sdy<manual_axes{\"x\", \"y\"}>",
    xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, [{\"x\"}, {\"y\"}]>]>"} }"""


def test_a_region_runs_on_all_devices_of_its_mesh() -> None:
    """Each row is gathered from the three devices along y; each of them returns the whole row."""
    whole = np.arange(12, dtype=np.int32).reshape(4, 3)
    (actual,) = run(hlo.parse(REGION), [whole])
    np.testing.assert_array_equal(actual, np.tile(whole, (1, 3)))


def test_sub_axes_split_the_arrays_of_a_region() -> None:
    """The mesh of the region is not the first; its one axis splits both dimensions."""
    meshes = 'other = #sdy.mesh<["x"=4]>, mesh = #sdy.mesh<["x"=4], device_ids=[3, 1, 2, 0]>'
    text = REGION.replace('mesh = #sdy.mesh<["x"=2, "y"=3]>', meshes)
    text = text[: text.index("body")] + text[text.index("ENTRY") :]
    text = text.replace('{\\"x\\"}, {\\"y\\"}', "DIMS").replace('\\"x\\", \\"y\\"', '\\"x\\"')
    text = text.replace("DIMS", r"{\"x\":(2)2}, {\"x\":(1)2}", 1).replace("s32[2,1]", "s32[2,3]")
    text = text.replace("DIMS", r"{\"x\":(1)2}, {\"x\":(2)2}").replace("s32[4,3]", "s32[4,6]")
    text = text.replace(
        "b = s32[2,3] call(a), to_apply=body", "b = s32[3,2] transpose(a), dimensions={1,0}"
    )
    text = text.replace("s32[4,9]", "s32[6,4]")
    whole = np.arange(24, dtype=np.int32).reshape(4, 6)
    (actual,) = run(hlo.parse(text), [whole])
    np.testing.assert_array_equal(actual, whole.T)


def test_a_mesh_gives_the_number_of_devices() -> None:
    text = REGION.replace("all-gather", "all-to-all").replace("s32[2,1]", "s32[2,3]")
    text = text.replace(",\n    use_global_device_ids=true", "").replace("{1},", "{1}")
    text = text.replace("s32[4,3]", "s32[4,9]")
    assert len(run(hlo.parse(text), [np.zeros((4, 9), np.int32)], replicas=6)) == 6
    text = text.replace("HloModule m,", "HloModule m, num_partitions=1,")
    with pytest.raises(hlo.HloError, match="all-to-all needs device") as caught:
        run(hlo.parse(text), [np.zeros((4, 9), np.int32)], replicas=6)
    assert caught.value.help == "omit --replicas: the mesh has 6 devices"

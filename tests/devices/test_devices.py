"""Maps between devices: single collectives, programs with several, and unknown cases."""

# ruff: noqa: E501 - a row is a line
from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

import hlo
import indexing
from indexing import Devices, IndexingMap
from tests.devices import device_simulation as simulation
from tests.oracles import Pair, invert_pairs, join_pairs, union

# ---------------------------------------------------------------- single instructions

ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"
GLOBAL = "channel_id=1, use_global_device_ids=true"


def parse(body: str, header: str = "num_partitions=4", before: str = "") -> hlo.Module:
    module = hlo.parse(f"HloModule m, {header}\n{ADD}{before}\nENTRY e {{ {body} }}")
    assert hlo.verify(module) == []
    return module


def texts(maps: Iterable[IndexingMap]) -> list[str]:
    return [str(each) for each in maps]


# fmt: off
READS = [
    # result and op, for p = f32[6] on 4 partitions                                                  map
    (f"f32[6] all-reduce(p), replica_groups=[2,2]<=[4], {GLOBAL}, to_apply=add",                     "(device, d0)[s0] -> (s0 + (device floordiv 2) * 2, d0)"),
    (f"f32[6] all-reduce(p), replica_groups=[2,2]<=[2,2]T(1,0), {GLOBAL}, to_apply=add",             "(device, d0)[s0] -> (s0 * 2 + device mod 2, d0)"),
    (f"f32[6] all-reduce(p), replica_groups={{{{3,0}},{{1,2}}}}, {GLOBAL}, to_apply=add",            "(device, d0)[s0] -> ((s0 + ((device + 1) floordiv 2) * 2 - 1) mod 4, d0)"),
    (f"f32[24] all-gather(p), replica_groups=[1,4]<=[4], {GLOBAL}, dimensions={{0}}",                "(device, d0) -> (d0 floordiv 6, d0 mod 6)"),
    (f"f32[3] reduce-scatter(p), replica_groups=[2,2]<=[4], {GLOBAL}, dimensions={{0}}, to_apply=add", "(device, d0)[s0] -> (s0 + (device floordiv 2) * 2, d0 + (device mod 2) * 3)"),
    ("f32[6] all-to-all(p), replica_groups=[2,2]<=[4], channel_id=1, dimensions={0}",                "(device, d0) -> ((device floordiv 2) * 2 + d0 floordiv 3, (device mod 2) * 3 + d0 mod 3)"),
    ("f32[6] collective-broadcast(p), replica_groups={{2,0,1}}, channel_id=1",                       "(device, d0) -> (2, d0)"),
    ("f32[6] collective-permute(p), source_target_pairs={{0,1},{1,2},{2,3}}, channel_id=1",          "(device, d0) -> (device - 1, d0)"),
    ("f32[6] collective-permute(p), source_target_pairs={{0,1},{1,2},{2,3},{3,0}}, channel_id=1",    "(device, d0) -> ((device - 1) mod 4, d0)"),
]
# fmt: on


@pytest.mark.parametrize("text, head", READS, ids=[row[0][5:45] for row in READS])
def test_regular_groups_are_one_map(text: str, head: str) -> None:
    root = parse(f"p = f32[6] parameter(0) ROOT r = {text}").entry.root
    ((reads,),) = indexing.device_maps(root, certify=True).maps
    box = ", ".join(f"{v.name} in [{v.lower}, {v.upper}]" for v in reads.variables)
    assert reads.is_equal(indexing.parse_map(f"{head}, domain: {box}"))
    assert sum(map(str(reads).count, ("floordiv", "mod"))) == sum(
        map(head.count, ("floordiv", "mod"))
    )


def test_devices_that_receive_nothing_read_nothing() -> None:
    text = "ROOT r = f32[2] collective-permute(p), source_target_pairs={{0,2},{2,0}}, channel_id=1"
    root = parse(f"p = f32[2] parameter(0) {text}").entry.root
    answer = indexing.device_maps(root)
    assert answer.unknown == (None,)
    assert union(answer.maps[0]) == {((0, k), (2, k)) for k in range(2)} | {
        ((2, k), (0, k)) for k in range(2)
    }


# fmt: off
UNKNOWN = [
    # header                                   op                                                                          reason
    ("num_partitions=4",                       f"all-reduce(p), replica_groups={{{{0,1}}}}, {GLOBAL}, to_apply=add",      "all-reduce `r`: device 2 is in no group, so its result is undefined"),
    ("num_partitions=4",                       f"all-reduce(p), replica_groups={{{{0,4}}}}, {GLOBAL}, to_apply=add",      "all-reduce `r`: device 4 does not exist in 1 replica of 4 partitions: set replica_count in the module header or pass num_replicas"),
    ("num_partitions=4",                       "all-reduce(p), replica_groups={{0,1}}, to_apply=add",                      "all-reduce `r`: replica 1 does not exist in 1 replica of 4 partitions: set replica_count in the module header or pass num_replicas"),
    ("replica_count=4",                        "all-to-all(p), replica_groups={{0,1}}, channel_id=1, dimensions={0}",      "all-to-all `r`: partition 1 does not exist in 4 replicas of 1 partition: set num_partitions in the module header or pass num_partitions"),
    ("num_partitions=4",                       f"all-reduce(p), {GLOBAL}, to_apply=add",                                   "all-reduce `r`: use_global_device_ids=true requires non-empty replica_groups"),
    ("num_partitions=4",                       "all-reduce(p), replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add", "all-reduce `r`: use_global_device_ids=true requires channel_id"),
    ("num_partitions=4",                       f"all-reduce(p), replica_groups={{{{0,1}}}}, {GLOBAL}, mode=cross_replica, to_apply=add", "all-reduce `r`: mode=cross_replica contradicts use_global_device_ids=true"),
    ("num_partitions=4",                       "collective-permute(p), source_target_pairs={{5,1}}, channel_id=1",         "collective-permute `r`: partition 5 does not exist in 1 replica of 4 partitions: set num_partitions in the module header or pass num_partitions"),
]
# fmt: on


@pytest.mark.parametrize("header, text, reason", UNKNOWN, ids=[row[2][:60] for row in UNKNOWN])
def test_invalid_groups_are_unknown_with_a_reason(header: str, text: str, reason: str) -> None:
    root = parse(f"p = f32[6] parameter(0) ROOT r = f32[6] {text}", header).entry.root
    for answer in (indexing.device_maps(root), indexing.device_input_to_output(root)):
        assert [str(why) for why in answer.unknown] == [reason]
        assert bool(answer.maps[0]) == ("undefined" in reason)
    (why,) = indexing.device_maps_to_parameters(root).unknown
    assert str(why) == reason


def test_keywords_or_the_header_give_the_number_of_devices() -> None:
    text = "p = f32[2] parameter(0) ROOT r = f32[2] all-reduce(p), to_apply=add"
    counted = parse(text, "replica_count=3, num_partitions=2").entry.root
    given = parse(text, "is_scheduled=true").entry.root
    (maps,) = indexing.device_maps(given, num_replicas=3, num_partitions=2).maps
    assert indexing.device_maps(counted).maps == (maps,)
    assert union(maps) == {
        ((2 * r + p, k), (2 * q + p, k))
        for r in range(3) for q in range(3) for p in range(2) for k in range(2)
    }  # fmt: skip
    (single,) = indexing.device_maps(given).maps[0]
    assert single.dims[0].bounds == (0, 0)
    with pytest.raises(ValueError, match="0 replicas of 1 partition"):
        indexing.device_maps(given, num_replicas=0)


@pytest.mark.parametrize("mode, groups", [("cross_replica", "{{0,1}}"), ("cross_partition", "{{0,2,1}}"), ("cross_replica_and_partition", "{{1,0}}"), ("flattened_id", "{{0,1,2},{3,4,5}}")])  # fmt: skip
def test_the_attribute_mode_is_equivalent_to_other_attributes(mode: str, groups: str) -> None:
    same = {
        "cross_replica": "",
        "cross_replica_and_partition": ", channel_id=1",
        "flattened_id": ", channel_id=1, use_global_device_ids=true",
    }
    text = f"p = f32[2] parameter(0) ROOT r = f32[2] all-reduce(p), replica_groups={groups}, to_apply=add"
    header = "replica_count=2, num_partitions=3"
    answer = indexing.device_maps(parse(f"{text}, mode={mode}", header).entry.root)
    if mode in same:
        other = indexing.device_maps(parse(text + same[mode], header).entry.root)
        assert answer.maps == other.maps
    assert answer.unknown == (None,)
    replica = {"cross_replica", "cross_replica_and_partition"}
    assert related_pairs(answer.maps[0]) == {
        ((v, i), (u, i))
        for v in range(6)
        for u in range(6)
        for i in range(2)
        if (mode in replica or v // 3 == u // 3) and (mode != "cross_replica" or v % 3 == u % 3)
    }


def test_an_output_or_operand_out_of_range_raises_index_error() -> None:
    root = parse("p = f32[2] parameter(0) ROOT r = f32[2] negate(p)").entry.root
    with pytest.raises(IndexError, match="`r` has no output 1"):
        indexing.device_maps(root, 1)
    with pytest.raises(IndexError, match="`r` has no operand -1"):
        indexing.device_input_to_output(root, -1)


# ---------------------------------------------------------------- several instructions


def to_p(root: hlo.Instruction) -> tuple[IndexingMap, ...]:
    answer = indexing.device_maps_to_parameters(root, certify=True)
    assert not any(answer.unknown)
    maps: tuple[IndexingMap, ...] = answer.maps[0]
    return maps


def related_pairs(maps: Iterable[IndexingMap]) -> set[Pair]:
    return union(maps)


@pytest.mark.parametrize("groups", ["[2,3]<=[6]", "[2,3]<=[3,2]T(1,0)", "{{2,0,4},{5,1,3}}"])
def test_a_reduce_scatter_and_an_all_gather_are_an_all_reduce(groups: str) -> None:
    more = f"replica_groups={groups}, {GLOBAL}"
    module = parse(
        f"""p = f32[6,2] parameter(0)
        s = f32[2,2] reduce-scatter(p), {more}, dimensions={{0}}, to_apply=add
        g = f32[6,2] all-gather(s), {more}, dimensions={{0}}
        r = f32[6,2] all-reduce(p), {more}, to_apply=add
        ROOT t = (f32[6,2], f32[6,2]) tuple(g, r)""",
        "num_partitions=6",
    )
    entry = module.entry
    assert related_pairs(to_p(entry["g"])) == related_pairs(to_p(entry["r"]))
    if groups.startswith("["):
        (gathered,), (reduced,) = to_p(entry["g"]), to_p(entry["r"])
        assert gathered.is_equal(reduced)
        assert gathered == reduced  # and in the same normal form
    first, second = (indexing.device_maps(entry[name]).maps[0] for name in "gs")
    assert related_pairs(a.then(b) for a in first for b in second) == related_pairs(
        to_p(entry["g"])
    )


def test_two_all_to_alls_are_the_identity() -> None:
    more = "replica_groups=[2,3]<=[3,2]T(1,0), channel_id=1, dimensions={1}"
    module = parse(
        f"""p = f32[2,6] parameter(0)
        a = f32[2,6] all-to-all(p), {more}
        ROOT b = f32[2,6] all-to-all(a), {more}""",
        "num_partitions=6",
    )
    (composed,) = to_p(module.entry.root)
    assert composed.is_identity


def test_a_full_ring_of_permutes_is_the_identity() -> None:
    pairs = "source_target_pairs={{0,1},{1,2},{2,3},{3,4},{4,0}}, channel_id=1"
    steps = [f"p{k + 1} = f32[3] collective-permute(p{k}), {pairs}" for k in range(5)]
    body = " ".join(["p0 = f32[3] parameter(0)", *steps])
    module = parse(body, "num_partitions=5")
    (composed,) = to_p(module.entry.root)
    assert composed.is_equal(Devices(num_partitions=5).identity((3,)))


def test_local_instructions_stay_on_their_device() -> None:
    module = parse(
        """p = f32[2,3] parameter(0)
        t = f32[3,2] transpose(p), dimensions={1,0}
        g = f32[3,8] all-gather(t), channel_id=1, replica_groups={}, dimensions={1}
        ROOT n = f32[8,3] transpose(g), dimensions={1,0}""",
        "replica_count=1, num_partitions=4",
    )
    (composed,) = to_p(module.entry.root)
    # the only group contains the only replica, and so all its partitions
    wanted = {((v, i, j), (i // 2, i % 2, j)) for v in range(4) for i in range(8) for j in range(3)}
    assert related_pairs([composed]) == wanted
    (local,) = indexing.device_maps(module.entry["t"]).maps[0]
    plain = indexing.output_to_input(module.entry["t"]).maps[0][0]
    assert related_pairs([local]) == {
        ((v, *a), (v, *b)) for v in range(4) for a, b in related_pairs([plain])
    }


INSIDE = """shift {
  a = f32[4] parameter(0)
  n = f32[4] negate(a)
  ROOT c = f32[4] collective-permute(n), source_target_pairs={{0,1},{1,2},{2,0}}, channel_id=1
}
some {
  a = f32[4] parameter(0)
  ROOT c = f32[4] collective-permute(a), source_target_pairs={{2,1}}, channel_id=1
}
same { a = f32[4] parameter(0) ROOT n = f32[4] negate(a) }
"""
SHIFTED = {((v, k), ((v - 1) % 3, k)) for v in range(3) for k in range(4)}
RECEIVED = {((1, k), (2, k)) for k in range(4)}
STAYED = {((v, k), (v, k)) for v in range(3) for k in range(4)}

# fmt: off
CALLS = [
    # body                                                                                                    may?   relates
    ("ROOT r = f32[4] call(p), to_apply=shift",                                                               False, SHIFTED),
    ("ROOT r = f32[4] fusion(p), kind=kLoop, calls=shift",                                                    False, SHIFTED),
    ("ROOT r = f32[4] call(p), to_apply=some",                                                                False, RECEIVED),
    ("ROOT r = f32[4] call(p), to_apply=same",                                                                False, STAYED),
    ("s = ((f32[4]), f32[4], s32[]) async-start(p), calls=shift ROOT r = f32[4] async-done(s)",               False, SHIFTED),
    ("i = pred[] parameter(1) ROOT r = f32[4] conditional(i, p, p), true_computation=shift, false_computation=same", True, SHIFTED | STAYED),
]
# fmt: on


@pytest.mark.parametrize("body, may, wanted", CALLS, ids=[row[0][9:40] for row in CALLS])
def test_maps_pass_through_called_collectives(body: str, may: bool, wanted: set[Pair]) -> None:
    module = parse(f"p = f32[4] parameter(0) {body}", "num_partitions=3", INSIDE)
    maps = to_p(module.entry.root)
    assert related_pairs(maps) == wanted
    assert {m.grade for m in maps} == {"may" if may else "exact"}
    (root,) = [module.entry.root]
    number = next(k for k, o in enumerate(root.operands) if o.shape != hlo.parse_shape("pred[]"))
    if root.opcode in ("call", "fusion"):
        back = indexing.device_input_to_output(root, number).maps[0]
        assert related_pairs(back) == invert_pairs(wanted)


def test_a_loop_with_a_collective_may_need_any_device_for_values_it_changes() -> None:
    before = """
    cond {
      s = (s32[], f32[2], f32[2]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      n = s32[] constant(5)
      ROOT l = pred[] compare(i, n), direction=LT
    }
    body {
      s = (s32[], f32[2], f32[2]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      one = s32[] constant(1)
      j = s32[] add(i, one)
      a = f32[2] get-tuple-element(s), index=1
      b = f32[2] get-tuple-element(s), index=2
      c = f32[2] collective-permute(b), source_target_pairs={{0,1},{1,2},{2,0}}, channel_id=1
      ROOT t = (s32[], f32[2], f32[2]) tuple(j, a, c)
    }"""
    module = parse(
        """p = (s32[], f32[2], f32[2]) parameter(0)
        ROOT w = (s32[], f32[2], f32[2]) while(p), condition=cond, body=body""",
        "num_partitions=3",
        before,
    )
    kept = indexing.device_maps(module.entry.root, 1)
    assert list(zip(texts(kept.maps[0]), kept.paths[0], strict=True)) == [
        ("(device, d0) -> (device, d0), domain: device in [0, 2], d0 in [0, 1]", (1,))
    ]
    moved = indexing.device_maps(module.entry.root, 2)
    by_leaf = dict(zip(moved.paths[0], moved.maps[0], strict=True))
    assert by_leaf.keys() == {(0,), (2,)}
    assert all(m.grade == "may" for m in by_leaf.values())
    every = {((v, i), (u, i)) for v in range(3) for u in range(3) for i in range(2)}
    assert related_pairs([by_leaf[2,]]) == every
    uses = indexing.device_input_to_output(module.entry.root)
    assert [m.grade for m in uses.maps[1]] == ["exact"]
    moving = [m for m, path in zip(uses.maps[2], uses.paths[2], strict=True) if path == (2,)]
    assert related_pairs(moving) == invert_pairs(every)


def test_maps_pass_through_asynchronous_collectives() -> None:
    module = parse(
        f"""p = f32[2] parameter(0)
        s = (f32[2], f32[8]) all-gather-start(p), replica_groups=[1,4]<=[4], {GLOBAL}, dimensions={{0}}
        g = f32[8] all-gather-done(s)
        c = (f32[8], f32[8], u32[], u32[]) collective-permute-start(g), source_target_pairs={{{{3,0}}}}, channel_id=2
        d = f32[8] collective-permute-done(c)
        a = f32[8] all-reduce-start(d), replica_groups={{{{0,1}},{{2,3}}}}, {GLOBAL}, to_apply=add
        ROOT r = f32[8] all-reduce-done(a)"""
    )
    maps = to_p(module.entry.root)
    # device 0 receives the array gathered by device 3, and device 1 adds it to zeros
    assert related_pairs(maps) == {((v, i), (i // 2, i % 2)) for v in (0, 1) for i in range(8)}
    alias = indexing.device_maps(module.entry["s"], 0).maps[0]
    assert related_pairs(alias) == {((v, i), (v, i)) for v in range(4) for i in range(2)}


def test_a_ragged_exchange_may_need_anything_of_its_group() -> None:
    module = parse(
        """p = f32[2] parameter(0)
        q = f32[3] parameter(1)
        a = s32[2] parameter(2)
        ROOT r = f32[3] ragged-all-to-all(p, q, a, a, a, a), replica_groups={{0,2},{1,3}},
          channel_id=1"""
    )
    answer = indexing.device_maps(module.entry.root)
    assert {m.grade for maps in answer.maps for m in maps} == {"may"}
    in_group = [(v, u) for v in range(4) for u in range(4) if v % 2 == u % 2]
    for maps, size in zip(answer.maps, (2, 3, 2, 2, 2, 2), strict=True):
        assert related_pairs(maps) == {
            ((v, i), (u, j)) for v, u in in_group for i in range(3) for j in range(size)
        }


def test_a_received_value_is_unknown() -> None:
    module = parse(
        """t = token[] after-all()
        r = (f32[2], u32[], token[]) recv(t), channel_id=2
        d = (f32[2], token[]) recv-done(r), channel_id=2
        ROOT x = f32[2] get-tuple-element(d), index=0"""
    )
    (why,) = indexing.device_maps(module.entry["r"]).unknown
    assert str(why) == "recv `r`: the sender is not known statically"


def test_a_start_index_is_read_on_the_device_that_needs_it() -> None:
    module = parse(
        """p = f32[8] parameter(0)
        i = s32[] parameter(1)
        s = f32[2] dynamic-slice(p, i), dynamic_slice_sizes={2}
        ROOT c = f32[2] collective-permute(s), source_target_pairs={{0,1},{1,0}}, channel_id=1""",
        "num_partitions=2",
    )
    (composed,) = to_p(module.entry.root)
    (start,) = composed.runtime
    assert start.source is module.entry["i"]
    device = composed.dims[0]
    assert [expr.value({device: v}) for v in (0, 1) for expr in start.index] == [1, 0]
    assert composed.evaluate(dims=(0, 1), runtime=(3,)) == (1, 4)


def test_maps_of_a_chain_of_collectives_agree_with_the_simulation() -> None:
    groups, pairs = [[0, 3], [1, 4], [2, 5]], [(0, 5), (5, 2), (2, 1)]
    module = parse(
        f"""p = f32[2,2] parameter(0)
        g = f32[2,4] all-gather(p), replica_groups=[3,2]<=[2,3]T(1,0), {GLOBAL}, dimensions={{1}}
        c = f32[2,4] collective-permute(g), source_target_pairs={{{{0,5}},{{5,2}},{{2,1}}}}, channel_id=2
        a = f32[2,4] all-to-all(c), replica_groups=[3,2]<=[2,3]T(1,0), channel_id=3, dimensions={{0}}
        ROOT s = f32[2,2] reduce-scatter(a), replica_groups=[3,2]<=[2,3]T(1,0), {GLOBAL}, dimensions={{1}}, to_apply=add""",
        "num_partitions=6",
    )
    steps = [
        simulation.pairs_of(simulation.all_gather(simulation.fresh(6, (2, 2)), groups, 1)),
        simulation.pairs_of(simulation.permute(simulation.fresh(6, (2, 4)), pairs)),
        simulation.pairs_of(simulation.all_to_all(simulation.fresh(6, (2, 4)), groups, 0)),
        simulation.pairs_of(simulation.reduce_scatter(simulation.fresh(6, (2, 4)), groups, 1)),
    ]
    wanted = steps[0]
    for later in steps[1:]:
        wanted = join_pairs(later, wanted)
    assert wanted
    assert related_pairs(to_p(module.entry.root)) == wanted


def test_devices_are_numbered_by_replica_then_by_partition() -> None:
    devices = Devices(num_replicas=2, num_partitions=3)
    numbers = np.arange(6)
    assert [devices.replica_id(int(n)) for n in numbers] == [0, 0, 0, 1, 1, 1]
    assert [devices.partition_id(int(n)) for n in numbers] == [0, 1, 2, 0, 1, 2]


def test_operand_k_of_a_variadic_collective_is_read_by_result_k() -> None:
    module = parse(
        f"""p = f32[2] parameter(0)
        q = s32[3,2] parameter(1)
        g = (f32[8], s32[12,2]) all-gather(p, q), {GLOBAL}, replica_groups=[1,4]<=[4], dimensions={{0}}
        ROOT c = (f32[2], s32[3,2]) collective-permute(p, q), source_target_pairs={{{{0,3}}}}, channel_id=2"""
    )
    gather, permute = module.entry["g"], module.entry["c"]
    first, second = (indexing.device_maps(gather, k).maps for k in range(2))
    assert (first[1], second[0]) == ((), ())
    assert related_pairs(first[0]) == {
        ((v, i), (i // 2, i % 2)) for v in range(4) for i in range(8)
    }
    assert related_pairs(second[1]) == {
        ((v, i, j), (i // 3, i % 3, j)) for v in range(4) for i in range(12) for j in range(2)
    }
    uses = indexing.device_input_to_output(permute, 1).maps
    assert uses[0] == ()
    assert related_pairs(uses[1]) == {((0, i, j), (3, i, j)) for i in range(3) for j in range(2)}


def test_maps_pass_through_the_short_form_of_an_asynchronous_collective() -> None:
    module = parse(
        f"""p = f32[8] parameter(0)
        s = ((f32[8]), f32[2], u32[]) reduce-scatter-start(p), {GLOBAL}, replica_groups=[1,4]<=[4],
          dimensions={{0}}, to_apply=add
        ROOT d = f32[2] reduce-scatter-done(s)"""
    )
    wanted = {((v, i), (u, 2 * v + i)) for v in range(4) for u in range(4) for i in range(2)}
    assert related_pairs(to_p(module.entry.root)) == wanted


def test_a_permute_of_slices_may_need_any_element() -> None:
    """An in-place collective-permute of slices: (input, output, starts of both)."""
    module = parse(
        """p = f32[2] parameter(0)
        q = f32[3] parameter(1)
        a = (s32[]) parameter(2)
        ROOT c = f32[3] collective-permute(p, q, a, a), slice_sizes={{2}}, channel_id=1,
          source_target_pairs={{0,1},{0,1}}""",
        "num_partitions=2",
    )
    answer = indexing.device_maps(module.entry.root)
    assert {m.grade for maps in answer.maps for m in maps} == {"may"}
    devices = [(v, u) for v in range(2) for u in range(2)]
    assert related_pairs(answer.maps[0]) == {
        ((v, i), (u, j)) for v, u in devices for i in range(3) for j in range(2)
    }
    assert not any(answer.unknown)


def test_too_many_maps_are_over_approximated_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """p = f32[2] parameter(0)
        a = f32[2] collective-permute(p), source_target_pairs={{0,1},{1,3},{3,2}}, channel_id=1
        ROOT b = f32[2] negate(a)"""
    kept = to_p(parse(text).entry.root)
    monkeypatch.setattr("indexing.maps.map_set.MAX_MAPS", 1)
    (merged,) = to_p(parse(text).entry.root)
    assert len(kept) > 1
    assert merged.grade == "may"
    every_device = {((v, i), (u, i)) for v in range(4) for u in range(4) for i in range(2)}
    assert related_pairs([merged]) == every_device > related_pairs(kept)


def test_the_number_of_devices_is_limited() -> None:
    with pytest.raises(
        ValueError, match=r"expected at least one replica, .* and at most 1048576 devices"
    ):
        Devices(num_replicas=1024, num_partitions=2048)
    assert (
        str(Devices(num_replicas=1024, num_partitions=1024)) == "1,024 replicas of 1,024 partitions"
    )

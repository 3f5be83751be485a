"""Global programs and their partitions by XLA and by plans, compared by global index."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo
import indexing
from hlo.modules.module import Module
from indexing import equivalent
from indexing.equivalence import Differs, Proved, Undecided
from indexing.equivalence.partitioned.device_runs import DeviceRuns
from indexing.equivalence.partitioned.pairing import PartitionedPair, partitioned_pair
from indexing.equivalence.runs import ValueGap
from tests.equivalence.device_mutants import DEVICE_MUTATIONS
from tests.equivalence.mutants import MUTATIONS, mutants

DATA = Path(__file__).parent / "data" / "partitioned"
WITH_LAWS = {
    "mlp": {"sum(sum(x)) = sum(x)"},
    "dp_train": {"sum(sum(x)) = sum(x)", "(x * y) * z = x * (y * z)"},
    "halo_conv": {"x * 0 = 0"},
    "reshard": set(),
    "shard_map": set(),
    "uneven": {"sum(sum(x)) = sum(x)"},
    "embedding": set(),
    "fsdp": {"sum(sum(x)) = sum(x)", "(x * y) * z = x * (y * z)", "sum(c * x) = c * sum(x)"},
}
OTHER_SEEDS = range(500, 504)


def pair(name: str) -> tuple[Module, Module]:
    before, after = hlo.load_all(DATA / f"{name}.hlo")
    return before, after


def programs(before: str, after: str, header: str = "num_partitions=4") -> tuple[Module, Module]:
    """A global program and the program of a device; both are bodies of ENTRY."""
    pair_of_scalars = "a = f32[] parameter(0)  b = f32[] parameter(1)"
    called = f"""add {{ {pair_of_scalars}  ROOT c = f32[] add(a, b) }}
    less {{ {pair_of_scalars}  ROOT c = pred[] compare(a, b), direction=LT }}"""
    whole, local = (
        hlo.parse(f"HloModule m, {header}\n{called}\nENTRY e {{ {body} }}")
        for body in (before, after)
    )
    return whole, local


@pytest.mark.parametrize("name", WITH_LAWS)
def test_partitions_by_xla_are_proved(name: str) -> None:
    verdict = equivalent(*pair(name))
    assert isinstance(verdict, Proved), verdict
    assert set(verdict.laws) == WITH_LAWS[name]
    assert verdict.note.startswith("compared by global index: 8 devices")


@pytest.mark.parametrize("name", ["mlp", "dp_train", "reshard", "shard_map", "uneven"])
def test_reads_of_partitions_by_xla_are_proved(name: str) -> None:
    verdict = equivalent(*pair(name), level="reads")
    assert isinstance(verdict, Proved), verdict
    assert not verdict.fewer_reads


@pytest.mark.parametrize("scale, kind", [("w", Proved), ("v", Differs)])
def test_replicated_needs_no_number_of_devices(scale: str, kind: type) -> None:
    """JAX prints global modules without num_partitions: there, replicated means on one device."""
    whole = """x = f32[8,3] parameter(0), sharding={devices=[4,1]<=[4]}
      w = f32[3] parameter(1), sharding={replicated}  b = f32[8,3] broadcast(w), dimensions={1}
      ROOT m = f32[8,3] multiply(x, b), sharding={devices=[4,1]<=[4]}"""
    local = f"""x = f32[2,3] parameter(0), sharding={{devices=[4,1]<=[4]}}
      w = f32[3] parameter(1), sharding={{replicated}}  v = f32[3] negate(w)
      b = f32[2,3] broadcast({scale}), dimensions={{1}}
      ROOT m = f32[2,3] multiply(x, b), sharding={{devices=[4,1]<=[4]}}"""
    before = hlo.parse(f"HloModule m\nENTRY e {{ {whole} }}")
    after = hlo.parse(f"HloModule m, num_partitions=4\nENTRY e {{ {local} }}")
    assert isinstance(equivalent(before, after), kind)


STATED = 'custom_call_target="Sharding", sharding={devices=[4,1]<=[4]}'


@pytest.mark.parametrize(
    "result, kind",
    [
        (f"custom-call(n), {STATED}", Proved),
        ("negate(p)", Undecided),  # no sharding is stated
        (f"custom-call(n), {STATED.replace('[4,1]<=[4]', '[4,1]<=[2,2]T(1,0)')}", Differs),
        (f"custom-call(n), {STATED.replace('[4,1]', '[1,4]')}", Undecided),
    ],
)
def test_an_output_is_divided_as_the_annotation_below_the_tuple_states(
    result: str, kind: type
) -> None:
    whole = f"""p = f32[8,3] parameter(0), sharding={{devices=[4,1]<=[4]}}
      n = f32[8,3] negate(p)  r = f32[8,3] {result}
      ROOT t = (f32[8,3]) tuple(r)"""
    local = """p = f32[2,3] parameter(0), sharding={devices=[4,1]<=[4]}  n = f32[2,3] negate(p)
      ROOT t = (f32[2,3]) tuple(n)"""
    assert isinstance(equivalent(*programs(whole, local)), kind)


def test_two_programs_of_a_device_are_compared_as_such() -> None:
    _, local = pair("shard_map")
    line = next(line for line in str(local).splitlines() if " multiply(%" in line)
    swapped = line.replace("(%param, ", "(").replace("), sharding", ", %param), sharding")
    verdict = equivalent(local, hlo.parse(str(local).replace(line, swapped)))
    assert line != swapped
    assert isinstance(verdict, Proved), verdict
    assert not verdict.note


def test_programs_with_manual_regions_are_executed() -> None:
    verdict = equivalent(*pair("shard_map"), level="numbers")
    assert isinstance(verdict, Undecided)
    assert verdict.reason == "executions on random inputs agree, which proves nothing"


@pytest.mark.parametrize("name", ["mlp", "dp_train", "halo_conv", "reshard", "shard_map"])
def test_mutants_of_partitions_are_told_apart(name: str) -> None:
    before, after = pair(name)
    wrong = 0
    for table, seed in ((DEVICE_MUTATIONS, 3), (MUTATIONS, 4)):
        for _, line, mutant in mutants(after, seed, 3, table):
            partition = partitioned_pair(before, mutant)
            assert isinstance(partition, PartitionedPair)
            runs = DeviceRuns(partition)
            is_wrong = any(isinstance(runs.gap_on(runs.inputs(k)), ValueGap) for k in OTHER_SEEDS)
            verdict = equivalent(before, mutant)
            assert isinstance(verdict, Differs) == is_wrong, (line, verdict)
            wrong += is_wrong
    assert wrong, "no mutant computes something else"


MATRIX = """x = f32[4,12] parameter(0), sharding={devices=[1,4]<=[4]}
  w = f32[12,3] parameter(1), sharding={devices=[4,1]<=[4]}
  ROOT y = f32[4,3] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""
PARTIAL = """x = f32[4,3] parameter(0)  w = f32[3,3] parameter(1)
  y = f32[4,3] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""
REDUCED = "channel_id=1, use_global_device_ids=true, to_apply=add"


def test_a_dropped_all_reduce_is_shown_by_an_element_of_a_device() -> None:
    whole, local = programs(MATRIX, PARTIAL + "  ROOT c = f32[4,3] copy(y)")
    verdict = equivalent(whole, local)
    assert isinstance(verdict, Differs)
    assert verdict.element == (0, 0)
    assert "at element [0, 0] of device 0" in verdict.reason
    assert verdict.before != verdict.after


@pytest.mark.parametrize(
    ("groups", "outcome"),
    [("{{0,1,2,3}}", Proved), ("{{3,1,0,2}}", Proved), ("[1,4]<=[4]", Proved),
     ("{{0,1},{2,3}}", Differs), ("{{0,1,2},{3}}", Differs)],
)  # fmt: skip
def test_the_groups_of_an_all_reduce_decide(groups: str, outcome: type) -> None:
    reduced = f"  ROOT r = f32[4,3] all-reduce(y), {REDUCED}, replica_groups={groups}"
    verdict = equivalent(*programs(MATRIX, PARTIAL + reduced))
    assert isinstance(verdict, outcome), verdict


PADDED = """x = f32[10] parameter(0), sharding={devices=[4]<=[4]}  zero = f32[] constant(0)
  ROOT s = f32[] reduce(x, zero), dimensions={0}, to_apply=add, sharding={replicated}"""
MASKED = """x = f32[3] parameter(0)  zero = f32[] constant(0)  d = u32[] partition-id()
  i = s32[3] iota(), iota_dimension=0  t = s32[4] constant({%s})
  o = s32[1] dynamic-slice(t, d), dynamic_slice_sizes={1}  q = s32[] reshape(o)
  b = s32[3] broadcast(q), dimensions={}  g = s32[3] add(i, b)
  n = s32[] constant(%d)  m = s32[3] broadcast(n), dimensions={}
  c = pred[3] compare(g, m), direction=LT  z = f32[3] broadcast(zero), dimensions={}
  k = f32[3] select(c, x, z)  s = f32[] reduce(k, zero), dimensions={0}, to_apply=add
  ROOT r = f32[] all-reduce(s), channel_id=1, use_global_device_ids=true, to_apply=add,
    replica_groups={{0,1,2,3}}"""


@pytest.mark.parametrize(
    ("offsets", "limit", "outcome"),
    [("0,3,6,9", 10, Proved), ("0,3,6,9", 11, Differs), ("0,3,6,9", 9, Differs),
     ("0,3,6,8", 10, Differs), ("0,3,6,9", 12, Differs)],
)  # fmt: skip
def test_padding_must_be_masked(offsets: str, limit: int, outcome: type) -> None:
    verdict = equivalent(*programs(PADDED, MASKED % (offsets, limit)))
    assert isinstance(verdict, outcome), verdict


def test_padding_of_an_output_is_not_compared() -> None:
    whole = "ROOT n = f32[10] negate(x), sharding={devices=[4]<=[4]}"
    whole = f"x = f32[10] parameter(0), sharding={{devices=[4]<=[4]}}  {whole}"
    local = "x = f32[3] parameter(0)  ROOT n = f32[3] negate(x)"
    assert equivalent(*programs(whole, f'{local}, metadata={{op_name="n"}}'))


@pytest.mark.parametrize(
    ("sharding", "local", "stable", "outcome"),
    [("[4,1]<=[4]", "1,6", "true", Proved), ("[4,1]<=[4]", "1,6", "false", Undecided),
     ("[1,2,2]<=[4] last_tile_dim_replicate", "4,3", "true", Differs)],
)  # fmt: skip
def test_rows_of_a_divided_stable_sort_are_compared(
    sharding: str, local: str, stable: str, outcome: type
) -> None:
    text = """x = f32[%s] parameter(0), sharding={devices=%s}
      ROOT s = f32[%s] sort(x), dimensions={1}, is_stable=%s, to_apply=less,
        sharding={devices=%s}"""
    parts = [text % (sizes, sharding, sizes, stable, sharding) for sizes in ("4,6", local)]
    verdict = equivalent(*programs(*parts))
    assert isinstance(verdict, outcome), verdict


def test_each_device_of_a_replicated_output_is_compared() -> None:
    whole = "x = f32[3] parameter(0)  ROOT n = f32[3] negate(x)"
    local = """x = f32[3] parameter(0)  d = u32[] partition-id()  f = f32[] convert(d)
      b = f32[3] broadcast(f), dimensions={}  t = u32[] constant(2)
      c = pred[] compare(d, t), direction=LE  n = f32[3] negate(x)
      ROOT s = f32[3] select(c, n, b)"""
    verdict = equivalent(*programs(whole, local))
    assert isinstance(verdict, Differs)
    assert "device 3" in verdict.reason
    assert "output 0 without a sharding: taken as replicated" in verdict.note


def test_an_unknown_sharding_is_a_reason() -> None:
    whole = "x = f32[12] parameter(0)  ROOT n = f32[12] negate(x)"
    verdict = equivalent(*programs(whole, "x = f32[3] parameter(0)  ROOT n = f32[3] negate(x)"))
    assert isinstance(verdict, Undecided)
    assert verdict.reason == (
        "parameter 0 is f32[12] before and f32[3] on each device after, and neither program states "
        "its sharding"
    )
    both = [f"x = f32[{n}] parameter(0), sharding={{devices=[2,2]<=[4] last_tile_dim_replicate}}"
            f"  ROOT n = f32[{n}] negate(x)" for n in (12, 3)]  # fmt: skip
    verdict = equivalent(*programs(*both))
    assert isinstance(verdict, Undecided)
    assert verdict.reason.endswith("last_tile_dim_replicate} gives each device [6]")


@pytest.mark.parametrize("mesh", ["x=4", "x=3"])
def test_plans_are_proved(mesh: str) -> None:
    mlp = hlo.parse("""ENTRY mlp {
      x = f32[8,16] parameter(0)  a = f32[16,32] parameter(1)  b = f32[32,16] parameter(2)
      h = f32[8,32] dot(x, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT y = f32[8,16] dot(h, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }""")
    plan = indexing.shard(mlp, mesh, {"a": "_,x", "b": "x,_"})
    for level in ("reads", "values"):
        verdict = equivalent(mlp, plan.module, level)
        assert isinstance(verdict, Proved), (level, verdict)


def test_loops_that_exchange_values_are_undecided() -> None:
    body = """add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
    b { p = (s32[], f32[3]) parameter(0)  i = s32[] get-tuple-element(p), index=0
      x = f32[3] get-tuple-element(p), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
      %s  ROOT t = (s32[], f32[3]) tuple(j, y) }
    c { p = (s32[], f32[3]) parameter(0)  i = s32[] get-tuple-element(p), index=0
      n = s32[] constant(5)  ROOT l = pred[] compare(i, n), direction=LT }
    ENTRY e { x = f32[3] parameter(0), sharding={replicated}  z = s32[] constant(0)
      t = (s32[], f32[3]) tuple(z, x)  w = (s32[], f32[3]) while(t), body=b, condition=c
      ROOT r = f32[3] get-tuple-element(w), index=1 }"""
    reduced = f"y = f32[3] all-reduce(x), {REDUCED}, replica_groups={{{{0,1}}}}"
    doubled = "y = f32[3] add(x, x)"
    whole, local = (
        hlo.parse(f"HloModule m, num_partitions=2\n{body % text}") for text in (doubled, reduced)
    )
    verdict = equivalent(whole, local)
    assert isinstance(verdict, Undecided)
    assert "in a loop or branch" in verdict.reason

"""Asynchronous and combined collectives are the collectives of one array, and nothing else.

The interpreter executes each program on four devices.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

import hlo
from indexing import equivalent
from indexing.equivalence import Proved
from indexing.execution import run

HEAD: Final = """HloModule m, num_partitions=4
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
double { x = f32[4,3] parameter(0)  ROOT y = f32[4,3] add(x, x) }
exchange { x = f32[4,3] parameter(0)  ROOT y = f32[4,3] all-to-all(x), channel_id=1,
  replica_groups={{0,1,2,3}}, dimensions={0} }
ENTRY e { p = f32[4,3] parameter(0)  q = f32[4,3] parameter(1)
  """
GROUPS: Final = "channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true"
OTHER: Final = "channel_id=1, replica_groups={{0,2},{1,3}}, use_global_device_ids=true"
PAIRS: Final = "source_target_pairs={{0,1},{1,2},{2,3}}"

GATHER: Final = f"ROOT r = f32[8,3] all-gather(p), dimensions={{0}}, {GROUPS}"
REDUCE: Final = f"ROOT r = f32[4,3] all-reduce(p), to_apply=add, {GROUPS}"
SCATTER: Final = f"ROOT r = f32[2,3] reduce-scatter(q), dimensions={{0}}, to_apply=add, {GROUPS}"
PERMUTE: Final = f"ROOT r = f32[4,3] collective-permute(q), channel_id=1, {PAIRS}"
EXCHANGE: Final = "ROOT r = f32[4,3] call(p), to_apply=exchange"

EQUAL: Final = {
    "all-gather-start": (
        GATHER,
        f"s = (f32[4,3], f32[8,3]) all-gather-start(p), dimensions={{0}}, {GROUPS} "
        "ROOT r = f32[8,3] all-gather-done(s)",
    ),
    "all-reduce-start": (
        REDUCE,
        f"s = f32[4,3] all-reduce-start(p), to_apply=add, {GROUPS} "
        "ROOT r = f32[4,3] all-reduce-done(s)",
    ),
    "collective-permute-start": (
        PERMUTE,
        f"s = (f32[4,3], f32[4,3], u32[], u32[]) collective-permute-start(q), channel_id=2, {PAIRS}"
        " ROOT r = f32[4,3] collective-permute-done(s)",
    ),
    "async-start": (
        EXCHANGE,
        "s = ((f32[4,3]), f32[4,3]) async-start(p), calls=exchange "
        "u = ((f32[4,3]), f32[4,3]) async-update(s)  ROOT r = f32[4,3] async-done(u)",
    ),
    "async-start of no collective": (
        "ROOT r = f32[4,3] add(q, q)",
        "s = ((f32[4,3]), f32[4,3], u32[]) async-start(q), calls=double "
        "ROOT r = f32[4,3] async-done(s)",
    ),
    "combined all-reduce": (
        REDUCE,
        f"s = (f32[4,3], f32[4,3]) all-reduce(q, p), to_apply=add, {GROUPS} "
        "ROOT r = f32[4,3] get-tuple-element(s), index=1",
    ),
    "combined all-gather-start": (
        GATHER,
        "s = ((f32[4,3], f32[4,3]), (f32[8,3], f32[8,3])) all-gather-start(p, q), "
        f"dimensions={{0}}, {GROUPS} t = (f32[8,3], f32[8,3]) all-gather-done(s) "
        "ROOT r = f32[8,3] get-tuple-element(t), index=0",
    ),
    "combined reduce-scatter": (
        SCATTER,
        f"s = (f32[2,3], f32[2,3]) reduce-scatter(q, p), dimensions={{0}}, to_apply=add, {GROUPS} "
        "ROOT r = f32[2,3] get-tuple-element(s), index=0",
    ),
}

OTHERS: Final = {
    "groups": ("all-gather-start", GROUPS, OTHER),
    "groups of a sum": ("all-reduce-start", GROUPS, OTHER),
    "a pair": ("collective-permute-start", "{2,3}}", "{3,0}}"),
    "the started computation": ("async-start of no collective", "calls=double", "calls=exchange"),
    "the exchange": ("async-start", "calls=exchange", "calls=double"),
    "the operand": ("all-gather-start", "all-gather-start(p)", "all-gather-start(q)"),
    "the leaf": ("combined all-reduce", "index=1", "index=0"),
    "the leaf of a start": ("combined all-gather-start", "index=0", "index=1"),
    "the order of operands": ("combined reduce-scatter", "(q, p)", "(p, q)"),
    "the operand in place of the result": (
        "async-start of no collective",
        "async-done(s)",
        "get-tuple-element(g), index=0",
    ),
}


def results(module: hlo.Module) -> list[Any]:
    """Return the result on each device, for other inputs on each."""
    chance = np.random.default_rng(1)
    given = [[chance.normal(size=(4, 3)).astype(np.float32) for _ in "pq"] for _ in range(4)]
    return [np.asarray(each[0]) for each in run(module, given, replicas=4)]


@pytest.mark.parametrize("name", EQUAL)
def test_an_asynchronous_or_combined_collective_is_one_of_one_array(name: str) -> None:
    one, other = (hlo.parse(f"{HEAD}{text} }}") for text in EQUAL[name])
    np.testing.assert_allclose(results(one), results(other), rtol=1e-6)
    verdict = equivalent(one, other)
    assert isinstance(verdict, Proved), verdict
    assert not verdict.laws


@pytest.mark.parametrize("name", OTHERS)
def test_another_collective_is_not_proved(name: str) -> None:
    of, old, new = OTHERS[name]
    before, after = EQUAL[of]
    assert old in after
    changed = after.replace(old, new)
    if "(g)" in changed or "element(g)" in changed:
        changed = changed.replace("ROOT", "g = (f32[4,3]) get-tuple-element(s), index=0  ROOT")
    one, other = (hlo.parse(f"{HEAD}{text} }}") for text in (before, changed))
    assert not np.allclose(results(one), results(other))
    assert not isinstance(equivalent(one, other), Proved)

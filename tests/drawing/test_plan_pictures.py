"""Pictures of plans: the parts that devices hold, compared with the shards of an array."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

import hlo
import indexing
from indexing.sharding import Plan
from tests.drawing.pictures import cells, draw, slices, texts

MODULE = hlo.parse(
    """HloModule m
ENTRY e { p = f32[8,6] parameter(0)  q = f32[6,10] parameter(1)
  ROOT d = f32[8,10] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""
)


def plan_of(**specs: tuple[object, ...]) -> Plan:
    plan = indexing.shard(MODULE, {"x": 2, "y": 4}, specs)
    assert isinstance(plan, Plan)
    return plan


@pytest.mark.parametrize(
    "specs",
    [
        {"p": ("x", None), "q": (None, "y")},
        {"p": (None, "x"), "q": ("x", None)},
        {"p": (("y", "x"), None)},
        {"q": (None, ("x", "y"))},  # shards of 2 elements, the last ones empty
    ],
)
def test_parts_are_those_of_the_shards(specs: dict[str, tuple[object, ...]]) -> None:
    plan = plan_of(**specs)
    svg = plan.plot().svg
    p = np.arange(48, dtype=np.float32).reshape(8, 6)
    q = np.arange(60, dtype=np.float32).reshape(6, 10)
    shards = plan.shards([p, q], fill=-1.0)
    for number, (name, array) in enumerate((("p", p), ("q", q))):
        held: dict[tuple[float, ...], set[int]] = defaultdict(set)
        for device, own in enumerate(shards):
            held[tuple(sorted(own[number][own[number] >= 0].ravel()))].add(device)
        shown: dict[tuple[float, ...], set[int]] = defaultdict(set)
        for index, devices in draw(svg, name):
            part = array[slices(index)]
            shown[tuple(sorted(part.ravel()))] |= set(map(int, devices.split()))
        assert shown == held


def test_collectives_are_bars() -> None:
    plan = plan_of(p=(None, "x"), q=("x", None))
    svg = plan.plot().svg
    assert sum(int(sent) for _, sent in draw(svg, "collectives")) == plan.bytes_sent
    assert plan.bytes_sent > 0
    none = plan_of().plot().svg
    assert "no collectives: devices exchange nothing" in texts(none)
    assert set(cells(none, "p").values()) == {"0 1 2 3 4 5 6 7"}
    assert "all 8 devices" in texts(none)

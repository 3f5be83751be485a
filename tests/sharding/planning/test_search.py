"""Searches of shardings against all choices on small programs."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

import hlo
import indexing
from tests.sharding.planning.models import MLP

PRODUCT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
BLOCK = f"""ENTRY e {{
  x = f32[16,8] parameter(0)
  a = f32[8,24] parameter(1)
  b = f32[24,8] parameter(2)
  h = f32[16,24] dot(x, a), {PRODUCT}
  t = f32[16,24] tanh(h)
  ROOT y = f32[16,8] dot(t, b), {PRODUCT}
}}"""


def all_specs(module: hlo.Module, axes: dict[str, int]) -> list[dict[str, Any]]:
    """Return all ways to split dimensions of parameters whose sizes the axes divide."""
    choices = []
    for parameter in module.entry.parameters:
        shape = parameter.shape
        assert isinstance(shape, hlo.Shape)
        specs = []
        for places in product(range(-1, shape.rank), repeat=len(axes)):
            dims: list[tuple[str, ...]] = [()] * shape.rank
            shards = [1] * shape.rank
            for (name, size), place in zip(axes.items(), places, strict=True):
                if place >= 0:
                    dims[place] = (*dims[place], name)
                    shards[place] *= size
            if all(size % n == 0 for size, n in zip(shape.dims, shards, strict=True)):
                specs.append(tuple(names or None for names in dims))
        choices.append(specs)
    names = [parameter.name for parameter in module.entry.parameters]
    return [dict(zip(names, each, strict=True)) for each in product(*choices)]


@pytest.mark.parametrize("limit", [None, 2300, 1800, 1500, 1300, 600])
def test_the_best_choices_send_the_fewest_bytes_of_all_and_hold_the_least(
    limit: int | None,
) -> None:
    module = hlo.parse(BLOCK)
    plans = [indexing.shard(module, {"x": 4}, specs) for specs in all_specs(module, {"x": 4})]
    best = indexing.best_shardings(module, {"x": 4}, memory_limit=limit)
    pairs = [(plan.bytes_sent, plan.peak_bytes) for plan in plans]
    fitting = sorted(pair for pair in pairs if limit is None or pair[1] <= limit)
    assert best.is_optimal
    assert best.choices == len(plans) == 27
    ranked = [(each.plan.bytes_sent, each.plan.peak_bytes) for each in best.ranked]
    assert ranked == fitting[:5]


def test_choices_beyond_the_budget_are_found_by_cost_and_not_called_optimal() -> None:
    module = hlo.parse(BLOCK)
    everything = indexing.best_shardings(module, {"x": 4}, memory_limit=1800)
    some = indexing.best_shardings(module, {"x": 4}, memory_limit=1800, max_plans=12)
    assert not some.is_optimal
    assert some.planned <= 12 < everything.choices
    assert some.ranked[0].plan.bytes_sent == everything.ranked[0].plan.bytes_sent
    assert "others may send fewer bytes" in str(some)


def test_two_blocks_get_the_shardings_of_experts() -> None:
    best = indexing.best_shardings(hlo.parse(MLP), {"x": 8}, memory_limit=55_000, max_plans=40)
    assert best.choices == 486
    assert best.ranked[0].plan.bytes_sent <= 2 * (2 * 7 * 32 * 64 * 4 // 8)


def test_given_specs_are_kept() -> None:
    module = hlo.parse(BLOCK)
    best = indexing.best_shardings(module, {"x": 4}, memory_limit=2000, specs={"a": (None, "x")})
    assert best.choices == 9
    assert all(str(each.plan.specs["a"]) == "[_, x]" for each in best.ranked)
    with pytest.raises(ValueError, match="used whole"):
        indexing.best_shardings(module, {"x": 4}, specs={"a": "x:(1)2"})


def test_a_limit_that_nothing_meets_is_stated_with_the_least_bytes_held() -> None:
    best = indexing.best_shardings(hlo.parse(BLOCK), {"x": 4}, memory_limit=10_000, max_plans=27)
    least = min(each.plan.peak_bytes for each in best.ranked)
    none = indexing.best_shardings(hlo.parse(BLOCK), {"x": 4}, memory_limit=least // 4, max_plans=5)
    assert not none.ranked
    assert f"at least {none.least_held:,}" in str(none)

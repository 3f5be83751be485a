"""Execution of a `Plan` on simulated devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from indexing.execution.program import run
from indexing.execution.values import checked_inputs, flattened
from indexing.sharding.planning.array_shards import shard_of
from indexing.sharding.planning.plan import Plan


def plan_shards(plan: Plan, inputs: Sequence[Any], fill: Any = 0) -> list[list[NDArray[Any]]]:
    """Return the local inputs of each device; see `Plan.shards`."""
    arrays = flattened(tuple(checked_inputs(plan.program.entry, inputs)))
    return [
        [
            shard_of(array, sharding, device, fill)
            for array, sharding in zip(arrays, plan.parameters, strict=True)
        ]
        for device in range(plan.mesh.size)
    ]


def plan_outputs(plan: Plan, inputs: Sequence[Any], fill: Any = 0) -> tuple[NDArray[Any], ...]:
    """Return the arrays of the result; see `Plan.run`."""
    shards = plan_shards(plan, inputs, fill)
    if len(shards) == 1:
        return plan.assemble([run(plan.module, shards[0])])
    return plan.assemble(run(plan.module, shards, replicas=len(shards)))

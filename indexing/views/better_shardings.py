"""Choices that send fewer bytes than the shardings that a module states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hlo.modules.module import Module
from indexing.sharding.planning.plan import Plan
from indexing.sharding.planning.search import best_shardings
from indexing.sharding.planning.sharded_programs import shard
from indexing.sharding.planning.stated_shardings import StatedShardings

MAX_PLANS: Final = 40
"""Limit on the plans that are made to find a better one."""


def better_lines(module: Module, stated: StatedShardings, plan: Plan) -> Iterator[str]:
    """Yield what is left out, and what devices send with fewer constraints.

    Args:
        plan: the plan with the stated shardings.
    """
    for reason in stated.left_out:
        yield f"  left out: {reason}"
    if not plan.bytes_sent:
        return
    if stated.inner:
        free = shard(module, stated.mesh, stated.parameters, out_specs=stated.results)
        if free.bytes_sent < plan.bytes_sent:
            fewer = f"{free.bytes_sent:,} bytes sent"
            yield f"  {fewer} with the shardings of parameters and results alone"
    best = best_shardings(
        module,
        stated.mesh,
        memory_limit=plan.peak_bytes,
        out_specs=stated.results,
        max_plans=MAX_PLANS,
        keep=1,
    )
    for ranked in best.ranked:
        sent = ranked.plan.bytes_sent
        if sent < plan.bytes_sent:
            split = [f"{name} {spec}" for name, spec in ranked.specs.items() if any(spec.dims)]
            yield (
                f"  {sent:,} bytes sent, {ranked.plan.peak_bytes:,} held, with other shardings of "
                f"parameters: {', '.join(split) or 'all replicated'}"
            )
            return
    if best.planned:
        yield (
            f"  no other shardings of parameters that send less and hold no more, among "
            f"{best.planned:,} of {best.choices:,} choices"
        )

"""Plans of programs on meshes, as text and as rows of tables."""

from __future__ import annotations

from collections.abc import Iterator

from indexing.sharding.planning.plan import LeafSharding, Plan, PlannedCollective
from indexing.views.alignment import aligned

PLAN_COLUMNS = ("instruction", "spec", "collective", "axes", "bytes", "times", "reason")
"""The columns of `plan_rows`."""


def plan_text(plan: Plan) -> str:
    """Return the table of a plan, its totals, and the reasons."""
    rows = list(plan_rows(plan))
    table = aligned([PLAN_COLUMNS, *rows], right=[4, 5])
    return "\n".join([plan_head(plan), *table, *plan_notes(plan)])


def plan_head(plan: Plan) -> str:
    """Return the title of a plan's table."""
    return (
        f"plan of `{plan.program.entry.name}` on {plan.mesh}: {plan.bytes_sent:,} bytes sent and "
        f"{plan.peak_bytes:,} bytes held by a device"
    )


def plan_rows(plan: Plan) -> Iterator[tuple[str, ...]]:
    """Yield the values of `PLAN_COLUMNS`: a row for each instruction, and for each collective."""
    by_instruction: dict[str, list[PlannedCollective]] = {}
    for collective in plan.collectives:
        name = collective.instruction
        key = f"{collective.loop}/{name}" if collective.loop else name
        by_instruction.setdefault(key, []).append(collective)
    for name, spec in plan.specs.items():
        first, *others = [*map(_cells, by_instruction.pop(name, ())), ("",) * 5][:None]
        yield (name, _spec_text(spec), *first)
        yield from [("", "", *cells) for cells in others if any(cells)]
    for name, rest in by_instruction.items():
        yield from [(name, "", *_cells(collective)) for collective in rest]


def plan_notes(plan: Plan) -> Iterator[str]:
    """Yield the reasons of a plan, and whether better choices may exist."""
    yield from map(str, plan.reasons)
    if not plan.is_cheapest:
        yield "the choice between conflicting splits is not proved to be the cheapest"


def _spec_text(spec: LeafSharding) -> str:
    return f"({', '.join(map(str, spec))})" if isinstance(spec, tuple) else str(spec)


def _cells(collective: PlannedCollective) -> tuple[str, ...]:
    axes = ",".join(map(str, collective.axes))
    number = collective.executions.number
    times = "" if number == 1 else str(collective.executions)
    return collective.kind, axes, f"{collective.bytes_sent:,}", times, collective.reason

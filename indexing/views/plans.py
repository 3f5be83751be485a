"""Plans of programs on meshes, as tables and as text."""

from __future__ import annotations

from collections.abc import Iterator

from indexing.sharding.planning.plan import LeafSharding, PaddedDimension, Plan, PlannedCollective
from indexing.sharding.planning.search import BestShardings
from indexing.views.tables import Table

SHARDINGS_COLUMNS = ("bytes sent", "bytes held", "specs")
"""The columns of the table of the best shardings."""

PLAN_COLUMNS = ("instruction", "spec", "collective", "axes", "bytes", "times", "reason")
"""The columns of the table of a plan."""


MAX_PLACES = 3
"""Limit on the dimensions that a note about padding lists."""


def plan_table(plan: Plan) -> Table:
    """Return the table of a plan, with its totals and the reasons."""
    head = (
        f"plan of `{plan.program.entry.name}` on {plan.mesh}: {plan.bytes_sent:,} bytes sent and "
        f"{plan.peak_bytes:,} bytes held by a device"
    )
    return Table(head, PLAN_COLUMNS, list(_plan_rows(plan)), list(_plan_notes(plan)), right=[4, 5])


def plan_text(plan: Plan) -> str:
    """Return the table of a plan as text."""
    return str(plan_table(plan))


def _plan_rows(plan: Plan) -> Iterator[tuple[str, ...]]:
    """Yield the values of `PLAN_COLUMNS`: a row for each instruction, and for each collective."""
    by_instruction: dict[str, list[PlannedCollective]] = {}
    for collective in plan.collectives:
        name = collective.instruction
        key = f"{collective.loop}/{name}" if collective.loop else name
        by_instruction.setdefault(key, []).append(collective)
    for name, spec in plan.specs.items():
        first, *others = [*map(_cells, by_instruction.pop(name, ())), ("",) * 5]
        yield (name, _spec_text(spec), *first)
        yield from [("", "", *cells) for cells in others if any(cells)]
    for name, rest in by_instruction.items():
        yield from [(name, "", *_cells(collective)) for collective in rest]


def _plan_notes(plan: Plan) -> Iterator[str]:
    """Yield the reasons of a plan, and whether better choices may exist."""
    padded: dict[str, list[str]] = {}
    for reason in plan.reasons:
        if isinstance(reason, PaddedDimension):
            padded.setdefault(reason.padding, []).append(reason.place)
        else:
            yield str(reason)
    for padding, places in padded.items():
        rest = f", and {len(places) - MAX_PLACES} more" if len(places) > MAX_PLACES else ""
        yield f"{padding}: {', '.join(places[:MAX_PLACES])}{rest}"
    if not plan.is_cheapest:
        yield "the choice between conflicting splits is not proved to be the cheapest"


def shardings_table(best: BestShardings) -> Table:
    """Return the table of the best shardings, with how they were searched."""
    limit = "" if best.memory_limit is None else f", at most {best.memory_limit:,} bytes held"
    head, notes = f"shardings on {best.mesh}{limit}", list(_shardings_notes(best))
    return Table(head, SHARDINGS_COLUMNS, list(_shardings_rows(best)), notes, right=[0, 1])


def best_shardings_text(best: BestShardings) -> str:
    """Return the table of the best shardings as text."""
    return str(shardings_table(best))


def _shardings_rows(best: BestShardings) -> Iterator[tuple[object, ...]]:
    """Yield the values of `SHARDINGS_COLUMNS` for each choice."""
    for ranked in best.ranked:
        split = [f"{name} {spec}" for name, spec in ranked.specs.items() if any(spec.dims)]
        plan = ranked.plan
        yield plan.bytes_sent, plan.peak_bytes, ", ".join(split) or "all replicated"


def _shardings_notes(best: BestShardings) -> Iterator[str]:
    """Yield the effort of the search, and whether its result is optimal."""
    yield f"{best.planned:,} of {best.choices:,} choices planned"
    if not best.ranked:
        yield f"no choice holds so few bytes: at least {best.least_held:,} in the plans made"
    if not best.is_optimal:
        yield (
            "the search starts from the cheapest choices and goes on to their neighbours: others "
            f"may send fewer bytes; a limit of {best.choices:,} plans tries all"
        )


def _spec_text(spec: LeafSharding) -> str:
    return f"({', '.join(map(str, spec))})" if isinstance(spec, tuple) else str(spec)


def _cells(collective: PlannedCollective) -> tuple[str, ...]:
    axes = ",".join(map(str, collective.axes))
    number = collective.executions.number
    times = "" if number == 1 else str(collective.executions)
    return collective.kind, axes, f"{collective.bytes_sent:,}", times, collective.reason

"""Plans of programs on meshes, as text and as rows of tables."""

from __future__ import annotations

from collections.abc import Iterator

from indexing.sharding.planning.plan import LeafSharding, PaddedDimension, Plan, PlannedCollective
from indexing.sharding.planning.search import BestShardings
from indexing.views.alignment import align_columns

SHARDINGS_COLUMNS = ("bytes sent", "bytes held", "specs")
"""The columns of `shardings_rows`."""

PLAN_COLUMNS = ("instruction", "spec", "collective", "axes", "bytes", "times", "reason")
"""The columns of `plan_rows`."""


MAX_PLACES = 3
"""Limit on the dimensions that a note about padding lists."""


def plan_text(plan: Plan) -> str:
    """Return the table of a plan, its totals, and the reasons."""
    rows = list(plan_rows(plan))
    table = align_columns([PLAN_COLUMNS, *rows], right=[4, 5])
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


def best_shardings_text(best: BestShardings) -> str:
    """Return the table of the best shardings, and how they were searched."""
    rows = list(shardings_rows(best))
    table = list(align_columns([SHARDINGS_COLUMNS, *rows], right=[0, 1])) if rows else []
    return "\n".join([shardings_head(best), *table, *shardings_notes(best)])


def shardings_head(best: BestShardings) -> str:
    """Return the title of the table of the best shardings."""
    limit = "" if best.memory_limit is None else f", at most {best.memory_limit:,} bytes held"
    return f"shardings on {best.mesh}{limit}"


def shardings_rows(best: BestShardings) -> Iterator[tuple[str, ...]]:
    """Yield the values of `SHARDINGS_COLUMNS` for each choice."""
    for ranked in best.ranked:
        split = [f"{name} {spec}" for name, spec in ranked.specs.items() if any(spec.dims)]
        sent, held = ranked.plan.bytes_sent, ranked.plan.peak_bytes
        yield f"{sent:,}", f"{held:,}", ", ".join(split) or "all replicated"


def shardings_notes(best: BestShardings) -> Iterator[str]:
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

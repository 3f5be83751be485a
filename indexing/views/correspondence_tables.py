"""Text and JSON of correspondences and of the costs of two modules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from hlo.modules.module import Instruction
from indexing.equivalence.correspondence import Correspondence
from indexing.equivalence.costs import CostComparison
from indexing.views.tables import align_columns

MAX_GROUPS: Final = 20
"""Limit on the groups of a table of costs."""
MAX_NAMED: Final = 3
"""Limit on the instructions that a cell names."""


def map_lines(matched: Correspondence) -> Iterator[str]:
    """Yield a row for each link, and the instructions without one."""
    share = f"{matched.linked_share:.1%}"
    yield f"{len(matched.links):,} links; {share} of the instructions of both modules have one"
    cells = [["before", "after", "by"]]
    for link in matched.links:
        cells.append([_instruction_name(link.before), _instruction_name(link.after), link.how])
    yield from align_columns(cells)
    for word, rest in (("removed", matched.removed), ("added", matched.added)):
        if rest:
            yield f"{word}: {', '.join(map(_instruction_name, rest))}"


def map_record(matched: Correspondence) -> dict[str, Any]:
    """Return a correspondence as a value for JSON."""
    return {
        "links": [
            [_instruction_name(link.before), _instruction_name(link.after), link.how]
            for link in matched.links
        ],
        "removed": list(map(_instruction_name, matched.removed)),
        "added": list(map(_instruction_name, matched.added)),
    }


def cost_lines(costs: CostComparison, first: str = "") -> Iterator[str]:
    """Yield the totals, a row for each group that costs more or less, and the first pass.

    Args:
        first: the first pass after which both compilations differ; "" if it is not asked for.
    """
    yield f"moved: {_both(costs.moved)}"
    yield f"held at most: {_both(costs.peaks)}"
    if first:
        yield first
    changed = costs.changed
    if not changed:
        yield "no group of instructions moves or holds another number of bytes"
        return
    cells = [["moved", "held", "before", "after"]]
    for group in changed[:MAX_GROUPS]:
        numbers = [f"{each:+,}" if each else "" for each in (group.more_moved, group.more_held)]
        cells.append([*numbers, _names(group.before), _names(group.after)])
    yield from align_columns(cells, right=[0, 1])
    if len(changed) > MAX_GROUPS:
        yield f"… {len(changed) - MAX_GROUPS} more"


def cost_record(costs: CostComparison, first: str = "") -> dict[str, Any]:
    """Return a comparison of costs as a value for JSON."""
    return {
        "moved": list(costs.moved),
        "peaks": list(costs.peaks),
        "first_pass": first or None,
        "groups": [
            {
                "before": list(map(_instruction_name, group.before)),
                "after": list(map(_instruction_name, group.after)),
                "moved": list(group.moved),
                "held": list(group.held),
            }
            for group in costs.changed
        ],
    }


def _both(numbers: tuple[int | None, int | None]) -> str:
    before, after = numbers
    if before is None or after is None:
        return "unknown"
    return f"{before:,} bytes before, {after:,} after ({after - before:+,})"


def _instruction_name(instruction: Instruction) -> str:
    return f"{instruction.computation.name}/{instruction.name}"


def _names(instructions: Sequence[Instruction]) -> str:
    shown = ", ".join([i.name for i in instructions[:MAX_NAMED]])
    more = len(instructions) - MAX_NAMED
    return (shown or "nothing") + (f" and {more} more" if more > 0 else "")

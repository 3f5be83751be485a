"""`Differs` verdicts: differences that executions of both programs show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hlo.modules.module import Instruction
from hlo.text.source import HloError
from indexing.equivalence.chains import ElementReads
from indexing.equivalence.pairing import Pair, Side
from indexing.equivalence.reads import Gap
from indexing.equivalence.roundings import judge_difference, rounded_gap, wide_runs
from indexing.equivalence.runs import Runs, ValueGap
from indexing.equivalence.verdicts import Differs, ElementIndex, Level, Undecided
from indexing.maps.answers import Unknown


def by_values(pair: Pair, runs: Runs, level: Level) -> Differs | Unknown | None:
    """Return an output element at which executions on the same inputs differ, if one is seen."""
    gap = runs.value_gap()
    if not isinstance(gap, ValueGap):
        return gap
    shown = _differs(pair, runs, gap, level)
    if runs.exact or runs.use_xla:
        return shown
    return judge_difference(shown, gap.inputs, (pair.before, pair.after), wide_runs)


def by_rounding(pair: Pair) -> Differs | None:
    """Return an element whose values differ by a rounding, if executions in f64 agree."""
    runs = Runs(pair)
    gap = rounded_gap(runs)
    if gap is None:
        return None
    shown = judge_difference(
        _differs(pair, runs, gap, "values"), gap.inputs, (pair.before, pair.after), wide_runs
    )
    return shown if shown.by_rounding else None


def by_influence(pair: Pair, runs: Runs, gap: Gap) -> Differs | Undecided:
    """Return a difference of reads if executions show it.

    The parameter element is changed: the output element must change in one program only.
    """
    reason = f"parameter {gap.parameter} is read at {list(gap.parameter_element)} only "
    reason += gap.only_in
    shown = runs.influence_gap(gap.output, gap.element, gap.parameter, gap.parameter_element)
    if isinstance(shown, Unknown):
        return Undecided(f"{reason}, which is not confirmed: {shown}", shown.instruction)
    if shown is None:
        return Undecided(f"{reason}, without an observed influence", output=gap.output)
    target = gap.parameter, gap.parameter_element
    return _differs(pair, runs, shown, "reads", reason, target)


def _differs(
    pair: Pair,
    runs: Runs,
    gap: ValueGap,
    level: Level,
    reason: str = "",
    target: tuple[int, ElementIndex] | None = None,
) -> Differs:
    """Return the verdict for an output element with different values."""
    if not reason:
        reason = f"its value is {gap.before} before and {gap.after} after"
        reason += f", on device {gap.device}" if gap.device else ""
    values = str(gap.before), str(gap.after)
    inputs = gap.inputs.devices
    shown = Differs(gap.output, gap.element, reason, level, *values, inputs=inputs)
    sides = pair.before, pair.after
    trees = [_follow_reads(side, runs, gap) for side in sides]
    numbers = range(len(pair.before.inputs))
    read = [
        [tree.elements(side.inputs[k]) for k in numbers]
        for tree, side in zip(trees, sides, strict=True)
    ]
    is_complete = all(tree.is_complete for tree in trees)
    place = target or _first_difference(read[0], read[1], is_complete=is_complete)
    if place is None:
        return shown
    number, element = place
    return replace(
        shown,
        parameter=number,
        parameter_element=element,
        reads_before=read[0][number],
        reads_after=read[1][number],
        chain_before=trees[0].chain(pair.before.inputs[number], element),
        chain_after=trees[1].chain(pair.after.inputs[number], element),
        reads_are_complete=is_complete,
    )


def _first_difference(
    before: Sequence[Sequence[ElementIndex]],
    after: Sequence[Sequence[ElementIndex]],
    *,
    is_complete: bool,
) -> tuple[int, ElementIndex | None] | None:
    """Return a parameter that is read, and an element of it that only one program reads, if known.

    Args:
        before, after: the elements of each parameter that are read.
    """
    pairs = [(set(one), set(other)) for one, other in zip(before, after, strict=True)]
    used = [k for k, pair in enumerate(pairs) if any(pair)]
    different = [k for k in used if is_complete and pairs[k][0] != pairs[k][1]]
    if not used:
        return None
    number = (different or used)[0]
    one, other = pairs[number]
    return number, min(one ^ other, default=None) if is_complete else None


def _follow_reads(side: Side, runs: Runs, gap: ValueGap) -> ElementReads:
    values: Mapping[Instruction, Any] = {}
    if runs.devices == 1:
        values = runs.values(side, gap.inputs)
    try:
        return ElementReads.of(side, gap.output, gap.element, values)
    except HloError:  # an instruction is invalid for the maps, for example a send
        return ElementReads({}, is_complete=False)

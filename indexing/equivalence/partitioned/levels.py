"""Verdicts on a global program and its partition, at each level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hlo.modules.module import Module
from indexing.equivalence.partitioned.device_reads import compare_device_reads
from indexing.equivalence.partitioned.device_runs import DeviceRuns
from indexing.equivalence.partitioned.formulas import compare_formulas
from indexing.equivalence.partitioned.pairing import PartitionedPair, partitioned_pair
from indexing.equivalence.reads import Comparison, Gap
from indexing.equivalence.roundings import judge_difference, widen_floats
from indexing.equivalence.runs import Runs, ValueGap
from indexing.equivalence.values.results import EqualFormulas, Residual
from indexing.equivalence.verdicts import Differs, FewerReads, Level, Proved, Undecided, Verdict
from indexing.maps.answers import Unknown


def compare_partition(
    pair: PartitionedPair, level: Level, exact_arithmetic: bool = False
) -> Verdict:
    """Compare a global program with its partition.

    >>> import hlo, indexing.ops
    >>> from indexing.equivalence.partitioned.pairing import partitioned_pair
    >>> whole = hlo.parse('''HloModule m, num_partitions=2
    ... ENTRY e { p = f32[6] parameter(0), sharding={devices=[2]<=[2]}
    ...   ROOT r = f32[6] reverse(p), dimensions={0}, sharding={devices=[2]<=[2]} }''')
    >>> part = hlo.parse('''HloModule m, num_partitions=2
    ... ENTRY e { p = f32[3] parameter(0)  r = f32[3] reverse(p), dimensions={0}
    ...   ROOT c = f32[3] collective-permute(r), source_target_pairs={{0,1},{1,0}},
    ...     channel_id=1 }''')
    >>> verdict = compare_partition(partitioned_pair(whole, part), "values")
    >>> print(verdict)
    proved at level values
    >>> verdict.note
    'compared by global index: 2 devices execute the program after'
    """
    runs = DeviceRuns(pair, exact_arithmetic and level == "values")
    if level == "numbers":
        shown = _shown_difference(pair, runs, "numbers")
        if isinstance(shown, Differs):
            return shown
        reason = "executions on random inputs agree, which proves nothing"
        return Undecided(reason if shown is None else shown.reason, note=pair.note)
    if level == "counts":
        reads = _by_reads(pair, runs)
        if not isinstance(reads, Proved):
            return reads
        reason = "numbers of reads are not compared by global index"
        return Undecided(reason, level="reads", note=pair.note)
    return _by_reads(pair, runs) if level == "reads" else _by_values(pair, runs, exact_arithmetic)


def _by_values(pair: PartitionedPair, runs: DeviceRuns, exact_arithmetic: bool) -> Verdict:
    results = compare_formulas(pair, exact_arithmetic)
    laws: Counter[str] = Counter()
    for result in results:
        if isinstance(result, EqualFormulas):
            laws.update(result.laws)
    residual = next((each for each in results if isinstance(each, Residual)), None)
    if residual is None:
        return Proved("values", dict(laws), note=pair.note)
    shown = _shown_difference(pair, runs, "values")
    if isinstance(shown, Differs):
        return shown
    reads = _by_reads(pair, runs)
    if isinstance(reads, Differs):
        return reads
    return Undecided(
        residual.reason,
        level=reads.level,
        laws=dict(laws),
        terms=(residual.before, residual.after) if residual.before else None,
        output=results.index(residual),
        note=pair.note,
    )


def _by_reads(pair: PartitionedPair, runs: DeviceRuns) -> Verdict:
    comparison = compare_device_reads(pair)
    fewer: list[FewerReads] = []
    undecided = [reason.reason for reason in comparison.unknown]
    for gap in comparison.gaps:
        answer = _by_influence(pair, runs, gap)
        if isinstance(answer, Differs):
            return answer
        if gap.contained and gap.only_in == "before":
            place = _place(pair, gap.output, gap.element)
            fewer.append(FewerReads(gap.output, place, gap.parameter, gap.parameter_element))
        else:
            undecided.append(answer)
    if undecided:
        shown = _shown_difference(pair, runs, "reads")
        return shown if isinstance(shown, Differs) else Undecided(undecided[0], note=pair.note)
    return Proved("reads", fewer_reads=tuple(fewer), note=_note(pair, comparison))


def _note(pair: PartitionedPair, comparison: Comparison) -> str:
    if not comparison.approximate:
        return pair.note
    total = comparison.approximate + comparison.exact
    count = f"{comparison.approximate} of {total} reads are compared as over-approximations"
    return f"{pair.note}; {count}"


def _by_influence(pair: PartitionedPair, runs: DeviceRuns, gap: Gap) -> Differs | str:
    """Return a difference of reads if executions show it, else what is not confirmed."""
    reason = f"{_where(pair, gap.output, gap.element)} reads {list(gap.parameter_element)} of "
    reason += f"parameter {gap.parameter} only {gap.only_in}"
    leaf, at = gap.parameter, gap.parameter_element
    shown = runs.influence_gap(gap.output, gap.element, leaf, at)
    if isinstance(shown, Unknown):
        return f"{reason}, which is not confirmed: {shown}"
    if shown is None:
        return f"{reason}, without an observed influence"
    return _differs(pair, shown, "reads", reason)


def _shown_difference(
    pair: PartitionedPair, runs: DeviceRuns, level: Level
) -> Differs | Unknown | None:
    """Return an output element at which executions differ, if one is seen."""
    gap = runs.value_gap()
    if not isinstance(gap, ValueGap):
        return gap
    shown = _differs(pair, gap, level)
    if runs.exact:
        return shown
    return judge_difference(shown, gap.inputs, (pair.before, pair.after), _wide_runs)


def _wide_runs(before: Module, after: Module) -> Runs | None:
    """Return executions of both modules in f64; None if a module has no such form."""
    modules = widen_floats(before), widen_floats(after)
    if modules[0] is None or modules[1] is None:
        return None
    pair = partitioned_pair(modules[0], modules[1])
    return DeviceRuns(pair) if isinstance(pair, PartitionedPair) else None


def _differs(pair: PartitionedPair, gap: ValueGap, level: Level, reason: str = "") -> Differs:
    where = _where(pair, gap.output, gap.element)
    reason = reason or f"its value is {gap.before} before and {gap.after} after, at {where}"
    place = _place(pair, gap.output, gap.element)
    values, inputs = (str(gap.before), str(gap.after)), gap.inputs.devices[:1]
    return Differs(gap.output, place, reason, level, *values, note=pair.note, inputs=inputs)


def _place(pair: PartitionedPair, output: int, element: Sequence[int]) -> tuple[int, ...]:
    """Return the global index of an element, given by device and local index."""
    device, *local = element
    return pair.outputs[output].place(device, tuple(local))


def _where(pair: PartitionedPair, output: int, element: Sequence[int]) -> str:
    device, *local = element
    return f"element {local} of device {device}"

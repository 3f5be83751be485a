"""`equivalent`: whether two programs are the same, at a level, with a proof or a witness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Final

from hlo.arguments import checked
from hlo.modules.compare import Facet, difference
from hlo.modules.module import Computation, Instruction, Module
from indexing.devices.devices import Devices
from indexing.equivalence.counts import compare_counts
from indexing.equivalence.effects import effect_difference
from indexing.equivalence.pairing import OtherOutputs, Pair, Program, pair_of, root_of
from indexing.equivalence.partitioned.levels import compare_partition
from indexing.equivalence.partitioned.pairing import PartitionedPair, partitioned_pair
from indexing.equivalence.reads import Comparison, compare_reads
from indexing.equivalence.runs import Runs
from indexing.equivalence.values.engine import ValueComparison
from indexing.equivalence.values.results import EqualFormulas, Residual, ValueResult
from indexing.equivalence.verdicts import Differs, FewerReads, Level, Proved, Undecided, Verdict
from indexing.equivalence.witnesses import by_influence, by_rounding, by_values
from indexing.execution import xla
from indexing.maps.answers import Unknown

NO_MEANING: Final[tuple[Facet, ...]] = (
    *("names", "order", "metadata", "hints", "control-predecessors"),
)
"""Facets of a module that do not change what it computes."""

_ELIDED: Final = "..."

MAX_READS_WORK: Final = 500_000
"""Limit on the outputs times the instructions of programs whose reads are compared because their
formulas are not proved equal."""


@checked
def equivalent(
    before: Module | Computation | Instruction,
    after: Module | Computation | Instruction,
    level: Level = "values",
    *,
    parameters: Mapping[int, int] | None = None,
    exact_arithmetic: bool = False,
) -> Verdict:
    """Compare two programs, such as a module before and after a compiler pass.

    Outputs are compared by leaf: a result ``(x)`` corresponds to a result ``x``.  If `after` is the
    program of one of several devices and `before` a global program, they are compared by global
    index: that of an element on a device is the offset of the device's shard plus its local index.

    Args:
        before, after: modules (their entry computations), computations or instructions.
        level: what is compared:

            * ``"reads"``: the parameter elements that each output element reads;
            * ``"counts"``: the same, with the number of reads of each element along all paths;
            * ``"values"``: the formula of each output element;
            * ``"numbers"``: the outputs of executions on several inputs, which prove nothing.
        parameters: for each parameter number of `before`, the number of `after`; by default, equal
            numbers.
        exact_arithmetic: do not use laws that hold only for real numbers, such as
            ``x / c = x * (1 / c)``.
    Returns:
        `Proved`, the only truthy verdict; `Differs`, with an output element at which executions of
        both programs differ, or an output of another shape; or `Undecided`, with the reason and the
        strongest level that is proved nevertheless.
    Raises:
        HloError: an instruction is invalid.

    >>> import hlo
    >>> text = "ENTRY e { p = f32[8] parameter(0)  ROOT s = f32[3] slice(p), slice={[%s]} }"
    >>> one, other = hlo.parse(text % "0:3"), hlo.parse(text % "1:4")
    >>> bool(equivalent(one, one)), bool(equivalent(one, other))
    (True, False)
    >>> print(equivalent(one, other, level="reads"))
    output 0 differs at [2]: parameter 0 is read at [3] only after
    """
    formulas = ValueComparison(exact_arithmetic=exact_arithmetic)
    return compare_programs(before, after, level, formulas, parameters or {})


def compare_programs(
    before: Program,
    after: Program,
    level: Level,
    formulas: ValueComparison,
    parameters: Mapping[int, int],
) -> Verdict:
    """Return the verdict of `equivalent`.

    Args:
        formulas: the comparisons of formulas so far.
    """
    is_identity = all(number == other for number, other in parameters.items())
    if is_identity and is_structurally_equal(before, after):
        return Proved(level)
    partition = partitioned_pair(before, after, parameters)
    if isinstance(partition, PartitionedPair):
        return compare_partition(partition, level, formulas.exact_arithmetic)
    pair = pair_of(before, after, parameters) if partition is None else partition
    if isinstance(pair, OtherOutputs) and not _run_on_devices(before, after):
        return Differs(pair.output, (), pair.reason, level)
    if isinstance(pair, Unknown):
        return Undecided(pair.reason, pair.instruction)
    if level == "reads":
        return _by_reads(pair, Runs(pair))
    if level == "counts":
        return _by_counts(pair)
    if level == "numbers":
        return _by_numbers(pair)
    return _by_values(pair, formulas, parameters)


def _run_on_devices(*programs: Program) -> bool:
    """Return True if a program may be that of one of several devices, with shards as outputs."""
    modules = [root_of(program).computation.module for program in programs]
    return any(Devices.of(module).count > 1 for module in modules)


def is_structurally_equal(before: Program, after: Program) -> bool:
    """Return True for modules that are equal up to names, order and hints to the compiler.

    The values of elided constants are unknown: they may differ.
    """
    if before is after:
        return True
    if not isinstance(before, Module) or not isinstance(after, Module):
        return False
    return difference(before, after, NO_MEANING) is None and not any(
        i.opcode == "constant" and _ELIDED in (i.literal_text or "") for i in before.instructions
    )


# ---------------------------------------------------------------- levels


def _by_reads(pair: Pair, runs: Runs, equal: Container[int] = ()) -> Verdict:
    """Return the verdict at level reads; outputs with equal formulas need no comparison."""
    outputs = [number for number in range(len(pair.before.outputs)) if number not in equal]
    comparison = compare_reads(pair, outputs)
    fewer: list[FewerReads] = []
    undecided: list[str] = [reason.reason for reason in comparison.unknown]
    for gap in comparison.gaps:
        answer = by_influence(pair, runs, gap)
        if isinstance(answer, Differs):
            return answer
        if gap.contained and gap.only_in == "before":
            fewer.append(FewerReads(gap.output, gap.element, gap.parameter, gap.parameter_element))
        else:
            undecided.append(answer.reason)
    if undecided:
        witness = by_values(pair, runs, "reads") if comparison.unknown else None
        return witness if isinstance(witness, Differs) else Undecided(undecided[0])
    return Proved("reads", fewer_reads=tuple(fewer), note=_note(comparison))


def _by_counts(pair: Pair) -> Verdict:
    reads = _by_reads(pair, Runs(pair))
    if not isinstance(reads, Proved):
        return reads
    gap = compare_counts(pair)
    if gap is None:
        return Proved("counts")
    return Undecided(gap.reason, gap.instruction, level="reads")


def _note(comparison: Comparison) -> str:
    if not comparison.approximate:
        return ""
    total = comparison.approximate + comparison.exact
    return f"{comparison.approximate} of {total} reads are compared as over-approximations"


def _by_numbers(pair: Pair) -> Verdict:
    for use_xla in (False, True) if xla.is_available() else (False,):
        answer = by_values(pair, Runs(pair, use_xla), "numbers")
        if isinstance(answer, Differs):
            return answer
        if isinstance(answer, Unknown) and not use_xla:
            return Undecided(answer.reason, answer.instruction)
    return Undecided("executions on random inputs agree, which proves nothing")


def _by_values(pair: Pair, formulas: ValueComparison, parameters: Mapping[int, int]) -> Verdict:
    numbers = {after: before for before, after in parameters.items()}
    results = formulas.results(pair.before.arrays, pair.after.arrays, numbers)
    laws = _laws_of(results)
    residual = next((each for each in results if isinstance(each, Residual)), None)
    if residual is None:
        return _by_effects(pair, numbers, dict(laws))
    is_complete = len(results) == len(pair.before.outputs)
    equal = tuple([k for k, result in enumerate(results) if result]) if is_complete else ()
    runs = Runs(pair)
    reads = _by_weaker_reads(pair, runs, equal)
    if isinstance(reads, Differs):
        return replace(reads, equal_outputs=equal)
    exact_runs = Runs(pair, exact=True) if formulas.exact_arithmetic else runs
    witness = _value_witness(pair, exact_runs, residual)
    if isinstance(witness, Differs):
        return replace(witness, equal_outputs=equal)
    return Undecided(
        f"{residual.reason}{_AGREEMENT[witness is None]}",
        level=reads.level,
        laws=dict(laws),
        terms=(residual.before, residual.after) if residual.before else None,
        output=results.index(residual) if is_complete else None,
        equal_outputs=equal,
        note=f"level reads: {reads.reason}" if isinstance(reads, Undecided) else "",
    )


def _laws_of(results: Iterable[ValueResult]) -> Counter[str]:
    """Return the uses of laws by the outputs that are proved."""
    return sum([Counter(r.laws) for r in results if isinstance(r, EqualFormulas)], Counter[str]())


def _value_witness(pair: Pair, runs: Runs, residual: Residual) -> Differs | Unknown | None:
    """Return an output element whose values differ, if an execution shows one."""
    witness = by_values(pair, runs, "values")
    if witness is None and residual.in_the_reals is not None:
        return by_rounding(pair)
    return witness


def _by_effects(pair: Pair, numbers: Mapping[int, int], laws: Mapping[str, int]) -> Verdict:
    """Return the verdict on programs of equal outputs, whose side effects are compared.

    Args:
        laws: the laws by which the outputs are equal.
    """
    are_programs = pair.before.root.is_root and pair.after.root.is_root
    computations = pair.before.computation, pair.after.computation
    unknown = effect_difference(*computations, numbers) if are_programs else None
    if unknown is None:
        return Proved("values", laws)
    every = tuple(range(len(pair.before.outputs)))
    level = _by_weaker_reads(pair, Runs(pair), ()).level
    return Undecided(unknown.reason, unknown.instruction, level=level, equal_outputs=every)


_AGREEMENT: Final = ("", "; executions agree")


def _by_weaker_reads(pair: Pair, runs: Runs, equal: Container[int]) -> Verdict:
    """Return the verdict at level reads for programs with formulas that are not proved equal."""
    count = sum(number not in equal for number in range(len(pair.before.outputs)))
    modules = {side.computation.module for side in (pair.before, pair.after)}
    size = sum(len(c) for module in modules for c in module.computations.values())
    if count * size > MAX_READS_WORK:
        limit = f"budget of {MAX_READS_WORK:,} outputs times instructions"
        return Undecided(f"not compared: {limit}")
    return _by_reads(pair, runs, equal)

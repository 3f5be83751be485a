"""Compare the maps of programs with masks, constants and runtime values with executions.

    python -m benchmarks.masks [--only NAME] [--kind KIND] [--form FORM] [--count N] [--list]
    python -m benchmarks.masks --write

Each program of `benchmarks.mask_programs` is analysed as JAX lowers it and as XLA:CPU optimises it.
XLA:CPU executes it with every element of every argument changed in turn: to extreme numbers,
infinities, NaN, zeros and neighbours, around several random arguments.  An element is *needed* if
a change of it changes an element of the output.  The lowered form is executed without XLA's
algebraic simplifier, which replaces ``x * 0`` and products with predicates.

A pair is an output and an argument, for any values of the arguments that are runtime values, or
for given values.  Its verdict is the first that holds:

* unknown: the answer is unknown;
* unsound: the maps lack an element that is needed;
* over-claimed: exact maps have an element that is never needed;
* tight: exact maps have all needed elements, and no map has others;
* fallback: maps of grade `may` have all elements; may: they have some that are not needed.

``--write`` writes the HLO files of the programs that the tests read.  The last columns count

* at: pairs of which `Answer.at`, asked about some elements with the given values by name, has other
  elements than the maps, or refuses the names;
* tiles: of attention, the tiles of queries and blocks of keys of which no key is needed, and how
  many of them `Answer.at` leaves out;
* elements: elements of the outputs, for each argument, and of how many the maps are tight.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import numpy as np

import hlo
import indexing
from benchmarks import mask_arithmetic, mask_attention, mask_indices, mask_scans
from benchmarks.jax_loops import text
from benchmarks.mask_programs import PROGRAMS, Array, Program, Values
from benchmarks.mask_truth import Executions, Needed
from hlo import Module, Shape
from hlo.shapes.shape import leaves
from indexing import IndexingMap
from indexing.dataflow.valued_maps import with_values
from indexing.maps.answers import Answer
from tests.dataflow.influence import Mask, mask_of
from tests.dataflow.programs import Run

GROUPS: Final = (mask_attention, mask_arithmetic, mask_indices, mask_scans)
"""The modules with programs."""
FOLDER: Final = Path(__file__).parent.parent / "tests" / "dataflow" / "data" / "masks"
TESTED: Final = (
    *("causal_tril", "causal_least", "sliding_window", "block_sparse", "padding_by_lengths"),
    *("causal_segments", "cache_update_and_attend", "cache_set", "slice_of_block", "index_two"),
    *("one_hot_of_floats", "take_constants", "set_at_constants", "associative_sum", "mapped_rows"),
    *("scan_with_length", "scan_with_resets", "where_between", "where_truncated", "where_wraps"),
    *("cache_batch_positions", "times_predicate"),
)
"""The programs whose HLO files the tests read."""
FORMS: Final = ("lowered", "optimized")
VERDICTS: Final = ("unsound", "over-claimed", "fallback", "may", "unknown", "tight")
MAX_GRID: Final = 1 << 20
"""Limit on the points of a map with runtime variables that are enumerated."""
ASKED: Final = 3
"""Number of elements of an output that `Answer.at` is asked about."""


# ---------------------------------------------------------------- maps


@dataclass(frozen=True)
class Question:
    """An output and an argument of a program.

    Attributes:
        values: the values of the runtime arguments; `None` for any values.
        at: an execution with these values.
    """

    answer: Answer
    number: int
    values: Mapping[str, Array] | None = None
    at: Run | None = None

    @property
    def maps(self) -> tuple[IndexingMap, ...]:
        return self.answer.maps[self.number]

    @property
    def spaces(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The sizes of the output and of the argument."""
        output = leaves(self.answer.instruction.shape)[self.answer.domain_id][1]
        argument = self.answer.operands[self.number].shape
        assert isinstance(output, Shape)
        assert isinstance(argument, Shape)
        return output.dims, argument.dims

    def claimed(self, *grades: str) -> Mask:
        """Return the pairs that the maps of some grades relate."""
        mask = np.zeros([prod(dims) for dims in self.spaces], bool)
        for each in self.maps:
            if each.grade in grades:
                mask |= self._related_pairs(each)
        return mask

    def _related_pairs(self, each: IndexingMap) -> Mask:
        variables = [*each.dims, *each.ranges, *[rt.variable for rt in each.runtime]]
        if self.at is None and each.runtime:
            if prod(min(121, v.upper - v.lower + 1) for v in variables) > MAX_GRID:
                return self._regions(each)
        return mask_of(each, self.spaces, self.at, widened=True)

    def _regions(self, each: IndexingMap) -> Mask:
        rows = []
        for point in np.ndindex(self.spaces[0]):
            inside = all(v.lower <= k <= v.upper for v, k in zip(each.dims, point, strict=True))
            rows.append(self._mask(each.at(*point) if inside else None).ravel())
        return np.reshape(rows, [prod(dims) for dims in self.spaces])

    def _mask(self, region: Any) -> Mask:
        """Return the elements of a region as a mask; all elements if they are unknown."""
        mask = np.zeros(self.spaces[1], bool)
        if region is not None:
            elements = region.elements() if isinstance(region, indexing.Region) else None
            if not isinstance(elements, np.ndarray):
                mask[...] = True
            elif len(elements):
                mask[tuple(elements.T)] = True
        return mask

    def region(self, *point: int | slice) -> Mask | TypeError:
        """Return the elements that `Answer.at` has, with the given values by name."""
        try:
            return self._mask(self.answer.at(*point, **(self.values or {}))[self.number])
        except TypeError as error:
            return error

    def wrong_region(self, claimed: Mask) -> str:
        """Return an element of which `Answer.at` has other elements than the maps, or ""."""
        for row in sorted({k * (len(claimed) - 1) // (ASKED - 1) for k in range(ASKED)}):
            point = index_of(row, self.spaces[0])
            seen = self.region(*point)
            if isinstance(seen, TypeError):
                return f"at{point}: {seen}"
            if not np.array_equal(seen.ravel(), claimed[row]):
                return f"at{point}: {seen.sum()} elements, by the maps {claimed[row].sum()}"
        return ""


@dataclass(frozen=True)
class Finding:
    """The verdict on a pair.

    Attributes:
        example: an element of the output and an element of the argument that show it.
        at: an element of which `Answer.at` has other elements than the maps, or "".
        tight: the number of elements of the output of which the maps are tight.
        size: the number of elements of the output.
    """

    question: Question
    verdict: str
    example: str
    at: str
    tight: int
    size: int


def finding(question: Question, needed: Mask) -> Finding:
    """Compare the maps with the needed elements."""
    unknown = question.answer.unknown[question.number]
    if unknown is not None:
        return Finding(question, "unknown", str(unknown), "", 0, len(needed))
    exact, every = question.claimed("exact"), question.claimed("exact", "may")
    is_tight = np.all((exact == needed) & (every == needed), axis=1)
    verdict, mask = "tight", every & False
    if (needed & ~every).any():
        verdict, mask = "unsound", needed & ~every
    elif (exact & ~needed).any():
        verdict, mask = "over-claimed", exact & ~needed
    elif not is_tight.all():
        verdict, mask = "may", (every & ~needed) | (needed & ~exact)
        if every.all() and not needed.all():
            verdict = "fallback"
    shown = example(mask, question.spaces) if mask.any() else ""
    at = question.wrong_region(every)
    return Finding(question, verdict, shown, at, int(is_tight.sum()), len(needed))


def example(mask: Mask, spaces: Sequence[tuple[int, ...]]) -> str:
    """Return the first pair of a mask, and the number of all."""
    output, argument = map(index_of, np.argwhere(mask)[0], spaces)
    return f"{list(output)} and {list(argument)}, {mask.sum()} of {mask.size}"


def index_of(position: int, dims: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index of an element."""
    return tuple(map(int, np.unravel_index(position, dims))) if dims else ()


# ---------------------------------------------------------------- programs


@dataclass
class Report:
    """The findings about a program in one of its forms.

    Attributes:
        tiles: pairs of a tile of queries and a block of keys that need nothing of each other.
        left_out: the number of those that the maps leave out.
        failures: the reasons why questions were not asked.
    """

    program: Program
    form: str
    findings: list[Finding] = field(default_factory=list)
    tiles: int = 0
    left_out: int = 0
    failures: list[str] = field(default_factory=list)


def report(program: Program, form: str) -> Report:
    """Compare the maps of a program with executions, for any and for given runtime values."""
    result = Report(program, form)
    executions = Executions(program, form)
    module = indexing.from_jax(program.function, *program.arguments, stage=form)
    outputs = len(leaves(module.entry.root.shape))
    answers = [indexing.to_parameters(module.entry.root, number) for number in range(outputs)]
    needed = executions.needed(list(program.bases()))
    _judge(result, answers, needed, None, None)
    for values in program.bound:
        bases = [program.base(seed, values) for seed in range(4)]
        needed = executions.needed(bases, fixed=program.runtime)
        try:
            at = run_of(module, bases[0])
        except (hlo.HloError, AssertionError) as error:
            result.failures.append(f"not executed: {error!r}")
        else:
            given = [with_values(answer, values) for answer in answers]
            _judge(result, given, needed, values, at)
    return result


def _judge(
    result: Report,
    answers: Sequence[Answer],
    needed: Needed,
    values: Values | None,
    at: Run | None,
) -> None:
    program = result.program
    for answer in answers:
        before = len(answer.operands) - len(program.names)  # XLA's own parameters
        for k, name in enumerate(program.names):
            if values is None or name not in program.runtime:
                question, mask = (
                    Question(answer, before + k, values, at),
                    needed[answer.domain_id, k],
                )
                try:
                    result.findings.append(finding(question, mask))
                except AssertionError as error:  # an index out of bounds
                    result.failures.append(f"{name} for {values}: {error!r}")
                if program.tiles and name == program.tiles.name and not answer.domain_id:
                    _count_tiles(result, question, mask)


def run_of(module: Module, arguments: Sequence[Array]) -> Run:
    """Return an execution with the value of each instruction."""
    before = len(module.entry.parameters) - len(arguments)
    with np.errstate(all="ignore"):
        return Run(module.entry, *[np.zeros(0)] * before, *arguments)


def _count_tiles(result: Report, question: Question, needed: Mask) -> None:
    """Count the blocks of keys that no query of a tile needs, and those that `at` leaves out."""
    tiles = result.program.tiles
    assert tiles
    output, argument = question.spaces
    array = needed.reshape(*output, *argument)
    array = np.moveaxis(array, (tiles.queries, len(output) + tiles.keys), (0, 1))
    for row in range(0, array.shape[0], tiles.size):
        point = [slice(0, size) for size in output]
        point[tiles.queries] = slice(row, row + tiles.size)
        read = question.region(*point)
        for column in range(0, array.shape[1], tiles.size):
            keys = slice(column, column + tiles.size)
            if not array[row : row + tiles.size, keys].any():
                result.tiles += 1
                if not isinstance(read, TypeError):
                    result.left_out += not np.moveaxis(read, tiles.keys, 0)[keys].any()


# ---------------------------------------------------------------- the table


def table(reports: Sequence[Report]) -> Iterator[str]:
    """Yield the lines of the table: a row for each kind and form, and the totals."""
    head = f"{'kind':12} {'form':9} programs pairs {' '.join(VERDICTS)}  at   tiles"
    yield f"{head}       elements"
    groups: dict[tuple[str, str], list[Report]] = {}
    for each in sorted(reports, key=lambda r: (r.program.kind, r.form)):
        groups.setdefault((each.program.kind, each.form), []).append(each)
    for form in FORMS:
        groups[("all", form)] = [each for each in reports if each.form == form]
    groups[("all", "both")] = list(reports)
    for (kind, form), members in groups.items():
        if members:
            findings = [each for member in members for each in member.findings]
            counts = Counter(each.verdict for each in findings)
            columns = [f"{counts[verdict]:{len(verdict)}}" for verdict in VERDICTS]
            wrong = sum(bool(each.at) for each in findings)
            tiles = f"{sum(m.left_out for m in members)}/{sum(m.tiles for m in members)}"
            elements = f"{sum(f.tight for f in findings)}/{sum(f.size for f in findings)}"
            yield (
                f"{kind:12} {form:9} {len(members):8} {len(findings):5} {' '.join(columns)} "
                f"{wrong:3} {tiles:>7} {elements:>14}"
            )
    programs: dict[str, set[str]] = {}
    for each in reports:
        programs.setdefault(each.program.name, set()).update([f.verdict for f in each.findings])
    tight = sum(verdicts == {"tight"} for verdicts in programs.values())
    failures = sum(len(each.failures) for each in reports)
    yield f"{tight} of {len(programs)} programs are tight in all forms; {failures} failures"


def details(each: Report) -> Iterator[str]:
    """Yield a line for each finding that is not tight."""
    for one in each.findings:
        question = one.question
        values = {name: v.tolist() for name, v in (question.values or {}).items()}
        name = question.answer.operands[question.number].name
        pair = f"output {question.answer.domain_id} and {name}"
        given = f" for {values}" if question.values else ""
        if one.verdict != "tight":
            yield f"  {one.verdict}: {pair}{given}: {one.example}"
        if one.at:
            yield f"  at: {pair}{given}: {one.at}"
    yield from [f"  {failure}" for failure in each.failures]


def write() -> None:
    """Write the HLO files that the tests read."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in TESTED:
        for form in FORMS:
            own = PROGRAMS[name]
            (FOLDER / f"{name}.{form}.hlo").write_text(text(own.function, own.arguments, form))


def main() -> None:
    """Print the table, or write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="the programs whose names have this text")
    parser.add_argument("--kind", default="", help="the programs of one kind")
    parser.add_argument("--form", choices=FORMS, help="lowered or optimized; by default both")
    parser.add_argument("--count", type=int, default=1 << 30, help="the first programs alone")
    parser.add_argument("--list", action="store_true", help="print what is not tight")
    parser.add_argument("--write", action="store_true", help="write the files of the tests")
    given = parser.parse_args()
    if given.write:
        write()
        return
    start = perf_counter()
    chosen = [
        each
        for each in PROGRAMS.values()
        if given.only in each.name and given.kind in ("", each.kind)
    ][: given.count]
    reports = []
    for each in chosen:
        for form in [given.form] if given.form else FORMS:
            began = perf_counter()
            reports.append(report(each, form))
            lines = list(details(reports[-1])) if given.list else []
            if lines:
                print(f"{each.name}, {form}, {perf_counter() - began:.1f} s", *lines, sep="\n")
    print(*table(reports), sep="\n")
    print(f"{perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()

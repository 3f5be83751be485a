"""Level ``reads``: the elements that each output element reads, compared as relations.

For each pair of output and parameter, the union of the maps before is compared with the union of
the maps after, so it does not matter into how many maps a program's reads are divided.  Runtime
variables are the same if their formulas are (`sources`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from indexing.dataflow import answering
from indexing.dataflow.queries import walk_of
from indexing.equivalence.pairing import Leaf, Pair, Side
from indexing.equivalence.sources import Sources
from indexing.equivalence.verdicts import ElementIndex
from indexing.maps.answers import Answer, Unknown
from indexing.maps.equality import difference
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.relation import as_relation
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable
from simplifier.exact import unions
from simplifier.linear import Expr
from simplifier.substitute import Substitution

Maps: TypeAlias = tuple[IndexingMap, ...]


@dataclass(frozen=True, slots=True)
class Gap:
    """An element that only one of the programs reads, by its maps.

    Attributes:
        output: number of the output leaf.
        parameter: number of the parameter leaf.
        element: index of the output element.
        parameter_element: index of the element that is read.
        only_in: the program that reads it.
        contained: the other program reads nothing that this program does not.
    """

    output: int
    parameter: int
    element: ElementIndex
    parameter_element: ElementIndex
    only_in: Literal["before", "after"]
    contained: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of all pairs of output and parameter.

    Attributes:
        gaps: pairs with different reads.
        unknown: reasons why pairs are undecided.
        approximate: number of pairs that are equal as over-approximations only.
        exact: number of pairs with equal exact reads.
    """

    gaps: tuple[Gap, ...]
    unknown: tuple[Unknown, ...]
    approximate: int
    exact: int


class ProgramReads:
    """The maps from the outputs of one program to its parameter leaves."""

    def __init__(self, side: Side, sources: Sources) -> None:
        self.side, self.sources = side, sources
        self.walk = walk_of(exact=True)

    def answer(self, output: int) -> Answer:
        """Return the maps of one output leaf, by position."""
        number = self.side.outputs[output]
        root = self.side.root
        return root.module.memoised(
            (ProgramReads, root, number), lambda: answering.to_parameters(self.walk, root, number)
        )

    def maps(self, output: int) -> list[IndexingMap]:
        """Return the maps of one output leaf to all parameters, with their own sources."""
        return [m for maps in self.answer(output).maps for m in maps]

    def by_input(self, output: int) -> dict[Leaf, Maps | Unknown]:
        """Return the maps to each parameter leaf; runtime variables have names of formulas."""
        answer = self.answer(output)
        maps: dict[Leaf, Maps | Unknown] = dict.fromkeys(self.side.inputs, ())
        for k, parameter in enumerate(answer.operands):
            unknown = answer.unknown[k]
            for leaf in maps:
                if leaf[0] is parameter:
                    paths = zip(answer.maps[k], answer.paths[k], strict=True)
                    own = [self._name_sources(m) for m, path in paths if path == leaf[1]]
                    kept = [m for m in own if not m.is_known_empty]
                    maps[leaf] = tuple(kept) if unknown is None else unknown
        return maps

    def _name_sources(self, m: IndexingMap) -> IndexingMap:
        if not m.runtime:
            return m
        return _merge_runtime(m, [self.sources.name_source(rt) for rt in m.runtime])


def compare_reads(pair: Pair, outputs: Iterable[int] | None = None) -> Comparison:
    """Compare the reads of outputs and parameters of two programs.

    Args:
        outputs: numbers of the output leaves; None for all.
    """
    sources = Sources()
    reads_before, reads_after = (
        ProgramReads(pair.before, sources),
        ProgramReads(pair.after, sources),
    )
    gaps: list[Gap] = []
    reasons: list[Unknown] = []
    approximate = exact = 0
    for output in range(len(pair.before.outputs)) if outputs is None else outputs:
        before, after = reads_before.by_input(output), reads_after.by_input(output)
        for number, leaves in enumerate(zip(pair.before.inputs, pair.after.inputs, strict=True)):
            maps = before[leaves[0]], after[leaves[1]]
            answer = compared_maps(*maps, output, number)
            if isinstance(answer, Unknown) and sources.learn(
                reads_before.maps(output), reads_after.maps(output)
            ):
                before, after = reads_before.by_input(output), reads_after.by_input(output)
                maps = before[leaves[0]], after[leaves[1]]
                answer = compared_maps(*maps, output, number)
            if isinstance(answer, Unknown):
                reasons.append(answer)
            elif answer is not None:
                gaps.append(answer)
            elif are_exact(maps):
                exact += 1
            else:
                approximate += 1
    return Comparison(tuple(gaps), tuple(reasons), approximate, exact)


def _merge_runtime(m: IndexingMap, runtime: Sequence[RuntimeVariable]) -> IndexingMap:
    """Return a map with these runtime variables; those of one element become one variable."""
    groups: dict[Hashable, list[RuntimeVariable]] = {}
    for k, rt in enumerate(runtime):
        key = (rt.array, rt.index, rt.clamp) if rt.array is not None else k
        groups.setdefault(key, []).append(rt)
    if len(groups) == len(runtime):
        return replace(m, runtime=tuple(runtime))
    kept: list[RuntimeVariable] = []
    values: dict[Variable, Expr] = {}
    for first, *others in groups.values():
        bounds = [rt.variable.bounds for rt in (first, *others)]
        lower, upper = max(low for low, _ in bounds), min(high for _, high in bounds)
        if lower > upper:
            return IndexingMap.empty(m.dims, len(m.results))
        variable = Variable(first.name, lower, upper)
        kept.append(replace(first, variable=variable))
        values.update({rt.variable: variable.as_expr() for rt in (first, *others)})
    results, constraints = m.substituted(values)
    swap = Substitution(values)
    one_each = tuple([replace(rt, index=tuple(map(swap, rt.index))) for rt in kept])
    merged = replace(m, runtime=one_each, results=tuple(results), constraints=tuple(constraints))
    return merged.simplify()


def are_exact(sides: Iterable[Maps | Unknown]) -> bool:
    """Return True if all maps are exact."""
    return all(m.grade == "exact" for maps in sides for m in _maps_or_none(maps))


def _maps_or_none(maps: Maps | Unknown) -> Maps:
    return () if isinstance(maps, Unknown) else maps


def compared_maps(
    before: Maps | Unknown, after: Maps | Unknown, output: int, parameter: int
) -> Gap | Unknown | None:
    """Return an element that only one program reads of a parameter, or why it is not known."""
    where = f"output {output}, parameter {parameter}"
    if isinstance(before, Unknown):
        return Unknown(f"{where}, before: {before}", before.instruction)
    if isinstance(after, Unknown):
        return Unknown(f"{where}, after: {after}", after.instruction)
    mine, theirs = _without_common(before, after)
    if not mine and not theirs:
        return None
    dynamic = _dynamic(mine), _dynamic(theirs)
    if not _are_paired(*dynamic):
        return Unknown(f"{where}: {_runtime_reason(*dynamic)}")
    gap = _gap(_static(before), _static(after), output, parameter)
    if isinstance(gap, Gap) and any(m.runtime or m.grade == "may" for m in (*before, *after)):
        at = f"{list(gap.element)} reads {list(gap.parameter_element)} only {gap.only_in}"
        return Unknown(f"{where}: {at}, but the reads are over-approximated")
    return gap


def _static(maps: Sequence[IndexingMap]) -> Maps:
    return tuple([m for m in maps if not m.runtime])


def _dynamic(maps: Sequence[IndexingMap]) -> Maps:
    return tuple([m for m in maps if m.runtime])


def _without_common(before: Maps, after: Maps) -> tuple[list[IndexingMap], list[IndexingMap]]:
    """Return the maps that the other program does not have in the same form."""
    remaining = list(after)
    own: list[IndexingMap] = []
    for m in before:
        if m in remaining:
            remaining.remove(m)
        else:
            own.append(m)
    return own, remaining


def _are_paired(before: Sequence[IndexingMap], after: Sequence[IndexingMap]) -> bool:
    """Return True if each map has an equal one in the other program."""
    return all(
        any(_is_equal(m, other) for other in others)
        for maps, others in ((before, after), (after, before))
        for m in maps
    )


def _is_equal(one: IndexingMap, other: IndexingMap) -> bool:
    return difference(one, other) is None


def _runtime_reason(before: Sequence[IndexingMap], after: Sequence[IndexingMap]) -> str:
    names = [
        sorted({str(rt.source_name) for m in maps for rt in m.runtime}) for maps in (before, after)
    ]
    if names[0] != names[1]:
        return "the runtime indices are different formulas of the parameters"
    return "the maps with runtime variables do not correspond one to one"


def _gap(before: Maps, after: Maps, output: int, parameter: int) -> Gap | Unknown | None:
    """Return an element that only one program reads, from maps without runtime variables."""
    only = [_only_first(*sides) for sides in ((before, after), (after, before))]
    for answer in only:
        if isinstance(answer, Unknown):
            return answer
    missing, extra = only
    point = extra if extra is not None else missing
    if point is None or isinstance(point, Unknown):
        return point
    rank = len((before or after)[0].dims)
    return Gap(
        output,
        parameter,
        point[:rank],
        point[rank:],
        "before" if extra is None else "after",
        contained=extra is None,
    )


def _only_first(first: Maps, second: Maps) -> ElementIndex | Unknown | None:
    if not first:
        return None
    second = second or (IndexingMap.empty(first[0].dims, len(first[0].results)),)
    return unions.only_first(list(map(as_relation, first)), list(map(as_relation, second)))

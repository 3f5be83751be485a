"""The outputs that a tile of an operand finishes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from indexing.dataflow.queries import input_to_output
from indexing.maps.answers import Answer
from indexing.maps.given_values import by_value_name
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.regions.answers import RegionBounds, bounds_at
from indexing.maps.regions.boxes import TooManyBoxes, boxes_of_elements, subtract_boxes
from indexing.maps.regions.region import Region
from indexing.maps.regions.runtime_values import name_apart
from simplifier.unknown import UndecidedError, Unknown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def finished_regions(
    answer: Answer,
    dims: Sequence[int],
    part: Sequence[slice],
    values: Mapping[str, ArrayLike],
) -> tuple[Region | Unknown, ...]:
    """Return, for each output, the elements that read `part`, and no other part of the operand.

    They are between the elements that certainly read `part` and possibly nothing else, and those
    that possibly read `part` and certainly nothing else.  If these are equal, the region is exact;
    otherwise it is the former: an under-approximation.

    Args:
        answer: the maps from the operand to the outputs.
        dims: the dimensions of the operand.
        part: a slice for each dimension.
        values: values of runtime variables.
    """
    own = bounds_at(answer, part, values)
    others = [bounds_at(answer, other, values) for other in _complement(dims, part)]
    return tuple(
        [_finished_region(mine, [each[k] for each in others]) for k, mine in enumerate(own)]
    )


def exact_answer(answer: Answer) -> Answer:
    """Return the answer with exact maps, in pieces, for maps of the grade "may" where they exist.

    Args:
        answer: the maps from an operand to the outputs.
    """
    if all(m.grade == "exact" for own in answer.maps for m in own):
        return answer
    return input_to_output(answer.instruction, answer.domain_id, exact=True)


def values_in(
    pieces: Answer, answer: Answer, values: Mapping[str, ArrayLike]
) -> dict[str, ArrayLike]:
    """Return values by names of an answer, by the names of its `exact_answer`.

    Maps number their runtime variables each from 0, so these values are named after their sources.

    Raises:
        TypeError: a value is that of a range variable.
    """
    maps = [m for own in (*answer.maps, *pieces.maps) for m in own]
    ranges = {v.name for m in maps for v in m.ranges}
    names, named = _runtime_names(answer), _runtime_names(pieces)
    given: dict[str, ArrayLike] = {}
    for name, value in by_value_name(maps, values).items():
        if name in ranges:
            raise TypeError(
                f"{name} is a range variable: an output is finished if it reads nothing else by "
                "any value of it; pass values of runtime variables only"
            )
        source = names.get(name, name)
        if source in named or name not in names:  # other pieces do not depend on it
            given[source] = value
    return given


def _runtime_names(answer: Answer) -> dict[str, str]:
    """The names of runtime variables and of their sources, each with that of the source."""
    names: dict[str, str] = {}
    for rt in [rt for own in answer.maps for m in own for rt in m.runtime]:
        source = rt.name if rt.source is None else rt.value_name
        names |= {rt.name: source, source: source}
    return names


def _finished_region(
    own: RegionBounds | Unknown, others: Sequence[RegionBounds | Unknown]
) -> Region | Unknown:
    known: list[RegionBounds] = []
    for bounds in (own, *others):
        if isinstance(bounds, Unknown):
            return bounds
        known.append(bounds)
    mine, *rest = known
    least = _without(mine.least, [other.most for other in rest])
    most = _without(mine.most, [other.least for other in rest])
    if isinstance(least, Unknown) or (isinstance(most, Region) and _are_equal(least, most)):
        return least
    runtime = name_apart([rt for each in known for rt in each.most.runtime])
    return replace(least, grade="may", side="under", runtime=runtime)


def _without(region: Region, others: Sequence[Region]) -> Region | Unknown:
    """The elements of a region outside of all others."""
    rest: Region | Unknown = region
    for other in others:
        rest = rest if isinstance(rest, Unknown) else _difference(rest, other)
    return rest


def _are_equal(least: Region, most: Region) -> bool:
    try:
        return least == most
    except UndecidedError:
        return False


def _complement(dims: Sequence[int], part: Sequence[slice]) -> Iterator[tuple[slice, ...]]:
    """Yield disjoint boxes with the elements of an array outside of `part`."""
    for k, (n, own) in enumerate(zip(dims, part, strict=True)):
        rest = [slice(0, n) for n in dims[k + 1 :]]
        for start, stop in ((0, own.start), (own.stop, n)):
            if start < stop:
                yield (*part[:k], slice(start, stop), *rest)


def _difference(first: Region, second: Region) -> Region | Unknown:
    """The elements of the first region outside of the second."""
    mine, theirs = first.boxes(), second.boxes()
    if mine is not None and theirs is not None:
        try:
            return Region.of_boxes(subtract_boxes(mine, theirs), first.rank)
        except TooManyBoxes:
            pass  # element by element
    rows, others = first.elements(), second.elements()
    if isinstance(rows, Unknown):
        return rows
    if isinstance(others, Unknown):
        return others
    outside = {tuple(row) for row in rows.tolist()} - {tuple(row) for row in others.tolist()}
    array = np.array(sorted(outside), np.int64).reshape(len(outside), first.rank)
    try:
        return Region.of_boxes(boxes_of_elements(array), first.rank)
    except TooManyBoxes:
        points = [IndexingMap.of((), row) for row in array.tolist()]
        return Region.of(points, first.rank)

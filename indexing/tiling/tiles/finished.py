"""The outputs that a tile of an operand finishes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from indexing.maps.answers import Answer
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.regions.answers import OperandRegion, regions_at
from indexing.maps.regions.boxes import TooManyBoxes, boxes_of_elements, subtracted
from indexing.maps.regions.region import Region
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def finished_regions(
    answer: Answer,
    dims: Sequence[int],
    part: Sequence[slice],
    values: Mapping[str, ArrayLike],
) -> tuple[OperandRegion, ...]:
    """Return, for each output, the elements that read `part`, and no other part of the operand.

    Args:
        answer: the maps from the operand to the outputs.
        dims: the dimensions of the operand.
        part: a slice for each dimension.
        values: values of runtime variables.
    """
    finished = list(regions_at(answer, part, values))
    for other in _complement(dims, part):
        for k, region in enumerate(regions_at(answer, other, values)):
            if isinstance(mine := finished[k], Region) and isinstance(region, Region):
                finished[k] = _difference(mine, region)
    return tuple(finished)


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
            return Region.of_boxes(subtracted(mine, theirs), first.rank)
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

"""Check that the domains of maps partition an array into boxes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TypeAlias

from hlo.modules.module import Instruction
from indexing.maps.answers import Unknown
from indexing.maps.indexing_map import IndexingMap
from simplifier.atoms import point_count

Box: TypeAlias = "list[tuple[int, int]]"
"""Inclusive bounds in each dimension."""


def partition_fault(
    instruction: Instruction, size: int, maps: Sequence[IndexingMap]
) -> Unknown | None:
    """Return why the domains of maps are not boxes that cover an array of this size once each."""
    name = instruction.name
    if not maps:
        return Unknown(f"no map gives the source of the elements of `{name}`", instruction)
    boxes = [[v.bounds for v in indexing_map.dims] for indexing_map in maps]
    sizes = [point_count(m.dims) for m in maps]
    is_guarded = any(m.runtime or any(not c.is_true for c in m.constraints) for m in maps)
    if is_guarded or sum(sizes) != size or not are_disjoint(boxes):
        reason = f"the domains of the maps of `{name}` do not partition its elements"
        return Unknown(reason, instruction)
    return None


def are_disjoint(boxes: list[Box]) -> bool:
    """Return True if no two boxes overlap.

    Boxes are split into groups along one dimension after the other.  Only a group that no dimension
    splits compares all pairs of its boxes.

    >>> are_disjoint([[(0, 1), (0, 2)], [(2, 4), (0, 2)], [(0, 4), (3, 3)]])
    True
    >>> are_disjoint([[(0, 1), (0, 2)], [(2, 4), (0, 2)], [(4, 6), (2, 3)]])
    False
    """
    waiting = [(boxes, 0, 0)]
    while waiting:
        group, axis, unsplit = waiting.pop()
        if len(group) < 2:
            continue
        rank = len(group[0])
        if unsplit == rank:
            if any(_overlap(*pair) for pair in combinations(group, 2)):
                return False
            continue
        parts = list(_separate_groups(group, axis))
        unsplit = unsplit + 1 if len(parts) == 1 else 0
        waiting += [(part, (axis + 1) % rank, unsplit) for part in parts]
    return True


def _separate_groups(boxes: list[Box], axis: int) -> Iterator[list[Box]]:
    """Yield the groups of boxes whose bounds along a dimension are separate from all others."""
    ordered = sorted(boxes, key=lambda box: box[axis])
    group, end = [ordered[0]], ordered[0][axis][1]
    for box in ordered[1:]:
        lower, upper = box[axis]
        if lower > end:
            yield group
            group = []
        group.append(box)
        end = max(end, upper)
    yield group


def _overlap(left: Box, right: Box) -> bool:
    return all(a[0] <= b[1] and b[0] <= a[1] for a, b in zip(left, right, strict=True))

"""Unions of sets of disjoint boxes, with boxes joined that continue each other."""

from __future__ import annotations

from collections.abc import Iterable

from indexing.maps.regions.boxes import (
    MAX_BOXES,
    Box,
    Progression,
    TooManyBoxes,
    in_order,
    place,
    subtract_boxes,
)


def union_of(sets: Iterable[Iterable[Box]]) -> list[Box]:
    """Return the elements of several sets as disjoint boxes, in order of offsets.

    Larger boxes are kept and smaller ones are cut, by boxes of other sets only; of equally large
    boxes the first in order is kept.  The union of translated sets is therefore the translated
    union, box by box.

    Args:
        sets: the boxes of each set, which are disjoint.
    Raises:
        TooManyBoxes: the result has more than `MAX_BOXES` pieces.

    >>> evens, single = Box((0,), (6,), (2,)), Box((20,), (1,), (1,))
    >>> print(*union_of([[evens, single], [Box((4,), (8,), (1,))]]))
    [0:3:2] [4:12] [20]
    """
    owner: dict[Box, int] = {}
    for number, boxes in enumerate(sets):
        for box in boxes:
            owner.setdefault(box, number)
    separate: list[tuple[int, Box]] = []
    for box in sorted(owner, key=lambda box: (-box.count(), place(box))):
        number = owner[box]
        others = [part for own, part in separate if own != number]
        separate += [(number, piece) for piece in subtract_boxes([box], others)]
        if len(separate) > MAX_BOXES:
            raise TooManyBoxes
    return join_boxes([piece for _, piece in separate])


def join_boxes(boxes: Iterable[Box]) -> list[Box]:
    """Return the disjoint `boxes` in order, with boxes joined that continue each other.

    Two boxes continue each other if they differ in one dimension, whose indices together are a
    progression.

    >>> print(*join_boxes([Box((0, 0), (1, 4), (1, 1)), Box((2, 0), (1, 4), (1, 1))]))
    [0:3:2, 0:4]
    """
    current = in_order(boxes)
    while True:
        count = len(current)
        for k in range(len(current[0].sizes) if current else 0):
            current = _joined_along(current, k)
        if len(current) == count:
            return in_order(current)


def _joined_along(boxes: list[Box], k: int) -> list[Box]:
    lines: dict[tuple[Progression, ...], list[Progression]] = {}
    for box in boxes:
        parts = box.progressions
        lines.setdefault((*parts[:k], *parts[k + 1 :]), []).append(parts[k])
    return [
        Box.of([*others[:k], p, *others[k:]])
        for others, along in lines.items()
        for p in _joined_line(sorted(along))
    ]


def _joined_line(along: list[Progression]) -> list[Progression]:
    """Disjoint progressions, with each joined to the next where both are one progression."""
    line: list[Progression] = []
    for p in along:
        before = line[-1] if line else None
        whole = None if before is None else _continue_progression(before, p)
        if whole is None:
            line.append(p)
        else:
            line[-1] = whole
    return line


def _continue_progression(first: Progression, second: Progression) -> Progression | None:
    """The union of two disjoint progressions with ``first <= second``, if it is a progression."""
    gap = second.offset - first.last
    strides = {p.stride for p in (first, second) if p.size > 1} or {gap}
    if strides == {gap}:
        return Progression(first.offset, first.size + second.size, gap)
    if first.stride == second.stride and abs(first.size - second.size) <= 1 < first.size:
        half, odd = divmod(first.stride, 2)  # two interleaved progressions
        if not odd and second.offset - first.offset == half and first.size >= second.size:
            return Progression(first.offset, first.size + second.size, half)
    return None

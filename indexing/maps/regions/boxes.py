"""Boxes of strided indices, and exact operations on unions of them.

A `Box` is a product of arithmetic progressions, one for each dimension: the sets that slices
describe.  Intersections and differences of boxes are unions of boxes.

>>> rows = Box((0, 0), (4, 8), (1, 1))
>>> print(*difference(rows, Box((1, 0), (2, 8), (1, 1))))
[0, 0:8] [3, 0:8]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd, lcm, prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from hlo.arguments import checked_constructor, checked_on_failure

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_BOXES: Final = 4096
"""Maximum number of boxes of one set: beyond it a set is not represented by boxes."""


class TooManyBoxes(Exception):
    """A set has more than `MAX_BOXES` boxes; callers represent it otherwise."""


class Progression(NamedTuple):
    """The integers ``offset + stride * k`` for ``0 <= k < size``; the stride is at least 1.

    >>> print(Progression(5, 30, 2), Progression(7, 1, 1))
    5:64:2 7
    """

    offset: int
    size: int
    stride: int = 1

    @property
    def last(self) -> int:
        """The largest of the integers."""
        return self.offset + self.stride * (self.size - 1)

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, int) or not self.offset <= value <= self.last:
            return False
        return (value - self.offset) % self.stride == 0

    def __str__(self) -> str:
        if self.size == 1:
            return str(self.offset)
        step = f":{self.stride}" if self.stride > 1 else ""
        return f"{self.offset}:{self.last + 1}{step}"


def progression(offset: int, size: int, stride: int) -> Progression:
    """Return a progression in normal form: one element has stride 1, and strides are positive."""
    if size == 1:
        return Progression(offset, 1, 1)
    if stride < 0:
        return Progression(offset + stride * (size - 1), size, -stride)
    return Progression(offset, size, stride)


def common(first: Progression, second: Progression) -> Progression | None:
    """Return the integers of both progressions; `None` without any.

    The strides a and b meet every ``lcm(a, b)``, if the offsets agree modulo ``gcd(a, b)``
    (Chinese remainder theorem).

    >>> common(Progression(1, 10, 4), Progression(0, 20, 3))
    Progression(offset=9, size=3, stride=12)
    """
    step = gcd(first.stride, second.stride)
    distance = second.offset - first.offset
    if distance % step:
        return None
    modulus = second.stride // step
    steps = distance // step * pow(first.stride // step, -1, modulus) % modulus
    stride = lcm(first.stride, second.stride)
    start = first.offset + steps * first.stride
    low = max(first.offset, second.offset)
    start += -((start - low) // stride) * stride
    high = min(first.last, second.last)
    return None if start > high else progression(start, (high - start) // stride + 1, stride)


def _without(whole: Progression, part: Progression) -> Iterator[Progression]:
    """The integers of `whole` outside `part`, a subset of `whole`, as disjoint progressions."""
    before = (part.offset - whole.offset) // whole.stride
    if before:
        yield progression(whole.offset, before, whole.stride)
    gaps, width = part.size - 1, part.stride // whole.stride - 1
    if min(gaps, width) > MAX_BOXES:
        raise TooManyBoxes
    if gaps <= width:
        for k in range(gaps):
            start = part.offset + k * part.stride + whole.stride
            yield progression(start, width, whole.stride)
    else:
        for k in range(width):
            yield progression(part.offset + (k + 1) * whole.stride, gaps, part.stride)
    after = (whole.last - part.last) // whole.stride
    if after:
        yield progression(part.last + whole.stride, after, whole.stride)


# ---------------------------------------------------------------- boxes


@checked_constructor
@dataclass(frozen=True, slots=True)
class Box:
    """A product of arithmetic progressions: ``offsets[k] + strides[k] * i`` with ``i < sizes[k]``.

    A box is in normal form: a dimension of size 1 has stride 1, so equal sets are equal boxes.
    Boxes are not empty.

    Attributes:
        offsets: smallest index of each dimension.
        sizes: number of indices of each dimension, at least 1.
        strides: distance of neighbouring indices of each dimension, at least 1.
    Raises:
        ValueError: the attributes have different lengths, or a size or stride is less than 1.
    Source: StableHLO specification, "slice", for strided slices.

    >>> box = Box((1, 0, 5), (1, 64, 30), (1, 1, 2))
    >>> print(box, box.count(), (1, 63, 7) in box, (1, 63, 8) in box)
    [1, 0:64, 5:64:2] 1920 True False
    """

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def __post_init__(self) -> None:
        if not len(self.offsets) == len(self.sizes) == len(self.strides):
            raise ValueError(
                "offsets, sizes and strides of a box need equal lengths, got "
                f"{self.offsets}, {self.sizes} and {self.strides}"
            )
        for size, stride in zip(self.sizes, self.strides, strict=True):
            if size < 1 or stride < 1:
                raise ValueError(
                    f"sizes and strides of a box are at least 1, got {self.sizes}, {self.strides}"
                )
        strides = [1 if n == 1 else s for n, s in zip(self.sizes, self.strides, strict=True)]
        object.__setattr__(self, "strides", tuple(strides))

    @classmethod
    @checked_on_failure
    def of(cls, progressions: Iterable[Progression]) -> Box:
        """Return the product of progressions.

        >>> print(Box.of([Progression(0, 4, 1), Progression(1, 3, 5)]))
        [0:4, 1:12:5]
        """
        listed = list(progressions)
        box = object.__new__(cls)  # without the checks of types: boxes are made by thousands
        object.__setattr__(box, "offsets", tuple([p.offset for p in listed]))
        object.__setattr__(box, "sizes", tuple([p.size for p in listed]))
        object.__setattr__(box, "strides", tuple([p.stride for p in listed]))
        box.__post_init__()
        return box

    @property
    def progressions(self) -> tuple[Progression, ...]:
        """The indices of each dimension.

        >>> columns = Box((1, 0), (1, 3), (1, 2)).progressions[1]
        >>> print(columns, columns.last, 3 in columns)
        0:5:2 4 False
        """
        return tuple(map(Progression, self.offsets, self.sizes, self.strides))

    @property
    def slices(self) -> tuple[slice, ...]:
        """The slices that select the box from an array.

        >>> Box((1, 5), (1, 3), (1, 2)).slices
        (slice(1, 2, 1), slice(5, 10, 2))
        """
        return tuple([slice(p.offset, p.last + 1, p.stride) for p in self.progressions])

    def count(self) -> int:
        """Return the number of elements.

        >>> from indexing import Box
        >>> Box((2, 0), (3, 4), (1, 2)).count()
        12
        """
        return prod(self.sizes)

    def elements(self) -> NDArray[Any]:
        """Return the elements in lexicographic order, one row each: an array ``(count, rank)``.

        >>> Box((1, 5), (1, 3), (1, 2)).elements().tolist()
        [[1, 5], [1, 7], [1, 9]]
        """
        places = np.indices(self.sizes, np.int64).reshape(len(self.sizes), self.count())
        scale = np.array(self.strides, np.int64)[:, None]
        return (np.array(self.offsets, np.int64)[:, None] + scale * places).T

    def __contains__(self, element: object) -> bool:
        if not isinstance(element, Sequence) or len(element) != len(self.sizes):
            return False
        return all(i in p for i, p in zip(element, self.progressions, strict=True))

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.progressions))}]"


def intersection(first: Box, second: Box) -> Box | None:
    """Return the elements of both boxes; `None` without any.

    >>> print(intersection(Box((0,), (8,), (2,)), Box((3,), (9,), (3,))))
    [6:13:6]
    """
    pairs = zip(first.progressions, second.progressions, strict=True)
    shared = [common(a, b) for a, b in pairs]
    present = [p for p in shared if p is not None]
    return Box.of(present) if len(present) == len(shared) else None


def difference(whole: Box, part: Box) -> list[Box]:
    """Return the elements of `whole` outside `part`, as disjoint boxes in order of dimensions.

    Raises:
        TooManyBoxes: strides of the boxes leave more than `MAX_BOXES` pieces.

    >>> print(*difference(Box((0,), (6,), (1,)), Box((1,), (2,), (3,))))
    [0] [2:4] [5]
    """
    shared = intersection(whole, part)
    if shared is None:
        return [whole]
    rest: list[Box] = []
    done: list[Progression] = []
    outer = whole.progressions
    for k, (mine, inner) in enumerate(zip(outer, shared.progressions, strict=True)):
        rest += [Box.of([*done, p, *outer[k + 1 :]]) for p in _without(mine, inner)]
        done.append(inner)
    return rest


def subtract_boxes(boxes: Iterable[Box], parts: Iterable[Box]) -> list[Box]:
    """Return the elements of disjoint `boxes` outside all `parts`, as disjoint boxes.

    Raises:
        TooManyBoxes: the result has more than `MAX_BOXES` pieces.
    """

    def without(rest: list[Box], part: Box) -> list[Box]:
        pieces = [piece for box in rest for piece in difference(box, part)]
        if len(pieces) > MAX_BOXES:
            raise TooManyBoxes
        return pieces

    return reduce(without, parts, list(boxes))


def in_order(boxes: Iterable[Box]) -> list[Box]:
    """Return boxes in order of offsets, then of sizes and strides."""
    return sorted(boxes, key=place)


def place(box: Box) -> tuple[tuple[int, ...], ...]:
    """Return what the order of boxes compares: a translation of all boxes keeps their order."""
    return box.offsets, box.sizes, box.strides


# ---------------------------------------------------------------- sets of elements as boxes


def progressions_of(values: NDArray[Any]) -> list[Progression]:
    """Return sorted, distinct integers as disjoint progressions, longest runs first to last.

    >>> print(*progressions_of(np.array([0, 5, 6, 7, 8, 20, 30, 40])))
    0 5:9 20:41:10
    """
    count = len(values)
    gaps = np.diff(values)
    if count > 1 and (gaps == gaps[0]).all():
        return [progression(int(values[0]), count, int(gaps[0]))]
    ends = [*np.flatnonzero(np.diff(gaps)).tolist(), count - 2]  # last gap of each run of gaps
    line: list[Progression] = []
    start = 0
    for k, end in enumerate(ends):
        length = end + 2 - start
        if length < 2:
            continue
        follows = k + 1 < len(ends) and ends[k + 1] - end > 1
        if length == 2 and follows:  # the second value begins a longer run
            length = 1
        line.append(progression(int(values[start]), length, int(gaps[start])))
        start += length
        if len(line) > MAX_BOXES:
            raise TooManyBoxes
    if start < count:
        line.append(progression(int(values[start]), 1, 1))
    return line


def boxes_of_elements(elements: NDArray[Any]) -> list[Box]:
    """Return sorted, distinct elements, one row each, as disjoint boxes.

    Indices of the first dimension with the same set of further indices share their boxes.

    Raises:
        TooManyBoxes: the elements need more than `MAX_BOXES` boxes.

    >>> print(*boxes_of_elements(np.array([[0, 1], [0, 2], [1, 1], [1, 2], [4, 4]])))
    [0:2, 1:3] [4, 4]
    """
    if not len(elements):
        return []
    rank = elements.shape[1]
    if not rank:
        return [Box((), (), ())]
    if rank == 1:
        return [Box.of([p]) for p in progressions_of(elements[:, 0])]
    heads, starts = np.unique(elements[:, 0], return_index=True)
    tails = np.split(np.ascontiguousarray(elements[:, 1:]), starts[1:])
    groups: dict[bytes, list[int]] = {}
    for k, tail in enumerate(tails):
        groups.setdefault(tail.tobytes(), []).append(k)
    if len(groups) > MAX_BOXES:
        raise TooManyBoxes
    boxes: list[Box] = []
    for members in groups.values():
        rest = boxes_of_elements(tails[members[0]])
        along = progressions_of(heads[members])
        boxes += [Box.of([p, *box.progressions]) for p in along for box in rest]
        if len(boxes) > MAX_BOXES:
            raise TooManyBoxes
    return in_order(boxes)

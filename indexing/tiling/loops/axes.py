"""Axes: dimensions of the tile space cut into tiles or steps, and arrays over them.

A dimension of the tiled root, or a loop, is an axis.  Values that depend on some axes are NumPy
arrays with one dimension for each of them (`OverAxes`), so that sums over a grid of millions of
blocks and steps need only the axes on which something depends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

IntArray: TypeAlias = NDArray[Any]


@dataclass(frozen=True, slots=True)
class StepAxis:
    """A dimension that is cut into tiles or steps.

    Attributes:
        size: the number of elements.
        step: the elements of one tile or step.

    >>> StepAxis(10, 4).count, StepAxis(10, 4).ranges(0, 9)[1].tolist()
    (3, [3, 7, 9])
    """

    size: int
    step: int

    @property
    def count(self) -> int:
        """The number of tiles or steps."""
        return -(-self.size // self.step)

    def ranges(self, lower: int, upper: int) -> tuple[IntArray, IntArray]:
        """Return the first and the last index of each tile, cut to bounds."""
        starts = np.arange(self.count, dtype=np.int64) * self.step
        return np.maximum(starts, lower), np.minimum(
            starts + self.step - 1, min(upper, self.size - 1)
        )


Axes: TypeAlias = Mapping[int, StepAxis]


class OverAxes(NamedTuple):
    """Numbers that depend on the tiles of some axes.

    Attributes:
        axes: the numbers of the axes, ascending.
        values: one dimension for each axis.
    """

    axes: tuple[int, ...]
    values: IntArray

    def along(self, joint: Sequence[int]) -> IntArray:
        """Return the values with one dimension for each axis of `joint`, of size 1 if unused.

        >>> OverAxes((2,), np.arange(3)).along([1, 2]).shape
        (1, 3)
        """
        order = [self.axes.index(axis) for axis in joint if axis in self.axes]
        values = self.values.transpose(order)
        sizes = iter(values.shape)
        return values.reshape([next(sizes) if axis in self.axes else 1 for axis in joint])


def joint_axes(parts: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """Return the axes of all parts, ascending.

    >>> joint_axes([(2, 0), (1,)])
    (0, 1, 2)
    """
    return tuple(sorted({axis for part in parts for axis in part}))


def count_points(axes: Axes, numbers: Iterable[int]) -> int:
    """Return the number of tiles of these axes together."""
    return prod([axes[number].count for number in numbers])

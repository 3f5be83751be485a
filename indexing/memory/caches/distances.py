"""Reuse distances of a trace: what is touched between two touches of one unit.

>>> units = np.array([0, 1, 2, 1, 0])
>>> reuse_distances(units, weights=np.array([1, 10, 100])).tolist()
[-1, -1, -1, 110, 111]

Source: Mattson, Gecsei, Slutz, Traiger, "Evaluation techniques for storage hierarchies", IBM
Systems Journal 9 (1970), for stack distances; Bennett, Kruskal, "LRU stack processing", IBM
Journal of Research and Development 19 (1975), for counting them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def previous_touches(units: NDArray[Any]) -> NDArray[Any]:
    """Return the position of the previous touch of the same unit; -1 for the first touch.

    >>> previous_touches(np.array([4, 7, 4, 4])).tolist()
    [-1, -1, 0, 2]
    """
    previous = np.full(len(units), -1, np.int64)
    order = np.argsort(units, kind="stable")
    is_same = units[order[1:]] == units[order[:-1]]
    previous[order[1:][is_same]] = order[:-1][is_same]
    return previous


def reuse_distances(units: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    """Return the weight of the distinct units since the previous touch of each unit.

    The weight of the unit itself is included.

    A fully associative LRU cache keeps the unit if its capacity is at least this weight.

    Args:
        units: the number of the unit of each touch.
        weights: the weight of each unit.
    Returns:
        The distances; -1 for the first touch of a unit.
    """
    # Between touch i and the previous touch p_i of the unit, j touches another unit for the first
    # time if p_j < p_i.  All other touches j in between have p_j > p_i, and p_j > p_i implies
    # j > p_i.  So the distinct weight is that of all touches in between, minus that of the touches
    # j < i with p_j > p_i.
    previous = previous_touches(units)
    own = weights[units]
    before = np.concatenate([[0], np.cumsum(own)])
    (again,) = np.nonzero(previous >= 0)
    distances = np.full(len(units), -1, np.int64)
    repeated = _later_pairs(previous, own)
    distances[again] = before[again + 1] - before[previous[again] + 1] - repeated[again]
    return distances


def _later_pairs(previous: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    """Return, for each i, the weight of all ``j < i`` with ``previous[j] > previous[i]``.

    Elements without a previous touch are left out.  The positions are sorted by `previous`, and
    divided by one bit of the position after the other: of the positions that agree in all higher
    bits, each with the bit set comes after all that have it clear.
    """
    sums = np.zeros(len(previous), np.int64)
    (again,) = np.nonzero(previous >= 0)
    order = again[np.argsort(previous[again], kind="stable")]
    for bit in range(len(previous).bit_length())[::-1]:
        is_late = (order >> bit & 1).astype(bool)
        early = np.cumsum(np.where(is_late, 0, weights[order]))
        group = order >> (bit + 1)
        (ends,) = np.nonzero(np.concatenate([group[1:] != group[:-1], [True]][: 1 + len(group)]))
        sizes = np.diff(np.concatenate([[-1], ends]))
        larger = np.repeat(early[ends], sizes) - early
        sums[order[is_late]] += larger[is_late]
        order = order[np.argsort(order >> bit, kind="stable")]
    return sums

"""Sliding windows: from a window position to the index under it, and back.

Along one dimension, element s of the window at position i is at ``i·stride + s·window_dilation −
low`` of the array that is dilated by base_dilation.  Holes and padding have no element.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from math import gcd, prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hlo.ops.attributes import WindowDimension, dilated_size
from indexing.maps.indexing_map import Grade, IndexingMap
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Affine, Expr, as_expr

if TYPE_CHECKING:
    from numpy.typing import NDArray


_MAX_COVERED: Final = 1 << 22
"""Limit on the pairs of a position and a window element that `are_shared` examines."""


def index_at(
    w: WindowDimension, position: Affine, element: Affine, size: int
) -> tuple[Expr, list[Constraint]]:
    """Array index under window element `element` at `position`, and the conditions for it.

    >>> from simplifier.linear import variable
    >>> w = WindowDimension(size=3, stride=2, low=1, high=1)
    >>> index, constraints = index_at(w, variable("d0", 0, 6), variable("s0", 0, 2), 13)
    >>> print(index, *constraints)
    d0 * 2 + s0 - 1 d0 * 2 + s0 - 1 in [0, 12]
    """
    place = as_expr(position) * w.stride + as_expr(element) * w.window_dilation - w.low
    return _at(place, w.base_dilation, size)


def position_of(
    w: WindowDimension, index: Affine, element: Affine, positions: int
) -> tuple[Expr, list[Constraint]]:
    """Window position whose window element `element` is at `index`, and the conditions for it.

    >>> from simplifier.linear import variable
    >>> w = WindowDimension(size=3, stride=3, low=1, high=1)
    >>> position, constraints = position_of(w, variable("d0", 0, 12), variable("s0", 0, 2), 5)
    >>> print(position, *constraints, sep="; ")
    (d0 - s0 + 1) floordiv 3; d0 - s0 + 1 in [0, 12]; (d0 - s0 + 1) mod 3 in [0, 0]
    """
    place = as_expr(index) * w.base_dilation - as_expr(element) * w.window_dilation + w.low
    return _at(place, w.stride, positions)


def _at(place: Expr, step: int, count: int) -> tuple[Expr, list[Constraint]]:
    """Index of the element at `place`, for `count` elements at distance `step`; the conditions."""
    constraints = [Constraint(place, 0, dilated_size(count, step) - 1)]
    if step != 1:
        constraints.append(Constraint(place % step, 0, 0))
    return place // step, constraints


def only_element(
    w: WindowDimension, position: Affine, size: int, *, always: bool = False
) -> Expr | None:
    """Return the only window element that can be on an array element at `position`.

    It is on one if it is in the window and `index_at` gives an index.

    Args:
        always: return None if no window element is on the array at some position.
    Returns:
        A formula of the position; None if several elements are on the array at some position, if
        the formula is neither that of a remainder nor linear, or if the window has one element.

    >>> from simplifier.linear import variable
    >>> batches = WindowDimension(size=4, stride=3, base_dilation=4)  # XLA:TPU's batch dimension
    >>> print(only_element(batches, variable("d0", 0, 3), 4))
    d0
    >>> print(only_element(WindowDimension(size=2, low=1, high=1), variable("d0", 0, 4), 4))
    None
    """
    common, step, inverse = _congruence(w)
    count = w.positions(size)
    hits = (s for s in range(w.size) if element_under(w, count // 2, s, size) is not None)
    if w.size == 1 or len(list(islice(hits, 2))) > 1:  # as in most windows
        return None
    places = np.arange(count, dtype=np.int64)
    start, _, counts = _covered_elements(w, size, places)
    if np.any(counts > 1) or not np.any(counts) or (always and not np.all(counts)):
        return None
    if w.size <= step:
        return (w.low - as_expr(position) * w.stride) // common * inverse % step
    places, start = places[counts > 0], start[counts > 0]
    slope = (start[-1] - start[0]) // max(1, places[-1] - places[0])
    if np.any(start != start[0] + (places - places[0]) * slope):
        return None
    return (as_expr(position) - int(places[0])) * int(slope) + int(start[0])


def window_map(
    start: tuple[Variable, ...],
    inside: tuple[Variable, ...],
    conditional: Iterable[tuple[Expr, list[Constraint]]],
    grade: Grade = "exact",
) -> IndexingMap:
    """The map with the results and constraints of `index_at` or `position_of` per dimension."""
    pairs = list(conditional)
    constraints = [constraint for _, each in pairs for constraint in each]
    results = [index for index, _ in pairs]
    return IndexingMap.of(start, results, ranges=inside, constraints=constraints, grade=grade)


def element_under(w: WindowDimension, position: int, element: int, size: int) -> int | None:
    """`index_at` for numbers: the index, or None in a hole or in padding.

    >>> w = WindowDimension(size=3, stride=2, low=1, high=1)
    >>> element_under(w, 0, 0, 13), element_under(w, 2, 1, 13)
    (None, 4)
    """
    place = position * w.stride + element * w.window_dilation - w.low
    if place % w.base_dilation or not 0 <= place // w.base_dilation < size:
        return None
    return place // w.base_dilation


def count_covered(w: WindowDimension, size: int) -> int:
    """The number of pairs of a position and a window element that is on an array element.

    >>> count_covered(WindowDimension(size=3), 5), count_covered(WindowDimension(size=3, low=1), 5)
    (9, 11)
    """
    total = 0
    last = (size - 1) * w.base_dilation  # of the places in the dilated array
    first_place = np.arange(w.positions(size), dtype=np.int64) * w.stride - w.low
    for element in range(w.size):
        place = first_place + element * w.window_dilation
        is_covered = (place >= 0) & (place <= last) & (place % w.base_dilation == 0)
        total += int(np.count_nonzero(is_covered))
    return total


def window_applications(
    window: Sequence[WindowDimension], sizes: Sequence[int], repeats: bool = False
) -> int:
    """Return how often a computation of two elements is applied to reduce all distinct windows.

    Positions along a dimension whose windows cover the same elements, at least one, are one window.
    A window has as many elements as its size, padding and holes included, as in XLA; along a
    dimension in which windows are the same, as many as the largest covers.  n elements are reduced
    by n - 1 applications.

    Args:
        repeats: reduce equal windows each, as a loop over the elements of the result does.

    >>> window_applications([WindowDimension(3, low=1, high=1)], [9])
    18
    >>> whole = WindowDimension(511, low=255, high=255)  # a reduction, and a broadcast
    >>> window_applications([WindowDimension(1), whole], [8, 256])
    2040
    >>> window_applications([WindowDimension(1), whole], [8, 256], repeats=True) == 256 * 2040
    True
    """
    pairs = [_distinct_windows(w, n) for w, n in zip(window, sizes, strict=True)]
    windows, elements = (prod([pair[k] for pair in pairs]) for k in (0, 1))
    if repeats:
        windows = prod([w.positions(n) for w, n in zip(window, sizes, strict=True)])
    return windows * max(0, elements - 1)


def _distinct_windows(w: WindowDimension, size: int) -> tuple[int, int]:
    """The number of distinct windows along one dimension, and of the elements of one.

    >>> _distinct_windows(WindowDimension(6, low=4, high=4), 4)  # three of seven cover everything
    (5, 4)
    >>> _distinct_windows(WindowDimension(2, base_dilation=2), 3)  # of 0, 1, 1 and 2
    (3, 1)
    """
    positions = w.positions(size)
    if w.window_dilation == w.base_dilation == 1:  # windows are equal if they cover everything
        lowest = max(0, -((w.size - w.low - size) // w.stride))
        repeated = min(positions - 1, w.low // w.stride) - lowest if size else 0
        return (positions - repeated, size) if repeated > 0 else (positions, w.size)
    _, first, counts = _covered_elements(w, size, np.arange(positions, dtype=np.int64))
    is_covering = counts > 0
    distinct = len(np.unique(first[is_covering] * (size + 1) + counts[is_covering]))
    if distinct == np.count_nonzero(is_covering):
        return positions, w.size
    return distinct + int(np.count_nonzero(~is_covering)), int(counts.max())


def are_shared(window: Sequence[WindowDimension], sizes: Sequence[int]) -> bool:
    """Return True if no element of an array is alone in all windows that cover it.

    Windows with more than `_MAX_COVERED` pairs of a position and an element are not examined.

    >>> are_shared([WindowDimension(2, stride=2)], [5])  # no window covers element 4
    True
    >>> are_shared([WindowDimension(2, stride=2, high=1)], [5])  # element 4 is alone
    False
    """
    pairs = list(zip(window, sizes, strict=True))
    if sum([w.positions(n) * w.size for w, n in pairs]) > _MAX_COVERED:
        return False
    return not all(_has_lone_element(w, n) for w, n in pairs)


def _has_lone_element(w: WindowDimension, size: int) -> bool:
    """Return True if all windows of one dimension that cover some element cover no other one."""
    positions = np.arange(w.positions(size), dtype=np.int64)
    _, first, counts = _covered_elements(w, size, positions)
    is_covered, is_shared = np.zeros(size, bool), np.zeros(size, bool)
    distance = w.window_dilation // gcd(w.window_dilation, w.base_dilation)
    for k in range(w.size):
        here = first[counts > k] + k * distance
        is_covered[here] = True
        is_shared[here[counts[counts > k] > 1]] = True
    return bool(np.any(is_covered & ~is_shared))


def _covered_elements(
    w: WindowDimension, size: int, positions: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The first window element on the array at each position, its index, and their number.

    Window element s is at ``first place + s * window_dilation``, which is the place of an array
    element if it is a multiple of base_dilation: for s in one residue class, or for none.
    """
    common, step, inverse = _congruence(w)
    place = positions * w.stride - w.low
    low = np.maximum(0, -(place // w.window_dilation))
    high = np.minimum(w.size - 1, ((size - 1) * w.base_dilation - place) // w.window_dilation)
    residue = -(place // common) * inverse % step
    start = low + (residue - low) % step
    is_covering = (place % common == 0) & (start <= high)
    counts = np.where(is_covering, (high - start) // step + 1, 0)
    return start, (place + start * w.window_dilation) // w.base_dilation, counts


def _congruence(w: WindowDimension) -> tuple[int, int, int]:
    """Numbers common, step and inverse: window elements on an array element are congruent.

    At `place` they are ``-(place / common) * inverse`` modulo step, if common divides the place.
    """
    common = gcd(w.window_dilation, w.base_dilation)
    step = w.base_dilation // common
    return common, step, pow(w.window_dilation // common, -1, step)


def is_batch(w: WindowDimension, size: int) -> bool:
    """Return True if the window is a batch dimension of a dot, as XLA:TPU writes it.

    Position, window element and array element determine each other then.  XLA:TPU dilates such a
    window at the base or reverses it.

    >>> is_batch(WindowDimension(size=4, stride=3, base_dilation=4), 4)
    True
    >>> is_batch(WindowDimension(size=2, stride=2, low=1, high=1), 2)  # a window with padding
    False
    """
    if not (w.base_dilation > 1 or w.is_reversed) or not w.size == size == w.positions(size) > 1:
        return False
    start, index, counts = _covered_elements(w, size, np.arange(size, dtype=np.int64))
    return bool(np.all(counts == 1)) and len(set(start)) == len(set(index)) == size


def always_covers(w: WindowDimension, size: int) -> bool:
    """Return True if every window element is on an array element at every position.

    >>> always_covers(WindowDimension(size=3), 5)
    True
    >>> always_covers(WindowDimension(size=3, low=1), 5)
    False
    """
    positions = range(w.positions(size))
    return all(
        element_under(w, i, s, size) is not None
        for i in _representatives(positions, w.base_dilation)
        for s in _representatives(range(w.size), w.base_dilation)
    )


def _representatives(numbers: range, step: int) -> list[int]:
    """One number for each remainder modulo `step`, and the last number."""
    return [*numbers[: step + 1], *numbers[-1:]]

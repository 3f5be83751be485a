"""Windows that slide over arrays: which element lies under them, and which of them lie over it.

Along one dimension, element s of the window at position i lies at ``i·stride + s·window_dilation −
low`` of the array whose elements are base_dilation apart.  Places between and beside the array's
elements hold nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from hlo.ops.attributes import WindowDimension, dilated
from indexing.maps.indexing_map import Grade, IndexingMap
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Affine, Expr, as_expr


def index_at(
    w: WindowDimension, position: Affine, element: Affine, size: int
) -> tuple[Expr, list[Constraint]]:
    """The index below window element `element` at `position`, and when there is one.

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
    """The position where window element `element` lies on `index`, and when there is one.

    >>> from simplifier.linear import variable
    >>> w = WindowDimension(size=3, stride=3, low=1, high=1)
    >>> position, constraints = position_of(w, variable("d0", 0, 12), variable("s0", 0, 2), 5)
    >>> print(position, *constraints, sep="; ")
    (d0 - s0 + 1) floordiv 3; d0 - s0 + 1 in [0, 12]; (d0 - s0 + 1) mod 3 in [0, 0]
    """
    place = as_expr(index) * w.base_dilation - as_expr(element) * w.window_dilation + w.low
    return _at(place, w.stride, positions)


def _at(place: Expr, step: int, count: int) -> tuple[Expr, list[Constraint]]:
    """Which of `count` things that lie `step` apart is at `place`, and when there is one."""
    constraints = [Constraint(place, 0, dilated(count, step) - 1)]
    if step != 1:
        constraints.append(Constraint(place % step, 0, 0))
    return place // step, constraints


def window_map(
    start: tuple[Variable, ...],
    inside: tuple[Variable, ...],
    found: Iterable[tuple[Expr, list[Constraint]]],
    grade: Grade = "exact",
) -> IndexingMap:
    """The map to what `index_at` or `position_of` gives in each dimension."""
    pairs = list(found)
    constraints = [constraint for _, each in pairs for constraint in each]
    results = [index for index, _ in pairs]
    return IndexingMap.of(start, results, ranges=inside, constraints=constraints, grade=grade)


def element_under(w: WindowDimension, position: int, element: int, size: int) -> int | None:
    """`index_at` for numbers: the index, or None where nothing lies.

    >>> w = WindowDimension(size=3, stride=2, low=1, high=1)
    >>> element_under(w, 0, 0, 13), element_under(w, 2, 1, 13)
    (None, 4)
    """
    place = position * w.stride + element * w.window_dilation - w.low
    if place % w.base_dilation or not 0 <= place // w.base_dilation < size:
        return None
    return place // w.base_dilation


def always_covers(w: WindowDimension, size: int) -> bool:
    """Every element of the window lies on an element of the array at every position.

    >>> always_covers(WindowDimension(size=3), 5)
    True
    >>> always_covers(WindowDimension(size=3, low=1), 5)
    False
    """
    positions = range(w.positions(size))
    return all(
        element_under(w, i, s, size) is not None
        for i in _few(positions, w.base_dilation)
        for s in _few(range(w.size), w.base_dilation)
    )


def _few(numbers: range, step: int) -> list[int]:
    """The first ones, one for each remainder by `step`, and the last one."""
    return [*numbers[: step + 1], *numbers[-1:]]

"""The known integers of a loop in each iteration, computed one iteration after the other.

They decide what no formula describes: squares of a counter, counters that double, searches.

Source: XLA ``xla/service/while_loop_analysis.cc``, ``ComputeWhileLoopTripCount``, which executes
condition and body of a loop to find its trip count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from hlo.modules.module import Instruction
from hlo.shapes.shape import leaves
from indexing.dataflow.constants import is_integral
from indexing.maps.arrays import ArrayRef, Path
from indexing.ops.control import callees

MAX_ELEMENTS: Final = 1 << 10
"""Limit on the elements of a carried array that is followed."""

Array: TypeAlias = "np.ndarray[Any, Any]"
Integers: TypeAlias = Mapping[Path, "Array | None"]
"""The followed leaves of a loop; None if unknown."""


class Known(Protocol):
    """The arrays that known ones determine; see `indexing.dataflow.evaluation.Evaluation`."""

    def value(self, array: ArrayRef) -> Array | None:
        """Return the elements of an array, or None."""


Evaluate: TypeAlias = Callable[[Mapping[ArrayRef, Array]], Known]
"""A function of known arrays that returns what they determine."""


def followed_leaves(loop: Instruction) -> list[Path]:
    """Return the leaves of a loop that are small arrays of integers."""
    arrays = [(path, ArrayRef(loop, path)) for path, _ in leaves(loop.shape)]
    return [path for path, array in arrays if _is_followed(array)]


def _is_followed(array: ArrayRef) -> bool:
    shape = array.array_shape
    return shape is not None and is_integral(array) and 0 < shape.size <= MAX_ELEMENTS


def iterations_from(loop: Instruction, before: Integers, evaluate: Evaluate) -> Iterator[Known]:
    """Yield what is known in the body in each iteration, without end.

    An integer is known if it is known before the loop, and if the body computes it from known ones.

    Args:
        before: the integers before the loop.
    """
    _, body = callees(loop, "condition", "body")
    (parameter,), known = body.parameters, before
    while True:
        inside = evaluate(_arrays(parameter, known))
        yield inside
        paths = [path for path, value in known.items() if value is not None]
        known = {path: inside.value(ArrayRef(body.root, path)) for path in paths}


def last_iteration(
    loop: Instruction, before: Integers, evaluate: Evaluate, most: int
) -> tuple[int, Integers] | None:
    """Return the number of iterations of a loop, and the integers after them.

    None if the condition does not follow from known integers, and beyond `most` iterations.

    Args:
        before: the integers before the loop.
        most: the maximum number of iterations.
    """
    condition, body = callees(loop, "condition", "body")
    (inside,), (parameter,) = body.parameters, condition.parameters
    iterations = islice(iterations_from(loop, before, evaluate), most + 1)
    for number, known in enumerate(iterations):
        values = {path: known.value(ArrayRef(inside, path)) for path in before}
        runs = evaluate(_arrays(parameter, values)).value(ArrayRef(condition.root))
        if runs is None:
            return None
        if not runs:
            return number, values
    return None


def _arrays(parameter: Instruction, integers: Integers) -> dict[ArrayRef, Array]:
    """Return the known integers as arrays of a parameter."""
    pairs = [(ArrayRef(parameter, path), value) for path, value in integers.items()]
    return {array: value for array, value in pairs if value is not None}

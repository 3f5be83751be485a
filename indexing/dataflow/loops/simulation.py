"""The known integers of a loop in each iteration, computed one iteration after the other.

They decide what no formula describes: squares of a counter, counters that double, tables.

Source: XLA ``xla/service/while_loop_analysis.cc``, ``ComputeWhileLoopTripCount``, which executes
condition and body of a loop to find its trip count.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from hlo.modules.module import Instruction
from hlo.shapes.shape import leaves
from indexing.dataflow.constants import is_integral
from indexing.dataflow.evaluation import Evaluation, evaluate_array
from indexing.dataflow.loops.call_stacks import Calls
from indexing.maps.arrays import ArrayRef
from indexing.ops.control import callees

MAX_ITERATIONS: Final = 128
"""Limit on the iterations that are computed, as in XLA."""
MAX_ELEMENTS: Final = 1 << 10
"""Limit on the elements of a carried array that is followed."""


def known_integers(loop: Instruction, calls: Calls) -> Iterator[Evaluation]:
    """Yield what the known integers before each iteration determine in the body, without end.

    An integer is known if it is known before the loop, and if the body computes it from known ones.

    Args:
        calls: the call stack of the computation of the loop.

    >>> import hlo
    >>> loop = hlo.parse('''
    ... body { t = (s32[]) parameter(0)  i = s32[] get-tuple-element(t), index=0
    ...   n = s32[] multiply(i, i)  ROOT r = (s32[]) tuple(n) }
    ... running { t = (s32[]) parameter(0)  i = s32[] get-tuple-element(t), index=0
    ...   ten = s32[] constant(99)  ROOT less = pred[] compare(i, ten), direction=LT }
    ... ENTRY e { z = s32[] constant(2)  t = (s32[]) tuple(z)
    ...   ROOT w = (s32[]) while(t), condition=running, body=body }''').entry.root
    >>> _, body = callees(loop, "condition", "body")
    >>> for known in islice(known_integers(loop, ()), 3):
    ...     print(known.value(ArrayRef(body["i"])))
    2
    4
    16
    """
    _, body = callees(loop, "condition", "body")
    (parameter,), before = body.parameters, loop.operands[0]
    arrays = [(path, ArrayRef(parameter, path)) for path, _ in leaves(loop.shape)]
    followed = {own: path for path, own in arrays if _is_followed(own)}
    known = {own: evaluate_array(ArrayRef(before, path, calls)) for own, path in followed.items()}
    while True:
        given = {own: value for own, value in known.items() if value is not None}
        evaluation = Evaluation(given)
        yield evaluation
        known = {own: evaluation.value(ArrayRef(body.root, followed[own])) for own in given}


def _is_followed(array: ArrayRef) -> bool:
    shape = array.array_shape
    return shape is not None and is_integral(array) and 0 < shape.size <= MAX_ELEMENTS


def executed_iterations(loop: Instruction, calls: Calls) -> int | None:
    """Return the number of iterations of a loop whose condition depends on known integers only.

    None for other loops, and beyond `MAX_ITERATIONS`.

    Args:
        calls: the call stack of the computation of the loop.
    """
    condition, body = callees(loop, "condition", "body")
    (parameter,) = condition.parameters
    paths = [path for path, _ in leaves(loop.shape)]
    for number, known in enumerate(islice(known_integers(loop, calls), MAX_ITERATIONS + 1)):
        values = {
            ArrayRef(parameter, path): known.value(ArrayRef(body.parameters[0], path))
            for path in paths
        }
        given = {array: value for array, value in values.items() if value is not None}
        runs = Evaluation(given).value(ArrayRef(condition.root))
        if runs is None:
            return None
        if not runs:
            return number
    return None

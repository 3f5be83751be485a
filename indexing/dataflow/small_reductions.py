"""Reductions of few integers each, such as whether all indices of a row are in bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import prod
from typing import Final

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.dataflow.conversions import integer_rule
from indexing.dataflow.evaluation import is_fold
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.integer_rules import IntegerRule
from indexing.ops.reduce import Reduce
from simplifier.linear import constant
from simplifier.substitute import Substitution

MAX_REDUCED: Final = 4
"""Limit on the elements that one element is reduced from."""


def reduction_rule(instruction: Instruction) -> IntegerRule | None:
    """Return the arithmetic of a reduction of few elements each, in any order, or None.

    >>> import hlo, indexing
    >>> root = hlo.parse('''
    ... both { a = pred[] parameter(0)  b = pred[] parameter(1)  ROOT c = pred[] and(a, b) }
    ... ENTRY e { p = pred[5,2] parameter(0)  t = pred[] constant(true)
    ...   ROOT r = pred[5] reduce(p, t), dimensions={1}, to_apply=both }''').entry.root
    >>> reduction_rule(root) is not None
    True
    >>> for operand, read in reduced_elements(root):
    ...     print(operand.name, read)
    t (d0) -> (), domain: d0 in [0, 4]
    p (d0) -> (d0, 0), domain: d0 in [0, 4]
    p (d0) -> (d0, 1), domain: d0 in [0, 4]
    """
    op, computation = instruction.op, instruction.called_computations[0]
    shape = instruction.operands[0].shape
    if not isinstance(op, Reduce) or len(instruction.operands) != 2 or not is_fold(computation):
        return None
    if not isinstance(shape, Shape) or prod(shape.dims[k] for k in op.dimensions) > MAX_REDUCED:
        return None
    return integer_rule(computation.root)


def reduced_elements(instruction: Instruction) -> Iterator[tuple[Instruction, IndexingMap]]:
    """Yield the operand and the map of the initial value and of each element, in order."""
    op = instruction.op
    assert isinstance(op, Reduce)
    values, init = instruction.operands
    reads, initial = op.reads(instruction.shape, (values.shape, init.shape))
    assert isinstance(reads, tuple)
    assert isinstance(initial, tuple)
    yield init, initial[0]
    (read,) = reads
    for place in product(*[range(s.lower, s.upper + 1) for s in read.ranges]):
        swap = Substitution({s: constant(k) for s, k in zip(read.ranges, place, strict=True)})
        yield values, replace(read, ranges=(), results=tuple(map(swap, read.results)))

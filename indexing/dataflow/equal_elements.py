"""Operations on two copies of one integer, such as ``s[i] == s[j]`` where i is j.

Their value is the same for all integers: an integer equals itself, and ``x - x`` is 0.  A number of
another type may be NaN, which does not equal itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hlo.modules.module import Instruction
from hlo.shapes.element_type import range_of
from hlo.shapes.shape import Shape
from indexing.dataflow.constants import is_integral
from indexing.dataflow.conversions import integer_rule
from indexing.dataflow.runtime import source_element
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap, dims
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.interval import contains

MAX_DIFFERENCES: Final = 2
"""Limit on the dimensions in which two elements differ; beyond it, they count as different."""


def where_different(instruction: Instruction, shape: Shape) -> tuple[IndexingMap, ...] | None:
    """Return the parts of a result that depend on its operands: not on two copies of one integer.

    None if all do, or if the function of one integer twice is not constant.

    >>> import hlo, indexing
    >>> root = hlo.parse('''ENTRY e {
    ...   s = s32[3] parameter(0)
    ...   a = s32[3,3] broadcast(s), dimensions={0}
    ...   b = s32[3,3] broadcast(s), dimensions={1}
    ...   ROOT r = pred[3,3] compare(a, b), direction=EQ
    ... }''').entry.root
    >>> print(*[part.simplify() for part in where_different(root, root.shape)], sep="; ")
    (d0, d1) -> (d0, d1), domain: d0 in [0, 1], d1 in [1, 2], d0 - d1 in [-2, -1]; \
(d0, d1) -> (d0, d1), domain: d0 in [1, 2], d1 in [0, 1], d0 - d1 in [1, 2]
    """
    if not _is_constant_of_one(instruction):
        return None
    variables = dims(shape)
    index = [d.as_expr() for d in variables]
    one, other = [source_element(ArrayRef(each), index) for each in instruction.operands]
    if one[0] != other[0]:
        return None
    differences = [a - b for a, b in zip(one[1], other[1], strict=True) if a != b]
    is_never_same = not all(contains(e.bounds, (0, 0)) for e in differences)
    if is_never_same or len(differences) > MAX_DIFFERENCES:
        return None
    same = [Constraint(e, 0, 0) for e in differences]
    return tuple(
        [IndexingMap.of(variables, index, constraints=outside) for outside in complement(same)]
    )


def of_two_integers(instruction: Instruction) -> bool:
    """Return True for an instruction whose operands are two arrays of integers."""
    operands = instruction.operands
    return len(operands) == 2 and all(is_integral(ArrayRef(each)) for each in operands)


def _is_constant_of_one(instruction: Instruction) -> bool:
    """Return True for a function of two integers that is constant if they are equal."""
    if not of_two_integers(instruction):
        return False
    first, second = [each.shape for each in instruction.operands]
    rule = integer_rule(instruction)
    if rule is None or not isinstance(first, Shape) or not isinstance(second, Shape):
        return False
    limits = range_of(first.element_type)
    if limits is None or first.element_type != second.element_type:
        return False
    x = Variable("x", *limits).as_expr()
    cases = rule([x, x])
    return cases is not None and len(cases) == 1 and cases[0][0].is_constant


def complement(constraints: Sequence[Constraint]) -> Iterator[tuple[Constraint, ...]]:
    """Yield disjoint parts that cover the complement of a conjunction."""
    inside: tuple[Constraint, ...] = ()
    for c in constraints:
        low, high = c.expr.bounds
        for first, last in ((low, c.lower - 1), (c.upper + 1, high)):
            if first <= last:
                yield (*inside, Constraint(c.expr, first, last))
        inside = (*inside, c)

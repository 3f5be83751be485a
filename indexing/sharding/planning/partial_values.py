"""Operands that may stay partial: an addition of partial sums gives partial sums.

A function f preserves a reduction ⊕ in a set of operands if ``f(a ⊕ a', b ⊕ b') = f(a, b) ⊕
f(a', b')`` for the operands of the set, the others being fixed.  The element rule decides: copies
preserve every reduction, sums of products the sum in one of the values, and of scalar functions
those of `PRESERVED`.  Sums of floating-point numbers are rounded in another order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from hlo.modules.module import Instruction
from hlo.shapes.shape import ELEMENT_TYPES, Shape
from hlo.shardings.sharding import REDUCTIONS
from indexing.ops.element import CopyRule, ElementOp, ElementwiseRule, ReductionRule

PartialOperands: TypeAlias = Mapping[str, tuple[frozenset[int], ...]]
"""For each reduction, the sets of operands that may stay partial together."""

_ONE, _OTHER, _BOTH = frozenset({0}), frozenset({1}), frozenset({0, 1})

PRESERVED: Final[Mapping[str, PartialOperands]] = {
    "add": {"sum": (_BOTH,)},
    "subtract": {"sum": (_BOTH,)},
    "negate": {"sum": (_ONE,)},
    "multiply": {"sum": (_ONE, _OTHER)},
    "divide": {"sum": (_ONE,)},
    "select": {"sum": (frozenset({1, 2}),)},
    "maximum": {"max": (_BOTH,)},
    "minimum": {"min": (_BOTH,)},
    "and": {"and": (_BOTH,)},
    "or": {"or": (_BOTH,)},
}
"""Scalar functions that preserve a reduction, and in which operands."""

_NOTHING: Final[PartialOperands] = {}


def partial_operands(instruction: Instruction) -> PartialOperands:
    """Return the sets of operands of an instruction that may stay partial.

    >>> import hlo
    >>> entry = hlo.parse('''ENTRY e { p = f32[3,2] parameter(0)
    ...   t = f32[2,3] transpose(p), dimensions={1,0}  ROOT e = f32[2,3] exponential(t) }''').entry
    >>> partial_operands(entry["t"])["sum"], partial_operands(entry["e"])
    ((frozenset({0}),), {})
    """
    op, shape = instruction.op, instruction.shape
    if not isinstance(op, ElementOp) or not isinstance(shape, Shape):
        return _NOTHING
    match op.element(shape, *[operand.shape for operand in instruction.operands]):
        case CopyRule(operands, None, has_padding=False, parts=1, joins_parts=False):
            return {kind: (frozenset(operands),) for kind in REDUCTIONS}
        case ReductionRule((), values, uses_computation=False, is_scatter=False) if values:
            if instruction.called_computations:
                return _NOTHING
            return {"sum": tuple([frozenset({value}) for value in values])}
        case ElementwiseRule(uses_computation=False):
            is_float = ELEMENT_TYPES[shape.element_type].kind in ("floating", "complex")
            if instruction.opcode == "divide" and not is_float:
                return _NOTHING
            return PRESERVED.get(instruction.opcode, _NOTHING)
        case _:
            return _NOTHING

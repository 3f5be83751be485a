"""Operands that may stay partial: an addition of partial sums gives partial sums.

A function f preserves a reduction ⊕ in a set of operands if ``f(a ⊕ a', b ⊕ b') = f(a, b) ⊕
f(a', b')`` for the operands of the set, the others being fixed.  The element rule decides: copies
preserve every reduction, sums of products the sum in one of the values, and of scalar functions
those of `KEPT`, by their laws.  Sums of floating-point numbers are rounded in another order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from hlo.modules.module import Instruction
from hlo.shapes.shape import ELEMENT_TYPES, Shape
from hlo.shardings.sharding import REDUCTIONS
from indexing.ops.element import CopyRule, ElementOp, ElementwiseRule, ReductionRule
from indexing.ops.functions import ScalarFunction
from indexing.sharding.partial_values.laws import laws

PartialOperands: TypeAlias = Mapping[str, tuple[frozenset[int], ...]]
"""For each reduction, the sets of operands that may stay partial together."""

KEPT: Final[Mapping[str, str]] = {
    **dict.fromkeys(("add", "subtract", "negate", "multiply", "divide", "select"), "sum"),
    "maximum": "max",
    "minimum": "min",
    "and": "and",
    "or": "or",
}
"""Scalar functions whose values may stay partial, and with which reduction."""

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
        case ElementwiseRule(function, uses_computation=False) if function is not None:
            return _of_function(instruction, function, shape)
        case _:
            return _NOTHING


def _of_function(
    instruction: Instruction, function: ScalarFunction, shape: Shape
) -> PartialOperands:
    """Return the sets of arguments that a law combines by the same reduction as the values."""
    kept = KEPT.get(instruction.opcode)
    if kept is None:
        return _NOTHING
    types = [
        ELEMENT_TYPES[o.shape.element_type]
        for o in instruction.operands
        if isinstance(o.shape, Shape)
    ]
    sets = [
        frozenset(k for k, reduction in enumerate(law) if reduction)
        for law in laws(function, kept, types, ELEMENT_TYPES[shape.element_type])
        if set(law) <= {"", kept}
    ]
    return {kept: tuple(sets)} if sets else _NOTHING

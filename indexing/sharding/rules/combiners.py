"""The functions that combine the partial results of a reduction."""

from __future__ import annotations

from typing import Final

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import Shape
from hlo.shardings.sharding import REDUCTIONS
from indexing.ops.combiners import COMBINERS as BY_OPCODE
from indexing.ops.element import ReductionRule

COMBINERS: Final = {
    each.reduction: each for each in BY_OPCODE.values() if each.reduction in REDUCTIONS
}
"""The combiner of each reduction that a sharding may name."""

# of predicates, addition and multiplication are the logical functions
_OF_PREDICATES: Final = {"sum": "or", "prod": "and", "max": "or", "min": "and"}


def combiner_of(instruction: Instruction, rule: ReductionRule, output_id: int) -> str | None:
    """Return the name of the function that combines partial results of a reduction, or None."""
    if not rule.uses_computation:
        return "sum"
    return reducing_function(instruction.called_computations[0], output_id)


def reducing_function(computation: Computation, output_id: int) -> str | None:
    """Return the name of the function that a reduction by a computation applies to one result.

    Returns:
        "sum", "prod", "max", "min", "and" or "or"; None for another computation: it may not be
        associative, and the init value would count once for each part.  None also for types without
        a neutral element, such as zero in f8e8m0fnu.

    >>> import hlo
    >>> module = hlo.parse('''
    ... f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(b, a) }
    ... ENTRY e { p = f32[4] parameter(0) z = f32[] constant(0)
    ...   ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=f }''')
    >>> reducing_function(module.computations["f"], 0)
    'max'
    """
    root, count = computation.root, len(computation.parameters) // 2
    if root.opcode != "tuple":
        return _name_of(root, 0, count) if count == 1 else None
    names = [_name_of(value, k, count) for k, value in enumerate(root.operands)]
    return None if None in names or len(names) != count else names[output_id]


def _name_of(value: Instruction, output_id: int, count: int) -> str | None:
    """Return the name of the function of parameters k and `count` + k that gives result k."""
    parameters = value.computation.parameters
    ends = {parameters[output_id], parameters[count + output_id]}
    if len(value.operands) != 2 or set(value.operands) != ends:
        return None
    combiner = BY_OPCODE.get(value.opcode)
    if combiner is None or combiner.reduction not in COMBINERS:
        return None
    name, shape = combiner.reduction, value.shape
    if not isinstance(shape, Shape) or combiner.neutral(shape.element_type) is None:
        return None
    return _OF_PREDICATES.get(name, name) if shape.element_type == "pred" else name

"""The functions that combine the partial results of a reduction."""

from __future__ import annotations

from typing import Final

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import Shape
from indexing.ops.element import ReductionRule

COMPUTATION: Final = "computation"
"""Partial results are combined by the computation that the instruction calls."""
_NAMES: Final = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "and": "and",
    "or": "or",
}
# of predicates, addition and multiplication are the logical functions
_OF_PREDICATES: Final = {"sum": "or", "prod": "and", "max": "or", "min": "and"}


def combiner_of(instruction: Instruction, rule: ReductionRule, output_id: int) -> str | None:
    """Return the name of the function that combines partial results of a reduction.

    Returns:
        "sum", "prod", "max", "min", "and" or "or"; "computation" for another computation of a
        ``reduce``, whose order of steps is not specified; None if parts cannot be combined.

    >>> import hlo
    >>> root = hlo.parse('''
    ... f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(b, a) }
    ... ENTRY e { p = f32[4] parameter(0) z = f32[] constant(0)
    ...   ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=f }''').entry.root
    >>> combiner_of(root, ReductionRule((1,), (0,), uses_computation=True), 0)
    'max'
    """
    if not rule.uses_computation:
        return "sum"
    name = binary_name(instruction.called_computations[0], output_id, len(rule.values))
    return name or (None if rule.is_scatter else COMPUTATION)


def binary_name(computation: Computation, output_id: int, count: int) -> str | None:
    """Return the name of a computation that applies one function to parameters k and count + k."""
    root = computation.root
    if root.opcode == "tuple":
        if any(binary_name_of(value, k, count) is None for k, value in enumerate(root.operands)):
            return None
        return binary_name_of(root.operands[output_id], output_id, count)
    return binary_name_of(root, 0, count) if count == 1 else None


def binary_name_of(value: Instruction, output_id: int, count: int) -> str | None:
    """Return the name of the function that gives `value`, if its arguments are the two values."""
    parameters = value.computation.parameters
    ends = {parameters[output_id], parameters[count + output_id]}
    if len(value.operands) != 2 or set(value.operands) != ends:
        return None
    name = _NAMES.get(value.opcode)
    shape = value.shape
    is_predicate = isinstance(shape, Shape) and shape.element_type == "pred"
    return _OF_PREDICATES.get(name or "", name) if is_predicate else name

"""Conversions of integers that keep every value."""

from __future__ import annotations

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.ops import integer_rules
from indexing.ops.element import ElementRule, ElementwiseRule
from indexing.ops.integer_rules import range_of
from simplifier.interval import contains


def is_conversion(rule: ElementRule) -> bool:
    """Return True if an element is the operand's value converted to another type."""
    function = rule.function if isinstance(rule, ElementwiseRule) else None
    return function is not None and function.integer is integer_rules.identity


def keeps_every_value(convert: Instruction) -> bool:
    """Return True for a value-preserving integer conversion."""
    source, target = convert.operands[0].shape, convert.shape
    if not isinstance(source, Shape) or not isinstance(target, Shape):
        return False
    source_range, target_range = range_of(source.element_type), range_of(target.element_type)
    return (
        source_range is not None
        and target_range is not None
        and contains(target_range, source_range)
    )

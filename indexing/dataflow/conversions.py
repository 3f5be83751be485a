"""Conversions of integers that keep every value."""

from __future__ import annotations

from hlo.modules.module import Instruction
from hlo.shapes.shape import ELEMENT_TYPES, Shape
from indexing.ops import integer_rules
from indexing.ops.element import ElementRule, ElementwiseRule
from indexing.ops.integer_rules import range_of
from simplifier.interval import contains


def is_conversion(rule: ElementRule) -> bool:
    """Return True if an element is the operand's value converted to another type."""
    function = rule.function if isinstance(rule, ElementwiseRule) else None
    return function is not None and function.integer is integer_rules.identity


def is_reinterpreted(instruction: Instruction) -> bool:
    """Return True if an integer has the bits of the operand, an integer of the same width."""
    if instruction.opcode != "bitcast-convert":
        return False
    source, target = instruction.operands[0].shape, instruction.shape
    if not isinstance(source, Shape) or not isinstance(target, Shape):
        return False
    kinds = [ELEMENT_TYPES[each.element_type] for each in (source, target)]
    is_integer = all(each.kind in ("integral", "unsigned") for each in kinds)
    return is_integer and kinds[0].bits == kinds[1].bits


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

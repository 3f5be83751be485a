"""The integer arithmetic of instructions, and the conversions that keep every value."""

from __future__ import annotations

from hlo.modules.module import Instruction
from hlo.shapes.element_type import range_of
from hlo.shapes.shape import ELEMENT_TYPES, Shape
from indexing.ops import integer_rules
from indexing.ops.element import ElementwiseRule, element_of
from indexing.ops.integer_rules import IntegerRule
from simplifier.interval import contains


def integer_rule(instruction: Instruction, output_id: int = 0) -> IntegerRule | None:
    """Return the arithmetic of an instruction whose elements are integers computed from others."""
    rule = element_of(instruction, output_id)
    if isinstance(rule, ElementwiseRule):
        return rule.function.integer if rule.function else None
    return integer_rules.identity if is_reinterpreted(instruction) else None


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


def keeps_every_value(instruction: Instruction) -> bool:
    """Return True for a conversion of integers to a type that has all of their values."""
    rule = element_of(instruction)
    function = rule.function if isinstance(rule, ElementwiseRule) else None
    if function is None or function.integer is not integer_rules.identity:
        return False
    source, target = instruction.operands[0].shape, instruction.shape
    if not isinstance(source, Shape) or not isinstance(target, Shape):
        return False
    source_range, target_range = range_of(source.element_type), range_of(target.element_type)
    return (
        source_range is not None
        and target_range is not None
        and contains(target_range, source_range)
    )

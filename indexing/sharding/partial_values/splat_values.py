"""Arrays whose elements are all the neutral element of a reduction."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, dtype
from indexing.dataflow.constants import literal
from indexing.maps.arrays import ArrayRef, Path, leaf_at
from indexing.ops.base import MappedOp, RoutingOp
from indexing.ops.element import ConstantRule, CopyRule, ElementwiseRule, element_of
from indexing.ops.structured_ops import InlineOp
from indexing.sharding.rules.combiners import COMBINERS


def splat_value(instruction: Instruction, path: Path = ()) -> Any:
    """Return the value that all elements of an array have; None if it is not known.

    >>> import hlo
    >>> text = "ENTRY e { z = f32[] constant(3) ROOT b = f32[2] broadcast(z), dimensions={} }"
    >>> splat_value(hlo.parse(text).entry.root)
    3.0
    """
    while isinstance(instruction.op, RoutingOp):
        operand, path = instruction.op.route(path)
        instruction = instruction.operands[operand]
    if isinstance(instruction.op, InlineOp) or not isinstance(instruction.op, MappedOp) or path:
        return None
    match element_of(instruction):
        case ConstantRule():
            values = literal(ArrayRef(instruction))
            is_splat = values is not None and values.size and (values == values.flat[0]).all()
            return values.flat[0] if values is not None and is_splat else None
        case CopyRule((operand,), None, has_padding=False, parts=1, joins_parts=False):
            return splat_value(instruction.operands[operand])
        case ElementwiseRule(function) if instruction.opcode == "convert" and function is not None:
            (source,) = instruction.operands
            value = splat_value(source)
            if value is None or not isinstance(source.shape, Shape):
                return None
            return function.call(np.asarray(value, dtype(source.shape.element_type))).item()
    return None


def is_neutral(instruction: Instruction, path: Path, reduction: str) -> bool:
    """Return True if all elements of an array are known to be the reduction's neutral element.

    >>> import hlo
    >>> text = "ENTRY e { z = f32[] constant(0) ROOT b = f32[2] broadcast(z), dimensions={} }"
    >>> root = hlo.parse(text).entry.root
    >>> is_neutral(root, (), "sum"), is_neutral(root, (), "prod")
    (True, False)
    """
    value = splat_value(instruction, path)
    if value is None:
        return False
    shape = leaf_at(instruction.shape, path)
    assert isinstance(shape, Shape)
    neutral = COMBINERS[reduction].neutral(shape.element_type)
    return bool(np.asarray(value, dtype(shape.element_type)) == neutral)

"""Conversions between element types: declared types, and the types of totals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from hlo.shapes.shape import ELEMENT_TYPES, dtype
from indexing.codegen.graph import Apply, Node, Reduction, dtype_of
from indexing.codegen.program_arrays import NoLoopNest, ProgramArray
from indexing.maps.answers import Unknown
from indexing.ops.functions import cast
from indexing.ops.numerics import is_integer

F32: Final = np.dtype(np.float32)
TYPE_NAMES: Final = {dtype(name): name for name in ELEMENT_TYPES if name not in ("token", "opaque")}


def require_equal_types(array: ProgramArray, arrays: Sequence[ProgramArray]) -> None:
    """Check that arrays have one element type, where a nest does not convert between precisions.

    Args:
        array: the array that is lowered.
    Raises:
        NoLoopNest: the precisions of floating-point types differ.
    """
    kinds = dict.fromkeys(each.shape.element_type for each in arrays)
    if len(kinds) > 1:
        instruction = array.instruction
        reason = f"{instruction.opcode} `{instruction.name}` mixes {' and '.join(kinds)}"
        raise NoLoopNest(Unknown(reason, instruction))


def convert_node(node: Node, array: ProgramArray) -> Node:
    """Return a node converted to the declared type of an array."""
    if dtype_of(node) == array.dtype:
        return node
    return Apply(cast(array.dtype, array.shape.element_type), (node,), array.name, array.dtype)


def wide_total(array: ProgramArray, reduction: Reduction) -> np.dtype[np.generic] | None:
    """Return the type of totals if wider than the result.

    Sums and products of narrow floats use f32. NumPy has no reductions of integers of 1 to 4 bits,
    which use 8 bits.
    """
    kind, element = array.dtype, ELEMENT_TYPES[array.shape.element_type]
    if element.bits < 8 and is_integer(np.empty(0, kind)):
        is_reducible = reduction.function.ufunc is not None and not reduction.scatter
        return (
            np.dtype(np.uint8 if element.kind == "unsigned" else np.int8) if is_reducible else None
        )
    if kind.kind in "biucO" or kind.itemsize >= 4 or is_integer(np.empty(0, kind)):
        return None
    return None if reduction.scatter or reduction.function.name not in ("+", "*") else F32

"""Comparators of sorts that compare keys: ``f(x) < f(y)`` for the same function f of each side.

Elements are then sorted by their keys, which are computed once for each; another comparator is
asked about pairs of elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlo.modules.module import Computation, Instruction
from indexing.execution.values import Array
from indexing.ops.elementwise import Compare
from indexing.ops.numerics import is_integer, total_order


@dataclass(frozen=True, slots=True)
class SortKey:
    """Elements go in the order of a key, equal ones as they are.

    Attributes:
        operand: the sorted array that keys are made of.
        is_descending: the largest key goes first.
        is_total: floating keys go in the total order, NaN and signed zero included.
        of: keys of the elements of that array.
    """

    operand: int
    is_descending: bool
    is_total: bool
    of: Callable[[Array], Array]

    def order(self, arrays: tuple[Array, ...], axis: int) -> Array:
        """The places of elements in the order of a stable sort along a dimension."""
        keys = self.of(arrays[self.operand])
        if keys.dtype.kind == "b":
            keys = keys.astype(np.int8)
        elif is_integer(keys):
            keys = keys if keys.dtype.kind in "iu" else keys.astype(np.int64)
        elif self.is_total:
            keys = total_order(keys)
        elif keys.dtype.isbuiltin != 1:
            keys = keys.astype(np.float32)
        if self.is_descending:
            keys = -keys if keys.dtype.kind == "f" else ~keys
        return np.argsort(keys, axis, kind="stable")


def sort_key(
    computation: Computation, value_of: Callable[[Instruction, dict[int, Array]], Array]
) -> SortKey | None:
    """The key that a comparator compares; None if it does anything else.

    Args:
        computation: of pairs of scalars, with a pred as its result.
        value_of: the value of an instruction, given parameters by their numbers.
    """
    root = computation.root
    if not isinstance(root.op, Compare) or root.op.direction not in ("LT", "GT"):
        return None
    left, right = (_parameters(operand) for operand in root.operands)
    if len(left) != 1 or len(right) != 1:
        return None
    (first,), (second,) = left, right
    if first // 2 != second // 2 or first == second or not _is_same(*root.operands):
        return None
    side = root.operands[0]
    return SortKey(
        operand=first // 2,
        is_descending=(root.op.direction == "GT") == (first < second),
        is_total=root.op.type == "TOTALORDER",
        of=lambda array: value_of(side, {first: array}),
    )


def _parameters(instruction: Instruction) -> set[int]:
    """The numbers of the parameters that a value depends on."""
    numbers = {parameter: n for n, parameter in enumerate(instruction.computation.parameters)}
    found, pending, seen = set(), [instruction], {instruction}
    while pending:
        last = pending.pop()
        if last in numbers:
            found.add(numbers[last])
        fresh = [operand for operand in last.operands if operand not in seen]
        seen.update(fresh)
        pending.extend(fresh)
    return found


def _is_same(one: Instruction, other: Instruction) -> bool:
    """Both compute the same of their parameters."""
    if one.opcode == "parameter" or one is other:
        return one.opcode == other.opcode
    alike = (one.opcode, one.shape, one.literal) == (other.opcode, other.shape, other.literal)
    alike = alike and one.attributes.keys() - _NAMES == other.attributes.keys() - _NAMES
    if not alike or one.called_computations or len(one.operands) != len(other.operands):
        return False
    given = one.attributes.keys() - _NAMES
    return all(one.attributes[name] == other.attributes[name] for name in given) and all(
        map(_is_same, one.operands, other.operands)
    )


_NAMES: Any = frozenset({"metadata", "frontend_attributes", "backend_config", "origin"})

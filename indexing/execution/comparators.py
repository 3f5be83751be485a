"""Sort comparators of the form ``f(x) < f(y)``: sorting by the key ``f``.

XLA makes a sort stable by a second array: where neither ``f(x) < f(y)`` nor ``f(y) < f(x)``, its
elements are compared.  Keys are computed once per element.  Any other comparator is called for
pairs of elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from hlo.modules.effects import value_attributes
from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import ELEMENT_TYPES, Shape
from indexing.execution.values import Array
from indexing.ops.elementwise import Compare
from indexing.ops.numerics import is_integer, total_order

ValueOf: TypeAlias = "Callable[[Instruction, dict[int, Array]], Array]"

INTEGERS: Final = ("integral", "unsigned", "pred")
"""The kinds of element types whose numbers are all ordered."""


@dataclass(frozen=True, slots=True)
class SortKey:
    """The key of a stable sort.

    Attributes:
        operand: the number of the sorted array that the keys are computed from.
        is_descending: the largest key is first.
        is_total: floating-point keys follow the total order, with NaN and signed zeros.
        of: computes the keys of the elements of that array.
        ties: the key that decides among equal keys; None if the sort keeps their order.
    """

    operand: int
    is_descending: bool
    is_total: bool
    of: Callable[[Array], Array]
    ties: SortKey | None = None

    def order(self, arrays: tuple[Array, ...], axis: int) -> Array:
        """Return the permutation of a stable sort along a dimension, as `numpy.argsort`."""
        keys = self._ascending(arrays)
        if self.ties is None:
            return np.argsort(keys, axis, kind="stable")
        return np.lexsort((self.ties._ascending(arrays), keys), axis)

    def _ascending(self, arrays: tuple[Array, ...]) -> Array:
        """Return keys of which the smallest is first."""
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
        return keys


def sort_key(computation: Computation, value_of: ValueOf) -> SortKey | None:
    """Return the key that a comparator compares, or None if it has another form.

    Args:
        computation: a comparator of pairs of scalars with a ``pred`` result.
        value_of: computes the value of an instruction from parameters by number.
    """
    root = computation.root
    if root.opcode == "select":
        return _key_with_ties(root, value_of)
    return _key_of(root, value_of)


def _key_of(root: Instruction, value_of: ValueOf) -> SortKey | None:
    """Return the key that a comparison compares, or None if it has another form."""
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


def _key_with_ties(root: Instruction, value_of: ValueOf) -> SortKey | None:
    """Return the key of ``select(less == greater, less of ties, less)``.

    NaN is neither less nor greater than a number: keys must be integers, or in the total order.

    Source: XLA ``xla/service/stable_sort_expander.cc``.
    """
    is_tied, ties, less = root.operands
    if not isinstance(is_tied.op, Compare) or is_tied.op.direction != "EQ":
        return None
    if less not in is_tied.operands:
        return None
    greater = is_tied.operands[0 if is_tied.operands[1] is less else 1]
    key, reverse, second = [_key_of(each, value_of) for each in (less, greater, ties)]
    if key is None or reverse is None or second is None:
        return None
    is_reverse = (
        set(less.operands) == set(greater.operands)
        and key.is_descending != reverse.is_descending
        and key.is_total == reverse.is_total
    )
    orders_all = all(
        each.is_total or _compares_integers(comparison)
        for each, comparison in ((key, less), (second, ties))
    )
    return replace(key, ties=second) if is_reverse and orders_all else None


def _compares_integers(comparison: Instruction) -> bool:
    shape = comparison.operands[0].shape
    return isinstance(shape, Shape) and ELEMENT_TYPES[shape.element_type].kind in INTEGERS


def _parameters(instruction: Instruction) -> set[int]:
    """Return the numbers of the parameters that a value depends on."""
    numbers = {parameter: n for n, parameter in enumerate(instruction.computation.parameters)}
    used, pending, seen = set(), [instruction], {instruction}
    while pending:
        last = pending.pop()
        if last in numbers:
            used.add(numbers[last])
        fresh = [operand for operand in last.operands if operand not in seen]
        seen.update(fresh)
        pending.extend(fresh)
    return used


def _is_same(one: Instruction, other: Instruction) -> bool:
    """Return True if both compute the same function of their parameters."""
    pending, compared = [(one, other)], {(one, other)}
    while pending:
        one, other = pending.pop()
        if one is other or one.opcode == other.opcode == "parameter":
            continue
        if not _has_same_op(one, other):
            return False
        fresh = [
            pair for pair in zip(one.operands, other.operands, strict=True) if pair not in compared
        ]
        compared.update(fresh)
        pending.extend(fresh)
    return True


def _has_same_op(one: Instruction, other: Instruction) -> bool:
    """Return True if both apply the same op, without called computations, to their operands."""
    if one.called_computations or len(one.operands) != len(other.operands):
        return False
    if (one.opcode, one.shape, one.literal) != (other.opcode, other.shape, other.literal):
        return False
    return value_attributes(one) == value_attributes(other)

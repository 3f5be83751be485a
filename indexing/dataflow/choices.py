"""Reducers that choose between elements by comparing them, such as that of an argmax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import ELEMENT_TYPES, Shape, dtype
from indexing.dataflow.needed import dependencies_of
from indexing.ops.elementwise import Compare, ElementwiseOp
from indexing.ops.selection import Select

MAX_LEAVES: Final = 3
"""Limit on the arrays that are reduced together."""
_Reducer: TypeAlias = Callable[..., Any]
_TRUTH: Final = -1
"""Stands for a truth value in the place of the number of an array."""


def is_choice(computation: Computation, reducer: _Reducer) -> bool:
    """Return True for a reducer of integers whose results are the same in any order.

    It compares elements of the same array with each other only, and returns elements.  So what it
    does with three elements depends on their order only, and is known from all orders.

    Args:
        reducer: the function of the computation, of arrays of elements.
    """
    return computation.memoised((is_choice,), lambda: _is_choice(computation, reducer))


def _is_choice(computation: Computation, reducer: _Reducer) -> bool:
    parameters, root = computation.parameters, computation.root
    count = len(parameters) // 2
    shapes = [p.shape for p in parameters[:count] if isinstance(p.shape, Shape)]
    results = root.operands if root.opcode == "tuple" else (root,)
    arrays = _array_numbers(computation, count)
    is_of_arrays = [arrays.get(each) for each in results] == list(range(count))
    if not 0 < count <= MAX_LEAVES or len(shapes) < count or not is_of_arrays:
        return False
    types = [dtype(shape.element_type) for shape in shapes]
    orders = np.array(list(product(range(3), repeat=3 * count))).T
    a, b, c = [
        [row.astype(kind) for row, kind in zip(orders[k::3], types, strict=True)] for k in range(3)
    ]

    def choose(first: Sequence[Any], second: Sequence[Any]) -> Sequence[Any]:
        result = reducer(*first, *second)
        return result if isinstance(result, tuple) else (result,)

    laws = [
        (choose(a, b), choose(b, a)),
        (choose(choose(a, b), c), choose(a, choose(b, c))),
    ]
    pairs = [pair for one, other in laws for pair in zip(one, other, strict=True)]
    return all(np.array_equal(one, other) for one, other in pairs)


def _array_numbers(computation: Computation, count: int) -> dict[Instruction, int]:
    """Return the number of the array of which each instruction is an element, or `_TRUTH`.

    Instructions that are neither are left out, and those that depend on them.
    """
    numbers = {p: k % count for k, p in enumerate(computation.parameters)}
    for each in dependencies_of([computation.root]):
        own = [numbers.get(operand) for operand in each.operands]
        if each in numbers or None in own or not isinstance(each.op, ElementwiseOp):
            continue
        number = _number_of_result(each, [n for n in own if n is not None])
        if number is not None:
            numbers[each] = number
    return numbers


def _number_of_result(instruction: Instruction, own: list[int]) -> int | None:
    """Return the number for the result of an op of elements and truth values, or None."""
    if set(own) == {_TRUTH}:
        return _TRUTH if _is_truth_value(instruction) else None
    if isinstance(instruction.op, Compare):
        return _TRUTH if own[0] == own[1] else None
    if isinstance(instruction.op, Select) and own[0] == _TRUTH and own[1] == own[2]:
        return own[1]
    return None


def _is_truth_value(instruction: Instruction) -> bool:
    shape = instruction.shape
    return isinstance(shape, Shape) and ELEMENT_TYPES[shape.element_type].kind == "pred"

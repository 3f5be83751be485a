"""Random operands of an instruction, for validation.

Some are given: the trip count of a loop, and the elements that each iteration reads, follow from
integers such as the first value of a counter, so the maps of a call with a loop hold for the
integers that the program passes, and for no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import ELEMENT_TYPES, Shape, dtype
from indexing.dataflow.constants import is_integral
from indexing.dataflow.copies import source_of
from indexing.dataflow.loops.call_stacks import only_calls
from indexing.dataflow.value_pieces import ValueMaps
from indexing.dataflow.values import value_maps
from indexing.execution.values import random_array
from indexing.maps.answers import Path, Unknown
from indexing.maps.arrays import ArrayRef, array_leaves
from indexing.ops.base import MappedOp

MAX_ELEMENTS: Final = 4096
"""Limit on the elements of an integer array whose formula is evaluated."""


def random_operands(
    instruction: Instruction,
    given: Mapping[tuple[int, Path], np.ndarray],
    random: np.random.Generator,
) -> list[list[np.ndarray]]:
    """Draw the arrays of each operand that are not given.

    An instruction that is several operands has the same arrays in each place.
    """
    operands = instruction.operands
    drawn = [
        [
            given[k, path] if (k, path) in given else random_values(leaf, random)
            for _, path, leaf in array_leaves(operand.shape)
        ]
        for k, operand in enumerate(operands)
    ]
    if isinstance(instruction.op, MappedOp) and all(len(each) == 1 for each in drawn):
        valid = instruction.op.valid_operands([array for (array,) in drawn])
        drawn = [[array] for array in valid]
    first = {operand: k for k, operand in reversed(list(enumerate(operands)))}
    return [drawn[first[operand]] for operand in operands]


def given_operands(instruction: Instruction) -> dict[tuple[int, Path], np.ndarray] | Unknown:
    """Return the integer arrays of the operands that may take no other values.

    Returns:
        Values by operand number and path; none if the instruction executes no loop.  `Unknown` if
        an integer array is neither determined nor a parameter of the program.

    >>> import hlo, indexing
    >>> root = hlo.parse('''
    ... more { s = (s32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
    ...   n = s32[] constant(9)  ROOT r = pred[] compare(i, n), direction=LT }
    ... next { s = (s32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
    ...   one = s32[] constant(1)  j = s32[] add(i, one)  ROOT t = (s32[]) tuple(j) }
    ... f { i = s32[] parameter(0)  s = (s32[]) tuple(i)
    ...   ROOT w = (s32[]) while(s), condition=more, body=next }
    ... ENTRY e { i = s32[] constant(4)  ROOT c = (s32[]) call(i), to_apply=f }''').entry.root
    >>> given_operands(root)
    {(0, ()): array(4, dtype=int32)}
    """
    given: dict[tuple[int, Path], np.ndarray] = {}
    if not any(inner.opcode == "while" for inner in _executed_instructions(instruction)):
        return given
    calls = only_calls(instruction.computation)
    for number, operand in enumerate(instruction.operands):
        for _, path, leaf in array_leaves(operand.shape):
            array = ArrayRef(operand, path, calls)
            if not is_integral(array):
                continue
            values = _values(leaf, value_maps(array))
            if values is not None:
                given[number, path] = values
            elif not _is_parameter(array):
                reason = "the maps of its loop hold for the integers that the program passes"
                return Unknown(f"{reason}, and `{operand.name}` is not constant", operand)
    return given


def _executed_instructions(instruction: Instruction) -> Iterator[Instruction]:
    """Yield the instructions of the computations that an instruction calls, transitively."""
    waiting, seen = list(instruction.called_computations), set[Computation]()
    while waiting:
        computation = waiting.pop()
        if computation not in seen:
            seen.add(computation)
            for inner in computation:
                yield inner
                waiting += inner.called_computations


def _values(shape: Shape, pieces: ValueMaps | None) -> np.ndarray | None:
    """Return the array of which `pieces` are the elements as formulas; None if it is not known."""
    if not pieces or shape.size > MAX_ELEMENTS or any(piece.runtime for piece in pieces):
        return None
    values = np.zeros(shape.dims, dtype(shape.element_type))
    for index in np.ndindex(*shape.dims):
        element = next((v for piece in pieces if (v := piece.evaluate(index)) is not None), None)
        if element is None:
            return None
        values[index] = element[0]
    return values


def _is_parameter(array: ArrayRef) -> bool:
    """Return True for a copy of an array that the program takes."""
    while (source := source_of(array)) is not None:
        array = source
    return array.instruction.opcode == "parameter" and array.instruction.computation.is_entry


def random_values(shape: Shape, random: np.random.Generator) -> np.ndarray:
    """Draw an array as `random_array`, with a larger range of integers, negative ones included."""
    kind, element = dtype(shape.element_type), ELEMENT_TYPES[shape.element_type]
    if element.kind not in ("integral", "unsigned"):
        return random_array(shape, random)
    low = 0 if element.kind == "unsigned" else -2
    high = min(10, 1 << (element.bits - (element.kind == "integral")))
    return np.asarray(random.integers(max(low, -high), high, shape.dims)).astype(kind)

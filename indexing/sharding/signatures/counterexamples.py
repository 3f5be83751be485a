"""Counterexamples: partial values that an instruction does not combine to its result.

The ops' reference kernels compute the result from whole operands, and the parts of the result from
the devices' operands, for random values.  A difference refutes a signature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import Shape, dtype
from indexing.maps.arrays import array_leaves
from indexing.ops.base import Array, MappedOp, RoutingOp
from indexing.ops.element import ConstantRule, ReductionRule, element_of
from indexing.ops.structured_ops import InlineOp, single_ufunc
from indexing.sharding.partial_values.splat_values import splat_value
from indexing.sharding.rules.combiners import COMBINERS, combiner_of
from indexing.sharding.splits.states import ArrayState, shard_size
from indexing.sharding.splits.subjects import Subject, SubjectArray

MAX_ELEMENTS: Final = 1 << 16
"""Limit on the elements of an array that is computed."""
DRAWN_ELEMENTS: Final = 512
"""Number of random elements of the largest array, over several draws."""
MIN_DRAWS, MAX_DRAWS = 4, 16


class NotComputableError(Exception):
    """No kernels compute the values of an instruction."""


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """An element of a result that the devices' parts do not give.

    Attributes:
        result: the number of the result.
        element: the index of the element.
        expected, combined: its value, and that of the combined parts.
    """

    result: int
    element: tuple[int, ...]
    expected: Any
    combined: Any


def counterexample(
    subject: Subject,
    operands: Sequence[ArrayState],
    results: Sequence[ArrayState],
    shards: int,
    random: np.random.Generator,
) -> ValueDifference | None:
    """Return an element of a partial result that the devices do not compute, or None.

    Raises:
        NotComputableError: an instruction has no kernel, an array is too large, or what a device
            computes from shards is not determined.
    """
    fills = _fills(subject, operands, results)
    largest = max([array.shape.size for array in subject.inputs], default=1)
    draws = min(max(MIN_DRAWS, DRAWN_ELEMENTS // max(1, largest)), MAX_DRAWS)
    for draw in range(draws):
        whole, parts = _draw_operands(subject, operands, shards, random, is_extreme=draw % 2 == 1)
        for k, state in enumerate(operands):
            if state.dimension is not None:
                for p, part in enumerate(parts):
                    part[k] = _own_shard(whole[k], state.dimension, p, shards, fills[k])
        expected = _results(subject, whole)
        computed = [_results(subject, part) for part in parts]
        for number, state in enumerate(results):
            if state.reduction:
                function = COMBINERS[state.reduction].function
                with np.errstate(all="ignore"):
                    total = computed[0][number]
                    for each in computed[1:]:
                        total = function(total, each[number])
                if (at := _first_difference(expected[number], total)) is not None:
                    return ValueDifference(number, at, expected[number][at], total[at])
    return None


def _fills(
    subject: Subject, operands: Sequence[ArrayState], results: Sequence[ArrayState]
) -> Mapping[int, Any]:
    """Return the values that stand for elements that a device lacks: they add no terms."""
    fills: dict[int, Any] = {}
    for k, state in enumerate(operands):
        if state.dimension is None:
            continue
        rule = None if subject.computation is not None else element_of(subject.root)
        if not isinstance(rule, ReductionRule) or rule.is_scatter or k not in rule.values:
            raise NotComputableError
        reduction = combiner_of(subject.root, rule, 0)
        if reduction is None or [state.reduction for state in results] != [reduction]:
            raise NotComputableError
        fills[k] = COMBINERS[reduction].neutral(subject.inputs[k].shape.element_type)
    return fills


def _own_shard(array: Array, dimension: int, number: int, shards: int, fill: Any) -> Array:
    size = shard_size(array.shape[dimension], shards)
    own = [slice(None)] * array.ndim
    own[dimension] = slice(number * size, (number + 1) * size)
    local = np.full_like(array, fill)
    local[tuple(own)] = array[tuple(own)]
    return local


def _draw_operands(
    subject: Subject,
    operands: Sequence[ArrayState],
    shards: int,
    random: np.random.Generator,
    *,
    is_extreme: bool,
) -> tuple[list[Array], list[list[Array]]]:
    """Draw whole operands, and the operands of each device."""
    whole: list[Array] = []
    parts: list[list[Array]] = [[] for _ in range(shards)]
    first: dict[tuple[Instruction, Any], int] = {}
    for k, (array, state) in enumerate(zip(subject.inputs, operands, strict=True)):
        source = subject.sources[array.position]
        if array.shape.size > MAX_ELEMENTS:
            raise NotComputableError
        same = first.setdefault((source, array.path), k)
        if same < k and operands[same] == state:
            drawn = [part[same] for part in parts]
        elif state.reduction:
            drawn = [_values(array.shape, random, is_extreme) for _ in range(shards)]
        else:
            value = _constant(source, array)
            drawn = [_values(array.shape, random, False) if value is None else value] * shards
        for part, values in zip(parts, drawn, strict=True):
            part.append(values)
        total = drawn[0]
        if state.reduction:
            function = COMBINERS[state.reduction].function
            with np.errstate(all="ignore"):
                for values in drawn[1:]:
                    total = function(total, values)
        whole.append(np.asarray(total, drawn[0].dtype))
    return whole, parts


def _values(shape: Shape, random: np.random.Generator, is_extreme: bool) -> Array:
    kind = dtype(shape.element_type)
    if kind.kind == "b":
        return np.asarray(random.integers(0, 2, shape.dims), bool)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        low, high = (limits.min, limits.max) if is_extreme else (max(limits.min, -2), 10)
        return np.asarray(random.integers(low, high, shape.dims, dtype=kind, endpoint=True))
    values = np.asarray(random.integers(-20, 20, shape.dims)) / 4
    if kind.kind == "c":
        values = values + 1j * np.asarray(random.integers(-20, 20, shape.dims)) / 4
    return np.asarray(values, kind)


def _constant(source: Instruction, array: SubjectArray) -> Array | None:
    """Return the value of an operand that is a constant, or the same constant everywhere."""
    if isinstance(source.op, MappedOp) and element_of(source) == ConstantRule():
        return np.asarray(source.op.kernel())
    value = splat_value(source, array.path)
    shape = array.shape
    return None if value is None else np.full(shape.dims, value, dtype(shape.element_type))


def _first_difference(expected: Array, combined: Array) -> tuple[int, ...] | None:
    if expected.dtype.kind in "biu":
        differs = expected != combined
    else:
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        values, others = expected.astype(wide), combined.astype(wide)
        differs = np.isfinite(values) & ~np.isclose(values, others, rtol=1e-2, atol=1e-2)
    indices = np.argwhere(differs)
    return tuple(map(int, indices[0])) if len(indices) else None


# ---------------------------------------------------------------- kernels


def _results(subject: Subject, inputs: Sequence[Array]) -> list[Array]:
    arrays: dict[int, Any] = {}
    for position, source in enumerate(subject.sources):
        leaves = [a for a, k in zip(inputs, subject.inputs, strict=True) if k.position == position]
        if len(leaves) != 1 or not isinstance(source.shape, Shape):
            raise NotComputableError
        arrays[position] = leaves[0]
    operands = [arrays[k] for k in range(len(subject.sources))]
    if subject.computation is not None:
        value = _apply_computation(subject.computation, operands)
    else:
        value = _value(subject.root, operands)
    flat = _flatten_value(value)
    return [np.asarray(flat[array.number]) for array in subject.results]


def _flatten_value(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return [leaf for each in value for leaf in _flatten_value(each)]
    return [value]


def _apply_computation(computation: Computation, operands: Sequence[Any]) -> Any:
    values = dict(zip(computation.parameters, operands, strict=True))
    for instruction in computation.instructions:
        if instruction not in values:
            values[instruction] = _value(instruction, [values[o] for o in instruction.operands])
    return values[computation.root]


def _value(instruction: Instruction, operands: Sequence[Any]) -> Any:
    op = instruction.op
    if any(shape.size > MAX_ELEMENTS for _, _, shape in array_leaves(instruction.shape)):
        raise NotComputableError
    if isinstance(op, InlineOp):
        return _apply_computation(instruction.called_computations[0], operands)
    if isinstance(op, RoutingOp):
        return op.kernel(*operands)
    if not isinstance(op, MappedOp):
        raise NotComputableError
    called = [single_ufunc(each) for each in instruction.called_computations]
    if any(function is None for function in called) or len(called) > 1:
        raise NotComputableError
    shapes = [operand.shape for operand in instruction.operands]
    with np.errstate(all="ignore"):
        return op.compute(op.valid_operands(operands), shapes, *called)

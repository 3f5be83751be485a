"""Functions that generated NumPy programs call besides NumPy itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from indexing.codegen.graph import Array
from indexing.ops import folding


def window(
    array: Array,
    start: Sequence[int],
    steps: Sequence[Sequence[int]],
    sizes: Sequence[int],
) -> Array:
    """The view with ``view[i, ..] = array[start + i·steps[0] + ..]``.

    Raises:
        IndexError: an element would lie outside of `array`.

    >>> window(np.arange(5), (0,), ((1,), (2,)), (3, 2))
    array([[0, 2],
           [1, 3],
           [2, 4]])
    """
    if 0 not in sizes:
        for k, size in enumerate(array.shape):
            ends = [start[k], start[k]]
            for step, count in zip(steps, sizes, strict=True):
                ends[step[k] > 0] += step[k] * (count - 1)
            if ends[0] < 0 or ends[1] >= size:
                raise IndexError(f"[{ends[0]}, {ends[1]}] is not in dimension {k} of size {size}")
    else:
        return np.empty(sizes, array.dtype)
    strides = [sum(s * b for s, b in zip(step, array.strides, strict=True)) for step in steps]
    if array.flags.c_contiguous and array.dtype.isbuiltin == 1:  # quicker than the other way
        offset = sum(s * b for s, b in zip(start, array.strides, strict=True))
        return np.ndarray(tuple(sizes), array.dtype, array, offset, strides)
    corner = array[tuple([slice(s, None) for s in start])]
    return np.lib.stride_tricks.as_strided(corner, sizes, strides, writeable=False)


def contract(formula: str, left: Array, right: Array) -> Array:
    """``np.einsum(formula, left, right)`` as one product of matrices.

    >>> contract("ab,bc->ac", np.ones((2, 3)), np.ones((3, 1))).tolist()
    [[3.0], [3.0]]
    """
    plan = _contraction(formula)
    if plan.alone[0]:
        left = np.add.reduce(left, plan.alone[0], dtype=left.dtype)
    if plan.alone[1]:
        right = np.add.reduce(right, plan.alone[1], dtype=right.dtype)
    left, right = left.transpose(plan.orders[0]), right.transpose(plan.orders[1])
    many, batch = left.shape, plan.batch
    rows, columns = many[batch : batch + plan.rows], right.shape[batch + plan.inner :]
    inner = math.prod(many[batch + plan.rows :])
    product: Array = np.matmul(
        left.reshape((*many[:batch], math.prod(rows), inner)),
        right.reshape((*many[:batch], inner, math.prod(columns))),
    )
    return product.reshape((*many[:batch], *rows, *columns)).transpose(plan.out)


@dataclass(frozen=True, slots=True)
class _Contraction:
    """A formula as one matrix product, with axes for batch, rows, inner products and columns.

    Attributes:
        alone: axes of each side that occur nowhere else; they are summed first.
        orders: the permutation of the other axes of each side.
        batch, rows, inner: numbers of axes.
        out: the permutation of the axes of the product.
    """

    alone: tuple[tuple[int, ...], tuple[int, ...]]
    orders: tuple[list[int], list[int]]
    batch: int
    rows: int
    inner: int
    out: list[int]


@lru_cache(maxsize=1 << 10)
def _contraction(formula: str) -> _Contraction:
    inputs, out = formula.split("->")
    left, right = inputs.split(",")
    (alone_left, a), (alone_right, b) = _parted(left, right + out), _parted(right, left + out)
    batch = [x for x in a if x in b and x in out]
    inner = [x for x in a if x in b and x not in out]
    rows, columns = [x for x in a if x not in b], [x for x in b if x not in a]
    product = [*batch, *rows, *columns]
    return _Contraction(
        (alone_left, alone_right),
        (
            list(map(a.index, [*batch, *rows, *inner])),
            list(map(b.index, [*batch, *inner, *columns])),
        ),
        len(batch),
        len(rows),
        len(inner),
        list(map(product.index, out)),
    )


def _parted(axes: str, others: str) -> tuple[tuple[int, ...], str]:
    """The numbers of the axes that are not among `others`, and the axes that are."""
    alone = tuple([k for k, x in enumerate(axes) if x not in others])
    return alone, "".join([x for x in axes if x in others])


def clamped(value: Any, low: int, high: int) -> Any:
    """`value` as indices from `low` to `high`; a number for a number.

    >>> clamped(np.uint8(200), 0, 300), clamped(np.array([-3, 7]), 0, 5)
    (200, array([0, 5]))
    """
    array = np.asarray(value)
    if not array.ndim:
        return min(max(int(array), low), high)
    if array.dtype == np.uint64:
        array = np.minimum(array, np.uint64(max(high, 0)))
    return np.clip(array.astype(np.int64), low, high)


def put(
    function: Any,
    bases: Sequence[Array],
    places: Any,
    where: Any,
    values: Sequence[Any],
    sizes: Sequence[int],
) -> tuple[Array, ...]:
    """Copies of `bases` with `values` folded into the elements at `places`, if `where` holds.

    Places, conditions and values are arrays that broadcast to `sizes`.

    >>> put(np.add, (np.zeros((2, 2)),), np.array([3, 9, 0, 3]), np.array([1, 0, 1, 1]) == 1,
    ...     (np.array([1.0, 2, 3, 4]),), (4,))[0].tolist()
    [[3.0, 0.0], [0.0, 5.0]]
    """
    taken = np.broadcast_to(where, sizes).ravel()
    flat = np.broadcast_to(places, sizes).ravel()[taken]
    folded = [np.broadcast_to(value, sizes).ravel()[taken] for value in values]
    out = [np.array(base).reshape(-1) for base in bases]
    folding.fold_at(function, out, flat, folded)
    return tuple([array.reshape(np.shape(base)) for array, base in zip(out, bases, strict=True)])

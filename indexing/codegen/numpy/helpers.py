"""Run-time support of generated NumPy programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from indexing.codegen.graph import Array
from indexing.ops import reductions


def window(
    array: Array,
    start: Sequence[int],
    steps: Sequence[Sequence[int]],
    sizes: Sequence[int],
) -> Array:
    """Return the view with ``view[i, ..] = array[start + i·steps[0] + ..]``.

    Raises:
        IndexError: the view exceeds the bounds of `array`.

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
                interval = f"[{ends[0]}, {ends[1]}]"
                raise IndexError(f"{interval} exceeds dimension {k} of size {size}")
    else:
        return np.empty(sizes, array.dtype)
    strides = [sum(s * b for s, b in zip(step, array.strides, strict=True)) for step in steps]
    if array.flags.c_contiguous and array.dtype.isbuiltin == 1:  # faster than `as_strided`
        offset = sum(s * b for s, b in zip(start, array.strides, strict=True))
        return np.ndarray(tuple(sizes), array.dtype, array, offset, strides)
    corner = array[tuple([slice(s, None) for s in start])]
    plain = corner if corner.dtype.isbuiltin == 1 else corner.view(f"u{corner.dtype.itemsize}")
    view = np.lib.stride_tricks.as_strided(plain, sizes, strides, writeable=False)
    return view.view(array.dtype)


def contract(formula: str, left: Array, right: Array) -> Array:
    """Return ``np.einsum(formula, left, right)``, computed as one matrix product.

    >>> contract("ab,bc->ac", np.ones((2, 3)), np.ones((3, 1))).tolist()
    [[3.0], [3.0]]
    """
    plan = _contraction(formula)
    if plan.summed[0]:
        left = np.add.reduce(left, plan.summed[0], dtype=left.dtype)
    if plan.summed[1]:
        right = np.add.reduce(right, plan.summed[1], dtype=right.dtype)
    left, right = left.transpose(plan.orders[0]), right.transpose(plan.orders[1])
    sizes, batch = left.shape, plan.batch
    rows, columns = sizes[batch : batch + plan.rows], right.shape[batch + plan.inner :]
    inner = math.prod(sizes[batch + plan.rows :])
    product: Array = np.matmul(
        left.reshape((*sizes[:batch], math.prod(rows), inner)),
        right.reshape((*sizes[:batch], inner, math.prod(columns))),
    )
    return product.reshape((*sizes[:batch], *rows, *columns)).transpose(plan.out)


@dataclass(frozen=True, slots=True)
class _Contraction:
    """An einsum formula as one matrix product with batch, row, inner and column axes.

    Attributes:
        summed: axes of each side that occur nowhere else; they are summed first.
        orders: the permutation of the other axes of each side.
        batch, rows, inner: numbers of axes.
        out: the permutation of the axes of the product.
    """

    summed: tuple[tuple[int, ...], tuple[int, ...]]
    orders: tuple[list[int], list[int]]
    batch: int
    rows: int
    inner: int
    out: list[int]


@lru_cache(maxsize=1 << 10)
def _contraction(formula: str) -> _Contraction:
    inputs, out = formula.split("->")
    left, right = inputs.split(",")
    (summed_left, a), (summed_right, b) = (
        _split_axes(left, right + out),
        _split_axes(right, left + out),
    )
    batch = [x for x in a if x in b and x in out]
    inner = [x for x in a if x in b and x not in out]
    rows, columns = [x for x in a if x not in b], [x for x in b if x not in a]
    product = [*batch, *rows, *columns]
    return _Contraction(
        (summed_left, summed_right),
        (
            list(map(a.index, [*batch, *rows, *inner])),
            list(map(b.index, [*batch, *inner, *columns])),
        ),
        len(batch),
        len(rows),
        len(inner),
        list(map(product.index, out)),
    )


def _split_axes(axes: str, others: str) -> tuple[tuple[int, ...], str]:
    """Return the positions of the axes that are not in `others`, and the axes that are."""
    missing = tuple([k for k, x in enumerate(axes) if x not in others])
    return missing, "".join([x for x in axes if x in others])


def put(
    function: Any,
    bases: Sequence[Array],
    positions: Any,
    where: Any,
    values: Sequence[Any],
    sizes: Sequence[int],
) -> tuple[Array, ...]:
    """Return copies of `bases` with `values` reduced into the elements at `positions`.

    Args:
        function: combines the elements with the values.
        bases: the initial arrays.
        positions: row-major positions in `bases`; broadcast to `sizes`, as the following.
        where: the mask of the values to reduce.
        values: one array for each base.
        sizes: the sizes of the loops over the values.

    >>> put(np.add, (np.zeros((2, 2)),), np.array([3, 9, 0, 3]), np.array([1, 0, 1, 1]) == 1,
    ...     (np.array([1.0, 2, 3, 4]),), (4,))[0].tolist()
    [[3.0, 0.0], [0.0, 5.0]]
    """
    mask = np.broadcast_to(where, sizes).ravel()
    flat = np.broadcast_to(positions, sizes).ravel()[mask]
    reduced = [np.broadcast_to(value, sizes).ravel()[mask] for value in values]
    out = [np.array(base).reshape(-1) for base in bases]
    reductions.reduce_at(function, out, flat, reduced)
    return tuple([array.reshape(np.shape(base)) for array, base in zip(out, bases, strict=True)])

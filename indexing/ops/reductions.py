"""Reductions of arrays by a computation, by a NumPy ufunc if the computation is one.

HLO does not specify the order in which elements are reduced, nor how often the init value is used
(XLA ``docs/operation_semantics.md``, "Reduce").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from indexing.ops.numerics import is_integer, wrap_integers

Array: TypeAlias = NDArray[Any]
ScalarCallable: TypeAlias = Callable[..., Any]

MAX_BLOCK: Final = 1 << 26
"""Limit on the elements that one call of NumPy reduces."""

MAX_SEQUENTIAL: Final = 4096
"""Maximum number of rows that are reduced in sequence, as XLA's CPU backend does; more are reduced
in pairs."""


def ufunc_of(to_apply: ScalarCallable) -> np.ufunc | None:
    """The NumPy ufunc that a called computation is equal to, or None."""
    ufunc = to_apply if isinstance(to_apply, np.ufunc) else getattr(to_apply, "ufunc", None)
    return ufunc if isinstance(ufunc, np.ufunc) else None


def returns_second(to_apply: ScalarCallable) -> bool:
    """Return True if a computation of two values is known to return the second one."""
    return bool(getattr(to_apply, "returns_second", False))


def widen(array: Array) -> Array:
    """Convert an array to the type in which it is accumulated.

    Floating-point types below 32 bits become f32. Integer types that NumPy lacks become s64.
    """
    if array.dtype.kind in "biucO" or array.dtype.itemsize >= 4:
        return array
    return array.astype(np.int64 if is_integer(array) else np.float32)


def narrow(wide: Array, dtype: np.dtype[Any]) -> Array:
    """Convert an accumulated array back to `dtype`; integers wrap around."""
    is_small = dtype.kind not in "biuc" and is_integer(np.empty(0, dtype))
    return wrap_integers(wide, dtype) if is_small else wide.astype(dtype, copy=False)


def reduce_axes(ufunc: np.ufunc, init: Array, values: Array, axes: tuple[int, ...]) -> Array:
    """Reduce `values` along `axes`; the result has the type of `values`.

    >>> reduce_axes(np.add, np.int8(1), np.array([[1, 2], [3, 4]], np.int8), (0,))
    array([5, 7], dtype=int8)
    """
    with np.errstate(all="ignore"):
        if axes and values.size > MAX_BLOCK:
            total = _reduced_by_halves(ufunc, values, axes)
            return narrow(np.asarray(ufunc(init.astype(total.dtype), total)), values.dtype)
        wide = widen(values)
        if not axes:
            return narrow(np.asarray(ufunc(widen(init), wide)), values.dtype)
        start = init.astype(wide.dtype)
        total = ufunc.reduce(wide, axes, dtype=wide.dtype, initial=start)
        return narrow(np.asarray(total), values.dtype)


def _reduced_by_halves(ufunc: np.ufunc, values: Array, axes: tuple[int, ...]) -> Array:
    """Reduce a large array block by block; the result has the wide type.

    Signals are handled between blocks, and only one block is converted to the wide type.
    """
    if values.size <= MAX_BLOCK:
        wide = widen(values)
        return np.asarray(ufunc.reduce(wide, axes, dtype=wide.dtype))
    axis = int(np.argmax(values.shape))
    lower, upper = np.split(values, [values.shape[axis] // 2], axis)
    halves = [_reduced_by_halves(ufunc, half, axes) for half in (lower, upper)]
    if axis in axes:
        return np.asarray(ufunc(*halves))
    return np.concatenate(halves, axis - sum(k < axis for k in axes))


def reduce_rows(
    to_apply: ScalarCallable, inits: Sequence[Array], rows: Sequence[Array]
) -> list[Array]:
    """Reduce the leading dimension of `rows` into `inits`.

    A variadic computation reduces several arrays together.
    """
    count = rows[0].shape[0]
    if count > MAX_SEQUENTIAL:
        return _apply_scalar(to_apply, inits, [row[0] for row in _in_pairs(to_apply, rows)])
    totals = list(inits)
    for values in zip(*rows, strict=True):
        totals = _apply_scalar(to_apply, totals, values)
    return [np.asarray(total) for total in totals]


def _in_pairs(to_apply: ScalarCallable, rows: Sequence[Array]) -> Sequence[Array]:
    """Reduce neighbouring rows in pairs, in order, until one row remains."""
    while (count := rows[0].shape[0]) > 1:
        even = count - count % 2
        left, right = [row[0:even:2] for row in rows], [row[1:even:2] for row in rows]
        paired = _apply_scalar(to_apply, left, right)
        rest = [row[even:] for row in rows]
        rows = [np.concatenate(both) for both in zip(paired, rest, strict=True)]
    return rows


def _apply_scalar(
    to_apply: ScalarCallable, totals: Sequence[Array], values: Sequence[Array]
) -> list[Array]:
    results = to_apply(*totals, *values)
    return [np.asarray(array) for array in (results if isinstance(results, tuple) else [results])]


# ---------------------------------------------------------------- reduction at indices


def reduce_at(
    to_apply: ScalarCallable, out: list[Array], indices: Array, values: Sequence[Array]
) -> None:
    """Reduce ``values[n]`` into ``out[indices[n]]`` for each n in order; all arrays have rank 1.

    A variadic computation reduces several arrays together. Values for distinct indices are reduced
    in one vectorised step.

    >>> totals = np.array([1, 2, 3])
    >>> reduce_at(np.add, [totals], np.array([0, 2, 0]), [np.array([10, 20, 30])])
    >>> totals
    array([41,  2, 23])
    """
    ufunc = ufunc_of(to_apply)
    with np.errstate(all="ignore"):
        if ufunc is not None and len(out) == 1:
            total = out[0] if out[0].dtype.isbuiltin == 1 else widen(out[0])
            ufunc.at(total, indices, values[0].astype(total.dtype, copy=False))
            out[0][...] = narrow(total, out[0].dtype)
            return
        if returns_second(to_apply):
            out[0][indices] = values[0]  # the last value for an index wins
            return
        for batch in _distinct_batches(indices):
            old = [array[indices[batch]] for array in out]
            new = _apply_scalar(to_apply, old, [array[batch] for array in values])
            for array, value in zip(out, new, strict=True):
                array[indices[batch]] = value


def _distinct_batches(indices: Array) -> list[Array]:
    """Split the positions of `indices` into batches of distinct indices.

    The k-th occurrence of an index is in batch k, so that the batches keep the order.
    """
    order = np.argsort(indices, kind="stable")
    is_first = np.ones(len(indices), bool)
    is_first[1:] = indices[order][1:] != indices[order][:-1]
    begin = np.maximum.accumulate(np.where(is_first, np.arange(len(indices)), 0))
    batch = np.empty(len(indices), np.int64)
    batch[order] = np.arange(len(indices)) - begin
    by_batch = np.argsort(batch, kind="stable")
    return np.split(by_batch, np.cumsum(np.bincount(batch))[:-1]) if len(indices) else []

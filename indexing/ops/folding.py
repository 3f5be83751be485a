"""Folding by a computation: quickly where it is one of NumPy's functions, in pairs where it is not.

HLO leaves the order open in which a computation folds elements, and how often the init value goes
in (XLA ``docs/operation_semantics.md``, "Reduce").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from indexing.ops.numerics import is_integer, wrapped

Array: TypeAlias = NDArray[Any]
Computation: TypeAlias = Callable[..., Any]

IN_ORDER: Final = 4096
"""So many rows are folded one after the other, as XLA's CPU backend does; more of them in pairs."""


def ufunc_of(to_apply: Computation) -> np.ufunc | None:
    """The NumPy function that a called computation is, if it is just one; None if it is not."""
    found = to_apply if isinstance(to_apply, np.ufunc) else getattr(to_apply, "ufunc", None)
    return found if isinstance(found, np.ufunc) else None


def picks_update(to_apply: Computation) -> bool:
    """Says that a computation of two values is known to give the second one."""
    return bool(getattr(to_apply, "picks_second", False))


def widened(array: Array) -> Array:
    """Floating numbers of less than 32 bits as those of 32: sums are kept in these. Integers that
    NumPy lacks as those of 64 bits."""
    if array.dtype.kind in "biucO" or array.dtype.itemsize >= 4:
        return array
    return array.astype(np.int64 if is_integer(array) else np.float32)


def narrowed(wide: Array, dtype: np.dtype[Any]) -> Array:
    """The reverse of `widened`; integers wrap around."""
    is_small = dtype.kind not in "biuc" and is_integer(np.empty(0, dtype))
    return wrapped(wide, dtype) if is_small else wide.astype(dtype, copy=False)


def reduced(ufunc: np.ufunc, init: Array, values: Array, axes: tuple[int, ...]) -> Array:
    """`values` folded along some dimensions, in the values' own type.

    >>> reduced(np.add, np.int8(1), np.array([[1, 2], [3, 4]], np.int8), (0,))
    array([5, 7], dtype=int8)
    """
    wide = widened(values)
    with np.errstate(all="ignore"):
        if not axes:
            return narrowed(np.asarray(ufunc(widened(init), wide)), values.dtype)
        start = init.astype(wide.dtype)
        total = ufunc.reduce(wide, axes, dtype=wide.dtype, initial=start)
        return narrowed(np.asarray(total), values.dtype)


def folded(to_apply: Computation, inits: Sequence[Array], rows: Sequence[Array]) -> list[Array]:
    """The leading dimension of `rows` folded into `inits`; several arrays go in step."""
    count = rows[0].shape[0]
    if count > IN_ORDER:
        return _applied(to_apply, inits, [row[0] for row in _in_pairs(to_apply, rows)])
    totals = list(inits)
    for values in zip(*rows, strict=True):
        totals = _applied(to_apply, totals, values)
    return [np.asarray(total) for total in totals]


def _in_pairs(to_apply: Computation, rows: Sequence[Array]) -> Sequence[Array]:
    """The rows folded to one: each with its neighbour, until one is left; their order stays."""
    while (count := rows[0].shape[0]) > 1:
        even = count - count % 2
        left, right = [row[0:even:2] for row in rows], [row[1:even:2] for row in rows]
        paired = _applied(to_apply, left, right)
        rest = [row[even:] for row in rows]
        rows = [np.concatenate(both) for both in zip(paired, rest, strict=True)]
    return rows


def _applied(
    to_apply: Computation, totals: Sequence[Array], values: Sequence[Array]
) -> list[Array]:
    found = to_apply(*totals, *values)
    return [np.asarray(array) for array in (found if isinstance(found, tuple) else [found])]


# ---------------------------------------------------------------- folding into places


def put(to_apply: Computation, out: list[Array], places: Array, values: Sequence[Array]) -> None:
    """Folds ``values[n]`` into ``out[places[n]]``, for each n in order; all arrays have rank 1.

    Several arrays go in step. What goes to different places is folded at once.

    >>> totals = np.array([1, 2, 3])
    >>> put(np.add, [totals], np.array([0, 2, 0]), [np.array([10, 20, 30])])
    >>> totals
    array([41,  2, 23])
    """
    ufunc = ufunc_of(to_apply)
    with np.errstate(all="ignore"):
        if ufunc is not None and len(out) == 1:
            total = out[0] if out[0].dtype.isbuiltin == 1 else widened(out[0])
            ufunc.at(total, places, values[0].astype(total.dtype, copy=False))
            out[0][...] = narrowed(total, out[0].dtype)
            return
        if picks_update(to_apply):
            out[0][places] = values[0]  # of several values for one place the last one stays
            return
        for turn in _turns(places):
            old = [array[places[turn]] for array in out]
            new = _applied(to_apply, old, [array[turn] for array in values])
            for array, value in zip(out, new, strict=True):
                array[places[turn]] = value


def _turns(places: Array) -> list[Array]:
    """The numbers of `places` in groups: in each all are different, and earlier ones go first."""
    order = np.argsort(places, kind="stable")
    is_first = np.ones(len(places), bool)
    is_first[1:] = places[order][1:] != places[order][:-1]
    begin = np.maximum.accumulate(np.where(is_first, np.arange(len(places)), 0))
    turn = np.empty(len(places), np.int64)
    turn[order] = np.arange(len(places)) - begin
    by_turn = np.argsort(turn, kind="stable")
    return np.split(by_turn, np.cumsum(np.bincount(turn))[:-1]) if len(places) else []

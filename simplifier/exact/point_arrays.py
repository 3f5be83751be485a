"""Arrays of the values of variables and affine expressions at many points.

`number_type` returns the smallest integer type without overflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from simplifier.atoms import Atom, Floor, Variable
from simplifier.constraints import Constraint
from simplifier.interval import Interval
from simplifier.linear import Expr, from_atom
from simplifier.samples import MAX_KEPT_EXPRS, Samples
from simplifier.semiaffine import SemiAffine
from simplifier.shared import atoms_in_order, is_deep

Array: TypeAlias = npt.NDArray[Any]

_FRACTIONS: Final = (0, 0.29, 0.62, 1)
"""Which of many points to evaluate first, one by one: they refute most facts."""


class PointArrays:
    """Many points: an array of values for each variable and each affine expression.

    Each variable has all of its values at the points, which are counted by a `shape` of one
    dimension, or its values along an axis of its own: the arrays broadcast to `shape` as in NumPy.
    """

    __slots__ = ("_arrays", "_bounds", "_variables", "shape")

    def __init__(self, variables: Mapping[Variable, Array], shape: tuple[int, ...]) -> None:
        self.shape = shape
        self._variables = variables
        self._arrays: dict[Atom, Array] = dict(variables.items())
        self._bounds: dict[Expr, Interval] = {}

    def values(self, expr: Expr) -> Array:
        """The values of `expr` at the points; not to be changed."""
        arrays = [
            self._of_atom(atom) if c == 1 else self._of_atom(atom) * c
            for atom, c in expr.parts.items()
        ]
        if not arrays:
            return np.asarray(expr.constant)
        if len(arrays) > 1:
            arrays.sort(key=lambda array: array.size)  # add those along one axis first
        total = arrays[0] + expr.constant if expr.constant else arrays[0]
        for array in arrays[1:]:
            total = total + array
        return total

    def _of_atom(self, atom: Atom) -> Array:
        array = self._arrays.get(atom)
        if array is None:
            assert isinstance(atom, Floor), f"{from_atom(atom)} is not affine"
            array = self._arrays[atom] = self.values(atom.numerator) // atom.divisor
        return array

    def bounds(self, expr: Expr) -> Interval:
        """The minimum and maximum of `expr`; there must be points."""
        bounds = self._bounds.get(expr)
        if bounds is None:
            if len(self._bounds) >= MAX_KEPT_EXPRS:
                self._bounds.clear()
                self._arrays = dict(self._variables.items())
            values = self.values(expr)
            bounds = self._bounds[expr] = int(values.min()), int(values.max())
        return bounds

    def samples(self) -> Samples:
        """A few of the points."""
        last = prod(self.shape) - 1
        chosen = sorted({int(last * fraction) for fraction in _FRACTIONS})
        arrays = self._values_at(np.array(chosen))
        return Samples({v: array.tolist() for v, array in arrays.items()})

    def violations(self, constraints: Sequence[Constraint]) -> Array:
        """For each constraint, an array: true at the points that violate it."""
        broken = np.zeros((len(constraints), *self.shape), np.bool_)
        for k, constraint in enumerate(constraints):
            own, values = broken[k, ...], self.values(constraint.expr)
            low, high = constraint.expr.bounds
            if low < constraint.lower:
                own |= values < constraint.lower
            if high > constraint.upper:
                own |= values > constraint.upper
        return broken

    def at(self, positions: Array) -> PointArrays:
        """The points at `positions`, which count them in the order of `shape`."""
        if positions.size == prod(self.shape):
            return self
        return PointArrays(self._values_at(positions), positions.shape)

    def of_type(self, number: type) -> PointArrays:
        """The same points, with values of the type `number`."""
        if all(array.dtype == number for array in self._variables.values()):
            return self
        pairs = self._variables.items()
        arrays: dict[Variable, Array] = {v: a.astype(number, copy=False) for v, a in pairs}
        return PointArrays(arrays, self.shape)

    def rename(self, old: Iterable[Variable], new: Iterable[Variable]) -> PointArrays:
        """The same points with `new` variables for the `old` ones, in order."""
        pairs = zip(old, new, strict=True)
        return PointArrays({now: self._variables[v] for v, now in pairs}, self.shape)

    def _values_at(self, positions: Array) -> dict[Variable, Array]:
        if len(self.shape) == 1:
            return {v: array[positions] for v, array in self._variables.items()}
        along = np.unravel_index(positions, self.shape) if self.shape else ()
        pairs = zip(self._variables.items(), along, strict=True)
        return {v: array.ravel()[own] for (v, array), own in pairs}


def box_arrays(variables: Sequence[Variable], number: type) -> PointArrays:
    """All points of the box of `variables`; each variable is an axis."""
    arrays: dict[Variable, Array] = {}
    for k, v in enumerate(variables):
        along: Array = np.arange(v.lower, v.upper + 1, dtype=number)
        arrays[v] = along.reshape([-1 if j == k else 1 for j in range(len(variables))])
    return PointArrays(arrays, tuple([v.size for v in variables]))


def number_type(exprs: Iterable[Expr]) -> type:
    """The smallest integer type for the values of `exprs` and all intermediate values.

    >>> d0 = Variable("d0", 0, 9).as_expr()
    >>> number_type([d0 * 2]), number_type([d0 * 2**31]), number_type([(d0 * 2**62 + 1) // 3])
    (<class 'numpy.int32'>, <class 'numpy.int64'>, <class 'object'>)
    """
    largest = max(map(_largest, exprs), default=0)
    if largest <= _MAX_INT32:
        return np.int32
    return np.int64 if largest <= _MAX_INT64 else object


_MAX_INT32: Final = (1 << 31) - 1
_MAX_INT64: Final = (1 << 63) - 1


def size_bits(expr: Expr) -> int:
    """Number of bits of the largest absolute value that occurs in the evaluation of `expr`."""
    return _largest(expr).bit_length()


@lru_cache(maxsize=1 << 11)
def _largest(expr: Expr) -> int:
    """An upper bound of the absolute values that occur in the evaluation of `expr`."""
    if is_deep(expr):
        below = [operand for atom in atoms_in_order([expr]) for operand in atom.operands]
        return max(_largest_of([], part) for part in (expr, *below))
    return _largest_of([o for atom in expr.parts for o in atom.operands], expr)


def _largest_of(operands: Iterable[Expr], expr: Expr) -> int:
    """The same of `expr` without the operands of its atoms, and of `operands`."""
    total, inside = abs(expr.constant), max(map(_largest, operands), default=0)
    for atom, coefficient in expr.parts.items():
        low, high = atom.bounds
        total += abs(coefficient) * max(1, abs(low), abs(high))
        if isinstance(atom, Floor):
            inside = max(inside, atom.divisor)
        elif isinstance(atom, SemiAffine) and atom.operator == "*":
            factors = [max(1, *map(abs, operand.bounds)) for operand in atom.operands]
            inside = max(inside, prod(factors))
    return max(total, inside)

"""Expressions as ``shift + rest``: a part of the tile index alone, and a part inside of the tile.

An index of a tile is ``d = ts·tid + e`` with ``0 <= e < ts``.  Most results of maps separate into a
translation that depends on the tile index only, and a rest that is equal for all tiles.  Floors and
constraints that mix both depend on few values of the tile index, which are `Key`s:

    floor((T + M) / d) = floor(T / d) + floor((T mod d + M) / d)

Tiles with equal keys read translates of the same set.

>>> tid, e = Variable("tid_0", 0, 9), Variable("e_0", 0, 4)
>>> separator = Separator([tid])
>>> shift, rest = separator((tid * 5 + e) // 4)
>>> print(shift, "|", rest, "|", *separator.keys)
(tid_0 * 5) floordiv 4 | (e_0 + key_0) floordiv 4 | key_0 = tid_0 mod 4
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simplifier.atoms import Atom, Floor, Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr, from_atom
from simplifier.substitute import Substitution

Values = NDArray[np.int64]


@dataclass(frozen=True)
class Key:
    """A value of the tile index on which the set of a tile depends, besides its translation.

    Attributes:
        variable: stands for the value in expressions of one tile.
        expr: the value, over the tile index.
        representatives: ``(low, high, value)``: values in ``[low, high]`` act as `value`.
    """

    variable: Variable
    expr: Expr
    representatives: tuple[tuple[int, int, int], ...] = ()

    def values(self, at: Mapping[Variable, Any], count: int) -> Values:
        """Return the value for each tile; equivalent values are equal.

        Args:
            at: the values of the tile index, one for each tile.
            count: the number of tiles.
        """
        values = np.broadcast_to(np.asarray(self.expr.value(at), np.int64), count)
        result = values.copy()
        for low, high, representative in self.representatives:
            result[(values >= low) & (values <= high)] = representative
        return result

    def __str__(self) -> str:
        return f"{self.variable.name} = {self.expr}"


class Separator:
    """Separates expressions over a tile index and variables inside of the tile.

    Attributes:
        keys: the keys of all expressions that were separated.
    """

    def __init__(self, tile_index: Collection[Variable]) -> None:
        self._tile_index = set(tile_index)
        self._separated: dict[Atom, tuple[Expr, Expr]] = {}
        self.keys: list[Key] = []

    def __call__(self, expr: Expr) -> tuple[Expr, Expr]:
        """Return ``(shift, rest)`` with ``expr = shift + rest``; `rest` may have keys."""
        shift, rest = as_expr(0), as_expr(expr.constant)
        for atom, coefficient in expr.terms:
            outside, inside = self._atom(atom)
            shift += outside * coefficient
            rest += inside * coefficient
        return shift - shift.constant, rest + shift.constant

    def constraint(self, constraint: Constraint) -> Constraint:
        """Return the constraint with a key for its part of the tile index."""
        shift, rest = self(constraint.expr)
        if shift.is_constant:
            return Constraint(rest + shift, constraint.lower, constraint.upper)
        (low, high), (least, most) = rest.bounds, shift.bounds
        lower, upper = constraint.lower, constraint.upper
        equivalent = []
        if lower - low <= upper - high:  # always true
            equivalent.append((lower - low, upper - high, lower - low))
        if least < lower - high:  # always false
            equivalent.append((least, lower - high - 1, lower - high - 1))
        if most > upper - low:
            equivalent.append((upper - low + 1, most, upper - low + 1))
        bounds = min(least, lower - high - 1), max(most, upper - low + 1)
        key = self._key(shift, bounds, equivalent)
        return Constraint(rest + key, constraint.lower, constraint.upper)

    def _atom(self, atom: Atom) -> tuple[Expr, Expr]:
        if atom not in self._separated:
            self._separated[atom] = self._parts(atom)
        return self._separated[atom]

    def _parts(self, atom: Atom) -> tuple[Expr, Expr]:
        used = {atom} if isinstance(atom, Variable) else set(from_atom(atom).variables())
        if used <= self._tile_index:
            return from_atom(atom), as_expr(0)
        if used.isdisjoint(self._tile_index):
            return as_expr(0), from_atom(atom)
        if isinstance(atom, Floor):
            return self._floor(atom.numerator, atom.divisor)
        return as_expr(0), self._with_keys(atom)

    def _floor(self, numerator: Expr, divisor: int) -> tuple[Expr, Expr]:
        shift, rest = self(numerator)
        low, high = rest.bounds
        shift, rest, width = shift + low, rest - low, high - low
        residue = shift % divisor
        whole = shift // divisor
        if residue.is_constant:
            return whole, (rest + residue) // divisor
        without_carry = [(0, divisor - 1 - width, 0)] if width < divisor else []
        key = self._key(residue, (0, divisor - 1), without_carry)
        return whole, (rest + key) // divisor

    def _with_keys(self, atom: Atom) -> Expr:
        """The atom with a key for each variable of the tile index."""
        used = [v for v in from_atom(atom).variables() if v in self._tile_index]
        keys = {v: self._key(v.as_expr(), v.bounds, []) for v in used}
        return Substitution(keys)(from_atom(atom))

    def _key(
        self, expr: Expr, bounds: tuple[int, int], equivalent: list[tuple[int, int, int]]
    ) -> Expr:
        variable = Variable(f"key_{len(self.keys)}", *bounds)
        self.keys.append(Key(variable, expr, tuple(equivalent)))
        return variable.as_expr()

"""Convex sets of isl as rows of numbers, from which other sets and maps are read.

A call that takes an isl object leaks (see `simplifier.exact.context`).  Numbers are asked, and a
projection is another order of columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import islpy as isl

from simplifier.exact.context import numerator
from simplifier.exact.matrices import ConstraintMatrix
from simplifier.linear import Affine, Expr, as_expr, constant

Row: TypeAlias = tuple[int, ...]
"""The coefficients of the coordinates and of the divisions, then the constant."""


@dataclass(frozen=True, slots=True)
class Divisions:
    """The divisions ``floor(row / divisor)`` of a set or of a function.

    Attributes:
        rank: the number of coordinates.
        rows: pairs ``(row, divisor)``; a row has the coefficients of the divisions before it.
    """

    rank: int
    rows: tuple[tuple[Row, int], ...]

    @classmethod
    def of(cls, source: isl.Aff | isl.Constraint, rank: int) -> Divisions:
        """Return the divisions of a function or of the set of a constraint."""
        divisions = [source.get_div(k) for k in range(source.dim(isl.dim_type.div))]
        divisors = [numerator(each.get_denominator_val()) for each in divisions]
        rows = [
            _row(aff, isl.dim_type.in_, rank, d) for aff, d in zip(divisions, divisors, strict=True)
        ]
        return cls(rank, tuple(zip(rows, divisors, strict=True)))

    def value(self, row: Row, coordinates: Sequence[Affine]) -> Expr:
        """Return the value of a row, which has only the coordinates that are given: the first.

        >>> from simplifier.atoms import Variable
        >>> divisions = Divisions(1, (((1, 0, 2), 4),))
        >>> divisions.value((-1, 3, 5), [Variable("d0", 0, 9)])
        Expr('-d0 + ((d0 + 2) floordiv 4) * 3 + 5')
        """
        total = constant(row[-1])
        for coefficient, coordinate in zip(row, coordinates, strict=False):
            total = total + as_expr(coordinate) * coefficient
        for coefficient, (numerators, divisor) in zip(row[self.rank : -1], self.rows, strict=True):
            if coefficient:
                total = total + self.value(numerators, coordinates) // divisor * coefficient
        return total

    def last_coordinate(self, row: Row) -> int:
        """Return the number of the last coordinate that a row depends on, or -1."""
        own = [k for k in range(self.rank) if row[k]]
        divided = [n for c, (n, _) in zip(row[self.rank : -1], self.rows, strict=True) if c]
        return max([*own, *map(self.last_coordinate, divided)], default=-1)


@dataclass(frozen=True, slots=True)
class ConvexSet:
    """The integer points that satisfy affine constraints with explicit divisions.

    Attributes:
        constraints: pairs ``(row, is_equality)`` of ``row = 0`` or ``row >= 0``.
    """

    divisions: Divisions
    constraints: tuple[tuple[Row, bool], ...]

    @classmethod
    def of(cls, points: isl.BasicSet) -> ConvexSet:
        """Return the rows of an isl set whose divisions are explicit.

        >>> text = "{ [i] : 0 <= i <= 9 and i mod 3 = 0 }"
        >>> part, = isl.Set.read_from_str(isl.Context(), text).compute_divs().get_basic_sets()
        >>> print(*ConvexSet.of(part).constraints)
        ((-1, 3, 0), True) ((1, 0, 0), False) ((-1, 0, 9), False)
        """
        rank = points.dim(isl.dim_type.set)
        constraints = points.get_constraints()
        divisions = Divisions.of(constraints[0], rank) if constraints else Divisions(rank, ())
        rows = [_row(each, isl.dim_type.set, rank) for each in constraints]
        equal = [bool(each.is_equality()) for each in constraints]
        return cls(divisions, tuple(zip(rows, equal, strict=True)))

    @property
    def rank(self) -> int:
        """The number of coordinates."""
        return self.divisions.rank

    def definition(self, k: int, coordinates: Sequence[Affine]) -> Expr | None:
        """Return coordinate `k` by those before it, `coordinates`, if an equality defines it."""
        for row, is_equality in self.constraints:
            if is_equality and abs(row[k]) == 1:
                others = (*row[:k], 0, *row[k + 1 :])
                if self.divisions.last_coordinate(others) < k:
                    return self.divisions.value(others, coordinates) * -row[k]
        return None

    def matrix(self, outputs: Iterable[int], inputs: Iterable[int] = ()) -> str:
        """Return ``{ inputs -> outputs }`` of coordinates in PolyLib's format.

        All other coordinates are quantified.

        >>> print(ConvexSet(Divisions(2, ()), (((1, -2, 0), True),)).matrix([1], [0]))
        1 4 1 1 0 0
        0 -2 1 0
        """
        divisions = self.divisions.rows
        matrix = ConstraintMatrix(outputs, inputs, range(self.rank + len(divisions)))
        for row, is_equality in self.constraints:
            matrix.bound(enumerate(row[:-1]), row[-1], 0, 0 if is_equality else None)
        for k, (numerators, divisor) in enumerate(divisions, self.rank):
            terms = [*enumerate(numerators[:-1]), (k, -divisor)]
            matrix.bound(terms, numerators[-1], 0, divisor - 1)
        return matrix.text()


def expression(aff: isl.Aff, coordinates: Sequence[Affine]) -> Expr:
    """Return a quasi-affine function of isl, whose value is an integer, of the coordinates.

    >>> from simplifier.atoms import Variable
    >>> aff = isl.Aff.read_from_str(isl.Context(), "{ [i] -> [3 * floor((i + 2) / 4)] }")
    >>> expression(aff, [Variable("d0", 0, 9)])
    Expr('((d0 + 2) floordiv 4) * 3')
    """
    divisor, rank = numerator(aff.get_denominator_val()), len(coordinates)
    row = _row(aff, isl.dim_type.in_, rank, divisor)
    return Divisions.of(aff, rank).value(row, coordinates) // divisor


def _row(source: isl.Aff | isl.Constraint, kind: isl.dim_type, rank: int, factor: int = 1) -> Row:
    """The coefficients of ``factor · source``, where the factor cancels all denominators."""

    def times(value: isl.Val) -> int:
        divisor = 1 if value.is_int() else numerator(value.get_den_val())
        return numerator(value) * factor // divisor

    div = isl.dim_type.div
    values = [source.get_coefficient_val(kind, k) for k in range(rank)]
    values += [source.get_coefficient_val(div, k) for k in range(source.dim(div))]
    return tuple([times(value) for value in (*values, source.get_constant_val())])

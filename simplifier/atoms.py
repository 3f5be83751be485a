"""Atoms of sums: bounded variables, and floors that no law simplifies.

Atoms are unique: the same structure is the same object, so terms merge by identity.

>>> Variable("d0", 0, 9) is Variable("d0", 0, 9)
True
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import Any, Final

from simplifier.interval import Interval
from simplifier.linear import Expr
from simplifier.linear import Variable as Variable
from simplifier.unique import Atom as Atom
from simplifier.unique import OrderKey
from simplifier.unique_table import UniqueTable


class Floor(Atom):
    """The atom ``floor(numerator / divisor)``, to which no simplification law applies.

    Only `simplifier.divmod` constructs floors: write ``expr // divisor``, which applies the laws.

    Attributes:
        numerator: the dividend, in normal form.
        divisor: a positive integer.
        bounds: an interval that contains every value.

    Source: MLIR "'affine' Dialect", "Affine Expressions" (``floordiv``).

    >>> d0 = Variable("d0", 0, 9)
    >>> ((floor, coefficient),) = (d0 // 4 * 3).terms
    >>> floor, floor.bounds, coefficient
    (Floor(Expr('d0'), 4), (0, 2), 3)
    """

    divides = True
    __slots__ = ("depth", "divisor", "is_affine", "numerator", "operands", "weight")

    numerator: Expr
    operands: tuple[Expr, ...]
    divisor: int
    is_affine: bool

    def __new__(cls, numerator: Expr, divisor: int, bounds: Interval) -> Floor:
        """Return the unique atom ``floor(numerator / divisor)``, whose values are in `bounds`."""
        made_of = numerator._identity or numerator.identity, divisor
        known = _KNOWN.get(made_of)
        if known is not None:
            return known
        self = object.__new__(cls)
        self.numerator, self.divisor, self.bounds = numerator, divisor, bounds
        self.operands = (numerator,)
        self._key = self._variables = None
        weight, depth, is_affine = 1, 1, True
        for atom in numerator.parts:
            if isinstance(atom, Variable):
                weight += 1
            else:
                weight += atom.weight
                depth = max(depth, atom.depth)
                is_affine = is_affine and atom.is_affine
        self.weight, self.depth, self.is_affine = weight, 1 + depth, is_affine
        return _FLOORS.add(made_of, self)

    def __reduce__(self) -> tuple[type[Floor], tuple[Expr, int, Interval]]:
        return Floor, (self.numerator, self.divisor, self.bounds)

    def __repr__(self) -> str:
        return f"Floor({self.numerator!r}, {self.divisor})"

    def _made_key(self) -> OrderKey:
        return (1, self.divisor, self.numerator.key)

    def value(self, point: Mapping[Variable, Any]) -> Any:
        return self.numerator.tree_value(point) // self.divisor

    def value_of(self, values: Iterable[Any]) -> Any:
        (numerator,) = values
        return numerator // self.divisor


_FLOORS: Final = UniqueTable[Floor]()
_KNOWN: Final = _FLOORS.objects


def are_variables(exprs: tuple[Expr, ...], variables: tuple[Variable, ...]) -> bool:
    """Return True if `exprs` are the `variables`, in this order.

    >>> d0, d1 = Variable("d0", 0, 9), Variable("d1", 0, 9)
    >>> are_variables((d0.expr, d1.expr), (d0, d1)), are_variables((d0 * 2, d1.expr), (d0, d1))
    (True, False)
    """
    if len(exprs) != len(variables):
        return False
    for k, variable in enumerate(variables):  # noqa: SIM110  # a generator takes twice as long
        if exprs[k] != variable.as_expr():
            return False
    return True


def inside_atoms(expr: Expr) -> set[Variable]:
    """Return the set of the variables that occur inside of floors and non-affine atoms.

    >>> inside_atoms(Variable("d0", 0, 9) // 4 + Variable("s0", 0, 9) * 2)
    {Variable('d0', 0, 9)}
    """
    return variables_in([operand for atom in expr.parts for operand in atom.operands])


def point_count(variables: Iterable[Variable]) -> int:
    """Return the number of points of the box of `variables`.

    >>> point_count([Variable("d0", 2, 9), Variable("d1", 0, 4)]), point_count([])
    (40, 1)
    >>> point_count([Variable("d0", 5, 1), Variable("d1", 0, -4)])  # both are empty
    0
    """
    return prod([v.size for v in variables])


def undeclared_variables(exprs: Iterable[Expr], declared: Iterable[Variable]) -> set[Variable]:
    """Return the variables in `exprs` that are not in `declared`.

    >>> d0, s0 = Variable("d0", 0, 9), Variable("s0", 0, 9)
    >>> undeclared_variables([d0 // 4 + s0], [d0])
    {Variable('s0', 0, 9)}
    """
    visited: set[Atom] = {*declared}
    missing: set[Variable] = set()
    pending = [*exprs]
    for expr in pending:
        for atom in expr.parts:
            if atom not in visited:
                visited.add(atom)
                if atom.operands:
                    pending += atom.operands
                else:
                    missing.add(atom)  # type: ignore[arg-type]  # only variables have no operands
    return missing


def variables_in(exprs: Iterable[Expr]) -> set[Variable]:
    """Return the set of all variables in `exprs`.

    >>> sorted(v.name for v in variables_in([Variable("d0", 0, 9) // 4, Variable("s0", 0, 9) * 2]))
    ['d0', 's0']
    """
    variables: set[Variable] = set()
    for expr in exprs:
        for atom in expr.parts:
            if isinstance(atom, Variable):
                variables.add(atom)
            else:
                variables |= atom.variables
    return variables

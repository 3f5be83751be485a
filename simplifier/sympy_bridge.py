"""Expressions to SymPy and back, for interchange and as an independent oracle.

SymPy rewrites ``floor`` and ``Mod`` as it likes, so the form changes on the way; the values do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy

from simplifier.linear import Affine, Expr, Floor, Variable, as_expr, constant
from simplifier.mods import split


def symbol(variable: Variable) -> sympy.Symbol:
    """The integer symbol of a variable; its bounds stay behind, but for the sign."""
    return sympy.Symbol(variable.name, integer=True, nonnegative=variable.lower >= 0 or None)


def to_sympy(expr: Expr) -> sympy.Expr:
    """`expr` with ``floor`` and ``Mod`` of SymPy.

    >>> d0 = Variable("d0", 0, 99)
    >>> to_sympy(d0 // 8 * 3 + 1)
    3*floor(d0/8) + 1
    """
    mods, rest = split(expr)
    total: Any = sympy.Integer(rest.constant)
    for atom, coefficient in rest.terms:
        if isinstance(atom, Floor):
            total += coefficient * sympy.floor(to_sympy(atom.numerator) / atom.divisor)
        else:
            total += coefficient * symbol(atom)
    for coefficient, dividend, modulus in mods:
        total += coefficient * sympy.Mod(to_sympy(dividend), modulus)
    return total


def from_sympy(given: Any, names: Mapping[str, Affine]) -> Expr:
    """The expression that SymPy's `given` is; its symbols are looked up by name.

    Raises:
        ValueError: it is not affine with floors and mods of constants, or a name is not known.

    >>> d0 = Variable("d0", 0, 99)
    >>> from_sympy(sympy.floor(symbol(d0) / 4 + sympy.Rational(1, 2)), {"d0": d0})
    Expr('(d0 + 2) floordiv 4')
    """
    numerator, denominator = _fraction(sympy.sympify(given), names)
    if denominator != 1:
        raise ValueError(f"{given} is no integer for all values of its symbols")
    return numerator


def _fraction(given: Any, names: Mapping[str, Affine]) -> tuple[Expr, int]:
    """``expression / denominator`` for `given`."""
    match given:
        case sympy.Rational():
            return constant(int(given.p)), int(given.q)
        case sympy.Symbol() if given.name in names:
            return as_expr(names[given.name]), 1
        case sympy.Add():
            return _sum([_fraction(part, names) for part in given.args])
        case sympy.Mul():
            return _product([_fraction(part, names) for part in given.args], given)
        case sympy.floor():
            numerator, denominator = _fraction(given.args[0], names)
            return numerator // denominator, 1
        case sympy.ceiling():
            numerator, denominator = _fraction(given.args[0], names)
            return -(-numerator // denominator), 1
        case sympy.Mod() if given.args[1].is_Integer and given.args[1] > 0:
            numerator, denominator = _fraction(given.args[0], names)
            if denominator == 1:
                return numerator % int(given.args[1]), 1
    raise ValueError(f"{given} is not affine with floors and mods of the variables {list(names)}")


def _sum(parts: list[tuple[Expr, int]]) -> tuple[Expr, int]:
    common = sympy.ilcm(1, 1, *[denominator for _, denominator in parts])
    total = constant(0)
    for numerator, denominator in parts:
        total = total + numerator * (int(common) // denominator)
    return _reduced(total, int(common))


def _product(parts: list[tuple[Expr, int]], given: Any) -> tuple[Expr, int]:
    total, below = constant(1), 1
    for numerator, denominator in parts:
        if not total.is_constant and not numerator.is_constant:
            raise ValueError(f"{given} is a product of variables, which is not affine")
        if total.is_constant:
            total = numerator * total.constant
        else:
            total = total * numerator.constant
        below *= denominator
    return _reduced(total, below)


def _reduced(numerator: Expr, denominator: int) -> tuple[Expr, int]:
    """The fraction with its common factor divided out."""
    factor = int(sympy.igcd(denominator, numerator.constant, *[c for _, c in numerator.terms]))
    if factor > 1:
        numerator, denominator = numerator // factor, denominator // factor
    return numerator, denominator

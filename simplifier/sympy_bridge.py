"""Conversion of expressions to SymPy and back, for interchange and as an independent oracle.

SymPy rewrites ``floor`` and ``Mod``, so a round trip preserves values, not structure.

Source: SymPy's documentation, "Functions" (``floor``, ``ceiling``, ``frac``, ``Mod``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from math import gcd, lcm
from typing import Any, Final, TypeAlias

import sympy

from simplifier.atoms import Atom, Floor, Variable
from simplifier.linear import Affine, Expr, as_expr, constant
from simplifier.mods import split
from simplifier.semiaffine import SemiAffine, maximum, minimum

Fraction: TypeAlias = tuple[Expr, Expr]
"""``numerator / denominator``; a constant denominator is positive."""

_ONE: Final = constant(1)

_MAX_EVALUATED: Final = 32
"""Maximum weight of a minimum or maximum that SymPy simplifies, in more than quadratic time."""


def symbol(variable: Variable) -> sympy.Symbol:
    """Return the integer symbol of a variable; of its bounds only the sign is kept."""
    return sympy.Symbol(variable.name, integer=True, nonnegative=variable.lower >= 0 or None)


def to_sympy(expr: Expr) -> sympy.Expr:
    """Return `expr` as a SymPy expression with ``floor`` and ``Mod``.

    >>> d0 = Variable("d0", 0, 99)
    >>> to_sympy(d0 // 8 * 3 + 1)
    3*floor(d0/8) + 1
    """
    mods, rest = split(expr)
    terms = [coefficient * _atom(atom) for atom, coefficient in rest.terms]
    for mod in mods:
        # SymPy looks for common factors in more than quadratic time; `Expr` has divided by them.
        residue = sympy.Mod(to_sympy(mod.dividend), mod.modulus, evaluate=False)
        terms.append(mod.coefficient * residue)
    return sympy.Add(rest.constant, *terms)


def _atom(atom: Atom) -> Any:
    match atom:
        case Variable():
            return symbol(atom)
        case Floor():
            return sympy.floor(to_sympy(atom.numerator) / atom.divisor)
        case SemiAffine():
            operands = [to_sympy(operand) for operand in atom.operands]
            match atom.operator:
                case "*":
                    return sympy.Mul(*operands)
                case "floordiv":
                    return sympy.floor(operands[0] / operands[1])
                case "min":
                    return sympy.Min(*operands, evaluate=atom.weight <= _MAX_EVALUATED)
                case "max":
                    return sympy.Max(*operands, evaluate=atom.weight <= _MAX_EVALUATED)
    raise AssertionError(f"unexpected kind of atom: {atom}")


def from_sympy(given: Any, names: Mapping[str, Affine]) -> Expr:
    """Return the expression equal to a SymPy expression; symbols are looked up by name.

    Raises:
        ValueError: `given` has a function without equivalent, is not always an integer, or has a
            symbol that is not in `names` or whose assumptions contradict its bounds.

    >>> d0 = Variable("d0", 0, 99)
    >>> from_sympy(sympy.floor(symbol(d0) / 4 + sympy.Rational(1, 2)), {"d0": d0})
    Expr('(d0 + 2) floordiv 4')
    """
    numerator, denominator = fraction(given, names)
    if denominator != _ONE:
        raise ValueError(f"{given} is not an integer for all values of its symbols")
    return numerator


def fraction(given: Any, names: Mapping[str, Affine]) -> Fraction:
    """Return numerator and denominator of a SymPy expression; a constant denominator is positive.

    Raises:
        ValueError: as for `from_sympy`, except that `given` need not be an integer.

    >>> fraction(sympy.Symbol("d0") / 4 - 1, {"d0": Variable("d0", 0, 99)})
    (Expr('d0 - 4'), Expr('4'))
    """
    try:
        expression = sympy.sympify(given, strict=True)
    except sympy.SympifyError as error:
        raise ValueError(f"{given!r} is not a SymPy expression") from error
    return _fraction(expression, names)


def _fraction(given: Any, names: Mapping[str, Affine]) -> Fraction:
    def inside() -> Iterator[Fraction]:
        return (_fraction(part, names) for part in given.args)

    match given:
        case sympy.Rational():
            return constant(int(given.p)), constant(int(given.q))
        case sympy.Symbol() if given.name in names:
            return _check_assumptions(given, as_expr(names[given.name])), _ONE
        case sympy.Symbol():
            raise ValueError(f"{given} is not one of the variables {list(names)}")
        case sympy.Add():
            return reduce(_add_fractions, inside())
        case sympy.Mul():
            return reduce(_multiply_fractions, inside())
        case sympy.Pow() if given.exp.is_Integer:
            numerator, denominator = _fraction(given.base, names)
            if given.exp < 0:
                numerator, denominator = denominator, numerator
            return reduce(_multiply_fractions, [(numerator, denominator)] * abs(int(given.exp)))
        case sympy.floor():
            return _floor(*inside()), _ONE
        case sympy.ceiling():
            ((numerator, denominator),) = inside()
            return -_floor((-numerator, denominator)), _ONE
        case sympy.frac():
            return _mod(next(inside()), (_ONE, _ONE))
        case sympy.Mod():
            dividend, modulus = inside()
            return _mod(dividend, modulus)
        case sympy.Min() | sympy.Max():
            pick = minimum if isinstance(given, sympy.Min) else maximum
            return _pick_fraction(pick, [*inside()], given)
    raise ValueError(
        f"unsupported expression {given}: use sums, products, floor, ceiling, Mod, Min and Max of "
        f"the variables {list(names)}"
    )


def _check_assumptions(given: sympy.Symbol, value: Expr) -> Expr:
    """Return `value`; reject bounds that contradict the assumptions of the symbol `given`.

    SymPy's simplifications rely on the assumptions. Values near the bounds and zero are tested,
    which detects wrong signs and parities.
    """
    lower, upper = value.bounds
    for number in {lower, lower + 1, 0, 1, upper}:
        if lower <= number <= upper:
            for fact, assumed in given.assumptions0.items():
                if getattr(sympy.Integer(number), f"is_{fact}") is (not assumed):
                    raise ValueError(
                        f"the symbol {given} is assumed {fact}={assumed}, but its bounds "
                        f"[{lower}, {upper}] include {number}"
                    )
    return value


def _add_fractions(a: Fraction, b: Fraction) -> Fraction:
    if a[1] == b[1]:
        return _lowest_terms(a[0] + b[0], a[1])
    return _lowest_terms(a[0] * b[1] + b[0] * a[1], a[1] * b[1])


def _multiply_fractions(a: Fraction, b: Fraction) -> Fraction:
    return _lowest_terms(a[0] * b[0], a[1] * b[1])


def _floor(given: Fraction) -> Expr:
    """The quotient rounded towards minus infinity, for either sign of the denominator."""
    numerator, denominator = given
    return numerator // (denominator.constant if denominator.is_constant else denominator)


def _mod(dividend: Fraction, modulus: Fraction) -> Fraction:
    """``a mod b = a − b·floor(a / b)``, with the sign of `b`."""
    quotient = _floor(_multiply_fractions(dividend, (modulus[1], modulus[0])))
    return _add_fractions(dividend, _multiply_fractions((-quotient, _ONE), modulus))


def _pick_fraction(pick: Callable[..., Expr], parts: Sequence[Fraction], given: Any) -> Fraction:
    if any(not denominator.is_constant for _, denominator in parts):
        raise ValueError(f"unsupported: {given} compares quotients by expressions")
    common = lcm(*[denominator.constant for _, denominator in parts])
    scaled = [numerator * (common // below.constant) for numerator, below in parts]
    return _lowest_terms(pick(*scaled), constant(common))


def _lowest_terms(numerator: Expr, denominator: Expr) -> Fraction:
    """The fraction in lowest terms, with a positive constant denominator if it is constant."""
    if not denominator.is_constant:
        quotient = numerator // denominator
        if quotient * denominator == numerator:
            return quotient, _ONE
    elif denominator.constant < 0:
        numerator, denominator = -numerator, -denominator
    factor = gcd(*_numbers(numerator), *_numbers(denominator))
    if factor in (0, 1):
        return numerator, denominator
    return numerator // factor, denominator // factor


def _numbers(expr: Expr) -> list[int]:
    return [expr.constant, *[c for _, c in expr.terms]]

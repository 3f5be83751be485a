"""Digits: the parts of an index, as a number in mixed radix, that two indices share.

The digit of an index x with stride a and size b is ``x floordiv a mod b``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import gcd, prod
from typing import NamedTuple

from simplifier.atoms import Floor, Variable
from simplifier.linear import Expr


class IndexDigit(NamedTuple):
    """A digit of the index along one axis: ``x floordiv stride mod size``."""

    axis: int
    stride: int
    size: int


class DigitLink(NamedTuple):
    """A digit of an operand's index that equals a digit of a dimension or range variable."""

    operand: IndexDigit
    root: IndexDigit


def links_of(
    expr: Expr,
    axis: int,
    size: int,
    roots: Mapping[Variable, tuple[int, int]],
    total: Collection[Variable],
) -> list[DigitLink]:
    """Return the digits of an operand's index that equal digits of variables.

    Args:
        expr: the index along the operand's `axis`, of `size`.
        roots: for each variable, the number of its axis and the size of that axis.
        total: the variables that have all values of their axes and are in no constraint.
    Returns:
        Links for disjoint digits.
    """
    for variable, (root, extent) in roots.items():
        if extent == size and (expr - variable).bounds == (0, 0):
            return [DigitLink(IndexDigit(axis, 1, size), IndexDigit(root, 1, size))]
    variables = expr.variables()
    low, high = expr.bounds
    covers = low <= 0 and high >= size - 1 and prod(v.upper + 1 for v in variables) >= size
    if not covers or any(v not in total for v in variables):
        return []
    links: list[DigitLink] = []
    rest, stride = expr, 1
    while stride < size:
        digit = _minor_digit(rest, size // stride, roots)
        if digit is None:
            break
        links.append(DigitLink(IndexDigit(axis, stride, digit.size), digit))
        rest, stride = rest // digit.size, stride * digit.size
    major = _major_digit(rest, size // stride, roots) if stride < size else None
    if major is not None:
        links.append(DigitLink(IndexDigit(axis, size // major.size, major.size), major))
    return links


def _major_digit(
    expr: Expr, size: int, roots: Mapping[Variable, tuple[int, int]]
) -> IndexDigit | None:
    """Return the largest major digit of a variable that is the major digit of `expr`."""
    digits = [
        IndexDigit(axis, extent // common, common)
        for variable in expr.variables()
        for axis, extent in [roots[variable]]
        for common in _divisors(gcd(size, extent))
        if expr // (size // common) == variable // (extent // common)
    ]
    return max(digits, key=lambda digit: digit.size, default=None)


def _minor_digit(
    expr: Expr, size: int, roots: Mapping[Variable, tuple[int, int]]
) -> IndexDigit | None:
    """Return the largest digit of a variable that is the minor digit of `expr`, if there is one."""
    digits = [IndexDigit(0, 1, 1)]
    for variable in expr.variables():
        axis, extent = roots[variable]
        for stride in _strides(expr, variable):
            if extent % stride == 0:
                part = variable // stride
                for common in _divisors(gcd(size, extent // stride)):
                    if expr % common == part % common:
                        digits.append(IndexDigit(axis, stride, common))
                        break
    largest = max(digits, key=lambda digit: digit.size)
    return largest if largest.size > 1 else None


def _strides(expr: Expr, variable: Variable) -> set[int]:
    """Return 1 and the divisors of the floors of `expr` that contain the variable."""
    strides = {1}
    for atom, _ in expr.terms:
        if isinstance(atom, Floor) and variable in atom.numerator.variables():
            strides.add(atom.divisor)
            strides |= _strides(atom.numerator, variable)
    return strides


def _divisors(number: int) -> Iterator[int]:
    """Yield the divisors of a number above 1, in descending order."""
    low = [k for k in range(1, int(number**0.5) + 1) if number % k == 0]
    yield from (number // k for k in low if number // k > 1)
    yield from (k for k in reversed(low) if k > 1 and k * k != number)

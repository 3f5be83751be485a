"""Digits: the parts of an index, as a number in mixed radix, that two indices share.

The digit of an index x with stride a and size b is ``x floordiv a mod b``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import gcd
from typing import NamedTuple

from simplifier.atoms import Floor, Variable, point_count
from simplifier.linear import Expr


class IndexDigit(NamedTuple):
    """A digit of the index along one dimension: ``x floordiv stride mod size``."""

    dim: int
    stride: int
    size: int


class DigitLink(NamedTuple):
    """A digit of an operand's index that equals a digit of a dimension or range variable."""

    operand: IndexDigit
    root: IndexDigit


def links_of(
    expr: Expr,
    dim: int,
    size: int,
    roots: Mapping[Variable, tuple[int, int]],
    total: Collection[Variable],
) -> list[DigitLink]:
    """Return the digits of an operand's index that equal digits of variables.

    Args:
        expr: the index along the operand's `dim`, of `size`.
        roots: for each variable, the number of its dimension and the size of that dimension.
        total: the variables that have all values of their dimensions and are in no constraint.
    Returns:
        Links for disjoint digits.
    """
    for variable, (root, extent) in roots.items():
        if extent == size and (expr - variable).bounds == (0, 0):
            return [DigitLink(IndexDigit(dim, 1, size), IndexDigit(root, 1, size))]
    variables = expr.variables()
    low, high = expr.bounds
    covers = low <= 0 and high >= size - 1 and point_count(variables) >= size
    if not covers or any(v not in total for v in variables):
        return []
    links: list[DigitLink] = []
    rest, stride = expr, 1
    while stride < size:
        digit = _minor_digit(rest, size // stride, roots)
        if digit is None:
            break
        links.append(DigitLink(IndexDigit(dim, stride, digit.size), digit))
        rest, stride = rest // digit.size, stride * digit.size
    return [*links, *_major_links(rest, dim, size, stride, roots)]


def _major_links(
    expr: Expr, dim: int, size: int, stride: int, roots: Mapping[Variable, tuple[int, int]]
) -> Iterator[DigitLink]:
    """Yield links of the major digits of an index ``stride * expr + minor digits``, in order."""
    left = {variable: roots[variable][1] for variable in expr.variables()}
    rest, rest_size = expr, size // stride
    while left and rest_size > 1:
        digits = [(*_major_digit(rest, rest_size, v, extent), v) for v, extent in left.items()]
        common, minor, variable = max(digits, key=lambda digit: digit[0])
        if common == 1:
            return
        rest_size, left[variable] = rest_size // common, minor
        digit = IndexDigit(dim, stride * rest_size, common)
        yield DigitLink(digit, IndexDigit(roots[variable][0], minor, common))
        rest = rest % rest_size


def _major_digit(expr: Expr, size: int, variable: Variable, extent: int) -> tuple[int, int]:
    """Return size and stride of the largest major digit of `expr` that is one of the variable.

    Digits of the variable above `extent` are not considered.  The size is 1 without such a digit.
    """
    for common in _divisors(gcd(size, extent)):
        for above in (1, *_divisors(extent // common)):
            end = extent // above
            if expr // (size // common) == variable % end // (end // common):
                return common, end // common
    return 1, 1


def _minor_digit(
    expr: Expr, size: int, roots: Mapping[Variable, tuple[int, int]]
) -> IndexDigit | None:
    """Return the largest digit of a variable that is the minor digit of `expr`, if there is one."""
    digits = [IndexDigit(0, 1, 1)]
    for variable in expr.variables():
        dim, extent = roots[variable]
        for stride in _strides(expr, variable):
            if extent % stride == 0:
                part = variable // stride
                for common in _divisors(gcd(size, extent // stride)):
                    if expr % common == part % common:
                        digits.append(IndexDigit(dim, stride, common))
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

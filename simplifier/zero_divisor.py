"""The error of a division by the constant 0.

A quotient is undefined where its divisor is 0.  Laws preserve values where all divisors are
nonzero: if a quotient cancels, as in ``x // n − x // n``, the result has a value for n = 0 too.
Sums cancel when they are built, before a domain exists that could exclude these points.  Likewise,
a constraint ``x // n in [a, b]`` is dropped if it holds wherever n is nonzero.
"""

from __future__ import annotations


class ZeroDivisorError(ValueError):
    """A division by the constant 0, which is defined at no point.

    If a substitution raises it, every point of the domain divides by 0: the domain is empty.

    >>> from simplifier.linear import constant, variable
    >>> try:
    ...     variable("d0", 0, 9) // constant(0)
    ... except ZeroDivisorError as error:
    ...     print(error)
    the divisor must not be 0
    """

    def __init__(self) -> None:
        super().__init__()  # without arguments, as a pickle calls it

    def __str__(self) -> str:
        return "the divisor must not be 0"

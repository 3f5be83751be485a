"""Numbers in mixed radix, such as the row-major position of an index.

Numbers and digits are integers, arrays or expressions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def number_of(digits: Iterable[Any], sizes: Iterable[int]) -> Any:
    """Return the number with these digits, the most significant first.

    >>> number_of([1, 2, 3], [2, 3, 5]), number_of([], [])
    (28, 0)
    """
    number: Any = 0
    for digit, size in zip(digits, sizes, strict=True):
        number = number * size + digit
    return number


def digits_of(number: Any, sizes: Sequence[int]) -> list[Any]:
    """Return the digits of `number`; the first digit is unbounded.

    >>> digits_of(28, [2, 3, 5]), digits_of(43, [2, 3, 5])
    ([1, 2, 3], [2, 2, 3])
    """
    digits = []
    for size in reversed(sizes[1:]):
        digits.append(number % max(size, 1))
        number = number // max(size, 1)
    return [number, *digits[::-1]][: len(sizes)]

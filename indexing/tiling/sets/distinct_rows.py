"""Distinct rows of a table of integers, without sorting where their values are few."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

MAX_CODES: Final = 1 << 22
"""Maximum number of combinations of values to number without sorting them."""


def number_rows(columns: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the number of each row of a table, and its distinct rows in the order of numbers.

    >>> numbers, rows = number_rows([np.array([3, 5, 3]), np.array([0, -9, 0])])
    >>> numbers.tolist(), rows.tolist()
    ([0, 1, 0], [[3, 0], [5, -9]])
    """
    codes, count = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        low = int(column.min()) if len(column) else 0
        size = int(column.max()) - low + 1 if len(column) else 1
        codes, count = codes * size + (column - low), count * size
        if count > MAX_CODES:
            _, codes = np.unique(codes, return_inverse=True)
            codes = codes.reshape(-1)
            count = int(codes.max()) + 1
    first = np.full(count, -1, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # the last write is that of the first row
    (present,) = np.nonzero(first >= 0)
    numbers = np.zeros(count, np.int64)
    numbers[present] = np.arange(len(present))
    rows = np.stack([column[first[present]] for column in columns], axis=1)
    return numbers[codes], rows

"""Lists of values by position, such as the index of an element by its dimensions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def list_by_position(rank: int, values: Iterable[tuple[int, Any]]) -> list[Any]:
    """Return a list of length `rank` from pairs of position and value.

    >>> list_by_position(2, [(1, "a"), (0, "b")])
    ['b', 'a']
    """
    by_position: dict[int, Any] = dict(values)
    return [by_position[k] for k in range(rank)]

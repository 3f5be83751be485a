"""Tile sizes as values of variables ``ts_0, ts_1, …``, and the sources of their constraints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from simplifier import Variable


class SizeSource(NamedTuple):
    """The place that imposes a condition: an instruction, and an expression of its map."""

    instruction: str
    expression: str = ""

    def __str__(self) -> str:
        place = f"`{self.instruction}`" if self.instruction else ""
        return ": ".join([text for text in (place, self.expression) if text])


def size_point(variables: Iterable[Variable], sizes: Sequence[int]) -> dict[Variable, int]:
    """Return the value of each variable ``ts_k``: ``sizes[k]``, or its upper bound if smaller.

    Raises:
        ValueError: a size is missing, or below the lower bound of its variable.

    >>> from simplifier import Variable
    >>> size_point([Variable("ts_1", 1, 6)], [5, 8])
    {Variable('ts_1', 1, 6): 6}
    """
    point: dict[Variable, int] = {}
    for variable in variables:
        number = dimension_of(variable)
        if number >= len(sizes):
            raise ValueError(f"{len(sizes)} tile sizes: expected a size for {variable.name}")
        if sizes[number] < variable.lower:
            raise ValueError(
                f"tile size {variable.name} = {sizes[number]}: expected at least {variable.lower}"
            )
        point[variable] = min(sizes[number], variable.upper)
    return point


def dimension_of(variable: Variable) -> int:
    """Return k for ``dk``, ``ts_k`` and ``tid_k``: a dimension, its tile size, and a tile's index.

    >>> from simplifier import Variable
    >>> dimension_of(Variable("ts_12", 1, 6))
    12
    """
    match = _NUMBERED.fullmatch(variable.name)
    if match is None:
        raise ValueError(f"{variable.name!r}: expected a name with a number, such as `ts_0`")
    return int(match[1])


_NUMBERED: Final = re.compile(r"\D*?(\d+)")

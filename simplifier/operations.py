"""`Operations`: operations on expressions that are implemented on top of `simplifier.linear`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from simplifier.interval import Interval

E = TypeVar("E")


class Operations(Generic[E]):
    """Operations on expressions of type `E`; importing `simplifier` installs them.

    Sums and multiples are not among them: `simplifier.linear` implements them.
    """

    bounds: Callable[[E], Interval]
    floor_div: Callable[[E, int], E]
    floor_mod: Callable[[E, int], E]
    product: Callable[[E, E], E]
    quotient: Callable[[E, E], E]
    remainder: Callable[[E, E], E]
    reduced: Callable[[E], tuple[object, tuple[Any, ...]]]
    text: Callable[[E], str]

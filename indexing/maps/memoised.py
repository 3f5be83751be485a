"""Memoise functions of maps, without keeping modules in memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar, TypeVarTuple, Unpack

Arguments = TypeVarTuple("Arguments")
R = TypeVar("R")


def memoised_maps(
    size: int,
) -> Callable[[Callable[[Unpack[Arguments]], R]], Callable[[Unpack[Arguments]], R]]:
    """Memoise a function for its `size` last arguments, which are given by position.

    Calls with maps that have runtime variables are not memoised: the maps refer to the instructions
    of the sources, and a cache would keep the modules of these in memory.
    """

    def memoise(
        function: Callable[[Unpack[Arguments]], R],
    ) -> Callable[[Unpack[Arguments]], R]:
        memo = lru_cache(size)(function)

        @wraps(memo)
        def call(*arguments: *Arguments) -> R:
            for each in arguments:
                if getattr(each, "runtime", ()):
                    return function(*arguments)
            return memo(*arguments)

        return call

    return memoise

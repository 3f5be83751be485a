"""Memoise functions of maps, without keeping modules in memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, Unpack

from hlo.memo import Memo

if TYPE_CHECKING:
    from hlo.modules.module import Module

Arguments = TypeVarTuple("Arguments")
R = TypeVar("R")


def memoised_maps(
    size: int,
) -> Callable[[Callable[[Unpack[Arguments]], R]], Callable[[Unpack[Arguments]], R]]:
    """Memoise a function for its `size` last arguments, which are given by position.

    Maps with runtime variables refer to the instructions of their sources, and a cache would keep
    the modules of these in memory.  Results for such maps are memoised in the module of all their
    sources, if there is one.
    """

    def memoise(
        function: Callable[[Unpack[Arguments]], R],
    ) -> Callable[[Unpack[Arguments]], R]:
        memo = lru_cache(size)(function)

        @wraps(memo)
        def call(*arguments: *Arguments) -> R:
            for each in arguments:
                if getattr(each, "runtime", ()):
                    break
            else:
                return memo(*arguments)
            module = _module_of(arguments)
            if module is None:
                return function(*arguments)
            known: Memo[Hashable, R] | None = module.memo.get(memo)
            if known is None:
                known = module.memo.setdefault(memo, Memo(size))
            result = known.get(arguments)
            return known.keep(arguments, function(*arguments)) if result is None else result

        return call

    return memoise


def _module_of(arguments: tuple[Any, ...]) -> Module | None:
    """Return the module of the sources of all runtime variables; None if it is not one."""
    from indexing.maps.arrays import ArrayRef  # completion imports no modules

    modules = set()
    for each in arguments:
        for rt in getattr(each, "runtime", ()):
            if not isinstance(rt.array, ArrayRef):
                return None
            modules.add(rt.array.instruction.computation.module)
    return modules.pop() if len(modules) == 1 else None

"""`Memo`: a table of results that a process computes once, of bounded size.

Results that refer to a module are memoised in the module (`hlo.modules.module.Module.memo`) and
live as long as it does.  All others depend on values alone, such as an op and its shapes; they are
shared by all modules, and the bound keeps the memory of long sessions flat.
"""

from __future__ import annotations

from typing import TypeVar

Key = TypeVar("Key")
Result = TypeVar("Result")


class Memo(dict[Key, Result]):
    """A dictionary that forgets an eighth of its entries, the oldest, when it is full.

    >>> squares = Memo[int, int](2)
    >>> [squares.keep(n, n * n) for n in (1, 2, 3)], dict(squares)
    ([1, 4, 9], {2: 4, 3: 9})
    """

    __slots__ = ("_limit",)

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def keep(self, key: Key, result: Result) -> Result:
        """Memoise and return a result."""
        if len(self) >= self._limit:
            for oldest in list(self.keys())[: self._limit // 8 + 1]:  # in one step, for threads
                self.pop(oldest, None)
        self[key] = result
        return result

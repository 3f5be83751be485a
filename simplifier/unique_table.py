"""Hash consing: equal structures are the same object while it is referenced."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping
from threading import RLock
from typing import Final, TypeVar

Unique = TypeVar("Unique", bound=Hashable)


def _references(objects: Mapping[Hashable, object], key: Hashable) -> int:
    """The number of references to an object of a table, with those of this call."""
    return sys.getrefcount(objects[key])


_UNUSED: Final = _references({None: object()}, None)
"""`_references` to an object that only its table refers to."""

_IS_COUNTED: Final = getattr(sys, "_is_gil_enabled", lambda: True)()
"""True if a thread sees all references of other threads; else no object is removed."""


class UniqueTable(dict[Hashable, Unique]):
    """The objects in use, by their constructor arguments.

    Objects to which only the table refers are removed whenever it has doubled.  Constructors look
    objects up without a lock, and inline, because lookups are far more frequent than additions.
    """

    __slots__ = ("_is_purged", "_limit", "_lock")

    def __init__(self) -> None:
        super().__init__()
        self._limit = 1024
        self._is_purged = False
        self._lock = RLock()  # a finaliser may run while it is held, and add objects

    def add(self, made_of: Hashable, one: Unique) -> Unique:
        """Add `one` and return it; or the object that another thread has added before.

        While another thread removes objects, wait: it may put back an object that is in use.
        """
        if self._is_purged:
            with self._lock:
                return self.setdefault(made_of, one)
        known = self.setdefault(made_of, one)
        if len(self) > self._limit:
            self._purge()
        return known

    def _purge(self) -> None:
        """Remove unused objects, the last ones first, because these refer to earlier ones."""
        with self._lock:
            self._is_purged = True
            try:
                for key in reversed([*self]) if _IS_COUNTED else ():
                    if _references(self, key) == _UNUSED:
                        self._remove(key)
            finally:
                self._is_purged = False
                self._limit = max(1024, 2 * len(self))

    def _remove(self, key: Hashable) -> None:
        """Remove an object, unless another thread has just looked it up."""
        removed = {key: self.pop(key)}
        if _references(removed, key) != _UNUSED:
            self.setdefault(key, removed[key])

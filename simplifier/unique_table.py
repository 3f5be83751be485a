"""Hash consing: equal structures are the same object while it is referenced."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from sys import getrefcount
from threading import RLock
from typing import Any, Final, TypeVar

Unique = TypeVar("Unique", bound=Hashable)

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
            self.purge()
        return known

    def purge(self) -> None:
        """Remove unused objects, the last ones first, because these refer to earlier ones."""
        with self._lock:
            self._is_purged = True
            try:
                if _IS_COUNTED:
                    self._remove_unused()
            finally:
                self._is_purged = False
                self._limit = max(1024, 2 * len(self))

    def _remove_unused(self) -> None:
        own: dict[Hashable, Any] = self
        entries = own.copy()  # at once, whatever finalisers add
        entries[_PROBE] = own[_PROBE] = object()
        unused = 0
        while entries:
            key, one = entries.popitem()
            count = getrefcount(one)
            if key is _PROBE:  # the first one: only the table refers to it
                unused = count
            if count == unused:
                own.pop(key)
                if getrefcount(one) >= unused:  # another thread has just looked it up
                    own.setdefault(key, one)


_PROBE: Final = object()
"""The key of an object that is unused, to count its references."""

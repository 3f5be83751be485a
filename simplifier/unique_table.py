"""Hash consing: equal structures are the same object while it is referenced."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from sys import getrefcount
from threading import RLock
from typing import Any, Final, Generic, TypeVar

Unique = TypeVar("Unique", bound=Hashable)

_IS_COUNTED: Final = getattr(sys, "_is_gil_enabled", lambda: True)()
"""True if a thread sees all references of other threads; else no object is removed."""


class UniqueTable(Generic[Unique]):
    """The objects in use, by their constructor arguments.

    Objects to which only the table refers are removed whenever it has doubled.

    Attributes:
        objects: the objects.  Constructors look them up without a lock, and inline, because lookups
            are far more frequent than additions.
    """

    __slots__ = ("_is_purged", "_limit", "_lock", "objects")

    def __init__(self) -> None:
        self.objects: dict[Hashable, Unique] = {}
        self._limit = 1024
        self._is_purged = False
        self._lock = RLock()  # a finaliser may run while it is held, and add objects

    def add(self, made_of: Hashable, one: Unique) -> Unique:
        """Add `one` and return it; or the object that another thread has added before.

        While another thread removes objects, wait: it may put back an object that is in use.
        """
        objects = self.objects
        if self._is_purged:
            with self._lock:
                return objects.setdefault(made_of, one)
        known = objects.setdefault(made_of, one)
        if len(objects) > self._limit:
            self.purge()
        return known

    def purge(self) -> None:
        """Remove unused objects, the last ones first, because these refer to earlier ones."""
        with self._lock:
            self._is_purged = True
            try:
                if _IS_COUNTED:
                    _remove_unused(self.objects)
            finally:
                self._is_purged = False
                self._limit = max(1024, 2 * len(self.objects))


def _remove_unused(objects: dict[Hashable, Any]) -> None:
    entries = objects.copy()  # at once, whatever finalisers add
    entries[_PROBE] = objects[_PROBE] = object()
    unused = 0
    while entries:
        key, one = entries.popitem()
        count = getrefcount(one)
        if key is _PROBE:  # the first one: only `objects` refers to it
            unused = count
        if count == unused:
            objects.pop(key)
            if getrefcount(one) >= unused:  # another thread has just looked it up
                objects.setdefault(key, one)


_PROBE: Final = object()
"""The key of an object that is unused, to count its references."""

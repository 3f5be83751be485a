"""Hash consing: equal structures are the same object while it is referenced."""

from __future__ import annotations

from collections.abc import Hashable
from threading import RLock
from typing import TypeVar
from weakref import ref

Unique = TypeVar("Unique", bound=Hashable)


class UniqueTable(dict[Hashable, ref[Unique]]):
    """Weak references to the objects in use, by their constructor arguments.

    Dead references are removed whenever the table has doubled.  Constructors look objects up
    inline, because lookups are far more frequent than additions.
    """

    __slots__ = ("_limit", "_lock")

    def __init__(self) -> None:
        super().__init__()
        self._limit = 1024
        self._lock = RLock()  # a finaliser may run while it is held, and add objects

    def add(self, made_of: Hashable, one: Unique) -> Unique:
        """Add `one` and return it; or the object that another thread has added before.

        The lock is only needed to remove or replace dead references.
        """
        new = ref(one)
        if self.setdefault(made_of, new) is not new:
            return self._added_again(made_of, one, new)
        if len(self) > self._limit:
            self._purge()
        return one

    def _added_again(self, made_of: Hashable, one: Unique, new: ref[Unique]) -> Unique:
        """The live object of the table, or `one`, which replaces a dead reference."""
        with self._lock:
            known = self.setdefault(made_of, new)()
            if known is None:
                self[made_of] = new
                return one
            return known

    def _purge(self) -> None:
        with self._lock:
            for key, held in self.copy().items():  # copied at once, whatever other threads add
                if held() is None:
                    self.pop(key, None)
            self._limit = max(1024, 2 * len(self))


def new_object(cls: type[Unique]) -> Unique:
    """Return an object of `cls` without attributes, which compiled modules cannot construct."""
    return object.__new__(cls)


def weakly_referenced(cls: type[Unique]) -> type[Unique]:
    """Mark a class for weak references: mypyc then keeps it a Python class."""
    return cls

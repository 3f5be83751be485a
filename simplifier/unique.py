"""Unique objects: the same structure is the same object, as long as anybody holds it.

Atoms of sums are unique, so that terms merge by identity.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, TypeAlias, TypeVar
from weakref import ref

from simplifier.interval import Interval

Unique = TypeVar("Unique", bound=Hashable)
SortKey: TypeAlias = tuple[object, ...]


class UniqueTable(dict[Hashable, ref[Unique]]):
    """The objects in use, each once, by what they are made of.

    Dead references are removed whenever the table has doubled.  A constructor looks its object up
    first, without a call: lookups are far more frequent than additions.
    """

    __slots__ = ("_limit",)

    def __init__(self) -> None:
        super().__init__()
        self._limit = 1024

    def add(self, made_of: Hashable, one: Unique) -> Unique:
        """Add `one` and return it."""
        if len(self) >= self._limit:
            for key in [key for key, held in self.items() if held() is None]:
                del self[key]
            self._limit = max(1024, 2 * len(self))
        self[made_of] = ref(one)
        return one


def new_object(cls: type[Unique]) -> Unique:
    """An object of `cls` without attributes, which mypyc cannot make in a compiled module."""
    return object.__new__(cls)


def weakly_held(cls: type[Unique]) -> type[Unique]:
    """Mark a class that weak references are made to: mypyc leaves it a class of Python."""
    return cls


class Atom:
    """What a sum is made of.

    Attributes:
        bounds: an interval that holds every value, from the bounds of variables alone.
        weight: how many atoms its text has; far more than it has parts, where parts recur.
        operands: the expressions inside it.
        is_affine: no product, quotient, minimum or maximum of variables is in it.
        divides: it is a floor.
    """

    __slots__ = ("__weakref__", "_key", "bounds")

    bounds: Interval
    weight: int
    operands: tuple[Any, ...]  # of `Expr`, which is written on top of this module
    is_affine = False
    divides = False
    _key: SortKey | None

    @property
    def key(self) -> SortKey:
        """Orders atoms the same way in every process: variables by name, then floors."""
        if self._key is None:
            self._key = self._made_key()
        return self._key

    def _made_key(self) -> SortKey:
        raise NotImplementedError

    def value(self, point: Mapping[Any, Any]) -> Any:
        """The number that this atom has at `point`; with arrays, at many points at once."""
        raise NotImplementedError

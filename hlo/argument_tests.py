"""Tests of the arguments of one function, on every call.

>>> tests = ArgumentTests([(frozenset([int]), lambda value: False)], {})
>>> tests.fit((1,), {}), tests.fit(("1",), {}), tests.fit((), {"count": 1})
(True, False, False)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from hlo.annotations import Predicate

ArgumentTest: TypeAlias = tuple[frozenset[type], Predicate]
"""The classes of arguments that need no other test, and the test of others."""


class ArgumentTests:
    """The tests of positional arguments, in order, and of arguments by name."""

    __slots__ = ("_named", "_positional")

    def __init__(
        self, positional: Sequence[ArgumentTest], named: Mapping[str, ArgumentTest]
    ) -> None:
        self._positional = list(positional)
        self._named = dict(named)

    def fit(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> bool:
        """Return True if there is a test for each of the arguments and all of them pass."""
        positional, named = self._positional, self._named
        if len(args) > len(positional):
            return False
        for place, value in enumerate(args):
            classes, fits_one = positional[place]
            if type(value) not in classes and not fits_one(value):
                return False
        for name, value in kwargs.items():
            if name not in named:
                return False
            classes, fits_one = named[name]
            if type(value) not in classes and not fits_one(value):
                return False
        return True

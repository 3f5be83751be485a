"""The least that a normal form costs in Python: a lower bound for expressions of this project.

Like terms merge, and equal dividends have the same floor, found in a table.  There are no bounds,
no laws, no checks and no order, and terms that cancel remain.
"""

from __future__ import annotations

import operator
from typing import Any, TypeAlias

from benchmarks.chains import Chain
from benchmarks.peers import Peer

_Key: TypeAlias = tuple[frozenset[tuple[object, int]], int, int]


class _Sum:
    """``constant + Σ coefficient · atom``."""

    __slots__ = ("constant", "parts")

    def __init__(self, parts: dict[object, int], constant: int) -> None:
        self.parts, self.constant = parts, constant

    def __add__(self, other: _Sum | int) -> _Sum:
        if isinstance(other, int):
            return _Sum(self.parts, self.constant + other)
        total = self.parts.copy()
        for atom, coefficient in other.parts.items():
            total[atom] = coefficient + total[atom] if atom in total else coefficient
        return _Sum(total, self.constant + other.constant)

    def __radd__(self, other: int) -> _Sum:
        return _Sum(self.parts, self.constant + other)

    def __sub__(self, other: _Sum | int) -> _Sum:
        return self + other * -1

    def __rsub__(self, other: int) -> _Sum:
        return self * -1 + other

    def __neg__(self) -> _Sum:
        return self * -1

    def __mul__(self, factor: int) -> _Sum:
        multiple = {atom: c * factor for atom, c in self.parts.items()}
        return _Sum(multiple, self.constant * factor)

    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> _Sum:
        key = frozenset(self.parts.items()), self.constant, divisor
        return _FLOORS.get(key) or _FLOORS.setdefault(key, _Sum({object(): 1}, 0))

    def __mod__(self, modulus: int) -> _Sum:
        key = frozenset(self.parts.items()), self.constant, modulus
        return _MODS.get(key) or _MODS.setdefault(key, self + self // modulus * -modulus)


_FLOORS: dict[_Key, _Sum] = {}
_MODS: dict[_Key, _Sum] = {}


class Bare(Peer):
    """Formulas applied to bare sums."""

    name = "like terms and equal floors alone"

    def __init__(self) -> None:
        self._variables = [_Sum({object(): 1}, 0) for _ in range(16)]

    def renew(self) -> None:
        """Forget the floors."""
        _FLOORS.clear()
        _MODS.clear()

    def solve(self, chain: Chain) -> Any:
        index: list[Any] = self._variables[: len(chain.bounds)]
        for step in chain.steps:
            index = step.formula(index, operator.floordiv)
        return index

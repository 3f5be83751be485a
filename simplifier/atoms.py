"""What a sum is made of: bounded variables, and the floors that no law takes apart.

Atoms are unique: the same structure is the same object, so that terms merge by identity.

>>> Variable("d0", 0, 9) is Variable("d0", 0, 9)
True
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from simplifier.interval import Interval
from simplifier.linear import Expr
from simplifier.linear import Variable as Variable
from simplifier.unique import Atom as Atom
from simplifier.unique import SortKey, UniqueTable


class Floor(Atom):
    """``floor(numerator / divisor)``: an atom that the laws could not take apart.

    Made by `simplifier.divmod` alone, which guarantees that no law applies to it.
    """

    divides = True
    __slots__ = ("_weight", "divisor", "numerator", "operands")

    numerator: Expr
    operands: tuple[Expr, ...]
    divisor: int
    _weight: int

    def __new__(cls, numerator: Expr, divisor: int, bounds: Interval) -> Floor:
        """The atom for ``floor(numerator / divisor)``, whose value lies in `bounds`."""
        made_of = numerator.identity, divisor
        held = _FLOORS.get(made_of)
        known = None if held is None else held()
        if known is not None:
            return known
        self = object.__new__(cls)
        self.numerator, self.divisor, self.bounds = numerator, divisor, bounds
        self.operands, self._key, self._weight = (numerator,), None, 0
        return _FLOORS.add(made_of, self)

    def __reduce__(self) -> tuple[type[Floor], tuple[Expr, int, Interval]]:
        return Floor, (self.numerator, self.divisor, self.bounds)

    def __repr__(self) -> str:
        return f"Floor({self.numerator!r}, {self.divisor})"

    @property
    def weight(self) -> int:  # type: ignore[override]  # found out when it is asked for
        if not self._weight:
            self._weight = 1 + self.numerator.weight
        return self._weight

    @property
    def is_affine(self) -> bool:  # type: ignore[override]
        return self.numerator.is_affine

    def _made_key(self) -> SortKey:
        return (1, self.divisor, self.numerator.key)

    def value(self, point: Mapping[Variable, Any]) -> Any:
        return self.numerator.value(point) // self.divisor


_FLOORS: Final = UniqueTable[Floor]()


def mentioned(exprs: Iterable[Expr]) -> set[Variable]:
    """Every variable in `exprs`."""
    found: set[Atom] = set()
    pending = list(exprs)
    while pending:
        for atom in pending.pop().parts:
            if atom not in found:
                found.add(atom)
                pending.extend(atom.operands)
    return {atom for atom in found if isinstance(atom, Variable)}

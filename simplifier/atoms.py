"""What a sum is made of: bounded variables, and the floors that no law takes apart.

Atoms are unique: the same structure is the same object, so that terms merge by identity.

>>> Variable("d0", 0, 9) is Variable("d0", 0, 9)
True
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar
from weakref import ref

from simplifier.interval import Interval

if TYPE_CHECKING:
    from simplifier.linear import Affine, Expr

SortKey: TypeAlias = tuple[object, ...]
Unique = TypeVar("Unique", bound=Hashable)


class Atoms(dict[Hashable, ref[Unique]]):
    """The atoms in use, each once, found by what they are made of.

    Those that nobody has any more are swept out whenever the table has doubled.  Whoever makes an
    atom looks it up first, without a call: that happens more often than anything is added.
    """

    __slots__ = ("_most",)

    def __init__(self) -> None:
        super().__init__()
        self._most = 1024

    def add(self, made_of: Hashable, atom: Unique) -> Unique:
        """`atom`, which is found from now on."""
        if len(self) >= self._most:
            for key in [key for key, held in self.items() if held() is None]:
                del self[key]
            self._most = max(1024, 2 * len(self))
        self[made_of] = ref(atom)
        return atom


class Atom:
    """What a sum is made of.

    Attributes:
        bounds: an interval that holds every value, from the bounds of variables alone.
        weight: how many atoms its text has; far more than it has parts, where parts recur.
        operands: the expressions inside it.
    """

    __slots__ = ("__weakref__", "_key", "bounds")

    bounds: Interval
    weight: int
    operands: tuple[Expr, ...]
    _key: SortKey | None

    @property
    def key(self) -> SortKey:
        """Orders atoms the same way in every process: variables by name, then floors."""
        if self._key is None:
            self._key = self._made_key()
        return self._key

    def _made_key(self) -> SortKey:
        raise NotImplementedError

    def value(self, point: Mapping[Variable, Any]) -> Any:
        """The number that this atom has at `point`; with arrays, at many points at once."""
        raise NotImplementedError


class Variable(Atom):
    """An integer variable with inclusive bounds; the same name and bounds give the same object.

    Attributes:
        name, lower, upper: what it is made of.
        expr: it as an expression; the constant, where its bounds are one point.
    """

    __slots__ = ("expr", "lower", "name", "upper")

    weight = 1
    operands = ()
    name: str
    lower: int
    upper: int
    expr: Expr

    def __new__(cls, name: str, lower: int, upper: int) -> Variable:
        """The variable `name` in ``[lower, upper]``; with ``lower > upper`` no point exists."""
        made_of = name, lower, upper
        held = _VARIABLES.get(made_of)
        known = None if held is None else held()
        if known is not None:
            return known
        self = object.__new__(cls)
        self.name, self.lower, self.upper, self.bounds = name, lower, upper, (lower, upper)
        self._key = None
        point = lower == upper
        self.expr = sums.Expr({}, lower) if point else sums.Expr({self: 1}, 0)
        return _VARIABLES.add(made_of, self)

    def __reduce__(self) -> tuple[type[Variable], tuple[str, int, int]]:
        return Variable, (self.name, self.lower, self.upper)

    def __repr__(self) -> str:
        return f"Variable({self.name!r}, {self.lower}, {self.upper})"

    def _made_key(self) -> SortKey:
        prefix, number = _SPLIT_NAME.fullmatch(self.name).groups()  # type: ignore[union-attr]
        return (0, prefix, len(number), number, self.lower, self.upper)  # d2 before d10

    @property
    def is_empty(self) -> bool:
        """No value is possible."""
        return self.lower > self.upper

    def as_expr(self) -> Expr:
        """This variable, or the constant that it is, as an expression."""
        return self.expr

    # Its operators are those of its expression.

    def __add__(self, other: Affine) -> Expr:
        return self.expr + other

    def __radd__(self, other: int) -> Expr:
        return self.expr + other

    def __sub__(self, other: Affine) -> Expr:
        return self.expr - other

    def __rsub__(self, other: int) -> Expr:
        return other - self.expr

    def __neg__(self) -> Expr:
        return -self.expr

    def __mul__(self, factor: Affine) -> Expr:
        if factor.__class__ is int and factor and self.lower != self.upper:  # nearly always
            return sums.Expr({self: factor}, 0)
        return self.expr * factor

    def __rmul__(self, factor: int) -> Expr:
        return self.expr * factor

    def __floordiv__(self, divisor: Affine) -> Expr:
        return self.expr // divisor

    def __mod__(self, modulus: Affine) -> Expr:
        return self.expr % modulus

    def renamed(self, name: str) -> Variable:
        """The same bounds under another name."""
        return Variable(name, self.lower, self.upper)

    def value(self, point: Mapping[Variable, Any]) -> Any:
        return point[self]


_VARIABLES: Final = Atoms[Variable]()
_SPLIT_NAME: Final = re.compile(r"(.*?)(\d*)", re.DOTALL)  # matches every name


class Floor(Atom):
    """``floor(numerator / divisor)``: an atom that the laws could not take apart.

    Made by `simplifier.divmod` alone, which guarantees that no law applies to it.
    """

    __slots__ = ("_weight", "divisor", "numerator", "operands")

    numerator: Expr
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

    def _made_key(self) -> SortKey:
        return (1, self.divisor, self.numerator.key)

    def value(self, point: Mapping[Variable, Any]) -> Any:
        return self.numerator.value(point) // self.divisor


_FLOORS: Final = Atoms[Floor]()

# Sums are written on top of this module.
import simplifier.linear as sums  # noqa: E402

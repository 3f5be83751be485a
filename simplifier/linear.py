"""The normal form: ``constant + Σ coefficient · atom``, sorted, like terms merged, hash-consed.

An atom is a bounded `Variable` or a `Floor`: the floor of an expression in normal form over a
positive constant.  There is no atom for ``mod``: ``x mod c`` is ``x − c·floor(x / c)``, so that
identities such as ``c·(x floordiv c) + x mod c = x`` hold by adding like terms.  `simplifier.mods`
finds the mods again for bounds and for printing; `simplifier.divmod` holds the laws that are
applied when a floor is built.

Integers are Python's: nothing saturates and nothing overflows.

>>> d0, d1 = variable("d0", 0, 9), variable("d1", 0, 3)
>>> (d0 * 4 + d1) // 4
Expr('d0')
>>> d0 * 2 + d1 - d0
Expr('d0 + d1')
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias, Union
from weakref import WeakValueDictionary

from simplifier.interval import Interval

Affine: TypeAlias = Union["Expr", "Variable", int]
Term: TypeAlias = tuple["Atom", int]
SortKey: TypeAlias = tuple[object, ...]


class Arithmetic:
    """``+ - * // %`` for everything that stands for an expression."""

    __slots__ = ()

    def as_expr(self) -> Expr:
        """This value as an expression in normal form."""
        raise NotImplementedError

    def __add__(self, other: Affine) -> Expr:
        return added(self.as_expr(), as_expr(other))

    def __radd__(self, other: int) -> Expr:
        return added(as_expr(other), self.as_expr())

    def __sub__(self, other: Affine) -> Expr:
        return added(self.as_expr(), as_expr(other), -1)

    def __rsub__(self, other: int) -> Expr:
        return added(as_expr(other), self.as_expr(), -1)

    def __neg__(self) -> Expr:
        return scaled(self.as_expr(), -1)

    def __mul__(self, factor: int) -> Expr:
        return scaled(self.as_expr(), factor)

    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> Expr:
        from simplifier.divmod import floor_div  # the laws are written on top of this module

        return floor_div(self.as_expr(), divisor)

    def __mod__(self, divisor: int) -> Expr:
        from simplifier.divmod import floor_mod

        return floor_mod(self.as_expr(), divisor)


class Variable(Arithmetic):
    """An integer variable with inclusive bounds; the same name and bounds give the same object.

    A variable whose bounds are one point is that constant wherever it is used in an expression.
    """

    __slots__ = ("__weakref__", "_expr", "key", "lower", "name", "upper")

    name: str
    lower: int
    upper: int
    key: SortKey
    _expr: Expr | None
    _known: Final = WeakValueDictionary[tuple[str, int, int], "Variable"]()

    def __new__(cls, name: str, lower: int, upper: int) -> Variable:
        """The variable `name` in ``[lower, upper]``; with ``lower > upper`` no point exists."""
        known = cls._known.get((name, lower, upper))
        if known is not None:
            return known
        self = super().__new__(cls)
        self.name, self.lower, self.upper, self._expr = name, lower, upper, None
        prefix, number = _SPLIT_NAME.fullmatch(name).groups()  # type: ignore[union-attr]  # always
        self.key = (0, prefix, len(number), number, lower, upper)  # d2 before d10
        cls._known[name, lower, upper] = self
        return self

    def __reduce__(self) -> tuple[type[Variable], tuple[str, int, int]]:
        return Variable, (self.name, self.lower, self.upper)

    def __repr__(self) -> str:
        return f"Variable({self.name!r}, {self.lower}, {self.upper})"

    @property
    def bounds(self) -> Interval:
        """``(lower, upper)``, both included."""
        return self.lower, self.upper

    @property
    def is_empty(self) -> bool:
        """No value is possible."""
        return self.lower > self.upper

    def as_expr(self) -> Expr:
        if self._expr is None:
            point = self.lower == self.upper
            self._expr = make((), self.lower) if point else make(((self, 1),), 0)
        return self._expr

    def renamed(self, name: str) -> Variable:
        """The same bounds under another name."""
        return Variable(name, self.lower, self.upper)


_SPLIT_NAME: Final = re.compile(r"(.*?)(\d*)", re.DOTALL)


class Floor:
    """``floor(numerator / divisor)``: an atom that the laws could not take apart.

    Made by `simplifier.divmod` alone, which guarantees that no law applies to it.
    """

    __slots__ = ("__weakref__", "bounds", "divisor", "key", "numerator", "weight")

    numerator: Expr
    divisor: int
    bounds: Interval
    key: SortKey
    weight: int
    _known: Final = WeakValueDictionary[tuple["Expr", int], "Floor"]()

    def __new__(cls, numerator: Expr, divisor: int, bounds: Interval) -> Floor:
        """The atom for ``floor(numerator / divisor)``, whose value lies in `bounds`."""
        known = cls._known.get((numerator, divisor))
        if known is not None:
            return known
        self = super().__new__(cls)
        self.numerator, self.divisor, self.bounds = numerator, divisor, bounds
        self.key = (1, divisor, numerator.key)
        self.weight = 1 + numerator.weight
        cls._known[numerator, divisor] = self
        return self

    def __reduce__(self) -> tuple[type[Floor], tuple[Expr, int, Interval]]:
        return Floor, (self.numerator, self.divisor, self.bounds)

    def __repr__(self) -> str:
        return f"Floor({self.numerator!r}, {self.divisor})"


Atom: TypeAlias = Variable | Floor


class Expr(Arithmetic):
    """``constant + Σ coefficient · atom``: coefficients are not 0, atoms are distinct and in order.

    Made by `make` and the operators, never directly.  Equality is structural (and, because the same
    structure is the same object as long as both are in use, cheap).
    """

    __slots__ = ("_hash", "_key", "bounds_memo", "constant", "floor_memo", "terms")

    terms: tuple[Term, ...]
    constant: int
    bounds_memo: Interval | None
    floor_memo: dict[int, Expr] | None

    def __init__(self, terms: tuple[Term, ...], constant: int, hashed: int) -> None:
        self.terms, self.constant, self._hash = terms, constant, hashed
        self.bounds_memo = self.floor_memo = None
        self._key: SortKey | None = None

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Expr):
            return NotImplemented
        return self.constant == other.constant and self.terms == other.terms

    def __reduce__(self) -> tuple[object, tuple[tuple[Term, ...], int]]:
        return make, (self.terms, self.constant)

    def __repr__(self) -> str:
        return f"Expr({str(self)!r})"

    def __str__(self) -> str:
        from simplifier.text import expr_text  # text prints what this module defines

        return expr_text(self)

    def as_expr(self) -> Expr:
        return self

    @property
    def key(self) -> SortKey:
        """Orders expressions the same way in every process."""
        if self._key is None:
            self._key = (tuple([(a.key, c) for a, c in self.terms]), self.constant)
        return self._key

    @property
    def bounds(self) -> Interval:
        """An interval that holds every value, from the variables' own bounds."""
        from simplifier.bounds import NOTHING_KNOWN

        return NOTHING_KNOWN.bounds(self)

    @property
    def is_constant(self) -> bool:
        """No variable is left."""
        return not self.terms

    @property
    def weight(self) -> int:
        """How many atoms its text has; far more than the expression itself, where parts recur."""
        return sum(atom.weight if isinstance(atom, Floor) else 1 for atom, _ in self.terms)

    @property
    def as_variable(self) -> Variable | None:
        """The variable that this expression is, or `None` when it is anything else."""
        if len(self.terms) == 1 and self.constant == 0:
            atom, coefficient = self.terms[0]
            if coefficient == 1 and isinstance(atom, Variable):
                return atom
        return None

    def variables(self) -> Iterator[Variable]:
        """Every variable in it, those inside floors too; one may come several times."""
        pending = [self]
        while pending:
            for atom, _ in pending.pop().terms:
                if isinstance(atom, Variable):
                    yield atom
                else:
                    pending.append(atom.numerator)

    def value(self, point: Mapping[Variable, int]) -> int:
        """The number that this expression has at `point`.

        >>> d0 = Variable("d0", 0, 9)
        >>> (d0 // 4 - 1).value({d0: 7})
        0
        """
        total = self.constant
        for atom, coefficient in self.terms:
            if isinstance(atom, Variable):
                total += coefficient * point[atom]
            else:
                total += coefficient * (atom.numerator.value(point) // atom.divisor)
        return total


# Expressions in use, by structure.  Emptied when it grows past the limit: equality is structural,
# so an expression that is made again is merely another equal object.
_KNOWN: dict[tuple[tuple[Term, ...], int], Expr] = {}
_KNOWN_LIMIT: Final = 1 << 20


def make(terms: tuple[Term, ...], constant: int) -> Expr:
    """The expression with these terms, which are in order and have no zero coefficient."""
    key = terms, constant
    known = _KNOWN.get(key)
    if known is None:
        if len(_KNOWN) >= _KNOWN_LIMIT:
            _KNOWN.clear()
        known = _KNOWN[key] = Expr(terms, constant, hash(key))
    return known


def gather(coefficients: Mapping[Atom, int], constant: int) -> Expr:
    """The sum of `coefficients`, given in any order and with zeros."""
    terms = [term for term in coefficients.items() if term[1]]
    if len(terms) > 1:
        terms.sort(key=_term_key)
    return make(tuple(terms), constant)


def _term_key(term: Term) -> SortKey:
    return term[0].key


def variable(name: str, lower: int, upper: int) -> Expr:
    """The variable `name` in ``[lower, upper]``, both included, as an expression."""
    return Variable(name, lower, upper).as_expr()


def constant(value: int) -> Expr:
    """The expression that is `value` everywhere."""
    return make((), value)


def as_expr(value: Affine) -> Expr:
    """`value` as an expression."""
    return make((), int(value)) if isinstance(value, int) else value.as_expr()


def added(a: Expr, b: Expr, factor: int = 1) -> Expr:
    """``a + factor·b``."""
    if not b.terms:
        return make(a.terms, a.constant + factor * b.constant)
    if not a.terms and factor == 1:
        return make(b.terms, a.constant + b.constant)
    total = dict(a.terms)
    for atom, coefficient in b.terms:
        total[atom] = total.get(atom, 0) + factor * coefficient
    return gather(total, a.constant + factor * b.constant)


def scaled(a: Expr, factor: int) -> Expr:
    """``factor·a``."""
    if factor == 1:
        return a
    if factor == 0:
        return make((), 0)
    return make(tuple([(atom, c * factor) for atom, c in a.terms]), a.constant * factor)


def combined(parts: Iterable[tuple[int, Expr]], constant: int = 0) -> Expr:
    """``constant + Σ coefficient·expression``."""
    total: dict[Atom, int] = {}
    for factor, part in parts:
        constant += factor * part.constant
        for atom, coefficient in part.terms:
            total[atom] = total.get(atom, 0) + factor * coefficient
    return gather(total, constant)

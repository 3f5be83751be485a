"""The normal form: ``constant + Σ coefficient · atom``, like terms merged.

An atom is a bounded `Variable`, a `Floor` (the floor of an expression in normal form over a
positive constant), or what is not affine (`simplifier.semiaffine`).  There is no atom for ``mod``:
``x mod c`` is ``x − c·floor(x / c)``, so that identities such as ``c·(x floordiv c) + x mod c = x``
hold by adding like terms.  `simplifier.mods` finds the mods again for bounds and for printing;
`simplifier.divmod` holds the laws that are applied when a floor is built.

Atoms are unique: the same structure is the same object, so that terms merge by identity.  Sums are
plain dictionaries and are compared as such.  Integers are Python's: nothing overflows.

>>> d0, d1 = variable("d0", 0, 9), variable("d1", 0, 3)
>>> (d0 * 4 + d1) // 4
Expr('d0')
>>> d0 * 2 + d1 - d0
Expr('d0 + d1')
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from operator import index
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar, Union
from weakref import ref

from simplifier.interval import Interval

if TYPE_CHECKING:
    from simplifier.mods import Split

Affine: TypeAlias = Union["Expr", "Variable", int]
Term: TypeAlias = tuple["Atom", int]
SortKey: TypeAlias = tuple[object, ...]
Unique = TypeVar("Unique", bound=Hashable)


class Arithmetic:
    """``+ - * // %`` for everything that stands for an expression."""

    __slots__ = ()

    def as_expr(self) -> Expr:
        """This value as an expression in normal form."""
        raise NotImplementedError

    def __add__(self, other: Affine) -> Expr:
        if other.__class__ is int:
            own = self.as_expr()
            return Expr(own.parts, own.constant + other)
        return added(self.as_expr(), other if other.__class__ is Expr else as_expr(other))

    def __radd__(self, other: int) -> Expr:
        return added(self.as_expr(), as_expr(other))

    def __sub__(self, other: Affine) -> Expr:
        return added(self.as_expr(), other if other.__class__ is Expr else as_expr(other), -1)

    def __rsub__(self, other: int) -> Expr:
        return added(as_expr(other), self.as_expr(), -1)

    def __neg__(self) -> Expr:
        return scaled(self.as_expr(), -1)

    def __mul__(self, factor: Affine) -> Expr:
        if factor.__class__ is int:
            return scaled(self.as_expr(), factor)
        return semiaffine.product(self.as_expr(), as_expr(factor))

    __rmul__ = __mul__

    def __floordiv__(self, divisor: Affine) -> Expr:
        if divisor.__class__ is int:
            return laws.floor_div(self.as_expr(), divisor)
        return semiaffine.quotient(self.as_expr(), as_expr(divisor))

    def __mod__(self, modulus: Affine) -> Expr:
        if modulus.__class__ is int:
            return laws.floor_mod(self.as_expr(), modulus)
        return semiaffine.remainder(self.as_expr(), as_expr(modulus))


class Atoms(Generic[Unique]):
    """The atoms in use, each once, found by what they are made of.

    Those that nobody has any more are swept out whenever the table has doubled.
    """

    __slots__ = ("_held", "_most")

    def __init__(self) -> None:
        self._held: dict[Hashable, ref[Unique]] = {}
        self._most = 1024

    def get(self, made_of: Hashable) -> Unique | None:
        """The atom that is made of this, if it is in use."""
        held = self._held.get(made_of)
        return None if held is None else held()

    def add(self, made_of: Hashable, atom: Unique) -> Unique:
        """`atom`, which is found from now on."""
        if len(self._held) >= self._most:
            self._held = {key: held for key, held in self._held.items() if held() is not None}
            self._most = max(1024, 2 * len(self._held))
        self._held[made_of] = ref(atom)
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

    def value(self, point: Mapping[Variable, int]) -> int:
        """The number that this atom has at `point`."""
        raise NotImplementedError


class Variable(Atom, Arithmetic):
    """An integer variable with inclusive bounds; the same name and bounds give the same object.

    A variable whose bounds are one point is that constant wherever it is used in an expression.
    """

    __slots__ = ("_expr", "lower", "name", "upper")

    weight = 1
    operands = ()
    name: str
    lower: int
    upper: int
    _expr: Expr | None

    def __new__(cls, name: str, lower: int, upper: int) -> Variable:
        """The variable `name` in ``[lower, upper]``; with ``lower > upper`` no point exists."""
        made_of = name, lower, upper
        known = _VARIABLES.get(made_of)
        if known is not None:
            return known
        self = super().__new__(cls)
        self.name, self.lower, self.upper, self.bounds = name, lower, upper, (lower, upper)
        self._key = self._expr = None
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
        if self._expr is None:
            point = self.lower == self.upper
            self._expr = Expr({}, self.lower) if point else Expr({self: 1}, 0)
        return self._expr

    def renamed(self, name: str) -> Variable:
        """The same bounds under another name."""
        return Variable(name, self.lower, self.upper)

    def value(self, point: Mapping[Variable, int]) -> int:
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
        known = _FLOORS.get(made_of)
        if known is not None:
            return known
        self = super().__new__(cls)
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

    def value(self, point: Mapping[Variable, int]) -> int:
        return self.numerator.value(point) // self.divisor


_FLOORS: Final = Atoms[Floor]()


class Expr(Arithmetic):
    """``constant + Σ coefficient · atom``: coefficients are not 0, atoms are distinct.

    Made by the operators and the functions below.  Equality is structural.

    Attributes:
        parts: the coefficient of each atom, in no particular order; never changed.
        constant: what is added to them.
    """

    __slots__ = (
        *("_identity", "_terms", "constant", "parts"),
        *("bounds_memo", "floor_memo", "split_memo"),  # what other modules found out about it
    )

    parts: dict[Atom, int]
    constant: int
    bounds_memo: Interval | None
    floor_memo: dict[int, Expr] | None
    split_memo: Split | None

    def __init__(self, parts: dict[Atom, int], constant: int) -> None:
        self.parts, self.constant = parts, constant
        self.bounds_memo = self.floor_memo = self.split_memo = None
        self._terms: tuple[Term, ...] | None = None
        self._identity: tuple[frozenset[Term], int] | None = None

    @property
    def identity(self) -> tuple[frozenset[Term], int]:
        """Equal for equal expressions alone; hashed fast after the first time."""
        if self._identity is None:
            self._identity = frozenset(self.parts.items()), self.constant
        return self._identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Expr):
            return NotImplemented
        return self.constant == other.constant and self.parts == other.parts

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
    def terms(self) -> tuple[Term, ...]:
        """Pairs of an atom and its coefficient, in the same order in every process."""
        if self._terms is None:
            terms = list(self.parts.items())
            if len(terms) > 1:
                terms.sort(key=_term_key)
            self._terms = tuple(terms)
        return self._terms

    @property
    def key(self) -> SortKey:
        """Orders expressions the same way in every process."""
        return tuple([(atom.key, c) for atom, c in self.terms]), self.constant

    @property
    def bounds(self) -> Interval:
        """An interval that holds every value, from the variables' own bounds."""
        return self.bounds_memo or facts.NOTHING_KNOWN.bounds(self)

    @property
    def is_constant(self) -> bool:
        """No variable is left."""
        return not self.parts

    @property
    def is_affine(self) -> bool:
        """It has no product, quotient, minimum or maximum of variables anywhere inside."""
        return all(
            isinstance(atom, Variable) or (isinstance(atom, Floor) and atom.numerator.is_affine)
            for atom in self.parts
        )

    @property
    def weight(self) -> int:
        """How many atoms its text has; far more than the expression itself, where parts recur."""
        return sum([atom.weight for atom in self.parts])

    @property
    def as_variable(self) -> Variable | None:
        """The variable that this expression is, or `None` when it is anything else."""
        if len(self.parts) == 1 and self.constant == 0:
            ((atom, coefficient),) = self.parts.items()
            if coefficient == 1 and isinstance(atom, Variable):
                return atom
        return None

    def variables(self) -> Iterator[Variable]:
        """Every variable in it, those inside other atoms too; one may come several times."""
        pending = [self]
        while pending:
            for atom, _ in pending.pop().terms:
                if isinstance(atom, Variable):
                    yield atom
                else:
                    pending.extend(atom.operands)

    def value(self, point: Mapping[Variable, int]) -> int:
        """The number that this expression has at `point`.

        Raises:
            ZeroDivisionError: something is divided by an expression that is 0 there.

        >>> d0 = Variable("d0", 0, 9)
        >>> (d0 // 4 - 1).value({d0: 7})
        0
        """
        total = self.constant
        for atom, coefficient in self.parts.items():
            total += coefficient * atom.value(point)
        return total


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


def _term_key(term: Term) -> SortKey:
    return term[0].key


def make(terms: Iterable[Term], constant: int) -> Expr:
    """The expression with these terms, whose atoms are distinct and coefficients not 0."""
    return Expr(dict(terms), constant)


def alone(atom: Atom) -> Expr:
    """The expression that is one atom."""
    return Expr({atom: 1}, 0)


def gather(coefficients: dict[Atom, int], constant: int) -> Expr:
    """The sum of `coefficients`, which is given away; some may be 0."""
    if 0 in coefficients.values():
        coefficients = {atom: c for atom, c in coefficients.items() if c}
    return Expr(coefficients, constant)


def variable(name: str, lower: int, upper: int) -> Expr:
    """The variable `name` in ``[lower, upper]``, both included, as an expression."""
    return Variable(name, lower, upper).as_expr()


def constant(value: int) -> Expr:
    """The expression that is `value` everywhere."""
    return Expr({}, value)


def as_expr(value: Affine) -> Expr:
    """`value` as an expression."""
    return value.as_expr() if isinstance(value, Arithmetic) else Expr({}, index(value))


def added(a: Expr, b: Expr, factor: int = 1) -> Expr:
    """``a + factor·b`` for a factor other than 0."""
    if not b.parts:
        return Expr(a.parts, a.constant + factor * b.constant)
    if not a.parts and factor == 1:
        return Expr(b.parts, a.constant + b.constant)
    total = a.parts.copy()
    for atom, coefficient in b.parts.items():
        merged = total.get(atom, 0) + factor * coefficient
        if merged:
            total[atom] = merged
        else:
            del total[atom]
    return Expr(total, a.constant + factor * b.constant)


def scaled(a: Expr, factor: int) -> Expr:
    """``factor·a``."""
    if factor == 1:
        return a
    if factor == 0:
        return Expr({}, 0)
    return Expr({atom: c * factor for atom, c in a.parts.items()}, a.constant * factor)


def combined(pieces: Iterable[tuple[int, Expr]], constant: int = 0) -> Expr:
    """``constant + Σ coefficient·expression``."""
    total: dict[Atom, int] = {}
    for factor, piece in pieces:
        constant += factor * piece.constant
        for atom, coefficient in piece.parts.items():
            total[atom] = total.get(atom, 0) + factor * coefficient
    return gather(total, constant)


# The operators above use what is written on top of this module.
import simplifier.bounds as facts  # noqa: E402
import simplifier.divmod as laws  # noqa: E402
import simplifier.semiaffine as semiaffine  # noqa: E402

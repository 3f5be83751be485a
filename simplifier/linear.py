"""The normal form: ``constant + Σ coefficient · atom``, like terms merged.

An atom is a bounded `Variable`, a `Floor` (the floor of an expression in normal form over a
positive constant), or a semi-affine atom (`simplifier.semiaffine`).  There is no atom for ``mod``:
``x mod c`` is ``x - c·floor(x / c)``, so identities such as ``c·(x floordiv c) + x mod c = x`` hold
by merging like terms.  `simplifier.mods` recovers the mods for bounds and printing;
`simplifier.divmod` has the laws that apply when a floor is built.  Integers are unbounded.

>>> d0, d1 = variable("d0", 0, 9), variable("d1", 0, 3)
>>> (d0 * 4 + d1) // 4, d0 * 2 + d1 - d0
(Expr('d0'), Expr('d0 + d1'))
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import Any, Final, TypeAlias, overload

from simplifier.arguments import AFFINE, integer, interval
from simplifier.interval import Interval
from simplifier.native import mypyc_attr
from simplifier.operations import Operations
from simplifier.shared import MAX_TREE, ordered_terms, shared_value, variables_of
from simplifier.unique import Atom, OrderKey
from simplifier.unique_table import UniqueTable

Term: TypeAlias = tuple[Atom, int]
OPERATIONS: Final[Operations[Expr]] = Operations()


@mypyc_attr(free_list_len=1)
class Expr:
    """``constant + Σ coefficient · atom``, with nonzero coefficients and distinct atoms.

    Operators ``+ - * // %`` construct expressions in normal form.  Equality is structural.

    Attributes:
        parts: the coefficient of each atom, unordered; never modified.
        constant: the constant term.
        modulus: m for a mod, which lies in ``[0, m)`` whatever its terms; otherwise 0.

    Source: MLIR "'affine' Dialect", "Affine Expressions" (``floordiv``, ``mod``).

    >>> d0, s0 = variable("d0", 0, 9), variable("s0", 0, 3)
    >>> (d0 * 4 + s0) // 4, (d0 * 4 + s0) % 4, (d0 - s0).bounds, (s0 + d0 * 4).variables()
    (Expr('d0'), Expr('s0'), (-3, 9), [Variable('d0', 0, 9), Variable('s0', 0, 3)])
    """

    __slots__ = (
        *("_identity", "_terms", "constant", "modulus", "parts"),
        *("bounds_memo", "split_memo"),  # memoised by other modules
    )

    parts: dict[Atom, int]
    constant: int
    modulus: int
    bounds_memo: Interval | None
    split_memo: Any

    def __init__(self, parts: dict[Atom, int], constant: int) -> None:
        self.parts, self.constant, self.modulus = parts, constant, 0
        self.bounds_memo = self.split_memo = None
        self._terms: tuple[Term, ...] | None = None
        self._identity: tuple[frozenset[Term], int] | None = None

    @property
    def identity(self) -> tuple[frozenset[Term], int]:
        """A key that is equal for equal expressions only; memoised."""
        if self._identity is None:
            self._identity = frozenset(self.parts.items()), self.constant
        return self._identity

    def __hash__(self) -> int:
        identity = self._identity
        return hash(self.identity if identity is None else identity)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Expr):
            return NotImplemented
        return self.constant == other.constant and self.parts == other.parts

    def __reduce__(self) -> tuple[object, tuple[Any, ...]]:
        return OPERATIONS.reduced(self)

    def __repr__(self) -> str:
        return f"Expr({str(self)!r})"

    def __str__(self) -> str:
        return OPERATIONS.text(self)

    def as_expr(self) -> Expr:
        """Return the expression itself."""
        return self

    # Sums and multiples are the hottest operations: avoid every call.
    def __add__(self, other: Affine) -> Expr:
        if type(other) is int:
            return Expr(self.parts, self.constant + other)
        other = other if isinstance(other, Expr) else as_expr(other)
        total = self.parts.copy()
        for atom, coefficient in other.parts.items():
            if atom in total:
                coefficient += total[atom]
                if not coefficient:
                    del total[atom]
                    continue
            total[atom] = coefficient
        return Expr(total, self.constant + other.constant)

    def __radd__(self, other: int) -> Expr:
        return Expr(self.parts, self.constant + index(other))

    def __sub__(self, other: Affine) -> Expr:
        return add_multiple(self, other if isinstance(other, Expr) else as_expr(other), -1)

    def __rsub__(self, other: int) -> Expr:
        return add_multiple(as_expr(other), self, -1)

    def __neg__(self) -> Expr:
        return self * -1

    def __mul__(self, factor: Affine) -> Expr:
        if type(factor) is not int:
            return OPERATIONS.product(self, as_expr(factor))
        if factor == 1:
            return self
        multiple: dict[Atom, int] = {}
        if factor:
            for atom, coefficient in self.parts.items():
                multiple[atom] = coefficient * factor
        return Expr(multiple, self.constant * factor)

    def __rmul__(self, factor: int) -> Expr:
        return self * index(factor)

    def __floordiv__(self, divisor: Affine) -> Expr:
        if type(divisor) is int:
            return OPERATIONS.floor_div(self, divisor)
        return OPERATIONS.quotient(self, as_expr(divisor))

    def __mod__(self, modulus: Affine) -> Expr:
        if type(modulus) is int:
            return OPERATIONS.floor_mod(self, modulus)
        return OPERATIONS.remainder(self, as_expr(modulus))

    @property
    def terms(self) -> tuple[Term, ...]:
        """Pairs of an atom and its coefficient, in a deterministic order."""
        if self._terms is None:
            self._terms = ordered_terms(self)
        return self._terms

    @property
    def key(self) -> OrderKey:
        """A sort key, the same in every process."""
        return tuple([(atom.key, c) for atom, c in self.terms]), self.constant

    @property
    def bounds(self) -> Interval:
        """An interval that contains every value, from the bounds of the variables."""
        return self.bounds_memo or OPERATIONS.bounds(self)

    @property
    def is_constant(self) -> bool:
        """True if the expression has no variables."""
        return not self.parts

    @property
    def divides(self) -> bool:
        """True if one of its atoms is a floor."""
        for atom in self.parts:  # noqa: SIM110  # a generator takes three times as long
            if atom.divides:
                return True
        return False

    @property
    def is_affine(self) -> bool:
        """True without products, quotients, minima or maxima of variables, at any depth."""
        return all(atom.is_affine for atom in self.parts)

    @property
    def weight(self) -> int:
        """Number of atoms of its text; far more than distinct atoms if subexpressions recur."""
        total = 0
        for atom in self.parts:
            total += atom.weight
        return total

    @property
    def as_variable(self) -> Variable | None:
        """The variable if the expression is just a variable, else `None`."""
        if self.constant == 0 and list(self.parts.values()) == [1]:
            (atom,) = self.parts
            return atom if isinstance(atom, Variable) else None
        return None

    def variables(self) -> list[Variable]:
        """Return every variable, at any depth, once, in a deterministic order."""
        return variables_of(self)

    @overload
    def value(self, point: Mapping[Variable, int]) -> int: ...
    @overload
    def value(self, point: Mapping[Variable, Any]) -> Any: ...
    def value(self, point: Mapping[Variable, Any]) -> Any:
        """Return the value at `point`, which maps variables to integers, or to NumPy arrays.

        Raises:
            ZeroDivisionError: a divisor is 0 at the point.

        >>> d0 = Variable("d0", 0, 9)
        >>> (d0 // 4 - 1).value({d0: 7})
        0
        """
        return shared_value(self, point) if self.weight > MAX_TREE else self.tree_value(point)

    def tree_value(self, point: Mapping[Variable, Any]) -> Any:
        """Return the value at `point`; parts that occur repeatedly are evaluated repeatedly."""
        terms = [coefficient * atom.value(point) for atom, coefficient in self.parts.items()]
        return sum(terms, self.constant)


class Variable(Atom):
    """An integer variable with inclusive bounds; one object for each name and bounds.

    Attributes:
        name, lower, upper: the name and the bounds; no value is possible if ``lower > upper``.

    >>> d0 = Variable("d0", 0, 9)
    >>> d0 * 2 + 1, d0.expr, d0.bounds, d0.size, d0.renamed("i"), Variable("d0", 0, 9) is d0
    (Expr('d0 * 2 + 1'), Expr('d0'), (0, 9), 10, Variable('i', 0, 9), True)
    """

    __slots__ = ("lower", "name", "upper")

    weight = 1
    depth = 1
    is_affine = True
    operands: tuple[Any, ...] = ()
    name: str
    lower: int
    upper: int

    def __new__(cls, name: str, lower: int, upper: int) -> Variable:
        """Return the unique variable `name` in ``[lower, upper]``."""
        made_of = name, lower, upper
        try:
            known = _KNOWN.get(made_of)
        except TypeError:  # not hashable
            known = None
        if known is not None:
            return known
        if not (type(name) is str and type(lower) is type(upper) is int):
            made_of = name, lower, upper = interval(name, lower, upper)
        self = object.__new__(cls)
        self.name, self.lower, self.upper = name, lower, upper
        self.bounds, self._key = (lower, upper), None
        return _VARIABLES.add(made_of, self)

    def __reduce__(self) -> tuple[type[Variable], tuple[str, int, int]]:
        return Variable, (self.name, self.lower, self.upper)

    def __repr__(self) -> str:
        return f"Variable({self.name!r}, {self.lower}, {self.upper})"

    def _made_key(self) -> OrderKey:
        prefix = self.name.rstrip("0123456789")
        number = self.name[len(prefix) :]
        return (0, prefix, len(number), number, self.lower, self.upper)  # d2 before d10

    @property
    def is_empty(self) -> bool:
        """True if no value is possible."""
        return self.lower > self.upper

    @property
    def size(self) -> int:
        """Number of possible values."""
        return max(0, self.upper - self.lower + 1)

    @property
    def expr(self) -> Expr:
        """The variable as an expression, or a constant if ``lower == upper``."""
        return self.as_expr()

    def as_expr(self) -> Expr:
        """Return `expr`, which is not kept: the references would be a cycle."""
        own = Expr({}, self.lower) if self.lower == self.upper else Expr({self: 1}, 0)
        own.bounds_memo = self.bounds
        return own

    # Operators delegate to the expression.
    def __add__(self, other: Affine) -> Expr:
        return self.as_expr() + other

    def __radd__(self, other: int) -> Expr:
        return self.as_expr() + other

    def __sub__(self, other: Affine) -> Expr:
        return self.as_expr() - other

    def __rsub__(self, other: int) -> Expr:
        return other - self.as_expr()

    def __neg__(self) -> Expr:
        return -self.as_expr()

    def __mul__(self, factor: Affine) -> Expr:
        if type(factor) is int and factor and self.lower != self.upper:  # the common case
            return Expr({self: factor}, 0)
        return self.as_expr() * factor

    def __rmul__(self, factor: int) -> Expr:
        return self.as_expr() * factor

    def __floordiv__(self, divisor: Affine) -> Expr:
        return self.as_expr() // divisor

    def __mod__(self, modulus: Affine) -> Expr:
        return self.as_expr() % modulus

    def renamed(self, name: str) -> Variable:
        """Return a variable with another name and the same bounds."""
        return Variable(name, self.lower, self.upper)

    def value(self, point: Mapping[Variable, Any]) -> Any:
        return point[self]


Affine: TypeAlias = Expr | Variable | int
"""Arguments that `as_expr` converts to expressions."""

_VARIABLES: Final = UniqueTable[Variable]()
_KNOWN: Final = _VARIABLES.objects


def from_atom(atom: Atom) -> Expr:
    """Return an atom as an expression."""
    return Expr({atom: 1}, 0)


def without_zero_terms(coefficients: dict[Atom, int], constant: int) -> Expr:
    """Return the sum of `coefficients`, some of which may be 0; takes ownership of the dict."""
    if 0 in coefficients.values():
        coefficients = {atom: c for atom, c in coefficients.items() if c}
    return Expr(coefficients, constant)


def variable(name: str, lower: int, upper: int) -> Expr:
    """Return the variable `name` in ``[lower, upper]`` as an expression.

    >>> variable("d0", 0, 9) % 16
    Expr('d0')
    """
    return Variable(name, lower, upper).as_expr()


def constant(value: int) -> Expr:
    """Return the constant expression `value`.

    >>> constant(3) + variable("d0", 0, 9)
    Expr('d0 + 3')
    """
    return Expr({}, value if type(value) is int else integer("constant", "value", value))


def as_expr(value: Affine) -> Expr:
    """Return an expression, variable or integer as an expression.

    Raises:
        TypeError: `value` is none of these.

    >>> as_expr(7), as_expr(Variable("d0", 0, 9))
    (Expr('7'), Expr('d0'))
    """
    if isinstance(value, Expr):
        return value
    if isinstance(value, Variable):
        return value.as_expr()
    return Expr({}, value if type(value) is int else integer("as_expr", "value", value, AFFINE))


def add_multiple(a: Expr, b: Expr, factor: int = 1) -> Expr:
    """Return ``a + factor·b`` for a nonzero factor."""
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

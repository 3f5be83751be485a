"""Constraints on residues, ``e mod m in [a, b]``, in canonical form.

Laws (`simplifier.laws`), for all signs, with ``mod`` in ``[0, modulus)``:

* *shift residues*: ``(g + c) mod m in [a, b]`` is ``g mod m in [a − c, b − c]``, modulo m;
* *negate residues*: ``(−g) mod m in [a, b]`` is ``g mod m in [−b, −a]``, modulo m;
* *multiply a congruence by an inverse*: ``k·x + … ≡ r`` is ``x + k⁻¹·… ≡ k⁻¹·r (mod m)``;
* *select the only residue*: with ``g ≡ r (mod m)``, ``g mod k·m in [a, b]`` is ``g ≡ s (mod k·m)``
  if s is the only number of ``[a, b]`` congruent to r, and false if there is none;
* *combine congruences*: ``g ≡ r (mod m)`` and ``g ≡ s (mod n)`` are one congruence modulo
  ``lcm(m, n)``, or false (Chinese remainder theorem);
* *round bounds to residues*: the bounds of a dividend move inwards to values with such residues.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import gcd
from typing import NamedTuple

from simplifier import laws
from simplifier.divmod import floor_mod
from simplifier.interval import Interval, intersect, scale
from simplifier.linear import Expr, Variable, without_zero_terms
from simplifier.mods import split
from simplifier.trace import Law
from simplifier.unique import Atom


class Residues(NamedTuple):
    """``(dividend − lower) mod modulus <= upper − lower``: residues that may wrap around.

    The dividend has no constant, and `lower` lies in ``[0, modulus)``.  If both bounds are equal,
    this is a congruence.  If ``lower > upper``, it is false.
    """

    dividend: Expr
    modulus: int
    lower: int
    upper: int

    @property
    def is_congruence(self) -> bool:
        """True for a single residue."""
        return self.lower == self.upper

    @property
    def is_false(self) -> bool:
        """True if no residue satisfies it."""
        return self.lower > self.upper

    @property
    def written(self) -> tuple[Expr, int, int]:
        """``e mod modulus`` in normal form, with its minimum and its maximum."""
        start = self.lower if self.upper >= self.modulus else 0
        expr = floor_mod(self.dividend - start, self.modulus)
        return expr, self.lower - start, self.upper - start

    def rename(self, changed: Mapping[Variable, Variable]) -> Residues | None:
        """Return the residues of a sum of variables, some of them replaced by others.

        `None` for other dividends, and if a new variable has only one value.
        """
        parts: dict[Atom, int] = {}
        for atom, coefficient in self.dividend.parts.items():
            if not isinstance(atom, Variable):
                return None
            now = changed.get(atom, atom)
            if now.lower == now.upper:
                return None
            parts[now] = coefficient
        return self._replace(dividend=Expr(parts, 0))

    def contains(self, bounds: Interval) -> bool:
        """Return True if every value in `bounds` has such a residue."""
        lower, upper = bounds
        return (lower - self.lower) % self.modulus + upper - lower <= self.upper - self.lower

    def round_bounds(self, bounds: Interval) -> Interval:
        """Return the minimum and the maximum of the values in `bounds` with such a residue.

        >>> from simplifier.linear import variable
        >>> Residues(variable("x", -9, 9), 4, 1, 2).round_bounds((-9, 8))
        (-7, 6)
        """
        low, high = bounds
        width = self.upper - self.lower
        before = (low - self.lower) % self.modulus
        behind = (high - self.lower) % self.modulus
        low += self.modulus - before if before > width else 0
        high -= behind - width if behind > width else 0
        return low, high


def residues_of(expr: Expr, bounds: Interval) -> Residues | None:
    """Return ``expr in bounds`` as canonical residues, or `None` if it is another constraint.

    >>> from simplifier.linear import variable
    >>> residues_of((variable("x", 0, 99) * 3 + 1) % 8, (2, 2))
    Residues(dividend=Expr('x'), modulus=8, lower=3, upper=3)
    """
    return _residues_of(expr, bounds) if expr.divides else None


@lru_cache(maxsize=1 << 11)
def _residues_of(expr: Expr, bounds: Interval) -> Residues | None:
    mods, rest = split(expr)
    if len(mods) != 1 or rest.parts or abs(mods[0].coefficient) != 1:
        return None
    coefficient, dividend, modulus = mods[0].coefficient, mods[0].dividend, mods[0].modulus
    moved = bounds[0] - rest.constant, bounds[1] - rest.constant
    lower, upper = intersect(scale(moved, coefficient), (0, modulus - 1))
    terms = {atom: c % modulus for atom, c in dividend.terms}
    units = [c for c in terms.values() if gcd(c, modulus) == 1] if lower == upper else []
    factor = pow(units[0], -1, modulus) if units else 1
    first, width = (lower - dividend.constant) * factor, upper - lower
    if _least_absolute(next(iter(terms.values())) * factor, modulus) < 0:
        factor, first = -factor, -first - width
    near = {atom: _least_absolute(c * factor, modulus) for atom, c in terms.items()}
    return Residues(without_zero_terms(near, 0), modulus, first % modulus, first % modulus + width)


def _least_absolute(value: int, modulus: int) -> int:
    left = value % modulus
    return left - modulus if left * 2 > modulus else left


def canonical_law(expr: Expr, residues: Residues) -> Law:
    """Return the law that turned a constraint on `expr` into `residues`, for `simplifier.trace`."""
    (mod,), _ = split(expr)
    dividend, canonical = mod.dividend, residues.dividend.parts
    if dividend.parts == canonical:
        return laws.SHIFT_RESIDUES
    is_negated = all(canonical.get(atom) == -c for atom, c in dividend.parts.items())
    return laws.NEGATE_RESIDUES if is_negated else laws.INVERT_COEFFICIENT


def intersection_law(a: Residues, b: Residues) -> Law:
    """Return the law that `intersection` applies to `a` and `b`, for `simplifier.trace`."""
    if a.modulus == b.modulus:
        return laws.INTERSECT_RESIDUES
    if a.is_congruence and b.is_congruence:
        return laws.COMBINE_CONGRUENCES
    congruence, other = (a, b) if a.is_congruence else (b, a)
    is_finer = congruence.modulus % other.modulus == 0
    return laws.DECIDE_RESIDUE if is_finer else laws.SELECT_RESIDUE


def intersection(a: Residues, b: Residues) -> Residues | None:
    """Return the conjunction of residues of one dividend; `None` if it is not one `Residues`.

    >>> from simplifier.linear import variable
    >>> x = variable("x", -99, 99)
    >>> intersection(Residues(x, 4, 1, 1), Residues(x, 6, 3, 3))
    Residues(dividend=Expr('x'), modulus=12, lower=9, upper=9)
    """
    if a.modulus == b.modulus:
        return _common(a, b)
    if a.is_congruence and b.is_congruence:
        return _chinese(a, b)
    congruence, other = (a, b) if a.is_congruence else (b, a)
    if not congruence.is_congruence:
        return None
    if congruence.modulus % other.modulus == 0:
        value = congruence.lower
        return congruence if other.contains((value, value)) else _false(congruence)
    return _only(congruence, other) if other.modulus % congruence.modulus == 0 else None


def _false(a: Residues) -> Residues:
    return a._replace(lower=1, upper=0)


def _only(congruence: Residues, other: Residues) -> Residues | None:
    """Select the residue of `other`, whose modulus is a multiple, that fits the congruence."""
    lower, upper = congruence.round_bounds((other.lower, other.upper))
    if lower > upper:
        return _false(other)
    value = lower % other.modulus
    return other._replace(lower=value, upper=value) if lower == upper else None


def _common(a: Residues, b: Residues) -> Residues | None:
    """Intersect residues of one modulus; `None` if the intersection has two pieces."""
    width, start = a.upper - a.lower, (b.lower - a.lower) % a.modulus
    end = start + b.upper - b.lower
    pieces = [(start, min(width, end)), (0, min(width, end - a.modulus))]
    pieces = [(low, high) for low, high in pieces if low <= high]
    if len(pieces) != 1:
        return None if pieces else _false(a)
    ((low, high),) = pieces
    first = (a.lower + low) % a.modulus
    return a._replace(lower=first, upper=first + high - low)


def _chinese(a: Residues, b: Residues) -> Residues:
    common = gcd(a.modulus, b.modulus)
    steps, left = divmod(b.lower - a.lower, common)
    if left:
        return _false(a)
    other = b.modulus // common
    value = a.lower + a.modulus * (steps * pow(a.modulus // common, -1, other) % other)
    return Residues(a.dividend, a.modulus * other, value, value)

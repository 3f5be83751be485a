"""Recombine ``a·(g mod m)`` from ``a·g − a·m·floor(g / m)``, its normal form.

Bounds need mods: ``x mod m`` lies in ``[0, m − 1]``, but the sum of the intervals of its two terms
is wider.  The laws of division and the printer need them too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import gcd
from typing import Final, Literal, TypeAlias

from simplifier.atoms import Atom, Floor
from simplifier.linear import Expr, from_atom


class Mod:
    """``coefficient · (dividend mod modulus)``; `floor` is ``dividend floordiv modulus``."""

    __slots__ = ("coefficient", "dividend", "floor", "modulus")

    def __init__(self, coefficient: int, dividend: Expr, modulus: int, floor: Floor) -> None:
        self.coefficient, self.dividend = coefficient, dividend
        self.modulus, self.floor = modulus, floor

    def is_same(self, other: Mod) -> bool:
        """Return True if all attributes are equal."""
        return (
            self.floor is other.floor
            and self.coefficient == other.coefficient
            and self.modulus == other.modulus
            and self.dividend == other.dividend
        )


Split: TypeAlias = tuple[tuple[Mod, ...], Expr]
"""An expression as a sum of mods, and a rest without mods."""


def split(expr: Expr) -> Split:
    """Return mods and a rest with ``expr = Σ mods + rest``; memoised.

    >>> from simplifier.linear import variable
    >>> d0 = variable("d0", 0, 99)
    >>> (mod,), rest = split(d0 % 10 * 3 + 1)
    >>> mod.coefficient, mod.dividend, mod.modulus, mod.floor, rest
    (3, Expr('d0'), 10, Floor(Expr('d0'), 10), Expr('1'))
    """
    memo: Split | Literal[False] | None = expr.split_memo
    if memo is None:
        floors = floors_of(expr)
        own = split_for(expr, floors, 0) if may_contain_mods(floors, expr.parts) else ((), expr)
        memo = expr.split_memo = own if own[0] else False  # no reference of `expr` to itself
    return memo or ((), expr)


def split_for(expr: Expr, floors: list[Floor], divisor: int) -> Split:
    """Return the `split` of an expression with these floors, which is to be divided by `divisor`.

    A term of a floor stays in the rest if its coefficient shares a larger factor with the divisor.
    If the divisor is 0, the expression is not divided.
    """
    if len(floors) > 1:
        _by_divisor(floors, -1)
        if divisor:  # last those whose terms are multiples of the divisor
            floors.sort(key=lambda floor: expr.parts[floor] % divisor == 0)
    return _collect_mods(expr, floors, divisor, _mod_of)


def split_finest(expr: Expr) -> Split:
    """Return a split with every mod whose dividend is in `expr`, those of small moduli first.

    Terms of floors may stay in the rest.  Its bounds can be tighter nevertheless.
    """
    floors = floors_of(expr)
    return split_finest_for(expr, floors) if may_contain_mods(floors, expr.parts) else ((), expr)


def split_finest_for(expr: Expr, floors: list[Floor]) -> Split:
    """Return `split_finest` of an expression with these floors."""
    if len(floors) > 1:
        _by_divisor(floors, 1)
    return _collect_mods(expr, floors, 0, _finest_mod_of)


MAX_FLOORS: Final = 32
"""Maximum number of floors in a sum in which mods are recombined, which compares them in pairs."""


def may_contain_mods(floors: list[Floor], terms: dict[Atom, int]) -> bool:
    """Return False if no part of `terms`, with any coefficients, is a mod of one of `floors`.

    Also return False for more than `MAX_FLOORS` floors: their mods stay expanded.  Otherwise this
    is a fast necessary condition, since most sums have no mod.  A mod needs atoms of its dividend:
    the floor's numerator, a finer floor, or, unless the divisor is a small prime, a part of the
    numerator.
    """
    if len(floors) > MAX_FLOORS:
        return False
    atoms = terms.keys()
    for floor in floors:
        numerator = floor.numerator.parts
        if not numerator.keys().isdisjoint(atoms):
            if floor.divisor > 3 or numerator.keys() <= atoms:
                return True
        for other in floors if len(floors) > 1 else ():
            if other is not floor and other.numerator.parts == numerator:
                return True
    return False


def floors_of(expr: Expr) -> list[Floor]:
    """Floors that may be part of a mod in `expr`."""
    floors: list[Floor] = []
    if len(expr.parts) > 1:
        for atom in expr.parts:
            if isinstance(atom, Floor):
                floors.append(atom)
    return floors


FoundMod: TypeAlias = tuple[Mod, int] | None
"""The mod of a floor in a sum, if it has one, and the remaining coefficient of the floor."""


def _collect_mods(
    expr: Expr,
    floors: list[Floor],
    divisor: int,
    mod_of: Callable[[Floor, dict[Atom, int], list[Floor], int], FoundMod],
) -> Split:
    """Split off the mods that `mod_of` returns for each floor and the remaining terms."""
    left = expr.parts
    constant = expr.constant
    mods: list[Mod] = []
    for floor in floors:
        match = mod_of(floor, left, floors, divisor) if floor in left else None
        if match is None:
            continue
        mod, remaining = match
        if not mods:
            left = left.copy()
        for atom in mod.dividend.parts:
            del left[atom]
        constant -= mod.coefficient * mod.dividend.constant
        if remaining:
            left[floor] = remaining
        else:
            del left[floor]
        mods.append(mod)
    if not mods:
        return (), expr
    return tuple(mods), Expr(left, constant)


def _by_divisor(floors: list[Floor], sign: int) -> None:
    """Sort floors by divisor, ascending for a positive `sign`, and then by key.

    Keys are slow to build, so they are only built for equal divisors.
    """
    if len({floor.divisor for floor in floors}) == len(floors):
        floors.sort(key=lambda floor: sign * floor.divisor)
    else:
        floors.sort(key=lambda floor: (sign * floor.divisor, floor.key))


def _mod_of(floor: Floor, terms: dict[Atom, int], floors: list[Floor], divisor: int) -> FoundMod:
    """Return the mod of `floor` in `terms`, which are to be divided by `divisor` unless it is 0."""
    current = terms[floor]
    for dividend, modulus in _same_numerator(floor, terms, floors):
        coefficient = _multiple(dividend, terms)
        if coefficient:
            remaining = current + coefficient * modulus
            if not remaining or (divisor and _is_simpler(remaining, current, divisor)):
                return Mod(coefficient, dividend, modulus, floor), remaining
    if current != 1 and current != -1:
        for dividend, modulus in _inner_quotients(floor, terms):
            coefficient = -current // modulus
            if _multiple(dividend, terms) == coefficient:
                return Mod(coefficient, dividend, modulus, floor), 0
    return None


def _finest_mod_of(
    floor: Floor, terms: dict[Atom, int], floors: list[Floor], _divisor: int
) -> FoundMod:
    """Return a mod of `floor` with the smallest modulus whose dividend is in `terms`."""
    for dividend, modulus in reversed(_same_numerator(floor, terms, floors)):
        coefficient = _multiple(dividend, terms)
        if coefficient:
            remaining = terms[floor] + coefficient * modulus
            return Mod(coefficient, dividend, modulus, floor), remaining
    return None


def _is_simpler(remaining: int, current: int, divisor: int) -> bool:
    """Return True if `remaining` is a simpler coefficient than `current` for a division."""
    shared, before = gcd(remaining, divisor), gcd(current, divisor)
    if shared == divisor or shared > before:
        return True
    return shared == before and _residue(remaining, divisor) < _residue(current, divisor)


def _residue(coefficient: int, divisor: int) -> int:
    left = coefficient % divisor
    return min(left, divisor - left)


def _same_numerator(
    floor: Floor, terms: dict[Atom, int], floors: list[Floor]
) -> list[tuple[Expr, int]]:
    """Pairs ``(g, m)`` with ``floor = g floordiv m``: its own pair, and pairs of finer floors."""
    pairs = [(floor.numerator, floor.divisor)]
    for finer in floors if len(floors) > 1 else ():
        if finer is not floor and finer in terms and finer.numerator == floor.numerator:
            ratio, left = divmod(floor.divisor, finer.divisor)
            if not left:
                pairs.append((from_atom(finer), ratio))
    return pairs


def _inner_quotients(floor: Floor, terms: dict[Atom, int]) -> Iterator[tuple[Expr, int]]:
    """Pairs ``(g, m)`` with ``floor = g floordiv m`` where ``g = N floordiv (D / m)`` is a sum.

    ``N floordiv 6`` is ``(N floordiv 2) floordiv 3``, even if ``N floordiv 2`` is no atom.
    """
    current, divisor = terms[floor], floor.divisor
    moduli: dict[int, int] = {}  # of coefficients with the opposite sign
    for coefficient in terms.values():
        if (coefficient < 0) != (current < 0) and coefficient not in moduli:
            modulus, left = divmod(-current, coefficient)
            if not left and 1 < modulus != divisor and not divisor % modulus:
                moduli[coefficient] = modulus
    for coefficient in sorted(moduli, key=abs) if len(moduli) > 1 else moduli:
        modulus = moduli[coefficient]
        dividend = floor.numerator // (divisor // modulus)
        if len(dividend.parts) > 1:
            yield dividend, modulus


def _multiple(part: Expr, terms: dict[Atom, int]) -> int:
    """Return `a` if `terms` contain ``a·part``, constants aside, else 0."""
    factor = 0
    for atom, coefficient in part.parts.items():
        current = terms.get(atom)
        if not current:
            return 0
        if not factor:
            factor, left = divmod(current, coefficient)
            if left:
                return 0
        elif current != factor * coefficient:
            return 0
    return factor

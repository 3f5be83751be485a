"""Finds ``a·(g mod m)`` in an expression, where the normal form holds ``a·g − a·m·floor(g / m)``.

Bounds need it (``x mod m`` lies in ``[0, m − 1]``, which adding the intervals of its two terms
cannot see) and so do the laws of division and the printer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import gcd
from typing import NamedTuple

from simplifier.atoms import Atom, Floor
from simplifier.linear import Expr, from_atom


class Mod(NamedTuple):
    """``coefficient · (dividend mod modulus)``, whose ``dividend floordiv modulus`` is `floor`."""

    coefficient: int
    dividend: Expr
    modulus: int
    floor: Floor


class Split(NamedTuple):
    """An expression as a sum of mods and a rest in which no mod was found."""

    mods: tuple[Mod, ...]
    rest: Expr


def split(expr: Expr, divisor: int = 0) -> Split:
    """``expr = Σ mods + rest``.

    With a `divisor`, `expr` is about to be divided by it: a mod may then also leave on its floor a
    coefficient that shares more with the divisor, because that much leaves the division.

    >>> from simplifier.linear import variable
    >>> d0 = variable("d0", 0, 99)
    >>> split(d0 % 10 * 3 + 1)
    Split(mods=(Mod(coefficient=3, dividend=Expr('d0'), modulus=10, floor=Floor(Expr('d0'), 10)),),
    rest=Expr('1'))
    """
    if divisor:
        return _split(expr, divisor)
    found: Split | None = expr.split_memo
    if found is None:
        found = expr.split_memo = _split(expr, 0)
    return found


def split_finest(expr: Expr) -> Split:
    """``expr = Σ mods + rest`` with every mod whose dividend is there, the finest first.

    What that leaves on the floors does not matter: there may be less to bound all the same.
    """
    floors = _floors(expr)
    if not may_hold_mods(floors, expr.parts):
        return Split((), expr)
    _by_divisor(floors, 1)

    def mod_of(floor: Floor, left: dict[Atom, int]) -> tuple[Mod, int] | None:
        for dividend, modulus in reversed(_same_numerator(floor, left, floors)):
            coefficient = _multiple(dividend, left)
            if coefficient:
                remaining = left[floor] + coefficient * modulus
                return Mod(coefficient, dividend, modulus, floor), remaining
        return None

    return _collected(expr, floors, mod_of)


def _split(expr: Expr, divisor: int) -> Split:
    floors = _floors(expr)
    if not may_hold_mods(floors, expr.parts):
        return Split((), expr)
    _by_divisor(floors, -1)
    if divisor and len(floors) > 1:  # those that leave anyway shall not take from the others
        floors.sort(key=lambda floor: expr.parts[floor] % divisor == 0)
    return _collected(expr, floors, lambda floor, left: _mod_of(floor, left, floors, divisor))


def may_hold_mods(floors: list[Floor], terms: dict[Atom, int]) -> bool:
    """A part of `terms`, with these or other coefficients, may hold a mod with one of its `floors`.

    Most sums hold none, and this sees it at once; where it says yes, there may still be none.
    Atoms of its dividend must be there: the floor's numerator, a finer floor, or, unless the
    divisor is a small prime, some of the numerator.
    """
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


def _floors(expr: Expr) -> list[Floor]:
    """The floors that may be part of a mod in `expr`."""
    if len(expr.parts) < 2:
        return []
    return [atom for atom in expr.parts if isinstance(atom, Floor)]


def _collected(
    expr: Expr,
    floors: list[Floor],
    mod_of: Callable[[Floor, dict[Atom, int]], tuple[Mod, int] | None],
) -> Split:
    """The mods that `mod_of` finds, floor by floor, in what the ones before left."""
    left = expr.parts.copy()
    constant = expr.constant
    mods: list[Mod] = []
    for floor in floors:
        found = mod_of(floor, left) if floor in left else None
        if found is None:
            continue
        mod, remaining = found
        for atom in mod.dividend.parts:
            del left[atom]
        constant -= mod.coefficient * mod.dividend.constant
        if remaining:
            left[floor] = remaining
        else:
            del left[floor]
        mods.append(mod)
    if not mods:
        return Split((), expr)
    return Split(tuple(mods), Expr(left, constant))


def _by_divisor(floors: list[Floor], sign: int) -> None:
    """Sorts them by their divisors, ascending or descending; then by what they are.

    Keys of floors are only made where they decide: that takes longer than all the rest.
    """
    if len(floors) > 1:
        if len({floor.divisor for floor in floors}) == len(floors):
            floors.sort(key=lambda floor: sign * floor.divisor)
        else:
            floors.sort(key=lambda floor: (sign * floor.divisor, floor.key))


def _mod_of(
    floor: Floor, terms: dict[Atom, int], floors: list[Floor], divisor: int
) -> tuple[Mod, int] | None:
    """The mod that `floor` belongs to in `terms`, and the coefficient it leaves on `floor`."""
    have = terms[floor]
    for dividend, modulus in _same_numerator(floor, terms, floors):
        coefficient = _multiple(dividend, terms)
        if coefficient:
            remaining = have + coefficient * modulus
            if not remaining or (divisor and _leaves_less(remaining, have, divisor)):
                return Mod(coefficient, dividend, modulus, floor), remaining
    for dividend, modulus in _inner_quotients(floor, terms) if have not in (1, -1) else ():
        coefficient = -have // modulus
        if _multiple(dividend, terms) == coefficient:
            return Mod(coefficient, dividend, modulus, floor), 0
    return None


def _leaves_less(remaining: int, have: int, divisor: int) -> bool:
    """Of the coefficient `remaining` a division leaves less than of `have`."""
    shared, before = gcd(remaining, divisor), gcd(have, divisor)
    if shared == divisor or shared > before:
        return True
    return shared == before and _residue(remaining, divisor) < _residue(have, divisor)


def _residue(coefficient: int, divisor: int) -> int:
    left = coefficient % divisor
    return min(left, divisor - left)


def _same_numerator(
    floor: Floor, terms: dict[Atom, int], floors: list[Floor]
) -> list[tuple[Expr, int]]:
    """Pairs ``(g, m)`` with ``floor = g floordiv m``: its own, and through a finer floor."""
    found = [(floor.numerator, floor.divisor)]
    for finer in floors if len(floors) > 1 else ():
        if finer is not floor and finer in terms and finer.numerator == floor.numerator:
            ratio, left = divmod(floor.divisor, finer.divisor)
            if not left:
                found.append((from_atom(finer), ratio))
    return found


def _inner_quotients(floor: Floor, terms: dict[Atom, int]) -> Iterator[tuple[Expr, int]]:
    """Pairs ``(g, m)`` with ``floor = g floordiv m`` where ``g = N floordiv (D / m)`` is a sum.

    ``N floordiv 6`` is ``(N floordiv 2) floordiv 3``, also where the laws took ``N floordiv 2``
    apart.
    """
    have = terms[floor]
    opposite = {c for atom, c in terms.items() if atom is not floor and (c < 0) != (have < 0)}
    for coefficient in sorted(opposite, key=lambda c: (abs(c), c)):
        modulus, left = divmod(-have, coefficient)
        if left or modulus <= 1 or floor.divisor % modulus or floor.divisor == modulus:
            continue
        dividend = floor.numerator // (floor.divisor // modulus)
        if len(dividend.parts) > 1:
            yield dividend, modulus


def _multiple(part: Expr, terms: dict[Atom, int]) -> int:
    """The `a` for which `terms` hold ``a·part`` (its constant aside), or 0."""
    factor = 0
    for atom, coefficient in part.parts.items():
        have = terms.get(atom)
        if not have:
            return 0
        if not factor:
            factor, left = divmod(have, coefficient)
            if left:
                return 0
        elif have != factor * coefficient:
            return 0
    return factor

"""Sums equal to a sum in normal form whose text may be cheaper.

The normal form releases a mod inside a floor: ``(d0 mod 100) floordiv 16`` is ``(d0 -
(d0 floordiv 100) * 4) floordiv 16 - (d0 floordiv 100) * 6``, so that equal values are equal
expressions.  The printer chooses among the normal form and the sums of this module, in which
*units*, divisions and mods that are printed as they are, stand for variables.

>>> from simplifier.linear import variable
>>> d0, units = variable("d0", 0, 999), WholeDivisions()
>>> quotient = min(equal_sums(d0 % 100 // 16, units), key=units.weight)
>>> [unknown] = quotient.variables()
>>> quotient == unknown // 16, units[unknown]
(True, WholeDivision(dividend=Expr('d0'), operator='mod', divisor=100))
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import Final, Literal, NamedTuple

from simplifier.atoms import Atom, Floor, Variable
from simplifier.divmod import floor_div
from simplifier.interval import Interval
from simplifier.linear import Expr, add_multiple, from_atom, without_zero_terms
from simplifier.mods import Mod, split
from simplifier.shared import atoms_in_order
from simplifier.smaller_fractions import divisors, smaller_fraction, with_smaller_fractions
from simplifier.substitute import PivotSubstitution

MAX_TIMES: Final = 4
"""Maximum factor of a dividend and a divisor that is restored."""


class WholeDivision(NamedTuple):
    """``dividend operator divisor``, which is printed as it is."""

    dividend: Expr
    operator: Literal["floordiv", "mod"]
    divisor: int


class WholeDivisions(dict[Variable, WholeDivision]):
    """The units for which variables stand."""

    def __init__(self) -> None:
        super().__init__()
        self._variables: dict[tuple[WholeDivision, Interval], Variable] = {}

    def weight(self, expr: Expr) -> tuple[int, int]:
        """Number of atoms of the text of `expr`, with those of its units, and size of numbers."""
        atoms, numbers = expr.weight, abs(expr.constant)
        for atom, coefficient in expr.parts.items():
            numbers += abs(coefficient) + (atom.divisor if isinstance(atom, Floor) else 0)
        for variable in expr.variables():
            if variable in self:
                inside, more = self.weight(self[variable].dividend)
                atoms, numbers = atoms + inside, numbers + more + self[variable].divisor
        return atoms, numbers

    def variable(self, unit: WholeDivision, bounds: Interval) -> Variable:
        """Return the variable for a unit with these bounds; no text contains its name."""
        known = self._variables.get((unit, bounds))
        if known is None:
            known = self._variables[unit, bounds] = Variable(f"~{len(self)}", *bounds)
            self[known] = unit
        return known


def equal_sums(expr: Expr, units: WholeDivisions) -> Iterator[Expr]:
    """Sums equal to `expr`, with fewer atoms or smaller coefficients."""
    yield from with_smaller_fractions(expr)
    yield from _with_terms_inside(expr, units)
    yield from _with_mods_inside(expr, units)
    yield from _with_mods_in_floors(expr, units)
    yield from _of_units(expr, units)
    yield from _with_mods(expr, units)


def _with_terms_inside(expr: Expr, units: WholeDivisions) -> Iterator[Expr]:
    """Move multiples of the divisor into the floors that mention the same atoms.

    ``d0 + (d0 + d1) floordiv 16`` is ``(d0 * 17 + d1) floordiv 16``.
    """
    _, rest = split(expr)
    for floor, coefficient in rest.terms:
        if not isinstance(floor, Floor):
            continue
        inside = floor.numerator
        moved: dict[Atom, int] = {floor: coefficient}
        for atom in inside.parts:
            outside = rest.parts.get(atom, 0)
            if outside and outside % coefficient == 0:
                moved[atom] = outside
                inside = add_multiple(
                    inside, from_atom(atom), outside // coefficient * floor.divisor
                )
        constant = 0
        if inside.constant and rest.constant % coefficient == 0:
            constant = rest.constant
            inside = inside + constant // coefficient * floor.divisor
        if len(moved) > 1 or constant:
            unit = units.variable(WholeDivision(inside, "floordiv", floor.divisor), floor.bounds)
            left = add_multiple(expr, Expr(moved, constant), -1)
            yield add_multiple(left, from_atom(unit), coefficient)


def _with_mods(expr: Expr, units: WholeDivisions) -> Iterator[Expr]:
    """Take a mod out of a sum that has other terms of the same atoms.

    ``d0 * 2 + d1 - ((d0 + d1) floordiv 5) * 5`` is ``(d0 + d1) mod 5 + d0``.
    """
    for floor, coefficient in expr.terms:
        if isinstance(floor, Floor):
            scaled = _scaled_divisions(floor, abs(coefficient))
            for dividend, modulus in [*_divisions(floor, expr), *scaled]:
                factor, remaining = divmod(-coefficient, modulus)
                if remaining:
                    continue
                left = add_multiple(expr, dividend, -factor)
                left = add_multiple(left, from_atom(floor), -coefficient)
                if left.weight + 1 < expr.weight:
                    yield add_multiple(left, _remainder(dividend, modulus, units), factor)


def _divisions(floor: Floor, expr: Expr) -> Iterator[tuple[Expr, int]]:
    """Pairs ``(g, m)`` with ``floor = g floordiv m``, where g has the atoms of `expr`."""
    for modulus in divisors(floor.divisor):
        yield floor_div(floor.numerator, floor.divisor // modulus), modulus
    for other, _ in expr.terms:
        if isinstance(other, Floor) and other is not floor:
            yield from _divisions_of_floor(floor, other)


def _scaled_divisions(floor: Floor, modulus: int) -> Iterator[tuple[Expr, int]]:
    """Pairs ``(g, modulus)`` with ``floor = g floordiv modulus``, after a factor was restored."""
    times = modulus // gcd(modulus, floor.divisor)
    for constant in range(times) if 1 < times <= MAX_TIMES else ():
        dividend = floor.numerator * times + constant
        yield floor_div(dividend, floor.divisor * times // modulus), modulus


def _divisions_of_floor(floor: Floor, other: Floor) -> Iterator[tuple[Expr, int]]:
    """Pairs ``(g, m)`` with ``floor = g floordiv m``, where g is ``±other`` and a constant.

    ``(x + 85) floordiv 8192`` is ``((x * 3) floordiv 256 + 1) floordiv 96``.
    """
    atom, count = other.numerator.terms[0]
    ratio, left = divmod(count, floor.numerator.parts.get(atom, count * 2))
    if left or not ratio or other.numerator.parts.keys() != floor.numerator.parts.keys():
        return
    times, sign = abs(ratio), 1 if ratio > 0 else -1
    whole = add_multiple(floor.numerator * times, other.numerator, -sign)
    modulus, left = divmod(times * floor.divisor, other.divisor)
    if left or not whole.is_constant:
        return
    # -(n floordiv d) is (-n + d - 1) floordiv d; times·floor.numerator is a multiple of times
    excess = whole.constant - (other.divisor - 1 if sign < 0 else 0)
    offset = -(-excess // other.divisor)
    if offset * other.divisor - excess < times:
        yield from_atom(other) * sign + offset, modulus


def congruent(unit: WholeDivision, units: WholeDivisions) -> Iterator[Expr]:
    """Dividends with the same remainder as that of a mod."""
    dividend, modulus = unit.dividend, unit.divisor
    for rest, _ in _recombinations(dividend, modulus, units):
        yield rest
    for equal in _with_mods_in_floors(dividend, units):
        yield add_multiple(equal, _nearest_multiples(equal, modulus), -modulus)


def _remainder(dividend: Expr, modulus: int, units: WholeDivisions) -> Expr:
    unit = WholeDivision(dividend, "mod", modulus)
    return from_atom(units.variable(unit, (0, modulus - 1)))


def _quotients(dividend: Expr, floor: Floor, times: int, units: WholeDivisions) -> Iterator[Expr]:
    """Sums equal to `floor`, which is ``dividend floordiv (times·floor.divisor)``."""
    divisor = times * floor.divisor
    unit = WholeDivision(dividend, "floordiv", divisor)
    yield from_atom(units.variable(unit, floor.bounds))
    smaller = smaller_fraction(dividend, divisor)
    if smaller is not None:
        yield smaller


def _with_mods_inside(expr: Expr, units: WholeDivisions) -> Iterator[Expr]:
    """Recombine mods in the dividends of mods, up to multiples of the modulus.

    ``(d0 + d1 * 2 + ((d0 + d1) floordiv 257) * 31) mod 96`` is ``((d0 + d1) mod 257 + d1) mod 96``.
    A factor and a constant can move into a mod: ``(x mod 8) * 2 + 1`` is ``(x * 2 + 1) mod 16``.
    """
    mods, rest = split(expr)
    remainders = [(m.coefficient, m.dividend, m.modulus, _remainder_of(m)) for m in mods]
    for atom, coefficient in rest.terms:
        unit = units.get(atom) if isinstance(atom, Variable) else None
        if unit is not None and unit.operator == "mod":
            remainders.append((coefficient, unit.dividend, unit.divisor, from_atom(atom)))
    for coefficient, dividend, modulus, whole in remainders:
        left = add_multiple(expr, whole, -coefficient)
        for times in [1, *divisors(abs(coefficient))]:
            factor = coefficient // times
            constant, uneven = divmod(rest.constant, factor)
            constant = constant if 0 < constant < times and not uneven else 0
            remainder = _remainder(dividend * times + constant, modulus * times, units)
            yield add_multiple(left, remainder - constant, factor)


def _remainder_of(mod: Mod) -> Expr:
    return add_multiple(mod.dividend, from_atom(mod.floor), -mod.modulus)


def _with_mods_in_floors(expr: Expr, units: WholeDivisions) -> Iterator[Expr]:
    """Recombine mods in the dividends of floors, with multiples of the divisor from outside.

    ``(d0 - (d0 floordiv 100) * 4 + d1) floordiv 16 - (d0 floordiv 100) * 6`` is ``(d0 mod 100 +
    d1) floordiv 16``.
    """
    _, rest = split(expr)
    for floor, coefficient in rest.terms:
        if isinstance(floor, Floor):
            left = add_multiple(expr, from_atom(floor), -coefficient)
            moved = {atom: c for atom, c in left.parts.items() if c % coefficient == 0}
            outside = Expr(moved, 0 if left.constant % coefficient else left.constant)
            left = add_multiple(left, outside, -1)
            inside = add_multiple(
                floor.numerator, _divide_exactly(outside, coefficient), floor.divisor
            )
            for times in _scales(inside):
                scaled, divisor = inside * times, floor.divisor * times
                for dividend, quotient in _recombinations(scaled, divisor, units, times - 1):
                    for equal in _quotients(dividend, floor, times, units):
                        yield add_multiple(left, add_multiple(equal, quotient), coefficient)


def _scales(inside: Expr) -> set[int]:
    """Factors of a dividend with which some floor in it is part of a mod."""
    floors = [(atom.divisor, c) for atom, c in inside.terms if isinstance(atom, Floor)]
    return {1, *[divisor // gcd(divisor, c) for divisor, c in floors if abs(c) > 1]}


def _divide_exactly(expr: Expr, divisor: int) -> Expr:
    return Expr({a: c // divisor for a, c in expr.parts.items()}, expr.constant // divisor)


def _recombinations(
    dividend: Expr, divisor: int, units: WholeDivisions, slack: int = 0
) -> Iterator[tuple[Expr, Expr]]:
    """Pairs ``(r, q)`` with ``dividend = r + divisor·q``, where `r` has a mod as a unit.

    A constant up to `slack` may be added to `dividend`.
    """
    for floor, _ in dividend.terms:
        if not isinstance(floor, Floor):
            continue
        for inside, modulus in _divisions(floor, dividend):
            unit = units.variable(WholeDivision(inside, "mod", modulus), (0, modulus - 1))
            mod = add_multiple(inside, from_atom(floor), -modulus)
            for factor in _factors(dividend, floor, inside, modulus, divisor):
                rest = add_multiple(dividend, mod, -factor)
                missing = -rest.constant % divisor
                rest = rest + missing if missing <= slack else rest
                quotient = _nearest_multiples(rest, divisor)
                left = add_multiple(rest, quotient, -divisor)
                if left.weight + 1 < dividend.weight:
                    left = add_multiple(left, from_atom(unit), factor)
                    yield left, quotient
                    if quotient.constant:
                        yield left + divisor * quotient.constant, quotient - quotient.constant


def _factors(
    dividend: Expr, floor: Floor, inside: Expr, modulus: int, divisor: int
) -> Iterator[int]:
    """Nonzero a for which ``dividend - a·(inside mod modulus)`` may lack `floor`."""
    coefficient = dividend.parts[floor]
    factors: set[int] = set()
    if coefficient % modulus == 0:
        factors.add(-coefficient // modulus)
    shared = gcd(modulus, divisor)
    if coefficient % shared == 0 and shared < divisor:
        inverse = pow(modulus // shared, -1, divisor // shared)
        factor = -coefficient // shared * inverse % (divisor // shared)
        factors |= {factor, factor - divisor // shared}
    for atom, count in inside.terms:
        factors.add(dividend.parts.get(atom, 0) // count)
    yield from sorted(factors - {0}, key=abs)


def _nearest_multiples(expr: Expr, divisor: int) -> Expr:
    below = (divisor - 1) >> 1
    multiples = {atom: (c + below) // divisor for atom, c in expr.parts.items()}
    return without_zero_terms(multiples, expr.constant // divisor)


def _of_units(expr: Expr, units: WholeDivisions) -> Iterator[Expr]:
    """Express a sum by the quotient and the remainder of a division in it.

    With ``d0 = 100·q + y``, ``(d0 - q * 4) floordiv 16 - q * 6`` is ``y floordiv 16``.
    """
    atoms = sorted(atoms_in_order([expr]), key=lambda atom: atom.key)
    present = set(atoms)
    for floor in atoms:
        if not isinstance(floor, Floor):
            continue
        for modulus in divisors(floor.divisor):
            dividend = floor_div(floor.numerator, floor.divisor // modulus)
            if not dividend.parts.keys() <= present:
                continue
            remainder = units.variable(WholeDivision(dividend, "mod", modulus), (0, modulus - 1))
            low, high = dividend.bounds
            quotient_bounds = low // modulus, high // modulus
            quotient = units.variable(WholeDivision(dividend, "floordiv", modulus), quotient_bounds)
            whole = quotient * modulus + remainder
            for pivot, coefficient in dividend.terms:
                rest = add_multiple(dividend, from_atom(pivot), -coefficient)
                replaced = PivotSubstitution(pivot, coefficient, add_multiple(whole, rest, -1))(
                    expr
                )
                if replaced.weight < expr.weight:
                    yield replaced

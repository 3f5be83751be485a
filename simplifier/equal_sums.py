"""Sums equal to a sum in normal form whose text may be cheaper.

The normal form releases a mod inside a floor: ``(d0 mod 100) floordiv 16`` is ``(d0 -
(d0 floordiv 100) * 4) floordiv 16 - (d0 floordiv 100) * 6``, so that equal values are equal
expressions.  The printer chooses among the normal form and the sums of this module, in which
*units*, divisions and mods that are printed as they are, stand for variables.

>>> from simplifier.linear import variable
>>> d0, units = variable("d0", 0, 999), WholeDivisions()
>>> quotient = list(equal_sums(d0 % 100 // 16, units))[-1]
>>> quotient, units[quotient.variables()[0]].operator, units[quotient.variables()[0]].divisor
(Expr('~1 floordiv 16'), 'mod', 100)
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import Final, Literal, NamedTuple

from simplifier.atoms import Atom, Floor, Variable
from simplifier.divmod import floor_div
from simplifier.interval import Interval
from simplifier.linear import Expr, added, from_atom, without_zero_terms
from simplifier.mods import split
from simplifier.shared import atoms_in_order
from simplifier.substitute import Substitution


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

    def weight(self, expr: Expr) -> int:
        """Number of atoms of the text of `expr`, with those of its units."""
        units = [self[v].dividend for v in expr.variables() if v in self]
        return expr.weight + sum([self.weight(dividend) for dividend in units])

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
    yield from _of_units(expr, units)
    yield from _with_mods(expr, units)
    yield from _with_larger_modulus(expr, units)


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
                inside = added(inside, from_atom(atom), outside // coefficient * floor.divisor)
        constant = 0
        if inside.constant and rest.constant % coefficient == 0:
            constant = rest.constant
            inside = inside + constant // coefficient * floor.divisor
        if len(moved) > 1 or constant:
            unit = units.variable(WholeDivision(inside, "floordiv", floor.divisor), floor.bounds)
            left = added(expr, Expr(moved, constant), -1)
            yield added(left, from_atom(unit), coefficient)


def _with_mods(expr: Expr, units: WholeDivisions) -> Iterator[Expr]:
    """Take a mod out of a sum that has other terms of the same atoms.

    ``d0 * 2 + d1 - ((d0 + d1) floordiv 5) * 5`` is ``(d0 + d1) mod 5 + d0``.
    """
    for floor, coefficient in expr.terms:
        if isinstance(floor, Floor):
            quotients = [
                (floor_div(floor.numerator, floor.divisor // modulus), modulus)
                for modulus in _divisors(gcd(coefficient, floor.divisor))
            ]
            for dividend, modulus in [*quotients, *_of_other_floors(floor, expr)]:
                factor, remaining = divmod(-coefficient, modulus)
                if remaining:
                    continue
                left = added(expr, dividend, -factor)
                left = added(left, from_atom(floor), -coefficient)
                if left.weight + 1 < expr.weight:
                    unit = units.variable(WholeDivision(dividend, "mod", modulus), (0, modulus - 1))
                    yield added(left, from_atom(unit), factor)


def _of_other_floors(floor: Floor, expr: Expr) -> Iterator[tuple[Expr, int]]:
    """Pairs ``(g, m)`` with ``floor = g floordiv m``, where g is another floor and a constant.

    ``(x + 85) floordiv 8192`` is ``((x * 3) floordiv 256 + 1) floordiv 96``.
    """
    for other, _ in expr.terms:
        if isinstance(other, Floor) and other is not floor:
            inside, constant = other.numerator, floor.numerator.constant
            atom, count = inside.terms[0]
            own = floor.numerator.parts.get(atom)
            ratio = count // own if own else 0
            if ratio < 1 or Expr(inside.parts, 0) != Expr(floor.numerator.parts, 0) * ratio:
                continue
            modulus, left = divmod(ratio * floor.divisor, other.divisor)
            offset = -((inside.constant - ratio * constant) // other.divisor)
            if not left and inside.constant + other.divisor * offset - ratio * constant < ratio:
                yield from_atom(other) + offset, modulus


def _with_larger_modulus(expr: Expr, units: WholeDivisions) -> Iterator[Expr]:
    """Move a factor and a constant into a mod: ``(x mod 8) * 2 + 1`` is ``(x * 2 + 1) mod 16``."""
    mods, rest = split(expr)
    for mod in mods:
        factor = mod.coefficient
        if 0 < rest.constant < factor:
            whole = added(mod.dividend, from_atom(mod.floor), -mod.modulus) * factor + rest.constant
            modulus = mod.modulus * factor
            dividend = mod.dividend * factor + rest.constant
            unit = units.variable(WholeDivision(dividend, "mod", modulus), (0, modulus - 1))
            yield added(added(expr, whole, -1), from_atom(unit))


def _with_mods_inside(expr: Expr, units: WholeDivisions) -> Iterator[Expr]:
    """Recombine mods in dividends, up to multiples of the divisor.

    ``(d0 + d1 * 2 + ((d0 + d1) floordiv 257) * 31) mod 96`` is ``((d0 + d1) mod 257 + d1) mod 96``.
    """
    mods, rest = split(expr)
    for mod in mods:
        left = added(
            expr, added(mod.dividend, from_atom(mod.floor), -mod.modulus), -mod.coefficient
        )
        for dividend, _ in _recombined(mod.dividend, mod.modulus, units):
            unit = units.variable(WholeDivision(dividend, "mod", mod.modulus), (0, mod.modulus - 1))
            yield added(left, from_atom(unit), mod.coefficient)
    for floor, coefficient in rest.terms:
        if isinstance(floor, Floor):
            left = added(expr, from_atom(floor), -coefficient)
            moved = {atom: c for atom, c in left.parts.items() if c % coefficient == 0}
            outside = Expr(moved, 0 if left.constant % coefficient else left.constant)
            left = added(left, outside, -1)
            inside = added(floor.numerator, _divided(outside, coefficient), floor.divisor)
            for dividend, quotient in _recombined(inside, floor.divisor, units):
                unit = units.variable(
                    WholeDivision(dividend, "floordiv", floor.divisor), floor.bounds
                )
                yield added(left, added(from_atom(unit), quotient), coefficient)


def _divided(expr: Expr, divisor: int) -> Expr:
    return Expr({a: c // divisor for a, c in expr.parts.items()}, expr.constant // divisor)


def _recombined(dividend: Expr, divisor: int, units: WholeDivisions) -> Iterator[tuple[Expr, Expr]]:
    """Pairs ``(r, q)`` with ``dividend = r + divisor·q``, where `r` has a mod as a unit."""
    for floor, _ in dividend.terms:
        if not isinstance(floor, Floor):
            continue
        modulus = floor.divisor
        unit = units.variable(WholeDivision(floor.numerator, "mod", modulus), (0, modulus - 1))
        mod = added(floor.numerator, from_atom(floor), -modulus)
        for factor in _factors(dividend, floor, divisor):
            rest = added(dividend, mod, -factor)
            quotient = _nearest_multiples(rest, divisor)
            rest = added(rest, quotient, -divisor)
            if rest.weight + 1 < dividend.weight:
                yield added(rest, from_atom(unit), factor), quotient


def _factors(dividend: Expr, floor: Floor, divisor: int) -> Iterator[int]:
    """Nonzero a for which ``dividend - a·(floor.numerator mod floor.divisor)`` may lack `floor`."""
    modulus, coefficient = floor.divisor, dividend.parts[floor]
    factors: set[int] = set()
    if coefficient % modulus == 0:
        factors.add(-coefficient // modulus)
    shared = gcd(modulus, divisor)
    if coefficient % shared == 0 and shared < divisor:
        inverse = pow(modulus // shared, -1, divisor // shared)
        factor = -coefficient // shared * inverse % (divisor // shared)
        factors |= {factor, factor - divisor // shared}
    for atom, count in floor.numerator.terms:
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
        for modulus in _divisors(floor.divisor):
            dividend = floor_div(floor.numerator, floor.divisor // modulus)
            if not dividend.parts.keys() <= present:
                continue
            remainder = units.variable(WholeDivision(dividend, "mod", modulus), (0, modulus - 1))
            low, high = dividend.bounds
            quotient_bounds = low // modulus, high // modulus
            quotient = units.variable(WholeDivision(dividend, "floordiv", modulus), quotient_bounds)
            whole = quotient * modulus + remainder
            for pivot, coefficient in dividend.terms:
                rest = added(dividend, from_atom(pivot), -coefficient)
                replaced = _Pivot(pivot, coefficient, added(whole, rest, -1))(expr)
                if replaced.weight < expr.weight:
                    yield replaced


class _Pivot(Substitution):
    """Substitution of a value for ``coefficient * pivot`` and its multiples."""

    __slots__ = ("_coefficient", "_pivot", "_value")

    def __init__(self, pivot: Atom, coefficient: int, value: Expr) -> None:
        super().__init__({})
        self._pivot, self._coefficient, self._value = pivot, coefficient, value

    def _sum(self, expr: Expr) -> Expr:
        factor, left = divmod(expr.parts.get(self._pivot, 0), self._coefficient)
        if not factor or left:
            return super()._sum(expr)
        rest = {atom: c for atom, c in expr.parts.items() if atom is not self._pivot}
        return added(super()._sum(Expr(rest, expr.constant)), self._value, factor)


def with_smaller_fractions(expr: Expr) -> Iterator[Expr]:
    """Divide by a smaller number where the bounds of the variables allow it.

    For y in [0, 254], ``(y * 16) floordiv 255`` is ``y floordiv 16``.
    """
    for floor, coefficient in expr.terms:
        if isinstance(floor, Floor):
            smaller = smaller_fraction(floor)
            if smaller is not None:
                left = added(expr, from_atom(floor), -coefficient)
                yield added(left, smaller, coefficient)


def smaller_fraction(floor: Floor) -> Expr | None:
    """Return a quotient by a smaller number that has the same values on the box, if any."""
    numerator, divisor = floor.numerator, floor.divisor
    for factor in reversed(_divisors(divisor)):
        below = (factor - 1) >> 1
        whole = {atom: (c + below) // factor for atom, c in numerator.parts.items()}
        left = {atom: c - whole[atom] * factor for atom, c in numerator.parts.items()}
        rest = without_zero_terms(left, numerator.constant)
        low, high = rest.bounds
        if low // factor == high // factor:
            quotient = without_zero_terms(whole, low // factor)
            return floor_div(quotient, divisor // factor)
    if len(numerator.parts) != 1:
        return None
    ((atom, slope),) = numerator.parts.items()
    fraction = _steps(slope, numerator.constant, divisor, atom.bounds)
    if fraction is None or fraction[1] >= divisor:
        return None
    offset, width, first = fraction
    return floor_div(from_atom(atom) + offset, width) + first


def _steps(
    slope: int, constant: int, divisor: int, bounds: tuple[int, int]
) -> tuple[int, int, int] | None:
    """Return ``(b, w, k)`` with ``floor((slope·x + constant) / divisor) = floor((x + b) / w) + k``.

    `None` if there is none for all x in `bounds`: x where the floor increases must be w apart.
    """
    low, high = bounds
    first = (slope * low + constant) // divisor
    count = (slope * high + constant) // divisor - first
    if not 0 < slope < divisor or count < 1:
        return None

    def start(step: int) -> int:  # the least x with this number of increases
        return -((constant - (first + step) * divisor) // slope)

    begin = start(1)
    if count == 1:
        width = max(begin - low, high - begin + 1)
        width = begin if low >= 0 and begin >= width else width
    else:
        width = start(2) - begin
        # 0 <= start(1) + (step - 1)·width - exact position < 1, linear in step: its ends decide
        if start(count) != begin + (count - 1) * width:
            return None
        for step in (1, count):
            excess = (begin + (step - 1) * width) * slope + constant - (first + step) * divisor
            if not 0 <= excess < slope:
                return None
        if begin - low > width or high - start(count) >= width:
            return None
    offset = -begin % width
    return offset, width, first - (low + offset) // width


def _divisors(number: int) -> list[int]:
    """The divisors of `number` above 1, in ascending order, if it is not too large."""
    if number > _MAX_FACTORED:
        return [number]
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return sorted({*small, *[number // d for d in small]} - {1})


_MAX_FACTORED: Final = 1 << 20

"""Sums of quotients and remainders: the chain of divisions that a normal form comes from.

The normal form of a chain such as ``((d0 mod 15) mod 14) mod 9`` has one floor for each division,
and releases the mods: each floor depends on the inner ones.  Here every floor, innermost first,
gets two *units*, the quotient g and the remainder r of its division: ``dividend = divisor·g + r``.
Multiples of these equations, *zeros*, are added to the dividend of the next floor, modulo its
divisor, and finally to the sum itself, to make its text cheaper.  The sums are found in
polynomial time, unlike by `simplifier.equal_sums`, whose sums are printed one inside the other.

>>> from simplifier.linear import variable
>>> units = WholeDivisions()
>>> [last] = chains(variable("d0", 0, 999) % 15 % 14 % 9, units)[0].variables()
>>> units[last].operator, units[last].divisor
('mod', 9)
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import Final, NamedTuple

from simplifier.atoms import Atom, Floor, Variable
from simplifier.equal_sums import WholeDivision, WholeDivisions
from simplifier.interval import Interval
from simplifier.linear import Expr, add_multiple, constant, from_atom, without_zero_terms
from simplifier.shared import atoms_in_order

MAX_FLOORS: Final = 12
"""Maximum number of floors of an expression whose chain of divisions is searched."""

MAX_SUMS: Final = 8
"""Maximum number of sums that are returned."""

MAX_STEPS: Final = 8
"""Maximum number of sums that are changed in vain after the cheapest one so far."""

MAX_TIMES: Final = 8
"""Maximum number of factors of a dividend with which it may be a quotient of another one."""


class SumCost(NamedTuple):
    """The cost of the text of a sum with units; compared in this order."""

    divisions: int
    terms: int
    numbers: int


def chains(expr: Expr, units: WholeDivisions) -> list[Expr]:
    """Return the cheapest sums of variables and units that are equal to `expr`.

    Return none if it has more than `MAX_FLOORS` floors.
    """
    atoms = atoms_in_order([expr])
    if sum(isinstance(atom, Floor) for atom in atoms) > MAX_FLOORS:
        return []
    return _ChainOfDivisions(units).of(expr, atoms)


class _Division(NamedTuple):
    """``dividend = divisor·quotient + remainder``."""

    dividend: Expr
    divisor: int
    quotient: Expr


class _ChainOfDivisions:
    """The values of floors in terms of units, and the zeros: sums of units that are 0."""

    def __init__(self, units: WholeDivisions) -> None:
        self._units = units
        self._values: dict[Atom, Expr] = {}  # of floors
        self._basis: dict[Atom, Expr] = {}  # units as sums of variables and of one unit per floor
        self._zeros: list[Expr] = []
        self._divisions: list[_Division] = []
        self._spellings: dict[Atom, list[_Division]] = {}  # whose quotients contain the atom once
        self._costs: dict[Atom, SumCost] = {}
        self._found: dict[Expr, SumCost] = {}
        self._is_inner = False

    def of(self, expr: Expr, atoms: list[Atom]) -> list[Expr]:
        """The cheapest sums of units that are equal to `expr`, which has these atoms."""
        floors = [atom for atom in atoms if isinstance(atom, Floor)]
        for depth in sorted({floor.depth for floor in floors}):
            level = [floor for floor in floors if floor.depth == depth]
            level.sort(key=lambda floor: (floor.divisor, floor.key))
            for floor in level:
                whole = self._sum(floor.numerator, self._values)
                self._values[floor] = self._quotient(whole, floor.divisor, None)
            for floor in level:
                self._values[floor] = self._cheapest_quotient(floor)
        whole = self._sum(expr, self._values)
        self._found.clear()
        self._shortest(whole, 0)
        return sorted(self._found, key=self._found.__getitem__)[:MAX_SUMS]

    def _sum(self, expr: Expr, values: dict[Atom, Expr]) -> Expr:
        """`expr` with `values` for its atoms."""
        total = constant(expr.constant)
        for atom, coefficient in expr.parts.items():
            total = add_multiple(total, values.get(atom) or from_atom(atom), coefficient)
        return total

    def _cheapest_quotient(self, floor: Floor) -> Expr:
        """The value of a floor, or that as a quotient of another quotient if it is cheaper."""
        value = self._values[floor]
        whole = self._sum(floor.numerator, self._values)
        for outer, inner in [*self._inner_quotients(whole, floor.divisor)]:
            other = self._quotient(inner, outer, value)
            if self.cost(other) < self.cost(value):
                value = other
        return value

    def _inner_quotients(self, whole: Expr, divisor: int) -> Iterator[tuple[int, Expr]]:
        """Inner quotients whose quotient by a smaller divisor is ``whole floordiv divisor``."""
        whole = self._sum(whole, self._basis)
        for division in [*self._divisions]:
            dividend = self._sum(division.dividend, self._basis)
            for sign in (1, -1):
                for times in _multiples(whole, dividend * sign, division.divisor):
                    size = times * divisor // division.divisor
                    if times * divisor % division.divisor or size < 2:
                        continue
                    rest = add_multiple(whole * times, dividend, -sign)
                    if any(c % division.divisor for c in rest.parts.values()):
                        continue
                    # whole·times + k for 0 <= k < times: the same floor
                    offset = rest.constant if sign > 0 else rest.constant - division.divisor + 1
                    k = -offset % division.divisor
                    if k < times:
                        outside = {a: c // division.divisor for a, c in rest.parts.items()}
                        outside_sum = Expr(outside, (offset + k) // division.divisor)
                        yield size, add_multiple(outside_sum, division.quotient, sign)
                        break

    def _quotient(self, whole: Expr, divisor: int, value: Expr | None) -> Expr:
        """The floor of a quotient, as a sum with a new unit; the remainder is another unit.

        It is equal to `value`, unless this is `None`.
        """
        factor = gcd(divisor, *whole.parts.values())
        if factor > 1:
            parts = {atom: c // factor for atom, c in whole.parts.items()}
            whole, divisor = Expr(parts, whole.constant // factor), divisor // factor
        dividend, outside = self._shortest(whole, divisor)
        unit = self._units.variable(
            WholeDivision(dividend, "floordiv", divisor), _bounds(dividend, divisor)
        )
        quotient = from_atom(unit)
        left = self._units.variable(WholeDivision(dividend, "mod", divisor), (0, divisor - 1))
        if left not in self._basis:
            if value is not None:
                known = self._sum(add_multiple(value, outside, -1), self._basis)
                if known != quotient:
                    self._basis[unit] = known
                    self._zeros.append(add_multiple(known, quotient, -1))
            self._basis[left] = self._sum(add_multiple(dividend, quotient, -divisor), self._basis)
            self._state(_Division(dividend, divisor, quotient), left)
        return add_multiple(outside, quotient)

    def _state(self, division: _Division, remainder: Variable) -> None:
        """Add the zeros of a division."""
        dividend, divisor, quotient = division
        zero = add_multiple(add_multiple(quotient * divisor, from_atom(remainder)), dividend, -1)
        in_basis = add_multiple(from_atom(remainder), self._basis[remainder], -1)
        self._zeros += [zero] if zero == in_basis else [zero, in_basis]
        known = division._replace(quotient=self._sum(quotient, self._basis))
        self._divisions.append(known)
        for atom, count in known.quotient.parts.items():
            if atom in self._units and count == 1:
                self._spellings.setdefault(atom, []).append(known)

    def _shortest(self, expr: Expr, modulus: int) -> tuple[Expr, Expr]:
        """Return ``(r, q)`` with ``expr = r + modulus·q`` where r is cheap."""
        best = _nearest(expr, modulus)
        basis = _nearest(self._sum(expr, self._basis), modulus)
        pending = {at: (self.cost(at), quotient) for at, quotient in (best, basis)}
        cost = pending[best[0]][0]
        visited: dict[Expr, SumCost] = {}
        patience = MAX_STEPS
        while pending and patience:
            patience -= 1
            at = min(pending, key=lambda each: pending[each][0])
            at_cost, quotient = pending.pop(at)
            visited[at] = at_cost
            if at_cost < cost:
                best, cost, patience = (at, quotient), at_cost, MAX_STEPS
            for other, more in self._steps(at, modulus):
                if other not in visited and other not in pending:
                    pending[other] = self.cost(other), add_multiple(quotient, more)
        if not modulus and not self._is_inner:
            self._found.update(visited)
        return best

    def _steps(self, expr: Expr, modulus: int) -> Iterator[tuple[Expr, Expr]]:
        """Add a zero to a sum, or move terms into one of its quotients."""
        for zero in [*self._zeros]:
            for factor in _factors(expr, zero, modulus):
                yield _nearest(add_multiple(expr, zero, factor), modulus)
        for atom, coefficient in expr.terms:
            for division in self._spellings.get(atom, ()):
                rest = add_multiple(expr, division.quotient, -coefficient)
                inside = self._sum(division.dividend, self._basis)
                atoms = {**inside.parts, **division.dividend.parts}
                moved = _movable(rest, atoms, coefficient, modulus)
                if moved.parts or moved.constant:
                    whole = self._with_inside(division, moved)
                    left = add_multiple(
                        rest, add_multiple(moved, from_atom(whole), -1), -coefficient
                    )
                    yield _nearest(left, modulus)

    def _with_inside(self, division: _Division, moved: Expr) -> Variable:
        """The unit for a quotient plus `moved`, as one division."""
        inside = add_multiple(division.dividend, moved, division.divisor)
        if not self._is_inner:
            self._is_inner = True
            inside, _ = self._shortest(inside, 0)
            self._is_inner = False
        bounds = _bounds(inside, division.divisor)
        whole = self._units.variable(WholeDivision(inside, "floordiv", division.divisor), bounds)
        if whole not in self._basis:
            self._basis[whole] = self._sum(add_multiple(division.quotient, moved), self._basis)
        return whole

    def cost(self, expr: Expr) -> SumCost:
        """The cost of the text of a sum."""
        divisions, terms, numbers = 0, int(expr.constant != 0), abs(expr.constant)
        for atom, coefficient in expr.parts.items():
            of_atom = self._costs.get(atom)
            if of_atom is None:
                of_atom = self._costs[atom] = self._cost_of_atom(atom)
            divisions += of_atom.divisions
            terms += of_atom.terms
            numbers += of_atom.numbers + abs(coefficient)
        return SumCost(divisions, terms, numbers)

    def _cost_of_atom(self, atom: Atom) -> SumCost:
        unit = self._units.get(atom) if isinstance(atom, Variable) else None
        if unit is None:
            return SumCost(0, atom.weight, 0)
        inside = self.cost(unit.dividend)
        return SumCost(inside.divisions + 1, inside.terms, inside.numbers + unit.divisor)


def _movable(expr: Expr, inside: dict[Atom, int], coefficient: int, modulus: int) -> Expr:
    """The terms that are multiples of `coefficient` and have atoms of `inside`, divided by it."""
    moved: dict[Atom, int] = {}
    for other in inside:
        count = expr.parts.get(other, 0)
        if count:
            times = _ratio(count, coefficient, modulus)
            if times:
                moved[other] = times
    return Expr(moved, _ratio(expr.constant, coefficient, modulus))


def _ratio(count: int, coefficient: int, modulus: int) -> int:
    """The least t with ``t·coefficient = count``, modulo `modulus` unless it is 0; else 0."""
    if not modulus:
        return 0 if count % coefficient else count // coefficient
    shared = gcd(coefficient, modulus)
    if count % shared:
        return 0
    step = modulus // shared
    times = count // shared * pow(coefficient // shared, -1, step) % step
    return times - step if times * 2 > step else times


def _multiples(whole: Expr, dividend: Expr, divisor: int) -> list[int]:
    """Positive t with ``t·whole = dividend`` modulo `divisor` for one of their atoms."""
    for atom, count in dividend.terms:
        coefficient = whole.parts.get(atom, 0)
        shared = gcd(coefficient, divisor)
        if count % shared or not coefficient:
            return []
        step = divisor // shared
        first = count // shared * pow(coefficient // shared, -1, step) % step or step
        return [*range(first, divisor + 1, step)][:MAX_TIMES]
    return []


def _bounds(dividend: Expr, divisor: int) -> Interval:
    """The bounds of a quotient; not a single value, so that its variable is not constant."""
    low, high = dividend.bounds
    return low // divisor, max(high // divisor, low // divisor + 1)


def _nearest(expr: Expr, modulus: int) -> tuple[Expr, Expr]:
    """Return ``(r, q)`` with ``expr = r + modulus·q`` and the least absolute coefficients in r."""
    if not modulus:
        return expr, constant(0)
    below = (modulus - 1) >> 1
    multiples = {atom: (c + below) // modulus for atom, c in expr.parts.items()}
    quotient = without_zero_terms(multiples, expr.constant // modulus)
    return add_multiple(expr, quotient, -modulus), quotient


def _factors(expr: Expr, zero: Expr, modulus: int) -> list[int]:
    """Factors f for which ``expr + f·zero`` lacks some term, modulo `modulus` unless it is 0."""
    factors: set[int] = set()
    for atom, count in zero.parts.items():
        coefficient = expr.parts.get(atom, 0)
        if not coefficient:
            continue
        if not modulus:
            if coefficient % count == 0:
                factors.add(-coefficient // count)
            continue
        shared = gcd(count, modulus)
        if coefficient % shared == 0 and shared < modulus:
            step = modulus // shared
            factor = -coefficient // shared * pow(count // shared, -1, step) % step
            factors |= {factor, factor - step}
    return sorted(factors - {0}, key=lambda factor: (abs(factor), factor))

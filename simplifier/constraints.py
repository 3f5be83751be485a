"""Constraints ``expression in [lower, upper]`` and their normal form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import gcd
from typing import Final, Literal, SupportsIndex

from simplifier import laws, trace
from simplifier.arguments import AFFINE, integer
from simplifier.atoms import Floor
from simplifier.bounds import UNCONSTRAINED, unit_floors, without_floor
from simplifier.interval import Interval, contains, floor_divide, intersect, scale
from simplifier.linear import Affine, Expr, Term, Variable, as_expr, constant
from simplifier.mods import floors_of, split
from simplifier.native import is_native
from simplifier.residues import Residues, canonical_law, residues_of
from simplifier.shared import MAX_ORDERED
from simplifier.slots import setters
from simplifier.substitute import Substitution
from simplifier.text import printed_constant
from simplifier.trace import Law
from simplifier.zero_divisor import ZeroDivisorError


@dataclass(frozen=True, slots=True, init=False)
class Constraint:
    """``expr in [lower, upper]``, both included.

    Raises:
        TypeError: `expr` is not an expression, or a bound is not an integer.
    Source: XLA ``docs/indexing.md``, section "Indexing map".

    >>> from simplifier.linear import variable
    >>> constraint = Constraint(variable("d0", 0, 9) * 2, 0, 5)
    >>> print(constraint, constraint.bounds, constraint.is_true)
    d0 * 2 in [0, 5] (0, 5) False
    """

    expr: Expr
    lower: int
    upper: int
    _residues: Residues | Literal[False] | None = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)  # 0 until needed

    def __init__(self, expr: Affine, lower: SupportsIndex, upper: SupportsIndex) -> None:
        if not (type(expr) is Expr and type(lower) is type(upper) is int):
            expr, lower, upper = _checked_arguments(expr, lower, upper)
        if _IS_NATIVE:
            self.expr, self.lower, self.upper = expr, lower, upper  # type: ignore[misc]
            self._residues, self._hash = None, 0  # type: ignore[misc]
        else:
            _SET_EXPR(self, expr)
            _SET_LOWER(self, lower)
            _SET_UPPER(self, upper)
            _SET_RESIDUES(self, None)
            _SET_HASH(self, 0)

    def __hash__(self) -> int:
        known = self._hash
        if not known:
            known = hash((self.expr._identity or self.expr.identity, self.lower, self.upper))
            if _IS_NATIVE:
                self._hash = known  # type: ignore[misc]
            else:
                _SET_HASH(self, known)
        return known

    def __reduce__(self) -> tuple[type[Constraint], tuple[Expr, int, int]]:
        """Pickle as a constructor call: attributes are read-only."""
        return Constraint, (self.expr, self.lower, self.upper)

    def __str__(self) -> str:
        return f"{self.expr} in [{self.lower}, {self.upper}]"

    def with_expr(self, expr: Expr) -> Constraint:
        """Return the constraint with the same bounds on `expr`.

        >>> from simplifier.linear import variable
        >>> d0 = variable("d0", 0, 9)
        >>> print(Constraint(d0 * 2, 0, 5).with_expr(d0 + 1))
        d0 + 1 in [0, 5]
        """
        return Constraint(expr, self.lower, self.upper)

    @property
    def bounds(self) -> Interval:
        """``(lower, upper)``."""
        return self.lower, self.upper

    @property
    def residues(self) -> Residues | None:
        """The constraint as canonical residues, or `None` if it is another one; memoised.

        >>> from simplifier.linear import variable
        >>> Constraint(variable("d0", 0, 9) % 4, 2, 2).residues
        Residues(dividend=Expr('d0'), modulus=4, lower=2, upper=2)
        """
        known = self._residues
        if known is None:
            known = residues_of(self.expr, self.bounds) or False
            _SET_RESIDUES(self, known)
        return known or None

    @property
    def is_false(self) -> bool:
        """True if no value in the bounds of `expr` satisfies the constraint.

        >>> from simplifier.linear import variable
        >>> d0 = variable("d0", 0, 9)
        >>> Constraint(d0, 20, 30).is_false, Constraint(d0, 9, 30).is_false
        (True, False)
        """
        lower, upper = self.expr.bounds
        return max(lower, self.lower) > min(upper, self.upper)

    @property
    def is_true(self) -> bool:
        """True if every value in the bounds of `expr` satisfies the constraint."""
        lower, upper = self.expr.bounds
        return self.lower <= lower and upper <= self.upper


def _checked_arguments(
    expr: Affine, lower: SupportsIndex, upper: SupportsIndex
) -> tuple[Expr, int, int]:
    """The arguments of `Constraint`, of the types of its attributes."""
    if not isinstance(expr, (Expr, Variable)):
        expr = integer("Constraint", "expr", expr, AFFINE)
    low: int = integer("Constraint", "lower", lower)
    return as_expr(expr), low, integer("Constraint", "upper", upper)


_SETTERS: Final = setters(Constraint, "expr", "lower", "upper", "_residues", "_hash")
_SET_EXPR: Final = _SETTERS[0]
_SET_LOWER: Final = _SETTERS[1]
_SET_UPPER: Final = _SETTERS[2]
_SET_RESIDUES: Final = _SETTERS[3]
_SET_HASH: Final = _SETTERS[4]
_IS_NATIVE: Final = is_native(Constraint)


def on_residues(residues: Residues) -> Constraint:
    """Return the constraint that states canonical `residues`.

    Where intervals decide the floor, that is a constraint on the dividend, without residues.
    """
    constraint = Constraint(*residues.written)
    floors = floors_of(constraint.expr)
    if len(floors) == 1 and floors[0].divisor == residues.modulus:
        if floors[0].numerator.parts == residues.dividend.parts:
            _SET_RESIDUES(constraint, residues)
    return constraint


def on_narrower(constraint: Constraint, changed: Mapping[Variable, Variable]) -> Constraint | None:
    """Return a normalised constraint with narrower variables if it stays so, else `None`.

    That is the case for residues of a sum of variables, if intervals do not decide their floor.
    """
    residues = constraint.residues and constraint.residues.rename(changed)
    if residues is None:
        return None
    moved = on_residues(residues)
    return moved if moved._residues is residues else None


def with_bounds(constraint: Constraint, bounds: Interval) -> Constraint:
    """Return the constraint with these bounds on its expression."""
    return constraint if bounds == constraint.bounds else Constraint(constraint.expr, *bounds)


FALSE: Final = Constraint(constant(0), 1, 1)


def is_false(constraints: tuple[Constraint, ...]) -> bool:
    """Return True for ``(FALSE,)``, the unsatisfiable conjunction."""
    return len(constraints) == 1 and not constraints[0].expr.parts and constraints[0] == FALSE


_VERDICTS: Final[dict[Constraint | None, str]] = {FALSE: "false", None: "true"}


@trace.memoised(1 << 11)
def normalise(constraint: Constraint) -> Constraint | None:
    """Return the simplest equivalent constraint; `None` if it always holds.

    The constant moves to the bounds, a common factor is divided out, and a floor is removed:
    ``e floordiv d in [a, b]`` is ``e in [a·d, b·d + d − 1]``.  A congruence gets its canonical form
    (`simplifier.residues`).  Every term stays, because small terms matter too:
    ``8·d0 + d1 <= 10`` is not ``8·d0 <= 10``.

    >>> from simplifier.linear import variable
    >>> d0, d1 = variable("d0", 0, 99), variable("d1", 0, 99)
    >>> print(normalise(Constraint((d0 * 3 + d1 * 6 + 2) // 4, 1, 2)))
    d0 + d1 * 2 in [1, 3]
    """
    canonical: Residues | None = None
    while True:
        if not constraint.expr.parts:
            return _decide_constant(constraint)
        constraint = _primitive(constraint)
        expr, lower, upper = constraint.expr, constraint.lower, constraint.upper
        if not expr.divides:
            return _clip_bounds(constraint)
        floor = _removable(expr)
        if floor is not None:
            before = constraint
            lower, upper = (lower, upper) if expr.parts[floor] == 1 else (-upper, -lower)
            divisor = floor.divisor
            constraint = Constraint(
                without_floor(expr, floor), lower * divisor, upper * divisor + divisor - 1
            )
            if trace.records:
                trace.record(laws.REMOVE_FLOOR, before, constraint)
            continue
        lower, upper = intersect((lower, upper), expr.bounds)
        if lower > upper:
            return _record_law(laws.CLIP_BOUNDS, constraint, FALSE)
        clipped = with_bounds(constraint, (lower, upper))
        residues = clipped.residues
        if residues is not None and residues != canonical:
            canonical = residues
            constraint = on_residues(residues)
            if trace.records:
                trace.record(canonical_law(expr, residues), clipped, constraint)
            if constraint != clipped:
                continue
        simple = _without_printed_constant(clipped)
        if simple.is_true:
            return _record_law(laws.DECIDE_CONSTRAINT, constraint, None)
        if trace.records:
            trace.record(laws.CLIP_BOUNDS, constraint, clipped)
        return _decide_by_intervals(simple)


def _clip_bounds(constraint: Constraint) -> Constraint | None:
    """Clip the bounds of a sum without floors, which has neither mods nor finer bounds."""
    lower, upper = intersect(constraint.bounds, constraint.expr.bounds)
    if lower > upper:
        return _record_law(laws.CLIP_BOUNDS, constraint, FALSE)
    if (lower, upper) == constraint.expr.bounds:
        return _record_law(laws.DECIDE_CONSTRAINT, constraint, None)
    return _record_law(laws.CLIP_BOUNDS, constraint, with_bounds(constraint, (lower, upper)))


def _record_law(law: Law, before: Constraint, after: Constraint | None) -> Constraint | None:
    """Return `after`, and record that `law` produced it; `None` means true."""
    if trace.records:
        trace.record(law, before, _VERDICTS.get(after, after))
    return after


def _decide_constant(constraint: Constraint) -> Constraint | None:
    """Return `None` for a constraint on a constant that holds, else `FALSE`."""
    is_true = constraint.lower <= constraint.expr.constant <= constraint.upper
    return _record_law(laws.DECIDE_CONSTRAINT, constraint, None if is_true else FALSE)


def _primitive(constraint: Constraint) -> Constraint:
    """Return an equivalent constraint without a constant term and without a common factor.

    Its first coefficient is positive.
    """
    expr, lower, upper = constraint.expr, constraint.lower, constraint.upper
    factor = gcd(*expr.parts.values())
    sign = _first_sign(expr)
    if not expr.constant and factor * sign == 1:
        return constraint
    moved = constraint
    if expr.constant:
        lower, upper = lower - expr.constant, upper - expr.constant
        expr = Expr(expr.parts, 0)
        moved = Constraint(expr, lower, upper)
        if trace.records:
            trace.record(laws.MOVE_CONSTANT, constraint, moved)
        if factor * sign == 1:
            return moved
    if sign < 0:
        lower, upper = -upper, -lower
    lower, upper = -(-lower // factor), upper // factor
    factor *= sign
    divided = Constraint(
        Expr({atom: c // factor for atom, c in expr.parts.items()}, 0), lower, upper
    )
    if trace.records:
        trace.record(laws.DIVIDE_CONSTRAINT, moved, divided)
    return divided


def _first_sign(expr: Expr) -> int:
    """The sign of the first coefficient.

    The terms are in order only where signs differ, and then variables precede other atoms.
    """
    negative = [coefficient < 0 for coefficient in expr.parts.values()]
    if True not in negative or False not in negative:
        return -1 if negative[0] else 1
    variables = [atom for atom in expr.parts if not atom.operands]
    if variables and expr.weight < MAX_ORDERED:
        return -1 if expr.parts[min(variables, key=lambda v: v.key)] < 0 else 1
    return -1 if expr.terms[0][1] < 0 else 1


def _decide_by_intervals(constraint: Constraint) -> Constraint | None:
    """Return `constraint`, or `None` or `FALSE` if finer intervals decide it."""
    for lower, upper in _finer_bounds(constraint.expr):
        if contains(constraint.bounds, (lower, upper)):
            return _record_law(laws.DECIDE_CONSTRAINT, constraint, None)
        if upper < constraint.lower or constraint.upper < lower:
            return _record_law(laws.DECIDE_CONSTRAINT, constraint, FALSE)
    return constraint


def _finer_bounds(expr: Expr) -> Iterator[Interval]:
    """Bounds of `expr` with its finest mods, and with one of several floors removed."""
    yield UNCONSTRAINED.finest_bounds(expr)
    units = unit_floors(expr)
    for floor in units if len(units) > 1 else ():
        dividend = UNCONSTRAINED.finest_bounds(without_floor(expr, floor))
        yield scale(floor_divide(dividend, floor.divisor), expr.parts[floor])


def _without_printed_constant(constraint: Constraint) -> Constraint:
    """Move the constant so that the text has none: ``x mod 7``, not ``x mod 7 - 4``."""
    _, rest = split(constraint.expr)
    if not rest.constant:
        return constraint
    constant = printed_constant(constraint.expr)
    lower, upper = constraint.lower - constant, constraint.upper - constant
    return Constraint(constraint.expr - constant, lower, upper)


def _removable(expr: Expr) -> Floor | None:
    """Return the only floor with coefficient ±1, if any: ``q + floor(n / d)`` has one."""
    units = unit_floors(expr)
    return units[0] if len(units) == 1 else None


def droppable_first(constraints: Iterable[Constraint]) -> list[Constraint]:
    """Return constraints in the order in which to drop those that the others imply.

    Those of many atoms come first; of equally many, congruences come last: they divide exactly.
    """
    return sorted(dict.fromkeys(constraints), key=_worth)


def _worth(constraint: Constraint) -> tuple[int, bool]:
    residues = constraint.residues
    return -constraint.expr.weight, residues is not None and residues.is_congruence


def sum_bounds(constraints: Iterable[Constraint]) -> dict[frozenset[Term], Interval]:
    """Bounds of sums of terms that `constraints` state, for `simplifier.bounds.KnownBounds`.

    Residues also bound their dividend: its bounds are rounded to them.
    """
    bounds: dict[frozenset[Term], Interval] = {}
    for constraint in constraints:
        expr = constraint.expr
        _state(bounds, expr, constraint.lower - expr.constant, constraint.upper - expr.constant)
        residues = constraint.residues if expr.divides else None
        if residues and len(residues.dividend.parts) > 1:
            dividend = residues.dividend
            low, high = residues.round_bounds(dividend.bounds)
            if low <= high and (low, high) != dividend.bounds:
                _state(bounds, dividend, low, high)
    return bounds


def _state(bounds: dict[frozenset[Term], Interval], expr: Expr, lower: int, upper: int) -> None:
    """Add bounds of the terms of `expr`, without its constant, and of the negated terms."""
    terms = expr.identity[0]
    known = bounds.get(terms)
    if known is not None:
        lower, upper = intersect(known, (lower, upper))
    bounds[terms] = lower, upper
    bounds[frozenset([(atom, -c) for atom, c in expr.parts.items()])] = -upper, -lower


def substitute_all(
    exprs: tuple[Expr, ...], constraints: tuple[Constraint, ...], swap: Substitution
) -> tuple[list[Expr], list[Constraint]]:
    """Return expressions and constraints with `swap` applied.

    If a divisor becomes 0, the expressions have no values: the only constraint is `FALSE`.

    >>> n, d0 = Variable("n", 0, 9), Variable("d0", 0, 9)
    >>> substitute_all((d0 // n.expr,), (), Substitution({n: constant(0)}))[1] == [FALSE]
    True
    """
    try:
        moved = [c.with_expr(swap(c.expr)) for c in constraints] if constraints else []
        return [swap(expr) for expr in exprs], moved
    except ZeroDivisorError:
        return [constant(0)] * len(exprs), [FALSE]

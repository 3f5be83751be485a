"""Semi-affine atoms: products and quotients of variables, minima and maxima.

Tile sizes and symbolic shapes need them.  A product is a monomial: products of sums are
distributed, so that like terms merge, unless they have too many terms.  ISL supports
minima and maxima, but no products or quotients: queries about these are undecided.

>>> from simplifier.linear import variable
>>> n, d0, d1 = variable("n", 1, 99), variable("d0", 0, 9), variable("d1", 0, 9)
>>> (d0 + 2) * n - n * d0
Expr('n * 2')
>>> (d0 * n + n * 3) // n
Expr('d0 + 3')
>>> minimum(d0 + 10, d1), maximum(d0, d1, 4, 2)
(Expr('d1'), Expr('max(d0, d1, 4)'))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import product as pairs
from math import prod
from typing import Any, Final, Literal, TypeAlias

from simplifier import laws, trace
from simplifier.divmod import floor_div
from simplifier.interval import Interval
from simplifier.linear import (
    Affine,
    Expr,
    Variable,
    add_multiple,
    as_expr,
    constant,
    from_atom,
    without_zero_terms,
)
from simplifier.unique import Atom, OrderKey, depth_above
from simplifier.unique_table import UniqueTable
from simplifier.zero_divisor import ZeroDivisorError

Operator: TypeAlias = Literal["*", "floordiv", "min", "max"]


class SemiAffine(Atom):
    """``operator(operands)``, a non-affine atom; only the functions of this module construct it.

    ``*`` has atoms as operands, sorted, or two sums with too many terms to distribute.
    ``floordiv`` has two operands, and the second one is not constant.  ``min`` and ``max`` have at
    least two operands, sorted; only the last one may be constant.

    Source: MLIR "'affine' Dialect", "Semi-Affine Maps".

    >>> from simplifier.linear import variable
    >>> n, d0 = variable("n", 1, 99), variable("d0", 0, 9)
    >>> (atom,) = (d0 // n).parts
    >>> atom, atom.bounds
    (SemiAffine('floordiv', (Expr('d0'), Expr('n'))), (0, 9))
    """

    __slots__ = ("depth", "operands", "operator", "weight")

    operator: Operator
    operands: tuple[Expr, ...]

    def __new__(cls, operator: Operator, operands: tuple[Expr, ...]) -> SemiAffine:
        """Return the unique atom for `operator` and `operands`."""
        made_of = operator, tuple([operand.identity for operand in operands])
        known = _SEMI_AFFINE.objects.get(made_of)
        if known is not None:
            return known
        self = object.__new__(cls)
        self.operator, self.operands = operator, operands
        self._key = self._variables = None
        self.weight, self.depth = 1 + sum([e.weight for e in operands]), depth_above(operands)
        self.bounds = _BOUNDS[operator](*[operand.bounds for operand in operands])
        return _SEMI_AFFINE.add(made_of, self)

    def __reduce__(self) -> tuple[type[SemiAffine], tuple[Operator, tuple[Expr, ...]]]:
        return SemiAffine, (self.operator, self.operands)

    def __repr__(self) -> str:
        return f"SemiAffine({self.operator!r}, {self.operands!r})"

    def _made_key(self) -> OrderKey:
        return (2, self.operator, tuple([operand.key for operand in self.operands]))

    def value(self, point: Mapping[Variable, Any]) -> Any:
        return _VALUES[self.operator](*[operand.tree_value(point) for operand in self.operands])

    def value_of(self, values: Iterable[Any]) -> Any:
        return _VALUES[self.operator](*values)

    def rebuild(self, operands: tuple[Expr, ...]) -> Expr:
        """Apply the operator to other operands, and simplify."""
        match self.operator:
            case "*":
                return reduce(product, operands)
            case "floordiv":
                return quotient(*operands)
            case "min":
                return minimum(*operands)
            case "max":
                return maximum(*operands)


_SEMI_AFFINE: Final = UniqueTable[SemiAffine]()


def _product_bounds(*operands: Interval) -> Interval:
    """Bounds of a product: its extremes are at corners of the box, factor by factor."""
    low, high = 1, 1
    for ends in operands:
        corners = [a * b for a, b in pairs((low, high), ends)]
        low, high = min(corners), max(corners)
    return low, high


def _quotient_bounds(dividend: Interval, divisor: Interval) -> Interval:
    """Bounds of a quotient, at corners; for a divisor that may be 0, 1 and -1 are corners too."""
    low, high = divisor
    ends = {end for end in (low, high, 1, -1) if end and low <= end <= high} or {1}
    corners = [x // d for x in dividend for d in ends]
    if min(abs(low), abs(high)) and low * high > 0:
        corners = [x // d for x in dividend for d in divisor]
    return min(corners), max(corners)


_BOUNDS: Final[Mapping[Operator, Callable[..., Interval]]] = {
    "*": _product_bounds,
    "floordiv": _quotient_bounds,
    "min": lambda *boxes: (min(b[0] for b in boxes), min(b[1] for b in boxes)),
    "max": lambda *boxes: (max(b[0] for b in boxes), max(b[1] for b in boxes)),
}


def _least(*values: Any) -> Any:
    """The minimum of integers, or of NumPy arrays element by element."""
    if all(isinstance(value, int) for value in values):
        return min(values)
    from numpy import minimum as least

    return reduce(least, values)


def _greatest(*values: Any) -> Any:
    """The maximum of integers, or of NumPy arrays element by element."""
    if all(isinstance(value, int) for value in values):
        return max(values)
    from numpy import maximum as greatest

    return reduce(greatest, values)


_VALUES: Final[Mapping[Operator, Callable[..., Any]]] = {
    "*": lambda *values: prod(values),
    "floordiv": lambda dividend, divisor: dividend // divisor,
    "min": _least,
    "max": _greatest,
}


def divisors_with_zero(exprs: Iterable[Expr]) -> list[Expr]:
    """Return the divisors in `exprs` whose bounds contain 0, the divisors inside others first.

    >>> from simplifier.linear import variable
    >>> d0, d1 = variable("d0", 0, 9), variable("d1", 0, 9)
    >>> divisors_with_zero([d0 // (d1 + 1) + d0 // d1])
    [Expr('d1')]
    """
    pending, seen, divisors = list(exprs), set[Expr](), set[Expr]()
    while pending:
        expr = pending.pop()
        if expr in seen:
            continue
        seen.add(expr)
        for atom in expr.parts:
            pending.extend(atom.operands)
            if isinstance(atom, SemiAffine) and atom.operator == "floordiv":
                low, high = atom.operands[1].bounds
                if low <= 0 <= high:
                    divisors.add(atom.operands[1])
    return sorted(divisors, key=lambda expr: (expr.weight, str(expr)))


# ---------------------------------------------------------------- products


MAX_TERMS: Final = 1 << 8
"""Maximum number of terms of a distributed product: n factors with two terms have 2ⁿ."""


def product(a: Expr, b: Expr) -> Expr:
    """Return ``a·b``, distributed over sums if that gives at most `MAX_TERMS` terms.

    >>> from simplifier.linear import variable
    >>> sums = [variable(f"a{k}", 0, 9) + variable(f"b{k}", 0, 9) for k in range(9)]
    >>> len(reduce(product, sums[:8]).parts), len(reduce(product, sums).parts)
    (256, 1)
    """
    if b.is_constant:
        return a * b.constant
    if a.is_constant:
        return b * a.constant
    if len(a.parts) * len(b.parts) > MAX_TERMS:
        sums = sorted([a, b], key=lambda each: each.key)
        return from_atom(SemiAffine("*", tuple(sums)))
    total: dict[Atom, int] = {}
    for (x, many), (y, times) in pairs(_monomials(a), _monomials(b)):
        factors = sorted([*x, *y], key=_atom_key)
        if not factors:
            continue
        one = factors[0] if len(factors) == 1 else SemiAffine("*", tuple(map(from_atom, factors)))
        total[one] = total.get(one, 0) + many * times
    expanded = without_zero_terms(total, a.constant * b.constant)
    if trace.records:
        _record_product(a, b, expanded)
    return expanded


def _record_product(a: Expr, b: Expr, expanded: Expr) -> None:
    """Record for `simplifier.trace` that a product with a sum was distributed."""
    if len(_monomials(a)) > 1 or len(_monomials(b)) > 1:
        trace.record(
            laws.DISTRIBUTE_PRODUCT, f"{trace.operand_text(a)} * {trace.operand_text(b)}", expanded
        )


def _atom_key(atom: Atom) -> OrderKey:
    return atom.key


def _monomials(expr: Expr) -> list[tuple[tuple[Atom, ...], int]]:
    """The terms of a sum as factors and coefficient; the constant has no factors."""
    monomials = [(factors_of(atom), coefficient) for atom, coefficient in expr.terms]
    return [*monomials, ((), expr.constant)] if expr.constant else monomials


def factors_of(atom: Atom) -> tuple[Atom, ...]:
    """Return the factors of `atom`: itself, unless it is a product of atoms."""
    if isinstance(atom, SemiAffine) and atom.operator == "*":
        if all(_is_atom(operand) for operand in atom.operands):
            return tuple([inner for operand in atom.operands for inner in operand.parts])
    return (atom,)


def _is_atom(expr: Expr) -> bool:
    return not expr.constant and list(expr.parts.values()) == [1]


# ---------------------------------------------------------------- quotients


def quotient(dividend: Expr, divisor: Expr) -> Expr:
    """Return ``floor(dividend / divisor)``, defined at points where `divisor` is not 0.

    Multiples of the divisor are factored out, and a remainder in ``[0, divisor)`` is dropped.

    Raises:
        ZeroDivisorError: `divisor` is the constant 0.
    """
    if divisor.is_constant:
        if divisor.constant == 0:
            raise ZeroDivisorError
        if divisor.constant < 0:
            if trace.records:
                before, after = (
                    f"{trace.operand_text(x)} floordiv " for x in (dividend, -dividend)
                )
                trace.record(laws.NEGATE_DIVISION, f"{before}({divisor})", f"{after}{-divisor}")
            dividend, divisor = -dividend, -divisor
        return floor_div(dividend, divisor.constant)
    factored_out, left = _multiples(dividend, divisor)
    below = (
        left.bounds[0] >= 0 and add_multiple(divisor, left, -1).bounds[0] > 0
    )  # 0 <= left < divisor
    if below or left == constant(0):
        floor = factored_out
    else:
        floor = add_multiple(factored_out, from_atom(SemiAffine("floordiv", (left, divisor))))
    if trace.records:
        by = f" floordiv {trace.operand_text(divisor)}"
        rest = trace.operand_text(left) + by
        if factored_out != constant(0):
            after = f"{factored_out} + {rest}" if left != constant(0) else str(factored_out)
            trace.record(laws.FACTOR_OUT_DIVISOR, trace.operand_text(dividend) + by, after)
        if below and left != constant(0):
            trace.record(laws.DROP_REMAINDER, rest, 0)
    return floor


def remainder(dividend: Expr, divisor: Expr) -> Expr:
    """Return ``dividend − divisor·floor(dividend / divisor)``: 0, or the sign of the divisor."""
    return add_multiple(dividend, product(quotient(dividend, divisor), divisor), -1)


def _multiples(dividend: Expr, divisor: Expr) -> tuple[Expr, Expr]:
    """Return ``(q, r)`` with ``dividend = divisor·q + r``, by matching terms."""
    factored_out = constant(0)
    lead = divisor.terms[0]
    if len(divisor.parts) > len(dividend.parts):
        return factored_out, dividend
    tries = MAX_TERMS // len(divisor.parts)  # the terms to multiply, together
    for atom, coefficient in dividend.terms[: max(tries, 1)]:
        times, left = divmod(coefficient, lead[1])
        others = _without(factors_of(atom), factors_of(lead[0]))
        if left or others is None:
            continue
        candidate = reduce(product, map(from_atom, others), constant(1)) * times
        rest = add_multiple(dividend, product(candidate, divisor), -1)
        if len(rest.parts) + len(divisor.parts) <= len(dividend.parts):  # every term cancelled
            dividend, factored_out = rest, add_multiple(factored_out, candidate)
    return factored_out, dividend


def _without(factors: Iterable[Atom], taken: Iterable[Atom]) -> list[Atom] | None:
    """Return `factors` without `taken`, or `None` if they do not contain them."""
    left = list(factors)
    for factor in taken:
        if factor not in left:
            return None
        left.remove(factor)
    return left


# ---------------------------------------------------------------- minima and maxima


def minimum(*values: Affine) -> Expr:
    """Return the minimum of `values`, without operands that another one never exceeds.

    Raises:
        ValueError: there are no values.
    Source: MLIR "'affine' Dialect", "affine.min".

    >>> from simplifier.linear import variable
    >>> d0, d1 = variable("d0", 0, 9), variable("d1", 0, 20)
    >>> minimum(d0, d1, 12)
    Expr('min(d0, d1)')
    """
    return _extremum("min", values, -1)


def maximum(*values: Affine) -> Expr:
    """Return the maximum of `values`, without operands that never exceed another one.

    Raises:
        ValueError: there are no values.
    Source: MLIR "'affine' Dialect", "affine.max".

    >>> from simplifier.linear import variable
    >>> d0, d1 = variable("d0", 0, 9), variable("d1", 0, 20)
    >>> maximum(d0, d1, 12)
    Expr('max(d1, 12)')
    """
    return _extremum("max", values, 1)


def _extremum(operator: Operator, values: Iterable[Affine], sign: int) -> Expr:
    operands = tuple(map(as_expr, values))
    flat: dict[Expr, None] = {}
    for value in operands:
        atom = next(iter(value.parts), None)
        if isinstance(atom, SemiAffine) and atom.operator == operator and value == from_atom(atom):
            flat.update(dict.fromkeys(atom.operands))
        else:
            flat[value] = None
    kept = _drop_dominated(sorted(flat, key=lambda v: (v.is_constant, v.key)), sign)
    if not kept:
        raise ValueError(f"{operator} needs at least one operand")
    extremum = kept[0] if len(kept) == 1 else from_atom(SemiAffine(operator, tuple(kept)))
    if trace.records:
        before, flattened = (f"{operator}({', '.join(map(str, x))})" for x in (operands, flat))
        trace.record(laws.FLATTEN_EXTREMUM, before, flattened)
        if len(kept) < len(flat):
            trace.record(laws.DROP_DOMINATED, flattened, extremum)
    return extremum


MAX_COMPARED: Final = 32
"""Maximum number of operands of a minimum or maximum to compare in pairs."""


def _drop_dominated(operands: Sequence[Expr], sign: int) -> list[Expr]:
    """Drop operands that another one dominates; many operands only by their own bounds."""
    if len(operands) > MAX_COMPARED:
        best = max(operands, key=lambda value: (value * sign).bounds[0])
        least = (best * sign).bounds[0]
        return [v for v in operands if v is best or (v * sign).bounds[1] > least]
    kept: list[Expr] = []
    for value in operands:
        if any(_dominates(other, value, sign) for other in kept):
            continue
        kept = [*[other for other in kept if not _dominates(value, other, sign)], value]
    return kept


def _dominates(a: Expr, b: Expr, sign: int) -> bool:
    """Return True if a >= b always, for a maximum (`sign` 1); a <= b for a minimum (-1)."""
    return ((a - b) * sign).bounds[0] >= 0

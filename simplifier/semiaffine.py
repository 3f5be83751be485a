"""What is not affine: products and quotients of variables, minima and maxima.

Sizes of tiles and symbolic shapes need them.  A product is a monomial: products of sums are
multiplied out, so that like terms merge here too.  ISL cannot see inside these atoms; what it is
asked about them is undecided.

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

from collections.abc import Callable, Iterable, Mapping
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
    added,
    as_expr,
    constant,
    from_atom,
    gather,
)
from simplifier.unique import Atom, SortKey, UniqueTable

Operator: TypeAlias = Literal["*", "floordiv", "min", "max"]


class SemiAffine(Atom):
    """``operator(operands)``, which is no affine expression; made by the functions below alone.

    ``*``: the operands are atoms, in order; ``floordiv``: two operands, the second is no constant;
    ``min`` and ``max``: at least two operands, in order, at most the last of them is a constant.
    """

    __slots__ = ("operands", "operator", "weight")

    operator: Operator
    operands: tuple[Expr, ...]

    def __new__(cls, operator: Operator, operands: tuple[Expr, ...]) -> SemiAffine:
        """The atom for `operator` on `operands`."""
        made_of = operator, tuple([operand.identity for operand in operands])
        held = _KNOWN.get(made_of)
        known = None if held is None else held()
        if known is not None:
            return known
        self = object.__new__(cls)
        self.operator, self.operands, self._key = operator, operands, None
        self.weight = 1 + sum([operand.weight for operand in operands])
        self.bounds = _BOUNDS[operator](*[operand.bounds for operand in operands])
        return _KNOWN.add(made_of, self)

    def __reduce__(self) -> tuple[type[SemiAffine], tuple[Operator, tuple[Expr, ...]]]:
        return SemiAffine, (self.operator, self.operands)

    def __repr__(self) -> str:
        return f"SemiAffine({self.operator!r}, {self.operands!r})"

    def _made_key(self) -> SortKey:
        return (2, self.operator, tuple([operand.key for operand in self.operands]))

    def value(self, point: Mapping[Variable, Any]) -> Any:
        return _VALUES[self.operator](*[operand.value(point) for operand in self.operands])

    def rebuilt(self, operands: tuple[Expr, ...]) -> Expr:
        """The same operator on other operands, with the laws applied."""
        match self.operator:
            case "*":
                return reduce(product, operands)
            case "floordiv":
                return quotient(*operands)
            case "min":
                return minimum(*operands)
            case "max":
                return maximum(*operands)


_KNOWN: Final = UniqueTable[SemiAffine]()


def _product_bounds(*operands: Interval) -> Interval:
    """The corners of the box hold the extremes of a product."""
    corners = [prod(corner) for corner in pairs(*operands)]
    return min(corners), max(corners)


def _quotient_bounds(dividend: Interval, divisor: Interval) -> Interval:
    """The corners again; a divisor that may be 0 is 1 or -1 at least where the quotient exists."""
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
_VALUES: Final[Mapping[Operator, Callable[..., int]]] = {
    "*": lambda *values: prod(values),
    "floordiv": lambda dividend, divisor: dividend // divisor,
    "min": min,
    "max": max,
}


# ---------------------------------------------------------------- products


def product(a: Expr, b: Expr) -> Expr:
    """``a·b``, multiplied out."""
    if b.is_constant:
        return a * b.constant
    if a.is_constant:
        return b * a.constant
    total: dict[Atom, int] = {}
    for (x, many), (y, times) in pairs(_monomials(a), _monomials(b)):
        factors = sorted([*x, *y], key=_atom_key)
        if not factors:
            continue
        one = factors[0] if len(factors) == 1 else SemiAffine("*", tuple(map(from_atom, factors)))
        total[one] = total.get(one, 0) + many * times
    expanded = gather(total, a.constant * b.constant)
    if trace.records:
        _note_product(a, b, expanded)
    return expanded


def _note_product(a: Expr, b: Expr, expanded: Expr) -> None:
    """Record that a product with a sum was multiplied out."""
    if len(_monomials(a)) > 1 or len(_monomials(b)) > 1:
        trace.note(
            laws.DISTRIBUTE_PRODUCT, f"{trace.operand_text(a)} * {trace.operand_text(b)}", expanded
        )


def _atom_key(atom: Atom) -> SortKey:
    return atom.key


def _monomials(expr: Expr) -> list[tuple[tuple[Atom, ...], int]]:
    """The terms of a sum as factors and coefficient; the constant has no factors."""
    found = [(factors_of(atom), coefficient) for atom, coefficient in expr.terms]
    return [*found, ((), expr.constant)] if expr.constant else found


def factors_of(atom: Atom) -> tuple[Atom, ...]:
    """The atoms whose product `atom` is; itself, where it is none."""
    if isinstance(atom, SemiAffine) and atom.operator == "*":
        return tuple([inner for operand in atom.operands for inner in operand.parts])
    return (atom,)


# ---------------------------------------------------------------- quotients


def quotient(dividend: Expr, divisor: Expr) -> Expr:
    """``floor(dividend / divisor)``, for points where `divisor` is not 0.

    Multiples of the divisor leave as whole numbers, and what stays below it vanishes.

    Raises:
        ValueError: `divisor` is the constant 0.
    """
    if divisor.is_constant:
        if divisor.constant == 0:
            raise ValueError("a divisor is not 0")
        if divisor.constant < 0:
            if trace.records:
                before, after = (
                    f"{trace.operand_text(x)} floordiv " for x in (dividend, -dividend)
                )
                trace.note(laws.NEGATE_DIVISION, f"{before}({divisor})", f"{after}{-divisor}")
            dividend, divisor = -dividend, -divisor
        return floor_div(dividend, divisor.constant)
    whole, left = _multiples(dividend, divisor)
    below = left.bounds[0] >= 0 and added(divisor, left, -1).bounds[0] > 0  # 0 <= left < divisor
    if below or left == constant(0):
        floor = whole
    else:
        floor = added(whole, from_atom(SemiAffine("floordiv", (left, divisor))))
    if trace.records:
        by = f" floordiv {trace.operand_text(divisor)}"
        rest = trace.operand_text(left) + by
        if whole != constant(0):
            after = f"{whole} + {rest}" if left != constant(0) else str(whole)
            trace.note(laws.FACTOR_OUT_DIVISOR, trace.operand_text(dividend) + by, after)
        if below and left != constant(0):
            trace.note(laws.DROP_REMAINDER, rest, 0)
    return floor


def remainder(dividend: Expr, divisor: Expr) -> Expr:
    """``dividend − divisor·floor(dividend / divisor)``: the sign of the divisor, or 0."""
    return added(dividend, product(quotient(dividend, divisor), divisor), -1)


def _multiples(dividend: Expr, divisor: Expr) -> tuple[Expr, Expr]:
    """``(q, r)`` with ``dividend = divisor·q + r``, as the terms alone show."""
    whole = constant(0)
    lead = divisor.terms[0]
    for atom, coefficient in dividend.terms:
        times, left = divmod(coefficient, lead[1])
        others = _without(factors_of(atom), factors_of(lead[0]))
        if left or others is None:
            continue
        candidate = reduce(product, map(from_atom, others), constant(1)) * times
        rest = added(dividend, product(candidate, divisor), -1)
        if len(rest.parts) + len(divisor.parts) <= len(dividend.parts):  # all of it was there
            dividend, whole = rest, added(whole, candidate)
    return whole, dividend


def _without(factors: Iterable[Atom], taken: Iterable[Atom]) -> list[Atom] | None:
    """`factors` after `taken` are divided out, or `None` where they are not among them."""
    left = list(factors)
    for factor in taken:
        if factor not in left:
            return None
        left.remove(factor)
    return left


# ---------------------------------------------------------------- minima and maxima


def minimum(*values: Affine) -> Expr:
    """The least of `values`; those that another one never exceeds are left out."""
    return _extremum("min", values, -1)


def maximum(*values: Affine) -> Expr:
    """The greatest of `values`; those that never exceed another one are left out."""
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
    kept: list[Expr] = []
    for value in sorted(flat, key=lambda v: (v.is_constant, v.key)):
        if any(_beats(other, value, sign) for other in kept):
            continue
        kept = [other for other in kept if not _beats(value, other, sign)]
        kept.append(value)
    if not kept:
        raise ValueError(f"{operator} of nothing")
    extremum = kept[0] if len(kept) == 1 else from_atom(SemiAffine(operator, tuple(kept)))
    if trace.records:
        before, flattened = (
            f"{operator}({', '.join(map(str, each))})" for each in (operands, flat)
        )
        trace.note(laws.FLATTEN_EXTREMUM, before, flattened)
        if len(kept) < len(flat):
            trace.note(laws.DROP_DOMINATED, flattened, extremum)
    return extremum


def _beats(a: Expr, b: Expr, sign: int) -> bool:
    """`a` is always at least `b` (for a maximum), or at most `b` (for a minimum)."""
    return ((a - b) * sign).bounds[0] >= 0

"""Periods of quasi-affine expressions: ``e(v + period) = e(v) + shift`` for every value of v.

An affine expression has period 1.  ``floor(N / d)`` repeats, up to a shift, when the numerator has
moved by a multiple of d.

>>> bl = Variable("bl_x", 0, 999)
>>> translation(bl // 6 * 100 + bl % 4, bl)
Translation(period=12, shift=200)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import gcd, lcm
from typing import NamedTuple

from simplifier.atoms import Atom, Floor, Variable, variables_in
from simplifier.linear import Expr, constant


class Translation(NamedTuple):
    """If the variable grows by `period`, the expression grows by `shift`, everywhere."""

    period: int
    shift: int


def translation(expr: Expr, variable: Variable) -> Translation | None:
    """Return the translation of an expression along a variable; `None` if it has none.

    The period is the least common multiple of the periods of the terms.
    """
    terms: list[tuple[int, Translation]] = []
    for atom, coefficient in expr.parts.items():
        inner = _atom_translation(atom, variable)
        if inner is None:
            return None
        terms.append((coefficient, inner))
    period = lcm(*[inner.period for _, inner in terms])
    return Translation(period, sum([c * i.shift * (period // i.period) for c, i in terms]))


def _atom_translation(atom: Atom, variable: Variable) -> Translation | None:
    if isinstance(atom, Variable):
        return Translation(1, int(atom is variable))
    if isinstance(atom, Floor):
        inner = translation(atom.numerator, variable)
        if inner is None:
            return None
        repeats = atom.divisor // gcd(inner.shift, atom.divisor)
        return Translation(inner.period * repeats, inner.shift * repeats // atom.divisor)
    return None if variable in variables_in(atom.operands) else Translation(1, 0)


def digits(exprs: Iterable[Expr], variable: Variable) -> tuple[Expr, Sequence[Variable]]:
    """Return a variable as ``lower + Σ digit · weight``, and its digits, the fastest first.

    The weights are periods of the floors of the expressions, each a multiple of the one before, so
    that the floors of the sum simplify.  The last digit may exceed the bounds of the variable.

    >>> bl = Variable("bl_x", 0, 99)
    >>> value, parts = digits([bl // 3 % 4], bl)
    >>> value
    Expr('bl_x + bl_x.3 * 3 + bl_x.12 * 12')
    >>> parts
    (Variable('bl_x', 0, 2), Variable('bl_x.3', 0, 3), Variable('bl_x.12', 0, 8))
    """
    size = variable.size
    weights = [1]
    for period in sorted(_floor_periods(exprs, variable)):
        if weights[-1] < period < size and period % weights[-1] == 0:
            weights.append(period)
    if len(weights) == 1:
        return variable.as_expr(), (variable,)
    counts = [high // low for low, high in pairwise(weights)]
    counts.append(-(-size // weights[-1]))
    names = [variable.name, *[f"{variable.name}.{weight}" for weight in weights[1:]]]
    parts = [Variable(name, 0, count - 1) for name, count in zip(names, counts, strict=True)]
    value = constant(variable.lower)
    for part, weight in zip(parts, weights, strict=True):
        value = value + part * weight
    return value, tuple(parts)


def _floor_periods(exprs: Iterable[Expr], variable: Variable) -> set[int]:
    """Return the periods of all floors in the expressions, at any depth."""
    periods: set[int] = set()
    pending = list(exprs)
    while pending:
        for atom in pending.pop().parts:
            if isinstance(atom, Floor):
                step = _atom_translation(atom, variable)
                if step is not None:
                    periods.add(step.period)
            pending.extend(atom.operands)
    return periods

"""Variables that a domain does not need: solved for, with larger steps, or two made one.

A change is one to one: each point of the domain before it is one point after it, so that how often
something is reached stays too.  Laws, for a variable s that runs over its range:

* *determined*: ``c·s + e in [a, b]`` with ``b − a < c`` leaves s one value at most:
  ``s = (b − e) floordiv c``, within the bounds of s;
* *strided*: where ``s ≡ r (mod m)``, s is ``m·t + r``;
* *mixed radix*: s and t that occur only as ``s + n·t``, where s has n values, are one variable with
  as many values as both have together.

Where that does not matter, `projected` says what is left of a constraint without a variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import permutations
from math import gcd
from typing import NamedTuple

from simplifier import laws, trace
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.divmod import floor_div
from simplifier.interval import scaled
from simplifier.linear import Expr, added, constant
from simplifier.residues import residues_of
from simplifier.substitute import Substitution


class Change(NamedTuple):
    """Variables replaced by expressions; what runs instead of them; constraints that come with it.

    A variable for which `instead` has `None` is gone.
    """

    values: dict[Variable, Expr]
    instead: dict[Variable, Variable | None]
    constraints: tuple[Constraint, ...] = ()


def change(
    candidates: Sequence[Variable], constraints: Sequence[Constraint], exprs: Sequence[Expr]
) -> Change | None:
    """The first change that a law allows to `candidates`, or `None`.

    Args:
        candidates: variables that run over their range.
        constraints: normalised constraints of the domain.
        exprs: all other expressions in which a candidate may occur.
    """
    free = set(candidates)
    for constraint in constraints:
        found = _determined(constraint, free) or _strided(constraint, free)
        if found:
            return found
    if len(candidates) < 2:
        return None
    return _mixed_radix(candidates, [*exprs, *[c.expr for c in constraints]])


def projected(constraint: Constraint, variable: Variable) -> Constraint | None:
    """The constraint that some value of `variable` satisfies `constraint`, if one says it.

    Law *projected*: values of ``c·s + e`` for neighbouring s are c apart, so that with ``b − a + 1
    >= c`` there is an s in ``[p, q]`` with ``c·s + e in [a, b]`` just where ``e in [a − c·q, b −
    c·p]``.  Modulo m, with c prime to m, m neighbouring s reach every residue.

    >>> d0, s0 = Variable("d0", 0, 99), Variable("s0", 0, 3)
    >>> print(projected(Constraint(d0 + s0, 5, 9), s0))
    d0 in [2, 9]
    """
    residues = residues_of(constraint.expr, constraint.bounds)
    expr = residues.dividend if residues else constraint.expr
    coefficient = expr.parts.get(variable, 0)
    rest = added(expr, variable.as_expr(), -coefficient) if coefficient else None
    if rest is None or variable in rest.variables():
        return None
    if residues:
        enough = variable.upper - variable.lower + 1 >= residues.modulus
        if not enough or gcd(coefficient, residues.modulus) != 1:
            return None
        if trace.records:
            trace.note(laws.PROJECT_RESIDUES, _exists(variable, constraint), "true")
        return Constraint(constant(0), 0, 0)
    if abs(coefficient) > constraint.upper - constraint.lower + 1:
        return None
    low, high = scaled(variable.bounds, coefficient)
    projection = Constraint(rest, constraint.lower - high, constraint.upper - low)
    if trace.records:
        trace.note(laws.PROJECT_BOUNDS, _exists(variable, constraint), projection)
    return projection


def _exists(variable: Variable, constraint: Constraint) -> str:
    return f"exists {variable.name} in [{variable.lower}, {variable.upper}]: {constraint}"


def _determined(constraint: Constraint, candidates: set[Variable]) -> Change | None:
    """Law *determined*, for a coefficient of 1 if there is one.

    >>> s0, d0 = Variable("s0", 0, 9), Variable("d0", 0, 39)
    >>> _determined(Constraint(d0 - s0 * 4, 0, 3), {s0}).values
    {Variable('s0', 0, 9): Expr('d0 floordiv 4')}
    """
    width = constraint.upper - constraint.lower
    terms = [(atom, c) for atom, c in constraint.expr.terms if width < abs(c)]
    for variable, coefficient in sorted(terms, key=lambda term: abs(term[1])):
        if not isinstance(variable, Variable) or variable not in candidates:
            continue
        rest = added(constraint.expr, variable.as_expr(), -coefficient)
        if variable in rest.variables():
            continue
        reach = constraint.upper - rest if coefficient > 0 else rest - constraint.lower
        value = floor_div(reach, abs(coefficient))
        inside = Constraint(value, *variable.bounds)
        if trace.records:
            trace.note(laws.SOLVE_FOR_VARIABLE, f"{constraint}: {variable.name}", value)
        return Change({variable: value}, {variable: None}, (inside,))
    return None


def _strided(constraint: Constraint, candidates: set[Variable]) -> Change | None:
    """Law *strided*.

    >>> s0 = Variable("s0", 0, 9)
    >>> _strided(Constraint(s0 % 4, 1, 1), {s0}).instead
    {Variable('s0', 0, 9): Variable('s0', 0, 2)}
    """
    if constraint.lower != constraint.upper:
        return None
    found = residues_of(constraint.expr, constraint.bounds)
    old = found.dividend.as_variable if found else None
    if not found or old not in candidates:
        return None
    step, first = found.modulus, found.lower
    new = Variable(old.name, -((first - old.lower) // step), (old.upper - first) // step)
    if trace.records:
        after = f"{new * step + first} with {new.name} in [{new.lower}, {new.upper}]"
        trace.note(laws.RESCALE_VARIABLE, f"{constraint}: {old.name}", after)
    return Change({old: new * step + first}, {old: new})


def _mixed_radix(candidates: Sequence[Variable], exprs: Iterable[Expr]) -> Change | None:
    """Law *mixed radix*, for the first pair that it allows.

    Floors may have taken the sum ``s + n·t`` apart.  So it is made a variable, and s is replaced by
    it: where that leaves nothing of t, there was nothing but such sums.

    >>> s0, s1 = Variable("s0", 0, 4), Variable("s1", 0, 2)
    >>> _mixed_radix((s0, s1), [s0 * 3 + s1, (s0 * 3 + s1) // 2]).instead
    {Variable('s0', 0, 4): None, Variable('s1', 0, 2): Variable('s1', 0, 14)}
    """
    every = list(exprs)
    where = {v: {e for e in every if v in e.variables()} for v in candidates}
    for high, low in permutations(candidates, 2):
        if not where[high] or where[high] != where[low]:
            continue
        count = low.upper - low.lower + 1
        both = Variable(low.name, 0, count * (high.upper - high.lower + 1) - 1)
        for end, sign in (high.lower, 1), (high.upper, -1):
            swap = Substitution({low: both + low.lower - (high - end) * (sign * count)})
            if not any(high in swap(expr).variables() for expr in where[high]):
                values = {high: constant(end), low: both + low.lower}
                if trace.records:
                    digits = low - low.lower + (high - end) * (sign * count)
                    after = f"{both.name} in [{both.lower}, {both.upper}]"
                    trace.note(laws.MERGE_MIXED_RADIX, digits, after)
                return Change(values, {high: None, low: both})
    return None

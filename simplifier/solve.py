"""Elimination of range variables: solve for one, rescale one, or merge two.

A change is a bijection between the points of the domain before and after it, so it keeps
multiplicities.  Laws (`simplifier.laws`), for a range variable s:

* *solve for a range variable*: ``c·s + e in [a, b]`` with ``b − a < c`` allows at most one value,
  ``s = (b − e) floordiv c``, within the bounds of s;
* *rescale a strided range*: if ``s ≡ r (mod m)``, s is ``m·t + r``;
* *shift a range*: a window that reaches all of ``s + e in [a, b]`` has that sum as its variable;
* *merge a mixed-radix pair*: s and t that occur only as ``s + n·t``, where s has n values, are one
  variable.

`project` eliminates a variable from a constraint where multiplicities do not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from math import gcd
from typing import NamedTuple

from simplifier import laws, trace
from simplifier.atoms import Variable, inside_atoms
from simplifier.constraints import Constraint
from simplifier.divmod import floor_div
from simplifier.interval import scale
from simplifier.linear import Expr, add_multiple, constant
from simplifier.substitute import Substitution


class Change(NamedTuple):
    """A change of variables.

    Attributes:
        values: expressions that replace variables.
        replacements: the new variable for each of the variables, or `None` if it is eliminated.
        constraints: constraints to add.
    """

    values: dict[Variable, Expr]
    replacements: dict[Variable, Variable | None]
    constraints: tuple[Constraint, ...] = ()


def change(
    kinds: Sequence[Sequence[Variable]], constraints: Sequence[Constraint], exprs: Sequence[Expr]
) -> Change | None:
    """Return the first change of the variables of `kinds` that a law allows, or `None`.

    Args:
        kinds: range variables by kind.  Only variables of the same kind are merged; where several
            variables can be eliminated equally well, one of an earlier kind is.
        constraints: normalised constraints of the domain.
        exprs: all other expressions that may contain one of these variables.
    """
    free = {v: number for number, kind in enumerate(kinds) for v in kind}
    for constraint in constraints:
        change_of_one = _solve_for_range(constraint, free) or _rescale_range(constraint, free)
        if change_of_one:
            return change_of_one
    every = [*exprs, *[c.expr for c in constraints]]
    for constraint in constraints:
        shift = _shift_range(constraint, free, constraints, every)
        if shift:
            return shift
    merges = (_mixed_radix(kind, every) for kind in kinds if len(kind) > 1)
    return next((merge for merge in merges if merge), None)


def project(constraint: Constraint, variable: Variable) -> Constraint | None:
    """Project `variable` out: return ``exists variable: constraint`` as one constraint.

    Return `None` if no law applies.  The projection of residues always holds: ``0 in [0, 0]``.

    Values of ``c·s + e`` for neighbouring s are c apart.  With ``b − a + 1 >= c`` there is an s in
    ``[p, q]`` with ``c·s + e in [a, b]`` if and only if ``e in [a − c·q, b − c·p]``.  Modulo m,
    with c prime to m, m neighbouring s reach every residue.

    >>> d0, s0 = Variable("d0", 0, 99), Variable("s0", 0, 3)
    >>> print(project(Constraint(d0 + s0, 5, 9), s0))
    d0 in [2, 9]
    """
    residues = constraint.residues
    expr = residues.dividend if residues else constraint.expr
    coefficient = expr.parts.get(variable, 0)
    rest = add_multiple(expr, variable.as_expr(), -coefficient) if coefficient else None
    if rest is None or variable in rest.variables():
        return None
    if residues:
        enough = variable.size >= residues.modulus
        if not enough or gcd(coefficient, residues.modulus) != 1:
            return None
        if trace.records:
            trace.record(laws.PROJECT_RESIDUES, _exists(variable, constraint), "true")
        return Constraint(constant(0), 0, 0)
    if abs(coefficient) > constraint.upper - constraint.lower + 1:
        return None
    lower, upper = scale(variable.bounds, coefficient)
    projection = Constraint(rest, constraint.lower - upper, constraint.upper - lower)
    if trace.records:
        trace.record(laws.PROJECT_BOUNDS, _exists(variable, constraint), projection)
    return projection


def _exists(variable: Variable, constraint: Constraint) -> str:
    return f"exists {variable.name} in [{variable.lower}, {variable.upper}]: {constraint}"


def _solve_for_range(constraint: Constraint, candidates: Mapping[Variable, int]) -> Change | None:
    """Law *solve for a range variable*; the smallest coefficient comes first, then the first kind.

    >>> s0, d0 = Variable("s0", 0, 9), Variable("d0", 0, 39)
    >>> _solve_for_range(Constraint(d0 - s0 * 4, 0, 3), {s0: 0}).values
    {Variable('s0', 0, 9): Expr('d0 floordiv 4')}
    """
    width = constraint.upper - constraint.lower
    terms = [(atom, c) for atom, c in constraint.expr.terms if width < abs(c)]
    own = [(v, c) for v, c in terms if isinstance(v, Variable) and v in candidates]
    for variable, coefficient in sorted(own, key=lambda term: (abs(term[1]), candidates[term[0]])):
        rest = add_multiple(constraint.expr, variable.as_expr(), -coefficient)
        if variable in rest.variables():
            continue
        dividend = constraint.upper - rest if coefficient > 0 else rest - constraint.lower
        value = floor_div(dividend, abs(coefficient))
        inside = Constraint(value, *variable.bounds)
        if trace.records:
            trace.record(laws.SOLVE_FOR_VARIABLE, f"{constraint}: {variable.name}", value)
        return Change({variable: value}, {variable: None}, (inside,))
    return None


def _rescale_range(constraint: Constraint, candidates: Mapping[Variable, int]) -> Change | None:
    """Law *rescale a strided range*.

    >>> s0 = Variable("s0", 0, 9)
    >>> _rescale_range(Constraint(s0 % 4, 1, 1), {s0}).replacements
    {Variable('s0', 0, 9): Variable('s0', 0, 2)}
    """
    if constraint.lower != constraint.upper:
        return None
    residues = constraint.residues
    old = residues.dividend.as_variable if residues else None
    if not residues or old is None or old not in candidates:
        return None
    step, first = residues.modulus, residues.lower
    new = Variable(old.name, -((first - old.lower) // step), (old.upper - first) // step)
    if trace.records:
        after = f"{new * step + first} with {new.name} in [{new.lower}, {new.upper}]"
        trace.record(laws.RESCALE_VARIABLE, f"{constraint}: {old.name}", after)
    return Change({old: new * step + first}, {old: new})


def _shift_range(
    constraint: Constraint,
    candidates: Iterable[Variable],
    constraints: Sequence[Constraint],
    exprs: Iterable[Expr],
) -> Change | None:
    """Law *shift a range*.

    >>> s0, d0 = Variable("s0", 0, 9), Variable("d0", 0, 4)
    >>> padded = Constraint(d0 + s0, 4, 9)
    >>> _shift_range(padded, [s0], [padded], [d0 + s0 - 4, padded.expr]).values
    {Variable('s0', 0, 9): Expr('-d0 + s0 + 4')}
    """
    parts = constraint.expr.parts
    if len(parts) < 2:
        return None
    for old in candidates:
        sign = parts.get(old, 0)
        if sign not in (1, -1):
            continue
        new = Variable(old.name, 0, constraint.upper - constraint.lower)
        value = sign * (new + constraint.lower - constraint.expr) + old
        swap = Substitution({old: value})
        if old in value.variables() or not _is_inside(value, old, swap, new, constraints):
            continue
        if _has_fewer_variables(old, swap, exprs):
            if trace.records:
                trace.record(laws.SHIFT_RANGE, f"{constraint}: {old.name}", value)
            return Change({old: value}, {old: new})
    return None


def _is_inside(
    value: Expr,
    old: Variable,
    swap: Substitution,
    new: Variable,
    constraints: Iterable[Constraint],
) -> bool:
    """Return True if the value for `old` is within its bounds, as constraints on `new` imply.

    >>> s0, t, r = Variable("s0", 0, 8), Variable("s0", 0, 9), Variable("rt0", 0, 9)
    >>> d0 = Variable("d0", 0, 4)
    >>> value = t - d0 + 4
    >>> swap, below = Substitution({s0: value}), Constraint(r - d0 - s0, 1, 9)
    >>> [_is_inside(value, s0, swap, t, constraints) for constraints in ([], [below])]
    [False, True]
    """
    sign = value.parts[new]
    least, most = (value - sign * new).bounds
    if least < old.lower - new.upper or most > old.upper + new.upper:
        return False
    lower, upper = new.bounds
    for constraint in constraints:
        expr = swap(constraint.expr)
        factor = expr.parts.get(new, 0)
        if factor in (1, -1):
            rest = (expr - factor * new).bounds
            ends = constraint.lower - rest[1], constraint.upper - rest[0]
            lower, upper = (
                max(lower, min(factor * e for e in ends)),
                min(upper, max(factor * e for e in ends)),
            )
    reached = sign * lower, sign * upper
    return old.lower <= least + min(reached) and most + max(reached) <= old.upper


def _has_fewer_variables(old: Variable, swap: Substitution, exprs: Iterable[Expr]) -> bool:
    """Return True if a value for `old` leaves no expression more variables, and one fewer."""
    changed = [
        (expr.variables(), swap(expr).variables()) for expr in exprs if old in expr.variables()
    ]
    pairs = [(len(before), len(after)) for before, after in changed]
    return all(x >= y for x, y in pairs) and any(x > y for x, y in pairs)


def _top_factors(variables: Sequence[Variable], expr: Expr) -> dict[Variable, int]:
    """The factors of the variables that occur in a sum itself, and in none of its atoms."""
    inner = inside_atoms(expr)
    return {v: expr.parts[v] for v in variables if v in expr.parts and v not in inner}


def _remains(
    high: Variable, low: Variable, ratio: int, factors: Iterable[dict[Variable, int]]
) -> bool:
    """True if `high` certainly occurs in a sum after ``low := u - ratio·high``."""
    pairs = [(top[high], top[low]) for top in factors if high in top and low in top]
    return any(of_high != ratio * of_low for of_high, of_low in pairs)


def _mixed_radix(candidates: Sequence[Variable], exprs: Iterable[Expr]) -> Change | None:
    """Law *merge a mixed-radix pair*, for the first pair that it allows.

    Floors may have rewritten the sum ``u = s + n·t``.  So s is replaced by ``u - n·t``: if no
    expression contains t then, s and t occurred only as that sum.

    >>> s0, s1 = Variable("s0", 0, 4), Variable("s1", 0, 2)
    >>> _mixed_radix((s0, s1), [s0 * 3 + s1, (s0 * 3 + s1) // 2]).replacements
    {Variable('s0', 0, 4): None, Variable('s1', 0, 2): Variable('s1', 0, 14)}
    """
    every = list(exprs)
    where = {v: {e for e in every if v in e.variables()} for v in candidates}
    factors = [_top_factors(candidates, expr) for expr in every]
    for high, low in permutations(candidates, 2):
        if not where[high] or where[high] != where[low]:
            continue
        count = low.size
        both = Variable(low.name, 0, count * high.size - 1)
        for end, sign in (high.lower, 1), (high.upper, -1):
            if _remains(high, low, sign * count, factors):
                continue
            swap = Substitution({low: both + low.lower - (high - end) * (sign * count)})
            if not any(high in swap(expr).variables() for expr in where[high]):
                values = {high: constant(end), low: both + low.lower}
                if trace.records:
                    digits = low - low.lower + (high - end) * (sign * count)
                    after = f"{both.name} in [{both.lower}, {both.upper}]"
                    trace.record(laws.MERGE_MIXED_RADIX, digits, after)
                return Change(values, {high: None, low: both})
    return None

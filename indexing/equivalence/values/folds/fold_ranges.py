"""Folds over range variables, and their guards: conditions on the ranges and the dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from indexing.equivalence.values.folds.neutral_elements import is_minus_zero, is_neutral
from indexing.equivalence.values.folds.split_values import split_value
from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.terms.closed_terms import OpenBody, unused_name
from indexing.equivalence.values.terms.terms import Formula, FormulaTable
from simplifier.atoms import Variable, variables_in
from simplifier.constraints import FALSE, Constraint, normalise
from simplifier.interval import contains
from simplifier.linear import Expr, as_expr
from simplifier.residues import residues_of


@dataclass(frozen=True, slots=True)
class Fold:
    """``result = combiner(result, values)`` over the ranges, where the guards hold.

    Attributes:
        combiner: the opcode if it is one of `COMBINERS`, else "".
        functions: the results of any other combiner, over symbols.
        leaf: the number of the result.
        element_type: its type.
        inits: the initial values.
        values: the formulas of the values, over dimensions and `ranges`.
    """

    combiner: str
    functions: tuple[Formula, ...]
    leaf: int
    element_type: str
    inits: tuple[Formula, ...]
    values: tuple[Formula, ...]
    ranges: tuple[Variable, ...]
    guards: tuple[Constraint, ...] = ()


def single_range(guard: Constraint, ranges: Sequence[Variable]) -> Variable | None:
    """Return the range variable that a guard bounds, if it is the only one in the guard."""
    if len(guard.expr.parts) != 1:
        return None
    ((atom, factor),) = guard.expr.parts.items()
    return atom if isinstance(atom, Variable) and atom in ranges and abs(factor) == 1 else None


def guard_choice(algebra: FormulaAlgebra, fold: Fold) -> Fold:
    """Return the fold without the neutral pieces at both ends of a choice.

    The sum of an initial value -0 and a zero of a piece is 0, so -0 keeps such pieces.
    """
    (value,), (init,) = fold.values, fold.inits
    value = split_value(algebra, fold.combiner, value)
    if value.kind != "choose":
        return fold
    kept = [k for k, t in enumerate(value.arguments) if not is_neutral(fold.combiner, t)]
    if not kept or kept[-1] - kept[0] == len(value.arguments) - 1 or is_minus_zero(init):
        return fold
    (expr,), first, last = value.index, kept[0], kept[-1]
    lower, upper = expr.bounds
    bounds = [lower - 1, *value.head[:-1], upper]
    guard = Constraint(expr, bounds[first] + 1, bounds[last + 1])
    pieces = zip(value.head[first : last + 1], value.arguments[first : last + 1], strict=True)
    rest = algebra.choose(expr, list(pieces))
    return replace(fold, values=(rest,), guards=(*fold.guards, guard))


def tighten_ranges(algebra: FormulaAlgebra, fold: Fold) -> Fold:
    """Return the fold with the bounds of guards on one range variable in its bounds."""
    for whole in fold.guards:
        guard = _without_small_terms(whole, fold.ranges)
        v = single_range(guard, fold.ranges)
        if v is None:
            continue
        low, high = guard.lower - guard.expr.constant, guard.upper - guard.expr.constant
        if guard.expr.parts[v] < 0:
            low, high = -high, -low
        low, high = max(low, v.lower), min(high, v.upper)
        if low > high:
            return replace(fold, guards=(FALSE,))
        name = unused_name(f"{v.name}_t", (*fold.ranges, *fold.values[0].free))
        new = Variable(name, 0, high - low)
        value = new.as_expr() + low if high > low else as_expr(low)
        return _replace_range(algebra, fold, whole, v, new, value)
    return fold


def _without_small_terms(guard: Constraint, ranges: Sequence[Variable]) -> Constraint:
    """Return a bound on a range variable that is equivalent to a guard, if there is one.

    ``f * v + rest <= upper`` bounds v alike for the least and the greatest value of the rest.
    """
    for v in ranges:
        factor = guard.expr.parts.get(v, 0)
        rest = guard.expr - v.as_expr() * factor
        if factor < 2 or not rest.parts:
            continue
        least, most = rest.bounds
        low, high = -((least - guard.lower) // factor), (guard.upper - most) // factor
        if low == -((most - guard.lower) // factor) and high == (guard.upper - least) // factor:
            return Constraint(v.as_expr(), low, high)
    return guard


def _replace_range(
    algebra: FormulaAlgebra, fold: Fold, guard: Constraint, v: Variable, new: Variable, value: Expr
) -> Fold:
    """Return the fold over a new range variable, with whose values a guard holds always.

    Args:
        value: the value of the old range variable `v`; a constant if there is only one.
    """
    swap = algebra.rewriting({v: value})
    ranges = [new if each is v else each for each in fold.ranges]
    return replace(
        fold,
        values=tuple(map(swap, fold.values)),
        ranges=tuple([each for each in ranges if each.upper > each.lower]),
        guards=tuple([c.with_expr(swap.expr(c.expr)) for c in fold.guards if c is not guard]),
    )


def solve_range(algebra: FormulaAlgebra, fold: Fold) -> Fold:
    """Return the fold without a range variable that a guard determines.

    ``f * v + rest in [lower, upper]`` holds for at most one v if ``upper - lower < |f|``: for
    positive f, ``v = (upper - rest) floordiv f``.  ``(f * v + rest) mod m in [lower, upper]`` holds
    for at most one number modulo ``m / |f|``, if f divides m.
    """
    for guard in fold.guards:
        for v in fold.ranges:
            value = solved_value(algebra.table, guard, v) or solved_residue(algebra.table, guard, v)
            if value is None:
                continue
            swap = algebra.rewriting({v: value})
            others = [c.with_expr(swap.expr(c.expr)) for c in fold.guards]
            return replace(
                fold,
                values=tuple(map(swap, fold.values)),
                ranges=tuple([each for each in fold.ranges if each is not v]),
                guards=(*others, Constraint(value, *v.bounds)),
            )
    return fold


def shift_ranges(algebra: FormulaAlgebra, fold: Fold) -> Fold:
    """Return the fold over ``w = v + rest`` for a guard on w that the bounds of v never cut.

    A window that covers the whole array, wherever it starts, is a reduction of the array.
    """
    for guard in fold.guards:
        for v in fold.ranges:
            factor = guard.expr.parts.get(v, 0)
            rest = guard.expr - v.as_expr() * factor
            if abs(factor) != 1 or not rest.parts or depends_on(algebra.table, rest, v):
                continue
            name = unused_name(f"{v.name}_w", (*fold.ranges, *fold.values[0].free))
            new = Variable(name, 0, guard.upper - guard.lower)
            value = ((new.as_expr() if new.upper else as_expr(0)) + guard.lower - rest) * factor
            if contains(v.bounds, value.bounds):
                return _replace_range(algebra, fold, guard, v, new, value)
    return fold


def stride_ranges(algebra: FormulaAlgebra, fold: Fold) -> Fold:
    """Return the fold over w with ``v + rest = m * w + r``, for a sum whose residue modulo m is r.

    The range variable v has no other place in the guard.
    """
    for guard in fold.guards:
        residues = residues_of(guard.expr, guard.bounds)
        if residues is None or not residues.is_congruence:
            continue
        modulus, residue = residues.modulus, residues.lower
        for v in sorted(fold.ranges, key=lambda v: -v.size):
            factor = residues.dividend.parts.get(v, 0)
            rest = residues.dividend - v.as_expr() * factor
            if abs(factor) != 1 or depends_on(algebra.table, rest, v):
                continue
            low, high = residues.dividend.bounds
            first, last = -((residue - low) // modulus), (high - residue) // modulus
            if first > last:
                return replace(fold, guards=(FALSE,))
            name = unused_name(f"{v.name}_r", (*fold.ranges, *fold.values[0].free))
            new = Variable(name, 0, last - first)
            step = (new.as_expr() if last > first else as_expr(0)) + first
            value = (step * modulus + residue - rest) * factor
            within = Constraint(value, *v.bounds)
            strided = _replace_range(algebra, fold, guard, v, new, value)
            return replace(strided, guards=(*strided.guards, within))
    return fold


def solved_value(table: FormulaTable, guard: Constraint, v: Variable) -> Expr | None:
    """Return the only value of a range variable that a guard allows, if there is only one."""
    factor = guard.expr.parts.get(v, 0)
    rest = guard.expr - v.as_expr() * factor
    if guard.upper - guard.lower >= abs(factor) or depends_on(table, rest, v):
        return None
    last = guard.upper - rest if factor > 0 else rest - guard.lower
    return last // abs(factor)


def solved_residue(table: FormulaTable, guard: Constraint, v: Variable) -> Expr | None:
    """Return the only value of a range variable with residues that a guard allows."""
    residues = residues_of(guard.expr, guard.bounds)
    if residues is None:
        return None
    factor, modulus = residues.dividend.parts.get(v, 0), residues.modulus
    rest = residues.dividend - v.as_expr() * factor
    width = residues.upper - residues.lower
    if not 0 <= width < abs(factor) or modulus % factor or depends_on(table, rest, v):
        return None
    period = modulus // abs(factor)
    if v.upper - v.lower >= period:
        return None
    last = residues.upper - rest if factor > 0 else rest - residues.lower
    return (last // abs(factor) - v.lower) % period + v.lower


def depends_on(table: FormulaTable, expr: Expr, v: Variable) -> bool:
    """Return True if an expression mentions a variable, in its runtime variables or directly."""
    variables = variables_in([expr])
    runtime = [table.runtime[each] for each in variables if each in table.runtime]
    return v in variables or any(v in term.free for term in runtime)


def order_guards(algebra: FormulaAlgebra, fold: Fold) -> tuple[Constraint, ...]:
    """Return the guards of a fold in an order that does not depend on names."""
    if len(fold.guards) < 2:
        return fold.guards
    table = algebra.table
    body = OpenBody(table, (*fold.values, *fold.inits, *fold.functions), (), fold.ranges)
    places = {v: place for place, v in enumerate(body.variables)}

    def key(guard: Constraint) -> tuple[object, ...]:
        expr = guard.expr - guard.expr.constant
        variables = [places.get(v, len(places)) for v in table.first_variables(expr)]
        return table.expr_key(expr), variables, guard.bounds

    return tuple(sorted(fold.guards, key=key))


def normal_guards(guards: Iterable[Constraint]) -> tuple[Constraint, ...]:
    """Return guards in normal form, without those that always hold and without repetitions."""
    normal = [normalise(guard) for guard in guards]
    return tuple(dict.fromkeys([guard for guard in normal if guard is not None]))

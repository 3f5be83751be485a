"""Folds: unordered reductions of a formula over range variables, closed in a canonical form.

HLO does not define the order of a reduction, and its initial value must be neutral or is combined
with the values in any order.  A fold over the same multiset of values is therefore the same fold.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from indexing.equivalence.values.folds.common_factors import split_common_factor
from indexing.equivalence.values.folds.fold_ranges import (
    Fold,
    depends_on,
    guard_choice,
    normal_guards,
    order_guards,
    shift_ranges,
    single_range,
    solve_range,
    stride_ranges,
    tighten_ranges,
)
from indexing.equivalence.values.folds.known_combiners import (
    EXTREMA,
    known_combiner,
    narrow_fold,
)
from indexing.equivalence.values.folds.neutral_elements import (
    is_neutral,
    neutral_value,
)
from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.laws.exact import (
    NARROW,
    float_value,
    is_call,
    is_negative_choice,
)
from indexing.equivalence.values.laws.integers import has_ring, sum_of
from indexing.equivalence.values.laws.roundings import float_before_rounding, narrow_type
from indexing.equivalence.values.terms.closed_terms import close_body, unused_name
from indexing.equivalence.values.terms.functions import is_float, is_integral
from indexing.equivalence.values.terms.terms import Formula
from indexing.ops.combiners import COMBINERS
from simplifier.atoms import Variable, point_count, variables_in
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr

IDEMPOTENT: Final = frozenset([each.opcode for each in COMBINERS.values() if each.is_idempotent])

MAX_EVALUATED: Final = 256
"""Limit on the constants of a fold that is evaluated."""

REORDER: Final = "sum(sum(x)) = sum(x)"
SCALED: Final = "sum(c * x) = c * sum(x)"
REPEATED: Final = "sum of n equal values = n * value"
ROUNDED_SUM: Final = "sum(round(x)) = round(sum(x))"


def fold_formula(algebra: FormulaAlgebra, fold: Fold) -> Formula:
    """Return the formula of a fold."""
    guards = normal_guards(fold.guards)
    if any(c.is_false for c in guards):
        return fold.inits[fold.leaf]
    fold = known_combiner(algebra, replace(fold, guards=guards))
    narrow = narrow_fold(algebra, fold)
    if narrow is not None:
        rounded = fold_formula(algebra, narrow)
        return algebra.apply("convert", (), fold.element_type, [rounded])
    if not fold.combiner:
        simpler = solve_range(algebra, fold)
        return _close_fold(algebra, fold) if simpler is fold else fold_formula(algebra, simpler)
    if not is_neutral(fold.combiner, fold.inits[0]) and _reorders(algebra, fold):
        return _without_init(algebra, fold)
    for simplify in (
        guard_choice,
        tighten_ranges,
        shift_ranges,
        solve_range,
        _merge_folds,
        _drop_unused,
    ):
        simpler = simplify(algebra, fold)
        if simpler is not fold:
            return fold_formula(algebra, simpler)
    return _evaluate_constants(algebra, fold) or _at_most_one(algebra, fold) or _rest(algebra, fold)


def _at_most_one(algebra: FormulaAlgebra, fold: Fold) -> Formula | None:
    """Return the fold of one value, or of none if the guards do not hold."""
    if fold.ranges or (fold.guards and not is_neutral(fold.combiner, fold.inits[0])):
        return None
    return algebra.where(fold.guards, _single(algebra, fold), fold.inits[0])


def _rest(algebra: FormulaAlgebra, fold: Fold) -> Formula:
    simpler = _simpler_sum(algebra, fold) or _rounded_extremum(algebra, fold)
    return simpler or _close_fold(algebra, fold)


def _rounded_extremum(algebra: FormulaAlgebra, fold: Fold) -> Formula | None:
    """``round(fold(x))`` for an extremum of values ``round(x)``, which is computed in f32."""
    (value,) = fold.values
    if fold.combiner not in EXTREMA:
        return None
    if fold.element_type in NARROW:
        wide = algebra.apply("convert", (), "f32", [value])
        init = algebra.apply("convert", (), "f32", [fold.inits[0]])
        rest = fold_formula(
            algebra, replace(fold, element_type="f32", values=(wide,), inits=(init,))
        )
        return algebra.apply("convert", (), fold.element_type, [rest])
    kind = narrow_type(value)
    if kind is None:
        return None
    rounded = algebra.apply("convert", (), kind, [value])
    plain = float_before_rounding(rounded, fold.element_type) or value
    if plain is value:
        rest = _close_fold(algebra, fold)
    else:
        rest = fold_formula(algebra, replace(fold, values=(plain,)))
    narrow = algebra.apply("convert", (), kind, [rest])
    return algebra.apply("convert", (), fold.element_type, [narrow])


def _evaluate_constants(algebra: FormulaAlgebra, fold: Fold) -> Formula | None:
    """Return the fold of few constants, such as those of a table."""
    (value,), (init,) = fold.values, fold.inits
    variables = {v for c in fold.guards for v in variables_in([c.expr])} | value.free
    if not variables <= set(fold.ranges) or value.kind == "constant" or init.kind != "constant":
        return None
    if point_count(fold.ranges) > MAX_EVALUATED or not _reorders(algebra, fold):
        return None
    result = init
    bounds = [range(v.lower, v.upper + 1) for v in fold.ranges]
    for point in itertools.product(*bounds):
        at = dict(zip(fold.ranges, point, strict=True))
        if all(c.lower <= c.expr.value(at) <= c.upper for c in fold.guards):
            values = {v: as_expr(number) for v, number in at.items()}
            term = algebra.rewriting(values)(value)
            result = algebra.apply(fold.combiner, (), fold.element_type, [result, term])
            if result.kind != "constant":
                return None
    _note(algebra, fold, REORDER)
    return result


def _close_fold(algebra: FormulaAlgebra, fold: Fold) -> Formula:
    """Return a fold as an element of a closed array."""
    fold = replace(fold, guards=order_guards(algebra, fold))
    closure = close_body(
        algebra.table,
        algebra.rewriting,
        [*fold.values, *fold.inits, *fold.functions],
        [c.expr for c in fold.guards],
        fold.ranges,
        keeps_ranges=not fold.combiner,
    )
    count = len(fold.values)
    guards = normal_guards(
        [c.with_expr(expr) for c, expr in zip(fold.guards, closure.exprs, strict=True)]
    )
    if fold.combiner:
        inner = replace(
            fold, values=closure.terms[:count], inits=closure.terms[count:],
            ranges=closure.ranges, guards=guards,
        )  # fmt: skip
        simpler = stride_ranges(algebra, inner)
        if simpler is not inner or any(c.is_false or single_range(c, inner.ranges) for c in guards):
            values = dict(zip(closure.dims, closure.index, strict=True))
            return algebra.rewriting(values)(fold_formula(algebra, simpler))
    head = (
        f"reduce {fold.combiner}".strip(),
        fold.leaf,
        count,
        tuple([v.bounds for v in closure.ranges]),
        tuple([c.bounds for c in guards]),
    )
    sizes = tuple([v.upper + 1 for v in closure.dims])
    exprs = [c.expr for c in guards]
    array = algebra.table.array("fold", head, fold.element_type, sizes, closure.terms, exprs)
    return algebra.table.read(array, closure.index)


def open_fold(array: Formula, arguments: Sequence[Formula], guards: Sequence[Expr]) -> Fold:
    """Return the fold of a closed array, with these formulas and guards in its place."""
    name, leaf, count, range_bounds, guard_bounds = array.head
    combiner = name.removeprefix("reduce").strip()
    inits = 2 * count if not combiner else count + 1
    return Fold(
        combiner,
        tuple(arguments[inits:]),
        leaf,
        array.type,
        tuple(arguments[count:inits]),
        tuple(arguments[:count]),
        tuple([Variable(f"s{k}", *bounds) for k, bounds in enumerate(range_bounds)]),
        tuple([Constraint(e, *b) for e, b in zip(guards, guard_bounds, strict=True)]),
    )


def _reorders(algebra: FormulaAlgebra, fold: Fold) -> bool:
    """Return True if the values of a fold may be combined in any grouping."""
    kind = fold.element_type
    is_exact = fold.combiner in (*IDEMPOTENT, "xor") or is_integral(kind) or kind == "pred"
    return is_exact or (is_float(kind) and algebra.reassociates)


def _note(algebra: FormulaAlgebra, fold: Fold, law: str) -> None:
    if fold.combiner not in IDEMPOTENT and is_float(fold.element_type):
        algebra.note([law])


def _without_init(algebra: FormulaAlgebra, fold: Fold) -> Formula:
    """``init + fold`` with a neutral initial value."""
    neutral = neutral_value(algebra, fold.combiner, fold.element_type)
    if neutral is None:
        return _close_fold(algebra, fold)
    _note(algebra, fold, REORDER)
    (init,) = fold.inits
    rest = fold_formula(algebra, replace(fold, inits=(neutral,)))
    return algebra.apply(fold.combiner, (), fold.element_type, [init, rest])


def _merge_folds(algebra: FormulaAlgebra, fold: Fold) -> Fold:
    """Return the fold of a fold as one fold."""
    (value,) = fold.values
    inner = value.array
    if inner is None or inner.kind != "fold" or inner.head[0] != f"reduce {fold.combiner}":
        return fold
    if inner.type != fold.element_type or not _reorders(algebra, fold):
        return fold
    part = instantiate_fold(algebra, value, f"s_{len(fold.ranges)}", fold.ranges)
    if not is_neutral(fold.combiner, part.inits[0]):
        return fold
    _note(algebra, fold, REORDER)
    return replace(
        fold,
        values=part.values,
        ranges=(*fold.ranges, *part.ranges),
        guards=(*fold.guards, *part.guards),
    )


def instantiate_fold(
    algebra: FormulaAlgebra, read: Formula, name: str, others: Sequence[Variable] = ()
) -> Fold:
    """Return the fold of an element of a closed fold, with range variables ``name_0, …``.

    They are none of the free variables of the element, and none of the `others`.
    """
    array = read.array
    assert array is not None
    fold = open_fold(array, array.arguments, array.index)
    dims = [Variable(f"d{k}", 0, size - 1) for k, size in enumerate(array.dims)]
    values = dict(zip(dims, read.index, strict=True))
    used = [*read.free, *others]
    names = [unused_name(f"{name}_{k}", used) for k in range(len(fold.ranges))]
    ranges = tuple([Variable(n, *v.bounds) for n, v in zip(names, fold.ranges, strict=True)])
    values |= {v: new.as_expr() for v, new in zip(fold.ranges, ranges, strict=True)}
    swap = algebra.rewriting(values)
    guards = tuple([c.with_expr(swap.expr(c.expr)) for c in fold.guards])
    return replace(fold, values=tuple(map(swap, fold.values)), ranges=ranges, guards=guards)


def _unused_ranges(algebra: FormulaAlgebra, fold: Fold) -> list[Variable]:
    exprs = [c.expr for c in fold.guards]
    return [
        v
        for v in fold.ranges
        if v not in fold.values[0].free
        and not any(depends_on(algebra.table, expr, v) for expr in exprs)
    ]


def _drop_unused(algebra: FormulaAlgebra, fold: Fold) -> Fold:
    """Return the fold without ranges on which neither value nor guards depend, if it is equal."""
    unused = _unused_ranges(algebra, fold)
    if not unused:
        return fold
    kept = tuple([v for v in fold.ranges if v not in unused])
    if fold.combiner in IDEMPOTENT:
        return replace(fold, ranges=kept)
    if fold.combiner == "add" and has_ring(fold.element_type):
        total = sum_of(algebra, fold.element_type, [(point_count(unused), fold.values[0])])
        return replace(fold, ranges=kept, values=(total,))
    return fold


def _scale_fold(algebra: FormulaAlgebra, fold: Fold) -> Formula | None:
    """``c * fold(x)`` for a sum of ``c * x``."""
    (value,) = fold.values
    if fold.combiner != "add" or not algebra.reassociates or not is_float(fold.element_type):
        return None
    if float_value(value) not in (None, 0, 1) and math.isfinite(value.value):
        one = algebra.table.constant(1, value.type)
        return _multiply_fold(algebra, fold, [value], one)
    if is_negative_choice(value):
        minus_one = algebra.table.constant(-1, value.type)
        rest = algebra.apply("negate", (), value.type, [value])
        return _multiply_fold(algebra, fold, [minus_one], rest)
    if is_call(value, "select") or value.kind == "choose":
        split = split_common_factor(algebra, value)
        if split is not None:
            return _multiply_fold(algebra, fold, [split[0]], split[1])
        return _mask_fold(algebra, fold) if value.kind != "choose" else None
    if not is_call(value, "negate", "multiply"):
        return None
    return _factor_fold(algebra, fold)


def _factor_fold(algebra: FormulaAlgebra, fold: Fold) -> Formula | None:
    """``c * fold(x)`` for a sum of ``c * x`` or of ``-x``."""
    (value,) = fold.values
    factors = [t for t in value.arguments if t.kind == "constant"]
    others = [t for t in value.arguments if t.kind != "constant"]
    if value.head[0] == "negate":
        factors = [algebra.table.constant(-1, fold.element_type)]
    if value.head[0] == "multiply":
        for k, term in enumerate(others):
            split = split_common_factor(algebra, term)
            if split is not None:
                factors.append(split[0])
                others[k] = split[1]
    if not factors or not all(math.isfinite(t.value) for t in factors):
        return None
    inner = others[0]
    if len(others) > 1:
        inner = algebra.apply("multiply", (), fold.element_type, others)
    return _multiply_fold(algebra, fold, factors, inner)


def _multiply_fold(
    algebra: FormulaAlgebra, fold: Fold, factors: Sequence[Formula], value: Formula
) -> Formula:
    """Return constants times the fold of a value."""
    algebra.note([SCALED])
    rest = fold_formula(algebra, replace(fold, values=(value,)))
    return algebra.apply("multiply", (), fold.element_type, [*factors, rest])


def _mask_fold(algebra: FormulaAlgebra, fold: Fold) -> Formula | None:
    """``c * fold(select(p, 1, 0))`` for a sum of ``select(p, c, 0)``."""
    predicate, *branches = fold.values[0].arguments
    zeros = [float_value(t) == 0 for t in branches]
    constant = branches[zeros[0]]
    if sorted(zeros) != [False, True] or float_value(constant) in (None, 1):
        return None
    if not math.isfinite(constant.value):
        return None
    one, zero = (algebra.table.constant(number, fold.element_type) for number in (1, 0))
    both = (zero, one) if zeros[0] else (one, zero)
    mask = algebra.apply("select", (), fold.element_type, [predicate, *both])
    return _multiply_fold(algebra, fold, [constant], mask)


def _simpler_sum(algebra: FormulaAlgebra, fold: Fold) -> Formula | None:
    """Return a sum by a law of sums, if one applies."""
    return _count_repeats(algebra, fold) or _scale_fold(algebra, fold) or _widen_fold(algebra, fold)


def _widen_fold(algebra: FormulaAlgebra, fold: Fold) -> Formula | None:
    """``round(fold(x))`` for a sum of values that are rounded to a narrow type."""
    (value,) = fold.values
    if fold.combiner != "add" or not algebra.reassociates or fold.element_type not in NARROW:
        return None
    if not is_call(value, "convert") or value.arguments[0].type != "f32":
        return None
    algebra.note([ROUNDED_SUM])
    zero = algebra.table.constant(0, "f32")
    wide = replace(fold, element_type="f32", inits=(zero,), values=value.arguments)
    return algebra.apply("convert", (), fold.element_type, [fold_formula(algebra, wide)])


def _count_repeats(algebra: FormulaAlgebra, fold: Fold) -> Formula | None:
    """``n * fold`` for a sum of floats that repeats each value n times."""
    unused = _unused_ranges(algebra, fold)
    if not unused or fold.combiner != "add" or not algebra.reassociates:
        return None
    if not is_float(fold.element_type):
        return None
    algebra.note([REPEATED])
    kept = tuple([v for v in fold.ranges if v not in unused])
    rest = fold_formula(algebra, replace(fold, ranges=kept))
    count = algebra.table.constant(point_count(unused), fold.element_type)
    return algebra.apply("multiply", (), fold.element_type, [count, rest])


def _single(algebra: FormulaAlgebra, fold: Fold) -> Formula:
    """Return the fold of one value."""
    (value,), (init,) = fold.values, fold.inits
    if is_neutral(fold.combiner, init):
        return value
    return algebra.apply(fold.combiner, (), fold.element_type, [init, value])

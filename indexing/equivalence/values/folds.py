"""Folds: unordered reductions of a formula over range variables, closed in a canonical form.

HLO does not define the order of a reduction, and its initial value must be neutral or is combined
with the values in any order.  A fold over the same multiset of values is therefore the same fold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from hlo.shapes.shape import dtype
from indexing.equivalence.values.algebra import FormulaAlgebra
from indexing.equivalence.values.closures import closed
from indexing.equivalence.values.functions import is_float, is_integral
from indexing.equivalence.values.integer_laws import has_ring, sum_of
from indexing.equivalence.values.terms import Formula, FormulaTable
from indexing.ops.integer_rules import range_of
from simplifier.atoms import Variable, mentioned
from simplifier.constraints import FALSE, Constraint
from simplifier.linear import Expr, as_expr

KNOWN: Final = frozenset(["add", "multiply", "maximum", "minimum", "and", "or", "xor"])
"""Combiners that are commutative and associative; of floats up to rounding, as HLO accepts."""

IDEMPOTENT: Final = frozenset(["maximum", "minimum", "and", "or"])

REORDER: Final = "sum(sum(x)) = sum(x)"
SCALED: Final = "sum(c * x) = c * sum(x)"
REPEATED: Final = "sum of n equal values = n * value"


@dataclass(frozen=True, slots=True)
class Fold:
    """``result = combiner(result, values)`` over the ranges, where the guards hold.

    Attributes:
        combiner: the opcode if it is one of `KNOWN`, else "".
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


def folded(algebra: FormulaAlgebra, fold: Fold) -> Formula:
    """Return the formula of a fold."""
    guards = [c for c in fold.guards if not c.is_true]
    if any(c.is_false for c in guards):
        return fold.inits[fold.leaf]
    fold = replace(fold, guards=tuple(dict.fromkeys(guards)))
    if not fold.combiner:
        simpler = _solved(algebra, fold)
        return _closed(algebra, fold) if simpler is fold else folded(algebra, simpler)
    if not is_neutral(fold.combiner, fold.inits[0]) and _reorders(algebra, fold):
        return _without_init(algebra, fold)
    for simplify in (_tightened, _solved, _merged, _without_unused):
        simpler = simplify(algebra, fold)
        if simpler is not fold:
            return folded(algebra, simpler)
    if not fold.ranges and not fold.guards:
        return _single(algebra, fold)
    return _counted(algebra, fold) or _scaled(algebra, fold) or _closed(algebra, fold)


def _closed(algebra: FormulaAlgebra, fold: Fold) -> Formula:
    """Return a fold as an element of a closed array."""
    closure = closed(
        algebra.table,
        algebra.rewriting,
        [*fold.values, *fold.inits, *fold.functions],
        [c.expr for c in fold.guards],
        fold.ranges,
        keeps_ranges=not fold.combiner,
    )
    guard_bounds = tuple([c.bounds for c in fold.guards])
    count = len(fold.values)
    guards = _normal_guards(closure.exprs, guard_bounds)
    if fold.combiner and any(_single_range(c, closure.ranges) for c in guards):
        inner = replace(
            fold, values=closure.terms[:count], inits=closure.terms[count:],
            ranges=closure.ranges, guards=guards,
        )  # fmt: skip
        values = dict(zip(closure.dims, closure.index, strict=True))
        return algebra.rewriting(values)(folded(algebra, inner))
    head = (
        f"fold {fold.combiner}".strip(),
        fold.leaf,
        count,
        tuple([v.bounds for v in closure.ranges]),
        tuple([c.bounds for c in guards]),
    )
    sizes = tuple([v.upper + 1 for v in closure.dims])
    exprs = [c.expr for c in guards]
    array = algebra.table.array("fold", head, fold.element_type, sizes, closure.terms, exprs)
    return algebra.table.read(array, closure.index)


def opened(array: Formula, arguments: Sequence[Formula], guards: Sequence[Expr]) -> Fold:
    """Return the fold of a closed array, with these formulas and guards in its place."""
    name, leaf, count, range_bounds, guard_bounds = array.head
    combiner = name.removeprefix("fold").strip()
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


def _normal_guards(
    exprs: Sequence[Expr], bounds: Sequence[tuple[int, int]]
) -> tuple[Constraint, ...]:
    """Return guards without constants in their expressions, redundant bounds clipped."""
    guards = []
    for expr, (lower, upper) in zip(exprs, bounds, strict=True):
        normal = expr - expr.constant
        smallest, largest = normal.bounds
        lower, upper = lower - expr.constant, upper - expr.constant
        guards.append(Constraint(normal, max(lower, smallest), min(upper, largest)))
    return tuple(guards)


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
        return _closed(algebra, fold)
    _note(algebra, fold, REORDER)
    (init,) = fold.inits
    rest = folded(algebra, replace(fold, inits=(neutral,)))
    return algebra.apply(fold.combiner, (), fold.element_type, [init, rest])


def _single_range(guard: Constraint, ranges: Sequence[Variable]) -> Variable | None:
    """Return the range variable that a guard bounds, if it is the only one in the guard."""
    if len(guard.expr.parts) != 1:
        return None
    ((atom, factor),) = guard.expr.parts.items()
    return atom if isinstance(atom, Variable) and atom in ranges and abs(factor) == 1 else None


def _tightened(algebra: FormulaAlgebra, fold: Fold) -> Fold:
    """Return the fold with the bounds of guards on one range variable in its bounds."""
    for guard in fold.guards:
        v = _single_range(guard, fold.ranges)
        if v is None:
            continue
        low, high = guard.lower - guard.expr.constant, guard.upper - guard.expr.constant
        if guard.expr.parts[v] < 0:
            low, high = -high, -low
        low, high = max(low, v.lower), min(high, v.upper)
        if low > high:
            return replace(fold, guards=(FALSE,))
        name = f"{v.name}_t"
        new = Variable(name, 0, high - low)
        value = new.as_expr() + low if high > low else as_expr(low)
        swap = algebra.rewriting({v: value})
        return replace(
            fold,
            values=tuple(map(swap, fold.values)),
            ranges=tuple([each for each in (new if r is v else r for r in fold.ranges)
                          if each.upper > each.lower]),
            guards=tuple([c.with_expr(swap.expr(c.expr)) for c in fold.guards if c is not guard]),
        )  # fmt: skip
    return fold


def _solved(algebra: FormulaAlgebra, fold: Fold) -> Fold:
    """Return the fold without a range variable that a guard ``v = expression`` determines."""
    for guard in fold.guards:
        if guard.lower != guard.upper:
            continue
        for v in fold.ranges:
            factor = guard.expr.parts.get(v, 0)
            rest = guard.expr - v.as_expr() * factor
            if abs(factor) != 1 or depends_on(algebra.table, rest, v):
                continue
            value = (as_expr(guard.lower) - rest) * factor
            swap = algebra.rewriting({v: value})
            others = [c.with_expr(swap.expr(c.expr)) for c in fold.guards if c is not guard]
            return replace(
                fold,
                values=tuple(map(swap, fold.values)),
                ranges=tuple([each for each in fold.ranges if each is not v]),
                guards=(*others, Constraint(value, *v.bounds)),
            )
    return fold


def depends_on(table: FormulaTable, expr: Expr, v: Variable) -> bool:
    """Return True if an expression mentions a variable, in its runtime variables or directly."""
    variables = mentioned([expr])
    runtime = [table.runtime[each] for each in variables if each in table.runtime]
    return v in variables or any(v in term.free for term in runtime)


def _merged(algebra: FormulaAlgebra, fold: Fold) -> Fold:
    """Return the fold of a fold as one fold."""
    (value,) = fold.values
    inner = value.array
    if inner is None or inner.kind != "fold" or inner.head[0] != f"fold {fold.combiner}":
        return fold
    if inner.type != fold.element_type or not _reorders(algebra, fold):
        return fold
    opening = opened(inner, inner.arguments, inner.index)
    if not is_neutral(fold.combiner, opening.inits[0]):
        return fold
    _note(algebra, fold, REORDER)
    dims = [Variable(f"d{k}", 0, size - 1) for k, size in enumerate(inner.dims)]
    values = dict(zip(dims, value.index, strict=True))
    ranges = [Variable(f"s_{len(fold.ranges)}_{k}", v.lower, v.upper)
              for k, v in enumerate(opening.ranges)]  # fmt: skip
    values |= {v: new.as_expr() for v, new in zip(opening.ranges, ranges, strict=True)}
    swap = algebra.rewriting(values)
    guards = [c.with_expr(swap.expr(c.expr)) for c in opening.guards]
    return replace(
        fold,
        values=(swap(opening.values[0]),),
        ranges=(*fold.ranges, *ranges),
        guards=(*fold.guards, *guards),
    )


def _unused(algebra: FormulaAlgebra, fold: Fold) -> list[Variable]:
    exprs = [c.expr for c in fold.guards]
    return [
        v
        for v in fold.ranges
        if v not in fold.values[0].free
        and not any(depends_on(algebra.table, expr, v) for expr in exprs)
    ]


def _without_unused(algebra: FormulaAlgebra, fold: Fold) -> Fold:
    """Return the fold without ranges on which neither value nor guards depend, if it is equal."""
    unused = _unused(algebra, fold)
    if not unused:
        return fold
    kept = tuple([v for v in fold.ranges if v not in unused])
    if fold.combiner in IDEMPOTENT:
        return replace(fold, ranges=kept)
    if fold.combiner == "add" and has_ring(fold.element_type):
        total = sum_of(algebra, fold.element_type, [(_size(unused), fold.values[0])])
        return replace(fold, ranges=kept, values=(total,))
    return fold


def _scaled(algebra: FormulaAlgebra, fold: Fold) -> Formula | None:
    """``c * fold(x)`` for a sum of ``c * x``."""
    (value,) = fold.values
    if fold.combiner != "add" or not algebra.reassociates or not is_float(fold.element_type):
        return None
    if value.kind != "apply" or value.head[0] not in ("negate", "multiply"):
        return None
    factors = [t for t in value.arguments if t.kind == "constant"]
    if value.head[0] == "multiply" and not factors:
        return None
    algebra.note([SCALED])
    others = [t for t in value.arguments if t.kind != "constant"]
    inner = others[0]
    if len(others) > 1:
        inner = algebra.apply("multiply", (), fold.element_type, others)
    rest = folded(algebra, replace(fold, values=(inner,)))
    if value.head[0] == "negate":
        return algebra.apply("negate", (), fold.element_type, [rest])
    return algebra.apply("multiply", (), fold.element_type, [*factors, rest])


def _size(ranges: Sequence[Variable]) -> int:
    return math.prod([v.upper - v.lower + 1 for v in ranges])


def _counted(algebra: FormulaAlgebra, fold: Fold) -> Formula | None:
    """``n * fold`` for a sum of floats that repeats each value n times."""
    unused = _unused(algebra, fold)
    if not unused or fold.combiner != "add" or not algebra.reassociates:
        return None
    if not is_float(fold.element_type):
        return None
    algebra.note([REPEATED])
    kept = tuple([v for v in fold.ranges if v not in unused])
    rest = folded(algebra, replace(fold, ranges=kept))
    count = algebra.table.constant(_size(unused), fold.element_type)
    return algebra.apply("multiply", (), fold.element_type, [count, rest])


def _single(algebra: FormulaAlgebra, fold: Fold) -> Formula:
    """Return the fold of one value."""
    (value,), (init,) = fold.values, fold.inits
    if is_neutral(fold.combiner, init):
        return value
    return algebra.apply(fold.combiner, (), fold.element_type, [init, value])


def neutral_value(algebra: FormulaAlgebra, combiner: str, element_type: str) -> Formula | None:
    """Return the neutral element of a combiner."""
    limits = range_of(element_type)
    value: float | None = {"add": 0, "or": 0, "xor": 0, "multiply": 1}.get(combiner)
    if combiner == "and":
        value = _ones(limits)
    elif combiner in ("maximum", "minimum"):
        sign = -1 if combiner == "maximum" else 1
        if is_float(element_type):
            value = sign * math.inf
        elif limits is not None:
            value = limits[sign > 0]
    term = None if value is None else algebra.table.constant(value, element_type)
    return term if term is not None and is_neutral(combiner, term) else None


def is_neutral(combiner: str, init: Formula) -> bool:
    """Return True if a constant is neutral for a combiner; 0 and -0 are neutral for sums."""
    if init.kind != "constant":
        return False
    limits = range_of(init.type)
    if combiner in ("maximum", "minimum"):
        sign = -1 if combiner == "maximum" else 1
        if is_float(init.type):
            return bool(init.value == dtype(init.type).type(sign * math.inf))
        return limits is not None and int(init.value) == limits[sign > 0]
    if combiner == "and":
        return int(init.value) in (-1, _ones(limits))
    return bool(init.value == (1 if combiner == "multiply" else 0))


def _ones(limits: tuple[int, int] | None) -> int:
    return limits[1] if limits is not None and not limits[0] else -1

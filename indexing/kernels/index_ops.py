"""Ops on indices: arithmetic as expressions, comparisons as conditions, casts, maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from indexing.equivalence.values.terms.terms import Formula
from indexing.kernels.domains import NotHandled, numerators, terms_of
from indexing.kernels.ir import MlirOp, MlirValue
from indexing.kernels.scalars import type_name
from indexing.kernels.symbolic import Execution, Held
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr
from simplifier.semiaffine import maximum, minimum
from simplifier.substitute import Substitution

Values: TypeAlias = dict[MlirValue, Held]


def of_index(execution: Execution, op: MlirOp, operands: Sequence[Held]) -> Held | None:
    """Return the value of an op on indices whose result is none; None for other ops."""
    if op.name == "arith.cmpi":
        return _compare_indices(execution, op, *operands)
    if op.name in ("arith.index_cast", "arith.index_castui"):
        return _from_index(execution, op, operands[0])
    return None


def _compare_indices(execution: Execution, op: MlirOp, one: Held, other: Held) -> Formula:
    if not isinstance(one, Expr) or not isinstance(other, Expr):
        raise NotHandled("a comparison of an index with a value")
    predicate: str = op.attributes["predicate"]
    if predicate[0] == "u":
        if one.bounds[0] < 0 and other.is_constant and predicate in ("ult", "ule"):
            last = other.constant - (predicate == "ult")
            return execution.condition((Constraint(one, 0, last),))
        if one.bounds[0] < 0 or other.bounds[0] < 0:
            raise NotHandled("an unsigned comparison of an index that may be negative")
    difference = one - other
    low, high = difference.bounds
    name = predicate[1:] if predicate not in ("eq", "ne") else predicate
    if name == "ne":
        equal = execution.condition((Constraint(difference, 0, 0),))
        return execution.algebra.apply("not", (), "pred", [equal])
    limits = {"lt": (low, -1), "le": (low, 0), "gt": (1, high), "ge": (0, high), "eq": (0, 0)}
    start, end = limits[name]
    if start > end:
        return execution.scalars.false
    return execution.condition((Constraint(difference, start, end),))


def _from_index(execution: Execution, op: MlirOp, held: Held) -> Formula:
    if not isinstance(held, Expr):
        raise NotHandled("an index that is not an expression")
    kind = type_name(op.result.type)
    limit = 1 << int(kind[1:]) - 1
    execution.promise(Constraint(held, -limit, limit - 1), op, f"index as {kind}")
    return execution.algebra.table.index(held, kind)


def index_op(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    """Return the value of an op whose result is an index."""
    operands = [values[v] for v in op.operands]
    if op.name == "arith.constant":
        return [as_expr(int(op.attributes["value"]))]
    if op.name in ("arith.index_cast", "arith.index_castui"):
        return [_to_index(execution, op, execution.formula(operands[0]))]
    if op.name == "arith.select":
        raise NotHandled("a selection of indices")
    exprs = [held for held in operands if isinstance(held, Expr)]
    if len(exprs) != len(operands) or op.name not in _INDEX_OPS or len(exprs) != 2:
        raise NotHandled(f"`{op.name}` of indices")
    return [_INDEX_OPS[op.name](execution, *exprs)]


def _to_index(execution: Execution, op: MlirOp, term: Formula) -> Expr:
    bits = int(op.operands[0].type.element[1:])
    sign = "u" if op.name.endswith("ui") else "s"
    term = execution.scalars.alike([term], sign)[0]
    limits = (0, (1 << bits) - 1) if sign == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)
    value = execution.algebra.index_of(term, limits)
    if (
        not -(1 << execution.width - 1)
        <= value.bounds[0]
        <= value.bounds[1]
        < 1 << execution.width - 1
    ):
        raise NotHandled(f"an index of {execution.width} bits of a value of {bits} bits")
    return value


def _clamp(execution: Execution, one: Expr, other: Expr, is_minimum: bool) -> Expr:
    """Return the minimum or maximum of a constant and an index; of a value, clamped."""
    expr, bound = (other, one) if one.is_constant else (one, other)
    variable = expr.as_variable
    table = execution.algebra.table
    if bound.is_constant and variable is not None and variable in table.runtime:
        low, high = variable.bounds
        end = bound.constant
        low, high = (low, min(high, end)) if is_minimum else (max(low, end), high)
        if low <= high:
            return execution.algebra.index_of(table.runtime[variable], (low, high))
    return minimum(one, other) if is_minimum else maximum(one, other)


def _divide(execution: Execution, one: Expr, other: Expr) -> Expr:
    """Return a quotient; the operands must not be negative."""
    if not other.is_constant or other.constant <= 0 or one.bounds[0] < 0:
        raise NotHandled("a quotient of indices that may be negative")
    return one // other.constant


_INDEX_OPS: Final[dict[str, Callable[[Execution, Expr, Expr], Expr]]] = {
    "arith.addi": lambda _, a, b: a + b,
    "arith.subi": lambda _, a, b: a - b,
    "arith.muli": lambda _, a, b: _product(a, b),
    "arith.divsi": _divide,
    "arith.divui": _divide,
    "arith.floordivsi": _divide,
    "arith.remsi": lambda e, a, b: a - _divide(e, a, b) * b.constant,
    "arith.remui": lambda e, a, b: a - _divide(e, a, b) * b.constant,
    "arith.minsi": lambda e, a, b: _clamp(e, a, b, is_minimum=True),
    "arith.maxsi": lambda e, a, b: _clamp(e, a, b, is_minimum=False),
}


def _product(one: Expr, other: Expr) -> Expr:
    if one.is_constant:
        return other * one.constant
    if other.is_constant:
        return one * other.constant
    raise NotHandled("a product of two indices")


def substitute_map(
    execution: Execution, op: MlirOp, dims: Sequence[Expr], symbols: Sequence[Expr]
) -> tuple[list[Expr], list[Constraint]]:
    """Return the results of an op's map at a point, and the conditions of its domain.

    The bounds of its variables are among the conditions.  The expressions are those of the text,
    and promises say that each of them fits in the width of indices.
    """
    stated, written = op.attributes["map"], op.attributes["written_map"]
    given = (*dims, *symbols)
    bounded, variables = (*stated.dims, *stated.ranges), (*written.dims, *written.ranges)
    if len(given) != len(variables) or written.runtime or stated.is_known_empty:
        raise NotHandled(f"{len(given)} operands of a map of {len(variables)} variables")
    swap = Substitution(dict(zip(variables, given, strict=True)))
    for expr in (*written.results, *[c.expr for c in written.constraints]):
        for part in (expr, *numerators(expr)):
            execution.check_width([swap(term) for term in terms_of(part)], op)
    bounds = [Constraint(e, *v.bounds) for v, e in zip(bounded, given, strict=True)]
    constraints = [c.with_expr(swap(c.expr)) for c in written.constraints]
    conditions = [c for c in (*bounds, *constraints) if not c.is_true]
    return [swap(result) for result in written.results], conditions

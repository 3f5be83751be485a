"""Integers of Mosaic kernels as expressions of the grid: `arith` with the rules of Pallas.

The rules are those of `indexing.pallas.index_arithmetic`: a value is a list of cases, so that
comparisons, divisions of negative numbers and selections have one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from hlo.shapes.element_type import range_of
from indexing.kernels.attributes import element_name
from indexing.kernels.ir import MlirOp, MlirType
from indexing.ops.integer_rules import Cases, comparison, selection
from indexing.pallas.index_arithmetic import RULES, combine_cases
from simplifier.interval import contains
from simplifier.linear import Expr, as_expr
from simplifier.unknown import Unknown

IntegerValue: TypeAlias = "Cases | Unknown"

_BINARY: Final[Mapping[str, str]] = {
    "addi": "add", "subi": "sub", "muli": "mul", "divsi": "div", "remsi": "rem",
    "minsi": "min", "maxsi": "max", "andi": "and", "ori": "or", "xori": "xor",
    "shli": "shift_left", "shrsi": "shift_right_arithmetic",
}  # fmt: skip
"""The rules of ops by their names without the dialect."""
_UNSIGNED: Final[Mapping[str, str]] = {
    "divui": "div", "remui": "rem", "minui": "min", "maxui": "max", "shrui": "shift_right_logical",
}  # fmt: skip
"""Those of ops on unsigned integers: they hold where no operand is negative."""
_PREDICATES: Final = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_CASTS: Final = frozenset(("index_cast", "extsi", "trunci"))
_UNSIGNED_CASTS: Final = frozenset(("index_castui", "extui"))


def integer_value(op: MlirOp, operands: Sequence[object]) -> IntegerValue:
    """Return the value of an op on integers; `Unknown` for other ops and without a rule.

    Args:
        operands: the values of its operands; all but lists of cases are unknown.

    >>> from indexing.kernels.reader import read_module
    >>> from simplifier.linear import variable
    >>> text = "module { func.func @f(%i: i32) { %c = arith.addi %i, %i : i32 \\n return } }"
    >>> i = [(variable("d0", 0, 3), ())]
    >>> integer_value(read_module(text).function("f").ops[0], [i, i])
    [(Expr('d0 * 2'), ())]
    """
    dialect, _, name = op.name.partition(".")
    if dialect != "arith" or len(op.results) != 1:
        return Unknown(f"`{op.name}` has no rule for integers")
    limits = _limits(op.result.type)
    if limits is None:
        return Unknown(f"`{op.name}` has a result of type {op.result.type}")
    if name == "constant":
        return _constant(op)
    cases: list[Cases] = []
    for value in operands:
        if not isinstance(value, list):
            return value if isinstance(value, Unknown) else Unknown("a value of another kind")
        cases.append(value)
    result = _apply(op, name, cases)
    if isinstance(result, Unknown):
        return result
    if all(contains(limits, value.bounds) or reads_scalars(value) for value, _ in result):
        return result
    return Unknown(f"`{op.name}` may overflow {op.result.type}")


def reads_scalars(value: Expr) -> bool:
    """Return True if an expression depends on a scalar operand.

    Arithmetic on scalars is taken as that of integers, as everywhere for Pallas.
    """
    return any(v.name.startswith("rt") for v in value.variables())


def _limits(held: MlirType) -> tuple[int, int] | None:
    if held.kind != "scalar":
        return None
    if held.element == "i1":
        return 0, 1
    name = element_name(held.element)
    return None if name is None else range_of(name)


def _constant(op: MlirOp) -> IntegerValue:
    value: Any = op.attributes.get("value")
    item = value.item() if getattr(value, "size", 0) == 1 else value
    if not isinstance(item, int):
        return Unknown(f"the constant {item!r} is not an integer")
    return [(as_expr(int(item)), ())]


def _apply(op: MlirOp, name: str, cases: list[Cases]) -> IntegerValue:
    if name in _CASTS or name in _UNSIGNED_CASTS:
        return _cast(op, name, cases[0])
    if name == "cmpi":
        return _compare(op, cases)
    if name == "select":
        return combine_cases(selection, cases)
    if name == "floordivsi" and len(cases[1]) == 1 and cases[1][0][0].is_constant:
        by = cases[1][0][0].constant
        if by > 0:
            return combine_cases(lambda x: [(x[0] // by, ())], cases)
    rule_name = _BINARY.get(name)
    if name in _UNSIGNED:
        if not _is_non_negative(cases):
            return Unknown(f"`{op.name}` of integers that may be negative")
        rule_name = _UNSIGNED[name]
    make_rule = RULES.get(rule_name or "")
    element = "pred" if op.operands[0].type.element == "i1" else "s32"
    rule = make_rule(element) if make_rule is not None else None
    if rule is None:
        return Unknown(f"`{op.name}` has no rule for integers")
    return combine_cases(rule, cases)


def _cast(op: MlirOp, name: str, value: Cases) -> IntegerValue:
    if name in _UNSIGNED_CASTS and not _is_non_negative([value]):
        return Unknown(f"`{op.name}` of an integer that may be negative")
    if name == "extsi" and op.operands[0].type.element == "i1":
        return combine_cases(lambda x: [(-x[0], ())], [value])
    if op.result.type.element == "i1" and any(not contains((0, 1), e.bounds) for e, _ in value):
        return Unknown(f"`{op.name}` to i1 of an integer that is neither 0 nor 1")
    return value


def _compare(op: MlirOp, cases: list[Cases]) -> IntegerValue:
    stated = op.attributes.get("predicate")
    predicate = _PREDICATES[stated] if isinstance(stated, int) else str(stated)
    if predicate[0] == "u" and not _is_non_negative(cases):
        return Unknown("an unsigned comparison of integers that may be negative")
    direction = predicate if predicate in ("eq", "ne") else predicate[1:]
    return combine_cases(comparison(direction.upper()), cases)


def _is_non_negative(values: Sequence[Cases]) -> bool:
    return all(value.bounds[0] >= 0 for cases in values for value, _ in cases)

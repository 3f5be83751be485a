"""Symbolic dimensions of ``jax.export`` as expressions and constraints.

The text of a dimension is the interface: ``8*floordiv(n, 8) + max(m, 1)``.

>>> n = Variable("n", 1, 99)
>>> print(dimension("4*n - 4*mod(n, 8)", {"n": n}))
(n floordiv 8) * 32
>>> print(condition("mod(n, 8) == 0", {"n": n}))
n mod 8 in [0, 0]
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from simplifier import maximum, minimum
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr
from simplifier.unknown import Unknown

_COMPARISON = re.compile("==|>=|<=")


def names_in(text: str) -> list[str]:
    """Return the symbols of a dimension or of a condition.

    >>> sorted(names_in("8*floordiv(n, 8) + max(m, 1) >= k"))
    ['k', 'm', 'n']
    """
    tree = ast.Module([_parse(side) for side in _COMPARISON.split(text)], [])
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return list(dict.fromkeys(node.id for node in names if id(node) not in functions))


def dimension(text: str, symbols: Mapping[str, Variable]) -> Expr | Unknown:
    """Return the expression of a dimension, with the variables of its symbols."""
    try:
        return _expr(_parse(text).value, symbols)
    except (NotImplementedError, SyntaxError, KeyError):
        return Unknown(f"the symbolic size {text} has no affine expression")


def condition(text: str, symbols: Mapping[str, Variable]) -> Constraint | Unknown:
    """Return the constraint of a condition ``a == b``, ``a >= b`` or ``a <= b``."""
    sign = _COMPARISON.search(text)
    if sign is None:
        return Unknown(f"the condition {text} is not a comparison")
    left = dimension(text[: sign.start()].strip(), symbols)
    right = dimension(text[sign.end() :].strip(), symbols)
    if isinstance(left, Unknown):
        return left
    if isinstance(right, Unknown):
        return right
    gap = left - right
    low, high = gap.bounds
    match sign.group():
        case "==":
            return Constraint(gap, 0, 0)
        case ">=":
            return Constraint(gap, 0, max(high, 0))
    return Constraint(gap, min(low, 0), 0)


def _parse(text: str) -> ast.Expr:
    return ast.Expr(ast.parse(text.strip().replace("^", "**"), mode="eval").body)


def _expr(node: ast.AST, symbols: Mapping[str, Variable]) -> Expr:
    match node:
        case ast.Constant(value=int(value)):
            return as_expr(value)
        case ast.Name(id=name):
            return symbols[name].as_expr()
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_expr(operand, symbols)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _expr(left, symbols) + _expr(right, symbols)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _expr(left, symbols) - _expr(right, symbols)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _expr(left, symbols) * _expr(right, symbols)
        case ast.Call(func=ast.Name(id=function), args=[first, second]):
            return _call(function, _expr(first, symbols), _expr(second, symbols))
    raise NotImplementedError


def _call(function: str, first: Expr, second: Expr) -> Expr:
    if function == "max":
        return maximum(first, second)
    if function == "min":
        return minimum(first, second)
    if second.is_constant and second.constant > 0:
        if function == "floordiv":
            return first // second.constant
        if function == "mod":
            return first % second.constant
    raise NotImplementedError

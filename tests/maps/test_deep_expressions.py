"""Expressions, texts and tuples nested thousands deep: an answer or a clear error, no recursion."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable

import pytest

import hlo
from hlo import HloError
from indexing import IndexingMap, parse_map
from indexing.maps.multiplicity import Multiplicity, multiplicity
from simplifier import Expr, Variable, maximum, minimum
from simplifier.substitute import Substitution
from simplifier.unique import MAX_DEPTH

DEPTHS = [MAX_DEPTH, 400, 3 * sys.getrecursionlimit()]
D0, D1 = Variable("d0", 1, 3), Variable("d1", 1, 4)


def floors(depth: int, start: Variable = D0) -> Expr:
    expr = start.as_expr()
    for k in range(depth):
        expr = (expr * 3 + D1) // 2 if k % 2 else (expr + D1 * 3) // 5
    return expr


def minima(depth: int, start: Variable = D0) -> Expr:
    expr = start.as_expr()
    for k in range(depth):
        expr = (minimum if k % 2 else maximum)(expr + D1, D1 * (k % 7 + 2))
    return expr


def quotients(depth: int, start: Variable = D0) -> Expr:
    expr = start.as_expr()
    for _ in range(depth):
        expr = (expr * 3 + D1 + 7) // D1
    return expr


KINDS = [floors, minima, quotients]


def value(kind: Callable[..., Expr], depth: int, d0: int, d1: int) -> int:
    """The value of an expression of `kind`, by Python integers."""
    result = d0
    for k in range(depth):
        if kind is floors:
            result = (result * 3 + d1) // 2 if k % 2 else (result + d1 * 3) // 5
        elif kind is minima:
            result = (min if k % 2 else max)(result + d1, d1 * (k % 7 + 2))
        else:
            result = (result * 3 + d1 + 7) // d1
    return result


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_deep_expressions_have_values_and_copies(kind: Callable[..., Expr], depth: int) -> None:
    expr = kind(depth)
    assert expr.value({D0: 2, D1: 3}) == value(kind, depth, 2, 3)
    assert pickle.loads(pickle.dumps(expr)) == copy.deepcopy(expr) == expr
    other = Variable("x", 1, 3)
    assert Substitution({D0: other.as_expr()})(expr) == kind(depth, other)
    assert str(expr)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_maps_with_deep_expressions_are_analysed(kind: Callable[..., Expr], depth: int) -> None:
    m = IndexingMap.of((D0, D1), [kind(depth), D1.as_expr()])
    points = [(a, b, value(kind, depth, a, b)) for a in (1, 2, 3) for b in (1, 2, 3, 4)]
    assert all(m.evaluate((a, b)) == (result, b) for a, b, result in points)
    assert m.simplify().evaluate((2, 3)) == m.evaluate((2, 3))
    assert m.count_image() == len({(result, b) for _, b, result in points})
    reads = multiplicity(m)
    assert isinstance(reads, Multiplicity)
    assert reads.total == len(points)
    assert m.is_equal(pickle.loads(pickle.dumps(m)))
    assert str(m)
    assert m.pretty()


def test_sums_of_deep_expressions_have_an_order() -> None:
    """Keys of deep atoms are compared without recursion, although no subexpression is shared."""
    expr = floors(1000) + floors(1000, Variable("x", 1, 3)) + quotients(1000)
    assert str(expr) == str(pickle.loads(pickle.dumps(expr)))


@pytest.mark.parametrize("convert", [IndexingMap.to_latex, IndexingMap.to_sympy])
def test_recursive_notations_limit_the_depth(convert: Callable[[IndexingMap], object]) -> None:
    assert convert(IndexingMap.of((D0, D1), [floors(20)]))
    with pytest.raises(ValueError, match=f"nested more than {MAX_DEPTH} deep"):
        convert(IndexingMap.of((D0, D1), [floors(400)]))


def test_deep_brackets_of_maps_are_read() -> None:
    depth = 10_000
    assert parse_map(f"(d0) -> ({'(' * depth}d0{')' * depth}), domain: d0 in [0, 9]").is_identity
    negated = parse_map(f"(d0) -> ({'-' * depth}d0), domain: d0 in [0, 9]")
    assert negated.is_identity
    with pytest.raises(HloError, match="expected"):
        parse_map(f"(d0) -> ({'(' * depth}d0), domain: d0 in [0, 9]")


@pytest.mark.parametrize("depth", [150, 300])
def test_tuples_of_omitted_shapes_are_limited_as_in_text(depth: int) -> None:
    lines = ["t0 = tuple(p)", *[f"t{k} = tuple(t{k - 1})" for k in range(1, depth)]]
    module = hlo.parse(f"ENTRY e {{ p = f32[2] parameter(0)\n{chr(10).join(lines[:100])} }}")
    assert str(module.entry.root.shape) == "(" * 100 + "f32[2]" + ")" * 100
    module = hlo.parse(f"ENTRY e {{ p = f32[2] parameter(0)\n{chr(10).join(lines)} }}")
    first, *_ = hlo.verify(module)
    assert first.label == "tuples are nested more than 100 deep"
    assert first.span.text == "t100 = tuple(t99)"

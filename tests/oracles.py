"""Brute-force oracles for tests: expression trees, and relations as sets of points.

No oracle uses a law of the simplifier: a tree is evaluated with Python's ``//`` and ``%``, and a
map is the set of pairs that `IndexingMap.evaluate` returns.

Random tests draw the same examples in every run.  ``FUZZ=20 pytest tests/simplifier`` draws twenty
times as many, different in each run; ``FUZZ=0.3``, as in `make test`, draws fewer of the fixed
examples, and `sampled` a part of many cases.  `make slow` draws all of them: `tests/conftest.py`
marks these tests.  A failure prints the shrunk example and the line that reproduces it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import product, repeat
from math import prod
from random import Random
from typing import Any, TypeAlias, TypeVar

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from indexing import IndexingMap
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr

T = TypeVar("T")
Point: TypeAlias = dict[Variable, int]
Pair: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
Tree: TypeAlias = "int | tuple[str, Tree, Tree]"

ONE_BY_ONE = 500
"""Limit on points for the oracle `IndexingMap.points`; larger boxes use arrays."""

_FUZZ = float(os.environ.get("FUZZ", "1"))


settings.register_profile(
    "tests",
    max_examples=max(1, round(100 * _FUZZ)),
    derandomize=_FUZZ <= 1,
    deadline=None,  # and no health check of time: a loaded machine must not fail
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("tests")


def fuzz(examples: int) -> settings:
    """Return the settings of a random test with ``examples * FUZZ`` examples."""
    return settings(max_examples=scale(examples))


def scale(examples: int) -> int:
    """Return ``examples * FUZZ``, at least 1."""
    return max(1, round(examples * _FUZZ))


def sampled(cases: Iterable[T], seed: object = 0) -> list[T]:
    """Return a random part ``FUZZ`` of the cases, the same in every run, but at least one.

    Tests of many similar cases use it: ``FUZZ >= 1`` takes all cases.
    """
    every = list(cases)
    if _FUZZ >= 1 or not every:
        return every
    chosen = Random(str(seed)).sample(range(len(every)), scale(len(every)))
    return [every[k] for k in sorted(chosen)]


# ---------------------------------------------------------------- points


def points(variables: Sequence[Variable]) -> Iterator[Point]:
    """Yield every point of the box."""
    for values in product(*[range(v.lower, v.upper + 1) for v in variables]):
        yield dict(zip(variables, values, strict=True))


def holds(constraints: Iterable[Constraint], point: Mapping[Variable, int]) -> bool:
    """Return True if the point satisfies all constraints."""
    return all(c.lower <= c.expr.value(point) <= c.upper for c in constraints)


def values(expr: Expr, variables: Sequence[Variable]) -> set[int]:
    """Return the values of `expr` on the box."""
    return {expr.value(point) for point in points(variables)}


# ---------------------------------------------------------------- trees
# A tree is a number or (operator, left, right); ("v", k, 0) is variable k.


def tree_value(tree: Tree, at: Sequence[int]) -> int:
    """Evaluate the tree; variable k has the value ``at[k]``."""
    match tree:
        case int():
            return tree
        case ("v", int(k), _):
            return at[k]
        case ("+", left, right):
            return tree_value(left, at) + tree_value(right, at)
        case ("-", left, right):
            return tree_value(left, at) - tree_value(right, at)
        case ("*", left, int(factor)):
            return tree_value(left, at) * factor
        case ("//", left, int(divisor)):
            return tree_value(left, at) // divisor
        case ("%", left, int(divisor)):
            return tree_value(left, at) % divisor
    raise AssertionError(tree)


def tree_expr(tree: Tree, variables: Sequence[Variable]) -> Expr:
    """Return the tree as an expression in normal form."""
    match tree:
        case int():
            return as_expr(tree)
        case ("v", int(k), _):
            return variables[k].as_expr()
        case ("+", left, right):
            return tree_expr(left, variables) + tree_expr(right, variables)
        case ("-", left, right):
            return tree_expr(left, variables) - tree_expr(right, variables)
        case ("*", left, int(factor)):
            return tree_expr(left, variables) * factor
        case ("//", left, int(divisor)):
            return tree_expr(left, variables) // divisor
        case ("%", left, int(divisor)):
            return tree_expr(left, variables) % divisor
    raise AssertionError(tree)


_WORDS = {"//": "floordiv", "%": "mod"}


def tree_text(tree: Tree, names: Sequence[str]) -> str:
    """Return the tree in the notation of maps, fully parenthesised."""
    match tree:
        case int():
            return str(tree)
        case ("v", int(k), _):
            return names[k]
        case (operator, left, right):
            word = _WORDS.get(operator, operator)
            return f"({tree_text(left, names)} {word} {tree_text(right, names)})"
    raise AssertionError(tree)


@cache  # validating a new strategy costs more than drawing from it
def trees(variables: int, leaves: int = 8) -> st.SearchStrategy[Tree]:
    """Return a strategy for affine trees over variables 0 to `variables` − 1."""
    variable = st.integers(0, variables - 1).map(lambda k: ("v", k, 0))
    factor = st.integers(-7, 7)
    divisor = st.sampled_from([2, 3, 4, 5, 6, 8, 12])

    def grow(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        return st.one_of(
            st.tuples(st.sampled_from("+-"), inner, inner),
            st.tuples(st.just("*"), inner, factor),
            st.tuples(st.sampled_from(["//", "%"]), inner, divisor),
        )

    leaf: st.SearchStrategy[Tree] = st.one_of(variable, st.integers(-13, 13))
    return st.recursive(leaf, grow, max_leaves=leaves)


@cache
def sums(variables: int) -> st.SearchStrategy[Tree]:
    """Return a strategy for sums ``c + Σ k·x`` without divisions."""
    term = st.tuples(st.integers(-9, 9), st.integers(0, variables - 1))

    def sum_tree(drawn: tuple[list[tuple[int, int]], int]) -> Tree:
        tree: Tree = drawn[1]
        for factor, k in drawn[0]:
            tree = ("+", tree, ("*", ("v", k, 0), factor))
        return tree

    return st.tuples(st.lists(term, max_size=4), st.integers(-20, 20)).map(sum_tree)


@st.composite
def boxes(
    draw: st.DrawFn, max_dims: int = 3, prefix: str = "d", empty: bool = False
) -> tuple[Variable, ...]:
    """One to `max_dims` variables of few points, with negative bounds and single points."""
    min_width = -1 if empty else 0
    box = []
    for k in range(draw(st.integers(1, max_dims))):
        lower = draw(st.integers(-9, 5))
        box.append(Variable(f"{prefix}{k}", lower, lower + draw(st.integers(min_width, 6))))
    return tuple(box)


@st.composite
def constraint_lists(
    draw: st.DrawFn, variables: tuple[Variable, ...], max_count: int = 3
) -> list[Constraint]:
    """Up to `max_count` constraints; some are unsatisfiable, some always hold."""
    constraints = []
    for _ in range(draw(st.integers(0, max_count))):
        expr = tree_expr(draw(trees(len(variables), leaves=5)), variables)
        lower = draw(st.integers(-15, 15))
        constraints.append(Constraint(expr, lower, lower + draw(st.integers(-1, 12))))
    return constraints


# ---------------------------------------------------------------- relations


def relation(indexing_map: IndexingMap, runtime: Sequence[int] = ()) -> set[Pair]:
    """Return every related pair ``(dims, results)`` for these values of runtime variables."""
    variables = (*indexing_map.dims, *indexing_map.ranges)
    if prod([v.upper - v.lower + 1 for v in variables]) > ONE_BY_ONE:
        with suppress(
            ZeroDivisionError, ValueError
        ):  # division by zero at a point, or extrema, which do not support arrays
            return _relation_by_arrays(indexing_map, variables, runtime)
    return set(indexing_map.points(runtime))


def _relation_by_arrays(
    indexing_map: IndexingMap, variables: Sequence[Variable], runtime: Sequence[int]
) -> set[Pair]:
    """Return `relation` of a non-empty box, by arrays of Python integers, which do not overflow."""
    axes = [np.arange(v.lower, v.upper + 1).astype(object) for v in variables]
    grids = [grid.ravel() for grid in np.meshgrid(*axes, indexing="ij")]
    point: dict[Variable, Any] = dict(zip(variables, grids, strict=True))
    for rt, value in zip(indexing_map.runtime, runtime, strict=True):
        if not rt.variable.lower <= value <= rt.variable.upper:
            return set()
        point[rt.variable] = value
    for constraint in indexing_map.constraints:
        value = constraint.expr.value(point)
        inside = np.logical_and(constraint.lower <= value, value <= constraint.upper)
        inside = np.broadcast_to(inside.astype(bool), grids[0].shape)
        grids = [grid[inside] for grid in grids]
        point.update(zip(variables, grids, strict=True))
    columns = [
        np.broadcast_to(result.value(point), grids[0].shape) for result in indexing_map.results
    ]
    count = len(indexing_map.dims)
    dims = zip(*[grid.tolist() for grid in grids[:count]], strict=True)
    results = zip(*[column.tolist() for column in columns], strict=True)
    return set(
        zip(
            dims if count else repeat((), grids[0].size),
            results if columns else repeat((), grids[0].size),
            strict=True,
        )
    )


def runtime_relations(indexing_map: IndexingMap) -> dict[tuple[int, ...], set[Pair]]:
    """Return the relation for each combination of values of the runtime variables."""
    boxes_ = [range(rt.variable.lower, rt.variable.upper + 1) for rt in indexing_map.runtime]
    return {at: relation(indexing_map, at) for at in product(*boxes_)}


def union(maps: Iterable[IndexingMap]) -> set[Pair]:
    """Return the pairs that any of the maps relates."""
    return {pair for each in maps for pair in relation(each)}


def invert_pairs(pairs: Iterable[Pair]) -> set[Pair]:
    """Return the inverse relation."""
    return {(b, a) for a, b in pairs}


def join_pairs(first: Iterable[Pair], second: Iterable[Pair]) -> set[Pair]:
    """Compose relations: ``x -> z`` for ``x -> y`` in `first` and ``y -> z`` in `second`."""
    after: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for y, z in second:
        after.setdefault(y, []).append(z)
    return {(x, z) for x, y in first for z in after.get(y, ())}


def divisions(text: str) -> int:
    """Return the number of floordiv, ceildiv and mod in a map's text, the cost of its index."""
    words = text.replace("(", " ").replace(")", " ").split()
    return sum(word in ("floordiv", "ceildiv", "mod") for word in words)

"""Conversion of maps to SymPy results, limits and relations, and back."""

# ruff: noqa: E501, C408 - a row of a table is one line, and the call that it is

from __future__ import annotations

import pickle
from typing import Any

import pytest
import sympy
from hypothesis import given
from sympy.core import cache

from indexing import IndexingMap, parse_map
from indexing.maps.indexing_map import dims
from indexing.maps.interchange import SympyMap, from_sympy, to_sympy
from simplifier import as_expr
from simplifier.constraints import Constraint
from tests.growth.work import calls_in
from tests.maps.any_maps import any_maps, meaning
from tests.oracles import fuzz, points

i, j, n = sympy.symbols("i j n", integer=True)


@given(any_maps())
@fuzz(60)
def test_maps_round_trip_through_sympy(made: IndexingMap) -> None:
    sympy_map = to_sympy(made)
    again = from_sympy(sympy_map)
    assert again.variables == made.variables
    assert (len(again.ranges), len(again.runtime)) == (len(made.ranges), len(made.runtime))
    assert meaning(again) == meaning(made)
    for point in [*points(made.variables)][:20]:
        values = {
            symbol: point[v] for v, symbol in zip(made.variables, symbols(sympy_map), strict=True)
        }
        expected = made.evaluate(*split(made, [*point.values()]))
        assert bool(sympy_map.domain.subs(values)) == (expected is not None)
        if expected is not None:
            assert tuple(int(result.subs(values)) for result in sympy_map) == expected


def symbols(sympy_map: SympyMap) -> list[Any]:
    return [limit[0] for limit in (*sympy_map.dims, *sympy_map.ranges, *sympy_map.runtime)]


def split(made: IndexingMap, at: list[int]) -> tuple[list[int], list[int], list[int]]:
    first, second = len(made.dims), len(made.dims) + len(made.ranges)
    return at[:first], at[first:second], at[second:]


def test_a_sympy_map_is_its_results_with_the_domain_as_attributes() -> None:
    sympy_map = parse_map(
        "(d0)[s0]{rt0} -> (d0 floordiv 2, s0), domain: d0 in [0, 9], s0 in [-1, 3], rt0 in [0, 1], d0 + s0 in [2, 2]"
    ).to_sympy()
    d0 = sympy.Symbol("d0", integer=True, nonnegative=True)
    s0 = sympy.Symbol("s0", integer=True)
    assert tuple(sympy_map) == (sympy.floor(d0 / 2), s0)
    assert sympy_map.dims == ((d0, 0, 9),)
    assert sympy_map.ranges == ((s0, -1, 3),)
    assert [str(limit[0]) for limit in sympy_map.runtime] == ["rt0"]
    assert sympy_map.constraints == (sympy.Eq(d0 + s0, 2),)
    assert sympy_map.domain.subs({"d0": 3, s0: -1, d0: 3, sympy_map.runtime[0][0]: 0}) == sympy.true
    again = pickle.loads(pickle.dumps(sympy_map))
    assert (again, again.domain) == (sympy_map, sympy_map.domain)


# fmt: off
READ = [
    # results, limits and constraints                                                              map
    (dict(results=i, dims=[(i, 0, 9)]),                                                            "(i) -> (i), domain: i in [0, 9]"),
    (dict(results=7, dims=[("i", 0, 9)]),                                                          "(i) -> (7), domain: i in [0, 9]"),
    (dict(results=sympy.Tuple(i, j), dims=[(i, 0, 9)], ranges=[sympy.Tuple(j, 0, 3)]),             "(i)[j] -> (i, j), domain: i in [0, 9], j in [0, 3]"),
    (dict(results=(i % 3, i // 4), dims=[(i, -5, 9)]),                                             "(i) -> (i mod 3, i floordiv 4), domain: i in [-5, 9]"),
    (dict(results=[i], dims=[(i, 0, n - 1)], runtime=[(n, 1, 5)]),                                 "(i){n} -> (i), domain: i in [0, 4], n in [1, 5], n - i in [1, 99]"),
    (dict(results=[i * n + j], dims=[(i, 0, 2)], ranges=[(j, i, n - 1)], runtime=[(n, 1, 3)]),     "(i)[j]{n} -> (i * n + j), domain: i in [0, 2], j in [0, 2], n in [1, 3], j - i in [0, 9], n - j in [1, 9]"),
    (dict(results=[sympy.floor(i / n)], dims=[(i, 0, 9)], runtime=[(n, 1, 3)]),                    "(i){n} -> (i floordiv n), domain: i in [0, 9], n in [1, 3]"),
    (dict(results=[], dims=[(i, 0, 9)], constraints=i > 3),                                        "(i) -> (), domain: i in [0, 9], i in [4, 9]"),
    (dict(results=[], dims=[(i, 0, 9)], constraints=[i >= 3, i < 7]),                              "(i) -> (), domain: i in [0, 9], i in [3, 6]"),
    (dict(results=[], dims=[(i, 0, 9)], constraints=sympy.And(i > j, i <= 2 * j), ranges=[(j, 0, 3)]), "(i)[j] -> (), domain: i in [0, 9], j in [0, 3], i - j in [1, 99], j * 2 - i in [0, 99]"),
    (dict(results=[], dims=[(i, 0, 9)], constraints=sympy.Eq(i % 3, 1)),                           "(i) -> (), domain: i in [0, 9], i mod 3 in [1, 1]"),
    (dict(results=[], dims=[(i, 0, 9)], constraints=[i / 3 > sympy.Rational(1, 2)]),               "(i) -> (), domain: i in [0, 9], i in [2, 9]"),
    (dict(results=[], dims=[(i, 0, 9)], constraints=[sympy.true, True]),                           "(i) -> (), domain: i in [0, 9]"),
    (dict(results=[], dims=[(i, 0, 9)], constraints=sympy.false),                                  "KNOWN EMPTY"),
    (dict(results=[], dims=[(i, 0, 9)], constraints=[i > 9]),                                      "KNOWN EMPTY"),
]

REFUSED = [
    (dict(results=[j], dims=[(i, 0, 9)]),                                          r"j is not one of the variables \['i'\]"),
    (dict(results=[i / 2], dims=[(i, 0, 9)]),                                      "not an integer"),
    (dict(results=[i], dims=[(i, 0, 9), (i, 0, 9)]),                               "the symbol i has two limits"),
    (dict(results=[i], dims=[(i, 0)]),                                             r"expected \(symbol, lower, upper\), found \(i, 0\)"),
    (dict(results=[i], dims=[i]),                                                  r"expected \(symbol, lower, upper\), found i"),
    (dict(results=[i], dims=[(i, 0, n)]),                                          r"n is not one of the variables"),
    (dict(results=[i], dims=[(i, 0, sympy.oo)]),                                   "unsupported expression oo"),
    (dict(results=[sympy.Symbol("i", positive=True)], dims=[(i, 0, 9)]),           "assumed"),
    (dict(results=[i], dims=[(i, 0, 9)], constraints=sympy.Or(i > 7, i < 2)),      "one map for each alternative"),
    (dict(results=[i], dims=[(i, 0, 9)], constraints=sympy.Ne(i, 7)),              "one map for each alternative"),
    (dict(results=[i], dims=[(i, 0, 9)], constraints=[i + 1]),                     "unsupported constraint i \\+ 1"),
    (dict(results=[i], dims=[(i, 0, 9)], runtime=[(n, 1, 3)], constraints=i / n > 1), "multiply by the divisor"),
]
# fmt: on


@pytest.mark.parametrize("arguments, expected_text", READ, ids=[row[1] for row in READ])
def test_sympy_expressions_with_limits_convert(
    arguments: dict[str, Any], expected_text: str
) -> None:
    converted, expected = IndexingMap.from_sympy(**arguments), parse_map(expected_text)
    assert meaning(converted) == meaning(expected)
    if not expected.is_known_empty:
        assert converted.variables == expected.variables
        assert converted.results == expected.results


@pytest.mark.parametrize("arguments, message", REFUSED, ids=[row[1] for row in REFUSED])
def test_unsupported_sympy_expressions_are_rejected(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        IndexingMap.from_sympy(**arguments)


def test_a_sympy_map_takes_no_further_limits() -> None:
    sympy_map = to_sympy(IndexingMap.identity((4,)))
    with pytest.raises(ValueError, match="do not apply to a SympyMap"):
        from_sympy(sympy_map, dims=[("d0", 0, 3)])


def test_the_work_of_a_conversion_is_linear_in_its_terms_and_constraints() -> None:
    def work(terms: int, constraints: int) -> int:
        d = dims((9,) * terms)
        total = sum((v * (2 * k + 3) for k, v in enumerate(d)), as_expr(0))
        bounds = [Constraint((total + k) % (7 + k), 0, 5) for k in range(constraints)]
        some = IndexingMap.of(d, [total // 5], constraints=bounds)
        cache.clear_cache()  # of SymPy
        return calls_in(lambda: len(to_sympy(some)))[0]

    work(4, 4)
    few = work(10, 10)
    assert work(40, 10) < 6 * few
    assert work(10, 40) < 6 * few

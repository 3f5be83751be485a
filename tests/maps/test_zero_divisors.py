"""Divisors that are 0 at some points, or at all: a relation has no point where a divisor is 0."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hlo import HloError
from indexing import IndexingMap, RuntimeVariable, Unknown, dims, parse_map
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.domain import tighten
from simplifier.linear import as_expr
from simplifier.unknown import require_known
from simplifier.zero_divisor import ZeroDivisorError
from tests.oracles import Pair, fuzz, relation

# fmt: off
WITHOUT_POINTS = [
    "(d0, d1) -> (d0 floordiv d1), domain: d0 in [0, 9], d1 in [0, 0]",
    "(d0, d1) -> (d0 ceildiv d1), domain: d0 in [0, 9], d1 in [0, 0]",
    "(d0, d1) -> (d0 mod d1), domain: d0 in [0, 9], d1 in [0, 0]",
    "(d0)[s0] -> (d0 mod s0), domain: d0 in [0, 9], s0 in [0, 0]",
    "(d0){n} -> (d0 floordiv n), domain: d0 in [0, 9], n in [0, 0]",
    "(d0, d1) -> (d0 floordiv (d1 floordiv 8)), domain: d0 in [0, 9], d1 in [0, 4]",
    "(d0, d1) -> (d0), domain: d0 in [0, 9], d1 in [0, 4], d0 floordiv (d1 floordiv 8) in [0, 3]",
    # only the constraints make the divisor 0
    "(d0, d1) -> (d0 floordiv d1), domain: d0 in [0, 9], d1 in [0, 4], d0 - d1 in [9, 9]",
    "(d0, d1) -> (d0 mod (d1 - 2)), domain: d0 in [0, 9], d1 in [0, 4], d1 mod 4 in [2, 2]",
    "(d0)[s0] -> (d0 floordiv s0), domain: d0 in [0, 9], s0 in [0, 9], d0 + s0 * 10 in [0, 9]",
]
# fmt: on


@pytest.mark.parametrize("text", WITHOUT_POINTS)
def test_a_divisor_that_is_0_everywhere_makes_a_map_empty(text: str) -> None:
    m = parse_map(text)
    assert m.is_empty() is True
    assert m.count_domain() == 0
    simple = m.simplify(certify=True)
    assert simple.is_known_empty
    assert (simple.dims, len(simple.results)) == (m.dims, len(m.results))
    assert IndexingMap.identity([d.upper + 1 for d in m.dims]).then(m).is_empty() is True


def test_a_divisor_that_becomes_0_leaves_no_points() -> None:
    m = parse_map("(d0, d1)[s0] -> (d0 floordiv d1 + s0), domain: "
                  "d0 in [0, 9], d1 in [0, 3], s0 in [0, 1]")  # fmt: skip
    at_zero = parse_map("(d0) -> (d0, 0), domain: d0 in [0, 9]")
    assert at_zero.then(m).is_known_empty
    assert m.fix(d1=0).is_known_empty
    assert m.restrict(d1=slice(0, 1)).is_known_empty
    assert m.at(3, 0).count() == 0
    assert require_known(m.at(3, 2).elements()).tolist() == [[1], [2]]


def test_an_index_of_a_runtime_variable_may_have_a_divisor_that_becomes_0() -> None:
    d0, d1 = dims((4, 3))
    start = RuntimeVariable(Variable("rt0", 0, 4), "starts", (d0 // d1.as_expr(),))
    m = IndexingMap.of((d0, d1), [start.variable + d0], runtime=[start])
    assert parse_map("(d0) -> (d0, 0), domain: d0 in [0, 3]").then(m).is_known_empty
    assert m.fix(d1=0).is_known_empty
    inside = m.with_constraints([Constraint(d1 * 8 + d0, 0, 3)])
    assert inside.simplify().is_known_empty


def test_symbolic_bounds_that_divide_by_0_name_their_variable() -> None:
    text = "(d0)[s0]{n} -> (s0), domain: d0 in [0, 3], s0 in [0, 8 floordiv n], n in [0, 0]"
    with pytest.raises(HloError, match="in the bounds of `s0`, the divisor must not be 0") as error:
        parse_map(text)
    assert error.value.span.column == text.index("s0") + 1


def test_constraints_that_divide_by_0_have_no_points() -> None:
    x, y = Variable("x", 0, 9), Variable("y", 0, 9)
    divided = Constraint(x // y.as_expr(), 0, 3)
    assert tighten((x, y), [divided, Constraint(y.as_expr(), 0, 0)]).is_known_empty


def test_dividing_by_0_is_an_error_of_the_caller_without_a_domain() -> None:
    with pytest.raises(ZeroDivisorError, match="must not be 0"):
        IndexingMap.over((3,), lambda d: [d[0] // as_expr(0)])


# ---------------------------------------------------------------- random maps


@st.composite
def divisions(draw: st.DrawFn, names: tuple[str, ...], depth: int = 2) -> str:
    """The text of an expression with divisions by expressions that may be 0."""
    if not depth or not draw(st.integers(0, 3)):
        return draw(st.one_of(st.sampled_from(names), st.integers(-3, 5).map(str)))
    left, right = (draw(divisions(names, depth - 1)) for _ in range(2))
    if not draw(st.integers(0, 9)):
        return f"{draw(st.sampled_from(['min', 'max']))}({left}, {right})"
    return f"({left} {draw(st.sampled_from([*_OPERATORS]))} {right})"


_OPERATORS = ("+", "-", "*", "floordiv", "floordiv", "ceildiv", "mod", "mod")


@st.composite
def maps_with_divisors(draw: st.DrawFn) -> IndexingMap:
    """Maps of one or two dimensions and at most one range variable."""
    names = draw(st.sampled_from([("d0",), ("d0", "d1"), ("d0", "s0"), ("d0", "d1", "s0")]))
    bounds = [(low, low + draw(st.integers(0, 3))) for low in draw(_lows(len(names)))]
    box = [f"{name} in [{low}, {high}]" for name, (low, high) in zip(names, bounds, strict=True)]
    stated = [f"{draw(divisions(names))} in [-1, {draw(st.integers(0, 4))}]"]
    head = [[name for name in names if name.startswith(kind)] for kind in "ds"]
    results = draw(st.lists(divisions(names), min_size=1, max_size=2))
    text = f"({', '.join(head[0])})[{', '.join(head[1])}] -> ({', '.join(results)}), domain: "
    try:
        return parse_map(text + ", ".join(box + (stated if draw(st.booleans()) else [])))
    except HloError as error:  # a divisor that is 0 in the text
        assume("must not be 0" not in str(error) and "must be positive" not in str(error))
        raise


def _lows(count: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(-2, 1), min_size=count, max_size=count)


def undefined_points(m: IndexingMap) -> set[tuple[int, ...]]:
    """The dimensions of points at which a divisor is 0."""
    points: set[tuple[int, ...]] = set()
    for values in product(*[range(v.lower, v.upper + 1) for v in m.variables]):
        at = dict(zip(m.variables, values, strict=True))
        try:
            for expr in (*m.results, *[c.expr for c in m.constraints]):
                expr.value(at)
        except ZeroDivisionError:
            points.add(values[: len(m.dims)])
    return points


@fuzz(400)
@given(maps_with_divisors())
def test_maps_keep_their_points_where_no_divisor_is_0(m: IndexingMap) -> None:
    pairs, dropped = relation(m), undefined_points(m)

    def same(pairs_of: set[Pair], expected: set[Pair], at: Callable[[Pair], object]) -> None:
        assert expected <= pairs_of
        assert {at(pair) for pair in pairs_of - expected} <= dropped

    same(relation(m.simplify()), pairs, lambda pair: pair[0])
    d0 = m.dims[0]
    for value in range(d0.lower, d0.upper + 1):
        fixed = {(point[1:], results) for point, results in pairs if point[0] == value}
        same(relation(m.fix(d0=value)), fixed, lambda pair, value=value: (value, *pair[0]))  # type: ignore[misc]
    first = IndexingMap.of(m.dims, [d // 2 for d in m.dims])
    halves = {d: tuple(x // 2 for x in d) for d, _ in relation(first)}
    through = {(d, r) for d, half in halves.items() for point, r in pairs if point == half}
    same(relation(first.then(m)), through, lambda pair: halves[pair[0]])


@fuzz(150)
@given(maps_with_divisors())
def test_queries_exclude_points_with_divisors_that_are_0(m: IndexingMap) -> None:
    pairs = relation(m)
    empty, distinct = m.is_empty(), m.count_image()
    assert isinstance(empty, Unknown) or empty is (not pairs)
    assert isinstance(distinct, Unknown) or distinct == len({results for _, results in pairs})
    image = m.image()
    if not isinstance(image, Unknown):
        reached = {results for piece in image for _, results in relation(piece)}
        assert reached == {results for _, results in pairs}
    source = m.to_python()
    namespace: dict[str, Callable[[], set[Pair]]] = {}
    exec(source, namespace)
    assert set(namespace["pairs"]()) == pairs

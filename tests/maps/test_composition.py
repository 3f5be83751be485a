"""``first.then(second)``: the join of two relations, with runtime variables that keep their source."""

# ruff: noqa: E501 - a row of a table is one line

from dataclasses import replace
from itertools import pairwise, product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexing import IndexingMap, RuntimeVariable, dims, parse_map, ranges
from simplifier import exact
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr
from tests.oracles import (
    boxes,
    constraint_lists,
    fuzz,
    join_pairs,
    relation,
    runtime_relations,
    tree_expr,
    trees,
)

# fmt: off
TABLE = [
    # first                                                second                                                             together, simplified
    ("(d0) -> (d0 * 2), domain: d0 in [0, 4]",             "(d0) -> (d0 + 1), domain: d0 in [0, 9]",                          "(d0) -> (d0 * 2 + 1), domain: d0 in [0, 4]"),
    ("(d0) -> (d0 * 2), domain: d0 in [0, 4]",             "(d0) -> (d0 + 1), domain: d0 in [0, 5]",                          "(d0) -> (d0 * 2 + 1), domain: d0 in [0, 2]"),
    ("(d0) -> (d0 + 3), domain: d0 in [0, 4]",             "(d0) -> (d0), domain: d0 in [5, 6]",                              "(d0) -> (d0 + 3), domain: d0 in [2, 3]"),
    ("(d0) -> (d0), domain: d0 in [0, 4]",                 "(d0) -> (d0), domain: d0 in [5, 6]",                              "KNOWN EMPTY"),
    ("(d0)[s0] -> (s0), domain: d0 in [0, 1], s0 in [0, 4]", "(d0)[s0] -> (d0 * 3 + s0), domain: d0 in [0, 4], s0 in [0, 2]", "(d0)[s0] -> (s0), domain: d0 in [0, 1], s0 in [0, 14]"),
    ("() -> (4)",                                          "(d0)[s0] -> (d0 + s0), domain: d0 in [0, 4], s0 in [0, 2]",       "()[s0] -> (s0 + 4), domain: s0 in [0, 2]"),
    ("(d0, d1) -> (d0 * 5 + d1), domain: d0 in [0, 2], d1 in [0, 4]", "(d0) -> (d0 floordiv 5, d0 mod 5), domain: d0 in [0, 14]", "(d0, d1) -> (d0, d1), domain: d0 in [0, 2], d1 in [0, 4]"),
    ("(d0) -> (), domain: d0 in [0, 2]",                   "()[s0] -> (s0), domain: s0 in [0, 1]",                            "(d0)[s0] -> (s0), domain: d0 in [0, 2], s0 in [0, 1]"),
]
# fmt: on


@pytest.mark.parametrize("first, second, together", TABLE)
def test_a_composition_simplifies_to_the_expected_map(
    first: str, second: str, together: str
) -> None:
    composed = parse_map(first).then(parse_map(second))
    assert str(composed.simplify(certify=True)) == together
    assert relation(composed) == join_pairs(relation(parse_map(first)), relation(parse_map(second)))


@st.composite
def maps(draw: st.DrawFn, dims: tuple[Variable, ...], results: int) -> IndexingMap:
    """A map over these dimensions, with up to two range variables and some constraints."""
    inner = draw(st.one_of(st.just(()), boxes(max_dims=2, prefix="s")))
    every = (*dims, *inner)
    exprs = [tree_expr(draw(trees(len(every), leaves=4)), every) for _ in range(results)]
    return IndexingMap.of(
        dims, exprs, ranges=inner, constraints=draw(constraint_lists(every, max_count=1))
    )


@given(st.data(), boxes(max_dims=2), boxes(max_dims=2))
@fuzz(250)
def test_composition_joins_the_relations(
    data: st.DataObject, outer: tuple[Variable, ...], inner: tuple[Variable, ...]
) -> None:
    first = data.draw(maps(outer, len(inner)))
    second = data.draw(maps(inner, data.draw(st.integers(0, 2))))
    together = first.then(second)
    assert relation(together) == join_pairs(relation(first), relation(second))
    assert relation(together.simplify(certify=True)) == relation(together)


@given(st.data(), boxes(max_dims=2), boxes(max_dims=1), boxes(max_dims=2))
@fuzz(100)
def test_composition_is_associative(
    data: st.DataObject,
    one: tuple[Variable, ...],
    two: tuple[Variable, ...],
    three: tuple[Variable, ...],
) -> None:
    a, b, c = (
        data.draw(maps(one, len(two))),
        data.draw(maps(two, len(three))),
        data.draw(maps(three, 1)),
    )
    assert relation(a.then(b).then(c)) == relation(a.then(b.then(c)))


@given(st.data(), boxes(max_dims=2), boxes(max_dims=2), st.booleans())
@fuzz(250)
def test_composition_propagates_result_bounds(
    data: st.DataObject, outer: tuple[Variable, ...], inner: tuple[Variable, ...], simple: bool
) -> None:
    """The third map's domain is the image of the chain, or slightly larger or smaller."""
    first = data.draw(maps(outer, len(inner)))
    second = data.draw(maps(inner, data.draw(st.integers(1, 2))))
    together = first.then(second)
    together = together.simplify() if simple else together
    box = []
    for k, (low, high) in enumerate(together.result_bounds):
        lower = low + data.draw(st.sampled_from([0, 0, -1, 1]))
        upper = high + data.draw(st.sampled_from([0, 0, -1, 1]))
        box.append(Variable(f"x{k}", lower, min(upper, lower + 12)))
    third = data.draw(maps(tuple(box), 1))
    whole = together.then(third)
    pairs = join_pairs(join_pairs(relation(first), relation(second)), relation(third))
    assert relation(whole) == pairs
    final = whole.simplify(certify=True)
    assert relation(final) == pairs
    for made in (together, whole, final):
        for _, results in relation(made):
            assert all(
                low <= r <= high for r, (low, high) in zip(results, made.result_bounds, strict=True)
            )


def reshape(before: tuple[int, ...], after: tuple[int, ...]) -> IndexingMap:
    """The map between the indices of two row-major arrays, the second reversed."""

    def index(d: tuple[Variable, ...]) -> list[Expr]:
        at = as_expr(prod(before) - 1)
        for k, v in enumerate(d):
            at = at - v * prod(before[k + 1 :])
        return [at // prod(after[k + 1 :]) % size for k, size in enumerate(after)]

    return IndexingMap.over(before, index)


def test_known_result_bounds_add_no_constraints() -> None:
    shapes = [(12, 5), (4, 15), (10, 6), (3, 20), (60,), (2, 5, 6), (15, 4)]
    whole = IndexingMap.identity(shapes[0])
    queries = exact.query_count()
    for before, after in pairwise(shapes):
        whole = whole.then(reshape(before, after)).simplify()
        assert whole.constraints == ()
    assert exact.query_count() == queries
    for at in product(range(12), range(5)):
        (result,) = [results for index, results in relation(whole) if index == at]
        assert result[0] * 4 + result[1] == at[0] * 5 + at[1]  # after six reversals


def test_a_modified_map_drops_its_result_bounds() -> None:
    window = parse_map("(d0) -> (d0 floordiv 2 * 3 - d0), domain: d0 in [0, 9]")
    inside = window.then(IndexingMap.identity((4,))).then(IndexingMap.identity((4,)))
    assert inside.result_bounds == ((0, 3),)
    assert inside.constraints
    assert (
        replace(inside, constraints=()).result_bounds
        == window.result_bounds
        != inside.result_bounds
    )


def test_composition_rejects_mismatched_spaces() -> None:
    pair = IndexingMap.identity((2, 3))
    with pytest.raises(ValueError, match="first map has 2 results, the second takes 1 dimension:"):
        pair.then(IndexingMap.identity((6,)))


@pytest.mark.parametrize(
    "first, second, both",
    [("exact", "exact", "exact"), ("exact", "may", "may"), ("may", "exact", "may")],
)
def test_a_composition_is_exact_if_both_maps_are(first: str, second: str, both: str) -> None:
    one = IndexingMap.over((4,), lambda d: [d[0] + 1]).with_grade(first)  # type: ignore[arg-type]
    two = IndexingMap.over((5,), lambda d: [d[0] * 2]).with_grade(second)  # type: ignore[arg-type]
    assert one.then(two).grade == both
    same = IndexingMap.identity((5,)).with_grade(second)  # type: ignore[arg-type]
    assert one.then(same).grade == both


# ---------------------------------------------------------------- runtime variables


def slice_map(size: int, window: int, source: object, index: tuple[Expr, ...] = ()) -> IndexingMap:
    """A window of `window` elements from a tensor of `size`; it starts at a value of `source`."""
    d = dims((window,))
    start = RuntimeVariable(Variable("rt0", 0, size - window), source, index, (0, size - window))
    return IndexingMap.of(d, [d[0] + start.expr], runtime=[start])


def test_runtime_variables_of_different_sources_are_distinct() -> None:
    together = slice_map(6, 4, "inner").then(slice_map(11, 6, "outer"))
    assert [(rt.name, str(rt.source)) for rt in together.runtime] == [
        ("rt0", "inner"),
        ("rt1", "outer"),
    ]
    assert together.evaluate([3], runtime=[2, 5]) == (10,)


def test_runtime_variables_of_one_element_are_merged() -> None:
    """Windows of 4 of 7 and of 7 of 10: both starts are the same scalar, clamped to [0, 3]."""
    together = slice_map(7, 4, "start").then(slice_map(10, 7, "start"))
    assert [str(rt.source) for rt in together.runtime] == ["start"]
    assert together.evaluate([1], runtime=[3]) == (7,)
    assert together.evaluate([1], runtime=[4]) is None


@pytest.mark.parametrize("narrow", ["first", "second", "both"])
def test_a_merged_runtime_variable_has_the_bounds_of_both_maps(narrow: str) -> None:
    """Narrower bounds of a start index do not make it a second value."""
    first, second = slice_map(7, 4, "start"), slice_map(10, 7, "start")
    if narrow in ("first", "both"):
        first_bound = Constraint(first.runtime[0].expr, 2, 3)
        first = first.with_constraints([first_bound]).simplify()
    if narrow in ("second", "both"):
        second_bound = Constraint(second.runtime[0].expr, 0, 2)
        second = second.with_constraints([second_bound]).simplify()
    together = first.then(second).simplify(certify=True)
    assert len(together.runtime) == 1
    starts = {"first": [2, 3], "second": [0, 1, 2], "both": [2]}[narrow]
    assert [s for s in range(4) if together.evaluate([0], runtime=[s])] == starts
    assert [together.evaluate([1], runtime=[s]) for s in starts] == [(1 + 2 * s,) for s in starts]


def test_different_clamps_of_one_source_are_distinct_values() -> None:
    together = slice_map(6, 4, "start").then(slice_map(11, 6, "start"))
    assert [rt.clamp for rt in together.runtime] == [(0, 2), (0, 5)]


def test_different_elements_of_one_source_are_distinct_values() -> None:
    first = slice_map(7, 4, "starts", (as_expr(0),))
    together = first.then(slice_map(10, 7, "starts", (as_expr(1),)))
    assert [[str(e) for e in rt.index] for rt in together.runtime] == [["0"], ["1"]]


def gather(rows: int, batch: int, source: object) -> IndexingMap:
    """``out[d0] = operand[source[d0]]``."""
    d = dims((batch,))
    row = RuntimeVariable(Variable("rt0", 0, rows - 1), source, (d[0].as_expr(),), (0, rows - 1))
    return IndexingMap.of(d, [row.expr], runtime=[row])


def test_a_gather_of_a_gather_indexes_by_the_inner_runtime_variable() -> None:
    together = gather(5, 7, "first").then(gather(9, 5, "second")).simplify(certify=True)
    (inner,) = [rt for rt in together.runtime if str(rt.source) == "first"]
    (outer,) = [rt for rt in together.runtime if str(rt.source) == "second"]
    assert [str(e) for e in inner.index] == ["d0"]
    assert outer.index == (inner.expr,)
    assert together.results == (outer.expr,)


def test_composing_three_gathers_is_associative() -> None:
    a, b, c = gather(5, 7, "a"), gather(9, 5, "b"), gather(4, 9, "c")
    for together in (a.then(b).simplify().then(c), a.then(b.then(c).simplify())):
        of = {str(rt.source): rt for rt in together.simplify().runtime}
        assert of["c"].index == (of["b"].expr,)
        assert of["b"].index == (of["a"].expr,)
        assert [str(e) for e in of["a"].index] == ["d0"]


def test_a_gather_after_a_reduction_keeps_the_range_variable_in_its_index() -> None:
    reduced = IndexingMap.of(dims((3,)), [*dims((3,)), *ranges(5)], ranges=ranges(5))
    d = dims((3, 5))
    bounds = 0, 8
    at = (d[1].as_expr(), d[0].as_expr())
    row = RuntimeVariable(Variable("rt0", *bounds), "rows", at, bounds)
    together = reduced.then(IndexingMap.of(d, [row.expr], runtime=[row])).simplify(certify=True)
    assert [str(e) for e in together.runtime[0].index] == ["s0", "d0"]
    assert [v.bounds for v in together.ranges] == [(0, 4)]


def test_a_runtime_variable_with_a_single_value_by_constraint_is_kept() -> None:
    """The domain, not the clamp, determines the value 3: other values read nothing."""
    d = dims((4,))
    start = RuntimeVariable(Variable("rt0", 0, 3), "start", (), (0, 3))
    last = IndexingMap.of(
        d, [d[0] + start.expr], runtime=[start], constraints=[Constraint(d[0] + start.expr, 6, 6)]
    ).simplify(certify=True)
    assert last.evaluate([3], runtime=[3]) == (6,)
    again = last.then(IndexingMap.over((7,), lambda i: [i[0] * 2])).simplify()
    assert again.evaluate([3], runtime=[3]) == (12,)
    assert [str(rt.source) for rt in again.runtime] == ["start"]


@given(st.data(), boxes(max_dims=1), boxes(max_dims=1))
@fuzz(100)
def test_composition_joins_relations_for_each_runtime_value(
    data: st.DataObject, outer: tuple[Variable, ...], inner: tuple[Variable, ...]
) -> None:
    made = []
    for d, source in ((outer, "a"), (inner, "b")):
        size = data.draw(st.integers(1, 3))
        rt = RuntimeVariable(Variable("rt0", 0, size), source, (), (0, size))
        every = (*d, rt.variable)
        result = tree_expr(data.draw(trees(len(every), leaves=4)), every)
        constraints = data.draw(constraint_lists(every, max_count=1))
        made.append(IndexingMap.of(d, [result], runtime=[rt], constraints=constraints))
    first, second = made
    together = first.then(second)
    for at, pairs in runtime_relations(together).items():
        named = dict(zip([str(rt.source) for rt in together.runtime], at, strict=True))
        a, b = named.get("a", 0), named.get("b", 0)
        assert pairs == join_pairs(relation(first, [a]), relation(second, [b]))
    together.simplify(certify=True)

"""Queries on maps: evaluation, equality with witnesses, emptiness, and other notations."""

import islpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexing import Difference, IndexingMap, parse_map
from indexing.maps.interchange import to_affine_map
from simplifier.atoms import Variable
from tests.oracles import boxes, constraint_lists, fuzz, holds, points, relation, tree_expr, trees

EXAMPLE = parse_map(
    "(d0, d1)[s0]{rt0} -> (d0 + rt0, (d1 * 2 + s0) floordiv 3), "
    "domain: d0 in [0, 4], d1 in [-3, 6], s0 in [0, 1], rt0 in [0, 7], d0 + s0 in [1, 4]"
)


def test_evaluate_returns_none_outside_the_domain() -> None:
    assert EXAMPLE.evaluate([2, -3], [1], [5]) == (7, -2)
    outside = [([5, 0], [0], [0]), ([0, 7], [1], [0]), ([0, 0], [2], [0]), ([0, 0], [1], [8])]
    assert [EXAMPLE.evaluate(*point) for point in outside] == [None] * 4
    assert EXAMPLE.evaluate([0, 0], [0], [0]) is None  # d0 + s0 is 0


def test_evaluate_rejects_a_wrong_number_of_values() -> None:
    with pytest.raises(ValueError, match="2 dimensions, 1 range variables and 1 runtime variables"):
        EXAMPLE.evaluate([1, 2, 3])


@given(st.data(), boxes(max_dims=2), boxes(max_dims=1, prefix="s"))
@fuzz(150)
def test_is_equal_compares_relations_with_a_witness_in_only_one(
    data: st.DataObject, d: tuple[Variable, ...], s: tuple[Variable, ...]
) -> None:
    every = (*d, *s)
    first, second = (
        IndexingMap.of(
            d,
            [tree_expr(data.draw(trees(len(every), leaves=3)), every)],
            ranges=s,
            constraints=data.draw(constraint_lists(every, max_count=1)),
        )
        for _ in range(2)
    )
    same = first.is_equal(second)
    assert bool(same) == (relation(first) == relation(second))
    assert bool(second.is_equal(first)) == bool(same)
    if same is not True:
        assert isinstance(same, Difference)
        pair = tuple(same.witness[v.name] for v in d), same.results
        assert (pair in relation(first)) == (same.only_in == "first")
        assert (pair in relation(second)) == (same.only_in == "second")


def test_is_equal_ignores_the_choice_of_range_variables() -> None:
    one = parse_map(
        "(d0)[s0, s1] -> (s0 * 4 + s1), domain: d0 in [0, 2], s0 in [0, 2], s1 in [0, 3]"
    )
    two = parse_map("(d0)[s0] -> (s0), domain: d0 in [0, 2], s0 in [0, 11]")
    assert one != two
    assert one.is_equal(two) is True
    fewer = parse_map("(d0)[s0] -> (s0), domain: d0 in [0, 2], s0 in [0, 10]")
    assert not one.is_equal(fewer)


def test_runtime_variables_are_part_of_a_relation() -> None:
    one = parse_map("(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 2], rt0 in [0, 3]")
    ranged = parse_map("(d0)[s0] -> (d0 + s0), domain: d0 in [0, 2], s0 in [0, 3]")
    assert not one.is_equal(ranged)
    renamed = parse_map("(d0){other} -> (d0 + other), domain: d0 in [0, 2], other in [0, 3]")
    assert not one.is_equal(renamed)


def test_empty_maps_are_equal_whatever_their_spaces() -> None:
    empty = parse_map("(d0, d1) -> (d0), domain: d0 in [0, 3], d1 in [0, 3], d0 * 2 in [3, 3]")
    assert empty.is_equal(parse_map("KNOWN EMPTY")) is True
    with pytest.raises(ValueError, match="different spaces"):
        empty.is_equal(IndexingMap.identity((3,)))


@given(st.data(), boxes(max_dims=3))
@fuzz(100)
def test_emptiness_is_decided(data: st.DataObject, box: tuple[Variable, ...]) -> None:
    constraints = data.draw(constraint_lists(box))
    empty = IndexingMap.of(box, box, constraints=constraints).is_empty()
    assert empty == (not any(holds(constraints, p) for p in points(box)))


def test_ranges_become_dimensions() -> None:
    nest = EXAMPLE.ranges_to_dims()
    assert [v.name for v in nest.dims] == ["d0", "d1", "s0"]
    assert nest.ranges == ()
    assert nest.evaluate([2, -3, 1], [], [5]) == EXAMPLE.evaluate([2, -3], [1], [5])


def test_sets_of_maps_compare_by_structure() -> None:
    one, two = (IndexingMap.over((3, 4), lambda d: [d[1], d[0]]) for _ in range(2))
    assert one == two
    assert len({one, two, one.with_grade("may")}) == 2


# ---------------------------------------------------------------- other notations


@given(st.data(), boxes(max_dims=2), boxes(max_dims=1, prefix="s"))
@fuzz(100)
def test_to_isl_gives_the_same_relation(
    data: st.DataObject, d: tuple[Variable, ...], s: tuple[Variable, ...]
) -> None:
    every = (*d, *s)
    result = tree_expr(data.draw(trees(len(every), leaves=5)), every)
    constraints = data.draw(constraint_lists(every, max_count=1))
    indexing_map = IndexingMap.of(d, [result], ranges=s, constraints=constraints)
    expected = relation(indexing_map)
    pairs = set()

    def each(point: islpy.Point) -> None:
        at = [
            int(point.get_coordinate_val(islpy.dim_type.set, k).to_python())
            for k in range(len(d) + 1)
        ]
        pairs.add((tuple(at[:-1]), (at[-1],)))

    as_isl = indexing_map.to_isl()
    assert isinstance(as_isl, islpy.Map)
    as_isl.wrap().foreach_point(each)
    assert pairs == expected


def test_runtime_variables_become_isl_parameters() -> None:
    as_isl = EXAMPLE.to_isl()
    assert isinstance(as_isl, islpy.Map)
    kinds = islpy.dim_type
    assert [as_isl.dim(k) for k in (kinds.in_, kinds.out, kinds.param)] == [2, 2, 1]
    assert as_isl.get_dim_name(kinds.param, 0) == "rt0"
    assert as_isl.get_dim_name(kinds.in_, 1) == "d1"


@pytest.mark.parametrize("name", ["o0", "o", "and", "exists", "mod", "bl.x", "x0", "max", "_a"])
def test_variables_of_any_name_convert_to_isl(name: str) -> None:
    as_isl = parse_map(f"({name}) -> ({name} * 2), domain: {name} in [0, 3]").to_isl()
    assert isinstance(as_isl, islpy.Map)
    assert as_isl.is_equal(islpy.Map("{ [a] -> [2a] : 0 <= a <= 3 }"))


@pytest.mark.parametrize("text", ["KNOWN EMPTY", "(d0) -> (d0), domain: d0 in [3, 2]"])
def test_an_empty_map_converts_to_an_empty_isl_relation(text: str) -> None:
    as_isl = parse_map(text).to_isl()
    assert isinstance(as_isl, islpy.Map)
    assert as_isl.is_empty()


def test_mlir_text_contains_the_map() -> None:
    text = EXAMPLE.to_mlir()
    assert text.startswith('#xla.indexing_map<"')
    assert parse_map(text[len('#xla.indexing_map<"') : -2]) == EXAMPLE
    assert to_affine_map(EXAMPLE) == (
        "affine_map<(d0, d1)[s0, s1] -> (d0 + s1, (d1 * 2 + s0) floordiv 3)>"
    )


# fmt: off
LATEX = [
    ("() -> ()",                                                   r"() \mapsto \left(\right)"),
    ("KNOWN EMPTY",                                                r"\emptyset"),
    ("(d0) -> (-d0 + 3), domain: d0 in [0, 3]",                    "(d_{0}) \\mapsto \\left(-d_{0} + 3\\right),\n\\quad 0 \\le d_{0} \\le 3"),  # noqa: E501
    ("(d0) -> (d0 mod 3), domain: d0 in [0, 7]",                   "(d_{0}) \\mapsto \\left(\\left(d_{0} \\bmod 3\\right)\\right),\n\\quad 0 \\le d_{0} \\le 7"),  # noqa: E501
]
# fmt: on


@pytest.mark.parametrize("text, latex", LATEX)
def test_latex(text: str, latex: str) -> None:
    assert parse_map(text).to_latex() == latex


def test_latex_is_balanced_and_shows_every_variable() -> None:
    latex = EXAMPLE.to_latex()
    assert latex.count("{") == latex.count("}")
    assert latex.count(r"\left") == latex.count(r"\right")
    for name in ("d_{0}", "d_{1}", "s_{0}", r"\mathrm{rt}_{0}"):
        assert name in latex

"""Conversion of isl sets, maps and functions to maps, and back."""

# ruff: noqa: E501 - a row of a table is one line

from __future__ import annotations

from functools import partial
from itertools import combinations, product
from typing import Any

import islpy as isl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexing import IndexingMap, parse_map
from indexing.maps import interchange
from simplifier import exact
from simplifier.unknown import Unknown, require_known
from tests.maps.any_maps import any_maps, meaning, relations
from tests.oracles import Pair, fuzz, relation

SPACE = range(-3, 12)


def from_isl(given_object: object, **bounds: Any) -> tuple[IndexingMap, ...]:
    return require_known(interchange.from_isl(given_object, **bounds))


def isl_pairs(isl_map: isl.Map, inputs: int, results: int) -> set[Pair]:
    """Every pair of the isl map over `SPACE`, by testing each point."""
    space, pairs = isl_map.wrap().flatten(), set()
    for point in product(SPACE, repeat=inputs + results):
        text = ", ".join(map(str, point))
        if not isl.Set(f"{{ [{text}] }}").intersect(space).is_empty():
            pairs.add((point[:inputs], point[inputs:]))
    return pairs


# fmt: off
READ = [
    # isl                                                                  maps
    ("{ [i] -> [2i] : 0 <= i < 4 }",                                       ["(i) -> (i * 2), domain: i in [0, 3]"]),
    ("{ [i] -> [i] : 0 <= i < 4; [i] -> [7] : 6 <= i < 8 }",               ["(i) -> (i), domain: i in [0, 3]", "(i) -> (7), domain: i in [6, 7]"]),
    ("{ [i, j] -> [floor(i/3), 2j - 7] : 0 <= i < 9 and -1 <= j <= 3 }",   ["(i, j) -> (i floordiv 3, j * 2 - 7), domain: i in [0, 8], j in [-1, 3]"]),
    ("{ S[i] -> A[i, i] : 0 <= i < 4 }",                                   ["(i) -> (i, i), domain: i in [0, 3]"]),
    ("{ [1] -> [2] }",                                                     ["(d0) -> (2), domain: d0 in [1, 1]"]),
    ("{ [] -> [i] : 2 <= i < 5 }",                                         ["()[s0] -> (s0), domain: s0 in [2, 4]"]),
    ("{ [a] -> [[b] -> [c]] : 0 <= a < 3 and b = a and c = 2a }",          ["(a) -> (a, a * 2), domain: a in [0, 2]"]),
    ("{ [] -> [] }",                                                       ["() -> ()"]),
    ("{ [i] : 0 <= i < 4 }",                                               ["(i) -> (), domain: i in [0, 3]"]),
    ("{ [[i] -> [j]] : 0 <= i, j < 4 }",                                   ["(i, j) -> (), domain: i in [0, 3], j in [0, 3]"]),
    ("[n] -> { [i] -> [i + n] : 0 <= i < 4 and 1 <= n <= 3 }",             ["(i){n} -> (i + n), domain: i in [0, 3], n in [1, 3]"]),
    ("[n] -> { : 0 <= n < 4 }",                                            ["(){n} -> (), domain: n in [0, 3]"]),
    ("[i] -> { [i, j] -> [i] : i = 2 and 0 <= j < 3 }",                    ["(d0, j){i} -> (2), domain: d0 in [2, 2], j in [0, 2], i in [2, 2]"]),
    ("{ [s0] -> [s0, j] : 0 <= s0 < 4 and 0 <= j < 2 }",                   ["(s0)[s1] -> (s0, s1), domain: s0 in [0, 3], s1 in [0, 1]"]),
    ("{ [i] : exists e : i = 3e and 0 <= i < 11 }",                        ["(i) -> (), domain: i in [0, 9], i mod 3 in [0, 0]"]),
    ("{ [i] -> [i] : false }",                                             []),
    ("{ [i] : 1 = 0 }",                                                    []),
]

REFUSED = [
    ("{ [i] }",                              "'i' has no lower bound"),
    ("{ [i] : i >= 0 }",                     "'i' has no upper bound"),
    ("{ [i] -> [j] : 0 <= i < 4 }",          "result 0 has no lower bound"),
    ("{ [i] -> [i, j] : 0 <= i < 4 <= j }",  "result 1 has no upper bound"),
    ("[n] -> { [i] : 0 <= i < n }",          "'n' has no upper bound"),
    ("{ [1 + 1, i] : i <= 3 }",              "'i' has no lower bound"),
    (isl.Aff("{ [i] -> [(i)] }"),            "'i' has no lower bound"),
    ("{ A[i]; B[i] }",                       "expected one space, got 2"),
    ("{ A[i] -> [i]; B[i] -> [i] }",         "expected one space, got 2"),
    ("{ [i : 0 <= i < 4 }",                  "invalid isl set or map"),
    ("",                                     "invalid isl set or map"),
    (7,                                      r"expected text or an isl object \(Set, .* got int"),
    (isl.Val(7),                             "expected text or an isl object .* got Val"),
]

OBJECTS = [
    (isl.Set("{ [i] : 0 <= i < 4 }"),                                  "(i) -> (), domain: i in [0, 3]"),
    (isl.BasicSet("{ [i] : 0 <= i < 4 }"),                             "(i) -> (), domain: i in [0, 3]"),
    (isl.Map("{ [i] -> [i] : 0 <= i < 4 }"),                           "(i) -> (i), domain: i in [0, 3]"),
    (isl.BasicMap("{ [i] -> [i] : 0 <= i < 4 }"),                      "(i) -> (i), domain: i in [0, 3]"),
    (isl.PwAff("{ [i] -> [(3 - i)] : 0 <= i < 4 }"),                   "(i) -> (-i + 3), domain: i in [0, 3]"),
    (isl.PwMultiAff("{ [i] -> [(i), (i)] : 0 <= i < 4 }"),             "(i) -> (i, i), domain: i in [0, 3]"),
    (isl.MultiPwAff("{ [i] -> [((i) : 0 <= i < 4), (i)] }"),           "(i) -> (i, i), domain: i in [0, 3]"),
    (isl.UnionMap("{ S[i] -> A[i] : 0 <= i < 4 }"),                    "(i) -> (i), domain: i in [0, 3]"),
    (isl.UnionSet("{ S[i] : 0 <= i < 4 }"),                            "(i) -> (), domain: i in [0, 3]"),
    (isl.Map.from_range(isl.Set("{ [i] : 0 <= i < 4 }")),              "()[s0] -> (s0), domain: s0 in [0, 3]"),
]
# fmt: on


@pytest.mark.parametrize("text, maps", READ, ids=[row[0] for row in READ])
def test_isl_text_converts_to_the_expected_maps(text: str, maps: list[str]) -> None:
    assert sorted(map(str, from_isl(text))) == sorted(maps)


@pytest.mark.parametrize(
    "given_object, expected_text", OBJECTS, ids=[type(r[0]).__name__ for r in OBJECTS]
)
def test_each_kind_of_isl_object_converts(given_object: object, expected_text: str) -> None:
    assert str(IndexingMap.from_isl(given_object)) == expected_text


def test_bounds_by_name_bound_functions_without_a_domain() -> None:
    for kind, text in ((isl.Aff, "{ [i] -> [(2 + i)] }"), (isl.MultiAff, "{ [i] -> [(2 + i)] }")):
        (m,) = from_isl(kind(text), bounds={"i": (0, 3)})
        assert str(m) == "(i) -> (i + 2), domain: i in [0, 3]"


def test_bounds_of_unknown_variables_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"no variable is called 'n': the variables are \['i'\]"):
        from_isl("{ [i] : 0 <= i < 4 }", bounds={"n": (0, 3)})


@pytest.mark.parametrize("given_text, message", REFUSED, ids=[str(row[0]) for row in REFUSED])
def test_invalid_isl_objects_are_rejected(given_text: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_isl(given_text)


def test_several_pieces_are_rejected_as_one_map() -> None:
    two = "{ [i] -> [i] : 0 <= i < 4; [i] -> [7] : 6 <= i < 8 }"
    with pytest.raises(
        ValueError, match=r"expected one map, got 2: use indexing.maps.interchange.from_isl"
    ):
        IndexingMap.from_isl(two)


def known_map(given_object: object) -> IndexingMap:
    return require_known(IndexingMap.from_isl(given_object))


def test_repeated_isl_names_become_distinct() -> None:
    twice = isl.Map("[n] -> { [i, j, k] -> [i - k] : 0 <= i < 3 and 0 <= j < 2 and 0 <= k, n < 5 }")
    for position, name in ((1, "i"), (2, "n")):
        twice = twice.set_dim_name(isl.dim_type.in_, position, name)
    m = known_map(twice)
    assert [v.name for v in m.variables] == ["i", "d1", "d2", "n"]
    assert [v.upper for v in m.variables] == [2, 1, 4, 4]
    assert str(m.results[0]) in ("-d2 + i", "i - d2")


def test_an_empty_relation_is_one_empty_map_of_its_space() -> None:
    m = known_map("{ [i, j] -> [i, j, i] : false }")
    assert (len(m.dims), len(m.results), m.is_empty()) == (2, 3, True)


@pytest.mark.parametrize("budget", [100, 2_000, 20_000], ids=["reading", "within", "apart"])
def test_conversion_beyond_the_budget_is_unknown(
    budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This includes budgets that end while isl parses, which it reports as a syntax error."""
    text = "{ [i, j] -> [k, l] : 0 <= i, j, k, l < 20 and (3i + 5j) mod 7 != floor(i/3) and (k + l) mod 5 != j mod 3 }"
    monkeypatch.setattr(exact, "relations", partial(exact.relations, budget=budget))
    answer = interchange.from_isl(text)
    assert isinstance(answer, Unknown)
    assert f"beyond the budget of {budget} isl operations" in answer.reason


@given(any_maps())
@fuzz(120)
def test_maps_round_trip_through_isl(indexing_map: IndexingMap) -> None:
    pieces = from_isl(indexing_map.to_isl())
    assert relations(pieces, indexing_map) == meaning(indexing_map)
    for piece in pieces:
        assert [v.name for v in piece.dims] == [v.name for v in indexing_map.dims]
        assert {rt.name for rt in piece.runtime} == {rt.name for rt in indexing_map.runtime}
    for one, other in combinations(pieces, 2):
        both = [meaning(m) for m in (one, other)]
        shared = both[0].keys() & both[1].keys()
        assert not any(both[0][at] & both[1][at] for at in shared)


@given(any_maps())
@fuzz(40)
def test_domains_round_trip_as_isl_sets(indexing_map: IndexingMap) -> None:
    domain = indexing_map.to_isl().domain()  # type: ignore[attr-defined]  # islpy's, which is not typed
    nothing = {at: {(dims, ()) for dims, _ in pairs} for at, pairs in meaning(indexing_map).items()}
    assert relations(from_isl(domain), indexing_map) == nothing


PIECES = st.lists(
    st.tuples(
        st.sampled_from(["i", "2i - j", "floor((i + j)/2)", "(3i) mod 4", "-j", "5"]),
        st.sampled_from(
            ["i + j <= 4", "i = 2j", "i mod 2 = 1", "i > j", "exists e : i = 3e + 1", "i >= 0"]
        ),
    ),
    min_size=1,
    max_size=3,
)


@given(PIECES, st.sampled_from([" ", " and k >= 0 and k <= i "]))
@fuzz(25)
def test_converted_unions_have_the_points_of_isl(
    pieces: list[tuple[str, str]], second: str
) -> None:
    out = "[x, k]" if "k" in second else "[x, 0]"
    basic = [
        f"[i, j] -> {out} : x = {expr} and {where}{second}and 0 <= i < 4 and -1 <= j < 3"
        for expr, where in pieces
    ]
    isl_map = isl.Map(f"{{ {'; '.join(basic)} }}")
    read = from_isl(isl_map)
    pairs = [pair for piece in read for pair in relation(piece)]
    assert len(pairs) == len(set(pairs)), "the pieces are disjoint"
    assert len(pairs) == int(isl_map.wrap().count_val().to_python())
    for dims, results in pairs:
        point = isl.Set(f"{{ [{', '.join(map(str, (*dims, *results)))}] }}")
        assert point.is_subset(isl_map.wrap().flatten())


def test_pieces_agree_with_isl_at_every_point() -> None:
    text = "{ [i] -> [j] : 0 <= i < 5 and i <= 2j and 3j <= 11 - i }"
    assert relation_of(text) == isl_pairs(isl.Map(text), 1, 1)


def relation_of(text: str) -> set[Pair]:
    return {pair for piece in from_isl(text) for pair in relation(piece)}


def test_minima_become_pieces_and_products_are_rejected() -> None:
    minimum = parse_map("(d0) -> (min(d0, 6 - d0)), domain: d0 in [0, 9]")
    assert relations(from_isl(minimum.to_isl()), minimum) == meaning(minimum)
    with pytest.raises(ValueError, match="isl cannot represent"):
        parse_map("(d0)[s0] -> (d0 * s0), domain: d0 in [0, 9], s0 in [0, 3]").to_isl()


def test_names_invalid_in_isl_are_replaced() -> None:
    indexing_map = parse_map("(mod1)[s0] -> (mod1 + s0), domain: mod1 in [0, 3], s0 in [0, 1]")
    assert [v.name for v in from_isl(indexing_map.to_isl())[0].dims] == ["mod1"]

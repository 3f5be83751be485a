"""Text of maps: both printed forms, parsing, and the location of errors."""

# ruff: noqa: E501 - a row of a table is one line

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo import HloError
from indexing import IndexingMap, dims, parse_map
from simplifier.atoms import Variable
from tests.oracles import boxes, constraint_lists, fuzz, relation, tree_expr, trees

ONE_LINE = "(d0, d1)[s0]{rt0} -> (d0 + rt0, d1 * 2 + s0), domain: "
BOUNDS = "d0 in [0, 4], d1 in [-3, 6], s0 in [0, 1], rt0 in [0, 7], d0 + s0 in [1, 4]"

PRETTY = """\
(d0, d1)[s0]{rt0} -> (d0 + rt0, d1 * 2 + s0),
  domain:
  d0 in [0, 4]
  d1 in [-3, 6]
  s0 in [0, 1]
  rt0 in [0, 7]
  d0 + s0 in [1, 4]"""

# fmt: off
SAME = [
    # written                                                          printed
    ("(d0)->(d0),domain:d0 in[0,9]",                                   "(d0) -> (d0), domain: d0 in [0, 9]"),
    ("(d0) -> (d0),\n  domain:\n  d0 in [0, 9]\n",                     "(d0) -> (d0), domain: d0 in [0, 9]"),
    ("(a)[] -> (-a), domain: a in [-2, 9]",                            "(a) -> (-a), domain: a in [-2, 9]"),
    ("() -> ()",                                                       "() -> ()"),
    ("() -> (7)",                                                      "() -> (7)"),
    ("(d0) -> (3 + 2 * d0), domain: d0 in [0, 9]",                     "(d0) -> (d0 * 2 + 3), domain: d0 in [0, 9]"),
    ("(d0) -> (d0 - -3), domain: d0 in [0, 9]",                        "(d0) -> (d0 + 3), domain: d0 in [0, 9]"),
    ("(d0) -> (d0 ceildiv 4), domain: d0 in [0, 9]",                   "(d0) -> ((d0 + 3) floordiv 4), domain: d0 in [0, 9]"),
    ("(d0) -> (d0 floordiv -4), domain: d0 in [0, 9]",                 "(d0) -> ((-d0) floordiv 4), domain: d0 in [0, 9]"),
    ("(d0) -> (8 - d0 floordiv 2 * 3), domain: d0 in [0, 9]",          "(d0) -> ((d0 floordiv 2) * -3 + 8), domain: d0 in [0, 9]"),
    ("(d0) -> (-(d0 mod 3)), domain: d0 in [0, 9]",                    "(d0) -> (-(d0 mod 3)), domain: d0 in [0, 9]"),
    ("(th_x, bl_x) -> (bl_x * 8 + th_x), domain: th_x in [0, 7], bl_x in [0, 2]",
     "(th_x, bl_x) -> (bl_x * 8 + th_x), domain: th_x in [0, 7], bl_x in [0, 2]"),
    ("(d0) -> (d0), domain: d0 in [0, 9], d0 in [2, 5]",               "(d0) -> (d0), domain: d0 in [0, 9], d0 in [2, 5]"),
    ("(d0)[s0] -> (s0 * d0), domain: d0 in [2, 9], s0 in [0, 3]",
     "(d0)[s0] -> (d0 * s0), domain: d0 in [2, 9], s0 in [0, 3]"),
    ("(d0)[s0] -> (d0 floordiv (s0 + 1)), domain: d0 in [2, 9], s0 in [0, 3]",
     "(d0)[s0] -> (d0 floordiv (s0 + 1)), domain: d0 in [2, 9], s0 in [0, 3]"),
    ("(d0)[s0] -> (min(d0 * 2, s0, 1) + 4), domain: d0 in [0, 9], s0 in [0, 3]",
     "(d0)[s0] -> (min(d0 * 2, s0, 1) + 4), domain: d0 in [0, 9], s0 in [0, 3]"),
    ("(d0){n} -> (d0), domain: d0 in [0, 2 * n - 1], n in [1, 9]",
     "(d0){n} -> (d0), domain: d0 in [0, n * 2 - 1], n in [1, 9]"),
    ("(d0)[s0]{n} -> (s0), domain: d0 in [1, 3], s0 in [n, n + 3], n in [1, 9]",
     "(d0)[s0]{n} -> (s0), domain: d0 in [1, 3], s0 in [n, n + 3], n in [1, 9]"),
    ("(d0) -> (d0), domain: d0 in [3, 3]",                             "(d0) -> (3), domain: d0 in [3, 3]"),
    ("(d0) -> (d0), domain: d0 in [5, 2]",                             "KNOWN EMPTY"),
    ("KNOWN EMPTY",                                                    "KNOWN EMPTY"),
]

MISTAKES = [
    # text                                                line  column  message
    ("",                                                  1,    1,      "expected `(`"),
    ("(d0) -> (d0",                                       1,    12,     "expected `,` or `)`"),
    ("(d0) -> (d0)",                                      1,    2,      "no bounds"),
    ("(d0, d1)[s] -> (d0), domain: d1 in [0, 3]",         1,    2,      "`d0` and `s` have no bounds"),
    ("(d0, d0) -> (d0), domain: d0 in [0, 1]",            1,    6,      "declared twice"),
    ("(d0)[d0] -> (d0), domain: d0 in [0, 1]",            1,    6,      "declared twice"),
    ("(d0) -> (d1), domain: d0 in [0, 1]",                1,    10,     "not a variable"),
    ("(d0) -> (d0 mod 0), domain: d0 in [0, 1]",          1,    13,     "must not be 0"),
    ("(d0) -> (d0 mod (d0 - d0)), domain: d0 in [0, 1]",  1,    13,     "must not be 0"),
    ("(d0) -> (min(d0, 3], domain: d0 in [0, 1]",         1,    19,     "is not closed"),
    ("(d0) -> (min()), domain: d0 in [0, 1]",             1,    14,     "expected a variable"),
    ("(d0){n} -> (d0), domain: d0 in [0, 9], n in [0, n]", 1,  6,     "must be integers"),
    ("(d0) -> (d0 +), domain: d0 in [0, 1]",              1,    14,     "expected a variable"),
    ("(d0) -> ((d0 4, domain: d0 in [0, 1]",              1,    14,     "expected `)`"),
    ("(d0) -> (d0), domain: d0 in [0; 1]",                1,    31,     "unexpected character `;`"),
    ("(d0) -> (d0), domain: d0 in [0, x]",                1,    33,     "not a variable"),
    ("(d0) -> (d0), domain: d0 of [0, 1]",                1,    26,     "expected `in`"),
    ("(d0) -> (d0),\n domain:\n d0 in [0, 1]\n e1 in [0, 1]", 4, 2,     "`e1` is not a variable"),
    ("(d0) -> (d0), domain: d0 in [0, 1] (",              1,    37,     "the end of the text"),
    ("(d0) (d0), domain: d0 in [0, 1]",                   1,    6,      "expected `->`"),
    ("(3) -> (d0)",                                       1,    2,      "variable name"),
    ("KNOWN",                                             1,    6,      "expected `EMPTY`"),
    ("(d0) -> (" + "9" * 5000 + "), domain: d0 in [0, 1]", 1,   10,     "a number of 5000 digits"),
]
# fmt: on


def test_a_map_prints_on_one_line_or_one_variable_per_line() -> None:
    indexing_map = parse_map(ONE_LINE + BOUNDS)
    assert str(indexing_map) == ONE_LINE + BOUNDS
    assert indexing_map.pretty() == PRETTY


@pytest.mark.parametrize("form", [str, IndexingMap.pretty])
def test_both_forms_parse_back(form: object) -> None:
    assert callable(form)
    indexing_map = parse_map(ONE_LINE + BOUNDS)
    assert parse_map(form(indexing_map)) == indexing_map


@pytest.mark.parametrize("written, printed", SAME, ids=[row[0][:30] for row in SAME])
def test_text_prints_in_canonical_notation(written: str, printed: str) -> None:
    assert str(parse_map(written)) == printed
    assert str(parse_map(printed)) == printed


@pytest.mark.parametrize("text, line, column, message", MISTAKES, ids=[r[3] for r in MISTAKES])
def test_syntax_errors_have_a_location(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(HloError) as caught:
        parse_map(text, "maps.txt")
    assert (caught.value.span.line, caught.value.span.column) == (line, column), str(caught.value)
    assert message in str(caught.value)
    assert f"maps.txt:{line}:{column}" in str(caught.value)


def test_a_name_may_have_thousands_of_digits() -> None:
    name = "d" + "1" * 5000
    assert parse_map(f"({name}) -> ({name}), domain: {name} in [0, 1]").dims[0].name == name


def test_a_misspelt_variable_gets_a_suggestion() -> None:
    with pytest.raises(HloError, match="did you mean `th_x`"):
        parse_map("(th_x) -> (thx), domain: th_x in [0, 1]")


def test_an_expression_with_exponential_text_is_rejected() -> None:
    """Each level contains the one below twice: small as a DAG, exponential as text."""
    nested = "d0"
    for _ in range(60):
        nested = f"(({nested}) floordiv 7 * 9 + d0)"
    with pytest.raises(HloError, match="the expression has more than"):
        parse_map(f"(d0) -> ({nested}), domain: d0 in [0, 1000000]")


def test_parentheses_nest_without_limit() -> None:
    depth = 20_000
    nested = parse_map(f"(d0) -> ({'(' * depth}d0{')' * depth}), domain: d0 in [0, 9]")
    assert nested == IndexingMap.identity((10,))


@given(st.data(), boxes())
@fuzz(200)
def test_any_map_parses_back_from_its_text(data: st.DataObject, box: tuple[Variable, ...]) -> None:
    results = [tree_expr(data.draw(trees(len(box), leaves=6)), box) for _ in range(2)]
    indexing_map = IndexingMap.of(box, results, constraints=data.draw(constraint_lists(box)))
    if indexing_map.is_known_empty:
        assert str(indexing_map) == indexing_map.pretty() == "KNOWN EMPTY"
        assert not relation(indexing_map)
    else:
        again = parse_map(str(indexing_map))
        assert again == parse_map(indexing_map.pretty())
        assert relation(again) == relation(indexing_map)


def test_the_variables_of_a_map_have_distinct_names() -> None:
    d = dims((3,))
    with pytest.raises(ValueError, match="distinct names"):
        IndexingMap.of(d, d, ranges=d)


def test_undeclared_variables_are_rejected() -> None:
    stranger = Variable("d0", 0, 7)  # the name of a dimension, with other bounds
    with pytest.raises(ValueError, match="d0"):
        IndexingMap.of(dims((3,)), [stranger])

"""MLIR attributes: parsing of all printed forms, and comparison with MLIR itself."""

# ruff: noqa: E501 - a row of a table is one line

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo import HloError
from indexing import IndexingMap, RuntimeVariable, parse_map
from indexing.cli import run
from indexing.maps.interchange import from_mlir, to_affine_map, to_affine_set, to_mlir
from simplifier.atoms import Variable
from tests.maps.any_maps import any_maps, meaning
from tests.oracles import boxes, fuzz, holds, points, tree_text, tree_value, trees

LINE = "(d0)[s0]{rt0} -> (d0 * 2 + s0), domain: d0 in [0, 9], s0 in [0, 1], rt0 in [0, 3], d0 + rt0 in [1, 5]"

# fmt: off
XLA = [
    # the forms that XLA prints and its tests have
    (f'#xla.indexing_map<"{LINE}">',                                                LINE),
    (f'#xla_gpu.indexing_map<{LINE}>',                                              LINE),
    (f'  #map1 = #xla.indexing_map< "{LINE}" >\n',                                 LINE),
    (f'#xla_gpu.indexing_map<{LINE}, is_simplified: true>',                         LINE),
    (f'#xla.indexing_map<"{LINE},\n is_simplified: false">',                       LINE),
    ('#xla.indexing_map<"(d0)[s0] ->"\n  " (d0 floordiv 8,"\n  "s0), domain: d0 in [0, 9]," " s0 in [0, 1]">', "(d0)[s0] -> (d0 floordiv 8, s0), domain: d0 in [0, 9], s0 in [0, 1]"),
    ('#xla_gpu.indexing_map<\n (d0) -> (d0),\n domain:\n d0 in [1, 2]\n>',      "(d0) -> (d0), domain: d0 in [1, 2]"),
    ('#xla.indexing_map<"(d0)[]{rt0} -> (rt0), domain: d0 in [0, 2], rt0 in [0, 1]">', "(d0){rt0} -> (rt0), domain: d0 in [0, 2], rt0 in [0, 1]"),
    ('#xla.indexing_map<"(bl_x)[vector_index] -> (bl_x*4+vector_index), domain: bl_x in [0, 9], vector_index in [0, 3]">', "(bl_x)[vector_index] -> (bl_x * 4 + vector_index), domain: bl_x in [0, 9], vector_index in [0, 3]"),
    ('#xla.indexing_map<"(d0) -> (-d0 + 128 - 8), domain: d0 in [0, 3]">',          "(d0) -> (-d0 + 120), domain: d0 in [0, 3]"),
    ('#xla.indexing_map<"() -> ()">',                                               "() -> ()"),
    ('#xla.indexing_map<"KNOWN EMPTY\\0A">',                                      "KNOWN EMPTY"),
]

AFFINE = [
    # text                                                          bounds                                             map
    ("affine_map<(d0, d1)[s0] -> (d0 + s0, d1)>",                   {"dims": (4, 8), "symbols": (3,)},                  "(d0, d1)[s0] -> (d0 + s0, d1), domain: d0 in [0, 3], d1 in [0, 7], s0 in [0, 2]"),
    ("affine_map<(i)[N] -> (i + N)>",                               {"dims": [(-3, 3)], "runtime": [5]},                "(i){N} -> (N + i), domain: i in [-3, 3], N in [0, 4]"),
    ("affine_map<(i)[N, M] -> (i)>",                                {"dims": [2], "symbols": [3], "runtime": [5]},      "(i)[N]{M} -> (i), domain: i in [0, 1], N in [0, 2], M in [0, 4]"),
    ("#map = affine_map<(d0)[s0] -> (symbol(s0), symbol( s0 ) + d0)>", {"dims": [2], "symbols": [3]},                   "(d0)[s0] -> (s0, d0 + s0), domain: d0 in [0, 1], s0 in [0, 2]"),
    ("affine_map<(d$0) -> (d$0 - -3)>",                             {"dims": [2]},                                      "(d$0) -> (d$0 + 3), domain: d$0 in [0, 1]"),
    ("affine_map<() -> (7)>",                                       {},                                                 "() -> (7)"),
    ("(d0) -> (d0 * 2)",                                            {"dims": [2]},                                      "(d0) -> (d0 * 2), domain: d0 in [0, 1]"),
    ("affine_set<(d0) : (d0 - 1 >= 0, d0 mod 2 == 0)>",             {"dims": [9]},                                      "(d0) -> (), domain: d0 in [1, 8], d0 mod 2 in [0, 0]"),
    ("affine_set<(d0)[s0] : (d0 >= s0, -d0 + 4 >= 0, s0 == 2)>",    {"dims": [9]},                                      "(d0)[s0] -> (), domain: d0 in [0, 4], s0 in [2, 2], d0 in [2, 9]"),
    ("affine_set<(d0) : (2 * d0 - 3 >= 0, 3 * d0 <= 11)>",          {},                                                 "(d0) -> (), domain: d0 in [2, 3]"),
    ("affine_set<(d0) : (d0 >= 0, 4 >= d0, 2 * d0 == 5)>",          {},                                                 "KNOWN EMPTY"),
    ("affine_set<(d0) : (d0 >= 5, d0 <= 4)>",                       {},                                                 "KNOWN EMPTY"),
    ("affine_set<(d0) : (1 == 0)>",                                 {},                                                 "KNOWN EMPTY"),
    ("affine_set<() : (0 == 0)>",                                   {},                                                 "() -> ()"),
    ("(d0) : (d0 >= 0, d0 <= 7)",                                   {},                                                 "(d0) -> (), domain: d0 in [0, 7]"),
]

MISTAKES = [
    # text                                                                line  column  message
    ("",                                                                  1,    1,      "expected #xla.indexing_map"),
    ("affine_mop<(d0) -> (d0)>",                                          1,    1,      "expected #xla.indexing_map"),
    ("#xla.indexing_map<>",                                               1,    19,     "expected `(` before the dimensions"),
    ("affine_map<>",                                                      1,    12,     "expected `(` before the dimensions"),
    ("affine_map<(d0) -> (d0)",                                           1,    24,     "expected `>`"),
    ("affine_map<(d0) -> (d0)> d0>",                                      1,    24,     "unexpected character `>`"),
    ("affine_map<(d0) -> (d0) d0>",                                       1,    25,     "expected the end of the attribute"),
    ("affine_map<(d0) -> (d0 +)>",                                        1,    25,     "expected a variable"),
    ("affine_map<(d0) -> (d1)>",                                          1,    21,     "`d1` is not a variable"),
    ("affine_map<(d0, d0) -> (d0)>",                                      1,    17,     "declared twice"),
    ("affine_map<(d0)[d0] -> (d0)>",                                      1,    17,     "declared twice"),
    ("affine_map<(d0) -> (d0 mod 0)>",                                    1,    24,     "mod must not be 0"),
    ("affine_map<(d0)\n[s0] -> (d0)>",                                   2,    2,      "`s0` has no lower bound"),
    ("affine_set<(d0) -> (d0)>",                                          1,    17,     "expected `:`"),
    ("affine_set<(d0) : (d0 >= 0 d0)>",                                   1,    28,     "expected `,` or `)`"),
    ("affine_set<(d0) : (d0 + 1)>",                                       1,    26,     "expected `>=`, `<=` or `==`"),
    ("affine_set<(d0) : (d0 - 1 >= 0)>",                                  1,    13,     "`d0` has no upper bound"),
    ('#xla.indexing_map<"(d0) -> (d7), domain: "\n  "d0 in [0, 5]">',    1,    29,     "`d7` is not a variable"),
    ('#xla.indexing_map<"(d0) -> (d0), domain: "\n  "d0 of [0, 5]">',    2,    7,      "expected `in`"),
    ('#xla.indexing_map<"(d0) \\0A -> (d7), domain: d0 in [0, 5]">',    1,    33,     "`d7` is not a variable"),
    ('#xla.indexing_map<"(d0) \\x -> (d0), domain: d0 in [0, 5]">',     1,    25,     "two hexadecimal digits"),
    ('#xla.indexing_map<"(d0) -> (d0), domain: d0 in [0, 5>',             1,    19,     "expected a string"),
    ('#xla.indexing_map<"UNDEFINED\\0A">',                              1,    19,     "could not compute"),
]

OTHER_NUMBERS = [
    ("affine_map<(d0) -> (d0)>",           {"dims": (4, 4)},                       "expected bounds of 1 dimensions, got 2"),
    ("affine_map<(d0)[s0] -> (d0)>",       {"dims": (4,), "symbols": ()},          "expected bounds of 1 symbols, got 0"),
    ("affine_map<(d0)[s0] -> (d0)>",       {"dims": (4,), "symbols": (1,), "runtime": (2,)}, "expected bounds of 1 symbols, got 2"),
    ('#xla.indexing_map<"() -> ()">',      {"dims": ()},                           "do not apply to an indexing_map"),
]
# fmt: on


@pytest.mark.parametrize("text, expected_text", XLA, ids=[row[0][:40] for row in XLA])
def test_every_form_of_an_indexing_map_parses(text: str, expected_text: str) -> None:
    assert str(from_mlir(text)) == expected_text


@pytest.mark.parametrize("text, bounds, expected_text", AFFINE, ids=[row[0] for row in AFFINE])
def test_affine_maps_and_sets_parse_with_bounds(text: str, bounds: Any, expected_text: str) -> None:
    parsed = IndexingMap.from_mlir(text, **bounds)
    expected = parse_map(expected_text)
    assert meaning(parsed) == meaning(expected)
    if expected_text != "KNOWN EMPTY":
        assert parsed.variables == expected.variables
        assert len(parsed.runtime) == len(expected.runtime)
        assert parsed.results == expected.results


@pytest.mark.parametrize("text, line, column, message", MISTAKES, ids=[row[3] for row in MISTAKES])
def test_syntax_errors_have_a_location(text: str, line: int, column: int, message: str) -> None:
    dims = [4] if "map<(d0" in text and "#" not in text else None
    with pytest.raises(HloError, match=re.escape(message)) as caught:
        from_mlir(text, dims=dims, filename="maps.mlir")
    assert caught.value.code == "mlir-syntax"
    assert (caught.value.span.line, caught.value.span.column) == (line, column), str(caught.value)
    assert f"maps.mlir:{line}:{column}" in str(caught.value)


@pytest.mark.parametrize(
    "text, bounds, message", OTHER_NUMBERS, ids=[row[2] for row in OTHER_NUMBERS]
)
def test_mismatched_bounds_are_rejected(text: str, bounds: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_mlir(text, **bounds)


def test_commands_accept_the_xla_attribute(capsys: pytest.CaptureFixture[str]) -> None:
    attribute = '#xla.indexing_map<"(d0) -> (d0 floordiv 16 + d0 mod 8), domain: d0 in [0, 7]">'
    assert run(["simplify", attribute]) == 0
    assert run(["compose", "(d0) -> (d0 + 1), domain: d0 in [0, 6]", attribute]) == 0
    assert run(["simplify", "affine_set<(d0) : (d0 >= 0, 7 - d0 >= 0)>"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "(d0) -> (d0), domain: d0 in [0, 7]",
        "(d0) -> (d0 + 1), domain: d0 in [0, 6]",
        "(d0) -> (), domain: d0 in [0, 7]",
    ]


def test_commands_reject_a_map_without_bounds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["simplify", "affine_map<(d0) -> (d0)>"]) == 1
    stderr = capsys.readouterr().err
    assert "`d0` has no lower bound" in stderr
    assert "(…) -> (…), domain: d0 in [0, 9]" in stderr


@pytest.mark.parametrize(
    ("options", "message", "help_line"),
    [
        ([], "`i`, `j`, `s` and `t` have no lower bound", "--dims 10,10 --symbols 10,10"),
        (["--symbols", "3,4"], "`i` and `j` have no lower bound", "--dims 10,10"),
        (["--dims", "3,4"], "`s` and `t` have no lower bound", "--symbols 10,10"),
    ],
)
def test_all_variables_without_bounds_are_named_with_the_options_that_repair(
    capsys: pytest.CaptureFixture[str], options: list[str], message: str, help_line: str
) -> None:
    text = "affine_map<(i, j)[s, t] -> (i mod 64, j + s + t)>"
    assert run(["simplify", text, *options]) == 1
    stderr = capsys.readouterr().err
    assert f"error[mlir-syntax]: {message}\n" in stderr
    assert f"({help_line} of `simplify`)" in stderr
    assert "domain: i in [0, 9], j in [0, 9], s in [0, 9], t in [0, 9]" in stderr
    assert run(["simplify", text, *options, *help_line.split()]) == 0  # the repair


def test_both_sides_without_bounds_are_named() -> None:
    with pytest.raises(HloError, match="`d1` has no lower bound; `d0` has no upper bound") as error:
        from_mlir("affine_set<(d0, d1) : (d0 >= 0, 9 >= d1)>")
    assert error.value.span.start == 12


def test_the_three_kinds_of_attributes_print() -> None:
    indexing_map = parse_map(LINE)
    assert indexing_map.to_mlir() == f'#xla.indexing_map<"{LINE}">'
    assert indexing_map.to_mlir("affine_map") == "affine_map<(d0)[s0, s1] -> (d0 * 2 + s0)>"
    assert indexing_map.to_mlir("affine_set") == (
        "affine_set<(d0)[s0, s1] : (d0 >= 0, -d0 + 9 >= 0, s0 >= 0, -s0 + 1 >= 0, "
        "s1 >= 0, -s1 + 3 >= 0, d0 + s1 - 1 >= 0, -d0 - s1 + 5 >= 0)>"
    )


def test_symbolic_bounds_become_constraints_for_xla() -> None:
    indexing_map = parse_map("(d0){n} -> (d0), domain: d0 in [0, n], n in [1, 4]")
    text = indexing_map.to_mlir()
    assert text.startswith(
        '#xla.indexing_map<"(d0){n} -> (d0), domain: d0 in [0, 4], n in [1, 4], '
    )
    assert meaning(from_mlir(text)) == meaning(indexing_map)


def test_names_invalid_in_xla_are_replaced() -> None:
    names = ["in", "other.rt0", "_d", "x0", "d0"]
    indexing_map = IndexingMap.of(
        [Variable(name, 0, k) for k, name in enumerate(names)],
        [Variable("in", 0, 0) + Variable("other.rt0", 0, 1) * 2 - Variable("x0", 0, 3)],
    )
    again = from_mlir(to_mlir(indexing_map))
    assert [v.name for v in again.dims] == ["x1", "x2", "x3", "x0", "d0"]
    assert meaning(again) == meaning(indexing_map)


@given(any_maps())
@fuzz(100)
def test_maps_round_trip_through_the_xla_attribute(indexing_map: IndexingMap) -> None:
    again = from_mlir(to_mlir(indexing_map))
    if indexing_map.is_known_empty:
        assert again.is_known_empty
    else:
        assert again == parse_map(str(indexing_map))


def bounds_of(indexing_map: IndexingMap) -> dict[str, Any]:
    return {
        "dims": [v.bounds for v in indexing_map.dims],
        "symbols": [v.bounds for v in indexing_map.ranges],
        "runtime": [rt.variable.bounds for rt in indexing_map.runtime],
    }


@given(any_maps())
@fuzz(100)
def test_maps_round_trip_through_affine_map_and_set(indexing_map: IndexingMap) -> None:
    results = from_mlir(to_affine_map(indexing_map), **bounds_of(indexing_map))
    everywhere = IndexingMap.of(
        indexing_map.dims,
        indexing_map.results,
        ranges=indexing_map.ranges,
        runtime=indexing_map.runtime,
    )
    assert meaning(results) == meaning(everywhere)
    domain = from_mlir(
        to_affine_set(indexing_map),
        runtime=bounds_of(indexing_map)["runtime"],
        symbols=bounds_of(indexing_map)["symbols"],
    )
    nothing = IndexingMap.of(
        indexing_map.dims,
        (),
        ranges=indexing_map.ranges,
        runtime=indexing_map.runtime,
        constraints=indexing_map.constraints,
    )
    inside = {tuple(p.values()) for p in points(domain.variables) if holds(domain.constraints, p)}
    expected = {
        tuple(p.values()) for p in points(nothing.variables) if holds(nothing.constraints, p)
    }
    assert inside == expected


# ---------------------------------------------------------------- against MLIR itself


@pytest.fixture
def mlir() -> Any:
    """jaxlib's MLIR bindings, in a context."""
    ir = pytest.importorskip("jaxlib.mlir.ir", reason="jaxlib comes with the extra [xla]")
    with ir.Context():
        yield ir


def mlir_values(ir: Any, text: str, at: list[int], dims: int) -> list[int]:
    """The results folded by MLIR for constant variables."""
    affine_map = ir.AffineMapAttr.parse(text).value
    for k, value in enumerate(at):
        inner = ir.AffineExpr.get_dim(k) if k < dims else ir.AffineExpr.get_symbol(k - dims)
        constant = ir.AffineExpr.get_constant(value)
        affine_map = affine_map.replace(inner, constant, affine_map.n_dims, affine_map.n_symbols)
    return [ir.AffineConstantExpr(result).value for result in affine_map.results]


def conditions(text: str) -> tuple[str, list[str]]:
    """The expressions of an MLIR set as a map, and their comparison operators."""
    signs = re.findall(r">=|==", text)
    text = text.replace("affine_set", "affine_map").replace(" : (", " -> (")
    return re.sub(r" (?:>=|==) 0", "", text), signs


@given(any_maps())
@fuzz(40)
def test_mlir_evaluates_printed_maps_to_the_same_values(indexing_map: IndexingMap) -> None:
    ir = pytest.importorskip("jaxlib.mlir.ir", reason="jaxlib comes with the extra [xla]")
    everywhere = [*points(indexing_map.variables)][
        :: max(1, len([*points(indexing_map.variables)]) // 12)
    ]
    with ir.Context():
        for point in everywhere:
            at = [*point.values()]
            values = mlir_values(ir, to_affine_map(indexing_map), at, len(indexing_map.dims))
            assert values == [result.value(point) for result in indexing_map.results]
            text, signs = conditions(str(ir.IntegerSetAttr.parse(to_affine_set(indexing_map))))
            compared = zip(mlir_values(ir, text, at, len(indexing_map.dims)), signs, strict=True)
            inside = all(value == 0 if sign == "==" else value >= 0 for value, sign in compared)
            assert inside == holds(indexing_map.constraints, point)


@given(st.data(), boxes(max_dims=3))
@fuzz(80)
def test_maps_printed_by_mlir_parse_to_the_same_values(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    """MLIR reprints fully parenthesised text with its own precedence and folding."""
    ir = pytest.importorskip("jaxlib.mlir.ir", reason="jaxlib comes with the extra [xla]")
    tree = data.draw(trees(len(box), leaves=6))
    names = [v.name for v in box]
    with ir.Context():
        text = f"affine_map<({', '.join(names)}) -> ({tree_text(tree, names)})>"
        attribute = ir.AffineMapAttr.parse(text)
        for given_object in (text, attribute, attribute.value, str(attribute)):
            parsed = from_mlir(given_object, dims=[v.bounds for v in box])
            for point in [*points(box)][:20]:
                at = [*point.values()]
                assert parsed.evaluate(at) == (tree_value(tree, at),)
                assert mlir_values(ir, text, at, len(box)) == [tree_value(tree, at)]


# fmt: off
SPELT = [
    "-d0 floordiv 2", "-d0 mod 3", "2 * -d0", "d0 - d0 mod 3 * 2", "d0 floordiv 2 floordiv 3 * 4", "d0 * 3 mod 4", "d0 + 1 mod 3",
    "- - d0", "-(d0 + 1) ceildiv 2", "d0 ceildiv 3 - d0 * -5", "3 - d0 - 2", "(d0 + 4) mod 5 floordiv 2", "-d0 ceildiv 4", "-3 * d0",
]
# fmt: on


@pytest.mark.parametrize("spelt", SPELT)
def test_operators_have_the_precedence_of_mlir(spelt: str, mlir: Any) -> None:
    text = f"affine_map<(d0) -> ({spelt})>"
    parsed = from_mlir(text, dims=[(-9, 9)])
    for value in range(-9, 10):
        assert list(parsed.evaluate([value]) or ()) == mlir_values(mlir, text, [value], 1)


SEMI_AFFINE = (
    "(d0, d1)[s0, s1] -> ({}), domain: d0 in [0, 9], d1 in [0, 9], s0 in [1, 4], s1 in [2, 3]"
)

# fmt: off
REPRESENTABLE = ["d0 * s0", "d0 floordiv s0", "d0 mod s1", "d0 * s0 * s1 + d1", "s0 * s1", "(d0 * s0 + d1) floordiv (s1 + 2)", "d0 ceildiv s1"]
NOT_REPRESENTABLE = ["d0 * d1", "s0 floordiv (d0 + 1)", "s1 mod (d0 + s0)", "min(d0, s0 + 3)", "max(d0, 4) floordiv 3", "(d0 floordiv 2) * d1"]
# fmt: on


@pytest.mark.parametrize("expr", REPRESENTABLE)
def test_symbols_multiply_and_divide(expr: str, mlir: Any) -> None:
    indexing_map = parse_map(SEMI_AFFINE.format(expr))
    text = to_affine_map(indexing_map)
    assert meaning(from_mlir(text, dims=[10, 10], symbols=[(1, 4), (2, 3)])) == meaning(
        indexing_map
    )
    for point in [*points(indexing_map.variables)][::7]:
        assert mlir_values(mlir, text, [*point.values()], 2) == [
            indexing_map.results[0].value(point)
        ]


@pytest.mark.parametrize("text", NOT_REPRESENTABLE)
def test_maps_that_are_not_semi_affine_are_rejected(text: str) -> None:
    indexing_map = parse_map(SEMI_AFFINE.format(text))
    with pytest.raises(ValueError, match="not representable in an affine map or set"):
        to_affine_map(indexing_map)
    in_domain = parse_map(SEMI_AFFINE.format("") + f", {text} in [1, 5]")
    with pytest.raises(ValueError, match="not representable in an affine map or set"):
        to_affine_set(in_domain)
    assert meaning(from_mlir(to_mlir(indexing_map))) == meaning(indexing_map)


def test_mlir_set_objects_parse(mlir: Any) -> None:
    d0, s0 = mlir.AffineExpr.get_dim(0), mlir.AffineExpr.get_symbol(0)
    box = mlir.IntegerSet.get(1, 1, [d0 - 1, s0 - d0, 3 - s0, s0], [False] * 4)
    parsed = from_mlir(box, dims=[9])
    assert [parsed.evaluate([d], [s]) is not None for d in range(4) for s in range(5)] == [
        0 < d <= s <= 3 for d in range(4) for s in range(5)
    ]
    assert from_mlir(mlir.IntegerSet.get_empty(1, 1)).is_empty()


def test_runtime_variables_are_the_last_symbols() -> None:
    start = RuntimeVariable(Variable("rt0", 0, 3), "start")
    indexing_map = IndexingMap.of(
        [Variable("d0", 0, 3)], [start.variable + Variable("d0", 0, 3)], runtime=[start]
    )
    assert to_affine_map(indexing_map) == "affine_map<(d0)[s0] -> (d0 + s0)>"

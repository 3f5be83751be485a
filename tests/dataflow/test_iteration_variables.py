"""Iteration variables ``i0, i1, …`` keep their kind wherever range variables are renamed."""

# ruff: noqa: E501 - a row of a table is one line

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo.shapes.shape import Shape
from indexing import IndexingMap, RuntimeVariable, parse_map
from indexing.maps.indexing_map import dims, ranges
from indexing.maps.multiplicity import multiplicity
from indexing.maps.over_approximation import over_approximate
from indexing.maps.products import unite_maps
from indexing.maps.regions.pieces import common_elements
from indexing.maps.spaces import is_iteration, iterations
from indexing.ops.inverse import inverses
from indexing.tiling.accesses import ArrayAccess, merge_access
from simplifier.atoms import Variable
from simplifier.unknown import require_known
from tests.oracles import fuzz, relation

PREFIX = "(d0, d1)[i0, s0] -> (i0, s0), domain: d0 in [0, 31], d1 in [0, 7], i0 in [0, 15], s0 in [0, 7], d0 - i0 in [0, 31]"

# fmt: off
SIMPLER = [
    ("both kinds in order of first use",        "(d0)[s0, i0, s1, i1] -> (i1, s1, i0, s0), domain: d0 in [0, 1], s0 in [0, 2], i0 in [0, 3], s1 in [0, 4], i1 in [0, 5]",
                                                "(d0)[i0, s0, i1, s1] -> (i0, s0, i1, s1), domain: d0 in [0, 1], i0 in [0, 5], s0 in [0, 4], i1 in [0, 3], s1 in [0, 2]"),
    ("each kind is numbered from 0",            "(d0)[i3, s7] -> (s7, i3), domain: d0 in [0, 1], i3 in [0, 2], s7 in [0, 4]",
                                                "(d0)[s0, i0] -> (s0, i0), domain: d0 in [0, 1], s0 in [0, 4], i0 in [0, 2]"),
    ("a name without a number is no iteration", "(d0)[i] -> (i), domain: d0 in [0, 1], i in [0, 2]",
                                                "(d0)[s0] -> (s0), domain: d0 in [0, 1], s0 in [0, 2]"),
    ("an unused iteration is dropped",          "(d0)[i0, i1] -> (i1), domain: d0 in [0, 1], i0 in [0, 2], i1 in [0, 3]",
                                                "(d0)[i0] -> (i0), domain: d0 in [0, 1], i0 in [0, 3]"),
    ("an equation replaces an iteration",       "(d0)[i0] -> (i0), domain: d0 in [0, 9], i0 in [2, 5], d0 - i0 in [0, 0]",
                                                "(d0) -> (d0), domain: d0 in [2, 5]"),
    ("a digit of an index is an iteration",     "(d0)[i0, s0] -> (s0, i0), domain: d0 in [0, 11], i0 in [0, 3], s0 in [0, 2], s0 * 4 + i0 - d0 in [0, 0]",
                                                "(d0) -> (d0 floordiv 4, d0 mod 4), domain: d0 in [0, 11]"),
    ("an equation keeps the iteration",         "()[i0, s0] -> (i0, s0), domain: i0 in [0, 9], s0 in [2, 5], s0 - i0 in [1, 1]",
                                                "()[i0] -> (i0, i0 + 1), domain: i0 in [1, 4]"),
    ("also if it comes second",                 "()[s0, i0] -> (s0, i0), domain: i0 in [0, 9], s0 in [2, 5], s0 - i0 in [1, 1]",
                                                "()[i0] -> (i0 + 1, i0), domain: i0 in [1, 4]"),
    ("a stride rescales an iteration",          "(d0)[i0] -> (d0, i0), domain: d0 in [0, 1], i0 in [0, 7], i0 mod 2 in [1, 1]",
                                                "(d0)[i0] -> (d0, i0 * 2 + 1), domain: d0 in [0, 1], i0 in [0, 3]"),
    ("iterations of nested loops are merged",   "(d0)[i0, i1] -> ((d0 + i0 * 4 + i1) floordiv 9), domain: d0 in [0, 1], i0 in [0, 2], i1 in [0, 3]",
                                                "(d0)[i0] -> ((d0 + i0) floordiv 9), domain: d0 in [0, 1], i0 in [0, 11]"),
    ("a box of both kinds is no iteration",     "()[i0, s0] -> (i0 * 4 + s0), domain: i0 in [0, 2], s0 in [0, 3]",
                                                "()[s0] -> (s0), domain: s0 in [0, 11]"),
]

STAYS = [
    PREFIX,
    "(d0)[i0] -> (i0), domain: d0 in [0, 9], i0 in [0, 9], d0 - i0 in [0, 9]",
    # the kinds are not merged
    "(d0)[i0, s0] -> ((d0 + i0 * 4 + s0) floordiv 9), domain: d0 in [0, 1], i0 in [0, 2], s0 in [0, 3]",
    "(d0)[s0, i0] -> ((d0 + i0 + s0 * 4) floordiv 9), domain: d0 in [0, 1], s0 in [0, 2], i0 in [0, 3]",
]
# fmt: on


@pytest.mark.parametrize("before, after", [r[1:] for r in SIMPLER], ids=[r[0] for r in SIMPLER])
def test_simplification_keeps_the_kind(before: str, after: str) -> None:
    simple = parse_map(before).simplify(certify=True)
    assert str(simple) == after
    assert relation(simple) == relation(parse_map(before))
    assert simple.simplify() == simple


@pytest.mark.parametrize("text", STAYS)
def test_simple_maps_stay(text: str) -> None:
    assert str(parse_map(text).simplify(certify=True)) == text


@pytest.mark.parametrize("text", [*STAYS, *[row[2] for row in SIMPLER]])
def test_texts_and_other_notations_round_trip(text: str) -> None:
    m = parse_map(text)
    assert str(m) == text
    assert parse_map(m.pretty()) == m
    assert IndexingMap.from_json(m.to_json()) == m
    assert IndexingMap.from_mlir(m.to_mlir()) == m
    assert IndexingMap.from_sympy(m.to_sympy()).ranges == m.ranges
    for v in m.ranges:
        assert rf"0 \le {v.name[0]}_{{{v.name[1:]}}} \le {v.upper}" in m.to_latex() or v.lower


def test_an_affine_map_has_symbols_instead() -> None:
    m = parse_map(PREFIX)
    assert m.to_mlir("affine_map") == "affine_map<(d0, d1)[s0, s1] -> (s0, s1)>"
    again = IndexingMap.from_mlir("affine_map<(d0)[i0] -> (d0 + i0)>", dims=(3,), symbols=(2,))
    assert again.ranges == iterations(2)


# ---------------------------------------------------------------- composition

# fmt: off
COMPOSED = [
    # first, second, first.then(second)
    ("(d0)[i0] -> (d0 + i0), domain: d0 in [0, 3], i0 in [0, 4]", "(d0)[i0] -> (d0 + i0 * 8), domain: d0 in [0, 7], i0 in [0, 2]",
     "(d0)[i0, i1] -> (d0 + i0 + i1 * 8), domain: d0 in [0, 3], i0 in [0, 4], i1 in [0, 2]"),
    ("(d0)[i0] -> (d0 + i0), domain: d0 in [0, 3], i0 in [0, 4]", "(d0)[s0] -> (d0 + s0 * 8), domain: d0 in [0, 7], s0 in [0, 2]",
     "(d0)[i0, s0] -> (d0 + i0 + s0 * 8), domain: d0 in [0, 3], i0 in [0, 4], s0 in [0, 2]"),
    ("(d0)[s0, i0] -> (d0 + i0 + s0), domain: d0 in [0, 3], s0 in [0, 1], i0 in [0, 3]", "(d0)[i0, s0] -> (d0 + s0, i0), domain: d0 in [0, 7], i0 in [0, 2], s0 in [0, 5]",
     "(d0)[s0, i0, i1, s1] -> (d0 + i0 + s0 + s1, i1), domain: d0 in [0, 3], s0 in [0, 1], i0 in [0, 3], i1 in [0, 2], s1 in [0, 5]"),
]
# fmt: on


@pytest.mark.parametrize("first, second, both", COMPOSED)
def test_composition_keeps_the_kind(first: str, second: str, both: str) -> None:
    assert str(parse_map(first).then(parse_map(second))) == both


KINDS = st.lists(st.sampled_from("is"), max_size=3)


@given(KINDS, KINDS)
@fuzz(30)
def test_random_kinds_are_kept(first: list[str], second: list[str]) -> None:
    """Each range variable is a result of its own size."""

    def with_results(kinds: list[str], size: int, passed: tuple[Variable, ...]) -> IndexingMap:
        free = [Variable(f"{kind}{k}", 0, size + k) for k, kind in enumerate(kinds)]
        return IndexingMap.of(passed, [*passed, *free], ranges=free)

    start = with_results(first, 10, dims((3,)))
    end = with_results(second, 20, dims([r.bounds[1] + 1 for r in start.results]))
    composite = start.then(end).simplify()
    kinds = ["i" if is_iteration(v) else "s" for v in composite.ranges]
    assert kinds == [*first, *second]
    assert [v.upper for v in composite.ranges] == [
        *range(10, 10 + len(first)),
        *range(20, 20 + len(second)),
    ]
    assert parse_map(str(composite)) == composite


def test_a_dimension_with_the_name_of_an_iteration_does_not_clash() -> None:
    (row,) = dims((4,))
    first = IndexingMap.of([row.renamed("i0")], [row.renamed("i0")])
    composite = first.then(IndexingMap.of(dims((4,)), iterations(5), ranges=iterations(5)))
    assert str(composite) == "(i0)[i1] -> (i1), domain: i0 in [0, 3], i1 in [0, 4]"
    assert composite.simplify() == composite


def test_an_index_of_a_source_names_the_iteration() -> None:
    d, (s,), (i,) = dims((4,)), ranges(3), iterations(5)
    row = RuntimeVariable(Variable("rt0", 0, 9), 1, (i.renamed("i3").as_expr(),), (0, 9))
    m = IndexingMap.of(d, [row.expr, s], ranges=[s, i.renamed("i3")], runtime=[row])
    simple = m.simplify()
    assert simple.ranges == (s, i)
    assert simple.runtime[0].index == (i.as_expr(),)


# ---------------------------------------------------------------- counts, inverses, unions


def test_multiplicity_counts_iterations() -> None:
    m = parse_map("(d0)[i3] -> (d0), domain: d0 in [0, 2], i3 in [0, 15]")
    assert str(m.simplify()) == "(d0) -> (d0), domain: d0 in [0, 2]"
    kept = m.simplify(keep_multiplicity=True)
    assert str(kept) == "(d0)[i0] -> (d0), domain: d0 in [0, 2], i0 in [0, 15]"
    counts = require_known(multiplicity([kept]))
    assert (counts.total, counts.maximum) == (48, 16)


def test_counted_digits_of_both_kinds_stay() -> None:
    text = "()[i0, s0] -> (i0 * 4 + s0), domain: i0 in [0, 2], s0 in [0, 3]"
    assert str(parse_map(text).simplify(keep_multiplicity=True)) == text


def test_an_inverse_keeps_the_iteration() -> None:
    reads = parse_map("(d0)[s0, i0] -> (s0), domain: d0 in [0, 3], s0 in [0, 6], i0 in [0, 4]")
    (writes,) = require_known(inverses(reads, Shape("f32", (7,))))
    assert str(writes) == "(d0)[s0, i0] -> (s0), domain: d0 in [0, 6], s0 in [0, 3], i0 in [0, 4]"


def test_common_elements_keep_the_iterations() -> None:
    every = parse_map("()[i0, s0] -> (i0, i0 + s0 * 5), domain: i0 in [0, 9], s0 in [0, 2]")
    odd = parse_map("()[s0, s1] -> (s0 + s1, s1), domain: s0 in [0, 9], s1 in [0, 3]")
    common = common_elements(every, odd)
    assert isinstance(common, IndexingMap)
    assert relation(common) == relation(every) & relation(odd)
    assert any(map(is_iteration, common.ranges))


@pytest.mark.parametrize(
    "high, low, kind", [("i0", "i1", "i"), ("i0", "s0", "s"), ("s0", "i0", "s"), ("s0", "s1", "s")]
)
def test_fused_ranges_are_iterations_if_both_are(high: str, low: str, kind: str) -> None:
    text = f"(d0)[{high}, {low}] -> (d0, {high} * 4 + {low}), domain: d0 in [0, 1], "
    m = parse_map(f"{text}{high} in [0, 2], {low} in [0, 3]")
    merged = merge_access(ArrayAccess("out", "in", m), {"out": (2,), "in": (2, 12)}, frozenset())
    assert merged is not None
    (both,) = merged.map.ranges
    assert (both.name[0], both.bounds) == (kind, (0, 11))


def test_unions_and_over_approximations_have_other_range_variables() -> None:
    """Their values are indices of elements, no iterations."""
    halves = [
        parse_map(f"(d0)[i0] -> (i0 * 2 + {k}), domain: d0 in [0, 9], i0 in [0, 4]") for k in (0, 1)
    ]
    assert [*map(str, unite_maps(halves))] == [
        "(d0)[s0] -> (s0), domain: d0 in [0, 9], s0 in [0, 9]"
    ]
    loose = over_approximate(parse_map(PREFIX))
    assert str(loose.simplify()) == (
        "(d0, d1)[s0, s1] -> (s0, s1), "
        "domain: d0 in [0, 31], d1 in [0, 7], s0 in [0, 15], s1 in [0, 7]"
    )

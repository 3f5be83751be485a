"""Exact queries in map simplification: their effect, their number and their budget."""

# ruff: noqa: E501 - a row of a table is one line

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
import indexing
import indexing.maps.simplify
import simplifier.refine
from hlo.shapes.shape import leaves
from indexing import IndexingMap, parse_map
from simplifier import exact
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from tests.oracles import boxes, fuzz, relation, sums, tree_expr, trees

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.hlo"))

# fmt: off
REFINED = [
    # case                                    before                                                                                                after
    ("a sum decides a floor (no query)",      "(d0)[s0] -> ((d0 + s0 + 1) floordiv 22), domain: d0 in [0, 20], s0 in [0, 20], d0 + s0 in [0, 20]",
                                              "(d0) -> (0), domain: d0 in [0, 20]", 0),
    ("two constraints decide a floor",        "(d0, d1) -> ((d0 + d1 * 2) floordiv 22), domain: d0 in [0, 20], d1 in [0, 20], d0 + d1 in [0, 9], d0 - d1 in [0, 9]",
                                              "(d0, d1) -> (0), domain: d0 in [0, 9], d1 in [0, 4], d0 - d1 in [0, 9], d0 + d1 in [0, 9]", 1),
    ("near miss: d0 = 5, d1 = 4 gives 13",    "(d0, d1) -> ((d0 + d1 * 2) floordiv 13), domain: d0 in [0, 20], d1 in [0, 20], d0 + d1 in [0, 9], d0 - d1 in [0, 9]",
                                              "(d0, d1) -> ((d0 + d1 * 2) floordiv 13), domain: d0 in [0, 9], d1 in [0, 4], d0 - d1 in [0, 9], d0 + d1 in [0, 9]", 1),
    ("divisible on the domain",               "(d0, d1) -> ((d0 + d1 * 3) floordiv 4), domain: d0 in [-9, 20], d1 in [-9, 20], d0 - d1 in [0, 9], (d0 - d1) mod 4 in [0, 0]",
                                              "(d0, d1) -> ((d0 + d1 * 3) floordiv 4), domain: d0 in [-9, 20], d1 in [-9, 20], d0 - d1 in [0, 8], (d0 - d1) mod 4 in [0, 0]", 0),
    ("an implied constraint is dropped",      "(d0, d1, d2) -> (d0), domain: d0 in [0, 9], d1 in [0, 9], d2 in [0, 9], d0 - d1 in [0, 9], d1 - d2 in [0, 9], d0 - d2 in [-3, 9]",
                                              "(d0, d1, d2) -> (d0), domain: d0 in [0, 9], d1 in [0, 9], d2 in [0, 9], d0 - d1 in [0, 9], d1 - d2 in [0, 9]", 1),
    ("near miss: 9, 0, 0 has 9 > 8",          "(d0, d1, d2) -> (d0), domain: d0 in [0, 9], d1 in [0, 9], d2 in [0, 9], d0 - d1 in [0, 9], d1 - d2 in [0, 9], d0 - d2 in [-3, 8]",
                                              "(d0, d1, d2) -> (d0), domain: d0 in [0, 9], d1 in [0, 9], d2 in [0, 9], d0 - d1 in [0, 9], d0 - d2 in [-3, 8], d1 - d2 in [0, 9]", 0),
    ("bounds that intervals cannot see",      "(d0, d1) -> (d0), domain: d0 in [-20, 20], d1 in [-20, 20], d0 + d1 in [5, 8], d0 - d1 in [5, 8]",
                                              "(d0, d1) -> (d0), domain: d0 in [5, 8], d1 in [-1, 1], d0 - d1 in [5, 8], d0 + d1 in [5, 8]", 1),
    ("no integer is between",                 "(d0, d1) -> (d0), domain: d0 in [-9, 9], d1 in [-9, 9], d0 * 6 + d1 * 10 in [-1, 1], d0 * 2 - d1 in [3, 4]",
                                              "KNOWN EMPTY", 1),
]
# fmt: on


def forget() -> None:
    """Clear all memoised maps and answers."""
    simplifier.refine._within_budget.cache_clear()
    simplifier.refine._is_empty.cache_clear()
    vars(indexing.maps.simplify._simplify_once)["__wrapped__"].cache_clear()


def simplified_and_queries(text: str) -> tuple[IndexingMap, IndexingMap, int]:
    """The map, its simplified form, and the number of queries."""
    forget()
    written = parse_map(text)
    before = exact.query_count()
    simple = written.simplify()
    return written, simple, exact.query_count() - before


@pytest.mark.parametrize(
    "before, after, expected_queries", [row[1:] for row in REFINED], ids=[row[0] for row in REFINED]
)
@pytest.mark.parametrize("points", [0, 1 << 16])
def test_exact_answers_simplify_further(
    before: str, after: str, expected_queries: int, points: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers of ISL, and of enumeration."""
    monkeypatch.setattr("simplifier.exact.points.MAX_AT_ONCE", points)
    written, simple, queries = simplified_and_queries(before)
    assert str(simple) == after
    assert (queries > 0) == (expected_queries > 0)
    assert written.simplify(certify=True) == simple
    assert relation(simple) == relation(written)


# fmt: off
FINISHED_BY_INTERVALS = [
    "(d0, d1) -> ((d0 * 7 + d1) floordiv 5, (d0 - d1) mod 6), domain: d0 in [-9, 9], d1 in [0, 30]",
    "(d0) -> (d0 floordiv 4), domain: d0 in [0, 99], d0 in [8, 11]",
    "(d0)[s0] -> (d0 + s0 - 1), domain: d0 in [0, 13], s0 in [0, 2], d0 + s0 in [1, 14]",
    "(d0, d1)[s0, s1] -> (d0 * 2 + s0 - 3, d1 + s1), domain: d0 in [0, 9], d1 in [0, 9], s0 in [0, 6], s1 in [0, 2], d0 * 2 + s0 in [3, 20], d1 + s1 in [0, 9]",
    "(d0) -> ((d0 - 1) floordiv 2), domain: d0 in [0, 35], (d0 + 1) mod 2 in [0, 0]",
    "(d0)[s0] -> (s0 floordiv 2), domain: d0 in [0, 9], s0 in [0, 9], (s0 + 1) mod 2 in [0, 0], d0 + s0 in [0, 9]",
    "(d0)[s0] -> (s0), domain: d0 in [0, 39], s0 in [0, 9], d0 - s0 * 4 in [0, 3]",
    "(d0){rt0} -> (d0 - rt0), domain: d0 in [0, 9], rt0 in [0, 7], d0 - rt0 in [0, 2]",
    "(d0)[s0, s1] -> (d0), domain: d0 in [0, 9], s0 in [0, 9], s1 in [0, 9], s0 * 2 + s1 in [3, 5]",
]
# fmt: on


@pytest.mark.parametrize("text", FINISHED_BY_INTERVALS)
def test_maps_decided_by_intervals_need_no_query(text: str) -> None:
    written, simple, queries = simplified_and_queries(text)
    assert queries == 0
    assert written.simplify(certify=True) == simple


@given(st.data(), boxes(max_dims=2), boxes(max_dims=2, prefix="s"))
@fuzz(100)
def test_a_map_without_constraints_needs_no_query(
    data: st.DataObject, d: tuple[Variable, ...], s: tuple[Variable, ...]
) -> None:
    results = [tree_expr(data.draw(trees(len(d + s), leaves=6)), d + s) for _ in range(2)]
    before = exact.query_count()
    IndexingMap.of(d, results, ranges=s).simplify()
    assert exact.query_count() == before


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_simplifying_the_examples_needs_no_query(path: Path) -> None:
    """The ops' own maps; those of a loop, and the values of starts, are closed with isl."""
    constrained = Counter[bool]()
    for instruction in hlo.load(path).instructions:
        if instruction.opcode == "while":
            continue
        for output in range(len(leaves(instruction.shape))):
            before = exact.query_count("tight_bounds")
            answer = indexing.output_to_input(instruction, output_id=output)
            if any(m.runtime for maps in answer.maps for m in maps):
                before = exact.query_count("tight_bounds")
            constrained.update(bool(m.simplify().constraints) for maps in answer.maps for m in maps)
            assert exact.query_count("tight_bounds") == before
    assert constrained.total() > 0


@st.composite
def coupled_maps(draw: st.DrawFn) -> IndexingMap:
    """Maps with equations, congruences and sums over dimensions and ranges, negatives included."""
    d, s = draw(boxes(max_dims=2)), draw(boxes(max_dims=2, prefix="s"))
    every = (*d, *s)
    constraints = []
    for _ in range(draw(st.integers(1, 3))):
        expr = tree_expr(draw(sums(len(every))), every)
        lower = draw(st.integers(-9, 9))
        width = draw(st.sampled_from([0, 0, 1, 3, 12]))
        modulus = draw(st.sampled_from([0, 0, 2, 3, 4, 6]))
        if modulus:
            lower, width, expr = lower % modulus, min(width, 1), expr % modulus
        constraints.append(Constraint(expr, lower, lower + width))
    results = [tree_expr(draw(trees(len(every), leaves=5)), every) for _ in range(2)]
    return IndexingMap.of(d, results, ranges=s, constraints=constraints)


@given(coupled_maps())
@fuzz(250)
def test_coupled_maps_keep_their_relation(written: IndexingMap) -> None:
    simple = written.simplify(certify=True)
    assert relation(simple) == relation(written)
    assert (str(simple) == "KNOWN EMPTY") == (not relation(written))
    assert simple.simplify() == simple


@given(coupled_maps())
@fuzz(250)
def test_keep_multiplicity_keeps_the_multiplicity(written: IndexingMap) -> None:
    simple = written.simplify(certify=True, keep_multiplicity=True)
    assert Counter(simple.points()) == Counter(written.points())


@given(coupled_maps())
@fuzz(100)
def test_a_map_beyond_the_budget_keeps_its_relation(written: IndexingMap) -> None:
    forget()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("simplifier.exact.points.MAX_AT_ONCE", 0)
        patch.setattr("simplifier.refine.BUDGET", 10)
        simple = written.simplify()
    assert (simple.is_empty()) == (not relation(written))
    forget()
    assert relation(simple) == relation(written)


def test_beyond_the_budget_an_empty_domain_does_not_become_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """s0 and s1 are unused, but have no values: 2·s0 = 4·s1 + 3 is unsatisfiable."""
    monkeypatch.setattr("simplifier.exact.points.MAX_AT_ONCE", 0)
    monkeypatch.setattr("simplifier.refine.BUDGET", 10)
    text = (
        "(d0)[s0, s1] -> (d0), domain: d0 in [0, 4], s0 in [0, 9], s1 in [0, 9], "
        "s0 * 2 - s1 * 4 + s0 mod 5 in [7, 7], s0 mod 5 - s1 in [2, 2]"
    )
    written, simple, queries = simplified_and_queries(text)
    assert queries > 0
    assert relation(written) == relation(simple) == set()
    monkeypatch.undo()
    assert str(simplified_and_queries(text)[1]) == "KNOWN EMPTY"


def test_an_expensive_query_ends_at_its_budget() -> None:
    """Sixteen constraints couple mods of four variables: the map is kept, the next is simplified."""
    names = [f"d{k}" for k in range(4)]
    mods = [
        f"(({a} * 7 + {b} * 5) mod 11 - ({a} * 3) mod 13) in [2, 3]" for a in names for b in names
    ]
    box = ", ".join(f"{name} in [0, 99]" for name in names)
    text = f"({', '.join(names)}) -> ((d0 + d1 * 3) floordiv 40), domain: {box}, {', '.join(mods)}"
    written, simple, queries = simplified_and_queries(text)
    assert queries > 0
    assert not simple.is_known_empty
    for at in ((0, 0, 0, 0), (5, 9, 2, 1), (98, 97, 3, 11), (99, 99, 99, 99)):
        assert simple.evaluate(at) == written.evaluate(at)
    assert simplified_and_queries(REFINED[1][1])[2] > 0

"""`simplify`, `drop_unused`, `rescale`: the same relation, proved by enumeration and by ISL."""

# ruff: noqa: E501 - a row of a table is one line

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexing.methods
from indexing import CertificateError, IndexingMap, RuntimeVariable, dims, parse_map, ranges
from indexing.maps.simplify import Rewrite
from indexing.maps.unused import drop_unused
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.trace import Applied
from tests.oracles import boxes, constraint_lists, fuzz, relation, tree_expr, trees

# fmt: off
SIMPLER = [
    # case                                    before                                                                             after
    ("a constraint becomes a bound",          "(d0) -> (d0), domain: d0 in [0, 9], d0 in [2, 20]",                               "(d0) -> (d0), domain: d0 in [2, 9]"),
    ("a floor in a constraint is undone",     "(d0) -> (d0), domain: d0 in [0, 9], d0 floordiv 4 in [1, 1]",                     "(d0) -> (d0), domain: d0 in [4, 7]"),
    ("bounds decide a floor",                 "(d0) -> (d0 floordiv 4), domain: d0 in [0, 9], d0 in [4, 7]",                     "(d0) -> (1), domain: d0 in [4, 7]"),
    ("a sum decides a floor",                 "(d0, d1) -> ((d0 + d1) floordiv 4), domain: d0 in [0, 9], d1 in [0, 9], d0 + d1 in [4, 7]",
                                              "(d0, d1) -> (1), domain: d0 in [0, 7], d1 in [0, 7], d0 + d1 in [4, 7]"),
    ("bounds follow from a sum",              "(d0, d1) -> (d0, d1), domain: d0 in [0, 9], d1 in [3, 9], d0 + d1 in [0, 5]",
                                              "(d0, d1) -> (d0, d1), domain: d0 in [0, 2], d1 in [3, 5], d0 + d1 in [3, 5]"),
    ("a negative constraint is negated",      "(d0, d1) -> (d0), domain: d0 in [0, 4], d1 in [0, 4], -d0 - d1 in [-5, -3]",
                                              "(d0, d1) -> (d0), domain: d0 in [0, 4], d1 in [0, 4], d0 + d1 in [3, 5]"),
    ("unused variables are dropped",          "(d0)[s0, s1, s2] -> (s1), domain: d0 in [0, 1], s0 in [0, 2], s1 in [0, 3], s2 in [0, 4]",
                                              "(d0)[s0] -> (s0), domain: d0 in [0, 1], s0 in [0, 3]"),
    ("variables are numbered by their use",   "(d0)[s0, s1] -> (s1, s0), domain: d0 in [0, 1], s0 in [0, 2], s1 in [0, 3]",
                                              "(d0)[s0, s1] -> (s0, s1), domain: d0 in [0, 1], s0 in [0, 3], s1 in [0, 2]"),
    ("a constraint that always holds is dropped", "(d0) -> (d0), domain: d0 in [0, 9], d0 mod 4 in [0, 3]",                          "(d0) -> (d0), domain: d0 in [0, 9]"),
    ("one value is a number",                 "(d0)[s0] -> (d0, s0 * 3), domain: d0 in [0, 9], s0 in [2, 2]",                    "(d0) -> (d0, 6), domain: d0 in [0, 9]"),
    ("an equation replaces a range",          "(d0)[s0] -> (s0), domain: d0 in [0, 9], s0 in [2, 5], d0 * 2 - s0 in [1, 1]",     "(d0) -> (d0 * 2 - 1), domain: d0 in [2, 3]"),
    ("a tile is found by division",           "(d0)[s0] -> (s0), domain: d0 in [0, 39], s0 in [0, 9], d0 - s0 * 4 in [0, 3]",    "(d0) -> (d0 floordiv 4), domain: d0 in [0, 39]"),
    ("digits are found one after the other",  "(d0)[s0, s1] -> (s0, s1), domain: d0 in [0, 11], s0 in [0, 2], s1 in [0, 3], s0 * 4 + s1 - d0 in [0, 0]",
                                              "(d0) -> (d0 floordiv 4, d0 mod 4), domain: d0 in [0, 11]"),
    ("equal dimensions are one",              "(d0, d1) -> ((d0 + d1) floordiv 2), domain: d0 in [0, 9], d1 in [3, 12], d0 - d1 in [0, 0]",
                                              "(d0, d1) -> (d1), domain: d0 in [3, 9], d1 in [3, 9], d0 - d1 in [0, 0]"),
    ("a stride rescales a range",             "(d0)[s0] -> (d0, s0 floordiv 2), domain: d0 in [0, 1], s0 in [-3, 7], (s0 + 1) mod 2 in [0, 0]",
                                              "(d0)[s0] -> (d0, s0), domain: d0 in [0, 1], s0 in [-2, 3]"),
    ("two strides are one",                   "()[s0] -> (s0), domain: s0 in [-9, 40], s0 mod 4 in [1, 1], s0 mod 6 in [3, 3]", "()[s0] -> (s0 * 12 + 9), domain: s0 in [-1, 2]"),
    ("a mixed radix is one range",            "(d0)[s0, s1] -> (d0, s0 * 4 + s1 + 2), domain: d0 in [0, 1], s0 in [0, 2], s1 in [0, 3]",
                                              "(d0)[s0] -> (d0, s0 + 2), domain: d0 in [0, 1], s0 in [0, 11]"),
    ("three digits are one range",            "()[s0, s1, s2] -> (s0 * -15 + s1 * 5 - s2), domain: s0 in [0, 1], s1 in [0, 2], s2 in [0, 4]",
                                              "()[s0] -> (-s0 + 10), domain: s0 in [0, 29]"),
    ("a window bounds the dimension",         "(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [0, 3], d0 + s0 in [5, 9]",         "(d0) -> (d0), domain: d0 in [2, 9]"),
    ("near miss: gap at 4",                   "(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [0, 1], d0 + s0 * 5 in [5, 8]",     "(d0) -> (d0), domain: d0 in [0, 8], d0 mod 5 in [0, 3]"),
    ("halves of odd numbers round down",      "(d0) -> ((d0 - 1) floordiv 2), domain: d0 in [1, 35], (d0 + 1) mod 2 in [0, 0]",  "(d0) -> (d0 floordiv 2), domain: d0 in [1, 35], d0 mod 2 in [1, 1]"),
    ("a satisfiable unused constraint is dropped", "(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [0, 5], s0 mod 4 in [1, 1]",        "(d0) -> (d0), domain: d0 in [0, 9]"),
]

STAYS = [
    "(d0) -> (d0), domain: d0 in [0, 8], d0 mod 5 in [0, 3]",
    "()[s0, s1] -> (s0 * 4 + s1), domain: s0 in [0, 2], s1 in [0, 2]",              # 3 is left out
    "(d0)[s0] -> (s0), domain: d0 in [0, 14], s0 in [0, 4], d0 - s0 * 3 in [0, 3]", # d0 = 3 has s0 = 0 and 1
    "(){rt0} -> (rt0), domain: rt0 in [1, 5], rt0 mod 4 in [1, 1]",                 # a value, not a counter
    "(d0)[s0] -> (s0), domain: d0 in [0, 9], s0 in [0, 9], d0 + s0 in [0, 9]",
    "(d0){rt0} -> (d0), domain: d0 in [0, 9], rt0 in [0, 3], d0 + rt0 in [0, 9]",
    "(d0) -> (d0 mod 4), domain: d0 in [0, 9]",
    "(d0) -> (d0), domain: d0 in [1, 9], d0 mod 4 in [1, 1]",
]

EMPTY = [
    "(d0) -> (d0), domain: d0 in [5, 2]",
    "(d0)[s0] -> (d0), domain: d0 in [0, 2], s0 in [3, 2]",
    "(d0) -> (d0), domain: d0 in [0, 9], d0 in [12, 20]",
    "(d0) -> (d0), domain: d0 in [0, 9], d0 * 4 in [5, 7]",
    "(d0, d1) -> (d0), domain: d0 in [0, 9], d1 in [0, 9], d0 + d1 in [3, 5], d0 + d1 in [7, 9]",
    "(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [0, 3], s0 mod 6 in [5, 5]",
    "(d0)[s0, s1] -> (d0), domain: d0 in [0, 9], s0 in [0, 9], s1 in [0, 9], s0 * 2 - s1 * 4 in [3, 3]",
    "(d0){rt0} -> (d0), domain: d0 in [0, 9], rt0 in [0, 3], rt0 in [7, 9]",
]
# fmt: on


@pytest.mark.parametrize("before, after", [r[1:] for r in SIMPLER], ids=[r[0] for r in SIMPLER])
def test_a_map_simplifies_to_the_expected_map(before: str, after: str) -> None:
    simple = parse_map(before).simplify(certify=True)
    assert str(simple) == after
    assert relation(simple) == relation(parse_map(before))
    assert simple.simplify() == simple


@pytest.mark.parametrize("text", STAYS)
def test_relevant_variables_and_constraints_are_kept(text: str) -> None:
    assert str(parse_map(text).simplify(certify=True)) == text


@pytest.mark.parametrize("text", EMPTY)
def test_an_empty_domain_stays_empty(text: str) -> None:
    simple = parse_map(text).simplify(certify=True)
    assert str(simple) == "KNOWN EMPTY"
    assert simple.is_empty()
    assert drop_unused(parse_map(text)).is_empty()
    assert [len(simple.dims), len(simple.results)] == [len(parse_map(text).dims), 1]


@pytest.mark.parametrize("text", [*STAYS, *[row[1] for row in SIMPLER]])
def test_a_domain_with_points_is_not_simplified_to_empty(text: str) -> None:
    assert not parse_map(text).simplify().is_empty()
    assert not drop_unused(parse_map(text)).is_empty()


@st.composite
def small_maps(draw: st.DrawFn) -> IndexingMap:
    """Up to two dimensions and two range variables, two results, three constraints."""
    d, s = draw(boxes(max_dims=2)), draw(boxes(max_dims=2, prefix="s"))
    every = (*d, *s)
    results = [tree_expr(draw(trees(len(every), leaves=5)), every) for _ in range(2)]
    return IndexingMap.of(d, results, ranges=s, constraints=draw(constraint_lists(every)))


@given(small_maps())
@fuzz(300)
def test_simplifying_keeps_the_relation(given_map: IndexingMap) -> None:
    simple = given_map.simplify(certify=True)
    assert relation(simple) == relation(given_map)
    assert simple.is_empty() == (not relation(given_map))


@given(small_maps())
@fuzz(200)
def test_simplifying_twice_is_simplifying_once(given_map: IndexingMap) -> None:
    simple = given_map.simplify()
    assert simple.simplify() == simple


@given(small_maps())
@fuzz(150)
def test_rescaling_and_dropping_unused_variables_keep_the_relation(given_map: IndexingMap) -> None:
    assert relation(drop_unused(given_map)) == relation(given_map)
    assert relation(given_map.rescale()) == relation(given_map)


# fmt: off
COUNTED = [
    # before                                                                          after, keeping multiplicity
    ("(d0)[s0, s1] -> (s1), domain: d0 in [0, 1], s0 in [0, 2], s1 in [0, 3]",        "(d0)[s0, s1] -> (s0), domain: d0 in [0, 1], s0 in [0, 3], s1 in [0, 2]"),
    ("(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [4, 4]",                          "(d0) -> (d0), domain: d0 in [0, 9]"),
    ("(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [0, 9], s0 - d0 in [0, 0]",       "(d0) -> (d0), domain: d0 in [0, 9]"),
    ("(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [0, 9], s0 mod 5 in [3, 3]",      "(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [0, 1]"),
    ("(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [0, 3], d0 + s0 in [5, 9]",       "(d0)[s0] -> (d0), domain: d0 in [2, 9], s0 in [0, 3], d0 + s0 in [5, 9]"),
    ("(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [0, 5], s0 mod 8 in [6, 7]",      "KNOWN EMPTY"),
]
# fmt: on


@pytest.mark.parametrize("before, after", COUNTED)
def test_keep_multiplicity_keeps_the_multiplicity(before: str, after: str) -> None:
    written = parse_map(before)
    simple = written.simplify(certify=True, keep_multiplicity=True)
    assert str(simple) == after
    assert Counter(simple.points()) == Counter(written.points())


@given(small_maps())
@fuzz(150)
def test_keep_multiplicity_keeps_any_multiplicity(given_map: IndexingMap) -> None:
    simple = given_map.simplify(certify=True, keep_multiplicity=True)
    assert Counter(simple.points()) == Counter(given_map.points())
    assert simple.simplify(keep_multiplicity=True) == simple


def test_cyclic_bounds_are_decided_in_one_step() -> None:
    """``d0 < d1 < d2 < d0`` in 1,001 values each has no point; small steps converge slowly."""
    chase = parse_map(
        "(d0, d1, d2) -> (d0), domain: d0 in [0, 1000], d1 in [0, 1000], d2 in [0, 1000], "
        "d0 - d1 in [-1000, -1], d1 - d2 in [-1000, -1], d2 - d0 in [-1000, -1]"
    )
    assert chase.is_empty()
    once = chase.simplify(certify=True)
    assert once.simplify() == once


# ---------------------------------------------------------------- certificates


def test_a_wrong_simplification_is_rejected_with_a_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = parse_map("(d0) -> (d0), domain: d0 in [0, 8]")
    monkeypatch.setattr(indexing.methods, "simplify_map", lambda *_: wrong)
    with pytest.raises(CertificateError, match="'d0': 9"):
        IndexingMap.identity((10,)).simplify(certify=True)


# ---------------------------------------------------------------- runtime variables


def test_runtime_variables_without_a_source_keep_their_names() -> None:
    """The name identifies a value without a source: no other variable gets it."""
    text = "(d0){a, b} -> (d0 + b), domain: d0 in [0, 3], a in [0, 5], b in [0, 7]"
    assert str(parse_map(text).simplify(certify=True)) == (
        "(d0){a, b} -> (b + d0), domain: d0 in [0, 3], a in [0, 5], b in [0, 7]"
    )
    swapped = "(d0){rt0, rt1} -> (rt1, rt0), domain: d0 in [0, 3], rt0 in [0, 5], rt1 in [0, 7]"
    assert str(parse_map(swapped).simplify(certify=True)) == swapped


def test_constraints_on_a_symbolic_size_are_kept() -> None:
    """The constraint leaves n = 2, even if it is the only use of n and becomes a bound."""
    first = parse_map("(d0){n} -> (d0), domain: d0 in [0, 3], n in [0, 5], n mod 5 in [2, 2]")
    simple = first.simplify(certify=True)
    assert str(simple) == "(d0){n} -> (d0), domain: d0 in [0, 3], n in [2, 2]"
    assert simple.simplify() == simple
    second = parse_map("(d0){n} -> (d0 + n), domain: d0 in [0, 3], n in [0, 5]")
    for start in (first, simple):
        together = start.then(second)
        for final in (together, together.simplify(certify=True)):
            values = [final.evaluate([1], runtime=[n]) for n in range(6)]
            assert values == [None, None, (3,), None, None, None]


def test_runtime_variables_with_a_source_keep_their_order() -> None:
    d = dims((4,))
    one, two, unused = (
        RuntimeVariable.start(k, 9, 9 - size, source=k) for k, size in enumerate((3, 5, 7))
    )
    simple = IndexingMap.of(d, [two.expr, one.expr], runtime=[unused, one, two]).simplify(
        certify=True
    )
    assert [(rt.name, rt.source) for rt in simple.runtime] == [("rt0", 0), ("rt1", 1)]


def test_a_runtime_variable_of_a_constraint_is_kept() -> None:
    """The elements read depend on its value, though no result does."""
    d = dims((9,))
    start = RuntimeVariable.start(0, 9, 5, source=1)
    written = IndexingMap.of(
        d, [d[0]], runtime=[start], constraints=[Constraint(d[0] - start.expr, 0, 4)]
    )
    simple = written.simplify(certify=True)
    assert [rt.source for rt in simple.runtime] == [1]
    assert relation(simple, [2]) == {((k,), (k,)) for k in range(2, 7)}


def test_a_range_variable_of_a_source_index_is_kept_and_renumbered() -> None:
    d, s = dims((4,)), ranges(3, 5)
    row = RuntimeVariable(Variable("rt0", 0, 9), 1, (d[0].as_expr(), s[1].as_expr()), (0, 9))
    simple = IndexingMap.of(d, [row.expr], ranges=s, runtime=[row]).simplify(certify=True)
    assert [v.bounds for v in simple.ranges] == [(0, 4)]
    assert [str(e) for e in simple.runtime[0].index] == ["d0", "s0"]


# ---------------------------------------------------------------- rescaling

# fmt: off
RESCALED = [
    ("()[s0] -> (s0), domain: s0 in [0, 7], s0 mod 4 in [1, 1]",     "()[s0] -> (s0 * 4 + 1), domain: s0 in [0, 1]"),
    ("()[s0] -> (s0), domain: s0 in [-5, 7], s0 mod 4 in [0, 0]",    "()[s0] -> (s0 * 4), domain: s0 in [-1, 1]"),
    ("()[s0] -> (s0), domain: s0 in [0, 7], (s0 + 1) mod 3 in [0, 0]", "()[s0] -> (s0 * 3 + 2), domain: s0 in [0, 1]"),
    ("()[s0] -> (s0), domain: s0 in [0, 7], (2 - s0) mod 3 in [1, 1]", "()[s0] -> (s0 * 3 + 1), domain: s0 in [0, 2]"),
    ("()[s0] -> (s0), domain: s0 in [3, 3]",                         "() -> (3)"),
    ("(d0)[s0] -> (s0), domain: d0 in [0, 1], s0 in [0, 40], s0 mod 4 in [1, 1], (s0 + d0) mod 3 in [0, 0]", "(d0)[s0] -> (s0 * 4 + 1), domain: d0 in [0, 1], s0 in [1, 8], (d0 + s0) mod 3 in [2, 2]"),
    ("()[s0] -> (s0), domain: s0 in [0, 7], s0 mod 4 in [1, 2]",     "()[s0] -> (s0), domain: s0 in [1, 6], s0 mod 4 in [1, 2]"),
]
# fmt: on


@pytest.mark.parametrize("before, after", RESCALED)
def test_a_strided_range_variable_is_rescaled(before: str, after: str) -> None:
    rescaled = parse_map(before).rescale()
    assert str(rescaled) == after
    assert relation(rescaled) == relation(parse_map(before))


# fmt: off
SHIFTED = [
    ("(d0)[s0] -> (d0 - s0, d0), domain: d0 in [0, 4], s0 in [-9, 8], d0 - s0 in [-1, 5]", "(d0)[s0] -> (s0 - 1, d0), domain: d0 in [0, 4], s0 in [0, 6]"),
    ("(d0)[s0, s1] -> (d0 + s0 + s1 - 8), domain: d0 in [0, 4], s0 in [0, 8], s1 in [0, 8], d0 + s0 in [4, 8], d0 + s0 + s1 in [8, 12]", "(d0)[s0] -> (s0), domain: d0 in [0, 4], s0 in [0, 4]"),
    ("(d0)[s0]{rt0} -> (d0 + s0 - 4), domain: d0 in [0, 4], s0 in [0, 7], rt0 in [0, 4], d0 + s0 in [4, 8], d0 - rt0 + s0 in [0, 3]", "(d0)[s0]{rt0} -> (s0), domain: d0 in [0, 4], s0 in [0, 3], rt0 in [1, 4], rt0 - s0 in [1, 4]"),
    ("(d0)[s0] -> (d0 + s0 - 1), domain: d0 in [0, 4], s0 in [0, 2], d0 + s0 in [1, 5]", "(d0)[s0] -> (d0 + s0 - 1), domain: d0 in [0, 4], s0 in [0, 2], d0 + s0 in [1, 5]"),
]
# fmt: on


@pytest.mark.parametrize("before, after", SHIFTED)
def test_a_window_that_reaches_all_rows_is_a_range(before: str, after: str) -> None:
    assert str(parse_map(before).simplify(certify=True)) == after


def test_a_trace_lists_each_effective_step() -> None:
    before = parse_map(
        "(d0)[s0, s1] -> (s1), domain: d0 in [0, 4], s0 in [0, 3], s1 in [0, 9], s1 * 2 in [0, 9]"
    )
    trace: list[Rewrite | Applied] = []
    simple = before.simplify(trace=trace)
    assert str(simple) == "(d0)[s0] -> (s0), domain: d0 in [0, 4], s0 in [0, 4]"
    steps = [step for step in trace if isinstance(step, Rewrite)]
    assert [step.law.split()[0] for step in steps] == ["tighten", "remove", "number"]
    assert steps[0].before is before
    assert steps[-1].after == simple
    assert all(a.after == b.before for a, b in pairwise(steps))
    assert [str(step) for step in trace if isinstance(step, Applied)] == [
        "divide a constraint by its common factor: s1 * 2 in [0, 9] <=> s1 in [0, 4]",
        "decide a constraint by bounds: s1 in [0, 4] <=> true",
        "drop unused variables: exists s0 in [0, 3] <=> true",
    ]
    quiet: list[Rewrite | Applied] = []
    simple.simplify(trace=quiet)
    assert quiet == []


def test_the_index_of_a_value_that_the_value_determines_is_kept() -> None:
    """``k[s0] = s0``: with the value in place of s0, the value would be its own index."""
    d0, s0 = Variable("d0", 0, 3), Variable("s0", 0, 5)
    first = RuntimeVariable(Variable("rt0", 0, 5), "k", (s0.as_expr(),), (0, 5))
    second = RuntimeVariable(Variable("rt1", 0, 5), "l", (first.expr,), (0, 5))
    for rt in (first, second):
        equal = Constraint(rt.expr - s0, 0, 0)
        runtime = [first, second]
        m = IndexingMap.of([d0], [s0 + d0], ranges=[s0], runtime=runtime, constraints=[equal])
        simple = m.simplify()
        assert len(simple.ranges) == 1
        assert simple.then(IndexingMap.identity((9,))).simplify() == simple


def test_a_value_determines_the_index_of_another_value() -> None:
    d0, s0 = Variable("d0", 0, 3), Variable("s0", 0, 5)
    first = RuntimeVariable(Variable("rt0", 0, 5), "k", (d0.as_expr(),), (0, 5))
    second = RuntimeVariable(Variable("rt1", 0, 5), "l", (s0.as_expr(),), (0, 5))
    equal = Constraint(first.expr - s0, 0, 0)
    runtime = [first, second]
    m = IndexingMap.of([d0], [second.expr], ranges=[s0], runtime=runtime, constraints=[equal])
    assert str(m.simplify()) == (
        "(d0){rt0, rt1} -> (rt1), domain: d0 in [0, 3], rt0 in [0, 5], rt1 in [0, 5]"
    )
    assert [str(rt.index[0]) for rt in m.simplify().runtime] == ["d0", "rt0"]

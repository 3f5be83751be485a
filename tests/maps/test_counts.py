"""Counts in closed form, compared with enumeration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexing
from indexing import IndexingMap, parse_map
from indexing.maps import counting
from indexing.maps.counts import closed, sums
from indexing.maps.counts.forms import Form, floors, simplest
from indexing.maps.counts.linear import chain_tally
from indexing.maps.counts.tally import Tally
from simplifier import exact
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr
from simplifier.unknown import Unknown, require_known
from tests.oracles import boxes, constraint_lists, fuzz, holds, points, tree_expr, trees
from tests.oracles import sums as linear_trees

Results = tuple[Expr, ...]


def enumerate_tally(form: Form) -> Tally:
    """The tally of a form, point by point."""
    counts = Counter(
        [
            tuple([result.value(at) for result in form.results])
            for at in points(form.variables)
            if holds(form.constraints, at)
        ]
    )
    return Tally.of(dict(Counter(counts.values())))


def tally_of(form: Form) -> Tally | None:
    closed.forget()
    return closed.closed_tally(*form)


def digits_of(form_box: Sequence[Variable], radices: Sequence[int]) -> Results:
    """Digits of the row-major position of a point, as a reshape has them."""
    line = as_expr(0)
    for v in form_box:
        line = line * (v.upper - v.lower + 1) + (v - v.lower)
    results: list[Expr] = []
    for radix in radices:
        results.append(line % radix)
        line = line // radix
    return (line, *results[::-1])


@st.composite
def forms(draw: st.DrawFn, constrained: bool = True) -> Form:
    """Sums, trees of divisions and digits over boxes with negative and single-point bounds."""
    box = draw(boxes(max_dims=4, empty=constrained))
    kind = st.one_of(linear_trees(len(box)), trees(len(box), leaves=3))
    results = tuple([tree_expr(tree, box) for tree in draw(st.lists(kind, max_size=3))])
    if draw(st.booleans()):
        every = digits_of(box, draw(st.lists(st.sampled_from([2, 3, 4, 6]), max_size=2)))
        chosen = draw(st.lists(st.sampled_from(range(len(every))), unique=True))
        factors = [draw(st.sampled_from([1, 1, 2, 3, -4])) for _ in chosen]
        digits = [every[k] * factor for k, factor in zip(chosen, factors, strict=True)]
        together = draw(st.booleans())
        results = (*results[:1], *([as_expr(0) + sum(digits)] if together else digits))
    constraints = draw(constraint_lists(box, max_count=2)) if constrained else ()
    return Form(box, results, tuple(constraints))


@fuzz(200)
@given(forms())
def test_tallies_agree_with_enumeration(form: Form) -> None:
    tally = tally_of(form)
    assert tally is None or tally == enumerate_tally(form)


@fuzz(300)
@given(forms())
def test_formulas_without_enumeration_agree_with_enumeration(form: Form) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(closed, "tally_of_sums", lambda form: None)
        patch.setattr(closed, "few_sums", lambda form: None)
        tally = tally_of(form)
    closed.forget()
    assert tally is None or tally == enumerate_tally(form)


@fuzz(150)
@given(forms())
def test_sums_agree_with_enumeration(form: Form) -> None:
    if all(not v.is_empty for v in form.variables):
        tally = sums.tally_of_sums(form)
        assert tally is None or tally == enumerate_tally(form)


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(-4, 4)), min_size=1, max_size=3))
def test_chains_agree_with_enumeration(sides: list[tuple[int, int]]) -> None:
    """Points of a box are the same if they differ by a multiple of a step."""
    sizes, step = zip(*sides, strict=True)
    if not any(step):
        return
    box = set(np.ndindex(*sizes))
    chains = Counter[tuple[int, ...]]()
    for start in box:
        while (before := tuple([i - z for i, z in zip(start, step, strict=True)])) in box:
            start = before
        chains[start] += 1
    assert chain_tally(sizes, step) == Tally.of(dict(Counter(chains.values())))


# fmt: off
WITHOUT_ENUMERATION = [
    # map                                                                          distinct, maximum
    ("(d0, d1) -> ((d0 * 1000 + d1) floordiv 1550, (d0 * 1000 + d1) mod 1550), "
     "domain: d0 in [0, 960], d1 in [0, 999]",                                     (961_000, 1)),
    ("(d0) -> (d0 mod 31000 floordiv 31, d0 floordiv 31000, d0 mod 31), "
     "domain: d0 in [0, 960999]",                                                  (961_000, 1)),
    ("(d0) -> (d0 mod 6 * 4 + d0 floordiv 6), domain: d0 in [0, 23]",              (24, 1)),
    ("(d0) -> (d0 floordiv 4), domain: d0 in [-3, 1000000]",                       (250_002, 4)),
    ("(d0) -> (d0 floordiv 4 mod 5), domain: d0 in [0, 999999]",                   (5, 200_000)),
    ("(d0)[s0] -> (d0 * 2 + s0), domain: d0 in [0, 1999999], s0 in [0, 2]",        (4_000_001, 2)),
    ("(d0, d1) -> (d0 * 6 - d1 * 4), domain: d0 in [0, 999999], d1 in [0, 9]",     (3_000_014, 4)),
    ("(d0)[s0] -> (d0 * 4 + s0), domain: d0 in [0, 1999999], s0 in [0, 1]",        (4_000_000, 1)),
    ("(d0, d1)[s0] -> (d0, d1 + s0, d0), "
     "domain: d0 in [0, 999999], d1 in [0, 9], s0 in [0, 4]",                      (14_000_000, 5)),
    ("(d0, d1)[s0] -> ((d0 + s0) * 64 + d1), "
     "domain: d0 in [0, 99999], d1 in [0, 63], s0 in [0, 2]",                      (6_400_128, 3)),
    ("(d0, d1) -> (d0), domain: d0 in [0, 9999999], d1 in [0, 6]",                 (10_000_000, 7)),
    ("(d0) -> (d0 floordiv 2), domain: d0 in [0, 9999999], d0 mod 2 in [1, 1]",    (5_000_000, 1)),
    ("(d0) -> (d0 floordiv 3), domain: d0 in [0, 9999999], d0 * 2 in [5, 5001]",   (833, 3)),
    ("(d0, d1) -> (d0, (d0 + d1) mod 4), domain: d0 in [0, 3], d1 in [0, -1]",     (0, 0)),
]
# fmt: on


@pytest.mark.parametrize(("text", "expected"), WITHOUT_ENUMERATION)
def test_closed_forms_need_neither_enumeration_nor_isl(
    text: str, expected: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closed, "tally_of_sums", lambda form: None)
    monkeypatch.setattr(closed, "few_sums", lambda form: None)
    closed.forget()
    m = parse_map(text)
    queries = exact.query_count()
    reads = require_known(m.multiplicity())
    assert (require_known(reads.distinct), reads.maximum) == expected
    assert reads.total == m.count_domain()
    assert m.count_image() == expected[0]
    assert exact.query_count() == queries


def test_formulas_of_large_forms_agree_with_those_of_small_ones() -> None:
    """The rows above, on smaller bounds."""
    for text, _ in WITHOUT_ENUMERATION:
        m = parse_map(text)
        small = [Variable(v.name, v.lower, min(v.upper, 24)) for v in m.variables]
        values = dict(zip(m.variables, [v.as_expr() for v in small], strict=True))
        form = Form(m.variables, m.results, m.constraints).with_values(values, small)
        assert tally_of(form) == enumerate_tally(form), text


SIZES = [(961, 1000), (31, 31_000), (620, 1550), (25, 38_440), (1240, 775), (961, 1000)]


def position(d: Sequence[Variable], shape: Sequence[int]) -> Expr:
    line = as_expr(0)
    for v, size in zip(d, shape, strict=True):
        line = line * size + v
    return line


def reshapes() -> list[IndexingMap]:
    return [
        IndexingMap.over(a, lambda d, a=a, b=b: [position(d, a) // b[1], position(d, a) % b[1]])
        for a, b in pairwise(SIZES)
    ]


def test_reshapes_and_their_chains_have_a_closed_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """961,000 elements through five shapes, with few changes of variables."""
    monkeypatch.setattr(closed, "tally_of_sums", lambda form: None)
    forms: list[Form] = []

    def record(form: Form) -> Form | None:
        forms.append(form)
        return simplest(form)

    monkeypatch.setattr(closed, "simplest", record)
    closed.forget()
    chain = IndexingMap.identity(SIZES[0])
    for step in reshapes():
        chain = chain.then(step)
        assert chain.count_image() == step.count_image() == 961_000
        assert require_known(step.multiplicity()).histogram() == {1: 961_000}
        assert len(forms) <= 20
        forms.clear()
    queries = exact.query_count()
    assert chain.count_image() == 961_000
    assert not forms  # memoised
    assert exact.query_count() == queries


def test_two_digits_replace_a_variable_and_one_number_replaces_two() -> None:
    d0, d1 = Variable("d0", 0, 7), Variable("d1", 0, 14)
    assert len(floors(Form((d0, d1), ((d0 * 15 + d1) // 20, d1 // 3), ()))) == 2


def test_the_budget_of_changes_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closed, "tally_of_sums", lambda form: None)
    monkeypatch.setattr(closed, "MAX_ATOMS", 3)
    form = Form((v := Variable("d0", 0, 99),), (v // 4, v % 4), ())
    assert tally_of(form) is None
    monkeypatch.setattr(closed, "MAX_ATOMS", 100)
    assert tally_of(form) == Tally.of({1: 100})
    closed.forget()


def test_many_different_read_counts_have_no_histogram() -> None:
    m = parse_map("(d0, d1) -> (d0 + d1), domain: d0 in [0, 999999], d1 in [0, 999999]")
    reads = require_known(m.multiplicity())
    assert (reads.total, reads.distinct, reads.maximum) == (10**12, 1_999_999, 10**6)
    histogram = reads.histogram()
    assert isinstance(histogram, Unknown)
    assert "different read counts" in histogram.reason


@fuzz(100)
@given(st.data(), boxes(max_dims=3))
def test_images_of_unions_agree_with_enumeration(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    maps: list[IndexingMap] = []
    for _ in range(data.draw(st.integers(0, 3))):
        results = [
            tree_expr(data.draw(linear_trees(len(box))), box) + data.draw(st.integers(-9, 9))
        ]
        constraints = data.draw(constraint_lists(box, max_count=1))
        maps.append(IndexingMap.of(box, results, constraints=constraints))
    expected = {results for m in maps for _, results in m.points()}
    assert indexing.maps.count_image(maps) == len(expected)
    domains = sum(len(list(m.points())) for m in maps)
    assert indexing.maps.count_domain(maps) == domains


def test_counts_over_a_tile() -> None:
    """The counts of a restricted map, of its region and of its points are those of the tile."""
    window = IndexingMap.over(
        (1024, 1024), lambda d, s: [d[0] * 2 + s[0], d[1] * 2 + s[1]], ranges=(3, 3)
    )
    tile = window.restrict(d0=slice(8, 40), d1=slice(0, 16))
    assert tile.count_domain() == 32 * 16 * 9
    assert tile.count_image() == 65 * 33
    assert window.at(slice(8, 40), slice(0, 16)).count() == 65 * 33
    histogram = require_known(require_known(tile.multiplicity()).histogram())
    assert sum(times * count for times, count in histogram.items()) == 32 * 16 * 9
    assert sum(histogram.values()) == 65 * 33


def test_regions_without_boxes_have_closed_counts() -> None:
    skewed = IndexingMap.over((10**6, 10**6), lambda d: [d[0] + d[1] * 3, d[0] - d[1]])
    region = skewed.at(..., ...)
    assert region.boxes() is None
    assert region.count() == 10**12


def test_counts_beyond_all_budgets_are_unknown() -> None:
    m = parse_map(
        "(d0, d1, d2) -> (d0 * d1 + d2), domain: d0 in [0, 9999], d1 in [0, 9999], d2 in [0, 99]"
    )
    answer = m.count_image()
    assert isinstance(answer, Unknown)
    assert "cannot count the distinct results" in answer.reason
    assert m.count_domain() == prod((10**4, 10**4, 100))
    assert isinstance(require_known(m.multiplicity()).maximum, Unknown)
    assert counting.MAX_POINTS < 10**10


def test_constraints_on_sums_select_their_values() -> None:
    """A convolution with padding: 14 · 3 - 2 reads of each line."""
    d0, s0 = Variable("d0", 0, 13), Variable("s0", 0, 2)
    form = Form((d0, s0), (d0 + s0 - 1,), (Constraint(d0 + s0, 1, 14),))
    assert tally_of(form) == enumerate_tally(form) == Tally.of({2: 2, 3: 12})

"""Read counts of maps of all forms: minima, maxima, products, quotients, empty domains, rank 0."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from hlo import HloError
from indexing import IndexingMap, parse_map
from indexing.maps import counting
from indexing.maps.multiplicity import Multiplicity, multiplicity
from simplifier.unknown import Unknown
from tests.oracles import fuzz

NAMES = ["d0", "d1", "s0", "s1"]


def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions over `inner`: also divisors that may be 0."""
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner),
        st.builds("({} {} {})".format, inner, st.sampled_from(["floordiv", "mod"]), inner),
        st.builds("({} {} {})".format, inner, st.just("mod"), st.integers(1, 5)),
        st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), inner, inner),
    )


EXPRS = st.recursive(
    st.one_of(st.sampled_from(NAMES), st.integers(-3, 5).map(str)), extend, max_leaves=5
)
BOUNDS = st.integers(-4, 4).flatmap(lambda low: st.tuples(st.just(low), st.integers(low, low + 6)))


@st.composite
def map_texts(draw: st.DrawFn) -> str:
    """Maps of two dimensions and two range variables with up to three constraints."""
    results = draw(st.lists(EXPRS, max_size=3))
    parts = [f"{name} in [0, {draw(st.integers(-1, 4))}]" for name in NAMES]
    for expr in draw(st.lists(EXPRS, max_size=3)):
        low, high = draw(BOUNDS)
        parts.append(f"{expr} in [{low}, {high}]")
    return f"(d0, d1)[s0, s1] -> ({', '.join(results)}), domain: {', '.join(parts)}"


def enumerate_reads(m: IndexingMap) -> Counter[tuple[int, ...]]:
    """The read count of each element; a point that divides by 0 reads nothing."""
    counts: Counter[tuple[int, ...]] = Counter()
    for point in product(*[range(v.lower, v.upper + 1) for v in (*m.dims, *m.ranges)]):
        result = m.evaluate(point[: len(m.dims)], point[len(m.dims) :])
        if result is not None:
            counts[result] += 1
    return counts


def check(m: IndexingMap) -> None:
    reads, expected = multiplicity(m), enumerate_reads(m)
    assert isinstance(reads, Multiplicity), reads
    assert reads.total == m.count_domain() == expected.total()
    assert reads.distinct == len(expected)
    assert reads.maximum == max(expected.values(), default=0)
    assert reads.histogram() == dict(sorted(Counter(expected.values()).items()))
    for element in [*expected][:10]:
        assert reads.at(element) == expected[element]
    sizes = tuple([4] * len(m.results))
    counts: Any = reads.counts(sizes)
    for element in np.ndindex(*sizes):
        assert counts[element] == expected[element]


@fuzz(150)
@given(map_texts())
def test_all_forms_agree_with_enumeration(text: str) -> None:
    try:
        m = parse_map(text)
    except (HloError, ValueError):  # a divisor is the constant 0
        reject()
    check(m)


FORMS = [
    "(d0)[s0] -> (max(d0 * 3 - s0, 0) floordiv 2), domain: d0 in [0, 9], s0 in [0, 2]",
    "(d0, d1) -> (min(d0, d1), max(d0, d1, 2)), domain: d0 in [0, 4], d1 in [0, 6]",
    "(d0, d1) -> (d0), domain: d0 in [0, 4], d1 in [0, 6], min(d0, d1) in [1, 3]",
    "(d0, d1) -> (d0 floordiv d1), domain: d0 in [0, 3], d1 in [0, 3]",
    "(d0, d1) -> (d0 mod d1, d1), domain: d0 in [0, 3], d1 in [-2, 3], d0 + d1 in [0, 4]",
    "(d0, d1) -> (d0 floordiv (d1 floordiv d0)), domain: d0 in [0, 3], d1 in [0, 7]",
    "(d0, d1) -> (((d0 * d1) floordiv 3) mod 4), domain: d0 in [0, 7], d1 in [0, 5]",
    "() -> ()",
    "() -> (3)",
    "(d0) -> (), domain: d0 in [0, 5]",
    "(d0) -> (), domain: d0 in [0, 5], d0 * 2 in [3, 3]",
    "(d0) -> (d0), domain: d0 in [0, -1]",
    "(d0) -> (max(d0, 3)), domain: d0 in [0, -1]",
    # values beyond 64 bits: products, sums, and intermediate values
    "(d0) -> (d0 * 100000000000000000000000), domain: d0 in [0, 3]",
    "(d0) -> ((d0 * 9223372036854775807) floordiv 4611686018427387904), domain: d0 in [0, 3]",
    f"(d0) -> (d0 mod 2), domain: d0 in [0, 3], d0 * {2**63 - 1} in [0, {2**63}]",
    f"(d0) -> (({' * '.join(['d0'] * 19)}) mod 7), domain: d0 in [0, 100]",
    "(d0, d1) -> (min(d0 * 10000000000, d1) * 10000000000), domain: d0 in [0, 3], d1 in [0, 9]",
]


@pytest.mark.parametrize("text", FORMS)
def test_counts_of_special_forms(text: str) -> None:
    check(parse_map(text))


def test_elements_beyond_64_bits() -> None:
    reads = multiplicity(parse_map(FORMS[13]))
    assert isinstance(reads, Multiplicity)
    assert [reads.at((k * 10**23,)) for k in (-1, 0, 3, 4)] == [0, 1, 1, 0]
    small = multiplicity(parse_map("(d0) -> (d0), domain: d0 in [0, 3]"))
    assert isinstance(small, Multiplicity)
    assert small.at((10**23,)) == 0


@pytest.mark.parametrize("factor", [1, 10**20])
def test_points_beyond_the_budget_are_unknown(factor: int) -> None:
    budget = counting.MAX_POINTS if factor == 1 else counting.MAX_LARGE_POINTS
    text = f"(d0, d1) -> (max(d0 * {factor}, d1)), domain: d0 in [0, {budget}], d1 in [0, 1]"
    reads = multiplicity(parse_map(text))
    assert isinstance(reads, Multiplicity)
    assert reads.total == 2 * budget + 2
    for answer in (reads.distinct, reads.maximum, reads.histogram(), reads.at((0,))):
        assert isinstance(answer, Unknown)
        assert f"more than the budget of {budget}" in answer.reason

"""Counts as formulas of symbolic sizes, compared with enumeration for many sizes."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexing
from indexing import IndexingMap, parse_map
from indexing.maps.counts.symbolic import SymbolicCounts, symbolic_counts, tile_counts
from simplifier import Variable, variable
from simplifier.linear import as_expr
from simplifier.unknown import Unknown, require_known
from tests.oracles import fuzz, scale

n, m = variable("n", 1, 12), variable("m", 2, 9)


def expected_counts(instances: Counter[tuple[int, ...]]) -> tuple[int, int, int]:
    return instances.total(), len(instances), max(instances.values())


def reads(m: IndexingMap, runtime: dict[str, int], inside: Any = None) -> Counter[tuple[int, ...]]:
    """The read count of each result, by enumeration."""
    counts = Counter[tuple[int, ...]]()
    boxes = [range(v.lower, v.upper + 1) for v in (*m.dims, *m.ranges)]
    values = [runtime.get(rt.name, rt.variable.lower) for rt in m.runtime]
    for point in product(*boxes):
        dims, ranges = point[: len(m.dims)], point[len(m.dims) :]
        results = m.evaluate(dims, ranges, values)
        if results is not None and (inside is None or inside(dims)):
            counts[results] += 1
    return counts


def check(formulas: SymbolicCounts, sizes: dict[str, int], counts: Counter[tuple[int, ...]]) -> int:
    """Compare the formulas that are known; return their number."""
    answers = formulas.at(**{v.name: sizes[v.name] for v in formulas.parameters})
    pairs = [
        p
        for p in zip(answers, expected_counts(counts), strict=True)
        if not isinstance(p[0], Unknown)
    ]
    assert [a for a, _ in pairs] == [b for _, b in pairs], (str(formulas), sizes)
    return len(pairs)


# fmt: off
FORMS = [
    # extents        results                                               ranges  formulas
    ((n, 8),         lambda d, s: [d[0] * 2 + s[0], d[1]],                  (3,),   3),
    ((n * 2, 6),     lambda d, s: [d[0] // 2, d[0] % 2 * 6 + d[1]],         (),     3),
    ((n * 2, 6),     lambda d, s: [(d[0] * 6 + d[1]) // 12, d[1] % 3],      (),     3),
    ((n, 4),         lambda d, s: [d[0] * 4 + d[1]],                        (),     3),
    ((n, m),         lambda d, s: [d[0] + d[1]],                            (),     3),
    ((n, m),         lambda d, s: [d[0] * 3 - d[1] * 2],                    (),     3),
    ((n, m),         lambda d, s: [d[1], d[0], d[1] + d[0]],                (),     3),
    ((n, m, 3),      lambda d, s: [d[1] * 3 + d[2]],                        (),     3),
    ((n, 3),         lambda d, s: [d[0] + d[1] + s[0]],                     (4,),   2),
    ((n, 3),         lambda d, s: [d[0] * 2 + d[1] * 4 + s[0]],             (2,),   3),
    ((n, 3),         lambda d, s: [d[0] * 7 + d[1] * 4 + s[0]],             (2,),   1),
    ((n * 4 + 8,),   lambda d, s: [d[0] // 4, d[0] % 2],                    (),     3),
    ((n * 6, 5),     lambda d, s: [(d[0] * 5 + d[1]) // 10, (d[0] * 5 + d[1]) % 10], (), 3),
]
# fmt: on


@pytest.mark.parametrize(("extents", "results", "ranges", "count"), FORMS)
def test_formulas_agree_with_enumeration_for_all_sizes(
    extents: Any, results: Any, ranges: tuple[int, ...], count: int
) -> None:
    symbolic = IndexingMap.over(extents, results, ranges=ranges)
    formulas = symbolic_counts(symbolic)
    assert isinstance(formulas, SymbolicCounts), formulas
    for values in product(range(1, 7), range(2, 6)):
        sizes = dict(zip("nm", values, strict=True))
        counts = reads(symbolic, sizes)
        assert check(formulas, sizes, counts) == count


COUPLED = "(d0, d1) -> (d0), domain: d0 in [0, 9], d1 in [0, 9], d0 + d1 in [0, 9]"
PRODUCT = "(d0)[s0]{rt0} -> (rt0 * s0), domain: d0 in [0, 9], s0 in [0, 3], rt0 in [0, 4]"
# fmt: off
REFUSED = [
    # map                                                               reason
    (IndexingMap.over((n,), lambda d: [d[0] // 2]),                     "division"),
    (IndexingMap.over((n - 1,), lambda d: [d[0]]),                      "less than 1"),
    (IndexingMap.over((n, 4), lambda d: [(d[0] + d[1]) // 4]),          "division"),
    (parse_map(COUPLED),                                                "not a bound"),
    (parse_map(PRODUCT),                                                "not affine"),
    (IndexingMap.empty((Variable("d0", 0, 3),), 1),                     "no points"),
]
# fmt: on


@pytest.mark.parametrize(("symbolic", "reason"), REFUSED)
def test_forms_without_a_formula_are_unknown(symbolic: IndexingMap, reason: str) -> None:
    answer = symbolic_counts(symbolic)
    assert isinstance(answer, Unknown)
    assert reason in answer.reason


def test_a_translation_by_a_runtime_value_does_not_affect_counts() -> None:
    window = parse_map("(d0){rt0} -> (d0 * 2 + rt0), domain: d0 in [0, 4], rt0 in [0, 7]")
    assert str(symbolic_counts(window)) == "total 5, distinct 5, maximum 1"


@fuzz(60)
@given(st.data())
def test_random_sums_and_digits_agree_with_enumeration(data: st.DataObject) -> None:
    """Of extents with and without symbols, aligned and unaligned digits."""
    extents: list[Any] = data.draw(
        st.lists(
            st.sampled_from([n, m, n * 2, n * 6, n * 2 + 4, 2, 3, 4, 6]), min_size=1, max_size=3
        )
    )
    factor = st.integers(-4, 6)
    factors = data.draw(st.lists(st.lists(factor, min_size=4, max_size=4), min_size=1, max_size=2))
    digits = data.draw(st.lists(st.sampled_from([1, 2, 3, 6]), min_size=2, max_size=2))

    def results(d: tuple[Variable, ...], s: tuple[Variable, ...]) -> list[Any]:
        lines = [
            sum([v * c for v, c in zip((*d, *s), own, strict=False)], as_expr(own[3]))
            for own in factors
        ]
        return [line // digits[0] % digits[1] if digits[1] > 1 else line for line in lines] + [
            d[0] // digits[0]
        ]

    symbolic = IndexingMap.over(extents, results, ranges=(2,))
    formulas = symbolic_counts(symbolic)
    if isinstance(formulas, Unknown):
        return
    for values in product((1, 2, 3), (2, 3)):
        sizes = dict(zip("nm", values, strict=True))
        assert check(formulas, sizes, reads(symbolic, sizes)) >= 1


# fmt: off
TILED = [
    IndexingMap.over((7, 9), lambda d, s: [d[0] + s[0], d[1] + s[1]], ranges=(3, 5)),
    IndexingMap.over((7, 9), lambda d: [d[1], d[0]]),
    IndexingMap.over((7, 9), lambda d: [d[0] * 9 + d[1]]),
    IndexingMap.over((7, 9), lambda d: [d[0] + d[1] * 2]),
    IndexingMap.over((7, 9), lambda d, s: [d[1], s[0] // 2], ranges=(6,)),
    IndexingMap.over((8, 1, 3), lambda d: [d[0], 0, 4 - d[2]]),
]
# fmt: on


@pytest.mark.parametrize("m", TILED, ids=str)
def test_counts_of_tiles_agree_with_enumeration_at_all_positions(m: IndexingMap) -> None:
    formulas = tile_counts(m)
    assert isinstance(formulas, SymbolicCounts), formulas
    sizes = [v.upper + 1 for v in m.dims]
    for tile in list(product(*[range(1, size + 1) for size in sizes]))[:: scale(5) or 1]:
        for corner in {(0,) * len(tile), tuple(a - b for a, b in zip(sizes, tile, strict=True))}:
            ends = [range(a, a + t) for a, t in zip(corner, tile, strict=True)]
            counts = reads(m, {}, lambda d, e=ends: all(i in r for i, r in zip(d, e, strict=True)))
            named = {f"ts_{k}": t for k, t in enumerate(tile)}
            assert check(formulas, named, counts) == 3


def test_tiles_whose_counts_depend_on_the_position_are_unknown() -> None:
    rows = IndexingMap.over((48,), lambda d: [d[0] // 6])
    answer = tile_counts(rows)
    assert isinstance(answer, Unknown)
    assert "division" in answer.reason
    padded = parse_map(
        "(d0)[s0] -> (d0 + s0), domain: d0 in [0, 9], s0 in [0, 2], d0 + s0 in [1, 9]"
    )
    assert "depends on the position" in str(tile_counts(padded))


def test_values_of_parameters_are_checked() -> None:
    formulas = require_known(indexing.symbolic_counts(IndexingMap.over((n, m), lambda d: [d[0]])))
    assert formulas.at(n=3, m=4) == (12, 3, 4)
    with pytest.raises(TypeError, match="expected values of m, n"):
        formulas.at(n=3)
    with pytest.raises(ValueError, match="m = 1 is outside"):
        formulas.at(n=3, m=1)

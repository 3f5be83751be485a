"""Formulas that are closed where they are read at other indices, instead of copied."""

from __future__ import annotations

import pytest

import hlo
from indexing.equivalence.values import engine
from indexing.equivalence.values.engine import SharedFormulas, compare_values
from indexing.equivalence.values.formulas import elements
from indexing.equivalence.values.results import EqualFormulas
from indexing.equivalence.values.terms.terms import FormulaTable
from tests.equivalence.test_value_loops import PAIRS
from tests.equivalence.test_value_mutants import decided_mutants
from tests.equivalence.test_values import DIFFERENT, EQUAL, program
from tests.growth.work import calls_of


def scan(size: int, *, copies: bool = False, start: int = 2) -> hlo.Computation:
    """A cumulative sum by pairs, as `jax.lax.associative_scan` writes it.

    Args:
        copies: a dynamic slice copies the parameter, so that no array has the same value number.
        start: the first element of the largest array that is added to a sum of pairs.
    """
    source = f"dynamic-slice(x, o), dynamic_slice_sizes={{{size}}}" if copies else "copy(x)"
    lines = [f"x = f32[{size}] parameter(0)  z = f32[] constant(0)  o = s32[] constant(0)",
             f"a{size} = f32[{size}] {source}"]  # fmt: skip
    n = size
    while n > 1:
        half = n // 2
        lines += [
            f"e{n} = f32[{half}] slice(a{n}), slice={{[0:{n - 1}:2]}}",
            f"o{n} = f32[{half}] slice(a{n}), slice={{[1:{n}:2]}}",
            f"a{half} = f32[{half}] add(e{n}, o{n})",
        ]
        n = half
    lines.append("s1 = f32[1] copy(a1)")
    while n < size:
        double, first = 2 * n, start if 2 * n == size else 2
        lines += [
            f"h{double} = f32[1] slice(a{double}), slice={{[0:1]}}",
            *([] if n == 1 else [
                f"l{double} = f32[{n - 1}] slice(s{n}), slice={{[0:{n - 1}]}}",
                f"r{double} = f32[{n - 1}] slice(a{double}), "
                f"slice={{[{first}:{first + 2 * n - 3}:2]}}",
                f"m{double} = f32[{n - 1}] add(l{double}, r{double})",
            ]),
            f"c{double} = f32[{n}] " + (f"concatenate(h{double}, m{double}), dimensions={{0}}"
                                        if n > 1 else f"copy(h{double})"),
            f"p{double} = f32[{double}] pad(c{double}, z), padding=0_1_1",
            f"q{double} = f32[{double}] pad(s{n}, z), padding=1_0_1",
            f"s{double} = f32[{double}] add(p{double}, q{double})",
        ]  # fmt: skip
        n = double
    return hlo.parse(
        "ENTRY e {\n" + "\n".join(lines) + f"\nROOT r = f32[{size}] copy(s{n}) }}"
    ).entry


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare shared formulas first, small ones included."""
    monkeypatch.setattr(engine, "MAX_COPIED_TERMS", 0)
    monkeypatch.setattr(elements, "MAX_COPIED_DEPTH", 1)


@pytest.mark.parametrize("exponent", [12, 16])
def test_the_terms_of_a_scan_do_not_grow_with_its_elements(
    monkeypatch: pytest.MonkeyPatch, exponent: int
) -> None:
    made = calls_of(monkeypatch, FormulaTable, "make")
    size = 1 << exponent
    (result,) = compare_values(scan(size), scan(size, copies=True), exact_arithmetic=True)
    assert isinstance(result, EqualFormulas)
    assert not result.laws
    assert len(made) < 100_000


@pytest.mark.usefixtures("always")
def test_another_scan_is_not_proved() -> None:
    assert all(compare_values(scan(16), scan(16, copies=True)))
    assert not any(compare_values(scan(16), scan(16, copies=True, start=1)))


@pytest.mark.usefixtures("always")
def test_equal_formulas_are_proved_in_either_form(monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    equal = SharedFormulas.equal

    def record(*arguments: object) -> bool:
        results.append(equal(*arguments))  # type: ignore[arg-type]
        return results[-1]

    monkeypatch.setattr(SharedFormulas, "equal", record)
    for name, pair in EQUAL.items():
        before, after = map(program, pair)
        assert all(compare_values(before.entry, after.entry, exact_arithmetic=True)), name
    assert results.count(True) >= len(EQUAL) // 2


@pytest.mark.usefixtures("always")
def test_different_formulas_are_proved_in_neither_form() -> None:
    for name, pair in DIFFERENT.items():
        before, after = map(program, pair)
        assert not any(compare_values(before.entry, after.entry)), name


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("number", range(len(PAIRS)))
def test_loops_are_proved_if_they_are_equal(number: int) -> None:
    before, after, is_equal = PAIRS[number]
    (result,) = compare_values(hlo.parse(before).entry, hlo.parse(after).entry)
    assert bool(result) == is_equal


@pytest.mark.usefixtures("always")
def test_no_mutant_with_other_numbers_is_proved_by_shared_formulas() -> None:
    assert sum(map(decided_mutants, EQUAL)) >= 18

"""Numbers of points of isl sets, and the sets that barvinok counts."""

from __future__ import annotations

import islpy as isl
import pytest

from simplifier.exact import cardinality
from simplifier.exact.context import within_budget
from simplifier.unknown import Unknown

# fmt: off
SETS = [
    # set                                                                     points   simple
    ("{ [] : }",                                                              1,       True),
    ("{ [i] : 1 = 0 }",                                                       0,       True),
    ("{ [i, j] : 0 <= i < 30 and 0 <= j < 30 and 2i + 3j <= 30 }",            91,      True),
    ("{ [i] : 0 <= i < 100 and (i mod 7 <= 2 or i mod 5 = 1) }",              55,      True),
    ("{ [a] : exists x, y : 0 <= x < 9 and 0 <= y < 9 and a = 6x + 4y }",     39,      True),
    ("{ [a, b, c, d, e, f] : 0 <= a, b, c, d, e, f < 2 }",                    64,      True),
    ("{ [a, b, c, d, e, f, g] : 0 <= a, b, c, d, e, f, g < 2 }",              128,     False),
    ("{ [i] : 0 <= i < 60 and i mod 3 = 1 and i mod 4 <= 1 and i mod 5 <= 2 and i mod 7 <= 3 }",
                                                                              4,       False),
    ("{ [i] : 0 <= i < 90 and (" + " or ".join(f"i = {7 * k}" for k in range(9)) + ") }",
                                                                              9,       False),
]
# fmt: on


@pytest.mark.parametrize(("text", "count", "simple"), SETS)
def test_sets_are_counted(
    text: str, count: int, simple: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cardinality.cardinality(isl.Set(text)) == count
    separate = isl.Set(text).compute_divs().make_disjoint()
    assert cardinality.is_simple(separate) is simple
    # barvinok is called for simple sets only
    called: list[isl.Set] = []

    def card(points: isl.Set) -> isl.PwQPolynomial:
        called.append(points)
        number = points.count_val().to_python()
        return isl.PwQPolynomial(f"{{ {number} }}")

    monkeypatch.setattr(cardinality, "HAS_BARVINOK", True)
    monkeypatch.setattr(isl.Set, "card", card, raising=False)
    assert cardinality.cardinality(isl.Set(text)) == count
    assert len(called) == int(simple)


def test_a_count_beyond_the_budget_of_operations_is_unknown() -> None:
    text = "{ [i, j] : 0 <= i < 3000 and 0 <= j < 3000 and 2i + 3j <= 3000 }"

    def count_call(ctx: isl.Context) -> int:
        return cardinality.cardinality(isl.Set.read_from_str(ctx, text))

    assert isinstance(within_budget(count_call, 100), Unknown)
    assert within_budget(count_call, 2_000_000) == 751_501

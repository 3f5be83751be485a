"""Floor division: more rows for its laws, near misses, and identities of floordiv and mod.

Every law of `simplifier.laws` has one case in `tests.simplifier.law_cases`.
"""

from math import gcd

import pytest

from simplifier import Expr, exact, variable
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.laws import CANCEL_COMMON_FACTOR as FACTOR
from simplifier.laws import FACTOR_OUT_MULTIPLES as MULTIPLES
from simplifier.laws import FOLD_CONSTANT_FLOOR as CONSTANT
from simplifier.laws import MERGE_FLOORS as MERGE
from simplifier.laws import MERGE_NEGATED_FLOOR as NEGATED
from simplifier.trace import Law, record_laws
from tests.oracles import divisions

i, j = variable("i", 0, 9), variable("j", 0, 3)
n, m = variable("n", -9, 9), variable("m", -5, 30)
x, y, z = variable("x", 0, 999), variable("y", -999, 999), variable("z", 0, 7)
p = variable("p", 6, 6)
b, t = variable("b", 0, 1), variable("t", 0, 39)

# fmt: off
HITS = [
    # law      before                       divisor after
    # factor out multiples of the divisor, negative ones too
    (MULTIPLES, i * 8 + z,                   4,      i * 2 + z // 4),
    (MULTIPLES, y * 12 + x * 5,              4,      y * 3 + x + x // 4),
    (MULTIPLES, y * -8 + x,                  4,      y * -2 + x // 4),
    (MULTIPLES, x - 8,                       4,      x // 4 - 2),
    (MULTIPLES, x + 1001,                    1000,   (x + 1) // 1000 + 1),
    (MULTIPLES, x * 7,                       4,      x * 2 + (-x) // 4),  # least residue
    (MULTIPLES, p + j,                       4,      (j + 2) // 4 + 1),   # p is the number 6
    # fold a constant floor
    (CONSTANT,  j,                           4,      j * 0),
    (CONSTANT,  j + 8,                       4,      j * 0 + 2),
    (CONSTANT,  j - 4,                       4,      j * 0 - 1),
    (CONSTANT,  j * -1 - 1,                  4,      j * 0 - 1),
    (CONSTANT,  i * 8 + j,                   4,      i * 2),
    (CONSTANT,  i * 4 + j,                   40,     j * 0),
    (CONSTANT,  x % 10 + (y % 10) * 10,      100,    j * 0),
    (CONSTANT,  x * 3 - (x // 4) * 12 + z,   24,     j * 0),              # 3·(x mod 4) + z <= 16
    (CONSTANT,  x - (x // 4) * 4 + y * 4,    4,      y),                  # a mod as a whole
    (CONSTANT,  -b + 1,                      2,      j * 0),              # a negated half
    (CONSTANT,  i * 8 - b * 4 + 4,           8,      i),
    (CONSTANT,  t // 8 * 16 + t,             120,    j * 0),              # 24·(t//8) + t mod 8
    # cancel a common factor
    (FACTOR,    t // 4 * 508 + t,            1024,   t // 8),             # 512·(t//4) + t mod 4
    (FACTOR,    x * 6,                       4,      x + x // 2),
    (FACTOR,    i * 8 + j * 2 + 1,           12,     (i * 4 + j) // 6),
    (FACTOR,    x * 6 + 5,                   30,     x // 5),
    (FACTOR,    y * 10 + z,                  100,    y // 10),
    (FACTOR,    y * 10 - z - 1,              100,    (y - 1) // 10),
    # merge nested floors
    (MERGE,     x // 3,                      5,      x // 15),
    (MERGE,     y // 3 + x,                  5,      (y + x * 3) // 15),
    (MERGE,     y // 3 - 2,                  5,      (y - 6) // 15),
    (NEGATED,   -(x // 3),                   5,      (-x + 2) // 15),     # a ceiling
    (NEGATED,   y - x // 4 + 1,              6,      (y * 4 - x + 7) // 24),
    (MERGE,     (x // 3) // 5 + 1,           7,      (x + 15) // 105),
]

NEAR_MISSES = [
    # law      before                       divisor looks like                 differs at
    (MULTIPLES, x * 3,                       4,      x * 0,                     {"x": 2}),
    (MULTIPLES, y + 4,                       8,      y // 8,                    {"y": 4}),
    (CONSTANT,  n,                           16,     n * 0,                     {"n": -1}),
    (CONSTANT,  j + 1,                       4,      j * 0,                     {"j": 3}),
    (CONSTANT,  j - 1,                       8,      j * 0,                     {"j": 0}),
    (CONSTANT,  i * 4 + j,                   39,     j * 0,                     {"i": 9, "j": 3}),
    (CONSTANT,  -b + 2,                      2,      j * 0,                     {"b": 0}),
    (CONSTANT,  t // 8 * 16 + t,             103,    j * 0,                     {"t": 39}),
    (FACTOR,    t // 4 * 507 + t,            1024,   t // 8,                    {"t": 8}),
    (FACTOR,    i * 8 + z * 2 + 4,           12,     i * 8 // 12,               {"i": 1, "z": 0}),
    (FACTOR,    y * 10 + x % 11,             100,    y // 10,                   {"y": 9, "x": 10}),
    (FACTOR,    y * 10 - z,                  100,    y // 10,                   {"y": 0, "z": 1}),
    (MERGE,     (x // 3) * 2,                5,      x * 2 // 15,               {"x": 8}),
    (NEGATED,   -(x // 3),                   5,      -x // 15,                  {"x": 1}),
    (MERGE,     x // 3 + y // 2,             5,      (x * 2 + y * 3) // 30,     {"x": 14, "y": 1}),
]

MODS = [
    # before                                        after
    (x % 8 % 4,                                     x % 4),
    (x % 4 % 8,                                     x % 4),
    ((x * 4 + j) % 4,                               j),
    ((x // 8) * 8 + x % 8,                          x),
    ((x // 12) * 12 + x % 12 // 4 * 4 + x % 4,      x),
    ((x // 12) * 12 + (x // 4 % 3) * 4 + x % 4,     x),
    (x // 4 % 3 * 4 + x % 4,                        x % 12),
    ((i * 4 + j) // 4 % 10,                         i),
    ((n + 9) % 19,                                  n + 9),
    ((x * 6 + 3) % 9,                               (x * 2 + 1) % 3 * 3),
    (3 - (3 - y),                                   y),
]
# fmt: on


def names(point: dict[str, int], expr: Expr) -> dict[Variable, int]:
    return {v: point[v.name] for v in expr.variables()}


def proved_equal(a: Expr, b: Expr) -> bool:
    """ISL finds no point at which the two differ."""
    variables = tuple({v.name: v for v in (*a.variables(), *b.variables())}.values())
    first = exact.Relation(variables, (), (a,), ())
    return exact.difference(first, exact.Relation(variables, (), (b,), ())) is None


@pytest.mark.parametrize("law, before, divisor, after", HITS)
def test_a_law_divides(law: Law, before: Expr, divisor: int, after: Expr) -> None:
    with record_laws() as applied:
        assert before // divisor == after
    assert str(applied[-1].law) == str(law)


@pytest.mark.parametrize("law, before, divisor, wrong, point", NEAR_MISSES)
def test_a_near_miss_keeps_its_value(
    law: Law, before: Expr, divisor: int, wrong: Expr, point: dict[str, int]
) -> None:
    quotient = before // divisor
    truth = before.value(names(point, before)) // divisor
    assert quotient.value(names(point, quotient)) == truth
    assert wrong.value(names(point, wrong)) != truth


@pytest.mark.parametrize("before, after", MODS)
def test_mods_are_sums_whose_terms_cancel(before: Expr, after: Expr) -> None:
    assert before == after


@pytest.mark.parametrize("law, dividend, divisor, after", HITS)
def test_isl_proves_each_division(law: Law, dividend: Expr, divisor: int, after: Expr) -> None:
    """``d·q <= e < d·(q + 1)`` has no exception on the whole box, however large."""
    remainder = dividend - after * divisor
    variables = tuple(dict.fromkeys((*dividend.variables(), *after.variables())))
    for wrong in ((-(10**6), -1), (divisor, 10**6)):
        assert exact.is_empty(variables, [Constraint(remainder, *wrong)]) is True


DIVIDENDS = [
    x,
    y,
    y * 3,
    x * 4 + z,
    y * 6 - z + 5,
    x // 4 + y,
    x % 12 * 5 + z,
    y * 8 + (x // 3) * 2,
]


@pytest.mark.parametrize("divisor", [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 60, 128, 997, 1000])
@pytest.mark.parametrize("dividend", DIVIDENDS, ids=str)
def test_isl_proves_quotients_for_a_table_of_divisors(dividend: Expr, divisor: int) -> None:
    remainder = dividend % divisor
    variables = tuple(dict.fromkeys(dividend.variables()))
    for wrong in ((-(10**6), -1), (divisor, 10**6)):
        assert exact.is_empty(variables, [Constraint(remainder, *wrong)]) is True
    assert (dividend // divisor) * divisor + remainder == dividend


@pytest.mark.parametrize("inner", [2, 3, 4, 6, 10])
@pytest.mark.parametrize("outer", [2, 3, 5, 8])
@pytest.mark.parametrize("shift", [-7, 0, 4])
def test_a_floor_of_a_floor_is_one_floor(inner: int, outer: int, shift: int) -> None:
    nested = (y // inner + shift) // outer
    assert nested == (y + inner * shift) // (inner * outer)
    assert divisions(str(nested)) == 1


@pytest.mark.parametrize("sizes", [(2, 3), (3, 4, 5), (7, 2, 3, 2), (1, 5, 1, 4), (2, 2, 2, 2, 2)])
def test_delinearising_and_linearising_an_index_is_the_identity(
    sizes: tuple[int, ...],
) -> None:
    count = 1
    for size in sizes:
        count *= size
    linear = variable("linear", 0, count - 1)
    digits, rest = [], linear
    for size in reversed(sizes):
        digits.append(rest % size)
        rest = rest // size
    together = digits[-1] * 0
    for size, digit in zip(sizes, reversed(digits), strict=True):
        together = together * size + digit
    assert together == linear
    parts = [variable(f"p{k}", 0, size - 1) for k, size in enumerate(sizes)]
    index = parts[0] * 0
    for size, part in zip(sizes, parts, strict=True):
        index = index * size + part
    for size, part in reversed(list(zip(sizes, parts, strict=True))):
        assert index % size == part
        index = index // size


def test_a_divisor_must_be_positive() -> None:
    for divisor in (0, -4):
        with pytest.raises(ValueError, match="positive"):
            x // divisor
        with pytest.raises(ValueError, match="positive"):
            x % divisor


def test_numbers_beyond_64_bits_neither_saturate_nor_overflow() -> None:
    huge = 3 * 10**30
    far = variable("far", -huge, huge)
    assert (far * huge + 5) // huge == far
    assert (far * huge).bounds == (-huge * huge, huge * huge)
    assert gcd(*[c for _, c in (far * huge).terms]) == huge


def test_equal_expressions_with_different_texts_prove_equal() -> None:
    assert proved_equal(x % 12 // 4, x // 4 % 3)
    assert not proved_equal(x % 12 // 4, x // 4 % 2)

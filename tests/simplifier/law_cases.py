"""One case for each law of `simplifier.laws`: a hit, a near miss and a table to prove.

All inputs are texts of maps: ``A | B`` is a union, ``A then B`` a composition.
"""

# ruff: noqa: E501 - a text of a map is one line

from collections.abc import Callable, Sequence
from typing import NamedTuple

from simplifier import laws
from simplifier.trace import Law


class Case(NamedTuple):
    """Evidence that one law is applied and correct.

    Attributes:
        hit: an input on which the law fires.
        after: the simplified hit.
        near_miss: an input that looks like a hit.
        wrong: the result of a careless version of the law for the near miss.
        at: the values of the dimensions at which `wrong` differs.
        proof: a text with a divisor, modulus or stride, on which the law fires and is proved by ISL.
        table: the divisors, moduli or strides.
    """

    law: Law
    hit: str
    after: str
    near_miss: str
    wrong: str
    at: tuple[int, ...]
    proof: Callable[[int], str]
    table: Sequence[int] = (2, 3, 4, 5, 6, 7, 8, 12, 24, 60, 128, 997)


ODD = (5, 7, 9, 11, 27, 125, 997)
FROM_3 = (3, 4, 5, 6, 7, 8, 12, 24, 60, 128, 997)
FROM_6 = (6, 7, 8, 12, 24, 60, 128, 997)
FEW = (2, 3, 4, 5, 6, 7, 8)

ONE = "domain: d0 in [-9, 9]"
TWO = "domain: d0 in [-9, 9], d1 in [-9, 9]"
WIDE = "domain: d0 in [-999, 999], d1 in [-999, 999]"
N = "domain: d0 in [-9, 9], d1 in [1, 9]"  # d1 is never 0
WINDOW = "(d0) -> ((d0 floordiv 2) * 3 - d0), domain: d0 in [0, 9]"
ELEVEN = ", ".join(f"d{k}" for k in range(11))
FOUR_GROUPS = ", ".join(
    [
        "domain: d0 in [0, 1], d1 in [0, 1], d2 in [0, 1], d3 in [0, 1], d4 in [0, 1]",
        "d5 in [0, 1], d6 in [0, 1], d7 in [0, 1], d8 in [0, 9], d9 in [0, 9], d10 in [0, 1]",
        *[f"d{k} + d{k + 1} in [0, 1], d{k} - d{k + 1} in [0, 1]" for k in (0, 2, 4, 6)],
    ]
)

CASES = [
    Case(
        laws.MERGE_LIKE_TERMS,
        f"(d0) -> (d0 * 3 - d0 * 2 + (d0 floordiv 4) * 4 + d0 mod 4), {ONE}",
        f"(d0) -> (d0 * 2), {ONE}",
        f"(d0) -> ((d0 floordiv 4) * 3 + d0 mod 4), {ONE}",
        f"(d0) -> (d0), {ONE}",
        (-4,),
        lambda d: f"(d0) -> ((d0 floordiv {d}) * {d} + d0 mod {d}), {ONE}",
    ),
    Case(
        laws.EXPAND_MOD,
        f"(d0) -> ((d0 * 6 + 3) mod 9), {ONE}",
        f"(d0) -> (((-d0 + 1) mod 3) * 3), {ONE}",
        f"(d0) -> ((d0 * 6 + 3) mod 8), {ONE}",
        f"(d0) -> (((d0 * 2 + 1) mod 3) * 3), {ONE}",
        (1,),
        lambda d: f"(d0) -> ((d0 - {2 * d - 1}) mod {d}), {ONE}",
    ),
    Case(
        laws.FACTOR_OUT_MULTIPLES,
        f"(d0, d1) -> ((d0 * 8 + d1 - 3) floordiv 4), {TWO}",
        f"(d0, d1) -> (d0 * 2 + (d1 - 3) floordiv 4), {TWO}",
        f"(d0, d1) -> ((d0 * 7 + d1) floordiv 4), {TWO}",
        f"(d0, d1) -> (d0 + d1 floordiv 4), {TWO}",
        (-1, 0),
        lambda d: f"(d0, d1) -> ((d0 * {3 * d} + d1 - {d}) floordiv {d}), {WIDE}",
    ),
    Case(
        laws.FOLD_CONSTANT_FLOOR,
        "(d0) -> ((d0 - 1) floordiv 8), domain: d0 in [-7, 0]",
        "(d0) -> (-1), domain: d0 in [-7, 0]",
        "(d0) -> ((d0 - 1) floordiv 8), domain: d0 in [-7, 1]",
        "(d0) -> (-1), domain: d0 in [-7, 1]",
        (1,),
        lambda d: f"(d0) -> ((d0 - 1) floordiv {d}), domain: d0 in [{1 - d}, 0]",
    ),
    Case(
        laws.CANCEL_COMMON_FACTOR,
        "(d0, d1) -> ((d0 * 10 - d1 - 1) floordiv 100), domain: d0 in [-30, 30], d1 in [0, 9]",
        "(d0, d1) -> ((d0 - 1) floordiv 10), domain: d0 in [-30, 30], d1 in [0, 9]",
        "(d0, d1) -> ((d0 * 10 - d1) floordiv 100), domain: d0 in [-30, 30], d1 in [0, 9]",
        "(d0, d1) -> (d0 floordiv 10), domain: d0 in [-30, 30], d1 in [0, 9]",
        (0, 1),
        lambda d: (
            f"(d0, d1) -> ((d0 * {2 * d} + d1) floordiv {4 * d}), domain: d0 in [-99, 99], d1 in [0, {d}]"
        ),
    ),
    Case(
        laws.MERGE_FLOORS,
        "(d0) -> ((d0 floordiv 3 - 2) floordiv 5), domain: d0 in [-99, 99]",
        "(d0) -> ((d0 - 6) floordiv 15), domain: d0 in [-99, 99]",
        "(d0) -> (((d0 floordiv 3) * 2) floordiv 5), domain: d0 in [-99, 99]",
        "(d0) -> ((d0 * 2) floordiv 15), domain: d0 in [-99, 99]",
        (8,),
        lambda d: f"(d0, d1) -> ((d0 floordiv {d} + d1) floordiv 3), {WIDE}",
    ),
    Case(
        laws.MERGE_NEGATED_FLOOR,
        "(d0) -> ((-(d0 floordiv 3)) floordiv 5), domain: d0 in [-99, 99]",
        "(d0) -> ((-d0 + 2) floordiv 15), domain: d0 in [-99, 99]",
        "(d0) -> ((-(d0 floordiv 3)) floordiv 5), domain: d0 in [-99, 99]",
        "(d0) -> ((-d0) floordiv 15), domain: d0 in [-99, 99]",
        (1,),
        lambda d: f"(d0, d1) -> ((d1 - d0 floordiv {d}) floordiv 3), {WIDE}",
    ),
    Case(
        laws.RECOMBINE_MOD,
        "(d0, d1) -> ((d0 * 3 - (d0 floordiv 4) * 12 + d1) floordiv 24), domain: d0 in [-99, 99], d1 in [0, 7]",
        "(d0, d1) -> (0), domain: d0 in [-99, 99], d1 in [0, 7]",
        "(d0, d1) -> ((d0 * 3 - (d0 floordiv 4) * 11 + d1) floordiv 24), domain: d0 in [-99, 99], d1 in [0, 7]",
        "(d0, d1) -> (0), domain: d0 in [-99, 99], d1 in [0, 7]",
        (99, 0),
        lambda d: (
            f"(d0, d1) -> ((d0 * 3 - (d0 floordiv {d}) * {3 * d} + d1) floordiv {6 * d}), domain: d0 in [-999, 999], d1 in [0, {d}]"
        ),
    ),
    Case(
        laws.BOUND_MOD,
        "(d0, d1) -> ((d0 mod 10 + d1 * 10) floordiv 100), domain: d0 in [-99, 99], d1 in [0, 9]",
        "(d0, d1) -> (0), domain: d0 in [-99, 99], d1 in [0, 9]",
        "(d0, d1) -> ((d0 mod 11 + d1 * 10) floordiv 100), domain: d0 in [-99, 99], d1 in [0, 9]",
        "(d0, d1) -> (0), domain: d0 in [-99, 99], d1 in [0, 9]",
        (-1, 9),
        lambda d: (
            f"(d0, d1) -> ((d0 mod {d} + d1 * {d}) floordiv {5 * d}), domain: d0 in [-999, 999], d1 in [0, 4]"
        ),
    ),
    # ------------------------------------------------------------ expressions on a domain
    Case(
        laws.ADD_ZERO,
        f"(d0, d1) -> ((d0 + d1) floordiv 2), {TWO}, d0 - d1 in [0, 0]",
        f"(d0, d1) -> (d1), {TWO}, d0 - d1 in [0, 0]",
        f"(d0, d1) -> (d0), {TWO}, d0 - d1 in [0, 1]",
        f"(d0, d1) -> (d1), {TWO}, d0 - d1 in [0, 1]",
        (2, 1),
        lambda d: f"(d0, d1) -> ((d0 + d1 * {d - 1}) floordiv {d}), {TWO}, d0 - d1 in [0, 0]",
    ),
    Case(
        laws.DIVIDE_EXACTLY,
        f"(d0, d1) -> (((d0 + d1 + 1) floordiv 3) * 3), {TWO}, (d0 + d1) mod 6 in [5, 5]",
        f"(d0, d1) -> (d0 + d1 + 1), {TWO}, (d0 + d1) mod 6 in [5, 5]",
        f"(d0, d1) -> (((d0 + d1 + 1) floordiv 3) * 3), {TWO}, (d0 + d1) mod 6 in [4, 5]",
        f"(d0, d1) -> (d0 + d1 + 1), {TWO}, (d0 + d1) mod 6 in [4, 5]",
        (-1, -1),
        lambda d: (
            f"(d0, d1) -> (((d0 + d1 + 1) floordiv {d}) * {d}), {WIDE}, (d0 + d1) mod {2 * d} in [{2 * d - 1}, {2 * d - 1}]"
        ),
    ),
    Case(
        laws.ROUND_CONSTANT,
        f"(d0) -> ((d0 + 1) floordiv 2), {ONE}, d0 mod 2 in [0, 0]",
        "(d0) -> (d0 floordiv 2), domain: d0 in [-8, 8], d0 mod 2 in [0, 0]",
        f"(d0) -> ((d0 + 1) floordiv 2), {ONE}, d0 mod 3 in [1, 1]",
        f"(d0) -> (d0 floordiv 2), {ONE}, d0 mod 3 in [1, 1]",
        (1,),
        lambda d: (
            f"(d0) -> ((d0 + {d - 1}) floordiv {2 * d}), domain: d0 in [-9999, 9999], d0 mod {d} in [0, 0]"
        ),
    ),
    Case(
        laws.FOLD_SINGLE_VALUE,  # four other groups of constraints exhaust the limit on ISL queries
        f"({ELEVEN}) -> (((d8 + d9) floordiv 4) * 2 + d10), {FOUR_GROUPS}, d8 + d9 in [4, 11], ((d8 + d9) floordiv 4) * 2 + d10 in [5, 9]",
        f"({ELEVEN}) -> (5), domain: d0 in [0, 1], d1 in [0, 0], d2 in [0, 1], d3 in [0, 0], d4 in [0, 1], d5 in [0, 0], d6 in [0, 1], d7 in [0, 0], d8 in [0, 9], d9 in [0, 9], d10 in [1, 1], d8 + d9 in [8, 11]",
        f"({ELEVEN}) -> (((d8 + d9) floordiv 4) * 2 + d10), {FOUR_GROUPS}, d8 + d9 in [4, 11], ((d8 + d9) floordiv 4) * 2 + d10 in [4, 9]",
        f"({ELEVEN}) -> (5), {FOUR_GROUPS}, d8 + d9 in [4, 11], ((d8 + d9) floordiv 4) * 2 + d10 in [4, 9]",
        (0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 0),
        lambda d: (
            f"({ELEVEN}) -> (((d8 + d9) floordiv 4) * {d} + d10), {FOUR_GROUPS}, d8 + d9 in [4, 11], ((d8 + d9) floordiv 4) * {d} + d10 in [{2 * d + 1}, {4 * d}]"
        ),
        FEW,
    ),
    # ------------------------------------------------------------ constraints
    Case(
        laws.DECIDE_CONSTRAINT,
        f"(d0) -> (d0), {ONE}, (d0 * 3 + 2) floordiv 4 in [-7, 7]",
        f"(d0) -> (d0), {ONE}",
        f"(d0) -> (d0), {ONE}, (d0 * 3 + 2) floordiv 4 in [-6, 7]",
        f"(d0) -> (d0), {ONE}",
        (-9,),
        lambda d: (
            f"(d0) -> (d0), domain: d0 in [-99, 99], d0 floordiv {d} in [{-99 // d}, {99 // d}]"
        ),
    ),
    Case(
        laws.MOVE_CONSTANT,
        f"(d0, d1) -> (d0), {TWO}, d0 + d1 + 3 in [5, 9]",
        "(d0, d1) -> (d0), domain: d0 in [-7, 9], d1 in [-7, 9], d0 + d1 in [2, 6]",
        f"(d0, d1) -> (d0), {TWO}, (d0 + d1 + 3) mod 4 in [1, 2]",
        f"(d0, d1) -> (d0), {TWO}, (d0 + d1) mod 4 in [-2, -1]",
        (0, -1),
        lambda d: f"(d0, d1) -> (d0), {TWO}, d0 + d1 * {d} - 7 in [0, 40]",
    ),
    Case(
        laws.DIVIDE_CONSTRAINT,
        f"(d0, d1) -> (d0), {TWO}, d1 * -6 - d0 * 4 in [-5, 5]",
        f"(d0, d1) -> (d0), {ONE}, d1 in [-6, 6], d0 * 2 + d1 * 3 in [-2, 2]",
        f"(d0, d1) -> (d0), {TWO}, d0 * 4 + d1 * 6 in [-5, 5]",
        f"(d0, d1) -> (d0), {TWO}, d0 * 2 + d1 * 3 in [-3, 2]",
        (0, -1),
        lambda d: f"(d0, d1) -> (d0), {TWO}, d0 * {d} + d1 * {2 * d} in [-5, {7 * d - 1}]",
    ),
    Case(
        laws.REMOVE_FLOOR,
        f"(d0, d1) -> (d0), {TWO}, (d0 + d1 * 2) floordiv 4 in [-1, 1]",
        f"(d0, d1) -> (d0), {ONE}, d1 in [-6, 8], d0 + d1 * 2 in [-4, 7]",
        f"(d0, d1) -> (d0), {TWO}, (d0 + d1 * 2) floordiv 4 in [-1, 1]",
        f"(d0, d1) -> (d0), {TWO}, d0 + d1 * 2 in [-4, 4]",
        (5, 0),
        lambda d: f"(d0, d1) -> (d0), {TWO}, (d0 * 3 + d1) floordiv {d} in [-1, 1]",
    ),
    Case(
        laws.CLIP_BOUNDS,
        f"(d0, d1) -> (d0), {TWO}, d0 + d1 in [-40, 5]",
        f"(d0, d1) -> (d0), {TWO}, d0 + d1 in [-18, 5]",
        f"(d0, d1) -> (d0), {TWO}, d0 * 2 + d1 in [-40, 5]",
        f"(d0, d1) -> (d0), {TWO}, d0 * 2 + d1 in [-18, 5]",
        (-9, -9),
        lambda d: f"(d0, d1) -> (d0), {TWO}, d0 * {d} + d1 in [-99999, 4]",
    ),
    Case(
        laws.INTERSECT_BOUNDS,
        f"(d0, d1) -> (d0), {TWO}, d0 + d1 in [0, 9], d0 + d1 in [4, 12]",
        "(d0, d1) -> (d0), domain: d0 in [-5, 9], d1 in [-5, 9], d0 + d1 in [4, 9]",
        f"(d0, d1) -> (d0), {TWO}, d0 + d1 in [0, 9], d0 - d1 in [4, 12]",
        f"(d0, d1) -> (d0), {TWO}, d0 + d1 in [4, 9]",
        (2, -2),
        lambda d: f"(d0, d1) -> (d0), {TWO}, d0 * {d} + d1 in [0, 9], -d1 - d0 * {d} in [-12, -4]",
    ),
    Case(
        laws.DROP_IMPLIED,
        "(d0, d1, d2) -> (d0), domain: d0 in [0, 9], d1 in [0, 9], d2 in [0, 7], (d0 + d1) * 8 + d2 in [0, 87], d0 + d1 in [0, 10]",
        "(d0, d1, d2) -> (d0), domain: d0 in [0, 9], d1 in [0, 9], d2 in [0, 7], d0 + d1 in [0, 10]",
        "(d0, d1, d2) -> (d0), domain: d0 in [0, 9], d1 in [0, 9], d2 in [0, 7], (d0 + d1) * 8 + d2 in [0, 86], d0 + d1 in [0, 10]",
        "(d0, d1, d2) -> (d0), domain: d0 in [0, 9], d1 in [0, 9], d2 in [0, 7], d0 + d1 in [0, 10]",
        (5, 5, 7),
        lambda d: (
            f"(d0, d1, d2) -> (d0), domain: d0 in [0, 9], d1 in [0, 9], d2 in [0, {d - 1}], (d0 + d1) * {d} + d2 in [0, {11 * d - 1}], d0 + d1 in [0, 10]"
        ),
    ),
    Case(
        laws.PROPAGATE_BOUNDS,
        f"(d0, d1) -> (d0), {TWO}, d0 * -4 + d1 in [12, 99]",
        "(d0, d1) -> (d0), domain: d0 in [-9, -1], d1 in [-9, 9], d0 * 4 - d1 in [-45, -12]",
        f"(d0, d1) -> (d0), {TWO}, d0 * -4 + d1 in [12, 99]",
        "(d0, d1) -> (d0), domain: d0 in [-9, -3], d1 in [0, 9], d0 * -4 + d1 in [12, 99]",
        (-9, -9),
        lambda d: f"(d0, d1) -> (d0), {WIDE}, d0 * {d} + d1 in [2000, 9999]",
    ),
    Case(
        laws.REFINE_BOUNDS,
        "(d0, d1) -> (d0), domain: d0 in [0, 20], d1 in [0, 20], d0 + d1 in [0, 9], d0 - d1 in [0, 9]",
        "(d0, d1) -> (d0), domain: d0 in [0, 9], d1 in [0, 4], d0 - d1 in [0, 9], d0 + d1 in [0, 9]",
        "(d0, d1) -> (d0), domain: d0 in [0, 20], d1 in [0, 20], d0 + d1 in [0, 10], d0 - d1 in [0, 9]",
        "(d0, d1) -> (d0), domain: d0 in [0, 20], d1 in [0, 4], d0 + d1 in [0, 10], d0 - d1 in [0, 9]",
        (5, 5),
        lambda d: (
            f"(d0, d1) -> (d0), domain: d0 in [0, 200], d1 in [0, 200], d0 + d1 in [0, {9 * d}], d0 - d1 in [0, 9]"
        ),
        FEW,
    ),
    Case(
        laws.DETECT_EMPTY,
        f"(d0, d1) -> (d0), {TWO}, (d0 + d1) mod 4 in [0, 0], (d0 - d1) mod 4 in [1, 1]",
        "KNOWN EMPTY",
        f"(d0, d1) -> (d0), {TWO}, (d0 + d1) mod 4 in [0, 0], (d0 - d1) mod 4 in [2, 2]",
        "(d0, d1) -> (d0), domain: d0 in [1, 0], d1 in [1, 0]",
        (1, -1),
        lambda d: (
            f"(d0, d1) -> (d0), {TWO}, (d0 + d1) mod {2 * d} in [0, 0], (d0 - d1) mod {2 * d} in [1, 1]"
        ),
        FEW,
    ),
    # ------------------------------------------------------------ residues
    Case(
        laws.SHIFT_RESIDUES,
        f"(d0) -> (d0), {ONE}, (d0 + 5) mod 7 in [1, 1]",
        "(d0) -> (d0), domain: d0 in [-4, 3], d0 mod 7 in [3, 3]",
        f"(d0) -> (d0), {ONE}, (d0 + 5) mod 7 in [1, 2]",
        f"(d0) -> (d0), {ONE}, d0 mod 7 in [3, 5]",
        (5,),
        lambda d: f"(d0) -> (d0), {ONE}, (d0 + 1) mod {d} in [0, 0]",
    ),
    Case(
        laws.NEGATE_RESIDUES,
        f"(d0) -> (d0), {ONE}, (1 - d0) mod 7 in [3, 3]",
        "(d0) -> (d0), domain: d0 in [-9, 5], d0 mod 7 in [5, 5]",
        f"(d0) -> (d0), {ONE}, (-d0) mod 7 in [1, 2]",
        f"(d0) -> (d0), {ONE}, d0 mod 7 in [1, 2]",
        (1,),
        lambda d: f"(d0) -> (d0), {ONE}, (1 - d0) mod {d} in [0, 0]",
        FROM_3,
    ),
    Case(
        laws.INVERT_COEFFICIENT,
        f"(d0) -> (d0), {ONE}, (d0 * 3 + 1) mod 8 in [2, 2]",
        "(d0) -> (d0), domain: d0 in [-5, 3], d0 mod 8 in [3, 3]",
        f"(d0) -> (d0), {ONE}, (d0 * 3 + 1) mod 8 in [2, 3]",
        f"(d0) -> (d0), {ONE}, d0 mod 8 in [3, 4]",
        (4,),
        lambda d: f"(d0) -> (d0), {ONE}, (d0 * 2) mod {d} in [1, 1]",
        ODD,
    ),
    Case(
        laws.INTERSECT_RESIDUES,
        f"(d0) -> (d0), {ONE}, (d0 + 2) mod 8 in [0, 3], d0 mod 8 in [0, 3]",
        "(d0) -> (d0), domain: d0 in [-8, 9], d0 mod 8 in [0, 1]",
        f"(d0) -> (d0), {ONE}, (d0 + 2) mod 5 in [0, 3], d0 mod 5 in [0, 3]",
        f"(d0) -> (d0), {ONE}, d0 mod 5 in [0, 1]",
        (3,),
        lambda d: f"(d0) -> (d0), {ONE}, (d0 + 2) mod {d} in [0, 3], d0 mod {d} in [0, 3]",
        FROM_6,
    ),
    Case(
        laws.COMBINE_CONGRUENCES,
        f"(d0) -> (d0), {ONE}, d0 mod 4 in [1, 1], d0 mod 6 in [3, 3]",
        "(d0) -> (d0), domain: d0 in [-3, 9], d0 mod 12 in [9, 9]",
        f"(d0) -> (d0), {ONE}, d0 mod 4 in [1, 1], d0 mod 6 in [3, 3]",
        f"(d0) -> (d0), {ONE}, d0 mod 24 in [9, 9]",
        (-3,),
        lambda d: (
            f"(d0) -> (d0), {WIDE.split(', d1')[0]}, d0 mod {d} in [1, 1], d0 mod {d + 1} in [0, 0]"
        ),
    ),
    Case(
        laws.DECIDE_RESIDUE,
        f"(d0) -> (d0), {ONE}, d0 mod 8 in [5, 5], d0 mod 4 in [0, 1]",
        "(d0) -> (d0), domain: d0 in [-3, 5], d0 mod 8 in [5, 5]",
        f"(d0) -> (d0), {ONE}, d0 mod 8 in [4, 5], d0 mod 4 in [1, 2]",
        f"(d0) -> (d0), {ONE}, d0 mod 8 in [4, 5]",
        (4,),
        lambda d: f"(d0) -> (d0), {ONE}, d0 mod {2 * d} in [1, 1], d0 mod {d} in [0, 1]",
        FROM_3,
    ),
    Case(
        laws.SELECT_RESIDUE,
        f"(d0) -> (d0), {ONE}, d0 mod 2 in [0, 0], d0 mod 4 in [0, 1]",
        "(d0) -> (d0), domain: d0 in [-8, 8], d0 mod 4 in [0, 0]",
        f"(d0) -> (d0), {ONE}, d0 mod 2 in [0, 0], d0 mod 4 in [0, 2]",
        f"(d0) -> (d0), {ONE}, d0 mod 4 in [0, 0]",
        (2,),
        lambda d: f"(d0) -> (d0), {ONE}, d0 mod 2 in [0, 0], d0 mod {2 * d} in [0, 1]",
    ),
    Case(
        laws.ROUND_TO_RESIDUES,
        f"(d0, d1) -> (d0), {TWO}, (d0 + d1) mod 5 in [1, 1], d0 + d1 in [0, 7]",
        "(d0, d1) -> (d0), domain: d0 in [-8, 9], d1 in [-8, 9], d0 + d1 in [1, 6], (d0 + d1) mod 5 in [1, 1]",
        f"(d0, d1) -> (d0), {TWO}, (d0 + d1) mod 5 in [1, 1], d0 + d1 in [-4, 7]",
        f"(d0, d1) -> (d0), {TWO}, (d0 + d1) mod 5 in [1, 1], d0 + d1 in [1, 6]",
        (-4, 0),
        lambda d: f"(d0, d1) -> (d0), {WIDE}, (d0 + d1) mod {d} in [1, 1], d0 + d1 in [0, {5 * d}]",
    ),
    Case(
        laws.DROP_IMPLIED_RESIDUES,
        f"(d0, d1) -> (d0), {TWO}, (d0 + d1) mod 8 in [0, 3], d0 + d1 in [0, 2]",
        f"(d0, d1) -> (d0), {TWO}, d0 + d1 in [0, 2]",
        f"(d0, d1) -> (d0), {TWO}, (d0 + d1) mod 8 in [0, 3], d0 + d1 in [0, 4]",
        f"(d0, d1) -> (d0), {TWO}, d0 + d1 in [0, 4]",
        (2, 2),
        lambda d: f"(d0, d1) -> (d0), {TWO}, (d0 + d1) mod {d} in [0, 2], d0 + d1 in [0, 2]",
        FROM_6,
    ),
    # ------------------------------------------------------------ variables and maps
    Case(
        laws.SOLVE_FOR_VARIABLE,
        "(d0)[s0] -> (s0), domain: d0 in [0, 30], s0 in [0, 9], d0 - s0 * 4 in [0, 3]",
        "(d0) -> (d0 floordiv 4), domain: d0 in [0, 30]",
        "(d0)[s0] -> (s0), domain: d0 in [0, 30], s0 in [0, 9], d0 - s0 * 4 in [0, 4]",
        "(d0) -> (d0 floordiv 4), domain: d0 in [0, 30]",
        (4,),
        lambda d: (
            f"(d0)[s0] -> (s0), domain: d0 in [-99, 99], s0 in [-5, 9], d0 - s0 * {d} in [0, {d - 1}]"
        ),
    ),
    Case(
        laws.RESCALE_VARIABLE,
        "(d0)[s0] -> (s0 + d0), domain: d0 in [0, 2], s0 in [-9, 9], s0 mod 4 in [1, 1]",
        "(d0)[s0] -> (d0 + s0 * 4 + 1), domain: d0 in [0, 2], s0 in [-2, 2]",
        "(d0)[s0] -> (s0 + d0), domain: d0 in [0, 2], s0 in [-9, 9], s0 mod 4 in [1, 2]",
        "(d0)[s0] -> (s0 * 4 + d0 + 1), domain: d0 in [0, 2], s0 in [-2, 2]",
        (0,),
        lambda d: f"()[s0] -> (s0), domain: s0 in [-9, 999], s0 mod {d} in [1, 1]",
    ),
    Case(
        laws.SHIFT_RANGE,
        "(d0)[s0] -> (d0 + s0 - 4), domain: d0 in [0, 4], s0 in [0, 8], d0 + s0 in [4, 8]",
        "(d0)[s0] -> (s0), domain: d0 in [0, 4], s0 in [0, 4]",
        "(d0)[s0] -> (d0 + s0 - 4), domain: d0 in [0, 4], s0 in [0, 7], d0 + s0 in [4, 8]",
        "(d0)[s0] -> (s0), domain: d0 in [0, 4], s0 in [0, 4]",
        (0,),
        lambda d: (
            f"(d0)[s0] -> (d0 - s0), domain: d0 in [0, {d}], s0 in [-{d}, {d}], d0 - s0 in [0, {d}]"
        ),
    ),
    Case(
        laws.MERGE_MIXED_RADIX,
        "()[s0, s1] -> (s0 * 4 + s1), domain: s0 in [0, 2], s1 in [0, 3]",
        "()[s0] -> (s0), domain: s0 in [0, 11]",
        "()[s0, s1] -> (s0 * 5 + s1), domain: s0 in [0, 2], s1 in [0, 3]",
        "()[s0] -> (s0), domain: s0 in [0, 13]",
        (),
        lambda d: f"()[s0, s1] -> (s0 * {d} + s1), domain: s0 in [-2, 2], s1 in [3, {d + 2}]",
    ),
    Case(
        laws.PROJECT_BOUNDS,
        "(d0)[s0] -> (d0), domain: d0 in [-20, 20], s0 in [0, 3], d0 + s0 * 5 in [5, 10]",
        "(d0) -> (d0), domain: d0 in [-10, 10]",
        "(d0)[s0] -> (d0), domain: d0 in [-20, 20], s0 in [0, 3], d0 + s0 * 5 in [5, 8]",
        "(d0) -> (d0), domain: d0 in [-10, 8]",
        (4,),
        lambda d: (
            f"(d0)[s0] -> (d0), domain: d0 in [-20, 20], s0 in [0, 3], d0 + s0 * {d} in [5, {5 + d}]"
        ),
        FROM_3,
    ),
    Case(
        laws.PROJECT_RESIDUES,
        "(d0)[s0] -> (d0), domain: d0 in [-9, 9], s0 in [0, 11], (d0 + s0 * 5) mod 12 in [1, 1]",
        f"(d0) -> (d0), {ONE}",
        "(d0)[s0] -> (d0), domain: d0 in [-9, 9], s0 in [0, 10], (d0 + s0 * 5) mod 12 in [1, 1]",
        f"(d0) -> (d0), {ONE}",
        (6,),
        lambda d: f"(d0)[s0] -> (d0), {ONE}, s0 in [3, {d + 2}], (d0 + s0) mod {d} in [1, 1]",
    ),
    Case(
        laws.DROP_UNUSED,
        f"(d0)[s0] -> (d0), {ONE}, s0 in [0, 9], s0 mod 7 in [5, 5]",
        f"(d0) -> (d0), {ONE}",
        f"(d0)[s0] -> (d0), {ONE}, s0 in [0, 3], s0 mod 7 in [5, 5]",
        f"(d0) -> (d0), {ONE}",
        (0,),
        lambda d: (
            f"(d0)[s0, s1] -> (d0), {ONE}, s0 in [0, {d}], s1 in [0, {d}], s0 * {d} - s1 in [1, {d}]"
        ),
    ),
    Case(
        laws.DROP_EQUAL_MAP,
        "()[s0] -> (s0 - 16), domain: s0 in [16, 31] | ()[s0] -> (s0), domain: s0 in [0, 15]",
        "()[s0] -> (s0), domain: s0 in [0, 15]",
        "()[s0] -> (s0 - 16), domain: s0 in [16, 32] | ()[s0] -> (s0), domain: s0 in [0, 15]",
        "()[s0] -> (s0), domain: s0 in [0, 15]",
        (),
        lambda d: (
            f"()[s0] -> (s0 * 3 - {3 * d}), domain: s0 in [{d}, {9 * d}] | ()[s0] -> (s0 * 3), domain: s0 in [0, {8 * d}]"
        ),
    ),
    Case(
        laws.OMIT_RESULT_BOUNDS,
        f"{WINDOW} then (d0) -> (3 - d0), domain: d0 in [0, 3] then (d0) -> (d0), domain: d0 in [0, 3]",
        "(d0) -> (d0 - (d0 floordiv 2) * 3 + 3), domain: d0 in [0, 9], d0 - (d0 floordiv 2) * 3 in [-3, 0]",
        f"{WINDOW} then (d0) -> (3 - d0), domain: d0 in [0, 3] then (d0) -> (d0), domain: d0 in [0, 2]",
        f"{WINDOW} then (d0) -> (3 - d0), domain: d0 in [0, 3]",
        (0,),
        lambda d: (
            f"{WINDOW} then (d0) -> ({d} - d0), domain: d0 in [0, {d}] then (d0) -> (d0), domain: d0 in [0, {d}]"
        ),
        FEW,
    ),
    # ------------------------------------------------------------ minima and maxima
    Case(
        laws.FLATTEN_EXTREMUM,
        f"(d0, d1) -> (min(d0, min(d1, 3))), {TWO}",
        f"(d0, d1) -> (min(d0, d1, 3)), {TWO}",
        f"(d0, d1) -> (min(d0, max(d1, 3))), {TWO}",
        f"(d0, d1) -> (min(d0, d1, 3)), {TWO}",
        (4, 4),
        lambda d: f"(d0, d1) -> (min(d0 * {d}, min(d1, 3))), {TWO}",
    ),
    Case(
        laws.DROP_DOMINATED,
        f"(d0) -> (max(d0, 7, d0 + 1)), {ONE}",
        f"(d0) -> (max(d0 + 1, 7)), {ONE}",
        f"(d0) -> (max(d0, 8)), {ONE}",
        f"(d0) -> (d0), {ONE}",
        (7,),
        lambda d: f"(d0, d1) -> (max(d0 * {d}, d0 * {d} + 3, d1)), {TWO}",
    ),
]

SEMI_AFFINE = [
    # ISL cannot see products: it proves the law for some numbers in place of d1
    Case(
        laws.DISTRIBUTE_PRODUCT,
        f"(d0, d1) -> ((d0 + 2) * d1), {N}",
        f"(d0, d1) -> (d1 * 2 + d0 * d1), {N}",
        f"(d0, d1) -> (d0 * d1 + 2), {N}",
        f"(d0, d1) -> ((d0 + 2) * d1), {N}",
        (0, 2),
        lambda d: f"(d0, d1) -> ((d0 + 2) * (d1 - {d})), {N}",
    ),
    Case(
        laws.FACTOR_OUT_DIVISOR,
        f"(d0, d1) -> ((d0 * d1 + d0) floordiv d1), {N}",
        f"(d0, d1) -> (d0 + d0 floordiv d1), {N}",
        f"(d0, d1) -> ((d0 * d1 * 3) floordiv (d1 * 2)), {N}",
        f"(d0, d1) -> (d0), {N}",
        (2, 1),
        lambda d: f"(d0, d1) -> ((d0 * d1 * {d} + d0) floordiv d1), {N}",
    ),
    Case(
        laws.DROP_REMAINDER,
        "(d0, d1) -> (d0 floordiv (d1 + 3)), domain: d0 in [0, 3], d1 in [1, 9]",
        "(d0, d1) -> (0), domain: d0 in [0, 3], d1 in [1, 9]",
        "(d0, d1) -> ((-d0) floordiv (d1 + 3)), domain: d0 in [0, 3], d1 in [1, 9]",
        "(d0, d1) -> (0), domain: d0 in [0, 3], d1 in [1, 9]",
        (1, 1),
        lambda d: f"(d0, d1) -> (d0 floordiv (d1 * {d} + 3)), domain: d0 in [0, {d}], d1 in [1, 9]",
    ),
    Case(
        laws.NEGATE_DIVISION,
        f"(d0, d1) -> (d0 floordiv d1), {ONE}, d1 in [-9, -1], d1 in [-4, -4]",
        f"(d0, d1) -> ((-d0) floordiv 4), {ONE}, d1 in [-4, -4]",
        f"(d0, d1) -> (d0 floordiv d1), {ONE}, d1 in [-9, -1], d1 in [-4, -4]",
        f"(d0, d1) -> (-(d0 floordiv 4)), {ONE}, d1 in [-4, -4]",
        (1, -4),
        lambda d: (
            f"(d0, d1) -> ((d0 + 1) floordiv d1), {ONE}, d1 in [-999, -1], d1 in [-{d}, -{d}]"
        ),
    ),
]

"""Congruences and ranges of residues: canonical form and conjunction, for all signs."""

# ruff: noqa: E501 - a row of a table is one line

from math import lcm

import islpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplifier import variable
from simplifier.atoms import Variable
from simplifier.conjunction import merge_constraints
from simplifier.constraints import Constraint, normalise, on_narrower
from simplifier.domain import tighten
from simplifier.linear import Expr
from simplifier.residues import Residues, intersection, residues_of
from simplifier.substitute import Substitution
from tests.oracles import boxes, fuzz, holds, points

x, y = variable("x", -40, 40), variable("y", -7, 9)

# fmt: off
CANONICAL = [
    # expression              bounds    as text                           law
    ((x + 1) % 2,             (0, 0),   "x mod 2 in [1, 1]"),             # shift residues
    ((x - 3) % 7,             (0, 2),   "x mod 7 in [3, 5]"),
    ((x - 3) % 7,             (0, 5),   "(x - 3) mod 7 in [0, 5]"),       # 3 to 8 wraps around
    ((3 - x) % 7,             (0, 5),   "(x + 2) mod 7 in [0, 5]"),
    ((-x - 2) % 5,            (0, 3),   "x mod 5 in [0, 3]"),
    ((-x) % 4,                (1, 1),   "x mod 4 in [3, 3]"),             # negate residues
    ((-x) % 4,                (0, 0),   "x mod 4 in [0, 0]"),
    ((-x) % 5,                (1, 2),   "x mod 5 in [3, 4]"),
    ((x * 3 + 1) % 8,         (2, 2),   "x mod 8 in [3, 3]"),             # unit: 3·3 = 1 (mod 8)
    ((x * 6) % 8,             (4, 4),   "x mod 4 in [2, 2]"),             # a common factor
    ((x * 2) % 4,             (1, 3),   "x mod 2 in [1, 1]"),
    ((x * 5 + y * 7) % 4,     (3, 3),   "(x - y) mod 4 in [3, 3]"),
    ((x + y * 2) % 6,         (3, 3),   "(x + y * 2) mod 6 in [3, 3]"),
    (x // 4 % 4,              (1, 1),   "x mod 16 in [4, 7]"),            # a floordiv is undone first
    (x - x // 4 * 4,          (1, 1),   "x mod 4 in [1, 1]"),             # a difference that is a mod
    ((x * 6) % 8,             (3, 3),   "0 in [1, 1]"),                   # even, so never 3
    (x % 4,                   (0, 3),   "None"),
]

MERGED = [
    # constraints                                                       together
    ([(x % 4, (1, 1)), (x % 6, (3, 3))],                                ["x mod 12 in [9, 9]"]),
    ([(x % 2, (1, 1)), (x % 3, (2, 2))],                                ["x mod 6 in [5, 5]"]),
    ([((-x) % 4, (1, 1)), ((x * 5) % 6, (3, 3))],                       ["x mod 12 in [3, 3]"]),
    ([(x % 4, (1, 1)), (x % 6, (2, 2))],                                ["0 in [1, 1]"]),        # odd and even
    ([(x % 8, (4, 7)), (x % 8, (6, 7))],                                ["x mod 8 in [6, 7]"]),
    ([(x % 8, (5, 5)), (x % 4, (0, 2))],                                ["x mod 8 in [5, 5]"]),  # 5 mod 4 = 1 is among them
    ([(x % 8, (7, 7)), (x % 4, (0, 2))],                                ["0 in [1, 1]"]),        # 7 mod 4 = 3 is not
    ([(x % 2, (0, 0)), (x % 4, (0, 1))],                                ["x mod 4 in [0, 0]"]),  # 1 is odd
    ([(x % 2, (0, 0)), (x % 4, (0, 2))],                                ["x mod 2 in [0, 0]", "x mod 4 in [0, 2]"]),   # 0 and 2
    ([(x % 3, (1, 1)), ((x - 5) % 9, (0, 4))],                          ["x mod 9 in [7, 7]"]),  # of 5 to 9
    ([(x % 3, (1, 1)), (x % 9, (2, 3))],                                ["0 in [1, 1]"]),
    ([(x % 8, (1, 1)), (x % 3, (0, 1))],                                ["x mod 3 in [0, 1]", "x mod 8 in [1, 1]"]),   # no single residue satisfies both
    ([((x - y) % 4, (1, 1)), (x - y, (0, 11))],                         ["(x - y) mod 4 in [1, 1]", "x - y in [1, 9]"]),
    ([((x - y) % 4, (1, 1)), (x - y, (-2, 4))],                         ["x - y in [1, 1]"]),    # of -3, 1 and 5
    ([((x - y) % 4, (1, 1)), (x - y, (2, 4))],                          ["0 in [1, 1]"]),
    ([(x % 20, (3, 3)), (x % 30, (13, 13)), (x, (-40, -5))],            ["x in [-17, -17]"]),    # 43 modulo 60
]
# fmt: on


@pytest.mark.parametrize("expr, bounds, text", CANONICAL)
def test_residues_are_canonical(expr: Expr, bounds: tuple[int, int], text: str) -> None:
    constraint = Constraint(expr, *bounds)
    simple = normalise(constraint)
    assert str(simple) == text
    kept = [] if simple is None else [simple]
    for point in points(tuple(dict.fromkeys(expr.variables()))):
        assert holds(kept, point) == holds([constraint], point), point


@pytest.mark.parametrize("given_ones, together", MERGED)
def test_constraints_on_residues_are_combined(
    given_ones: list[tuple[Expr, tuple[int, int]]], together: list[str]
) -> None:
    constraints = [Constraint(expr, *bounds) for expr, bounds in given_ones]
    conjunction = merge_constraints(constraints)
    assert sorted(map(str, conjunction)) == together
    assert merge_constraints(reversed(constraints)) == conjunction
    for point in points(tuple(dict.fromkeys(v for c in constraints for v in c.expr.variables()))):
        assert holds(conjunction, point) == holds(constraints, point), point


@st.composite
def residues(draw: st.DrawFn, max_modulus: int = 12) -> Residues:
    modulus = draw(st.integers(2, max_modulus))
    lower = draw(st.integers(0, modulus - 1))
    width = draw(st.sampled_from([0, draw(st.integers(0, modulus - 2))]))  # all are no constraint
    return Residues(x, modulus, lower, lower + width)


def fits(one: Residues, value: int) -> bool:
    residue = value % one.modulus
    return any(one.lower <= v <= one.upper for v in (residue, residue + one.modulus))


@given(residues(), residues())
@fuzz(300)
def test_both_is_the_conjunction(a: Residues, b: Residues) -> None:
    one = intersection(a, b)
    if one is None:
        assert not (a.is_congruence and b.is_congruence)
        return
    assert one.is_false or 0 <= one.lower < one.modulus
    for value in range(-lcm(a.modulus, b.modulus), lcm(a.modulus, b.modulus)):
        assert fits(one, value) == (fits(a, value) and fits(b, value)), value


@given(residues(), st.integers(-50, 50), st.integers(0, 40))
@fuzz(300)
def test_bounds_are_rounded_to_residues(one: Residues, low: int, width: int) -> None:
    values = [v for v in range(low, low + width + 1) if fits(one, v)]
    minimum, maximum = one.round_bounds((low, low + width))
    assert (minimum, maximum) == (min(values), max(values)) if values else minimum > maximum
    assert one.contains((low, low + width)) == (len(values) == width + 1)


@given(st.data(), boxes(max_dims=2))
@fuzz(300)
def test_the_canonical_form_keeps_the_points(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    dividend = sum(
        (v * data.draw(st.integers(-9, 9)) for v in box), data.draw(st.integers(-9, 9)) * box[0]
    )
    modulus = data.draw(st.integers(2, 12))
    expr = (dividend + data.draw(st.integers(-9, 9))) % modulus
    lower = data.draw(st.integers(0, modulus - 1))
    upper = data.draw(st.integers(lower, modulus - 1))
    canonical = residues_of(expr, (lower, upper))
    if canonical is None:
        return
    again, *limits = canonical.written
    assert residues_of(again, (limits[0], limits[1])) in (canonical, None)
    for point in points(box):
        assert fits(canonical, canonical.dividend.value(point)) == (
            lower <= expr.value(point) <= upper
        )


@given(st.data(), boxes(max_dims=2), st.integers(-9, 9), st.integers(2, 12))
@fuzz(400)
def test_constraints_on_residues_of_narrow_boxes_keep_their_points(
    data: st.DataObject, box: tuple[Variable, ...], offset: int, modulus: int
) -> None:
    """Intervals decide some floors, so that a constraint on residues becomes another one."""
    dividend = sum((v * data.draw(st.integers(-3, 3)) for v in box), box[0] * 0)
    lower = data.draw(st.integers(0, modulus - 1))
    upper = data.draw(st.integers(lower, modulus - 1))
    constraint = Constraint((dividend + offset) % modulus, lower, upper)
    domain = tighten(box, [constraint])
    for point in points(box):
        now = {new: point[old] for old, new in zip(box, domain.variables, strict=True)}
        is_inside = all(v.lower <= value <= v.upper for v, value in now.items())
        is_inside = is_inside and holds(domain.constraints, now)
        assert is_inside == holds([constraint], point)


@given(st.data(), boxes(max_dims=2))
@fuzz(300)
def test_residues_with_narrower_variables_are_those_that_are_normalised_again(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    dividend = sum((v * data.draw(st.integers(-9, 9)) for v in box), box[0] * 0)
    expr = (dividend + data.draw(st.integers(-9, 9))) % data.draw(st.integers(2, 12))
    first = data.draw(st.integers(0, 11))
    constraint = normalise(Constraint(expr, first, data.draw(st.integers(first, 11))))
    if constraint is None:
        return
    changed = {}
    for v in box:
        lower = data.draw(st.integers(v.lower, v.upper))
        changed[v] = Variable(v.name, lower, data.draw(st.integers(lower, v.upper)))
    narrower = Substitution({v: now.as_expr() for v, now in changed.items()})
    again = normalise(constraint.with_expr(narrower(constraint.expr)))
    moved = on_narrower(constraint, changed)
    if moved is not None:
        assert moved == again
        assert moved.residues == again.residues


# ---------------------------------------------------------------- proofs

PAIRS = [(2, 3), (4, 6), (6, 4), (8, 12), (5, 5), (12, 18), (7, 2)]


def prove(condition: str) -> bool:
    """No integers at all satisfy the condition: ISL's proof, for unbounded variables."""
    return bool(islpy.Set.read_from_str(islpy.DEFAULT_CONTEXT, condition).is_empty())


def assert_congruence_means(one: Residues, two: str) -> None:
    """Assert that the congruence `one`, which may be false, is equivalent to the condition `two` on x."""
    if one.is_false:
        assert prove(f"{{ [x] : {two} }}")
    else:
        after = f"x mod {one.modulus} = {one.lower}"
        assert prove(f"{{ [x] : {two} and not ({after}) }}")
        assert prove(f"{{ [x] : {after} and not ({two}) }}")


@pytest.mark.parametrize("m", [2, 3, 4, 5, 6, 8, 12])
def test_shift_and_negation_are_proved_for_all_integers(m: int) -> None:
    v = Variable("x", -1000, 1000)  # wide enough for every residue of every sign
    for c in (-m - 1, -1, 0, m // 2, m):
        for sign in (1, -1):
            for low in range(m):
                for high in range(low, min(m, low + m - 1)):
                    canonical = residues_of((v * sign + c) % m, (low, high))
                    assert canonical is not None
                    _, first, last = canonical.written
                    inside = f"{low} <= ({sign}*x + {c}) mod {m} <= {high}"
                    offset = canonical.lower if canonical.upper >= m else 0
                    after = f"{first} <= (x - {offset}) mod {m} <= {last}"
                    assert prove(f"{{ [x] : {inside} and not ({after}) }}")
                    assert prove(f"{{ [x] : {after} and not ({inside}) }}")


@pytest.mark.parametrize("m, n", PAIRS)
def test_combined_congruences_are_proved_for_all_integers(m: int, n: int) -> None:
    for r in range(m):
        for s in range(n):
            one = intersection(Residues(x, m, r, r), Residues(x, n, s, s))
            assert one is not None
            assert_congruence_means(one, f"x mod {m} = {r} and x mod {n} = {s}")


@pytest.mark.parametrize("m, k", [(2, 2), (2, 3), (3, 2), (4, 3), (5, 2)])
def test_selection_of_the_only_residue_is_proved_for_all_integers(m: int, k: int) -> None:
    n, joined = m * k, 0
    for r in range(m):
        for low in range(n):
            for high in range(low + 1, low + n - 1):
                one = intersection(Residues(x, n, low, high), Residues(x, m, r, r))
                fitting = [v for v in range(low, high + 1) if v % m == r]
                assert (one is None) == (len(fitting) > 1)
                if one is None:
                    continue
                joined += 1
                assert one.is_false or one.modulus == n
                two = f"x mod {m} = {r} and (x - {low}) mod {n} <= {high - low}"
                assert_congruence_means(one, two)
    assert joined

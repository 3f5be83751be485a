"""Laws on constrained domains: hits, near misses with their witnesses, and enumeration."""

# ruff: noqa: E501 - a row of a table is one line

from collections import Counter
from collections.abc import Iterable, Sequence

import islpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplifier import exact, variable
from simplifier.atoms import Variable, variables_in
from simplifier.conjunction import merge_constraints
from simplifier.constraints import Constraint
from simplifier.domain import tighten
from simplifier.linear import Expr, constant
from simplifier.open_groups import is_known_nonempty
from simplifier.refine import ATOMS, GROUPS, _within_budget, has_points, refine
from simplifier.rewrite import _MAX_REWRITTEN, Rewriting
from simplifier.solve import change, project
from simplifier.substitute import Substitution
from tests.oracles import boxes, fuzz, holds, points, sums, tree_expr, trees

x, y, s = variable("x", -20, 20), variable("y", 0, 9), variable("s", 0, 11)

# fmt: off
REWRITTEN = [
    # constraint                  before                       after, None where nothing may change
    (Constraint(x % 4, 1, 1),     x // 4 * 8,                  x * 2 - 2),               # zero
    (Constraint(x % 4, 1, 2),     x // 4 * 8,                  None),                    # x = 2 gives 0, not 2
    (Constraint(x - y, 0, 0),     (x + y) // 2,                y),
    (Constraint(x - y, 1, 1),     (x + y) // 2,                y),
    (Constraint(x - y, 0, 1),     (x + y) // 2,                None),                    # x = 2, y = 1: in floor(3 / 2) both meet, but not in x
    (Constraint(x % 2, 1, 1),     (x - 1) // 2,                x // 2),                  # residue
    (Constraint(x % 2, 1, 1),     (x + 1) // 2,                x // 2 + 1),
    (Constraint(x % 2, 0, 0),     (x + 1) // 2,                x // 2),
    (Constraint(x % 4, 3, 3),     (x + 2) // 8,                (x + 2 - 1) // 8),        # 5 - 8k to 5: the multiple of 4 below
    (Constraint(x % 3, 1, 1),     (x + 1) // 2,                None),                    # a residue modulo 3 gives no residue modulo 2 (x = 1)
    (Constraint((x + y) % 6, 5, 5), (x + y + 1) // 3 * 3,      x + y + 1),
    (Constraint(x % 4, 1, 1),     x % 4,                       x * 0 + 1),               # point
    (Constraint(x + y, 4, 7),     (x + y) // 4,                x * 0 + 1),
    (Constraint(x + y, 4, 8),     (x + y) // 4,                None),                    # x = 4, y = 4 gives 2
]
# fmt: on


@pytest.mark.parametrize("constraint, before, after", REWRITTEN)
def test_an_expression_is_rewritten_on_a_domain(
    constraint: Constraint, before: Expr, after: Expr | None
) -> None:
    rewritten = Rewriting(merge_constraints([constraint]))(before)
    if after is None:
        assert rewritten == before
    else:
        assert rewritten == Rewriting(merge_constraints([constraint]))(after)
        assert rewritten != before
    for point in points((x.variables()[0], y.variables()[0])):
        if holds([constraint], point):
            assert rewritten.value(point) == before.value(point), point


# fmt: off
SOLVED = [
    # constraint                          s becomes
    (Constraint(s - x, 0, 0),             "x"),                        # determined
    (Constraint(x * 3 - s + y, -2, -2),   "x * 3 + y + 2"),
    (Constraint(x - s * 4, 0, 3),         "x floordiv 4"),
    (Constraint(x + s * 4, -1, 2),        "(-x + 2) floordiv 4"),
    (Constraint(x - s * 4, 0, 4),         None),                       # x = 4: s = 0 and s = 1
    (Constraint(x - s * 2, 0, 0),         "x floordiv 2"),             # and x is even
    (Constraint(s % 4, 1, 1),             "s * 4 + 1"),                # strided
    (Constraint((s * 3 + 1) % 4, 0, 0),   "s * 4 + 1"),
    (Constraint(s % 4, 1, 2),             None),                       # s = 1, 2, 5, 6, …: no stride
    (Constraint((s + x) % 4, 1, 1),       None),                       # which s depends on x
]
# fmt: on


@pytest.mark.parametrize("constraint, text", SOLVED)
def test_a_variable_is_solved_for(constraint: Constraint, text: str | None) -> None:
    (old,) = s.variables()
    solution = change([[old]], merge_constraints([constraint]), [s])
    assert (str(solution.values[old]) if solution else None) == text


# fmt: off
PROJECTED = [
    # constraint                      without s, which is in [0, 11]
    (Constraint(x + s, 5, 9),         "x in [-6, 9]"),
    (Constraint(x - s, 5, 9),         "x in [5, 20]"),
    (Constraint(x + s * 5, 5, 9),     "x in [-50, 9]"),
    (Constraint(x + s * 5, 5, 8),     None),                    # x = 4 reaches 4 and 9: none between
    (Constraint(x * 3 - s * 4, 0, 6), "x * 3 in [0, 50]"),
    (Constraint((x + s) % 4, 1, 1),   "0 in [0, 0]"),           # 12 values of s reach every residue
    (Constraint((x + s) % 12, 1, 1),  "0 in [0, 0]"),
    (Constraint((x + s) % 13, 1, 1),  None),                    # x = 2: s = 12 is missing
    (Constraint((x + s * 2) % 4, 1, 1), None),                  # x = 0: s * 2 is even
    (Constraint((s // 3 + s + x) % 4, 1, 1), None),             # s is in a floor too
]
# fmt: on


@pytest.mark.parametrize("constraint, text", PROJECTED)
def test_a_variable_is_projected_out(constraint: Constraint, text: str | None) -> None:
    (old,) = s.variables()
    projection = project(constraint, old)
    assert (str(projection) if projection else None) == text
    if projection:
        (left,) = x.variables()
        for point in points((left,)):
            some = any(holds([constraint], point | inner) for inner in points((old,)))
            assert holds([projection], point) == some, point


# fmt: off
n, m = Variable("n", 2, 4), Variable("m", -1, 3)  # 3 and 5 values
MIXED = [
    # expressions                           one variable instead
    ([n + m * 3],                           True),
    ([n * 2 + m * 6 + 1, -n - m * 3],       True),
    ([n - m * 3],                           True),         # m runs the other way
    ([(n + m * 3) // 2, (n + m * 3) % 4],   True),         # the normal form splits the sum
    ([n * 5 + m],                           True),         # m is the low part
    ([n + m * 4],                           False),        # n = 5 is missing: gaps
    ([n + m * 2],                           False),        # n = 4, m = 0 is n = 2, m = 1: reached twice
    ([n + m * 3, m * 1],                    False),        # m occurs outside the sum too
    ([n + m * 3, n * 2 - m * 6],            False),
]
# fmt: on


@pytest.mark.parametrize("exprs, one", MIXED)
def test_a_mixed_radix_pair_is_merged(exprs: list[Expr], one: bool) -> None:
    merge = change([[n, m]], [], exprs)
    assert (merge is not None) == one
    if merge:
        (new,) = [v for v in merge.replacements.values() if v]
        swap = Substitution(merge.values)
        before = Counter(tuple(e.value(p) for e in exprs) for p in points((n, m)))
        after = Counter(tuple(swap(e).value(p) for e in exprs) for p in points((new,)))
        assert after == before


@st.composite
def couple(draw: st.DrawFn, box: tuple[Variable, ...], max_count: int = 3) -> list[Constraint]:
    """Constraints as programs have them: sums, congruences, equations."""
    constraints = []
    for _ in range(draw(st.integers(1, max_count))):
        expr = tree_expr(draw(sums(len(box))), box)
        lower = draw(st.integers(-9, 9))
        match draw(st.sampled_from(["sum", "equal", "congruent", "tree"])):
            case "sum":
                constraints.append(Constraint(expr, lower, lower + draw(st.integers(0, 12))))
            case "equal":
                constraints.append(Constraint(expr, lower, lower))
            case "congruent":
                modulus = draw(st.integers(2, 6))
                constraints.append(Constraint(expr % modulus, lower % modulus, lower % modulus))
            case _:
                tree = tree_expr(draw(trees(len(box), leaves=4)), box)
                constraints.append(Constraint(tree, lower, lower + draw(st.integers(0, 6))))
    return constraints


@given(st.data(), boxes())
@fuzz(300)
def test_rewriting_keeps_the_values_on_the_domain(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    constraints = merge_constraints(data.draw(couple(box)))
    expr = tree_expr(data.draw(trees(len(box), leaves=8)), box)
    rewritten = Rewriting(constraints)(expr)
    for point in points(box):
        if holds(constraints, point):
            assert rewritten.value(point) == expr.value(point), point


@given(st.data(), boxes(max_dims=2), boxes(max_dims=2, prefix="s"))
@fuzz(300)
def test_changes_are_bijections(
    data: st.DataObject, box: tuple[Variable, ...], free: tuple[Variable, ...]
) -> None:
    every = (*box, *free)
    constraints = merge_constraints(data.draw(couple(every, max_count=2)))
    exprs = [tree_expr(data.draw(trees(len(every), leaves=4)), every) for _ in range(2)]
    replacement = change([free], constraints, exprs)
    if replacement is None:
        return
    swap = Substitution(replacement.values)
    instead = [replacement.replacements.get(v, v) for v in every]
    left = [Constraint(swap(c.expr), c.lower, c.upper) for c in constraints]

    def reached_values(
        variables: Sequence[Variable], conditions: Iterable[Constraint], values: Iterable[Expr]
    ) -> Counter[tuple[object, ...]]:
        values, conditions = list(values), list(conditions)
        return Counter(
            (tuple(p[v] for v in box), *[e.value(p) for e in values])
            for p in points(variables)
            if holds(conditions, p)
        )

    after = reached_values(
        [v for v in instead if v], [*left, *replacement.constraints], map_all(swap, exprs)
    )
    assert after == reached_values(every, constraints, exprs)


def map_all(swap: Substitution, exprs: list[Expr]) -> list[Expr]:
    return [swap(expr) for expr in exprs]


# ---------------------------------------------------------------- implied constraints

block, thread = Variable("block", 0, 1365), Variable("thread", 0, 95)
at = block * 96 + thread
pixel, tap = Variable("pixel", 0, 1023), Variable("tap", 0, 1)
row, column = pixel + tap * 32, pixel % 32 + tap
# fmt: off
IMPLIED = [
    # constraints, and those that stay
    ([(at, 0, 131_071), (at - at // 65_536 * 131_072, -65_536, 65_535)],  [0]),     # at floordiv 65536 is 0 or 1
    ([(at, 0, 131_071), (at - at // 65_536 * 131_072, -65_536, 65_534)],  [0, 1]),  # 65535 = 682·96 + 63
    ([(at, 0, 131_072), (at - at // 65_536 * 131_072, -65_536, 65_535)],  [0, 1]),  # -131072 at block 1365, thread 32
    ([(row % 64, 32, 63), (row, 32, 1023)],   [0]),     # below 32 and above 1023 it has other residues
    ([(row % 64, 32, 63), (row, 33, 1023)],   [0, 1]),  # pixel = 32
    ([(row % 64, 31, 63), (row, 32, 1023)],   [0, 1]),  # pixel = 31
    ([((pixel + tap) % 2, 1, 1), (column, 1, 31)],  [0]),     # it is odd, as pixel + tap is
    ([((pixel + tap) % 2, 1, 1), (column, 2, 31)],  [0, 1]),  # pixel = 1, tap = 0
    ([((pixel + tap) % 2, 1, 1), (column, 1, 30)],  [0, 1]),  # pixel = 31, tap = 0
]
# fmt: on


@pytest.mark.parametrize("rows, kept", IMPLIED)
def test_constraints_implied_by_intervals_are_dropped(
    rows: list[tuple[Expr, int, int]], kept: list[int]
) -> None:
    before = exact.query_count()
    constraints = [Constraint(*each) for each in rows]
    variables = tuple(dict.fromkeys(v for c in constraints for v in c.expr.variables()))
    domain = tighten(variables, constraints)
    assert {*map(str, domain.constraints)} == {str(constraints[k]) for k in kept}
    assert exact.query_count() == before
    original = exact.Relation(variables, (), (), tuple(constraints))
    assert (
        exact.difference(original, exact.Relation(domain.variables, (), (), domain.constraints))
        is None
    )


# ---------------------------------------------------------------- exact refinement

a, b, c = Variable("a", 0, 20), Variable("b", 0, 20), Variable("c", 0, 2)
few, high = Variable("few", 0, 1), Variable("high", 9, 14)
# fmt: off
REFINED = [
    # constraints                                                value                  on the domain
    ([Constraint(a + b, 0, 9), Constraint(a - b, 0, 9)],         (a + b * 2) // 22,     "0"),                    # at most 4 + 9
    ([Constraint(a + b, 0, 9), Constraint(a - b, 0, 9)],         (a + b * 2) // 13,     "(a + b * 2) floordiv 13"),   # a = 5, b = 4 gives 1
    ([Constraint((a + b) % 2, 0, 0), Constraint(a - b, 0, 9)],   (a - b) // 2 * 2,      "a - b"),                # a − b is even as a + b is
    ([Constraint((a + b) % 2, 0, 0), Constraint(a - b, 0, 9)],   (a - b) // 4 * 4,      "((a - b) floordiv 4) * 4"),
    ([Constraint(a - b * 3, 0, 0), Constraint(b % 2, 1, 1)],     (a + b) % 4,           "0"),                    # a + b = 4·b
    ([Constraint(a + b, 0, 9)],                                  (a + b + c) // 12,     "0"),                    # at most 9 + 2
    ([Constraint(a + b, 0, 9)],                                  (a + b + c) // 11,     "(a + b + c) floordiv 11"),
    ([Constraint(few + high * 4, 37, 40)],                       few + high,            "10"),                   # only (1, 9) and (0, 10)
    ([Constraint((few + high) % 5, 4, 4)],                       (few + high + 1) % 8,  "few + high - 7"),       # few + high is 9 or 14
    ([Constraint((few + high) % 5, 4, 4)],                       (few + high + 1) % 5,  "0"),
    ([Constraint(few * 2 + a, 4, 4)],                            a % 2,                 "0"),                    # a = 4 − 2·few
    ([Constraint(few * 3 + a, 4, 4)],                            a % 2,                 "a mod 2"),
]
# fmt: on


@pytest.mark.parametrize("constraints, value, text", REFINED)
def test_isl_refines_domains_with_inconclusive_intervals(
    constraints: list[Constraint], value: Expr, text: str
) -> None:
    box = sorted(variables_in([value, *[c.expr for c in constraints]]), key=lambda v: v.key)
    first = tighten(box, constraints)
    result = first.rebuild(box)(value)
    second = refine(first.variables, first.constraints, [result])
    if second is not None:
        result = second.rebuild(first.variables)(result)
    assert str(result) == text


@given(st.data(), boxes())
@fuzz(150)
def test_refinement_keeps_the_points_and_makes_bounds_exact(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    first = tighten(box, data.draw(couple(box)))
    expr = tree_expr(data.draw(trees(len(box), leaves=6)), first.variables)
    domain = None
    if not first.is_known_empty:
        domain = refine(first.variables, first.constraints, [expr])
    if domain is None:
        return
    inside = [p for p in points(first.variables) if holds(first.constraints, p)]
    after = [p for p in points(domain.variables) if holds(domain.constraints, p)]
    assert [tuple(p.values()) for p in after] == [tuple(p.values()) for p in inside]
    assert domain.is_known_empty == (not inside)
    rebuilt = domain.rebuild(first.variables)(expr)
    for before, now in zip(inside, after, strict=True):
        assert rebuilt.value(now) == expr.value(before)
        assert holds(domain.implied, now)
    tied = {v for c in domain.constraints for v in c.expr.variables()}
    for k, v in enumerate(domain.variables):
        if v in tied and len(domain.constraints) > 1:
            values = {tuple(p.values())[k] for p in after}
            assert v.bounds == (min(values), max(values))


@given(st.data(), boxes())
@fuzz(200)
def test_settled_constraints_have_points(data: st.DataObject, box: tuple[Variable, ...]) -> None:
    constraints = merge_constraints(data.draw(couple(box)))
    inside = any(holds(constraints, p) for p in points(box))
    assert has_points(constraints) is inside
    if is_known_nonempty(constraints):
        assert inside


def test_a_settled_domain_needs_no_query() -> None:
    before = exact.query_count()
    window = Constraint(a * 2 + Variable("w", 0, 2), 1, 40)
    stride = Constraint(b % 4, 1, 1)
    assert refine([a, b], [window, stride], [a // 3, (b + 7) // 2]) is None
    assert has_points([window, stride])
    assert exact.query_count() == before


def test_queries_are_memoised_and_counted() -> None:
    near = [Constraint(a + b, 0, 11), Constraint(a - b, 0, 11)]
    before = exact.query_count("tight_bounds")
    one = refine([a, b], near, [(a + b * 2) // 5])
    assert exact.query_count("tight_bounds") == before + 1
    assert refine([a, b], near, [(a + b * 2) // 5]) == one
    assert exact.query_count("tight_bounds") == before + 1


def test_one_pass_refines_a_limited_number_of_groups() -> None:
    pairs = [(Variable(f"a{k}", 0, 20), Variable(f"b{k}", 0, 20)) for k in range(GROUPS + 3)]
    near = [Constraint(p + q * sign, 0, 11) for p, q in pairs for sign in (1, -1)]
    before = exact.query_count("tight_bounds")
    refine([v for pair in pairs for v in pair], near, [])
    assert exact.query_count("tight_bounds") == before + GROUPS


def test_isl_is_not_queried_if_the_budget_would_not_suffice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A small box is enumerated; for a large one there is no query."""
    a, b = Variable("a", 0, 99), Variable("b", 0, 99)
    sums = [(a + b * k) % 6 + (a * k + b) % 5 for k in range(1, 3)]
    near = [Constraint(each, 1, 8) for each in sums] + [Constraint(a + b, 0, 20)]
    domain = refine([a, b], near, [])
    assert domain is not None
    assert [v.bounds for v in domain.variables] == [(0, 20), (0, 20)]
    _within_budget.cache_clear()
    monkeypatch.setattr("simplifier.exact.points.MAX_AT_ONCE", 0)
    assert sum(c.expr.weight for c in near if c.expr.divides) > ATOMS
    before = exact.query_count("tight_bounds")
    assert refine([a, b], near, []) is None
    assert exact.query_count("tight_bounds") == before


def test_a_domain_beyond_the_budget_is_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simplifier.exact.points.MAX_AT_ONCE", 0)
    monkeypatch.setattr("simplifier.refine.BUDGET", 10)
    near = [Constraint(a + b, 0, 13), Constraint(a - b, 0, 13)]
    assert refine([a, b], near, [(a + b * 2) // 29]) is None
    assert has_points(near), "sample points prove it"
    p, q = Variable("p", 0, 10**6), Variable("q", 0, 10**6)
    assert has_points([Constraint(p - q, 77, 77), Constraint(p + q, 1001, 1003)]) is None


# ---------------------------------------------------------------- proofs


def prove(condition: str) -> bool:
    """No integers at all satisfy the condition: ISL's proof, for unbounded variables."""
    return bool(islpy.Set.read_from_str(islpy.DEFAULT_CONTEXT, condition).is_empty())


@pytest.mark.parametrize("d", [2, 3, 4, 5, 6, 8, 12])
def test_the_residue_law_is_proved_for_all_integers(d: int) -> None:
    """``floor((n + c) / d) = floor((n + g·floor((r + c) / g)) / d)`` where ``n ≡ r (mod g)``."""
    for g in [g for g in range(2, d + 1) if d % g == 0]:
        for r in range(g):
            for c in range(-d, d + 1):
                moved = g * ((r + c) // g)
                at = f"n mod {g} = {r} and floor((n + {c})/{d}) != floor((n + {moved})/{d})"
                assert prove(f"{{ [n] : {at} }}")
    for r in range(d):
        assert prove(f"{{ [n] : n mod {d} = {r} and {d}*floor(n/{d}) != n - {r} }}")
    missed = f"n mod {d + 1} = 1 and floor((n + 1)/{d}) != floor(n/{d})"  # the near miss: no g | d
    assert not prove(f"{{ [n] : {missed} }}")


@pytest.mark.parametrize("c", [1, 2, 3, 4, 7])
def test_solving_and_projection_are_proved_for_all_integers(c: int) -> None:
    """Solving for every narrower interval, projection for every wider one; both signs."""
    for a_, width in ((-3, 0), (0, c - 1), (5, max(0, c - 2))):
        b_ = a_ + width
        inside = f"{a_} <= {c}*s + e <= {b_}"
        assert prove(f"{{ [s, e] : {inside} and s != floor(({b_} - e)/{c}) }}")
        negated = f"{a_} <= e - {c}*s <= {b_}"
        assert prove(f"{{ [s, e] : {negated} and s != floor((e - {a_})/{c}) }}")
    two = f"0 <= {c}*s + e <= {c} and s != floor(({c} - e)/{c})"  # one wider: s may be another
    assert not prove(f"{{ [s, e] : {two} }}")
    for p, q, width in ((0, 3, c - 1), (-2, 5, c), (4, 4, 2 * c)):
        some = f"exists (s : {p} <= s <= {q} and 0 <= {c}*s + e <= {width})"
        after = f"{-c * q} <= e <= {width - c * p}"
        assert prove(f"{{ [e] : ({some}) and not ({after}) }}")
        assert prove(f"{{ [e] : {after} and not ({some}) }}")
    if c > 1:
        gap = f"exists (s : 0 <= s <= 3 and 0 <= {c}*s + e <= {c - 2})"
        assert not prove(f"{{ [e] : {-3 * c} <= e <= {c - 2} and not ({gap}) }}")


def test_rewriting_memoises_a_bounded_number_of_expressions() -> None:
    x, y = Variable("x", 0, 999), Variable("y", 0, 999)
    rewriting = Rewriting([Constraint(x + y, 0, 9)])
    for k in range(2 * _MAX_REWRITTEN):
        assert rewriting((x + y + k * 10) // 10) == constant(k)
    assert len(rewriting._rewritten) <= _MAX_REWRITTEN

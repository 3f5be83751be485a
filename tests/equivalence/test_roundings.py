"""Roundings to a narrower type: a program after may round less than one before, not more."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
from indexing import equivalent
from indexing.equivalence import Differs, Proved
from indexing.equivalence.roundings import widen_floats
from indexing.equivalence.values.engine import ValueComparison
from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.laws.roundings import EXCESS, FACTORS
from indexing.equivalence.values.terms.terms import FormulaTable
from indexing.execution import run
from tests.equivalence.value_terms import edges, parameter, same, value
from tests.growth.work import calls_of

HEAD = """HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e { """


def proof(before: str, after: str) -> Proved:
    verdict = equivalent(hlo.parse(f"{HEAD}{before} }}"), hlo.parse(f"{HEAD}{after} }}"))
    assert isinstance(verdict, Proved), verdict
    return verdict


def word(before: str, after: str) -> str:
    verdict = equivalent(hlo.parse(f"{HEAD}{before} }}"), hlo.parse(f"{HEAD}{after} }}"))
    return str(verdict.word)


X = "x = f32[7] parameter(0)  "
ROUNDED = X + "n = bf16[7] convert(x)  w = f32[7] convert(n)  "
WHOLE = X + "w = f32[7] copy(x)  "


@pytest.mark.parametrize(
    "rest",
    [
        "ROOT r = f32[7] exponential(w)",
        "ROOT r = f32[7] add(w, x)",
        "z = f32[] constant(0)  ROOT r = f32[] reduce(w, z), dimensions={0}, to_apply=add",
    ],
)
def test_a_rounding_may_be_removed_but_not_inserted(rest: str) -> None:
    assert EXCESS in proof(ROUNDED + rest, WHOLE + rest).laws
    assert word(WHOLE + rest, ROUNDED + rest) == "differs by rounding"
    assert proof(ROUNDED + rest, ROUNDED + rest).word == "equal to the last bit"


def test_a_rounding_that_both_programs_have_needs_no_law() -> None:
    half = "c = f32[] constant(2)  b = f32[7] broadcast(c), dimensions={}  "
    ours = ROUNDED + half + "d = f32[7] multiply(x, b)  ROOT r = f32[7] divide(w, d)"
    theirs = ROUNDED + half + "q = f32[7] divide(w, x)  ROOT r = f32[7] divide(q, b)"
    assert EXCESS not in proof(ours, theirs).laws


def test_a_rounding_is_removed_where_another_one_stays() -> None:
    """The sums are reassociated: no law of one side alone relates both programs."""
    y = "y = f32[7] parameter(1)  m = bf16[7] convert(y)  v = f32[7] convert(m)  "
    before = f"{ROUNDED}{y}s = f32[7] add(w, v)  ROOT r = f32[7] multiply(s, x)"
    kept = f"{WHOLE}{y}s = f32[7] add(v, w)  ROOT r = f32[7] multiply(x, s)"
    assert EXCESS in proof(before, kept).laws
    moved = (
        f"{ROUNDED}y = f32[7] parameter(1)  s = f32[7] add(w, y)  ROOT r = f32[7] multiply(s, x)"
    )
    assert word(kept, moved) != "equal over the reals"


P, Q = "p = f32[3,5] parameter(0)  q = f32[5,4] parameter(1)  ", "p, q"
NARROW = (
    P
    + """np = bf16[3,5] convert(p)  nq = bf16[5,4] convert(q)
  wp = f32[3,5] convert(np)  wq = f32[5,4] convert(nq)  """
)
DOT = "f32[3,4] dot(%s), lhs_contracting_dims={1}, rhs_contracting_dims={0}"


@pytest.mark.parametrize(
    "operands, attributes",
    [("np, nq", ""), ("wp, wq", ""), ("np, nq", ", operand_precision={default,default}")],
)
def test_a_product_of_default_precision_rounds_its_factors(operands: str, attributes: str) -> None:
    verdict = proof(f"{P}ROOT r = {DOT % Q}", f"{NARROW}ROOT r = {DOT % operands}{attributes}")
    assert verdict.laws == {FACTORS: 1}


HIGHEST = ", operand_precision={highest,highest}"
BY_HAND = """bp = f32[3,5,4] broadcast(%s), dimensions={0,1}
  bq = f32[3,5,4] broadcast(%s), dimensions={1,2}  m = f32[3,5,4] multiply(bp, bq)
  z = f32[] constant(0)  ROOT r = f32[3,4] reduce(m, z), dimensions={1}, to_apply=add"""


@pytest.mark.parametrize(
    "before, after",
    [
        (f"{P}ROOT r = {DOT % Q}{HIGHEST}", f"{NARROW}ROOT r = {DOT % 'wp, wq'}{HIGHEST}"),
        (P + BY_HAND % ("p", "q"), NARROW + BY_HAND % ("wp", "wq")),
        (f"{P}ROOT r = {DOT % Q}", f"{P}d = {DOT % Q}  n = bf16[3,4] convert(d)  "
         "ROOT r = f32[3,4] convert(n)"),
    ],
)  # fmt: skip
def test_other_roundings_are_differences(before: str, after: str) -> None:
    assert word(before, after) == "differs by rounding"


def test_a_fault_is_not_taken_for_a_rounding() -> None:
    shifted = "s = bf16[6] slice(n), slice={[%s]}  ROOT r = f32[6] convert(s)"
    verdict = equivalent(
        hlo.parse(HEAD + ROUNDED + shifted % "0:6" + "}"),
        hlo.parse(HEAD + ROUNDED + shifted % "1:7" + "}"),
    )
    assert isinstance(verdict, Differs)
    assert not verdict.by_rounding


def test_differences_without_narrow_floats_are_no_roundings() -> None:
    one = (
        "c = f32[] constant(%s)  b = f32[7] broadcast(c), dimensions={}  ROOT r = f32[7] add(x, b)"
    )
    assert word(X + one % "1", X + one % "1.01") == "differs"


def test_bits_of_floats_have_no_form_in_f64() -> None:
    assert widen_floats(hlo.parse("ENTRY e { p = f32[2] parameter(0)  "
                             "ROOT b = s32[2] bitcast-convert(p) }")) is None  # fmt: skip
    module = widen_floats(hlo.parse(f"{HEAD}{ROUNDED}ROOT r = f32[7] negate(w) }}"))
    assert module is not None
    given = np.array([1 / 3] * 7)
    assert (run(module, [given])[0] == -given).all()


@pytest.mark.parametrize("opcode", ["maximum", "minimum", "negate", "abs", "select"])
@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_roundings_commute_with_selecting_functions(opcode: str, kind: str) -> None:
    table = FormulaTable()
    values = {}
    known = np.array([*edges("f32"), 1 / 3, -2.7182818, 65519.0, 65520.0, 1e-7], np.float32)
    rows, columns = np.divmod(np.arange(len(known) ** 2), len(known))
    x, y = parameter(table, "f32", 0), parameter(table, "f32", 1)
    values = {x: known[rows], y: known[columns]}
    made = []
    for algebra in (FormulaAlgebra(table), FormulaAlgebra(table, laws={})):
        narrow = algebra.apply("convert", (), kind, [x])
        rounded = algebra.apply("convert", (), "f32", [narrow])
        others = {"negate": [], "abs": [], "select": [y]}.get(opcode, [y])
        if opcode == "select":
            p = algebra.apply("compare", (("direction", "LT"), ("type", "")), "pred", [x, y])
            term = algebra.apply(opcode, (), "f32", [p, rounded, *others])
        else:
            term = algebra.apply(opcode, (), "f32", [rounded, *others])
        made.append(algebra.apply("convert", (), kind, [term]))
    assert made[0] is not made[1]
    with np.errstate(all="ignore"):
        ours, theirs = (value(each, values, {}) for each in made)
    zero = np.asarray(ours).astype(np.float32) == 0  # HLO leaves open which zero is the maximum
    assert (same(np.asarray(ours), np.asarray(theirs)) | zero).all()


def test_roundings_do_not_commute_with_sums() -> None:
    sum_of = "s = f32[7] add(w, x)  n2 = bf16[7] convert(s)  ROOT r = f32[7] convert(n2)"
    assert word(WHOLE + sum_of, ROUNDED + sum_of) != "equal to the last bit"


ALL = [None, "added to factors", "dropped"]
WIDENED = """p = bf16[4,3] parameter(0)  q = bf16[4,3] parameter(1)  y = bf16[3,5] parameter(2)
  wide = f32[4,3] convert(p)  other = f32[4,3] convert(q)
  c = f32[] constant(0.5)  half = f32[4,3] broadcast(c), dimensions={}
  t = f32[] constant(0.3333333)  third = f32[4,3] broadcast(t), dimensions={}"""
# fmt: off
REPEATED = [
    # factors                                                        comparisons
    ("x = bf16[4,3] parameter(0)  y = bf16[3,5] parameter(1)",      [None, "dropped"]),
    ("x = f32[4,3] parameter(0)  y = bf16[3,5] parameter(1)",       ALL),
    ("x = f32[4,3] parameter(0)  y = f32[3,5] parameter(1)",        ALL),
    (f"{WIDENED} x = f32[4,3] maximum(wide, other)",                 [None, "dropped"]),
    (f"{WIDENED} x = f32[4,3] clamp(half, wide, other)",             [None, "dropped"]),
    (f"{WIDENED} x = f32[4,3] add(wide, other)",                     ALL),
    (f"{WIDENED} x = f32[4,3] maximum(wide, third)",                 ALL),
]
# fmt: on


@pytest.mark.parametrize(("factors", "comparisons"), REPEATED)
def test_factors_are_rounded_only_if_this_changes_one(
    monkeypatch: pytest.MonkeyPatch, factors: str, comparisons: list[str | None]
) -> None:
    text = f"""ENTRY e {{ {factors}
      d = f32[4,5] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
      b = bf16[4,5] convert(d)  ROOT r = bf16[4,5] %s(b) }}"""
    before, after = (hlo.parse(text % opcode).entry for opcode in ("sine", "cosine"))
    calls = calls_of(monkeypatch, ValueComparison, "_results")
    (result,) = ValueComparison().results(before, after)
    assert not result
    assert [comparison.roundings for comparison, *_ in calls] == comparisons

"""Maps that assume that the weights of masked scores are 0: `assume=("masked-softmax",)`."""

from __future__ import annotations

import pickle
from itertools import product
from typing import Any, Final

import numpy as np
import pytest

import hlo
import indexing
from indexing.execution import xla
from indexing.maps.answers import Answer
from tests.dataflow.influence import Array, different
from tests.oracles import union

ASSUME: Final = ("masked-softmax",)
SQUARE: Final = (4, 4)
FINITE: Final = (0.0, 1.0, -1.0, 0.37, 12.0, -12.0)
"""Values to change an element to: no score of them is infinite, and none is as low as a mask."""

BINARY: Final = """
max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] maximum(a, b) }
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
"""
ATTENTION: Final = (
    BINARY
    + """
ENTRY e {
  s = f32[4,4] parameter(0)
  v = f32[4] parameter(1)
  n = s32[] parameter(2)
  other = f32[4,4] parameter(3)
  i = s32[4,4] iota(), iota_dimension=0
  j = s32[4,4] iota(), iota_dimension=1
  until = s32[4,4] broadcast(n), dimensions={}
  zero = f32[] constant(0)
  zeros = f32[4,4] broadcast(zero), dimensions={}
  low = f32[] constant(LOW)
  lows = f32[4,4] broadcast(low), dimensions={}
  infinite = f32[] constant(-inf)
  MASK
  masked = f32[4,4] SCORES
  top = f32[4] reduce(MAXIMA, infinite), dimensions={1}, to_apply=max
  tops = f32[4,4] broadcast(top), dimensions={0}
  less = f32[4,4] subtract(masked, tops)
  e = f32[4,4] EXP
  all = f32[4] reduce(e, zero), dimensions={1}, to_apply=sum
  every = f32[4,4] broadcast(all), dimensions={0}
  w = f32[4,4] divide(e, every)
  ROOT r = ROOT_OP
}"""
)
LEAST: Final = "-3.40282347e+38"
CAUSAL: Final = "p = pred[4,4] compare(i, j), direction=GE"
ABOVE: Final = "p = pred[4,4] compare(i, j), direction=GT"
UNTIL: Final = "p = pred[4,4] compare(j, until), direction=LT"
DOT: Final = "f32[4] dot(w, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
SUMMED: Final = (
    "f32[4] reduce(product, zero), dimensions={1}, to_apply=sum",
    "vs = f32[4,4] broadcast(v), dimensions={1}  product = f32[4,4] multiply(vs, w)",
)


def attention(mask: str = CAUSAL, root: str = DOT, more: str = "", **parts: str) -> hlo.Module:
    """Return a program with some of its parts replaced."""
    given = {"LOW": "-inf", "SCORES": "select(p, s, lows)", "MAXIMA": "masked"}
    given |= {"EXP": "exponential(less)"} | {name.upper(): part for name, part in parts.items()}
    text = ATTENTION.replace("ROOT_OP", root).replace("MASK", mask)
    for name, part in given.items():
        text = text.replace(name, part)
    return hlo.parse(text.replace("  ROOT r", f"  {more}\n  ROOT r"))


def answers(module: hlo.Module) -> tuple[Answer, Answer]:
    """Return the answers without and with the assumption."""
    root = module.entry.root
    return indexing.to_parameters(root), indexing.to_parameters(root, assume=ASSUME)


def reads_of_v(module: hlo.Module, **values: int) -> set[tuple[int, int]]:
    """Return the pairs of an element of the output and the element of `v` that it needs."""
    answer = answers(module)[1]
    (v,) = [k for k, operand in enumerate(answer.operands) if operand.name == "v"]
    pairs = set()
    for d in range(4):
        region = answer.at(d, **values)[v]
        assert isinstance(region, indexing.Region)
        pairs |= {(d, int(at[0])) for at in region.elements()}
    return pairs


EVERY: Final = {(i, j) for i in range(4) for j in range(4)}
LOWER: Final = {(i, j) for i, j in EVERY if j <= i}
BELOW: Final = {(i, j) for i, j in EVERY if j < i}

TIMES: Final = DOT.replace("w", "x")
"""The product with other weights."""

PROVED: Final[dict[str, tuple[dict[str, str], set[tuple[int, int]]]]] = {
    "-inf": ({}, LOWER),
    "least": ({"low": LEAST}, LOWER),
    "rows without a key, of -inf": ({"mask": ABOVE}, BELOW),
    "no maximum": ({"exp": "exponential(masked)"}, LOWER),
    "no maximum, least": ({"exp": "exponential(masked)", "low": LEAST}, LOWER),
    "-inf, another maximum": ({"maxima": "other"}, LOWER),
    "a sum of products": ({"root": SUMMED[0], "more": SUMMED[1]}, LOWER),
    "v first": (
        {"root": "f32[4] dot(v, w), lhs_contracting_dims={0}, rhs_contracting_dims={1}"},
        LOWER,
    ),
    "weights times a number": (
        {"more": "x = f32[4,4] multiply(other, w)", "root": TIMES},
        LOWER,
    ),
    "weights of less precision": (
        {"more": "h = bf16[4,4] convert(w)  x = f32[4,4] convert(h)", "root": TIMES},
        LOWER,
    ),
    "-inf added": (
        {"scores": "add(s, bias)", "mask": f"{CAUSAL}  bias = f32[4,4] select(p, zeros, lows)"},
        LOWER,
    ),
    "weights selected after softmax": (
        {"scores": "copy(s)", "more": "x = f32[4,4] select(p, w, zeros)", "root": TIMES},
        LOWER,
    ),
    "two masks": (
        {
            "mask": f"{CAUSAL}  q = pred[4,4] compare(j, i), direction=NE  "
            "inner = f32[4,4] select(q, s, lows)",
            "scores": "select(p, inner, lows)",
        },
        BELOW,
    ),
}
UNPROVED: Final[dict[str, dict[str, str]]] = {
    "a large number": {"low": "-1e9"},
    "the largest number": {"low": LEAST[1:]},
    "+inf": {"low": "inf"},
    "a row without a key": {"low": LEAST, "mask": ABOVE},
    "a runtime row without a key": {"low": LEAST, "mask": UNTIL},
    "the maximum of other scores": {"low": LEAST, "maxima": "other"},
    "the maximum of all scores before the mask": {"low": LEAST, "maxima": "s"},
    "a mask of floats": {"mask": "p = pred[4,4] compare(other, zeros), direction=GE"},
    "no exponential": {"exp": "negate(less)"},
    "weights plus a number": {"more": "x = f32[4,4] add(other, w)", "root": TIMES},
    "products that are not summed": {
        "more": SUMMED[1],
        "root": "f32[4,4] add(product, zeros)",
    },
}


@pytest.mark.parametrize("name", PROVED)
def test_masked_weights_do_not_read(name: str) -> None:
    parts, expected = PROVED[name]
    module = attention(**parts)
    assert reads_of_v(module) == expected
    plain, assumed = answers(module)
    for operand, before, after in zip(plain.operands, plain.maps, assumed.maps, strict=True):
        assert not any(m.assumptions for m in before)
        if operand.name == "v":
            assert union(before) == {((i,), (j,)) for i, j in EVERY}
            assert {m.assumptions for m in after} == {ASSUME}
        else:
            assert before == after


@pytest.mark.skipif(not xla.is_available(), reason="needs jaxlib (extra xla)")
@pytest.mark.parametrize("name", PROVED)
def test_executions_of_finite_values_read_what_masked_weights_read(name: str) -> None:
    parts, expected = PROVED[name]
    module = attention(**parts)
    random = np.random.default_rng(0)
    s, v, other = [random.standard_normal(dims).astype(np.float32) for dims in (SQUARE, 4, SQUARE)]

    def output(v: Array) -> Array:
        (result,) = xla.run(module, [s, v, np.int32(2), other])
        return np.asarray(result)

    before, seen = output(v), set()
    for j, value in product(range(4), FINITE):
        changed = v.copy()
        changed[j] = value
        seen |= {(int(i), j) for i in np.flatnonzero(different(before, output(changed)))}
    assert seen == {(i, j) for i, j in expected if not np.isnan(before[i])}


@pytest.mark.parametrize("name", UNPROVED)
def test_weights_that_need_not_be_0_read_everything(name: str) -> None:
    plain, assumed = answers(attention(**UNPROVED[name]))
    assert plain.maps == assumed.maps


@pytest.mark.parametrize("n", [-1, 0, 1, 3, 9])
def test_runtime_masks_of_weights(n: int) -> None:
    assert reads_of_v(attention(UNTIL), n=n) == {(i, j) for i, j in EVERY if j < n}


FUSED: Final = (
    BINARY
    + """
product {
  w = f32[4,4] parameter(0)
  v = f32[4] parameter(1)
  ROOT r = f32[4] dot(w, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
maxima {
  s = f32[4,4] parameter(0)
  i = s32[4,4] iota(), iota_dimension=0
  j = s32[4,4] iota(), iota_dimension=1
  p = pred[4,4] compare(i, j), direction=GE
  low = f32[] constant(LEAST)
  lows = f32[4,4] broadcast(low), dimensions={}
  masked = f32[4,4] select(p, SCORES, lows)
  ROOT top = f32[4] reduce(masked, low), dimensions={1}, to_apply=max
}
weights {
  s = f32[4,4] parameter(0)
  top = f32[4] parameter(1)
  n = s32[] parameter(2)
  i = s32[4,4] iota(), iota_dimension=0
  j = s32[4,4] iota(), iota_dimension=1
  until = s32[4,4] broadcast(n), dimensions={}
  p = pred[4,4] compare(KEYS), direction=GE
  low = f32[] constant(LOW)
  lows = f32[4,4] broadcast(low), dimensions={}
  masked = f32[4,4] select(p, s, lows)
  tops = f32[4,4] broadcast(top), dimensions={0}
  less = f32[4,4] subtract(masked, tops)
  ROOT e = f32[4,4] exponential(less)
}
ENTRY e {
  s = f32[4,4] parameter(0)
  v = f32[4] parameter(1)
  n = s32[] parameter(2)
  top = f32[4] fusion(s), kind=kLoop, calls=maxima
  w = f32[4,4] fusion(s, top, n), kind=kLoop, calls=weights
  r = f32[4] fusion(w, v), kind=kLoop, calls=product
  t = f32[4] negate(v)
  ROOT all = f32[4] add(r, OTHER)
}"""
)
"""A softmax divided over fusions, each with its own mask of the scores."""


@pytest.mark.parametrize(
    ("is_proved", "changes"),
    [
        (True, {}),
        (True, {"LOW": "-inf"}),
        (True, {"LOW": "-inf", "SCORES": "lows"}),
        (False, {"SCORES": "lows"}),
        (False, {"LEAST": "0"}),
        (False, {"LOW": "-inf", "KEYS": "until, j"}),  # a runtime value of another computation
        (False, {"OTHER": "t"}),  # a second call, with other weights
    ],
)
def test_weights_of_other_fusions(is_proved: bool, changes: dict[str, str]) -> None:
    text = FUSED
    if "OTHER" in changes:
        text = text.replace("  t =", "  t = f32[4] fusion(s, v), kind=kLoop, calls=product\n  u =")
    names = {"SCORES": "s", "KEYS": "i, j", "OTHER": "t", "LOW": LEAST, "LEAST": LEAST}
    for name, part in (names | {n: c for n, c in changes.items() if n != "OTHER"}).items():
        text = text.replace(name, part)
    root = hlo.parse(text).entry["r"]
    (v,) = indexing.to_parameters(root, assume=ASSUME).maps[1]
    assert v.assumptions == (ASSUME if is_proved else ())
    assert union([v]) == {((i,), (j,)) for i, j in (LOWER if is_proved else EVERY)}


def test_an_instruction_alone_assumes_nothing() -> None:
    root = attention().entry.root
    assumed = indexing.output_to_input(root, assume=ASSUME)
    assert assumed.maps == indexing.output_to_input(root).maps


def test_all_queries_have_the_same_maps() -> None:
    root = attention().entry.root
    one = indexing.to_parameters(root, assume=ASSUME)
    *_, last = indexing.all_to_parameters(root.computation, assume=ASSUME)
    assert last.operands == one.operands[:2]
    assert last.maps == one.maps[:2]
    groups = indexing.grouped(root, assume=ASSUME)
    v = root.computation["v"]
    assert groups[v] == one.maps[1]
    assert {m.assumptions for m in groups[v]} == {ASSUME}


def test_an_unknown_assumption_is_an_error() -> None:
    root = attention().entry.root
    with pytest.raises(ValueError, match="no assumption is named `softmax`; there is `masked-"):
        indexing.to_parameters(root, assume=["softmax"])


def test_a_map_that_assumes_is_another_map() -> None:
    (m,) = indexing.to_parameters(attention().entry.root, assume=ASSUME).maps[1]
    text = "(d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 3], d0 - s0 in [0, 3]"
    assert str(m) == f"{text} assuming masked-softmax"
    plain = indexing.parse_map(text)
    assert m != plain
    assert plain != m
    assert m.is_equal(plain)
    for same in (indexing.parse_map(str(m)), pickle.loads(pickle.dumps(m))):
        assert (same, hash(same), same.assumptions) == (m, hash(m), ASSUME)
    assert m.simplify().assumptions == ()


# ---------------------------------------------------------------- executions


@pytest.mark.skipif(not xla.is_available(), reason="needs jaxlib (extra xla)")
@pytest.mark.parametrize("form", ["lowered", "optimized"])
@pytest.mark.parametrize(
    "name",
    [
        *("causal_tril", "causal_least", "sliding_window", "causal_batch_heads", "block_sparse"),
        *("padding_by_lengths", "cross_attention", "causal_with_lengths"),
    ],
)
def test_maps_have_what_executions_of_finite_values_need(
    name: str, form: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks import mask_truth
    from benchmarks.mask_programs import PROGRAMS
    from benchmarks.masks import Question, finding, run_of

    monkeypatch.setattr(mask_truth, "FLOATS", FINITE)
    program = PROGRAMS[name]
    module = indexing.from_jax(program.function, *program.arguments, stage=form)
    executions = mask_truth.Executions(program, form)
    answer = indexing.to_parameters(module.entry.root, assume=ASSUME)
    v = program.names.index("v")
    is_proved = name != "causal_with_lengths"  # a row may have the least number alone
    assert {m.assumptions for m in answer.maps[v]} == {ASSUME if is_proved else ()}
    for values in program.bound or ({},):
        bases = [program.base(seed, values) for seed in range(4)]
        needed = executions.needed(bases, fixed=program.runtime)
        question = Question(answer, v, values, run_of(module, bases[0]))
        assert finding(question, needed[0, v]).verdict == "tight" or not is_proved


@pytest.mark.skipif(not xla.is_available(), reason="needs jaxlib (extra xla)")
def test_a_fully_masked_row_of_least_numbers_reads_everything() -> None:
    """Its weights are equal; of -inf, they are NaN, and so is each sum of products."""
    values = np.arange(1, 5, dtype=np.float32)
    scores = np.zeros((4, 4), np.float32)
    for low, moves in ((LEAST, True), ("-inf", False)):
        module = attention(UNTIL, low=low)
        one, other = [
            np.asarray(xla.run(module, [scores, each, np.int32(0), scores])[0])
            for each in (values, values * 2)
        ]
        assert np.array_equal(one, other, equal_nan=True) != moves
        assert (reads_of_v(module, n=0) == EVERY) == moves

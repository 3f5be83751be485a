"""Induction variables and trip counts of loops, against their execution."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import hlo
import indexing
from hlo.shapes.element_type import range_of
from indexing import InductionVariable, TripCount, Unknown
from indexing.dataflow.loops.exits import AffineSequence, Exit, exit_of
from simplifier.linear import constant
from tests.dataflow.loop_programs import (
    DIRECTIONS,
    LoopText,
    RandomLoop,
    count_from,
    simulate,
    value_of,
)
from tests.dataflow.programs import execute_program

LESS = "  n = {kind}[] constant({n})\n  ROOT r = pred[] compare(i, n), direction={direction}"

DATA = Path(__file__).parent / "data" / "loops"
WRAPS = "carried element {{1}} may wrap around, beyond [{}, {}], before `r` ends the loop"
SIGNED, UNSIGNED = WRAPS.format(-128, 127), WRAPS.format(0, 255)
STEPS_OVER = "the loop may not terminate: the counter steps over its bound"
AWAY = "the loop may not terminate: the counter moves away from its bound"
ENDLESS = "the loop does not terminate: its condition never changes"

# fmt: off
COUNTS = [
    # type  start  step  direction  bound   trip count
    ("s32",   0,     1,  "LT",      10,     "10"),
    ("s32",   0,     3,  "LT",      10,     "4"),
    ("s32",   0,     3,  "LE",       9,     "4"),
    ("s32",  10,    -1,  "GT",       0,     "10"),
    ("s32",  10,    -4,  "GE",       0,     "3"),
    ("s32",   7,     1,  "LT",       7,     "0"),
    ("s32",   7,     1,  "LE",       7,     "1"),
    ("s32",   0,     5,  "NE",      20,     "4"),
    ("s32",   0,     5,  "NE",      21,     STEPS_OVER),
    ("s32",   4,     9,  "EQ",       4,     "1"),
    ("s32",   4,     9,  "EQ",       5,     "0"),
    ("s32",   0,     0,  "LT",       1,     ENDLESS),
    ("s32",   0,    -1,  "LT",       1,     AWAY),
    ("s8",    0,     1,  "LT",     127,     "127"),
    ("s8",    0,     1,  "LE",     127,     SIGNED),
    ("s8",    0,   100,  "LT",     101,     "14"),  # wraps around
    ("s8",    0,   100,  "LT",     100,     "1"),
    ("u8",  200,     5,  "LT",     250,     "10"),
    ("u8",    9,   255,  "GT",       3,     "6"),   # XLA writes i - 1 as i + 255
    ("u8",    0,   200,  "LT",     100,     "1"),   # but this is no step of -56
    ("u8",    9,   255,  "GE",       0,     UNSIGNED),
    ("u32",   9, 4294967295, "NE",   0,     "9"),
    ("s64",   0,     1,  "LT", 1 << 40,     str(1 << 40)),
    ("u64",   0,     1,  "LT", (1 << 64) - 1, str((1 << 64) - 1)),
]
# fmt: on


@pytest.mark.parametrize("kind, start, step, direction, bound, expected", COUNTS)
def test_a_constant_bound_gives_the_trip_count(
    kind: str, start: int, step: int, direction: str, bound: int, expected: str
) -> None:
    condition = LESS.format(kind=kind, n=bound, direction=direction)
    loop = count_from(kind, f"constant({start})", f"constant({step})", condition)
    count = indexing.trip_count(loop)
    assert str(count) == expected
    if isinstance(count, TripCount) and count.upper < 100:
        result = execute_program(loop.computation)
        assert result is not None
        assert result[0] == count.number


@pytest.mark.parametrize("kind", ["s4", "u4"])
def test_every_loop_of_a_small_type_is_counted_unless_its_counter_wraps(kind: str) -> None:
    """All starts, steps, bounds and directions of four bits."""
    limits = range_of(kind)
    assert limits is not None
    values, steps = range(limits[0], limits[1] + 1), range(-8, 16)
    for start, step, bound, direction in product(values, steps, values, DIRECTIONS):
        left = AffineSequence(constant(start), step)
        right = AffineSequence(constant(bound), 0)
        leaves = exit_of(left, right, direction)
        is_claimed = isinstance(leaves, Exit) and leaves.stays_within(left, limits)
        truth = simulate(start, step, bound, direction, limits)
        if truth is None or truth[1]:
            assert not is_claimed, (start, step, bound, direction)
        else:
            assert is_claimed, (start, step, bound, direction)
            assert isinstance(leaves, Exit)
            assert leaves.bounds == (truth[0], truth[0])


@pytest.mark.parametrize("kind", ["s8", "u8"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_unknown_starts_and_bounds_are_counted_as_in_execution(kind: str, direction: str) -> None:
    """The start, the bound or both are parameters: each claim holds for all of their values."""
    limits = range_of(kind)
    assert limits is not None
    values = [*range(limits[0], limits[1] + 1, 7), limits[1]]
    for step, given in product((1, -1, 2, -3, 127), ("start", "bound", "both")):
        condition = f"  ROOT r = pred[] compare(i, n), direction={direction}"
        declared = {name: f"{kind}[] parameter({k})" for k, name in enumerate(("start", "bound"))}
        before = "\n".join(f"  {name} = {text}" for name, text in declared.items())
        first = "start" if given != "bound" else "fixed"
        bound = "bound" if given != "start" else "fixed"
        before += f"\n  fixed = {kind}[] constant(5)"
        update = f"  step = {kind}[] constant({step % 256 if kind == 'u8' else step})"
        update += f"\n  j = {kind}[] add(i, step)"
        types = [f"{kind}[]"] * 2
        main = LoopText(["i", "n"], types, [first, bound], ["j", "n"], condition, update, before)
        count = indexing.trip_count(main.entry.root)
        if isinstance(count, Unknown):
            continue
        for number in values:
            start, top = (number if given != "bound" else 5), (number if given != "start" else 5)
            for other in values if given == "both" else [top]:
                truth = simulate(start, step, other, direction, limits)
                assert truth is not None
                assert not truth[1]
                assert count.lower <= truth[0] <= count.upper
                if count.iterations is not None:
                    arguments = {"start": start, "bound": other}
                    assert value_of(count.iterations, count.runtime, arguments) == truth[0]


@pytest.mark.parametrize("seed", range(40))
def test_random_loops_iterate_as_counted(seed: int) -> None:
    main = RandomLoop(seed).entry()
    count = indexing.trip_count(main.root)
    rng = np.random.default_rng(seed)
    shape = main.parameters[0].shape
    assert isinstance(shape, hlo.Shape)
    dtype = np.int8 if shape.element_type == "s8" else np.uint8
    for _ in range(3):
        p, q = [np.array(v % 256, np.uint8).astype(dtype) for v in rng.integers(-9, 30, 2)]
        result, arguments = execute_program(main, p, q), {"p": int(p), "q": int(q)}
        if result is None:
            assert isinstance(count, Unknown)
            continue
        iterations = int(result[0])
        if isinstance(count, TripCount):
            assert count.lower <= iterations <= count.upper
            if count.iterations is not None:
                assert value_of(count.iterations, count.runtime, arguments) == iterations
        for variable in indexing.induction_variables(main.root):
            value = value_of(variable.at(iterations), variable.runtime, arguments)
            difference = value - int(result[variable.path[0]])
            assert difference % (256 if variable.wraps else 1 << 64) == 0


# ---------------------------------------------------------------- forms of conditions and bodies

WIDE = """  a = s64[] convert(i)  b = s64[] constant(1000)
  ROOT r = pred[] compare(b, a), direction=GT"""
AFTER = """  o = s32[] constant(1)  n = s32[] constant(10)  a = s32[] add(i, o)
  ROOT r = pred[] compare(a, n), direction=LE"""
TWO = """  n = s32[] constant(10)  c = s32[] constant(4)  m = s32[] multiply(i, c)
  a = pred[] compare(i, n), direction=LT  l = s32[] constant(22)
  b = pred[] compare(m, l), direction=LT  ROOT r = pred[] and(a, b)"""
NOT = """  n = s32[] constant(10)  a = pred[] compare(i, n), direction=GE  ROOT r = pred[] not(a)"""
FLOAT = """  x = f32[] convert(i)  n = f32[] constant(10)
  ROOT r = pred[] compare(x, n), direction=LT"""
EITHER = """  n = s32[] constant(10)  a = pred[] compare(i, n), direction=LT
  ROOT r = pred[] or(a, a)"""
NARROW = """  a = s8[] convert(i)  n = s8[] constant(10)
  ROOT r = pred[] compare(a, n), direction=LT"""
NARROW_WRAPS = """  a = s8[] convert(i)  n = s8[] constant(127)
  ROOT r = pred[] compare(a, n), direction=LE"""
ALWAYS = "  ROOT r = pred[] constant(true)"
NEVER = "  ROOT r = pred[] constant(false)"
OTHER = "  ROOT r = pred[] compare(k, i), direction=EQ"
SQUARE = """  q = s32[] multiply(i, i)  n = s32[] constant(10)
  ROOT r = pred[] compare(q, n), direction=LT"""

# fmt: off
CONDITIONS = [
    # condition     trip count
    (WIDE,          "1000"),
    (AFTER,         "10"),
    (TWO,           "6"),
    (NOT,           "10"),
    (NARROW,        "10"),
    (NEVER,         "0"),
    (NARROW_WRAPS,  "carried element {1} may wrap around"),
    (ALWAYS,        "the loop does not terminate: the condition is constant"),
    (OTHER,         "the loop may not terminate: its condition never changes"),
    (FLOAT,         "10"),
    (EITHER,        "10"),
    (SQUARE,        "4"),
]
# fmt: on


@pytest.mark.parametrize("condition, expected", CONDITIONS)
def test_conditions_are_read_in_many_forms(condition: str, expected: str) -> None:
    loop = count_from(
        "s64" if condition == OTHER else "s32", "constant(0)", "constant(1)", condition
    )
    assert str(indexing.trip_count(loop)).startswith(expected)
    if expected.isdecimal() and int(expected) < 600:
        result = execute_program(loop.computation)
        assert result is not None
        assert result[0] == int(expected)


def test_a_data_dependent_exit_keeps_the_bound_of_the_counter() -> None:
    text = """
condition { s = (s32[], f32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  x = f32[] get-tuple-element(s), index=1  e = f32[] constant(0.1)  n = s32[] constant(50)
  a = pred[] compare(x, e), direction=GT  b = pred[] compare(i, n), direction=LT
  ROOT r = pred[] and(a, b) }
body { s = (s32[], f32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  x = f32[] get-tuple-element(s), index=1  h = f32[] constant(0.5)  y = f32[] multiply(x, h)
  o = s32[] constant(1)  j = s32[] add(i, o)  ROOT t = (s32[], f32[]) tuple(j, y) }
ENTRY main { x = f32[] parameter(0)  z = s32[] constant(0)  s = (s32[], f32[]) tuple(z, x)
  ROOT w = (s32[], f32[]) while(s), condition=condition, body=body }"""
    loop = hlo.parse(text).entry.root
    count = indexing.trip_count(loop)
    assert isinstance(count, TripCount)
    assert (count.lower, count.upper, count.iterations, count.number) == (0, 50, None, None)
    (variable,) = indexing.induction_variables(loop)
    assert str(variable) == "element {0}: from 0 by 1 while LT 50"


def test_a_step_known_at_run_time_leaves_an_induction_variable() -> None:
    text = LoopText(
        ["i", "d"],
        ["s32[]", "s32[]"],
        ["zero32", "d"],
        ["j", "d"],
        "  n = s32[] constant(9)\n  ROOT r = pred[] compare(i, n), direction=LT",
        "  j = s32[] subtract(i, d)",
        "  d = s32[] parameter(0)\n  zero32 = s32[] constant(0)",
    )
    loop = text.entry.root
    assert str(indexing.trip_count(loop)) == (
        "the loop's exit depends on data: "
        "`r` reads carried element {1}, whose step is known only at run time"
    )
    variable = indexing.induction_variables(loop)[1]
    assert (str(variable.step), variable.wraps) == ("-rt0", True)
    assert [str(rt.source_name) for rt in variable.runtime] == ["d"]


NESTED = """
inner_condition {{ s = (s32[], s32[]) parameter(0)  j = s32[] get-tuple-element(s), index=0
  m = s32[] get-tuple-element(s), index=1  ROOT r = pred[] compare(j, m), direction=LT }}
inner_body {{ s = (s32[], s32[]) parameter(0)  j = s32[] get-tuple-element(s), index=0
  m = s32[] get-tuple-element(s), index=1  o = s32[] constant(1)  k = s32[] add(j, o)
  ROOT t = (s32[], s32[]) tuple(k, m) }}
condition {{ s = (s32[], s32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(7)  ROOT r = pred[] compare(i, n), direction=LT }}
body {{ s = (s32[], s32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  c = s32[] get-tuple-element(s), index=1  o = s32[] constant(1)  k = s32[] add(i, o)
  z = s32[] constant(0)  {inner}  ROOT t = (s32[], s32[]) tuple(k, c) }}
ENTRY main {{ z = s32[] constant(2)  c = s32[] constant(30)  s = (s32[], s32[]) tuple(z, c)
  ROOT w = (s32[], s32[]) while(s), condition=condition, body=body }}"""
LOOP = "w = (s32[], s32[]) while(u), condition=inner_condition, body=inner_body"

# fmt: off
BOUNDS = [
    # bounds of the inner loop                  trip count              without its callers
    ("tuple(z, c)", "",                         "30",                   "in [0, 2147483647]"),
    ("tuple(z, i)", "",                         "rt0 in [2, 6]",        "in [0, 2147483647]"),
    ("tuple(i, c)", "",                         "-rt0 + 30 in [24, 28]", ""),
    ("tuple(i, d)", "d = s32[] add(i, i)",      "rt0 in [2, 6]",        ""),
    ("tuple(z, d)", "d = s32[] minimum(i, o)",  "1",                    ""),
    ("tuple(z, d)", "d = s32[] maximum(i, o)",  "rt0 in [2, 6]",        ""),
    ("tuple(z, d)", "d = s32[] multiply(i, i)", "max(rt1, 0) in [0, 2147483647]", ""),
]
# fmt: on


@pytest.mark.parametrize("operand, before, expected, alone", BOUNDS)
def test_bounds_of_an_inner_loop_follow_the_outer_loop(
    operand: str, before: str, expected: str, alone: str
) -> None:
    text = f"{before}  u = (s32[], s32[]) {operand}  {LOOP}"
    module = hlo.parse(NESTED.format(inner=text))
    inner = module.computations["body"]["w"]
    count = indexing.trip_count(inner)
    assert str(count) == expected
    assert str(indexing.trip_count(inner, (module.entry.root,))) == expected
    assert alone in str(indexing.trip_count(inner, ()))
    assert str(indexing.trip_count(module.entry.root)) == "5"


# ---------------------------------------------------------------- what the compiler states

STATED = "  n = s32[] constant(10)\n  ROOT r = pred[] compare({left}, n), direction=LT"
CONFIG = ', backend_config={{"known_trip_count":{{"n":"{count}"}}{more}}}'
INIT = (
    ',"known_induction_variable":{{"tuple_index":"1"}},'
    '"known_init_step":{{"init":"{}","step":"{}"}}'
)
OTHERS = "for carried element {1}, but it starts at 3 with step 1"

NOT_2 = f"known_init_step has init 2 and step 1 {OTHERS}"
BY_2 = f"known_init_step has init 3 and step 2 {OTHERS}"

# fmt: off
STATEMENTS = [
    # left  start        count  rest              trip count, origin or reason
    ("i",   "constant(3)",  7,  "",               ("7", "derived")),
    ("i",   "constant(3)",  7,  INIT.format(3, 1), ("7", "derived")),
    ("i",   "parameter(0)", 7,  "",               ("7", "known_trip_count")),
    ("sq",  "parameter(0)", 7,  "",               ("7", "known_trip_count")),
    ("sq",  "constant(3)",  1,  "",               ("1", "derived")),
    ("sq",  "constant(3)",  7,  "",   "known_trip_count is 7, but condition and body give 1"),
    ("i",   "constant(3)",  8,  "",   "known_trip_count is 8, but condition and body give 7"),
    ("i",   "constant(3)",  7,  INIT.format(2, 1), NOT_2),
    ("i",   "constant(3)",  7,  INIT.format(3, 2), BY_2),
]
# fmt: on


@pytest.mark.parametrize("left, start, count, more, expected", STATEMENTS)
def test_a_known_trip_count_is_checked(
    left: str, start: str, count: int, more: str, expected: str | tuple[str, str]
) -> None:
    condition = "  sq = s32[] multiply(i, i)\n" + STATED.format(left=left)
    loop = LoopText(
        ["i"],
        ["s32[]"],
        ["start"],
        ["j"],
        condition,
        "  step = s32[] constant(1)\n  j = s32[] add(i, step)",
        f"  start = s32[] {start}",
        config=CONFIG.format(count=count, more=more),
    ).entry.root
    answer = indexing.trip_count(loop)
    if isinstance(expected, str):
        assert isinstance(answer, Unknown)
        assert answer.reason == expected
    else:
        assert isinstance(answer, TripCount)
        assert (str(answer), answer.origin) == expected


def test_a_malformed_known_trip_count_is_an_error() -> None:
    config = ', backend_config={"known_trip_count":{"n":"many"}}'
    condition = STATED.format(left="i")
    loop = LoopText(
        ["i"], ["s32[]"], ["start"], ["i"], condition, "", "  start = s32[] constant(1)"
    )
    with pytest.raises(hlo.HloError, match="known_trip_count"):
        indexing.trip_count(loop._replace(config=config).entry.root)


def test_only_loops_have_trip_counts() -> None:
    loop = count_from("s32", "constant(0)", "constant(1)", STATED.format(left="i"))
    with pytest.raises(ValueError, match="`s` is a tuple, not a while"):
        indexing.trip_count(loop.operands[0])
    with pytest.raises(ValueError, match="`s` is a tuple, not a while"):
        indexing.induction_variables(loop.operands[0])


def test_invariants_and_variables_are_separate() -> None:
    loop = RandomLoop(0).entry().root
    facts = indexing.loop_facts(loop)
    last = len(facts.variables)
    assert all(isinstance(each, InductionVariable) for each in facts.variables)
    assert facts.invariants
    assert last
    assert not {each.path for each in facts.variables} & set(facts.invariants)
    assert facts.variable(facts.invariants[0]) is None


# fmt: off
JAX = [
    # module               trip count of each loop
    ("jax_map",            ["6"]),
    ("jax_fori_and_while", ["[0, 2147483647]", "5"]),  # the first one also tests a maximum
    ("xla_cpu_scan",       ["12"]),                    # as in its known_trip_count
]
# fmt: on


@pytest.mark.parametrize("name, counts", JAX)
def test_loops_of_jax_are_counted(name: str, counts: list[str]) -> None:
    module = hlo.load(str(DATA / f"{name}.hlo"))
    loops = [each for each in module.instructions if each.opcode == "while"]
    results = [indexing.trip_count(each) for each in loops]
    assert [str(each) for each in results] == counts
    assert all(isinstance(each, TripCount) and each.origin == "derived" for each in results)

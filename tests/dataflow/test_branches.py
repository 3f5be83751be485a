"""Branches of conditionals at run time: which one is read for which index, by execution."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

import hlo
import indexing
from hlo import Module
from tests.dataflow.influence import Pokes
from tests.dataflow.loop_judge import miss
from tests.dataflow.programs import Run
from tests.dataflow.random_masks import VALUES
from tests.dataflow.test_scatters import judge as judge_all
from tests.oracles import union

BRANCHES: Final = """
plain { ROOT p = f32[4] parameter(0) }
back { p = f32[4] parameter(0)  ROOT r = f32[4] reverse(p), dimensions={0} }
first { p = f32[4] parameter(0)  s = f32[1] slice(p), slice={[0:1]}  t = f32[] reshape(s)
  ROOT r = f32[4] broadcast(t), dimensions={} }
chosen { i = s32[] parameter(0)  x = f32[4] parameter(1)  y = f32[4] parameter(2)
  ROOT r = f32[4] conditional(i, x, y), branch_computations={plain, back} }
"""
ARRAYS: Final = (
    "x = f32[4] parameter(0)  y = f32[4] parameter(1)  z = f32[4] parameter(2)  "
    "n = s32[] parameter(3)"
)
SWITCH: Final = "ROOT r = f32[4] conditional(i, x, y, z), branch_computations={plain, back, first}"
CHOICE: Final = (
    "ROOT r = f32[4] conditional(i, x, y), true_computation=plain, false_computation=back"
)
COUNTS: Final = (-(2**31), 1 - 2**31, 2 - 2**31, -7, -2, -1, 0, 1, 2, 3, 4, 6, 7, 256, 2**31 - 1)


def parse(text: str, called: str = BRANCHES) -> Module:
    module = hlo.parse(f"{called} ENTRY e {{ {ARRAYS}  {text} }}")
    assert not hlo.verify(module)
    return module


def judge(module: Module, *, alone: bool = False) -> None:
    """Check each element of the answer for each value of n against an execution.

    Args:
        alone: ask about the root, a conditional of n, x, y and z.
    """
    root = module.entry.root
    answer = indexing.output_to_input(root) if alone else indexing.to_parameters(root)
    positions = [[o.name for o in answer.operands].index(name) for name in "xyz"]
    seen_for_any = [np.zeros((4, 4), bool) for _ in range(3)]
    for n in COUNTS:
        values = [np.arange(k, k + 4, dtype=np.float32) for k in (1, 11, 21)]
        arguments = [*values, np.array(n, np.int32)]
        whole = Run(module.entry, *arguments).result
        for number in range(3):
            read = np.zeros((4, 4), bool)
            for place in range(4):
                changed = [each.copy() for each in arguments]
                changed[number][place] = 100
                read[:, place] = Run(module.entry, *changed).result != whole
            claimed = np.zeros((4, 4), bool)
            for row in range(4):
                region = answer.at(row, n=n)[positions[number]]
                assert isinstance(region, indexing.Region)
                claimed[row, [int(e[0]) for e in region.elements()]] = True
            assert np.array_equal(read, claimed), (n, number)
            seen_for_any[number] |= read
    for number, position in enumerate(positions):
        assert seen_for_any[number].any() == bool(answer.maps[position])
        assert {m.grade for m in answer.maps[position]} <= {"exact"}
        assert not any(answer.reasons[position])


INDICES: Final = [
    "i = s32[] copy(n)",
    "i = s32[] negate(n)",
    "c = s32[] constant(2)  i = s32[] remainder(n, c)",
    "a = s32[] constant(0)  b = s32[] constant(2)  i = s32[] clamp(a, n, b)",
    "a = s32[] constant(0)  b = s32[] constant(1)  i = s32[] clamp(a, n, b)",
    "c = s32[] constant(2147483647)  i = s32[] add(n, c)",
    "c = s32[] constant(2)  p = pred[] compare(n, c), direction=GT  i = s32[] convert(p)",
    "u = u8[] convert(n)  c = u8[] constant(250)  v = u8[] add(u, c)  i = s32[] convert(v)",
]


@pytest.mark.parametrize("index", INDICES)
def test_an_index_at_run_time_reads_one_branch(index: str) -> None:
    judge(parse(f"{index}\n{SWITCH}"))


@pytest.mark.parametrize("direction", ["GT", "EQ", "NE", "LE"])
def test_a_predicate_at_run_time_reads_one_branch(direction: str) -> None:
    judge(
        parse(f"c = s32[] constant(2)  i = pred[] compare(n, c), direction={direction}\n{CHOICE}")
    )


@pytest.mark.parametrize("index", INDICES[:4])
def test_a_branch_in_a_call_is_read_for_the_indices_of_the_caller(index: str) -> None:
    judge(parse(f"{index}\n  ROOT r = f32[4] call(i, x, z), to_apply=chosen"))


@pytest.mark.parametrize("index", INDICES)
def test_a_conditional_alone_reads_one_branch(index: str) -> None:
    judge(parse(f"{index}\n{SWITCH}"), alone=True)


INNER: Final = """
plain { ROOT p = f32[4] parameter(0) }
back { p = f32[4] parameter(0)  ROOT r = f32[4] reverse(p), dimensions={0} }
switch { t = (s32[], f32[4], f32[4]) parameter(0)  i = s32[] get-tuple-element(t), index=0
  x = f32[4] get-tuple-element(t), index=1  y = f32[4] get-tuple-element(t), index=2
  ROOT r = f32[4] conditional(i, x, y), branch_computations={plain, back} }
choice { t = (pred[], f32[4], f32[4]) parameter(0)  i = pred[] get-tuple-element(t), index=0
  x = f32[4] get-tuple-element(t), index=1  y = f32[4] get-tuple-element(t), index=2
  ROOT r = f32[4] conditional(i, x, y), true_computation=plain, false_computation=back }
"""
# fmt: off
NESTED: Final = [
    # the index of the inner conditional, and the outer conditional
    ("i = s32[] copy(n)",         "n, t, z), branch_computations={switch, plain}"),
    ("i = s32[] negate(n)",       "n, t, z), branch_computations={switch, plain}"),
    ("i = s32[] negate(n)",       "n, z, t), branch_computations={back, switch}"),
    ("i = pred[] copy(a)",        "a, t, z), true_computation=choice, false_computation=plain"),
    ("i = pred[] not(a)",         "a, t, z), true_computation=choice, false_computation=plain"),
    ("i = pred[] copy(a)",        "a, z, t), true_computation=back, false_computation=choice"),
    ("i = pred[] compare(n, d), direction=EQ",
                                  "a, t, z), true_computation=choice, false_computation=plain"),
]
# fmt: on


@pytest.mark.parametrize("index, outer", NESTED)
def test_a_branch_in_a_branch_is_read_where_both_are_executed(index: str, outer: str) -> None:
    """JAX passes what a branch captures, such as the outer index, as a tuple."""
    element_type = index.split()[2]
    text = f"""c = s32[] constant(2)  d = s32[] constant(3)
      a = pred[] compare(n, c), direction=GT  {index}
      t = ({element_type}, f32[4], f32[4]) tuple(i, x, y)
      ROOT r = f32[4] conditional({outer}"""
    module = parse(text, INNER)
    judge(module)
    alone = indexing.output_to_input(module.entry.root)
    whole = indexing.to_parameters(module.entry.root)
    position = [o.name for o in alone.operands].index("t")
    inside = zip(alone.maps[position], alone.paths[position], strict=True)
    alone_maps = [(path[0] - 1, str(m), m.grade) for m, path in inside if path[0]]
    assert sorted(alone_maps) == sorted(
        [(k, str(m), m.grade) for k in (0, 1) for m in whole.maps[k]]
    )


def test_branches_of_tuples_are_restricted_too() -> None:
    called = """
    one { p = f32[4] parameter(0)  ROOT t = (f32[4], f32[4]) tuple(p, p) }
    two { p = f32[4] parameter(0)  b = f32[4] reverse(p), dimensions={0}
      ROOT t = (f32[4], f32[4]) tuple(p, b) }"""
    judge(
        parse(
            """t = (f32[4], f32[4]) conditional(n, x, y), branch_computations={one, two}
            ROOT r = f32[4] get-tuple-element(t), index=1""",
            called,
        )
    )


def test_maps_to_the_output_are_restricted_to_the_executed_branch() -> None:
    call = parse("ROOT r = f32[4] call(n, x, z), to_apply=chosen").entry.root
    for operand, text in (
        (1, "(d0){rt0} -> (d0), domain: d0 in [0, 3], rt0 in [0, 0]"),
        (2, "(d0){rt0} -> (-d0 + 3), domain: d0 in [0, 3], rt0 in [-2147483648, -1]"),
        (2, "(d0){rt0} -> (-d0 + 3), domain: d0 in [0, 3], rt0 in [1, 2147483647]"),
    ):
        answer = indexing.input_to_output(call, operand)
        assert text in [str(m) for m in answer.maps[0]]
        assert {m.grade for m in answer.maps[0]} == {"exact"}


UNKNOWN: Final = [
    ("s = f32[1] slice(z), slice={[2:3]}  a = f32[] reshape(s)  i = s32[] convert(a)", "exact"),
    ("c = f32[] constant(2)  e = f32[] exponential(c)  i = s32[] convert(e)", "may"),
]


@pytest.mark.parametrize("index, grade", UNKNOWN)
def test_only_data_makes_a_branch_exact(index: str, grade: str) -> None:
    """An index that no input changes may leave out a branch for all inputs."""
    module = parse(f"{index}\n{SWITCH}")
    answer = indexing.to_parameters(module.entry.root)
    assert {m.grade for maps in answer.maps[:2] for m in maps} == {grade}
    pokes = Pokes.of(module.entry, 0)
    for place in pokes.places():
        pokes.poke(*place, values=VALUES)
    assert not list(miss(module, pokes))


def test_without_masks_any_branch_may_be_read() -> None:
    root = parse(f"i = s32[] copy(n)\n{SWITCH}").entry.root
    for query in (indexing.output_to_input, indexing.to_parameters):
        answer = query(root, masks=False)
        numbers = [k for k, operand in enumerate(answer.operands) if operand.name in "xyz"]
        assert {m.grade for k in numbers for m in answer.maps[k]} == {"may"}


# fmt: off
ALONE: Final = [
    # index                                                          grades of x, y, z
    ("i = s32[] constant(1)",                                        [[], ["exact"], []]),
    ("i = s32[] constant(-3)",                                       [[], [], ["exact"]]),
    ("c = f32[] constant(2)  e = f32[] exponential(c)  i = s32[] convert(e)",
                                                                     [["may"], ["may"], ["may"]]),
    ("c = s32[] constant(0)  m = s32[] multiply(n, c)  i = s32[] add(m, c)",
                                                                     [["exact"], [], []]),
    ("c = s32[] constant(1)  i = s32[] and(n, c)",                   [["exact"], ["exact"], []]),
    ("c = s32[] constant(2)  i = s32[] and(n, c)",                   [["may"], ["may"], ["may"]]),
    ("c = s32[] constant(2)  a = s32[] and(n, c)  i = s32[] copy(a)",
                                                                     [["may"], ["may"], ["may"]]),
    ("c = s32[] constant(2)  a = s32[] and(n, c)  b = s64[] convert(a)  i = s32[] convert(b)",
                                                                     [["may"], ["may"], ["may"]]),
    ("a = s64[] convert(n)  i = s32[] convert(a)",       [["exact"], ["exact"], ["exact"]]),
]
# fmt: on


@pytest.mark.parametrize("index, grades", ALONE)
def test_a_conditional_alone_follows_what_determines_its_index(
    index: str, grades: list[list[str]]
) -> None:
    module = parse(f"{index}\n{SWITCH}")
    answer = indexing.output_to_input(module.entry.root)
    assert [sorted({m.grade for m in maps}) for maps in answer.maps[1:]] == grades
    whole = indexing.to_parameters(module.entry.root)
    assert [sorted({m.grade for m in maps}) for maps in whole.maps[:3]] == grades


ITERATIONS: Final = """
less { s = (s32[], f32[4], f32[4], pred[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0  c = s32[] constant(4)
  ROOT r = pred[] compare(i, c), direction=LT }
next { s = (s32[], f32[4], f32[4], pred[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0  x = f32[4] get-tuple-element(s), index=1
  y = f32[4] get-tuple-element(s), index=2  flags = pred[4] get-tuple-element(s), index=3
  one = s32[] constant(1)  two = s32[] constant(2)  j = s32[] add(i, one)
  INDEX
  b = f32[4] BRANCHES
  ROOT t = (s32[], f32[4], f32[4], pred[4]) tuple(j, b, y, flags) }
ENTRY e { x = f32[4] parameter(0)  y = f32[4] parameter(1)  zero = s32[] constant(0)
  flags = pred[4] constant({true, false, false, true})
  s = (s32[], f32[4], f32[4], pred[4]) tuple(zero, x, y, flags)
  w = (s32[], f32[4], f32[4], pred[4]) while(s), condition=less, body=next
  ROOT r = f32[4] get-tuple-element(w), index=1 }
"""
BY_NUMBER: Final = "conditional(k, x, y, x), branch_computations={back, plain, first}"
BY_PREDICATE: Final = "conditional(k, x, x), true_computation=back, false_computation=plain"


@pytest.mark.parametrize(
    ("index", "branches"),
    [
        ("k = pred[] compare(i, two), direction=LT", BY_PREDICATE),
        ("k = pred[] compare(i, two), direction=NE", BY_PREDICATE),
        ("m = s32[] remainder(i, two)  k = pred[] compare(m, one), direction=EQ", BY_PREDICATE),
        (
            "f = pred[1] dynamic-slice(flags, i), dynamic_slice_sizes={1}  k = pred[] reshape(f)",
            BY_PREDICATE,
        ),
        ("k = s32[] remainder(i, two)", BY_NUMBER),
        ("k = s32[] copy(i)", BY_NUMBER),
        ("k = s32[] subtract(two, i)", BY_NUMBER),
    ],
)
def test_the_iteration_decides_the_branch(index: str, branches: str) -> None:
    text = ITERATIONS.replace("INDEX", index).replace("BRANCHES", branches)
    module = hlo.parse(BRANCHES + text)
    answer = judge_all(module)
    assert {m.grade for maps in answer.maps for m in maps} == {"exact"}
    unrolled = indexing.unroll(module.entry["w"])
    assert isinstance(unrolled, Module)
    for own, other in zip(
        answer.maps, indexing.to_parameters(unrolled.entry.root).maps, strict=True
    ):
        assert union(own) == union(other)


def test_data_of_a_loop_executes_any_branch() -> None:
    index = """e = f32[1] slice(x), slice={[0:1]}  v = f32[] reshape(e)  z = f32[] constant(0)
      k = pred[] compare(v, z), direction=LT"""
    text = ITERATIONS.replace("INDEX", index).replace("BRANCHES", BY_PREDICATE)
    answer = indexing.to_parameters(hlo.parse(BRANCHES + text).entry.root)
    assert "may" in {m.grade for m in answer.maps[0]}

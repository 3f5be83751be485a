"""Computations that call the next one twice, 60 deep: 2^60 instructions, but few distinct ones."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest

import hlo
import indexing
from hlo import HloError, Module
from indexing.codegen import running
from indexing.codegen.validation import validate_instruction
from indexing.execution import run
from indexing.maps.answers import Unknown
from tests.growth.programs import PROGRAMS, computation, module
from tests.growth.work import calls_in

import_module("tests.growth.nested")

DEPTH = 60


def doubling(construct: str, n: int = DEPTH) -> Module:
    return hlo.parse(PROGRAMS[f"doubling_{construct}"](n))


@pytest.mark.parametrize("construct", ["calls", "fusions"])
def test_loop_nest_names_its_budget(construct: str) -> None:
    nest = indexing.loop_nest(doubling(construct).entry)
    assert isinstance(nest, Unknown)
    assert nest.reason == "budget: inlined calls repeat more than 16384 instructions"


def test_loop_nest_does_not_follow_conditionals() -> None:
    assert isinstance(indexing.loop_nest(doubling("conditionals").entry), Unknown)


def test_loop_nest_of_loops_that_never_run_is_a_copy() -> None:
    nest = indexing.loop_nest(doubling("whiles").entry)
    assert not isinstance(nest, Unknown)
    array = np.arange(3, dtype=np.float32)
    assert (nest.run(array) == array).all()
    assert len(nest.stages) == 1


@pytest.mark.parametrize("construct", ["calls", "fusions"])
def test_execution_is_refused_before_it_starts(construct: str) -> None:
    program = doubling(construct)
    array = np.zeros(3, np.float32)
    message = r"calls execute \d{19} instructions, more than 100000000"
    with pytest.raises(HloError, match=message):
        run(program, [array])
    with pytest.raises(HloError, match=message):
        running.nests_of(program, tile=(3,))


# ---------------------------------------------------------------- applied computations

APPLIED = ["doubling_maps", "doubling_reduces", "calls_in_map", "maps_of_arrays"]


@pytest.mark.parametrize("depth", [40, DEPTH])  # below and above the limit on nested functions
@pytest.mark.parametrize("program", APPLIED)
def test_applied_computations_that_double_are_not_executed(program: str, depth: int) -> None:
    root = hlo.parse(PROGRAMS[program](depth)).entry.root
    message = r"calls execute \d{13,} instructions, more than 100000000"
    with pytest.raises(HloError, match=message):
        run(root.module, [np.zeros(3, np.float32)])
    tiles = [None, (3,)] if root.shape == root.operands[0].shape else [None]
    for tile in tiles:
        with pytest.raises(HloError, match=message):
            running.nests_of(root.module, tile=tile)
    assert isinstance(indexing.loop_nest(root.module.entry), Unknown)
    (finding,) = validate_instruction(root, 0, 100).findings
    assert finding.status == "skipped"
    assert finding.details[0].endswith("instructions, more than 20000")


@pytest.mark.parametrize("program", APPLIED)
def test_maps_do_not_execute_applied_computations(program: str) -> None:
    def answer(n: int) -> int:
        root = hlo.parse(PROGRAMS[program](n)).entry.root
        maps = indexing.to_parameters(root).maps
        assert [m.grade for m in maps[0]] == ["exact"]
        (counts, *_) = indexing.read_counts(root)
        assert not isinstance(counts, Unknown)
        assert (counts.total, counts.maximum) == (3, 1)
        return n

    def work(n: int) -> float:
        return calls_in(lambda: answer(n))[0] / n

    work(4)  # results that are shared by all modules
    assert work(DEPTH) <= 2 * work(DEPTH // 4)


def test_loop_nest_names_the_budget_of_applied_computations() -> None:
    nest = indexing.loop_nest(hlo.parse(PROGRAMS["doubling_maps"](40)).entry)
    assert isinstance(nest, Unknown)
    assert nest.reason == "budget: applying `f15` executes more than 16384 functions"


@pytest.mark.parametrize("program", APPLIED)
def test_few_applied_computations_are_executed(program: str) -> None:
    entry = hlo.parse(PROGRAMS[program](3)).entry
    array = np.array([1, 2, 3], np.float32)
    (result,) = run(entry.module, [array])
    assert running.nests_of(entry.module).run([array])[0].tolist() == result.tolist()
    if program == "doubling_maps":
        expected = array
        for _ in range(8):
            expected = np.sin(expected)
        nest = indexing.loop_nest(entry)
        assert not isinstance(nest, Unknown)
        assert nest.run(array).tolist() == expected.tolist() == result.tolist()


def comparator(*lines: str) -> Module:
    """Return a sort of three numbers by a comparator of x and y."""
    operands = ["x = f32[] parameter(0)", "y = f32[] parameter(1)"]
    less = computation("less", [*operands, *lines])
    call = "r = f32[3] sort(p), dimensions={0}, to_apply=less"
    return hlo.parse(module(["p = f32[3] parameter(0)", call], *doubled_scalars("sine(p)"), less))


def test_the_key_of_a_sort_is_computed_once() -> None:
    def sums(name: str) -> list[str]:
        chain = [name, *[f"{name}{k}" for k in range(DEPTH)]]
        return [f"{b} = f32[] add({a}, {a})" for a, b in pairwise(chain)]

    last = DEPTH - 1
    program = comparator(
        *sums("x"), *sums("y"), f"r = pred[] compare(x{last}, y{last}), direction=LT"
    )
    (result,) = run(program, [np.array([3, 1, 2], np.float32)])
    assert result.tolist() == [1, 2, 3]


def test_the_key_of_a_sort_skips_dead_code() -> None:
    dead = f"d = s32[] call(i), to_apply=f{DEPTH}"
    lines = "i = s32[] constant(1)", dead, "r = pred[] compare(x, y), direction=GT"
    (result,) = run(comparator(*lines), [np.array([3, 1, 2], np.float32)])
    assert result.tolist() == [3, 2, 1]


CONTROL = {
    "conditionals": "conditional(t, {x}, {x}), true_computation={f}, false_computation={f}",
    "conditions": "while({x}), condition={f}, body=f0",
}


@pytest.mark.parametrize("line", CONTROL.values(), ids=CONTROL)
def test_control_flow_counts_what_it_always_executes(line: str) -> None:
    p, t = "p = pred[] parameter(0)", "t = pred[] constant(true)"
    bodies = [computation("f0", [p, "r = pred[] not(p)"])]
    for k in range(DEPTH):
        lines = [f"{y} = pred[] {line.format(x=x, f=f'f{k}')}" for x, y in pairwise("pab")]
        bodies.append(computation(f"f{k + 1}", [p, t, *lines]))
    program = hlo.parse(module([p, f"r = pred[] call(p), to_apply=f{DEPTH}"], *bodies))
    with pytest.raises(HloError, match=r"calls execute \d{19} instructions"):
        run(program, [np.array(False)])


def test_validation_skips_what_cannot_be_executed() -> None:
    (finding,) = validate_instruction(doubling("calls").entry.root, 0, 100).findings
    assert finding.status == "skipped"
    assert finding.details[0].endswith("instructions, more than 20000")


@pytest.mark.parametrize("construct", ["conditionals", "whiles"])
def test_control_flow_executes_what_it_selects(construct: str) -> None:
    (result,) = run(doubling(construct), [np.array([1, 2, 3], np.float32)])
    assert result.tolist() == ([3, 2, 1] if construct == "conditionals" else [1, 2, 3])


def test_few_copies_are_inlined() -> None:
    program = doubling("calls", 3)
    nest = indexing.loop_nest(program.entry)
    assert not isinstance(nest, Unknown)
    array = np.array([1, 2, 3], np.float32)
    assert nest.run(array).tolist() == run(program, [array])[0].tolist() == [1, 2, 3]


def test_calls_with_equal_operands_are_one_call() -> None:
    p = "p = f32[3] parameter(0)"
    bodies = [computation("f0", [p, "r = f32[3] sine(p)"])]
    for k in range(DEPTH):
        calls = [f"{x} = f32[3] call(p), to_apply=f{k}" for x in "ab"]
        bodies.append(computation(f"f{k + 1}", [p, *calls, "r = f32[3] maximum(a, b)"]))
    program = hlo.parse(module([p, f"r = f32[3] call(p), to_apply=f{DEPTH}"], *bodies))
    nest = indexing.loop_nest(program.entry)
    assert not isinstance(nest, Unknown)
    array = np.array([1, 2, 3], np.float32)
    assert np.array_equal(nest.run(array), np.sin(array))
    assert np.array_equal(nest.vectorized().run(array), np.sin(array))


def test_counts_and_groups_of_doubling_calls_are_those_of_one_map() -> None:
    root = doubling("calls").entry.root
    (counts,) = indexing.read_counts(root)
    assert not isinstance(counts, Unknown)
    assert (counts.total, counts.maximum) == (3, 1)
    groups = indexing.grouped(root)
    assert {str(m) for maps in groups.values() for m in maps} == {
        "(d0) -> (d0), domain: d0 in [0, 2]",
    }


def doubled_scalars(result: str) -> list[str]:
    """Return computations of a scalar, f0 to f60; each calls the one before twice."""
    p, shape = "p = s32[] parameter(0)", "s32[]"
    bodies = [computation("f0", [p, f"r = {shape} {result}"])]
    for k in range(DEPTH):
        calls = [f"a = {shape} call(p), to_apply=f{k}", f"r = {shape} call(a), to_apply=f{k}"]
        bodies.append(computation(f"f{k + 1}", [p, *calls]))
    return bodies


@pytest.mark.parametrize("result", ["copy(p)", "negate(p)", "add(p, p)"])
def test_values_of_doubling_calls_stay_runtime_variables(result: str) -> None:
    lines = [
        "x = f32[10] parameter(0)",
        "i = s32[] constant(3)",
        f"s = s32[] call(i), to_apply=f{DEPTH}",
        "d = f32[4] dynamic-slice(x, s), dynamic_slice_sizes={4}",
    ]
    program = hlo.parse(module(lines, *doubled_scalars(result)))
    (m,) = indexing.to_parameters(program.entry.root).maps[0]
    assert str(m) == "(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 3], rt0 in [0, 6]"


def test_a_loop_body_of_doubling_calls_is_forwarded_by_its_maps() -> None:
    lines = ["p = s32[] parameter(0)"]
    never = computation("never", [*lines, "t = pred[] constant(false)"])
    loop = f"w = s32[] while(p), condition=never, body=f{DEPTH}"
    program = hlo.parse(module([*lines, loop], never, *doubled_scalars("copy(p)")))
    assert [str(m) for m in indexing.to_parameters(program.entry.root).maps[0]] == ["() -> ()"]

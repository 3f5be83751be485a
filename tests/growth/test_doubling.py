"""Computations that call the next one twice, 60 deep: 2^60 instructions, but few distinct ones."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

import hlo
import indexing
from hlo import HloError, Module
from indexing.codegen import running
from indexing.codegen.validation import validated
from indexing.execution import run
from indexing.maps.answers import Unknown
from tests.growth.programs import PROGRAMS, computation, module

import_module("tests.growth.nested")

DEPTH = 60


def doubling(construct: str, n: int = DEPTH) -> Module:
    return hlo.parse(PROGRAMS[f"doubling_{construct}"](n))


@pytest.mark.parametrize("construct", ["calls", "fusions"])
def test_loop_nest_names_its_budget(construct: str) -> None:
    nest = indexing.loop_nest(doubling(construct).entry)
    assert isinstance(nest, Unknown)
    assert nest.reason == "budget: inlined calls repeat more than 16384 instructions"


@pytest.mark.parametrize("construct", ["conditionals", "whiles"])
def test_loop_nest_does_not_follow_control_flow(construct: str) -> None:
    assert isinstance(indexing.loop_nest(doubling(construct).entry), Unknown)


@pytest.mark.parametrize("construct", ["calls", "fusions"])
def test_execution_is_refused_before_it_starts(construct: str) -> None:
    program = doubling(construct)
    array = np.zeros(3, np.float32)
    message = r"calls execute \d{19} instructions, more than 100000000"
    with pytest.raises(HloError, match=message):
        run(program, [array])
    with pytest.raises(HloError, match=message):
        running.nests_of(program, tile=(3,))


def test_validation_skips_what_cannot_be_executed() -> None:
    (finding,) = validated(doubling("calls").entry.root, 0, 100).findings
    assert finding.status == "skipped"
    assert finding.details[0].endswith("instructions, more than 100000000")


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

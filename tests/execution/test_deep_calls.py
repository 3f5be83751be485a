"""Computations nested thousands deep are analysed and executed without a RecursionError."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest

import hlo
import indexing
from hlo import HloError, Module
from indexing import Unknown
from indexing.codegen.nest import LoopNest
from indexing.execution import run
from indexing.ops.structured_ops import MAX_APPLIED_DEPTH

DEPTH = sys.getrecursionlimit() + 200
STATE = "(s32[], f32[3])"
ARRAY = "p = f32[3] parameter(0)"
SCALAR = "p = f32[] parameter(0)"
PAIR = "p = f32[] parameter(0) q = f32[] parameter(1)"
CONDITION = f"""
first {{
  p = {STATE} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  z = s32[] constant(0)
  ROOT r = pred[] compare(i, z), direction=EQ
}}
increment {{
  p = {STATE} parameter(0)
  x = f32[3] get-tuple-element(p), index=1
  o = s32[] constant(1)
  y = f32[3] negate(x)
  ROOT r = {STATE} tuple(o, y)
}}
"""


def nest_calls(innermost: str, level: str, entry: str, depth: int) -> Module:
    """A module of computations ``f0`` to ``f<depth>``; each calls the one before, ``@``."""
    levels = [f"f{k} {{ {level.replace('@', f'f{k - 1}')} }}" for k in range(1, depth + 1)]
    last = f"ENTRY e {{ {entry.replace('@', f'f{depth}')} }}"
    return hlo.parse("\n".join(["HloModule m", innermost, *levels, last]))


NEGATED_ARRAY = f"f0 {{ {ARRAY} ROOT r = f32[3] negate(p) }}"
NEGATED_SCALAR = f"f0 {{ {SCALAR} ROOT r = f32[] negate(p) }}"


def fusions(depth: int) -> Module:
    level = f"{ARRAY} ROOT r = f32[3] fusion(p), kind=kLoop, calls=@"
    return nest_calls(NEGATED_ARRAY, level, level, depth)


def calls(depth: int) -> Module:
    level = f"{SCALAR} ROOT r = f32[] call(p), to_apply=@"
    entry = f"{ARRAY} ROOT r = f32[3] map(p), dimensions={{0}}, to_apply=@"
    return nest_calls(NEGATED_SCALAR, level, entry, depth)


def maps(depth: int) -> Module:
    level = f"{SCALAR} ROOT r = f32[] map(p), dimensions={{}}, to_apply=@"
    entry = f"{ARRAY} ROOT r = f32[3] map(p), dimensions={{0}}, to_apply=@"
    return nest_calls(NEGATED_SCALAR, level, entry, depth)


def reductions(depth: int) -> Module:
    level = f"{PAIR} ROOT r = f32[] reduce(p, q), dimensions={{}}, to_apply=@"
    return nest_calls(f"f0 {{ {PAIR} ROOT r = f32[] add(p, q) }}", level, level, depth)


def conditionals(depth: int) -> Module:
    taken = "conditional(b, p, p), true_computation=@, false_computation=f0"
    level = f"{ARRAY} b = pred[] constant(true) ROOT r = f32[3] {taken}"
    return nest_calls(NEGATED_ARRAY, level, level, depth)


def loops(depth: int) -> Module:
    """Loops of one iteration each."""
    innermost = f"f0 {{ p = {STATE} parameter(0) ROOT r = {STATE} call(p), to_apply=increment }}"
    level = f"p = {STATE} parameter(0) ROOT r = {STATE} while(p), condition=first, body=@"
    entry = (
        f"{ARRAY} z = s32[] constant(0) t = {STATE} tuple(z, p) "
        f"w = {STATE} while(t), condition=first, body=@ "
        "ROOT r = f32[3] get-tuple-element(w), index=1"
    )
    return nest_calls(CONDITION + innermost, level, entry, depth)


def asynchronous_calls(depth: int) -> Module:
    start = "s = ((f32[3]), f32[3]) async-start(p), calls=@"
    level = f"{ARRAY} {start} ROOT r = f32[3] async-done(s)"
    return nest_calls(NEGATED_ARRAY, level, level, depth)


KINDS = [fusions, calls, maps, conditionals, loops, asynchronous_calls]
SLOW_LOOPS = [pytest.param(k, marks=pytest.mark.slow) if k is loops else k for k in KINDS]


@pytest.mark.parametrize("kind", SLOW_LOOPS)
def test_nested_computations_are_executed(kind: Callable[[int], Module]) -> None:
    array = np.array([1, -2, 4], np.float32)
    (result,) = run(kind(DEPTH), [array])
    assert result.tolist() == [-1, 2, -4]


@pytest.mark.parametrize("kind", SLOW_LOOPS)
def test_nested_computations_have_maps_and_text(kind: Callable[[int], Module]) -> None:
    module = kind(DEPTH)
    assert not hlo.verify(module)
    assert str(hlo.parse(str(module))) == str(module)
    root = module.entry.root
    for answer in (indexing.to_parameters(root), indexing.output_to_input(root)):
        assert [str(m) for maps in answer.maps for m in maps]
    assert indexing.input_to_output(root).maps


@pytest.mark.parametrize("kind", [fusions, calls])
def test_nested_calls_are_inlined_in_loop_nests(kind: Callable[[int], Module]) -> None:
    nest = indexing.loop_nest(kind(DEPTH).entry)
    assert isinstance(nest, LoopNest), nest
    array = np.array([1, -2, 4], np.float32)
    assert nest.run(array).tolist() == [-1, 2, -4]
    assert nest.vectorized().run(array).tolist() == [-1, 2, -4]


def test_functions_that_call_each_other_too_deep_have_no_loop_nest() -> None:
    deepest, beyond = (indexing.loop_nest(maps(MAX_APPLIED_DEPTH + k).entry) for k in (-1, 0))
    assert isinstance(deepest, LoopNest), deepest
    assert deepest.run(np.array([1, -2, 4], np.float32)).tolist() == [-1, 2, -4]
    assert isinstance(beyond, Unknown)
    assert "apply each other more than 50 deep" in beyond.reason


def test_reducers_that_call_each_other_too_deep_are_an_error() -> None:
    inputs = [np.float32(2), np.float32(3)]
    assert run(reductions(MAX_APPLIED_DEPTH - 1), inputs)[0] == 5
    with pytest.raises(HloError, match="apply each other more than 50 deep"):
        run(reductions(DEPTH), inputs)

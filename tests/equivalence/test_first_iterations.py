"""Loops whose initial values are written by the first iteration, as XLA:TPU leaves them."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

import hlo
from indexing import equivalent
from indexing.equivalence import Proved
from indexing.execution import run

STATE: Final = "(s32[], f32[3,4], f32[3,4])"
LIMIT: Final = """limit {{ s = {state} parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({limit})  ROOT c = pred[] compare(i, n), direction=LT }}
"""
BODY: Final = """body {{ s = {state} parameter(0)  i = s32[] get-tuple-element(s), index=0
  a = f32[3,4] get-tuple-element(s), index=1  x = f32[3,4] get-tuple-element(s), index=2
  one = s32[] constant({step})  j = s32[] add(i, one)
  z = f32[] constant(0.5)  init = f32[3,4] broadcast(z), dimensions={{}}
  {selection}
  h = f32[] constant(0.75)  hs = f32[3,4] broadcast(h), dimensions={{}}
  m = f32[3,4] multiply(b, hs)  k = f32[3,4] add(m, x)
  ROOT t = {state} tuple(j, k, x) }}
"""
ENTRY: Final = """ENTRY e {{ x = f32[3,4] parameter(0)  y = f32[3,4] parameter(1)
  first = s32[] constant({first})  z = f32[] constant(0.5)
  init = f32[3,4] broadcast(z), dimensions={{}}  {memory}
  s = {state} tuple(first, {carried}, x)  w = {state} while(s), condition=limit, body=body
  ROOT r = f32[3,4] get-tuple-element(w), index=1 }}
"""
ALLOCATED: Final = 'u = f32[3,4] custom-call(), custom_call_target="AllocateBuffer"'
SELECTED: Final = """f = s32[] constant({first})  p = pred[] compare(i, f), direction={direction}
  ps = pred[3,4] broadcast(p), dimensions={{}}  b = f32[3,4] select(ps, {branches})"""


def plain(*, first: int = 0, limit: int = 40) -> hlo.Module:
    text = LIMIT + BODY + ENTRY
    values = {"state": STATE, "limit": limit, "first": first, "step": 1, "memory": ""}
    return hlo.parse(text.format(**values, carried="init", selection="b = f32[3,4] copy(a)"))


def sunk(
    *,
    first: int = 0,
    limit: int = 40,
    step: int = 1,
    tested: int | None = None,
    direction: str = "EQ",
    branches: str = "init, a",
    memory: str = ALLOCATED,
    carried: str = "u",
    other: str = "",
) -> hlo.Module:
    selection = SELECTED.format(
        first=first if tested is None else tested, direction=direction, branches=branches
    )
    body = BODY.replace("add(m, x)", f"add(m, {other})") if other else BODY
    values = {"state": STATE, "limit": limit, "first": first, "step": step, "memory": memory}
    text = (LIMIT + body + ENTRY).format(**values, carried=carried, selection=selection)
    return hlo.parse(text)


@pytest.mark.parametrize("first", [0, 3])
def test_an_initial_value_may_be_written_by_the_first_iteration(first: int) -> None:
    verdict = equivalent(plain(first=first), sunk(first=first))
    assert isinstance(verdict, Proved), verdict
    assert equivalent(plain(first=first), sunk(first=first, direction="NE", branches="a, init"))


def test_a_selection_may_be_rounded() -> None:
    rounded = "n = bf16[3,4] convert(b)  v = f32[3,4] convert(n)  m = f32[3,4] multiply(v, hs)"
    before, after = (
        hlo.parse(str(module).replace("%m = f32[3,4] multiply(%b, %hs)", rounded))
        for module in (plain(), sunk())
    )
    assert "bf16" in str(after)
    assert equivalent(before, after)


def test_the_values_are_those_of_executions() -> None:
    inputs = [np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4) for _ in range(2)]
    ours = run(plain(), inputs)[0]
    theirs = run(sunk(memory="u = f32[3,4] copy(y)"), inputs)[0]
    assert np.array_equal(ours, theirs)


MISSES: Final = {
    "the second iteration": {"tested": 1},
    "every iteration but the first": {"direction": "NE"},
    "other branches": {"branches": "a, init"},
    "another value": {"branches": "x, a"},
    "a read without the selection": {"other": "a"},
    "a step of 2": {"step": 2},
}


@pytest.mark.parametrize("name", MISSES)
def test_a_near_miss_is_not_proved(name: str) -> None:
    verdict = equivalent(plain(), sunk(**MISSES[name]))  # type: ignore[arg-type]
    assert not isinstance(verdict, Proved)
    inputs = [np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4) for _ in range(2)]
    ours = run(plain(), inputs)[0]
    theirs = run(sunk(**MISSES[name], memory="u = f32[3,4] copy(y)"), inputs)[0]  # type: ignore[arg-type]
    assert not np.array_equal(ours, theirs)


def test_a_loop_without_iterations_keeps_its_memory() -> None:
    assert not equivalent(plain(limit=0), sunk(limit=0, memory="u = f32[3,4] copy(y)"))

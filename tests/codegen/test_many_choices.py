"""Choices nested deep or with many cases: Python limits nested blocks and long conditions."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import indexing
from hlo import Module
from indexing.codegen import loops, staging
from indexing.codegen.nest import LoopNest
from indexing.execution import run


def chain(step: str, count: int, growth: int) -> Module:
    """A chain of instructions; each reads the one before, ``@``, and its size grows."""
    lines = [
        f"i{k} = s32[{4 + growth * k}] {step.replace('@', f'i{k - 1}')}"
        for k in range(1, count + 1)
    ]
    return hlo.parse(
        "ENTRY e { i0 = s32[4] parameter(0) z = s32[] constant(7) o = s32[1] constant({5}) "
        + "\n".join(lines)
        + f"\nROOT r = s32[{4 + growth * count}] copy(i{count}) }}"
    )


def concatenation(count: int) -> Module:
    operands = ", ".join(f"n{k}" if k % 3 else "i0" for k in range(count))
    doubled = "\n".join(f"n{k} = s32[4] add(i0, i0)" for k in range(count))
    return hlo.parse(
        f"ENTRY e {{ i0 = s32[4] parameter(0) {doubled} "
        f"ROOT r = s32[{4 * count}] concatenate({operands}), dimensions={{0}} }}"
    )


def check(module: Module) -> LoopNest:
    array = np.array([3, -1, 4, 9], np.int32)
    nest = indexing.loop_nest(module.entry)
    assert isinstance(nest, LoopNest), nest
    (expected,) = run(module, [array])
    for result in (nest.run(array), nest.vectorized().run(array)):
        assert np.array_equal(result, expected)
    return nest


STEPS = [
    ("pad(@, z), padding=1_0", 1),
    ("concatenate(@, o), dimensions={0}", 1),
    ("dynamic-update-slice(@, o, z)", 0),
]


@pytest.mark.parametrize(("step", "growth"), STEPS)
@pytest.mark.parametrize("count", [150, 600])
def test_long_chains_of_choices_are_staged(step: str, growth: int, count: int) -> None:
    nest = check(chain(step, count, growth))
    assert len(nest.stages) >= count // (staging.MAX_CHOICES + 1)


def test_short_chains_of_choices_are_one_stage() -> None:
    assert len(check(chain(*STEPS[0][:1], 30, 1)).stages) == 1


@pytest.mark.parametrize("most", [1, 2, 200])
def test_choices_of_many_cases(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "MAX_BRANCHES", most)
    nest = check(concatenation(5))
    assert ("while True:" in nest.source) == (most < 4)


def test_conditions_have_a_limited_number_of_branches() -> None:
    """CPython ends in a RecursionError on a condition of 5,000 branches."""
    below, beyond = (check(concatenation(loops.MAX_BRANCHES + k)).source for k in (1, 2))
    assert below.count("elif") == loops.MAX_BRANCHES - 1
    assert "elif" not in beyond

"""Choices nested deep or with many cases: Python limits nested blocks and long conditions."""

from __future__ import annotations

import pytest

import hlo
from hlo import Module
from indexing.codegen import choices, loops
from tests.codegen.comparison import checked_nest


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


STEPS = [
    ("pad(@, z), padding=1_0", 1),
    ("concatenate(@, o), dimensions={0}", 1),
    ("dynamic-update-slice(@, o, z)", 0),
]


@pytest.mark.parametrize(("step", "growth"), STEPS)
@pytest.mark.parametrize("count", [150, 600])
def test_long_chains_of_choices_are_staged(step: str, growth: int, count: int) -> None:
    nest = checked_nest(chain(step, count, growth))
    assert len(nest.stages) >= count // (choices.MAX_NESTED + 1)


def rotations(count: int) -> Module:
    """Both branches of each choice read the choice before."""
    lines, x = [], "p"
    for k in range(count):
        lines += [
            f"a{k} = s32[1] slice({x}), slice={{[0:1]}}",
            f"b{k} = s32[3] slice({x}), slice={{[1:4]}}",
            f"x{k} = s32[4] concatenate(b{k}, a{k}), dimensions={{0}}",
        ]
        x = f"x{k}"
    return hlo.parse("\n".join(["ENTRY e {", "p = s32[4] parameter(0)", *lines, "}"]))


@pytest.mark.parametrize("count", [5, 20, 101])
def test_choices_that_share_elements_are_printed_a_limited_number_of_times(count: int) -> None:
    nest = checked_nest(rotations(count))
    assert nest.source.count("\n") < 40 * count


@pytest.mark.parametrize("count", [4, 24])
def test_long_indices_are_staged(count: int) -> None:
    lines, x = ["p = s32[4] parameter(0)", "q = s32[3,4] broadcast(p), dimensions={1}"], "q"
    for k in range(count):
        shape = ["s32[4,3]", "s32[6,2]", "s32[3,4]"][k % 3]
        lines += [
            f"r{k} = {shape} reshape({x})",
            f"x{k} = {shape} reverse(r{k}), dimensions={{{k % 2}}}",
        ]
        x = f"x{k}"
    nest = checked_nest(hlo.parse("\n".join(["ENTRY e {", *lines, "}"])))
    assert max(map(len, nest.source.splitlines())) < 20_000
    assert (len(nest.stages) > 1) == (count > 4)


def test_short_chains_of_choices_are_one_stage() -> None:
    assert len(checked_nest(chain(*STEPS[0][:1], 30, 1)).stages) == 1


@pytest.mark.parametrize("most", [1, 2, 200])
def test_choices_of_many_cases(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "MAX_BRANCHES", most)
    nest = checked_nest(concatenation(5))
    assert ("while True:" in nest.source) == (most < 4)


def test_conditions_have_a_limited_number_of_branches() -> None:
    """CPython ends in a RecursionError on a condition of 5,000 branches."""
    below, beyond = (checked_nest(concatenation(loops.MAX_BRANCHES + k)).source for k in (1, 2))
    assert below.count("elif") == loops.MAX_BRANCHES - 1
    assert "elif" not in beyond

"""The maps of select-and-scatter contain the dependencies of the kernel, and are inverses."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

import hlo
from tests.ops.samples import parse_sample, related
from tests.ops.strategies import windows
from tests.ops.test_ops import check_inverse, check_reads
from tests.oracles import fuzz

_PARTS = re.compile(r"(f32\S+) reduce-window\((f32\S+) p, f32\[\] z\), (window=\{[^}]*\})")


def select_and_scatter(reduce_window: str) -> str:
    """Convert a reduce-window sample: the window is the same, its result is the source."""
    match = _PARTS.match(reduce_window)
    assert match, reduce_window
    source, operand, window = match.groups()
    operands = f"{operand} p, {source} q, f32[] z"
    called = "select=greater_or_equal, scatter=add"
    return f"{operand} select-and-scatter({operands}), {window}, {called}"


@fuzz(40)
@example(
    select_and_scatter(
        "f32[1] reduce-window(f32[2] p, f32[] z), "
        "window={size=2 stride=2 pad=-1_0 lhs_dilate=3 rhs_dilate=1}, to_apply=add"
    ),
    0,
)
@given(windows().map(select_and_scatter), st.integers(0, 1 << 30))
def test_maps_of_random_windows_contain_the_dependencies(text: str, seed: int) -> None:
    sample = parse_sample(text)
    assert hlo.verify(sample.instruction.module) == []
    random = np.random.default_rng(seed)
    check_reads(sample, random, choices=1)
    check_inverse(sample, random, choices=1)


def test_an_element_may_need_all_elements_that_share_a_window_with_it() -> None:
    text = (
        "f32[7] select-and-scatter(f32[7] p, f32[3] q, f32[] z), window={size=3 stride=2}, "
        "select=greater_or_equal, scatter=add"
    )
    sample = parse_sample(text)
    (operand,), (source,), _ = sample.op.reads(sample.instruction.shape, sample.shapes)
    touched = {0: {0}, 1: {0}, 2: {0, 1}, 3: {1}, 4: {1, 2}, 5: {2}, 6: {2}}
    assert related(source, []) == {((j,), (i,)) for j, all_i in touched.items() for i in all_i}
    assert related(operand, []) == {
        ((j,), (2 * i + s,)) for j, all_i in touched.items() for i in all_i for s in range(3)
    }

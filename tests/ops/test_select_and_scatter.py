"""The maps of select-and-scatter contain the dependencies of the kernel, and are inverses."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import hlo
import indexing
from hlo import Instruction
from hlo.ops.attributes import WindowDimension
from indexing.ops.windows import are_shared, element_under
from tests.execution.test_vectorised_kernels import window_dimensions
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


SEED, DRAWS = 20240229, 400

# fmt: off
COMPARED = [
    # sizes    window                                          exact
    ((5,),     "size=2",                                       True),
    ((5,),     "size=3 stride=2",                              True),
    ((5,),     "size=2 stride=2",                              True),   # element 4 is in no window
    ((5,),     "size=2 stride=2 pad=0_1",                      False),  # element 4 is alone
    ((4,),     "size=3 stride=3 pad=1_1 rhs_dilate=2",         True),   # of elements 1 and 3
    ((4,),     "size=2 stride=3 pad=1_1 rhs_dilate=2",         False),
    ((4,),     "size=3 pad=1_1 lhs_dilate=2",                  True),
    ((2, 3),   "size=1x2 stride=1x1",                          True),
    ((2, 3),   "size=2x1 stride=2x1",                          True),
    ((3, 3),   "size=2x2 stride=2x2 pad=0_1x0_1",              False),  # [2, 2] is alone
    ((3, 2),   "size=2x2 stride=2x2 pad=0_1x0_0",              True),
]
# fmt: on


def selection(operand: str, source: str, attributes: str, compared: str) -> Instruction:
    """A select-and-scatter that adds the sources of elements selected by `compared` of a and b."""
    root = hlo.parse(
        f"""
        select {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] {compared} }}
        add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }}
        ENTRY e {{
          p = {operand} parameter(0)
          q = {source} parameter(1)
          z = f32[] parameter(2)
          ROOT r = {operand} select-and-scatter(p, q, z), window={{{attributes}}}, select=select,
            scatter=add
        }}"""
    ).entry.root
    assert hlo.verify(root.module) == []
    return root


def scattered(
    values: dict[tuple[int, ...], int], windows: list[list[tuple[int, ...]]], least: bool
) -> list[tuple[int, ...] | None]:
    """The index that each window selects, by definition; None if it covers padding only."""
    selected: list[tuple[int, ...] | None] = []
    for covered in windows:
        best = None
        for j in covered:
            stays = best is not None and (
                values[best] <= values[j] if least else values[best] >= values[j]
            )
            best = best if stays else j
        selected.append(best)
    return selected


@pytest.mark.parametrize("direction", ["GE", "LE"])
@pytest.mark.parametrize("sizes, attributes, exact", COMPARED)
def test_the_map_to_compared_elements_is_exact_if_each_of_them_decides_for_some_values(
    sizes: tuple[int, ...], attributes: str, exact: bool, direction: str
) -> None:
    operand = f"f32[{','.join(map(str, sizes))}]"
    text = f"{operand} reduce-window({operand} p, f32[] z), window={{{attributes}}}, to_apply=add"
    sample = parse_sample(text)
    window, counts = sample.op.window, sample.op.infer_shape(*sample.shapes).dims
    source = f"f32[{','.join(map(str, counts))}]"
    root = selection(operand, source, attributes, f"compare(a, b), direction={direction}")
    (read,) = indexing.output_to_input(root).maps[0]
    places = list(np.ndindex(*sizes))
    positions = [
        [
            tuple([k for k in under if k is not None])
            for s in np.ndindex(*[w.size for w in window])
            for under in [[element_under(*each) for each in zip(window, i, s, sizes, strict=True)]]
            if None not in under
        ]
        for i in np.ndindex(*counts)
    ]
    decided = set()
    random = np.random.default_rng(SEED)
    for values in random.integers(0, 3, (DRAWS, len(places))).tolist():
        before = dict(zip(places, values, strict=True))
        old = scattered(before, positions, direction == "LE")
        for t, value in product(places, range(3)):
            new = scattered({**before, t: value}, positions, direction == "LE")
            for was, becomes in zip(old, new, strict=True):
                if was != becomes:  # the window's source moves from one element to the other
                    decided |= {(was, t), (becomes, t)}
    pairs = related(read, [])
    assert decided <= pairs
    assert (decided == pairs) is exact
    assert read.grade == ("exact" if exact else "may")


@pytest.mark.parametrize("compared", ["compare(a, a), direction=GE", "compare(a, b), direction=EQ"])
def test_the_map_to_elements_that_are_not_ordered_is_may(compared: str) -> None:
    root = selection("f32[5]", "f32[4]", "size=2", compared)
    assert [m.grade for m in indexing.output_to_input(root).maps[0]] == ["may"]


@fuzz(100)
@given(st.lists(window_dimensions(), min_size=1, max_size=2), st.integers(1, 5), st.integers(1, 5))
def test_shared_elements_are_those_of_the_definition(
    window: list[WindowDimension], rows: int, columns: int
) -> None:
    sizes = (rows, columns)[: len(window)]
    most: dict[tuple[int | None, ...], int] = {}
    for i in np.ndindex(*[w.positions(n) for w, n in zip(window, sizes, strict=True)]):
        covered = []
        for s in np.ndindex(*[w.size for w in window]):
            under = [element_under(*each) for each in zip(window, i, s, sizes, strict=True)]
            covered += [] if None in under else [tuple(under)]
        for j in covered:
            most[j] = max(most.get(j, 0), len(covered))
    assert are_shared(window, sizes) is (1 not in most.values())

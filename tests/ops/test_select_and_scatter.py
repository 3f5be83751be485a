"""The maps of select-and-scatter contain the dependencies of the kernel, and are inverses."""

from __future__ import annotations

import math
import re
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import hlo
import indexing
from hlo import Instruction
from hlo.ops.attributes import WindowDimension
from indexing.execution import xla
from indexing.ops.windows import are_shared, element_under
from tests.execution.test_vectorised_kernels import window_dimensions
from tests.ops.samples import parse_sample, related_pairs
from tests.ops.strategies import array, windows
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
    assert related_pairs(source, []) == {
        ((j,), (i,)) for j, all_i in touched.items() for i in all_i
    }
    assert related_pairs(operand, []) == {
        ((j,), (2 * i + s,)) for j, all_i in touched.items() for i in all_i for s in range(3)
    }


SEED, DRAWS = 20240229, 400

Array: TypeAlias = "np.ndarray[Any, Any]"
Pair: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]

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


def selection(
    operand: str, source: str, attributes: str, compared: str, scatter: str = "add(a, b)"
) -> Instruction:
    """A select-and-scatter that reduces the sources of elements that `compared` selects."""
    kind = operand.partition("[")[0]
    scalars = f"a = {kind}[] parameter(0)  b = {kind}[] parameter(1)"
    root = hlo.parse(
        f"""
        select {{ {scalars}  ROOT c = pred[] {compared} }}
        scatter {{ {scalars}  ROOT c = {kind}[] {scatter} }}
        ENTRY e {{
          p = {operand} parameter(0)
          q = {source} parameter(1)
          z = {kind}[] parameter(2)
          ROOT r = {operand} select-and-scatter(p, q, z), window={{{attributes}}}, select=select,
            scatter=scatter
        }}"""
    ).entry.root
    assert hlo.verify(root.module) == []
    return root


def scatter_targets(
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
    window, counts = window_over(sizes, attributes)
    compared = f"compare(a, b), direction={direction}"
    root = selection(array(sizes), array(counts), attributes, compared)
    (read,), (of_source,), _ = indexing.output_to_input(root).maps
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
    decided, selected = set(), set()
    random = np.random.default_rng(SEED)
    for values in random.integers(0, 3, (DRAWS, len(places))).tolist():
        before = dict(zip(places, values, strict=True))
        old = scatter_targets(before, positions, direction == "LE")
        windows = zip(old, np.ndindex(*counts), strict=True)
        selected |= {(j, i) for j, i in windows if j is not None}
        for t, value in product(places, range(3)):
            new = scatter_targets({**before, t: value}, positions, direction == "LE")
            for was, becomes in zip(old, new, strict=True):
                if was != becomes:  # the window's source moves from one element to the other
                    decided |= {(was, t), (becomes, t)}
    pairs = related_pairs(read, [])
    assert decided <= pairs
    assert (decided == pairs) is exact
    assert read.grade == ("exact" if exact else "may")
    assert selected == related_pairs(of_source, [])
    assert of_source.grade == "exact"


def window_over(
    sizes: tuple[int, ...], attributes: str
) -> tuple[tuple[WindowDimension, ...], tuple[int, ...]]:
    """The window, and the number of its positions over an array, for each dimension."""
    text = f"{array(sizes)} reduce-window({array(sizes)} p, f32[] z), window={{{attributes}}}"
    sample = parse_sample(f"{text}, to_apply=add")
    return sample.op.window, sample.op.infer_shape(*sample.shapes).dims


@pytest.mark.skipif(not xla.is_available(), reason="needs jax, the extra [xla]")
@pytest.mark.parametrize("direction", ["GE", "GT", "LE", "LT"])
@pytest.mark.parametrize(
    "sizes, attributes, exact", [row for row in COMPARED if "dilate" not in row[1]]
)  # StableHLO, through which XLA is reached, has no dilated select_and_scatter
def test_elements_decide_in_xla_as_the_maps_to_operand_and_source_say(
    sizes: tuple[int, ...], attributes: str, exact: bool, direction: str
) -> None:
    _, counts = window_over(sizes, attributes)
    compared = f"compare(a, b), direction={direction}"
    one = selection(array(sizes), array(counts), attributes, compared)
    # each change of one element, beside one largest element, is a row of a batch
    size, windows = math.prod(sizes), math.prod(counts)
    largest, changed = np.divmod(np.arange(size * (size + windows)), size + windows)
    batch = len(largest)
    rows = np.arange(batch)
    values = np.zeros((batch, size), np.float32)
    values[rows, largest] = 1
    sources = np.tile(np.arange(1, windows + 1, dtype=np.float32), (batch, 1))
    of_operand = changed < size
    after, sources_after = values.copy(), sources.copy()
    after[rows[of_operand], changed[of_operand]] = 2
    itself = of_operand & (changed == largest)
    after[rows[itself], changed[itself]] = -1
    sources_after[rows[~of_operand], changed[~of_operand] - size] += 100
    sign = -1 if direction in ("LE", "LT") else 1
    module = selection(
        array((batch, *sizes)), array((batch, *counts)), batch_window(attributes), compared
    ).module

    def result(operand: Array, source: Array) -> Array:
        inputs = [sign * operand.reshape(batch, *sizes), source.reshape(batch, *counts)]
        (out,) = xla.run(module, [*inputs, np.float32(0)])
        return np.asarray(out)

    differs = result(values, sources) != result(after, sources_after)
    pairs: tuple[set[Pair], set[Pair]] = set(), set()
    for row, *j in np.argwhere(differs).tolist():
        k = int(changed[row])
        index = np.unravel_index(k, sizes) if k < size else np.unravel_index(k - size, counts)
        pairs[k >= size].add((tuple(j), tuple(map(int, index))))
    (read,), (of_source,), _ = indexing.output_to_input(one).maps
    assert pairs[1] == related_pairs(of_source, [])
    assert pairs[0] <= related_pairs(read, [])
    assert (pairs[0] == related_pairs(read, [])) is exact


def batch_window(attributes: str) -> str:
    """The attributes of a window with a leading batch dimension.

    >>> batch_window("size=2 stride=3 pad=1_1")
    'size=1x2 stride=1x3 pad=0_0x1_1'
    """
    words = [word.split("=") for word in attributes.split()]
    return " ".join(f"{k}={'0_0' if k == 'pad' else 1}x{value}" for k, value in words)


# fmt: off
UNDECIDED = [
    # type  select                         scatter        operand  source
    ("f32", "compare(a, a), direction=GE", "add(a, b)",   "may",   "may"),
    ("f32", "compare(a, b), direction=EQ", "add(a, b)",   "may",   "may"),
    ("pred", "compare(a, b), direction=GE", "or(a, b)",   "may",   "may"),  # the first true one
    ("f32", "compare(a, b), direction=GE", "copy(b)",     "may",   "may"),  # only the last source
    ("s2",  "compare(b, a), direction=LT", "add(b, a)",   "exact", "exact"),
]
# fmt: on


@pytest.mark.parametrize("kind, compared, scatter, of_operand, of_source", UNDECIDED)
def test_maps_to_elements_that_need_not_decide_are_may(
    kind: str, compared: str, scatter: str, of_operand: str, of_source: str
) -> None:
    root = selection(f"{kind}[5]", f"{kind}[4]", "size=2", compared, scatter)
    operand, source, _ = indexing.output_to_input(root).maps
    assert [m.grade for m in operand] == [of_operand]
    assert [m.grade for m in source] == [of_source]


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

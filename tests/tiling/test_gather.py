"""Gather along one axis: its shapes, maps and offsets, against loops that follow its definition."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
import indexing
from hlo.shapes.shape import Shape
from indexing import Gather, GatherError, Unknown
from indexing.tiling.collapsing import Collapse
from tests.ops.samples import parse_sample
from tests.oracles import fuzz

Element = tuple[int, ...]

# ---------------------------------------------------------------- the oracle


def by_definition(
    params: np.ndarray[Any, Any], indices: np.ndarray[Any, Any], axis: int, batch_dims: int
) -> np.ndarray[Any, Any]:
    """``tf.gather``: for each batch, ``numpy.take`` along the axis, with clamped indices."""
    if batch_dims:
        rows = zip(params, indices, strict=True)
        return np.stack([by_definition(p, i, axis - 1, batch_dims - 1) for p, i in rows])
    return np.take(params, indices, axis, mode="clip")


@st.composite
def gathers(draw: st.DrawFn) -> Gather:
    sizes = st.integers(1, 3)
    batch = draw(st.lists(sizes, max_size=2))
    params = [*batch, *draw(st.lists(sizes, min_size=1, max_size=3))]
    indices = [*batch, *draw(st.lists(st.integers(0, 3), max_size=2))]
    axis = draw(st.integers(len(batch), len(params) - 1))
    back = axis - len(params) if draw(st.booleans()) else axis
    return indexing.gather(params, indices, back, len(batch))


def values_of(gather: Gather) -> Iterator[np.ndarray[Any, Any]]:
    """Yield random indices, some of them out of bounds."""
    random = np.random.default_rng(3)
    for _ in range(3):
        yield random.integers(-1, gather.processed + 1, gather.indices)


# ---------------------------------------------------------------- shapes, maps, offsets


@given(gathers())
@fuzz(100)
def test_the_maps_agree_with_the_definition(gather: Gather) -> None:
    params = np.arange(prod(gather.params)).reshape(gather.params)
    for indices in values_of(gather):
        expected = by_definition(params, indices, gather.axis, gather.batch_dims)
        assert gather.output == expected.shape
        for at in np.ndindex(*gather.output):
            position = gather.to_indices.evaluate(at)
            assert position is not None
            low, high = gather.to_params.runtime[0].clamp or (0, 0)
            index = min(max(int(indices[position]), low), high)
            element = gather.to_params.evaluate(at, runtime=[index])
            assert element is not None
            assert params[element] == expected[at]
            assert gather.to_params.source_map(gather.to_params.runtime[0]).evaluate(at) == position


@given(gathers())
@fuzz(100)
def test_the_collapsed_gather_copies_the_same_elements(gather: Gather) -> None:
    small = gather.collapsed
    assert len(small.params) == (4 if gather.batch_dims else 3)
    assert small.params[-3:] == (gather.outer, gather.processed, gather.inner)
    assert prod(small.params[:-3]) == gather.batch
    params = np.arange(prod(gather.params))
    for indices in values_of(gather):
        large = by_definition(
            params.reshape(gather.params), indices, gather.axis, gather.batch_dims
        )
        again = by_definition(
            params.reshape(small.params),
            indices.reshape(small.indices),
            small.axis,
            small.batch_dims,
        )
        assert large.ravel().tolist() == again.ravel().tolist()


@given(gathers())
@fuzz(60)
def test_offsets_are_row_major(gather: Gather) -> None:
    size = prod(gather.output)
    every = list(np.ndindex(*gather.output))
    assert [gather.coordinates(k) for k in range(size)] == every
    assert [gather.offset(at) for at in every] == list(range(size))
    for k in range(size):
        assert gather.in_batch(k) == divmod(k, gather.gathered_batch_size)
        flat = np.arange(prod(gather.indices)).reshape(gather.indices)
        (small,) = gather.collapsed.index_position(k)[-1:]
        batch = gather.in_batch(k)[0]
        assert flat[gather.index_position(k)] == batch * gather.gathered + small
    for offset in (-1, size):
        with pytest.raises(IndexError, match=f"offset {offset} is out of range"):
            gather.coordinates(offset)
    with pytest.raises(IndexError, match=r"coordinates .* are out of range"):
        gather.offset((*gather.output, 0))


def test_params_collapse_before_and_after_the_axis() -> None:
    gather = indexing.gather((4, 2, 3, 2, 6), (5,), axis=2)
    assert gather.collapsed.params == (8, 3, 12)
    assert gather.output == (4, 2, 5, 2, 6)


def test_an_offset_has_coordinates_and_reads_an_index() -> None:
    gather = indexing.gather((2, 5, 2), (2, 3), axis=1)
    small = gather.collapsed
    assert small.output == (2, 6, 2)
    assert small.coordinates(18) == (1, 3, 0)
    assert small.index_position(18) == (3,)
    assert (gather.coordinates(18), gather.index_position(18)) == ((1, 1, 0, 0), (1, 0))


@pytest.mark.parametrize(
    "params, indices, axis, batch_dims",
    [
        ((10, 6), (10, 18), 1, 1),
        ((10, 2, 3), (10, 6), 1, 1),
        ((10, 3, 2), (10, 6), 2, 1),
        ((5, 2, 6), (5, 2, 3, 6), 2, 2),
    ],
)
def test_an_offset_belongs_to_a_batch(
    params: Element, indices: Element, axis: int, batch_dims: int
) -> None:
    """Ten batches of 6 elements, of which 18 are gathered: 58 = 3 · 18 + 4."""
    gather = indexing.gather(params, indices, axis, batch_dims)
    assert (gather.batch, gather.batch_size, gather.gathered_batch_size) == (10, 6, 18)
    assert gather.in_batch(58) == (3, 4)


# ---------------------------------------------------------------- rules

# fmt: off
RULES = [
    # params, indices, axis, batch_dims, the rule and its message
    ((), (2,), 0, 0, "G2", "params are a scalar"),
    ((3, 4), (2,), 2, 0, "G2", r"the axis must be in \[-2, 1\]: axis is 2"),
    ((3, 4), (2,), -3, 0, "G2", r"the axis must be in \[-2, 1\]: axis is -3"),
    ((3, 4), (3,), 1, 2, "G3", r"batch_dims must be in \[0, 1\].* batch_dims is 2"),
    ((3, 4), (3,), 1, -1, "G3", "batch_dims is -1"),
    ((3, 4), (3, 4), 0, 1, "G4", "must be at most the axis: batch_dims is 1, axis is 0"),
    ((3, 4), (3, 4), -2, 1, "G4", "must be at most the axis: batch_dims is 1, axis is 0"),
    ((3, 4), (2,), 1, 1, "G5", r"the first 1 sizes .* params are \[3, 4\], indices \[2\]"),
    ((3, -4), (2,), 1, 0, "G1", "sizes must not be negative"),
    ((0, 4), (2,), 0, 0, "G6", "the axis must not be empty"),
]
# fmt: on


@pytest.mark.parametrize("params, indices, axis, batch_dims, rule, message", RULES)
def test_an_error_names_the_rule(
    params: Element, indices: Element, axis: int, batch_dims: int, rule: str, message: str
) -> None:
    with pytest.raises(GatherError, match=f"gather {rule}: .*{message}") as caught:
        indexing.gather(params, indices, axis, batch_dims)
    assert caught.value.rule == rule


def test_gathers_that_just_satisfy_the_rules() -> None:
    assert indexing.gather((3, 4), (3,), -1, 1).output == (3,)
    assert indexing.gather((3, 4), (), 0).output == (4,)
    assert indexing.gather((0, 4), (0,), 0).output == (0, 4)
    assert indexing.gather((0, 4), (2,), 1).output == (0, 2)
    assert indexing.gather(Shape("f32", (3, 4)), Shape("s32", (2,))).output == (2, 4)


# ---------------------------------------------------------------- from HLO


@st.composite
def hlo_gathers(draw: st.DrawFn) -> tuple[str, Gather]:
    """An HLO gather and the equivalent `Gather`."""
    expected = draw(gathers())
    b, axis, params = expected.batch_dims, expected.axis, expected.params
    vector = draw(st.integers(0, len(expected.indices)))
    explicit = vector < len(expected.indices) or draw(st.booleans())
    indices = list(expected.indices)
    if explicit:
        indices.insert(vector, 1)
    chosen = len(expected.indices) - b
    offsets = [*range(b, axis), *range(axis + chosen, len(params) - 1 + chosen)]
    lead = [k for k in range(len(indices)) if not explicit or k != vector][:b]
    attributes = {
        "offset_dims": offsets,
        "collapsed_slice_dims": [axis],
        "start_index_map": [axis],
        "operand_batching_dims": list(range(b)),
        "start_indices_batching_dims": lead,
        "slice_sizes": [1 if k < b or k == axis else n for k, n in enumerate(params)],
    }

    def ints(values: Any) -> str:
        return ",".join(map(str, values))

    attribute_text = ", ".join(f"{name}={{{ints(values)}}}" for name, values in attributes.items())
    shapes = f"f32[{ints(params)}] p, s32[{ints(indices)}] i"
    at = vector if explicit else len(expected.indices)
    text = f"f32[{ints(expected.output)}] gather({shapes}), {attribute_text}, index_vector_dim={at}"
    return text, expected


@given(hlo_gathers())
@fuzz(150)
def test_a_gather_along_one_axis_is_recognised(case: tuple[str, Gather]) -> None:
    text, expected = case
    instruction = parse_sample(text).instruction
    gather = indexing.gather_of(instruction)
    assert isinstance(gather, Gather)
    same = ("params", "indices", "axis", "batch_dims", "output")
    assert [getattr(gather, name) for name in same] == [getattr(expected, name) for name in same]
    maps = indexing.output_to_input(instruction).maps
    if prod(gather.output):
        assert gather.to_params.is_equal(maps[0][0]) is True
        (written,) = indexing.input_to_output(instruction, 0).maps[0]
        (back,) = gather.to_params.inverse()
        assert back.is_equal(written) is True
        collapsed = indexing.collapse(instruction)
        assert isinstance(collapsed, Collapse)
        large = [n for n in collapsed.operands[0].collapsed.dims if n != 1]
        assert large == [n for n in gather.collapsed.params if n != 1] or gather.processed == 1


# fmt: off
OTHERS = [
    ("f32[5,2] gather(f32[6,4] p, s32[5,2] i), offset_dims={1}, collapsed_slice_dims={0}, "
     "start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,2}", "start_index_map is [0, 1]"),
    ("f32[5,1,4] gather(f32[6,4] p, s32[5] i), offset_dims={1,2}, collapsed_slice_dims={}, "
     "start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}", "collapsed_slice_dims is []"),
    ("f32[5,3] gather(f32[6,4] p, s32[5] i), offset_dims={1}, collapsed_slice_dims={0}, "
     "start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}", "3 of 4 elements in"),
    ("f32[4,5] gather(f32[6,4] p, s32[5] i), offset_dims={0}, collapsed_slice_dims={0}, "
     "start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}", "offset_dims is [0], not [1]"),
    ("f32[4,5] gather(f32[6,4] p, s32[4,5] i), offset_dims={}, collapsed_slice_dims={0}, "
     "start_index_map={0}, operand_batching_dims={1}, start_indices_batching_dims={0}, "
     "index_vector_dim=2, slice_sizes={1,1}", "batching dimensions [1] are not leading"),
]
# fmt: on


@pytest.mark.parametrize("text, reason", OTHERS)
def test_a_gather_along_several_axes_is_unknown_with_a_reason(text: str, reason: str) -> None:
    instruction = parse_sample(text).instruction
    assert hlo.verify(instruction.module) == []
    unknown = indexing.gather_of(instruction)
    assert isinstance(unknown, Unknown)
    assert reason in unknown.reason
    assert unknown.instruction is instruction


def test_other_ops_are_not_gathers() -> None:
    unknown = indexing.gather_of(parse_sample("f32[3] negate(f32[3] p)").instruction)
    assert isinstance(unknown, Unknown)
    assert unknown.reason.startswith("negate `")
    assert "is not a gather" in unknown.reason


def test_each_selected_element_of_params_is_read() -> None:
    """One index is selected twice, and one is out of bounds."""
    text = (
        "f32[2,4,3] gather(f32[2,5,3] p, s32[4] i), offset_dims={0,2}, collapsed_slice_dims={1}, "
        "start_index_map={1}, index_vector_dim=1, slice_sizes={2,1,3}"
    )
    params, _ = indexing.read_counts(parse_sample(text).instruction, values={"i": [1, 3, 1, 7]})
    assert isinstance(params, indexing.Multiplicity)
    expected = [0, 2, 0, 1, 1]
    assert params.counts((2, 5, 3)).tolist() == [[[n] * 3 for n in expected]] * 2
    assert sum(params.at((a, b, c)) for a, b, c in product(*map(range, (2, 5, 3)))) == params.total

"""Gather as a primitive: its shapes, maps and offsets, against loops that follow its definition."""

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


def values_of(found: Gather) -> Iterator[np.ndarray[Any, Any]]:
    """Some indices, a few of them outside."""
    random = np.random.default_rng(3)
    for _ in range(3):
        yield random.integers(-1, found.processed + 1, found.indices)


# ---------------------------------------------------------------- shapes, maps, offsets


@given(gathers())
@fuzz(100)
def test_the_maps_are_the_definition(found: Gather) -> None:
    params = np.arange(prod(found.params)).reshape(found.params)
    for indices in values_of(found):
        wanted = by_definition(params, indices, found.axis, found.batch_dims)
        assert found.output == wanted.shape
        for at in np.ndindex(*found.output):
            place = found.to_indices.evaluate(at)
            assert place is not None
            low, high = found.to_params.runtime[0].clamp or (0, 0)
            index = min(max(int(indices[place]), low), high)
            element = found.to_params.evaluate(at, runtime=[index])
            assert element is not None
            assert params[element] == wanted[at]
            assert found.to_params.source_map(found.to_params.runtime[0]).evaluate(at) == place


@given(gathers())
@fuzz(100)
def test_it_is_the_same_gather_when_collapsed(found: Gather) -> None:
    small = found.collapsed
    assert len(small.params) == (4 if found.batch_dims else 3)
    assert small.params[-3:] == (found.outer, found.processed, found.inner)
    assert prod(small.params[:-3]) == found.batch
    params = np.arange(prod(found.params))
    for indices in values_of(found):
        large = by_definition(params.reshape(found.params), indices, found.axis, found.batch_dims)
        again = by_definition(
            params.reshape(small.params),
            indices.reshape(small.indices),
            small.axis,
            small.batch_dims,
        )
        assert large.ravel().tolist() == again.ravel().tolist()


@given(gathers())
@fuzz(60)
def test_offsets_count_the_result_row_by_row(found: Gather) -> None:
    size = prod(found.output)
    every = list(np.ndindex(*found.output))
    assert [found.coordinates(k) for k in range(size)] == every
    assert [found.offset(at) for at in every] == list(range(size))
    for k in range(size):
        assert found.in_batch(k) == divmod(k, found.gathered_batch_size)
        flat = np.arange(prod(found.indices)).reshape(found.indices)
        (small,) = found.collapsed.index_read(k)[-1:]
        batch = found.in_batch(k)[0]
        assert flat[found.index_read(k)] == batch * found.gathered + small
    for outside in (-1, size):
        with pytest.raises(IndexError, match=f"there is no offset {outside}"):
            found.coordinates(outside)
    with pytest.raises(IndexError, match="there is no"):
        found.offset((*found.output, 0))


def test_the_params_collapse_around_the_axis() -> None:
    found = indexing.gather((4, 2, 3, 2, 6), (5,), axis=2)
    assert found.collapsed.params == (8, 3, 12)
    assert found.output == (4, 2, 5, 2, 6)


def test_an_offset_is_a_coordinate_and_reads_an_index() -> None:
    found = indexing.gather((2, 5, 2), (2, 3), axis=1)
    small = found.collapsed
    assert small.output == (2, 6, 2)
    assert small.coordinates(18) == (1, 3, 0)
    assert small.index_read(18) == (3,)
    assert (found.coordinates(18), found.index_read(18)) == ((1, 1, 0, 0), (1, 0))


@pytest.mark.parametrize(
    "params, indices, axis, batch_dims",
    [
        ((10, 6), (10, 18), 1, 1),
        ((10, 2, 3), (10, 6), 1, 1),
        ((10, 3, 2), (10, 6), 2, 1),
        ((5, 2, 6), (5, 2, 3, 6), 2, 2),
    ],
)
def test_an_offset_lies_in_a_batch(
    params: Element, indices: Element, axis: int, batch_dims: int
) -> None:
    """Ten batches of 6 elements, of which 18 are gathered: 58 = 3 · 18 + 4."""
    found = indexing.gather(params, indices, axis, batch_dims)
    assert (found.batch, found.batch_size, found.gathered_batch_size) == (10, 6, 18)
    assert found.in_batch(58) == (3, 4)


# ---------------------------------------------------------------- rules

# fmt: off
RULES = [
    # params, indices, axis, batch_dims, the rule and what it says
    ((), (2,), 0, 0, "G2", "params have a dimension"),
    ((3, 4), (2,), 2, 0, "G2", r"the axis is in \[-2, 1\]; the axis is 2"),
    ((3, 4), (2,), -3, 0, "G2", r"the axis is in \[-2, 1\]; the axis is -3"),
    ((3, 4), (3,), 1, 2, "G3", r"batch_dims is in \[0, 1\].* batch_dims is 2"),
    ((3, 4), (3,), 1, -1, "G3", "batch_dims is -1"),
    ((3, 4), (3, 4), 0, 1, "G4", "batch_dims <= axis; batch_dims is 1, the axis 0"),
    ((3, 4), (3, 4), -2, 1, "G4", "batch_dims <= axis; batch_dims is 1, the axis 0"),
    ((3, 4), (2,), 1, 1, "G5", r"the first 1 sizes .* params are \[3, 4\], indices \[2\]"),
    ((3, -4), (2,), 1, 0, "G1", "no size is negative"),
    ((0, 4), (2,), 0, 0, "G6", "the axis has an element to choose"),
]
# fmt: on


@pytest.mark.parametrize("params, indices, axis, batch_dims, rule, says", RULES)
def test_an_error_names_the_rule(
    params: Element, indices: Element, axis: int, batch_dims: int, rule: str, says: str
) -> None:
    with pytest.raises(GatherError, match=f"gather {rule} does not hold: .*{says}") as caught:
        indexing.gather(params, indices, axis, batch_dims)
    assert caught.value.rule == rule


def test_near_misses_are_gathers() -> None:
    assert indexing.gather((3, 4), (3,), -1, 1).output == (3,)
    assert indexing.gather((3, 4), (), 0).output == (4,)
    assert indexing.gather((0, 4), (0,), 0).output == (0, 4)
    assert indexing.gather((0, 4), (2,), 1).output == (0, 2)
    assert indexing.gather(Shape("f32", (3, 4)), Shape("s32", (2,))).output == (2, 4)


# ---------------------------------------------------------------- from HLO


@st.composite
def primitives(draw: st.DrawFn) -> tuple[str, Gather]:
    """An HLO gather, and the primitive that it says."""
    wanted = draw(gathers())
    b, axis, params = wanted.batch_dims, wanted.axis, wanted.params
    vector = draw(st.integers(0, len(wanted.indices)))
    explicit = vector < len(wanted.indices) or draw(st.booleans())
    indices = list(wanted.indices)
    if explicit:
        indices.insert(vector, 1)
    chosen = len(wanted.indices) - b
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

    said = ", ".join(f"{name}={{{ints(values)}}}" for name, values in attributes.items())
    shapes = f"f32[{ints(params)}] p, s32[{ints(indices)}] i"
    at = vector if explicit else len(wanted.indices)
    text = f"f32[{ints(wanted.output)}] gather({shapes}), {said}, index_vector_dim={at}"
    return text, wanted


@given(primitives())
@fuzz(150)
def test_a_gather_of_xla_is_recognised(case: tuple[str, Gather]) -> None:
    text, wanted = case
    instruction = parse_sample(text).instruction
    found = indexing.gather_of(instruction)
    assert isinstance(found, Gather)
    same = ("params", "indices", "axis", "batch_dims", "output")
    assert [getattr(found, name) for name in same] == [getattr(wanted, name) for name in same]
    maps = indexing.output_to_input(instruction).maps
    if prod(found.output):
        assert found.to_params.is_equal(maps[0][0]) is True
        (written,) = indexing.input_to_output(instruction, 0).maps[0]
        (back,) = found.to_params.inverse()
        assert back.is_equal(written) is True
        collapsed = indexing.collapse(instruction)
        assert isinstance(collapsed, Collapse)
        large = [n for n in collapsed.operands[0].collapsed.dims if n != 1]
        assert large == [n for n in found.collapsed.params if n != 1] or found.processed == 1


# fmt: off
OTHERS = [
    ("f32[5,2] gather(f32[6,4] p, s32[5,2] i), offset_dims={1}, collapsed_slice_dims={0}, "
     "start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,2}", "along the dimensions [0, 1]"),
    ("f32[5,1,4] gather(f32[6,4] p, s32[5] i), offset_dims={1,2}, collapsed_slice_dims={}, "
     "start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}", "dimensions [] are collapsed"),
    ("f32[5,3] gather(f32[6,4] p, s32[5] i), offset_dims={1}, collapsed_slice_dims={0}, "
     "start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}", "3 of 4 in dimension 1"),
    ("f32[4,5] gather(f32[6,4] p, s32[5] i), offset_dims={0}, collapsed_slice_dims={0}, "
     "start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}", "offset_dims are [0], not [1]"),
    ("f32[4,5] gather(f32[6,4] p, s32[4,5] i), offset_dims={}, collapsed_slice_dims={0}, "
     "start_index_map={0}, operand_batching_dims={1}, start_indices_batching_dims={0}, "
     "index_vector_dim=2, slice_sizes={1,1}", "batching dimensions [1] are not the first ones"),
]
# fmt: on


@pytest.mark.parametrize("text, why", OTHERS)
def test_other_gathers_are_none_and_say_why(text: str, why: str) -> None:
    instruction = parse_sample(text).instruction
    assert hlo.verify(instruction.module) == []
    found = indexing.gather_of(instruction)
    assert isinstance(found, Unknown)
    assert why in found.reason
    assert found.instruction is instruction


def test_other_ops_are_no_gather() -> None:
    found = indexing.gather_of(parse_sample("f32[3] negate(f32[3] p)").instruction)
    assert isinstance(found, Unknown)
    assert "is negate, no gather" in found.reason


def test_every_element_of_params_that_is_chosen_is_read() -> None:
    """By counting, with indices of which one is chosen twice and one is outside."""
    text = (
        "f32[2,4,3] gather(f32[2,5,3] p, s32[4] i), offset_dims={0,2}, collapsed_slice_dims={1}, "
        "start_index_map={1}, index_vector_dim=1, slice_sizes={2,1,3}"
    )
    params, _ = indexing.read_counts(parse_sample(text).instruction, values={"i": [1, 3, 1, 7]})
    assert isinstance(params, indexing.Multiplicity)
    wanted = [0, 2, 0, 1, 1]
    assert params.counts((2, 5, 3)).tolist() == [[[n] * 3 for n in wanted]] * 2
    assert sum(params.at((a, b, c)) for a, b, c in product(*map(range, (2, 5, 3)))) == params.total

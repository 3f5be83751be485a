"""Bitcasts between tiled layouts: both elements have the same place in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from hlo.shapes.shape import Shape
from indexing.maps.answers import Unknown
from tests.ops.samples import parse_sample

# fmt: off
SAMPLES = [
    "f32[1,2,5,3]{3,2,1,0:T(2,2)} bitcast(f32[2,5,3]{2,1,0:T(2,2)} p)",
    "f32[6,5,3]{2,1,0:T(4,2)(2,1)} bitcast(f32[2,3,5,3]{3,2,1,0:T(4,2)(2,1)} p)",
    "f32[5,3,2]{1,0,2:T(2,2)} bitcast(f32[2,5,3]{2,1,0:T(2,2)} p)",
    "f32[7,1]{0,1:T(4)} bitcast(f32[7]{0:T(4)} p)",
    "pred[1]{0:T(128)} bitcast(pred[]{:T(128)} p)",
    "s32[5,3]{1,0:T(2,2)} bitcast(f32[5,3]{1,0:T(2,2)} p)",
]
THROUGH_MEMORY = [
    "f32[5,6]{1,0:T(2,2)} bitcast(f32[5,2,3]{2,1,0:T(2,2)} p)",     # tiles of other dimensions
    "f32[5,3]{1,0:T(2,2)} bitcast(f32[5,3]{1,0:T(2,3)} p)",         # other tiles
    "f32[6,4]{1,0:T(2,2)} bitcast(f32[6,4]{1,0} p)",                # tiles on one side only
    "f32[5,3]{1,0} bitcast(f32[5,3]{1,0:T(2,2)} p)",                # padding becomes elements
    "s32[6]{0:T(128)} bitcast(s32[1]{0:T(128)} p)",
    "s32[1]{0:T(128)} bitcast(s32[6]{0:T(128)} p)",                 # elements become padding
    "f32[6,5,3]{2,1,0:T(4,2)(2,1)} bitcast(f32[6,5,3]{2,1,0:T(2,4)} p)",
]
UNKNOWN = [
    "f32[3,2]{1,0:T(2,2)} bitcast(f16[3,4]{1,0:T(2,4)} p)",         # elements of another width
    "f32[3]{0:D(C)} bitcast(f32[3]{0} p)",                          # a sparse array
    "f32[4,6]{1,0} bitcast(f32[4,6]{1,0:T(2,0)} p)",                # tiles without elements
]
# fmt: on


def place(shape: Shape, index: Sequence[int]) -> int:
    """Where an element lies: a tile splits minor dimensions into tiles and their inside."""
    order = shape.layout_or_default.minor_to_major[::-1]
    sizes, at = [shape.dims[k] for k in order], [index[k] for k in order]
    for tile in shape.layout_or_default.tiles:
        missing = max(0, len(tile) - len(sizes))
        sizes, at = [1] * missing + sizes, [0] * missing + at
        major = len(sizes) - len(tile)
        minor = list(zip(sizes[major:], at[major:], tile, strict=True))
        sizes = [*sizes[:major], *[-(-n // t) for n, _, t in minor], *tile]
        at = [*at[:major], *[i // t for _, i, t in minor], *[i % t for _, i, t in minor]]
    position = 0
    for n, i in zip(sizes, at, strict=True):
        position = position * n + i
    return position


@pytest.mark.parametrize("text", SAMPLES)
def test_both_elements_have_the_same_place(text: str) -> None:
    sample = parse_sample(text)
    (out,), (operand,) = sample.outputs, sample.arrays
    ((reads,),) = sample.op.reads(out, sample.shapes)
    ((writes,),) = sample.op.writes(out, sample.shapes)
    for i in np.ndindex(*out.dims):
        assert place(operand, reads.evaluate(i)) == place(out, i)
        assert writes.evaluate(reads.evaluate(i)) == i


@pytest.mark.parametrize("text", THROUGH_MEMORY)
def test_elements_are_related_through_their_places(text: str) -> None:
    sample = parse_sample(text)
    (out,), (operand,) = sample.outputs, sample.arrays
    ((reads,),) = sample.op.reads(out, sample.shapes)
    ((writes,),) = sample.op.writes(out, sample.shapes)
    index_at = {place(operand, j): j for j in np.ndindex(*operand.dims)}
    for i in np.ndindex(*out.dims):
        assert reads.evaluate(i) == index_at.get(place(out, i))
    at = {place(out, i): i for i in np.ndindex(*out.dims)}
    for j in np.ndindex(*operand.dims):
        assert writes.evaluate(j) == at.get(place(operand, j))


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_tiles_make_unknown_is_said_to_be_so(text: str) -> None:
    sample = parse_sample(text)
    (found,) = sample.op.reads(sample.instruction.shape, sample.shapes)
    assert isinstance(found, Unknown)
    assert "tiled layouts" in found.reason

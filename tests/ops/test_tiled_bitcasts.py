"""Bitcasts between tiled layouts: related elements have the same offset in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import hlo
from hlo.shapes.shape import Shape, dtype
from indexing.execution import run
from indexing.maps.answers import Unknown
from indexing.ops.element import CopyRule, element_of
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


def offset(shape: Shape, index: Sequence[int]) -> int:
    """Offset of an element in memory; a tile splits each minor dimension into two."""
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
def test_related_elements_have_the_same_offset(text: str) -> None:
    sample = parse_sample(text)
    (out,), (operand,) = sample.outputs, sample.arrays
    ((reads,),) = sample.op.reads(out, sample.shapes)
    ((writes,),) = sample.op.writes(out, sample.shapes)
    for i in np.ndindex(*out.dims):
        assert offset(operand, reads.evaluate(i)) == offset(out, i)
        assert writes.evaluate(reads.evaluate(i)) == i


@pytest.mark.parametrize("text", THROUGH_MEMORY)
def test_elements_with_the_same_offset_are_related(text: str) -> None:
    sample = parse_sample(text)
    (out,), (operand,) = sample.outputs, sample.arrays
    ((reads,),) = sample.op.reads(out, sample.shapes)
    ((writes,),) = sample.op.writes(out, sample.shapes)
    index_at = {offset(operand, j): j for j in np.ndindex(*operand.dims)}
    for i in np.ndindex(*out.dims):
        assert reads.evaluate(i) == index_at.get(offset(out, i))
    at = {offset(out, i): i for i in np.ndindex(*out.dims)}
    for j in np.ndindex(*operand.dims):
        assert writes.evaluate(j) == at.get(offset(operand, j))


@pytest.mark.parametrize("text", UNKNOWN)
def test_maps_of_unsupported_layouts_are_unknown(text: str) -> None:
    sample = parse_sample(text)
    (reads,) = sample.op.reads(sample.instruction.shape, sample.shapes)
    assert isinstance(reads, Unknown)
    assert "tiled layouts" in reads.reason


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("f32[8,64]{1,0:T(8,128)S(1)}", "f32[8,64]{1,0:T(8,128)}"),
        ("f32[8,64]{1,0:T(8,128)}", "f32[1,8,64]{2,1,0:T(8,128)}"),
        ("bf16[7,300]{1,0:T(8,128)(2,1)}", "bf16[7,300,1]{1,0,2:T(8,128)(2,1)}"),
        ("f32[8,64]{1,0:T(8,128)}", "f32[8,64]{0,1:T(8,128)}"),
        ("f32[1024]{0:T(1024)}", "f32[8,128]{1,0:T(8,128)}"),
        ("f32[1000]{0:T(1024)}", "f32[8,125]{1,0:T(8,128)}"),
        ("f32[100]{0:T(128)}", "f32[128]{0:T(128)}"),
        ("f32[128]{0:T(128)}", "f32[100]{0:T(128)}"),
    ],
)
def test_a_tiled_bitcast_has_padding_where_no_element_is_in_memory(
    source: str, target: str
) -> None:
    text = f"ENTRY e {{ p = {source} parameter(0)  ROOT b = {target} bitcast(p) }}"
    root = hlo.parse(text).entry.root
    shape = root.operands[0].shape
    assert isinstance(shape, Shape)
    values = np.arange(1, shape.size + 1).reshape(shape.dims)
    (result,) = run(root.module, [values.astype(dtype(shape.element_type))])
    rule = element_of(root)
    assert isinstance(rule, CopyRule)
    assert rule.has_padding == bool(np.any(result == 0))

"""Bitcasts as ops on logical shapes, executed beside the kernel of the bitcast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import hlo
from hlo.shapes.shape import Shape, dtype
from indexing.execution import run
from indexing.ops.logical import why_no_logical_bitcast, write_bitcast
from tests.ops.samples import parse_sample, samples_of
from tests.ops.test_tiled_bitcasts import SAMPLES, THROUGH_MEMORY, UNKNOWN

OF_TPU = [
    "s32[4,128,1,1]{1,0,3,2:T(4,128)} bitcast(s32[4,128]{1,0:T(4,128)} p)",
    "bf16[4,8,8,2]{0,3,2,1:T(8,128)(2,1)} bitcast(bf16[4,8,8,2]{0,3,2,1:T(8,128)(2,1)S(1)} p)",
    "f32[16,1]{1,0:T(8,128)S(1)} bitcast(f32[16,8]{1,0:T(8,128)S(1)} p)",
    "f32[16,256]{1,0:T(8,128)} bitcast(f32[2,2,8,128]{3,1,2,0:T(8,128)} p)",
    "s32[2,2,8,128]{3,2,1,0:T(8,128)} bitcast(s32[256,16]{0,1:T(8,128)S(1)} p)",
    "f32[100]{0:T(128)} bitcast(f32[97]{0:T(128)} p)",
    "c64[5,3]{1,0:T(2,2)} bitcast(c64[5,3]{1,0:T(2,3)} p)",
    "pred[5,3]{1,0:T(2,2)} bitcast(pred[3,5]{1,0} p)",
    "s32[5,3]{1,0:T(2,2)} bitcast(f32[3,5]{1,0} p)",
]
PLAIN = [sample.text for sample in samples_of("bitcast")]


def _program(source: Shape, target: Shape) -> str:
    lines = [f"%p = {source.with_layout(None)} parameter(0)"]

    def add(name: str, line: str, operands: Sequence[str]) -> str:
        assert not [each for each in lines if each.startswith(f"%{name} = ")]
        assert all(f"%{operand}" in line for operand in operands)
        lines.append(f"%{name} = {line}")
        return name

    assert write_bitcast("r", "p", source, target, add) == "r"
    lines[-1] = f"ROOT {lines[-1]}"
    return "ENTRY e {\n" + "\n".join(lines) + "\n}"


@pytest.mark.parametrize("text", [*PLAIN, *SAMPLES, *THROUGH_MEMORY, *OF_TPU])
def test_the_program_has_the_values_of_the_bitcast(text: str) -> None:
    sample = parse_sample(text)
    (source,), target = sample.arrays, sample.instruction.shape
    assert isinstance(target, Shape)
    assert not why_no_logical_bitcast(source, target)
    numbers = np.arange(1, source.size + 1).reshape(source.dims) % 251
    given = numbers.astype(dtype(source.element_type))
    module = hlo.parse(_program(source, target))
    assert hlo.verify(module) == []
    (ours,), (theirs,) = run(module, [given]), sample.run([given])
    assert ours.dtype == theirs.dtype
    assert ours.tobytes() == np.asarray(theirs).tobytes()


@pytest.mark.parametrize(
    "text",
    [
        *UNKNOWN,
        "f32[4,6]{1,0:T(*,2)} bitcast(f32[4,6]{1,0} p)",
        "s8[2]{0} bitcast(s4[2]{0:E(8)} p)",
    ],
)
def test_layouts_without_such_a_program_are_told(text: str) -> None:
    sample = parse_sample(text)
    target = sample.instruction.shape
    assert isinstance(target, Shape)
    assert why_no_logical_bitcast(sample.arrays[0], target)

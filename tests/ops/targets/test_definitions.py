"""Definitions of calls of libraries by ops of HLO, executed beside the values of the calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hlo
from hlo.ops.op import OPS_BY_TARGET
from hlo.shapes.shape import dtype
from indexing.execution import run
from indexing.ops.targets.known_values import KnownValues
from tests.ops.samples import Sample, samples_of

CALLS = [name for name, cls in OPS_BY_TARGET.items() if issubclass(cls, KnownValues)]
SAMPLES = [
    pytest.param(sample, id=f"{name}-{number}")
    for name in CALLS
    for number, sample in enumerate(samples_of(name))
    if sample.op.definition(sample.instruction) is not None
]


def test_gemms_convolutions_solvers_and_halves_are_defined() -> None:
    defined = {str(each.id).rpartition("-")[0] for each in SAMPLES}
    assert defined == {
        "__cublas$gemm",
        "__cublas$lt$matmul",
        "__cublas$lt$matmul$f8",
        "__cublas$triangularSolve",
        "__cudnn$convForward",
        "__cudnn$convBiasActivationForward",
        "X64SplitLow",
        "X64SplitHigh",
        "X64Combine",
    }


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_definition_has_the_values_of_the_call(sample: Sample) -> None:
    op: Any = sample.op
    chance = np.random.default_rng(5)
    inputs = [
        np.asarray(chance.uniform(-2, 2, shape.dims)).astype(dtype(shape.element_type))
        for shape in sample.arrays
    ]
    expected = sample.run(inputs)[: op.value_count]
    actual = run(hlo.parse(str(op.definition(sample.instruction))), inputs)
    assert len(actual) == len(expected)
    for ours, theirs in zip(actual, expected, strict=True):
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        assert ours.dtype == theirs.dtype
        is_wide = ours.dtype.itemsize > 2
        kind = complex if ours.dtype.kind == "c" else float
        np.testing.assert_allclose(
            ours.astype(kind), theirs.astype(kind), rtol=1e-5 if is_wide else 1e-1, atol=1e-6
        )

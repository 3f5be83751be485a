"""Loops, NumPy programs and kernels agree, on samples and on random instructions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
import indexing
from hlo.ops.op import OPS
from indexing import Unknown
from indexing.codegen.nest import LoopNest
from indexing.ops.base import MappedOp
from tests.codegen.comparison import agree, kernel_results
from tests.ops.samples import MAPPED, Array, Sample, SampleChecks, parse_sample, samples_of
from tests.ops.test_random_ops import STRATEGIES
from tests.oracles import fuzz, sampled

# Opcodes without a loop nest, with a part of the reason.
WITHOUT_NEST = {
    "batch-norm-grad": "no per-element rule",
    "batch-norm-training": "no per-element rule",
    "cholesky": "not a reduction",
    "copy-start": "no per-element rule",
    "dynamic-reshape": "the shape is dynamic",
    "fft": "not a reduction",
    "get-dimension-size": "the shape is dynamic",
    "ragged-dot": "no per-element rule",
    "rng": "random numbers",
    "rng-bit-generator": "random numbers",
    "scaled-dot": "no per-element rule",
    "select-and-scatter": "depend on element values",
    "set-dimension-size": "the shape is dynamic",
    "sort": "depend on element values",
    "topk": "depend on element values",
    "triangular-solve": "not a reduction",
}
VALUES = ["constant", "iota"]
CHECKS = SampleChecks()
ROUTED = ["f32[2,3]{0,1} copy(f32[2,3] p)", "pred[] copy(pred[] p)", "s8[0] copy(s8[0] p)"]


def nests(sample: Sample) -> list[LoopNest | Unknown]:
    """Return the nest of each output."""
    return [indexing.loop_nest(sample.instruction, k) for k in range(len(sample.outputs))]


def check(sample: Sample, inputs: list[Array], tile: int) -> None:
    """Check that loops, program and tiles agree with the kernel, for each output."""
    for nest, expected in zip(nests(sample), kernel_results(sample, inputs), strict=True):
        if isinstance(nest, Unknown):
            continue
        program = nest.vectorized()
        agree(nest.run(*inputs), expected, nest.source)
        agree(program.run(*inputs), expected, program.source)
        tiled = program.run(*inputs, tile=(tile,) * expected.ndim)
        agree(tiled, expected, program.tile_source)


@CHECKS.of([*MAPPED, *VALUES])
def loops_numpy_and_kernels_agree(sample: Sample) -> None:
    random = np.random.default_rng(5)
    for tile in sampled((1, 2, 5), sample.text):
        check(sample, sample.inputs(random), tile)


@pytest.mark.parametrize("name", STRATEGIES)
def test_loops_numpy_and_kernels_agree_on_random_instructions(name: str) -> None:
    @fuzz(40)
    @given(STRATEGIES[name], st.integers(0, 1 << 30), st.integers(1, 3))
    def check_one(text: str, seed: int, tile: int) -> None:
        sample = parse_sample(text)
        if sum(math.prod(s.dims) for s in (*sample.outputs, *sample.arrays)) > 500:
            return
        check(sample, sample.inputs(np.random.default_rng(seed)), tile)

    check_one()


@pytest.mark.sampled
@pytest.mark.parametrize("text", ROUTED)
def test_loops_numpy_and_kernels_agree_on_copies(text: str) -> None:
    loops_numpy_and_kernels_agree(parse_sample(text))


@CHECKS.of(MAPPED)
def an_op_has_a_nest_or_a_reason(sample: Sample) -> None:
    for nest in nests(sample):
        opcode = sample.instruction.opcode
        if isinstance(nest, Unknown):
            assert nest.instruction is sample.instruction
            assert f"{opcode} `out`" in nest.reason
            assert WITHOUT_NEST.get(opcode, "it repacks") in nest.reason
        elif nest.stages:  # an empty result has no stage
            assert opcode not in WITHOUT_NEST


@pytest.mark.sampled
@pytest.mark.parametrize("opcode", CHECKS.opcodes)
def test_nests_of_an_op_agree_with_its_kernel(opcode: str) -> None:
    CHECKS.check(opcode, sampled(samples_of(opcode), opcode))


def test_the_ops_without_a_nest_are_registered() -> None:
    for opcode in WITHOUT_NEST:
        assert issubclass(OPS[opcode], MappedOp) or opcode == "copy-start"


def test_a_nest_with_an_unregistered_opcode_is_unknown() -> None:
    module = hlo.parse("ENTRY e { p = f32[3] parameter(0)  ROOT q = f32[3] frobnicate(p) }")
    nest = indexing.loop_nest(module.entry)
    assert isinstance(nest, Unknown)
    assert nest.reason == "no loop nest for frobnicate `q`: the opcode is not registered"

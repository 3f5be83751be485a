"""Loops, NumPy programs and kernels compute the same: on samples and on random instructions."""

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
from tests.ops.samples import MAPPED, Array, Faces, Sample, parse_sample
from tests.ops.test_random_ops import STRATEGIES
from tests.oracles import fuzz

# Opcodes of which no element is said as a formula, and why not: in the words of the answer.
NOT_SAID = {
    "batch-norm-grad": "no per-element rule",
    "batch-norm-training": "no per-element rule",
    "cholesky": "not a fold",
    "copy-start": "no per-element rule",
    "dynamic-reshape": "the shape is dynamic",
    "fft": "not a fold",
    "get-dimension-size": "the shape is dynamic",
    "ragged-dot": "no per-element rule",
    "rng": "random numbers",
    "rng-bit-generator": "random numbers",
    "scaled-dot": "no per-element rule",
    "select-and-scatter": "depend on their values",
    "set-dimension-size": "the shape is dynamic",
    "sort": "depend on their values",
    "topk": "depend on their values",
    "triangular-solve": "not a fold",
}
VALUES = ["constant", "iota"]
FACES = Faces()
ROUTED = ["f32[2,3]{0,1} copy(f32[2,3] p)", "pred[] copy(pred[] p)", "s8[0] copy(s8[0] p)"]


def nests(sample: Sample) -> list[LoopNest | Unknown]:
    """The nest of each output."""
    return [indexing.loop_nest(sample.instruction, k) for k in range(len(sample.outputs))]


def check(sample: Sample, inputs: list[Array], tile: int) -> None:
    """All ways of computing one instruction agree, for each of its outputs."""
    for nest, wanted in zip(nests(sample), kernel_results(sample, inputs), strict=True):
        if isinstance(nest, Unknown):
            continue
        program = nest.vectorized()
        agree(nest.run(*inputs), wanted, nest.source)
        agree(program.run(*inputs), wanted, program.source)
        tiled = program.run(*inputs, tile=(tile,) * wanted.ndim)
        agree(tiled, wanted, program.tile_source)


@FACES.of([*MAPPED, *VALUES])
def loops_numpy_and_kernels_agree(sample: Sample) -> None:
    random = np.random.default_rng(5)
    for tile in (1, 2, 5):
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


@pytest.mark.parametrize("text", ROUTED)
def test_copies_are_loops_and_numpy(text: str) -> None:
    loops_numpy_and_kernels_agree(parse_sample(text))


@FACES.of(MAPPED)
def an_op_is_a_nest_or_says_why_not(sample: Sample) -> None:
    for nest in nests(sample):
        opcode = sample.instruction.opcode
        if isinstance(nest, Unknown):
            assert nest.instruction is sample.instruction
            assert f"{opcode} `out`" in nest.reason
            assert NOT_SAID.get(opcode, "it repacks") in nest.reason
        elif nest.stages:  # else there is nothing to be said
            assert opcode not in NOT_SAID


@pytest.mark.parametrize("opcode", FACES.opcodes)
def test_nests_of_an_op_compute_what_its_kernel_does(opcode: str) -> None:
    FACES.check(opcode)


def test_what_has_no_nest_is_a_registered_op() -> None:
    assert all(issubclass(OPS[opcode], MappedOp) or opcode == "copy-start" for opcode in NOT_SAID)


def test_a_call_of_an_unknown_opcode_is_unknown() -> None:
    module = hlo.parse("ENTRY e { p = f32[3] parameter(0)  ROOT q = f32[3] frobnicate(p) }")
    found = indexing.loop_nest(module.entry)
    assert isinstance(found, Unknown)
    assert found.reason == "no loop nest for frobnicate `q`: the opcode is not registered"

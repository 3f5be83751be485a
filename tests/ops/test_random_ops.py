"""The maps of random instructions of every op are the dependencies of its kernel.

``FUZZ=20`` draws twenty times as many instructions, different in each run.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo.ops.op import OPS
from indexing.ops.base import MappedOp, NullaryOp
from tests.ops import strategies
from tests.ops.test_convolution import convolutions
from tests.ops.test_ops import check_random
from tests.oracles import fuzz

KNOWN = [
    name
    for name, cls in OPS.items()
    if issubclass(cls, MappedOp) and not issubclass(cls, NullaryOp)
]
STRATEGIES = {
    "batch-norm-grad": strategies.batch_norms("batch-norm-grad"),
    "batch-norm-inference": strategies.batch_norms("batch-norm-inference"),
    "batch-norm-training": strategies.batch_norms("batch-norm-training"),
    "bitcast": strategies.bitcasts(),
    "bitcast-convert": strategies.bitcast_converts(),
    "broadcast": strategies.broadcasts(),
    "cholesky": strategies.choleskys(),
    "clamp": strategies.choices("clamp"),
    "concatenate": strategies.concatenates(),
    "convolution": convolutions(),
    "copy-start": strategies.copy_starts(),
    "dot": strategies.dots(),
    "dynamic-reshape": strategies.dynamic_reshapes(),
    "dynamic-slice": strategies.dynamic("dynamic-slice"),
    "dynamic-update-slice": strategies.dynamic("dynamic-update-slice"),
    "fft": strategies.ffts(),
    "gather": strategies.gathers(),
    "get-dimension-size": strategies.get_dimension_sizes(),
    "pad": strategies.pads(),
    "ragged-dot": strategies.ragged_dots(),
    "reduce": strategies.reduces(),
    "reduce-window": strategies.windows(),
    "reshape": strategies.reshapes(),
    "reverse": strategies.reverses(),
    "rng": strategies.random_numbers("rng"),
    "rng-bit-generator": strategies.random_numbers("rng-bit-generator"),
    "scaled-dot": strategies.scaled_dots(),
    "scatter": strategies.scatters(),
    "select": strategies.choices("select"),
    "select-and-scatter": strategies.selections(),
    "set-dimension-size": strategies.set_dimension_sizes(),
    "slice": strategies.slices(),
    "sort": strategies.sorts(),
    "topk": strategies.topks(),
    "transpose": strategies.transposes(),
    "triangular-solve": strategies.triangular_solves(),
}
ELEMENTWISE = tuple(name for name in KNOWN if name not in STRATEGIES)


def test_every_op_has_a_strategy() -> None:
    assert set(STRATEGIES) <= set(KNOWN)
    assert [name for name in ELEMENTWISE if not strategies.is_elementwise(name)] == []


@pytest.mark.parametrize("name", [*STRATEGIES, "elementwise"])
def test_maps_of_random_instructions_are_the_dependencies_of_the_kernel(name: str) -> None:
    drawn = STRATEGIES.get(name, strategies.elementwise(ELEMENTWISE))

    @fuzz(25)
    @given(drawn, st.integers(0, 1 << 30))
    def check(text: str, seed: int) -> None:
        check_random(text, seed, max_elements=200)

    check()


def test_a_reduction_of_no_elements_is_the_init_value() -> None:
    """A regression: each result of a variadic reduction has its own init value."""
    nothing = "reduce(f32[0,2] p, s32[0,2] q, f32[] y, s32[] z), dimensions={0}, to_apply=add_both"
    check_random(f"(f32[2], s32[2]) {nothing}", seed=0)
    check_random("f32[2] reduce(f32[0,2] p, f32[] y), dimensions={0}, to_apply=add", seed=0)

"""Answers against JAX's interpreter of TPU kernels, which raises errors for some faults.

It raises for a block out of range and for visits apart; elements that no step writes are NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from indexing.pallas import check
from tests.pallas import examples
from tests.pallas.kernels import Kernel, Operand, clip, where

pytest.importorskip("jax")

KERNELS = [
    examples.MATVEC,
    examples.RACE,
    examples.transpose(is_aliased=False),
    Kernel(
        "input_out",
        (5,),
        (Operand((32, 128), (8, 128), lambda i: (i, 0)),),
        (Operand((40, 128), (8, 128), lambda i: (i, 0)),),
    ),
    Kernel(
        "output_out",
        (5,),
        (Operand((40, 128), (8, 128), lambda i: (clip(i, 1, 3), 0)),),
        (Operand((32, 128), (8, 128), lambda i: (i, 0)),),
    ),
    Kernel(
        "hole",
        (5,),
        (Operand((40, 128), (8, 128), lambda i: (i, 0)),),
        (Operand((80, 128), (8, 128), lambda i: (2 * i, 0)),),
    ),
    Kernel(
        "snake",
        (2, 3),
        (Operand((16, 384), (8, 128), lambda i, k: (i, where(i % 2 == 0, k, 2 - k))),),
        (Operand((16, 128), (8, 128), lambda i, k: (i, 0)),),
    ),
]


def write_ones(*refs: Any) -> None:
    import jax.numpy as jnp

    refs[-1][...] = jnp.ones_like(refs[-1][...])


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_the_interpreter_agrees(kernel: Kernel) -> None:
    import jax.numpy as jnp
    from jax._src import dispatch
    from jax.experimental.pallas import tpu as pltpu

    function, avals = kernel.function()
    (call,) = check(function, *avals).calls
    (output,) = call.outputs
    is_out = "out" in {operand.bounds for operand in call.operands}
    is_apart = output.visits == "apart" and not is_out  # which of two faults comes first differs
    parameters = pltpu.InterpretParams(uninitialized_memory="nan", out_of_bounds_reads="raise")
    message, result = "", np.zeros(())
    try:
        (values,) = kernel.call(write_ones, interpret=parameters)(
            *[jnp.zeros(aval.shape, aval.dtype) for aval in avals]
        )
        result = np.asarray(values, np.float32)
    except Exception as error:  # a fault of the kernel
        pltpu.reset_tpu_interpret_mode_state()
        dispatch.runtime_tokens.clear()
        message = str(error)
    assert (bool(message), "Out-of-bounds" in message) == (is_out or is_apart, is_out)
    assert ("Revisited block" in message) == is_apart
    if not message:
        assert bool(np.isnan(result).any()) == (output.covered is False)
        assert output.hole is None or np.isnan(result[output.hole])

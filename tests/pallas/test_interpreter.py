"""Answers against JAX's interpreter of TPU kernels, which raises errors for some faults.

It raises for a block out of range and for visits apart; elements that no step writes are NaN.  Its
race detector sees two cores that write one element, or that read and write it.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

from indexing.pallas import check
from tests.pallas import examples
from tests.pallas.corpus import STATIC
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


# ---------------------------------------------------------------- races

MAX_CORES = 6


def core_count(kernel: Kernel) -> int:
    """Return the points of parallel dimensions; 0 where the race detector says nothing.

    It needs parallel dimensions first.  The interpreter ignores the padding of Element blocks, and
    raises for blocks that are out of range.
    """
    words = kernel.semantics or ()
    first = [word == "parallel" for word in words]
    operands = (*kernel.inputs, *kernel.outputs)
    has_padding = any(
        isinstance(each, tuple) and len(each) > 1 for o in operands for each in o.block
    )
    if kernel.target != "tpu" or has_padding or first != sorted(first, reverse=True):
        return 0
    return prod([n for n, is_parallel in zip(kernel.grid, first, strict=False) if is_parallel])


DETECTED = [kernel for kernel in STATIC if 1 < core_count(kernel) <= MAX_CORES]


@pytest.mark.slow
@pytest.mark.parametrize("kernel", DETECTED, ids=lambda kernel: kernel.name)
def test_the_race_detector_agrees(kernel: Kernel) -> None:
    """Each parallel point has a core of its own, so that all pairs of them may race."""
    from importlib import import_module

    import jax
    import jax.numpy as jnp
    from jax._src import dispatch
    from jax.experimental.pallas import tpu as pltpu

    function, avals = kernel.function()
    (call,) = check(function, *avals).calls
    parameters = pltpu.InterpretParams(
        detect_races=True, num_cores_or_threads=core_count(kernel), out_of_bounds_reads="raise"
    )
    arrays = [jnp.zeros(aval.shape, aval.dtype) for aval in avals]
    message = ""
    try:
        jax.block_until_ready(kernel.call(write_ones, interpret=parameters)(*arrays))
    except Exception as error:  # a fault of the kernel, which ends it
        pltpu.reset_tpu_interpret_mode_state()
        dispatch.runtime_tokens.clear()
        message = str(error)
    if message:
        is_out = "out" in {operand.bounds for operand in call.operands}
        assert is_out or "apart" in {output.visits for output in call.outputs}, message
        return
    interpreter = import_module("jax._src.pallas.mosaic.interpret.interpret_pallas_call")
    races = [answer for output in call.outputs for answer in (output.race, output.hazard)]
    assert interpreter.races.races_found == (True in races)


def test_the_race_detector_sees_both_answers() -> None:
    """Some of its kernels race, and some do not."""
    answers = set()
    for kernel in DETECTED:
        function, avals = kernel.function()
        (call,) = check(function, *avals).calls
        answers.add(any(output.race is True for output in call.outputs))
    assert answers == {False, True}

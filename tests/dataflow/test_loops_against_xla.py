"""Maps of programs with loops against executions by XLA on CPU, if jax is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import hlo
from hlo import Module
from indexing.execution import xla
from tests.dataflow.influence import MAX_ITERATIONS, Pokes
from tests.dataflow.loop_judge import miss
from tests.dataflow.programs import execute_program
from tests.dataflow.random_loops import RandomLoops
from tests.dataflow.test_loops_of_jax import FOLDER, LOWERED, OPTIMIZED
from tests.dataflow.test_random_loops import seeds
from tests.oracles import scale

pytest.importorskip("jaxlib", reason="XLA is an extra: pip install hlo-indexing[xla]")


def poke(module: Module, seed: int) -> Pokes:
    """Return the dependencies that executions by XLA have."""

    def execute(arguments: Sequence[Any]) -> Sequence[Any]:
        return list(xla.run(module, arguments))

    pokes = Pokes(module.entry, np.random.default_rng(seed), execute)
    pokes.poke_some(scale(200))
    return pokes


def is_computed_alike(pokes: Pokes) -> bool:
    """Return True if XLA and the kernels compute the same results, up to rounding.

    XLA drops the clamp of a start when it merges nested slices (openxla/xla#49121), also in loops.
    """
    expected = execute_program(pokes.main, *pokes.arguments, max_iterations=MAX_ITERATIONS)
    assert expected is not None
    assert pokes.results is not None
    pairs = zip(expected, pokes.results, strict=True)
    return all(np.allclose(a, b, rtol=1e-4, atol=1e-4, equal_nan=True) for a, b in pairs)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*LOWERED, *OPTIMIZED])
def test_maps_have_every_dependency_of_an_execution_by_xla(name: str) -> None:
    module = hlo.load(str(FOLDER / name))
    pokes = poke(module, seed=0)
    assert any(mask.any() for mask in pokes.seen.values())
    assert not list(miss(module, pokes))


@pytest.mark.slow
def test_maps_of_random_loops_have_every_dependency_of_an_execution_by_xla() -> None:
    compared = 0
    for seed in seeds(10):
        for bound in ("constant", "n", "data"):
            module = hlo.parse(RandomLoops(seed, bound).text)
            pokes = poke(module, seed)
            if is_computed_alike(pokes):
                compared += 1
                faults = list(miss(module, pokes))
                assert not faults, f"seed {seed}, bound {bound}: {faults[0]}\n{module}"
    assert compared > 2 * scale(10)

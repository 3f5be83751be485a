"""Maps of programs with loops against executions by XLA on CPU, if jax is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import hlo
from hlo import Module
from indexing.execution import xla
from tests.indexing.influence import Pokes
from tests.indexing.loop_judge import missed
from tests.indexing.random_loops import RandomLoops
from tests.indexing.test_loops_of_jax import FOLDER, LOWERED, OPTIMIZED
from tests.indexing.test_random_loops import seeds
from tests.oracles import scaled

pytest.importorskip("jaxlib", reason="XLA is an extra: pip install hlo-indexing[xla]")


def poked(module: Module, seed: int) -> Pokes:
    """Return the dependencies that executions by XLA have."""

    def execute(arguments: Sequence[Any]) -> Sequence[Any]:
        return list(xla.run(module, arguments))

    pokes = Pokes(module.entry, np.random.default_rng(seed), execute)
    pokes.poke_some(scaled(200))
    return pokes


@pytest.mark.slow
@pytest.mark.parametrize("name", [*LOWERED, *OPTIMIZED])
def test_maps_have_every_dependency_of_an_execution_by_xla(name: str) -> None:
    module = hlo.load(str(FOLDER / name))
    pokes = poked(module, seed=0)
    assert any(mask.any() for mask in pokes.seen.values())
    assert not list(missed(module, pokes))


@pytest.mark.slow
def test_maps_of_random_loops_have_every_dependency_of_an_execution_by_xla() -> None:
    for seed in seeds(10):
        for bound in ("constant", "n", "data"):
            module = hlo.parse(RandomLoops(seed, bound).text)
            faults = list(missed(module, poked(module, seed)))
            assert not faults, f"seed {seed}, bound {bound}: {faults[0]}\n{module}"

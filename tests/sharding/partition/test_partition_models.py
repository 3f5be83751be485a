"""Models with random shardings of their parameters compute the same on shards, in f64."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

import hlo
import indexing
from hlo.modules.module import Module
from hlo.shapes.shape import Shape
from hlo.shardings.mesh import Mesh
from indexing.execution import run
from indexing.execution.inputs import random_inputs
from tests.sharding.partition.partitions import random_sharding

SLOW = ("gpt2_tiny.opt.hlo",)


def random_specs(random: Random, module: Module, sizes: dict[str, int]) -> dict[str, object]:
    specs: dict[str, object] = {}
    for number, parameter in enumerate(module.entry.parameters):
        if isinstance(parameter.shape, Shape) and parameter.shape.rank:
            sharding = random_sharding(random, Mesh.of(sizes), parameter.shape.rank)
            specs[f"p{number}"] = tuple(
                tuple(axis.name for axis in axes) or None for axes in sharding.dims
            )
    return specs


def check_model(path: Path, sizes: dict[str, int], seed: int) -> None:
    """Compare all results; sums of f64 in another order differ by rounding only."""
    module = hlo.parse(path.read_text().replace("f32", "f64"), path.name)
    inputs = random_inputs(module.entry, seed)
    plan = indexing.shard(module, sizes, random_specs(Random(seed), module, sizes))
    assert not list(hlo.verify(plan.module))
    for actual, wanted in zip(plan.run(inputs, fill=1), run(module, inputs), strict=True):
        scale = float(np.max(np.abs(wanted), initial=0)) or 1.0
        np.testing.assert_allclose(actual / scale, wanted / scale, rtol=0, atol=1e-10)


@pytest.mark.parametrize("sizes", [{"x": 2, "y": 2}, {"x": 3}], ids=str)
def test_examples_compute_the_same_on_shards(example: Path, sizes: dict[str, int]) -> None:
    if example.name not in SLOW:
        check_model(example, sizes, seed=len(sizes))


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_large_examples_compute_the_same_on_shards(root: Path, name: str) -> None:
    check_model(root / "examples" / name, {"x": 2, "y": 2}, seed=0)

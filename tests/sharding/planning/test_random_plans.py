"""Plans of real modules for random shardings: equal results, and no more bytes than XLA sends."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hlo
import indexing
from hlo.shapes.shape import dtype, leaves
from indexing.execution import xla
from indexing.execution.program import run
from tests.sharding.partition.xla_partitioner import bytes_of, partition

EXAMPLES = Path(__file__).parents[3] / "examples"
NAMES = [
    *("attention.pre", "dynamic_slice_update.opt", "embedding_gather.opt", "layernorm.opt"),
    *("reduce_window.pre", "rnn.pre", "vit_patch_embed.opt"),
]
MESHES = [{"x": 2}, {"x": 4}, {"x": 3}, {"x": 2, "y": 2}, {"x": 4, "y": 2}, {"x": 2, "y": 3}]
LARGE = [{"x": 16}, {"x": 5, "y": 7}]
"""Meshes with more devices than some dimensions have elements."""
OF_EIGHT = [{"x": 8}, {"x": 4, "y": 2}, {"x": 2, "y": 4}]


def load(name: str) -> hlo.Module:
    return hlo.load(EXAMPLES / f"{name}.hlo")


def random_specs(
    rng: random.Random, module: hlo.Module, mesh: dict[str, int], divides: bool
) -> dict[str, Any]:
    """Return specs of some parameters; with `divides`, only of sizes that the axes divide."""
    specs: dict[str, Any] = {}
    for parameter in module.entry.parameters:
        shape = parameter.shape
        assert isinstance(shape, hlo.Shape)
        dims: list[tuple[str, ...]] = [()] * shape.rank
        for axis in rng.sample(sorted(mesh), len(mesh)):
            if shape.rank and rng.random() < 0.6:
                dim = rng.randrange(shape.rank)
                shards = int(np.prod([mesh[name] for name in (*dims[dim], axis)]))
                if shape.dims[dim] > 1 and not (divides and shape.dims[dim] % shards):
                    dims[dim] = (*dims[dim], axis)
        if rng.random() < 0.7:
            specs[parameter.name] = tuple(names or None for names in dims)
    return specs


def random_inputs(module: hlo.Module, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    arrays = []
    for shape in [s for p in module.entry.parameters for _, s in leaves(p.shape)]:
        assert isinstance(shape, hlo.Shape)
        kind = dtype(shape.element_type)
        is_integer = kind.kind in "iub"
        values = rng.integers(0, 2, shape.dims) if is_integer else rng.random(shape.dims) - 0.5
        arrays.append(values.astype(kind))
    return arrays


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", NAMES)
def test_a_plan_computes_what_the_program_computes(name: str, seed: int) -> None:
    module, rng = load(name), random.Random(f"{name} {seed}")
    mesh = rng.choice(LARGE if seed == 4 else MESHES)
    specs = random_specs(rng, module, mesh, divides=False)
    plan = indexing.shard(module, mesh, specs)
    inputs = random_inputs(module, seed)
    # padding of the parameters has large values: they must not reach a result
    for ours, whole in zip(plan.run(inputs, fill=77), run(module, inputs), strict=True):
        ours, whole = (np.asarray(a, np.float64) for a in (ours, whole))
        np.testing.assert_allclose(ours, whole, rtol=2e-3, atol=2e-4, err_msg=f"{mesh} {specs}")


@pytest.mark.slow
@pytest.mark.skipif(not xla.is_available(), reason="needs jaxlib (extra xla)")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", NAMES)
def test_a_plan_sends_no_more_bytes_than_xla(name: str, seed: int) -> None:
    module, rng = load(name), random.Random(f"{name} {seed}")
    mesh = rng.choice(OF_EIGHT)
    specs = random_specs(rng, module, mesh, divides=True)
    plan = indexing.shard(module, mesh, specs)
    names = [parameter.name for parameter in module.entry.parameters]
    shardings = dict(zip(names, plan.parameters, strict=True))
    theirs = bytes_of(partition(module, plan.mesh, shardings), plan.mesh)
    assert plan.bytes_sent <= theirs, f"{mesh} {specs}"

"""Local programs run on eight devices of XLA on CPU, and compute what XLA computes unsharded."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from random import Random

import numpy as np
import pytest

from hlo.modules.module import Module
from hlo.shardings.mesh import Mesh
from indexing.execution import xla
from indexing.sharding.partition.program import partition
from indexing.sharding.planning.array_shards import assembled_array
from tests.sharding.partition.partitions import (
    garbage,
    random_assignment,
    shapes_of,
    small_inputs,
    split,
)
from tests.sharding.partition.test_partition_ops import RUNNING

pytestmark = pytest.mark.skipif(not xla.is_available(), reason="needs jax: the extra [xla]")

EVERY = 16
# XLA's expander of select-and-scatter aborts; random numbers depend on the state of a generator
NOT_COMPARED = ("() tuple()", "select-and-scatter(", " rng(", "rng-get-and-update-state(")


def programs() -> Iterator[tuple[str, Module]]:
    for sample, module in RUNNING:
        if not any(opcode in sample for opcode in NOT_COMPARED):
            yield sample, module


PROGRAMS = list(programs())


def agrees(module: Module, mesh: Mesh, seed: int) -> bool:
    """Compare a program on shards with the unsharded one; False if XLA rejects the program."""
    inputs = small_inputs(module)
    try:
        expected = xla.run(module, inputs)
    except (RuntimeError, ValueError, TypeError):  # jaxlib rejects the text or the program
        return False
    local = partition(random_assignment(Random(seed), mesh, module), module)
    import_module("jaxlib._hlo").hlo_module_from_text(str(local.module))  # XLA's parser takes it
    shards = [
        split(array, sharding, garbage(array))
        for array, sharding in zip(inputs, local.parameters, strict=True)
    ]
    devices = range(mesh.size)
    results = xla.run(local.module, [[each[d] for each in shards] for d in devices])
    for number, (sharding, shape) in enumerate(
        zip(local.results, shapes_of(module.entry.root), strict=True)
    ):
        actual = assembled_array([results[d][number] for d in devices], sharding, shape.dims)
        np.testing.assert_allclose(
            actual.astype(np.complex128), expected[number].astype(np.complex128),
            rtol=1e-4, atol=1e-4, err_msg=str(local.module),
        )  # fmt: skip
    return True


SOME = PROGRAMS[::EVERY]


@pytest.mark.parametrize(("sample", "module"), SOME, ids=[sample[:50] for sample, _ in SOME])
def test_some_samples_agree_with_xla(sample: str, module: Module) -> None:
    if not agrees(module, Mesh.of({"x": 2, "y": 3}), 3):
        pytest.skip(f"XLA does not run {sample}")


@pytest.mark.slow
@pytest.mark.parametrize("axes", [{"x": 2, "y": 3}, {"x": 2, "y": 2, "z": 2}], ids=str)
def test_all_samples_agree_with_xla(axes: dict[str, int]) -> None:
    compared = sum(agrees(module, Mesh.of(axes), 4) for _, module in PROGRAMS)
    assert compared > len(PROGRAMS) * 4 // 5

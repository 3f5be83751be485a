"""Modules partitioned by XLA for eight CPU devices, as an oracle for plans.

`tests/conftest.py` sets the number of devices before JAX starts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module

import numpy as np

import hlo
from hlo.shardings.mesh import Mesh
from hlo.shardings.printing import hlo_text
from hlo.shardings.sharding import Sharding
from indexing.execution.xla import plain_text
from indexing.sharding.partition.collective_costs import collective_costs

DEVICES = 8


def annotate(
    module: hlo.Module, shardings: Mapping[str, Sharding], results: Sequence[Sharding] = ()
) -> str:
    """Return the text of a module for eight partitions with shardings of its parameters.

    The sharding of the result is free unless `results` has one for each of its arrays.
    """
    body = plain_text(module)
    head, _, entry = body.partition("ENTRY ")
    for parameter in module.entry.parameters:
        sharding = shardings.get(parameter.name)
        text = "{replicated}" if sharding is None else hlo_text(sharding, version=2)
        pattern = rf"(%{re.escape(parameter.name)} = [^\n]*parameter\(\d+\)[^\n]*)"
        entry = re.sub(pattern, lambda m: f"{m[1]}, sharding={text}", entry)  # noqa: B023
    if results:
        texts = [hlo_text(sharding, version=2) for sharding in results]
        text = texts[0] if len(texts) == 1 else f"{{{', '.join(texts)}}}"
        entry = re.sub(r"(ROOT [^\n]*)", lambda m: f"{m[1]}, sharding={text}", entry)
    head = head.replace("\n", f", num_partitions={DEVICES}\n", 1)
    return f"{head}ENTRY {entry}"


@cache
def _compile(text: str) -> str:
    jax, client = import_module("jax"), import_module("jaxlib.xla_client")
    import_module("jax._src.lax.linalg")  # registers the custom calls of LAPACK
    proto = import_module("jaxlib._hlo").hlo_module_from_text(text)
    convert = import_module("jaxlib._jax").mlir.hlo_to_stablehlo
    options = client.CompileOptions()
    options.num_replicas, options.num_partitions = 1, DEVICES
    build = options.executable_build_options
    build.num_replicas, build.num_partitions, build.use_spmd_partitioning = 1, DEVICES, True
    build.allow_spmd_sharding_propagation_to_output = [True]
    numbers = np.arange(DEVICES).reshape(1, DEVICES)
    options.device_assignment = client.DeviceAssignment.create(numbers)
    devices = jax.devices("cpu")
    executable = devices[0].client.compile_and_load(
        convert(proto.as_serialized_hlo_module_proto()),
        client.DeviceList(tuple(devices[:DEVICES])),
        options,
    )
    return str(executable.hlo_modules()[0].to_string())


def partition(
    module: hlo.Module,
    mesh: Mesh,
    shardings: Mapping[str, Sharding],
    results: Sequence[Sharding] = (),
) -> hlo.Module:
    """Return the optimised module of XLA's partitioner; the mesh has eight devices."""
    assert mesh.size == DEVICES
    assert mesh.devices == tuple(range(DEVICES))
    return hlo.parse(_compile(annotate(module, shardings, results)))


def bytes_of(module: hlo.Module, mesh: Mesh) -> int:
    """Return the bytes that all collectives of a module send; none may be unknown."""
    total = 0
    for cost in collective_costs(module, mesh):
        assert isinstance(cost.total_bytes, int)
        total += cost.total_bytes
    return total

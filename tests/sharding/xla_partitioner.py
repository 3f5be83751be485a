"""Modules partitioned by XLA for eight CPU devices, as an oracle for plans.

The compilation runs in a process of its own: the number of devices is set before JAX starts.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache

import hlo
from hlo.shardings.mesh import Mesh
from hlo.shardings.printing import hlo_text
from hlo.shardings.sharding import Sharding
from indexing.execution.xla import plain_text

DEVICES = 8

_COMPILE = """
import json, sys
from importlib import import_module
import numpy as np
jax = import_module("jax")
import_module("jax._src.lax.linalg")
client = import_module("jaxlib.xla_client")
given = json.load(sys.stdin)
count = given["devices"]
proto = import_module("jaxlib._hlo").hlo_module_from_text(given["text"])
convert = import_module("jaxlib._jax").mlir.hlo_to_stablehlo
stable = convert(proto.as_serialized_hlo_module_proto())
options = client.CompileOptions()
options.num_replicas, options.num_partitions = 1, count
build = options.executable_build_options
build.num_replicas, build.num_partitions, build.use_spmd_partitioning = 1, count, True
build.allow_spmd_sharding_propagation_to_output = [True]
options.device_assignment = client.DeviceAssignment.create(np.arange(count).reshape(1, count))
devices = jax.devices("cpu")
executable = devices[0].client.compile_and_load(
    stable, client.DeviceList(tuple(devices[:count])), options)
print(executable.hlo_modules()[0].to_string())
"""


def annotated(
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
def _compiled(text: str) -> str:
    flags = f"--xla_force_host_platform_device_count={DEVICES}"
    result = subprocess.run(
        [sys.executable, "-c", _COMPILE],
        input=json.dumps({"text": text, "devices": DEVICES}),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1"},
    )
    if result.returncode:
        raise RuntimeError(result.stderr[-2000:])
    return result.stdout


def partitioned(
    module: hlo.Module,
    mesh: Mesh,
    shardings: Mapping[str, Sharding],
    results: Sequence[Sharding] = (),
) -> hlo.Module:
    """Return the optimised module of XLA's partitioner; the mesh has eight devices."""
    assert mesh.size == DEVICES
    assert mesh.devices == tuple(range(DEVICES))
    return hlo.parse(_compiled(annotated(module, shardings, results)))

"""Compilation of printed Pallas kernels for a TPU v5e, without the device: a process of its own.

Reads pickled kernels from the file of the first argument: texts, names of functions, and shapes of
arguments.  Writes True, or the text of an error, for each to the second.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental import topologies


def compile_kernel(
    topology: Any, text: str, name: str, shapes: list[tuple[tuple[int, ...], Any]]
) -> Any:
    """Compile a kernel; return True if XLA calls Mosaic's kernel."""
    scope: dict[str, Any] = {}
    exec(compile(text, "<printed>", "exec"), scope)
    device = topology.devices[0]
    sharding = jax.sharding.SingleDeviceSharding(device)
    arguments = [jax.ShapeDtypeStruct(dims, kind, sharding=sharding) for dims, kind in shapes]
    mesh = jax.sharding.Mesh(np.array([device]), ("x",))
    with jax.sharding.use_abstract_mesh(mesh.abstract_mesh):
        traced = jax.jit(scope[name]).trace(*arguments)
        result = traced.lower(lowering_platforms=("tpu",)).compile()
    return "tpu_custom_call" in str(result.as_text())


def main(given: str, results: str) -> None:
    """Compile all kernels."""
    topology = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2")
    listed: list[Any] = []
    for kernel in pickle.loads(Path(given).read_bytes()):
        try:
            listed.append(compile_kernel(topology, *kernel))
        except Exception as error:
            listed.append(f"{type(error).__name__}: {error}")
    Path(results).write_bytes(pickle.dumps(listed))


if __name__ == "__main__":
    main(*sys.argv[1:])

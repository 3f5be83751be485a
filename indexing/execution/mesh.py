"""The devices of manual regions (JAX's ``shard_map``): the mesh of the header, or all partitions.

Source: Shardy ``docs/sharding_representation.md``; XLA
``xla/service/spmd/custom_call_handler.cc`` for the borders of regions after Shardy.
"""

from __future__ import annotations

from hlo.modules.module import Module
from hlo.modules.shardings import declared_meshes
from hlo.shardings.mesh import Mesh
from indexing.ops.custom_call import FULL_TO_SHARD, TO_LOCAL, target_of


def mesh_of(module: Module) -> Mesh | None:
    """Return the first mesh with axes that the module header declares, or None.

    Without a mesh, the partitions of a module that has manual regions after Shardy are one axis.
    """
    declared = next((mesh for mesh in declared_meshes(module).values() if mesh.axes), None)
    if declared is None and FULL_TO_SHARD in _targets(module):
        return Mesh.of({"partition": int(module.header("num_partitions", 1))})
    return declared


def has_regions(module: Module) -> bool:
    """Return True if the module has manual regions."""
    return not {TO_LOCAL, FULL_TO_SHARD}.isdisjoint(_targets(module))


def _targets(module: Module) -> set[str]:
    """Return the targets of custom calls."""
    return {target_of(each) for each in module.instructions if each.opcode == "custom-call"}

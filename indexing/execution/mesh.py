"""The device mesh that a module header declares, for manual regions (JAX's ``shard_map``).

Source: Shardy ``docs/sharding_representation.md``.
"""

from __future__ import annotations

from typing import Final

from hlo.modules.module import Module
from hlo.shardings.mesh import Mesh

TO_LOCAL: Final = "xla.sdy.GlobalToLocalShape"
TO_GLOBAL: Final = "xla.sdy.LocalToGlobalShape"


def mesh_of(module: Module) -> Mesh | None:
    """Return the first mesh with axes that the module header declares, or None."""
    return next((mesh for mesh in module.meshes.values() if mesh.axes), None)


def has_regions(module: Module) -> bool:
    """Return True if the module has manual regions."""
    targets = [
        instruction.attributes.get("custom_call_target")
        for instruction in module.instructions
        if instruction.opcode == "custom-call"
    ]
    return any(target is not None and target.text.strip('"') == TO_LOCAL for target in targets)

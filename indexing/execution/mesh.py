"""The device mesh that a module header declares, for manual regions (JAX's ``shard_map``).

Source: Shardy ``docs/sharding_representation.md``.
"""

from __future__ import annotations

import re
from typing import Final

from hlo.modules.module import Module
from hlo.shardings.mesh import Mesh

TO_LOCAL: Final = "xla.sdy.GlobalToLocalShape"
TO_GLOBAL: Final = "xla.sdy.LocalToGlobalShape"
AXIS: Final = re.compile(r'"(\w+)"(?:=(\d+))?')
_MESH = re.compile(r'#sdy\.mesh<\[((?:"\w+"=\d+(?:, )?)*)\](?:, device_ids=\[([\d, ]*)\])?>')


def mesh_of(module: Module) -> Mesh | None:
    """Return the first mesh with axes that the module header declares, or None."""
    text = module.attributes.get("frontend_attributes")
    for axes, ids in _MESH.findall(text.text.replace('\\"', '"') if text else ""):
        sizes = {name: int(size) for name, size in AXIS.findall(axes)}
        if sizes:
            return Mesh.of(sizes, [int(k) for k in ids.split(",")] if ids else None)
    return None


def has_regions(module: Module) -> bool:
    """Return True if the module has manual regions."""
    targets = [
        instruction.attributes.get("custom_call_target")
        for instruction in module.instructions
        if instruction.opcode == "custom-call"
    ]
    return any(target is not None and target.text.strip('"') == TO_LOCAL for target in targets)

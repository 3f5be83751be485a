"""Which elements of B does an element of A need: symbolic indexing maps of HLO.

>>> import hlo, indexing
>>> module = hlo.parse("ENTRY e { p = f32[4,8] parameter(0)  ROOT r = f32[32] reshape(p) }")
>>> print(indexing.output_to_input(module.entry.root).maps[0][0])
(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 31]

Names are loaded when they are first used, so that ``import indexing`` and the command stay quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from indexing.access import Answer, Unknown
    from indexing.analysis import (
        all_to_parameters,
        grouped,
        input_to_output,
        output_to_input,
        to_parameters,
    )
    from indexing.claims import (
        Claim,
        depends_on,
        is_bijection,
        is_injective,
        is_single_valued,
        is_surjective_onto,
    )
    from indexing.collapsing import Collapse, collapse
    from indexing.devices.analysis import device_maps, device_maps_to_parameters, device_uses
    from indexing.devices.devices import Devices
    from indexing.epilogues import epilogue, grouped_through
    from indexing.gathering import Gather, GatherError, gather, gather_of
    from indexing.grid import coverage, thread_map, tile_map
    from indexing.loopnest.build import loop_nest
    from indexing.map import Difference, IndexingMap, RuntimeVariable, dims, ranges
    from indexing.multiplicity import Multiplicity, reads
    from indexing.relation import UndecidedError, image, inverse, preimage
    from indexing.simplify import CertificateError
    from indexing.text import parse_map
    from indexing.witnesses import Witness
    from simplifier.constraints import Constraint

_HOMES = {
    "Answer": "indexing.access",
    "CertificateError": "indexing.simplify",
    "Claim": "indexing.claims",
    "Collapse": "indexing.collapsing",
    "Constraint": "simplifier.constraints",
    "Devices": "indexing.devices.devices",
    "Difference": "indexing.map",
    "Gather": "indexing.gathering",
    "GatherError": "indexing.gathering",
    "IndexingMap": "indexing.map",
    "Multiplicity": "indexing.multiplicity",
    "RuntimeVariable": "indexing.map",
    "UndecidedError": "indexing.relation",
    "Unknown": "indexing.access",
    "Witness": "indexing.witnesses",
    "all_to_parameters": "indexing.analysis",
    "collapse": "indexing.collapsing",
    "coverage": "indexing.grid",
    "depends_on": "indexing.claims",
    "device_maps": "indexing.devices.analysis",
    "device_maps_to_parameters": "indexing.devices.analysis",
    "device_uses": "indexing.devices.analysis",
    "dims": "indexing.map",
    "epilogue": "indexing.epilogues",
    "gather": "indexing.gathering",
    "gather_of": "indexing.gathering",
    "grouped": "indexing.analysis",
    "grouped_through": "indexing.epilogues",
    "image": "indexing.relation",
    "input_to_output": "indexing.analysis",
    "inverse": "indexing.relation",
    "is_bijection": "indexing.claims",
    "is_injective": "indexing.claims",
    "is_single_valued": "indexing.claims",
    "is_surjective_onto": "indexing.claims",
    "loop_nest": "indexing.loopnest.build",
    "output_to_input": "indexing.analysis",
    "parse_map": "indexing.text",
    "preimage": "indexing.relation",
    "ranges": "indexing.map",
    "reads": "indexing.multiplicity",
    "thread_map": "indexing.grid",
    "tile_map": "indexing.grid",
    "to_parameters": "indexing.analysis",
}

_NEED_OPS = {
    "indexing.analysis",
    "indexing.collapsing",
    "indexing.epilogues",
    "indexing.gathering",
    "indexing.multiplicity",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'indexing' has no attribute {name!r}")
    if home in _NEED_OPS:
        import_module("indexing.ops")  # registers the ops
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])


__all__ = [
    "Answer",
    "CertificateError",
    "Claim",
    "Collapse",
    "Constraint",
    "Devices",
    "Difference",
    "Gather",
    "GatherError",
    "IndexingMap",
    "Multiplicity",
    "RuntimeVariable",
    "UndecidedError",
    "Unknown",
    "Witness",
    "all_to_parameters",
    "collapse",
    "coverage",
    "depends_on",
    "device_maps",
    "device_maps_to_parameters",
    "device_uses",
    "dims",
    "epilogue",
    "gather",
    "gather_of",
    "grouped",
    "grouped_through",
    "image",
    "input_to_output",
    "inverse",
    "is_bijection",
    "is_injective",
    "is_single_valued",
    "is_surjective_onto",
    "loop_nest",
    "output_to_input",
    "parse_map",
    "preimage",
    "ranges",
    "reads",
    "thread_map",
    "tile_map",
    "to_parameters",
]

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
    from indexing.analysis import grouped, input_to_output, output_to_input, to_parameters
    from indexing.map import Difference, IndexingMap, RuntimeVariable, dims, ranges
    from indexing.simplify import CertificateError
    from indexing.text import parse_map
    from simplifier.constraints import Constraint

_HOMES = {
    "Answer": "indexing.access",
    "CertificateError": "indexing.simplify",
    "Constraint": "simplifier.constraints",
    "Difference": "indexing.map",
    "IndexingMap": "indexing.map",
    "RuntimeVariable": "indexing.map",
    "Unknown": "indexing.access",
    "dims": "indexing.map",
    "grouped": "indexing.analysis",
    "input_to_output": "indexing.analysis",
    "output_to_input": "indexing.analysis",
    "parse_map": "indexing.text",
    "ranges": "indexing.map",
    "to_parameters": "indexing.analysis",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'indexing' has no attribute {name!r}")
    if home == "indexing.analysis":
        import_module("indexing.ops")  # registers the ops
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])


__all__ = [
    "Answer",
    "CertificateError",
    "Constraint",
    "Difference",
    "IndexingMap",
    "RuntimeVariable",
    "Unknown",
    "dims",
    "grouped",
    "input_to_output",
    "output_to_input",
    "parse_map",
    "ranges",
    "to_parameters",
]

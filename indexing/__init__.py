"""Symbolic indexing maps of HLO: the elements of one tensor that an element of another needs.

>>> import hlo, indexing
>>> module = hlo.parse("ENTRY e { p = f32[4,8] parameter(0)  ROOT r = f32[32] reshape(p) }")
>>> print(indexing.output_to_input(module.entry.root).maps[0][0])
(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 31]

``__all__`` lists the main names.  Every other public name belongs to a room (`indexing.maps`,
`indexing.devices`, `indexing.dataflow`, `indexing.tiling`, `indexing.memory`, `indexing.sharding`,
`indexing.codegen`, `indexing.equivalence`, `indexing.frontends`, `indexing.kernels`,
`indexing.drawing`, `indexing.views`) and is also available as ``indexing.NAME``; ``dir(indexing)``
lists them.  `indexing.pallas` has names of its own.  All names are loaded on first use.
"""

from __future__ import annotations

from hlo.public_names import PublicNames
from hlo.repairs import declare_repairs

TYPE_CHECKING = False  # `typing` takes longer to import than this module
if TYPE_CHECKING:
    from typing import Any

_PUBLIC = PublicNames(__name__, __file__)

_ROOMS = (
    *("maps", "devices", "dataflow", "tiling", "memory", "sharding"),
    *("codegen", "equivalence", "frontends", "kernels", "drawing", "views"),
)
_MODULES = ("kernels", "pallas")  # a room that is called, and one with names of its own


def __getattr__(name: str) -> Any:
    """Return a name of `indexing` itself or of one of its rooms."""
    from importlib import import_module

    if name == "__all__" or name in _PUBLIC.names():
        return _PUBLIC.lookup(name)
    if name in _MODULES:
        return import_module(f"indexing.{name}")
    for room in () if name.startswith("_") else _ROOMS:
        module = import_module(f"indexing.{room}")
        if name in module.__all__:
            value = globals()[name] = getattr(module, name)
            return value
    raise AttributeError(f"module 'indexing' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return every public name, for completion."""
    from importlib import import_module

    rooms = [import_module(f"indexing.{room}").__all__ for room in _ROOMS]
    return sorted({*_PUBLIC.names(), *_ROOMS, *_MODULES, *[name for own in rooms for name in own]})


_OF_ANSWER = {"Answer": "answer.maps[0][0]", "tuple": "maps[0]", "list": "maps[0]"}
declare_repairs("IndexingMap", {**_OF_ANSWER, "str": "indexing.parse_map(text)"})
declare_repairs("Instruction", {"Answer": "answer.instruction"})
declare_repairs("Constraint", {"tuple": "Constraint(expr, lower, upper)"})
declare_repairs("Expr", {"Variable": "variable.as_expr()", "int": "as_expr(value)"})
declare_repairs("Iterable", {"Expr": "[expr]", "Variable": "[variable]"})

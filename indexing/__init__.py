"""Symbolic indexing maps of HLO: the elements of one tensor that an element of another needs.

>>> import hlo, indexing
>>> module = hlo.parse("ENTRY e { p = f32[4,8] parameter(0)  ROOT r = f32[32] reshape(p) }")
>>> print(indexing.output_to_input(module.entry.root).maps[0][0])
(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 31]

`output_to_input` and `input_to_output` answer for one instruction, `to_parameters` for all that it
depends on.  The maps of an answer are in ``answer.maps``, and ``answer.at(1, 4, 3)`` has the
elements that one element needs.  Other public names belong to a room and are also available as
``indexing.NAME``:

* `indexing.maps`: regions, properties with witnesses, counts, conversions;
* `indexing.dataflow`: queries about programs, loops and devices;
* `indexing.tiling`: tilings and their search;
* `indexing.memory`: bytes, coalescing, banks, layouts, caches, buffers;
* `indexing.devices`: threads, blocks and devices as maps;
* `indexing.sharding`: arrays split over devices;
* `indexing.equivalence`: two programs compared, passes validated;
* `indexing.codegen`: loop nests;
* `indexing.frontends`: functions of JAX;
* `indexing.kernels`: kernels of XLA's emitters;
* `indexing.drawing` and `indexing.views`: pictures, summaries, reports.

``dir(indexing)`` lists all names, which are loaded on first use.  `indexing.pallas`, for Pallas
calls, and `indexing.execution`, which executes modules, have names of their own.
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
_MODULES = ("execution", "kernels", "pallas")  # with names of their own; kernels is called, too


def __getattr__(name: str) -> Any:
    """Return a room, or a name of `indexing` itself or of one of its rooms."""
    from importlib import import_module

    if name == "__all__" or name in _PUBLIC.names():
        return _PUBLIC.lookup(name)
    if name in _MODULES or name in _ROOMS:
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

"""Parsing, checking, building and printing of HLO modules.

>>> import hlo
>>> module = hlo.parse("ENTRY e { p = f32[2,3] parameter(0) ROOT n = f32[2,3] negate(p) }")
>>> module.entry.root.shape.dims
(2, 3)
>>> hlo.parse(str(module)) == module
True

`load` reads a file: text, a protobuf or StableHLO; `parse` reads text; `verify` checks a module.
``module.entry.root`` and ``module.entry["name"]`` are instructions; ``module.find("pattern*")``
finds them in all computations.  Names are loaded on first use; `__init__.pyi` gives their modules.
"""

from hlo.public_names import PublicNames
from hlo.repairs import declare_repairs

_PUBLIC = PublicNames(__name__, __file__)
__getattr__, __dir__ = _PUBLIC.lookup, _PUBLIC.names

declare_repairs(
    "Instruction",
    {
        "Module": "module.entry.root, or module.entry['name']",
        "Computation": "computation.root, or computation['name']",
        "str": "module.entry['name'], or module.find('name')[0]",
    },
)
declare_repairs("Computation", {"Module": "module.entry", "Instruction": "instruction.computation"})
declare_repairs("Module", {"str": "hlo.parse(text)", "PurePath": "hlo.load(path)"})
declare_repairs("Shape", {"str": "hlo.parse_shape(text)"})
declare_repairs("str", {"bytes": "text.decode()"})

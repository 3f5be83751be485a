"""Parsing, checking, building and printing of HLO modules.

>>> import hlo
>>> module = hlo.parse("ENTRY e { p = f32[2,3] parameter(0) ROOT n = f32[2,3] negate(p) }")
>>> module.entry.root.shape.dims
(2, 3)
>>> hlo.parse(str(module)) == module
True

Names are loaded on first use; `__init__.pyi` gives their modules.
"""

import lazy_loader

from hlo.moved import declare

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

declare(
    {
        "hlo.attributes": "hlo.ops.attributes",
        "hlo.op": "hlo.ops.op",
        "hlo.modules.read_op": "hlo.modules.bind",
        "hlo.ops.signatures": "hlo.ops.op_records",
    }
)

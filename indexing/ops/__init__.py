"""The ops of HLO with what this package adds: maps in both directions, an element, a kernel.

One class an op, one module a family; importing the room registers them all in `hlo.ops.op.OPS`.
Promises: an op is a value that knows shapes, not instructions; `MappedOp.reads` and `writes` answer
for every op alike and remember; `element_of` says what an element is, for all who compute one.
Imports `maps`, `devices` and `hlo`; no analysis, no program and no execution.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

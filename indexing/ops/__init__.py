"""The ops of HLO with indexing maps in both directions, an element rule and a reference kernel.

In come shapes; out come maps, element rules and values.  Read `base` first.

One class for each op, one module for each family of ops. Importing the room registers all of them
in `hlo.ops.op.OPS`. An op is a value that depends on shapes, not on instructions. `MappedOp.reads`
and `MappedOp.writes` have the same form for every op and are memoised. `element_of` returns the
element rule from which element values are computed.
Imports `maps`, `devices` and `hlo`; no analysis, no program and no execution.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

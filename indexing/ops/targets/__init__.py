"""Targets of custom calls with known meaning, one class each.

In come shapes and configurations; out come maps and values, as for ops of HLO.  Read
`annotations` for calls that forward a value, `known_values` for calls that are executed, and
`known_reads` for calls whose reads are known and whose values are not.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

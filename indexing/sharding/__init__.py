"""Sharding: which splits of arrays over devices an instruction admits, and programs on shards.

In come an instruction or program and a mesh; out come rules, signatures and plans.
Read `rules` first.  `splits`, `partial_values` and `signatures` build on each other; `partition`
writes the program of one device, and `planning` chooses it.

Imports `maps`, `devices`, `ops` and `dataflow`.  Nothing is stated by op: maps and element rules
decide, and every refusal names an element that breaks the split.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

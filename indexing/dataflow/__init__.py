"""Indexing maps through programs: the walk over arrays, constant folding, and the queries.

In come an instruction and a direction; out come the maps of an `Answer`.  Read `queries` first.

Imports `maps`, `devices` and `ops`.  Invariants: every answer is exact or an over-approximation,
every path respects the budgets, and all queries agree.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

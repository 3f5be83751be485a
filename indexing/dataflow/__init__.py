"""Maps through programs: arrays, one walk over them, runtime variables folded, queries.

Imports `maps`, `devices` and `ops`.  Promises that every query over-approximates or is exact, that
budgets hold on every path, and that all queries agree.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

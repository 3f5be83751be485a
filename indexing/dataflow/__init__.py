"""Indexing maps through programs: the walk over arrays, constant folding, and the queries.

Imports `maps`, `devices` and `ops`.  Invariants: every answer is exact or an over-approximation,
every path respects the budgets, and all queries agree.
"""

from typing import Final

import lazy_loader

from hlo.moved import with_old_names

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

OLD_NAMES: Final = {"device_uses": "device_input_to_output"}
__getattr__ = with_old_names(__name__, OLD_NAMES, __getattr__)

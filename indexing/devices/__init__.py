"""Replica groups, and the data movement of collectives between devices as indexing maps.

Imports `maps`.  Promises maps whose first dimension is the device; `indexing.dataflow.
device_queries` composes them through programs.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

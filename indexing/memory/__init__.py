"""Memory: read counts, buffers, the sectors and lines that warps touch, caches, layouts of CuTe.

In come instructions and modules; out come bytes, buffers, sectors, misses and layouts.
Read `movement.analysis` first.

Imports `maps`, `devices`, `ops`, `dataflow` and `tiling`.  Counts are exact or `Unknown`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

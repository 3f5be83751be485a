"""Tiling: GPU grids, collapsed dimensions, and gathers along one axis.

Imports `maps`, `ops` and `dataflow`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

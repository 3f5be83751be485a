"""Tiling: GPU grids, collapsed dimensions, and gathers along one axis.

In come an instruction and sizes of tiles; out come the elements that each tile needs.
Read `sets.tiling` first.

Imports `maps`, `ops` and `dataflow`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

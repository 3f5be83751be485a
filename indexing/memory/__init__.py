"""Memory: read counts, the sectors and lines that warps touch, caches, and layouts of CuTe.

Imports `maps`, `devices`, `ops`, `dataflow` and `tiling`.  Counts are exact or `Unknown`.
"""

from typing import Final

import lazy_loader

from hlo.moved import with_old_names

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

OLD_NAMES: Final = {"reads": "read_counts"}
__getattr__ = with_old_names(__name__, OLD_NAMES, __getattr__)

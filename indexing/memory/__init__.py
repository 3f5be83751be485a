"""Memory: how often elements are read.

Imports `maps`, `ops` and `dataflow`.  Counts are exact, or `Unknown`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

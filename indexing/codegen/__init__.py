"""Maps as loop nests and NumPy programs; validation of maps by running them.

`lowering` makes the element graph from maps and elements of ops, `staging` decides which arrays
get buffers, `loops` and `numpy` print it.  Imports `maps`, `ops`, `dataflow` and `execution`.
Promises that generated programs compute what the kernels compute.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

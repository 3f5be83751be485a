"""Loop nests and NumPy programs generated from maps, and validation of maps by executing them.

In comes an instruction; out come a loop nest and what executions of it show.  Read `build` first.

`lowering` builds the element graph from maps and the ops' per-element rules, `staging` decides
which arrays get buffers, `loops` and `numpy` print the result.
Imports `maps`, `ops`, `dataflow` and `execution`.
Invariants: generated programs compute the results of the kernels.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

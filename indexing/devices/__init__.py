"""Several devices: which elements of which devices an element of a device needs.

`indexing.dataflow.device_queries` answers the questions; `Devices` says how many there are.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Replica groups, and the data movement of collectives between devices as indexing maps.

In come the groups of a collective; out come maps between devices.  Read `exchange` first.

`indexing.devices.gpus` has facts of GPU models, `indexing.devices.grid` the schedules of threads.

Imports `maps`.  Invariants: the first dimension and the first result of every map are the device;
`indexing.dataflow.device_queries` composes the maps through programs.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

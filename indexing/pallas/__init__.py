"""Pallas: the blocks of ``pallas_call``, proved before anything runs.

In come functions of JAX; out comes a report of bounds, coverage, visits, races, hazards, traffic
and VMEM.  Read `checking` first.

Imports `maps`, `ops` and `frontends`; jax is optional and is imported on first use.  Every fault
has a witness, and what depends on values at run time is "may".
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Modules from other sources than HLO files: functions of JAX.

In come functions and folders of dumps; out come modules.  Read `jax` first.

Imports `devices`; returns modules of `hlo`.  Other packages (jax) are optional and are
imported on first use; without them, an `ImportError` gives the extra to install.
Invariants: executing a module gives the results of its source.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

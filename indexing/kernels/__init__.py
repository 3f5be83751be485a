"""Kernels of XLA's emitters: their MLIR read, their accesses as maps, proofs against their HLO.

In come logs of passes and dumps of modules; out come modules of MLIR (`ir`), kernels with the maps
of what they read and write, verdicts, and the sectors that warps touch.  Read `ir` first.  `mosaic`
has the kernels of custom calls of XLA:TPU.

Imports `maps`, `devices`, `ops`, `dataflow`, `programs`, `memory`, `equivalence`, `frontends` and
`pallas`.  An op that is not known is kept with its name; a condition that is not handled makes a
verdict undecided.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from os import PathLike

    from indexing.kernels.kernel import Kernel

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


class _Kernels(ModuleType):
    """This room, which is also the function ``indexing.kernels(dump)``."""

    def __call__(self, dump: str | PathLike[str]) -> tuple[Kernel, ...]:
        from indexing.kernels.dumps import kernels_of

        return kernels_of(dump)


sys.modules[__name__].__class__ = _Kernels

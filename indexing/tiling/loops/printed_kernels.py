"""Kernels of a tiling with loops, as text."""

from __future__ import annotations

from typing import Any

import indexing.methods as methods
from indexing.maps.displayed import Displayed
from simplifier.unknown import Unknown


class PrintedKernels(Displayed):
    """A tiling that is printed as kernels."""

    def to_pallas(self: Any) -> str | Unknown:
        """Return a Python file with a Pallas kernel: grid, block specifications and body.

        The file defines a function of the arrays that are read, which are parameters or operands
        in the order of `arrays`.  `Unknown` with the reason if no kernel is emitted, as for blocks
        that overlap.
        """
        return methods.pallas_kernel_text(self)

    def to_triton(self: Any) -> str | Unknown:
        """Return a Python file with a Triton kernel: offsets, masks, strides and loops.

        The file defines a function of the arrays that are read, and of the result.  `Unknown` with
        the reason if no kernel is emitted.
        """
        return methods.triton_kernel_text(self)

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

        >>> import hlo, indexing
        >>> text = "ENTRY e { p = f32[64,256] parameter(0)  ROOT n = f32[64,256] negate(p) }"
        >>> kernel = indexing.tile(hlo.parse(text).entry.root, (8, 128), loop_sizes={}).to_pallas()
        >>> [line.strip() for line in kernel.splitlines() if "BlockSpec" in line or "grid" in line]
        ['grid=(8, 2),',
         'pl.BlockSpec((8, 128), lambda tid_0, tid_1: (tid_0, tid_1)),',
         'out_specs=pl.BlockSpec((8, 128), lambda tid_0, tid_1: (tid_0, tid_1)),']
        """
        return methods.pallas_kernel_text(self)

    def to_triton(self: Any) -> str | Unknown:
        """Return a Python file with a Triton kernel: offsets, masks, strides and loops.

        The file defines a function of the arrays that are read, and of the result.  `Unknown` with
        the reason if no kernel is emitted.

        >>> import hlo, indexing
        >>> text = "ENTRY e { p = f32[64,256] parameter(0)  ROOT n = f32[64,256] negate(p) }"
        >>> kernel = indexing.tile(hlo.parse(text).entry.root, (8, 128), loop_sizes={}).to_triton()
        >>> [line.strip() for line in kernel.splitlines() if "tl.load" in line]
        ['p = tl.load(p_ptr + (index_0 * 256 + index_1))']
        """
        return methods.triton_kernel_text(self)

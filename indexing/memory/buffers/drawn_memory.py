"""`DrawnMemory`: the base of `MemoryProfile`, with its picture."""

from __future__ import annotations

from typing import Any

import indexing.methods as methods
from hlo.arguments import checked
from indexing.maps.displayed import Displayed


class DrawnMemory(Displayed):
    """The methods of `MemoryProfile` that draw it."""

    @checked
    def plot(
        self,
        limit: int = 16,
        backend: methods.Backend = "svg",
        theme: methods.Theme = "auto",
        at_peak: bool = False,
    ) -> Any:
        """Return a picture of the steps in which the largest buffers of each space are alive.

        A line marks the peak of the space.

        Args:
            limit: the number of buffers of a memory space.
            backend, theme: as in `Answer.plot`.
            at_peak: only buffers that are alive at the peak of their memory space.
        Returns:
            A `Drawing`.
        Raises:
            ImportError: matplotlib is not installed.
            ValueError: `limit` is less than 1.

        >>> import hlo, indexing
        >>> text = "HloModule m  ENTRY e { p = f32[4] parameter(0)  ROOT n = f32[4] negate(p) }"
        >>> indexing.memory_profile(hlo.parse(text)).plot()
        <drawing of 'memory of m'>
        """
        assert isinstance(self, methods.MemoryProfile), "only profiles have these methods"
        return methods.plot_memory(self, limit, backend, theme, at_peak)

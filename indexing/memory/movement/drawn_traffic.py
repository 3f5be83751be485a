"""`DrawnTraffic`: the base of `Traffic`, with its picture."""

from __future__ import annotations

from typing import Any

import indexing.methods as methods
from hlo.arguments import checked
from indexing.devices.gpus import Gpu
from indexing.maps.displayed import Displayed


class DrawnTraffic(Displayed):
    """The methods of `Traffic` that draw it."""

    @checked
    def plot(
        self,
        peak: methods.Peak | str | None = None,
        device: str | Gpu | None = None,
        top: int = 12,
        backend: methods.Backend = "svg",
        theme: methods.Theme = "auto",
    ) -> Any:
        """Return a picture of the bytes of instructions, and of their roofline.

        Args:
            peak: draw a roofline with these rates, such as ``4.8TB/s,67TF/s`` or ``H100``.
            device: draw a roofline with the rates of a GPU, for float32 without matrix units.
            top: the number of instructions, those that move the most bytes.
            backend, theme: as in `Answer.plot`.
        Returns:
            A `Drawing`.
        Raises:
            ImportError: matplotlib is not installed.
            ValueError: the rates are not valid, given twice, or not known for the device; `top` is
                less than 1.

        >>> import hlo, indexing
        >>> text = "HloModule m  ENTRY e { p = f32[4] parameter(0)  ROOT n = f32[4] negate(p) }"
        >>> indexing.traffic(hlo.parse(text)).plot(device="H100")
        <drawing of 'bytes of m: 32 B'>
        """
        assert isinstance(self, methods.Traffic), "only traffic has these methods"
        return methods.plot_traffic(self, peak, device, top, backend, theme)

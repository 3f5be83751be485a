"""`DrawnRegion`: the base of `Region`, with its picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import indexing.methods as methods
from hlo.arguments import checked
from indexing.maps.displayed import Displayed


class DrawnRegion(Displayed):
    """The methods of `Region` that draw it."""

    @checked
    def plot(
        self,
        dims: Sequence[int] | None = None,
        plane: tuple[int, int] | None = None,
        backend: methods.Backend = "svg",
        theme: methods.Theme = "auto",
    ) -> Any:
        """Return a picture of the array in which the elements of the region have a shade.

        Large arrays are cut, or several elements share a cell; a note of the picture says so.

        Args:
            dims: the sizes of the array; by default, the least sizes that contain the region.
            plane: the dimensions of rows and columns; by default the last two larger than 1.  There
                is a panel for each of the first slices of the others.
            backend: "svg", or "matplotlib" for a figure of matplotlib (extra ``[plot]``).
            theme: "light", "dark", or "auto": as the reader prefers.
        Returns:
            A `Drawing`.
        Raises:
            ImportError: matplotlib is not installed.
            ValueError: the region is not inside of the array, or an option has no such value.

        >>> from indexing import IndexingMap
        >>> row = IndexingMap.over((4,), lambda d, s: [d[0], s[0] * 2], ranges=(3,)).at(1)
        >>> row.plot((4, 6)).svg.count('data-value="1"')
        3
        """
        assert isinstance(self, methods.Region), "only regions have these methods"
        return methods.plot_region(self, dims, plane, backend, theme)

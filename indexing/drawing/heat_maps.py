"""Heat maps of arrays: a panel for each slice of the leading dimensions, cut or binned if large."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from indexing.drawing.element_counts import ElementCounts
from indexing.drawing.figures import CellGrid, DrawnCell, Outline, heat_shades

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_ROWS: Final = 48
MAX_COLUMNS: Final = 64
"""Number of rows and columns of single elements."""
MAX_BINS: Final = 32
"""Number of rows, and of columns, of cells that show several elements."""
MAX_LINES: Final = 16
"""Number of lines of `MAX_COLUMNS` elements of an array with one dimension."""
MAX_SLICES: Final = 4
"""Number of panels of an array, at most; `MAX_SMALL_SLICES` if they have few cells."""
MAX_SMALL_SLICES: Final = 12
MAX_SMALL_CELLS: Final = 1024
"""Number of cells of all panels, beyond `MAX_SLICES` panels."""
MARGIN: Final = 2
"""Number of elements around those that are read, if the rest is cut."""


@dataclass(frozen=True)
class HeatMap:
    """An array with a number for each element.

    Attributes:
        title: the name of the array, and its shape.
        name: the name of the array.
        dims: the sizes of the array.
        counts: the numbers.
        unit: the noun of the numbers, such as "read"; "element" for those of a set.
        member: for a set, the legend of its elements.
        is_bound: the numbers are upper bounds, from `may` maps.
        notes: texts below the last panel.
        plane: the dimensions of rows and columns; by default the last two larger than 1.
        tile: the sizes of tiles whose borders are drawn.
    """

    title: str
    name: str
    dims: tuple[int, ...]
    counts: ElementCounts
    unit: str = "element"
    member: str = "in the region"
    is_bound: bool = False
    notes: tuple[str, ...] = ()
    plane: tuple[int, int] | None = None
    tile: tuple[int, ...] = ()


class Cuts(NamedTuple):
    """The bins of one dimension.

    Attributes:
        edges: the first index of each bin, and the end of the last one.
        size: the size of a bin.
        is_cut: True if some indices are left out.
    """

    edges: tuple[int, ...]
    size: int
    is_cut: bool

    @classmethod
    def around(cls, size: int, most: int, bounds: tuple[int, int] | None) -> Cuts | None:
        """Return bins of one element for the indices in `bounds`; None for more than `most`.

        >>> Cuts.around(100, 8, (40, 44)).edges, Cuts.around(5, 8, (2, 2)).edges
        ((38, 39, 40, 41, 42, 43, 44, 45, 46), (0, 1, 2, 3, 4, 5))
        """
        low, high = 0, size
        if size > most:
            first, last = bounds or (0, 0)
            if last - first >= most:
                return None
            margin = min(MARGIN, most - 1 - last + first)
            low = max(first - margin, 0)
            high = min(low + most, last + margin + 1, size)
        return cls(tuple(range(low, high + 1)), 1, high - low < size)

    @classmethod
    def whole(cls, size: int, most: int, least: int = 1) -> Cuts:
        """Return at most `most` bins of a whole dimension, of at least `least` elements.

        >>> Cuts.whole(100, 8).edges, Cuts.whole(100, 8).size
        ((0, 16, 32, 48, 64, 80, 96, 100), 16)
        """
        width = least
        while -(-size // width) > most:
            width *= 2
        return cls((*range(0, size, width), size), width, False)

    def text(self, k: int) -> str:
        """Return the indices of a bin."""
        first, end = self.edges[k], self.edges[k + 1]
        return str(first) if end == first + 1 else f"{first}:{end}"


def heat_panels(heat: HeatMap) -> tuple[CellGrid, ...]:
    """Return the panels of an array.

    >>> from indexing.drawing.element_counts import BoxCounts
    >>> from indexing.maps import Box
    >>> box = BoxCounts((Box((1, 1), (2, 1), (1, 1)),))
    >>> (grid,) = heat_panels(HeatMap("p", "p", (3, 2), box))
    >>> [(cell.index, cell.value) for cell in grid.cells if cell.value]
    [('1,1', 1), ('2,1', 1)]
    """
    wide = [k for k, n in enumerate(heat.dims) if n > 1]
    if prod(heat.dims) == 0:
        note = ("the array has no elements",)
        return (CellGrid(heat.title, heat.name, 0, 0, (), notes=(*note, *heat.notes)),)
    if not heat.dims:
        return (_scalar_panel(heat),)
    if heat.plane is None and len(wide) < 2:
        return (_line_panel(heat, wide[0] if wide else len(heat.dims) - 1),)
    rows, columns = heat.plane or (wide[-2], wide[-1])
    return tuple(_plane_panels(heat, rows, columns))


def _scalar_panel(heat: HeatMap) -> CellGrid:
    """The panel of an array of rank 0: one cell."""
    value = int(heat.counts.bin_sums({}, (), ()))
    shades, legend = heat_shades([value])
    cell = _cell(heat, (0, 0), {}, value, shades, 1)
    shown = _legend(heat, legend, 1)
    return CellGrid(heat.title, heat.name, 1, 1, (cell,), legend=shown, notes=_notes(heat, [], 1))


def _line_panel(heat: HeatMap, dim: int) -> CellGrid:
    """The panel of an array with one dimension, in lines."""
    fixed = {k: 0 for k in range(len(heat.dims)) if k != dim}
    size, most = heat.dims[dim], MAX_COLUMNS * MAX_LINES
    cuts = Cuts.around(size, most, heat.counts.bounds(dim)) or Cuts.whole(size, most)
    values = heat.counts.bin_sums(fixed, (dim,), (cuts.edges,))
    columns = min(len(values), MAX_COLUMNS)
    rows = -(-len(values) // columns)
    shades, legend = heat_shades([int(v) for v in values])
    cells = []
    for k, value in enumerate(values):
        parts = dict.fromkeys(fixed, "0") | {dim: cuts.text(k)}
        cells.append(_cell(heat, divmod(k, columns), parts, int(value), shades, cuts.size))
    starts = [str(edge) for edge in cuts.edges[:-1]]
    heads = starts if rows == 1 else [f"+{k * cuts.size}" for k in range(columns)]
    return CellGrid(
        heat.title,
        heat.name,
        rows,
        columns,
        tuple(cells),
        legend=_legend(heat, legend, cuts.size),
        row_labels=tuple(starts[::columns]) if rows > 1 else (),
        column_labels=tuple(heads),
        axes=("", f"d{dim}"),
        notes=_notes(heat, [(dim, cuts)], 1),
        outlines=_line_outlines(heat, dim, cuts) if rows == 1 else (),
    )


def _line_outlines(heat: HeatMap, dim: int, cuts: Cuts) -> tuple[Outline, ...]:
    spans = _tile_spans(cuts, heat.tile[dim]) if heat.tile else []
    return tuple([Outline(0, start, 1, count) for start, count in spans])


def _plane_panels(heat: HeatMap, rows: int, columns: int) -> Iterator[CellGrid]:
    """Yield the panels of the first slices that have a number above 0."""
    plane = (rows, columns)
    others = [k for k in range(len(heat.dims)) if k not in plane]
    chosen, used = heat.counts.slices(others, _panel_limit(heat, plane))
    fixed = [dict(zip(others, at, strict=True)) for at in chosen or [(0,) * len(others)]]
    cuts = _plane_cuts(heat, plane, 1 if len(fixed) <= 2 else 2)
    tables = [heat.counts.bin_sums(own, plane, [each.edges for each in cuts]) for own in fixed]
    shades, legend = heat_shades([int(v) for table in tables for v in table.reshape(-1)])
    slices = prod(heat.dims[k] for k in others)
    notes = _notes(heat, list(zip(plane, cuts, strict=True)), slices, used, len(fixed))
    grids = [
        CellGrid(
            heat.name,
            heat.name,
            table.shape[0],
            table.shape[1],
            tuple(_plane_cells(heat, own, plane, cuts, table, shades)),
            row_labels=tuple(map(str, cuts[0].edges[:-1])),
            column_labels=tuple(map(str, cuts[1].edges[:-1])),
            axes=(f"d{rows}", f"d{columns}"),
            outlines=_tile_outlines(heat, rows, columns, cuts),
        )
        for own, table in zip(fixed, tables, strict=True)
    ]
    grids[0] = replace(grids[0], title=heat.title)
    grids[-1] = replace(
        grids[-1], legend=_legend(heat, legend, cuts[0].size * cuts[1].size), notes=notes
    )
    for grid, own in zip(grids, fixed, strict=True):
        slice_text = f"  {_slice_text(heat, own)}" if slices > 1 else ""
        yield replace(grid, title=grid.title + slice_text)


def _panel_limit(heat: HeatMap, plane: tuple[int, int]) -> int:
    """Return the most panels of an array: more if each has few cells."""
    few = MAX_SMALL_CELLS // (heat.dims[plane[0]] * heat.dims[plane[1]])
    return max(MAX_SLICES, min(few, MAX_SMALL_SLICES))


def _plane_cuts(heat: HeatMap, plane: tuple[int, int], fraction: int) -> list[Cuts]:
    """Return the bins of rows and columns: of single elements, or of the whole array."""
    limits = list(zip(plane, (MAX_ROWS // fraction, MAX_COLUMNS // fraction), strict=True))
    around = [Cuts.around(heat.dims[k], most, heat.counts.bounds(k)) for k, most in limits]
    single = [each for each in around if each is not None]
    if len(single) == len(limits):
        return single
    bins = MAX_BINS // fraction
    wholes = [Cuts.whole(heat.dims[k], bins) for k in plane]
    widest = max(each.size for each in wholes)
    if widest <= 2 * min(each.size for each in wholes):  # squares show the proportions
        wholes = [Cuts.whole(heat.dims[k], bins, widest) for k in plane]
    return wholes


def _plane_cells(
    heat: HeatMap,
    fixed: Mapping[int, int],
    plane: tuple[int, int],
    cuts: Sequence[Cuts],
    table: NDArray[Any],
    shades: Mapping[int, int],
) -> Iterator[DrawnCell]:
    leading = {k: str(at) for k, at in fixed.items()}
    size = prod(each.size for each in cuts)
    for row, line in enumerate(table):
        for column, value in enumerate(line):
            parts = leading | {plane[0]: cuts[0].text(row), plane[1]: cuts[1].text(column)}
            yield _cell(heat, (row, column), parts, int(value), shades, size)


def _cell(
    heat: HeatMap,
    place: tuple[int, int],
    parts: Mapping[int, str],
    value: int,
    shades: Mapping[int, int],
    size: int,
) -> DrawnCell:
    index = ",".join(parts[k] for k in range(len(heat.dims)))
    is_plain = len([shade for shade in set(shades.values()) if shade]) < 2  # in the legend
    label = "" if not value or is_plain else f"{value:,}"
    bound = "at most " if heat.is_bound and value else ""
    verb = "" if heat.unit == "element" and size == 1 else f" {heat.unit}{'s' * (value != 1)}"
    title = f"[{index}]: {bound}{value:,}{verb}"
    return DrawnCell(*place, index, value, shades[value], label, title, heat.is_bound and value > 0)


def _legend(
    heat: HeatMap, legend: Sequence[tuple[int, str]], size: int
) -> tuple[tuple[int, str], ...]:
    """The legend with the unit behind its last entry; of a set, in words."""
    if heat.unit == "element" and size == 1:
        words = {False: "other elements", True: heat.member}
        return tuple([(shade, words[shade > 0]) for shade, _ in legend])
    *others, (shade, text) = legend
    return (*others, (shade, f"{text} {heat.unit}{'s' * (text != '1')}"))


def _notes(
    heat: HeatMap,
    cuts: Sequence[tuple[int, Cuts]],
    slices: int,
    used: int = 1,
    shown: int = 1,
) -> tuple[str, ...]:
    """The notes on what is cut, binned or left out, and those of the array."""
    notes = []
    if any(each.size > 1 for _, each in cuts):
        sizes = " x ".join(str(each.size) for _, each in cuts)
        notes.append(f"every cell shows {sizes} elements, and the sum of their {heat.unit}s")
    for dim, each in cuts:
        if each.is_cut:
            low, high = each.edges[0], each.edges[-1]
            notes.append(
                f"cut to d{dim} = {low} to {high - 1} of 0 to {heat.dims[dim] - 1}: no {heat.unit} "
                "is elsewhere"
            )
    if slices > 1:
        verb = "has" if used == 1 else "have"
        notes.append(f"{shown} of {slices:,} slices; {used:,} {verb} {heat.unit}s")
    if heat.is_bound:
        notes.append("hatched: upper bounds, from `may` maps; some may not be needed")
    return (*notes, *heat.notes)


def _slice_text(heat: HeatMap, fixed: Mapping[int, int]) -> str:
    """Return the slice that a panel shows, such as ``[0, :, :]``."""
    return f"[{', '.join(str(fixed.get(k, ':')) for k in range(len(heat.dims)))}]"


def _tile_outlines(
    heat: HeatMap, rows: int, columns: int, cuts: Sequence[Cuts]
) -> tuple[Outline, ...]:
    """Return the borders of tiles, where bins do not cross them."""
    if not heat.tile:
        return ()
    spans = [_tile_spans(each, heat.tile[k]) for k, each in zip((rows, columns), cuts, strict=True)]
    return tuple([Outline(r, c, nr, nc) for r, nr in spans[0] for c, nc in spans[1]])


def _tile_spans(cuts: Cuts, tile: int) -> list[tuple[int, int]]:
    """Return the first bin and the number of bins of each tile; empty if bins cross borders."""
    starts = [k for k, first in enumerate(cuts.edges[:-1]) if first % tile == 0 or k == 0]
    if tile % cuts.size:
        return []
    ends = [*starts[1:], len(cuts.edges) - 1]
    return [(start, end - start) for start, end in zip(starts, ends, strict=True)]

"""Pictures of layouts: the position of each element in memory, and the elements in memory order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from math import prod
from typing import Any, Final

from hlo.arguments import checked
from hlo.shapes.memory import linear_index, multi_index
from hlo.shapes.shape import Shape, parse_shape
from hlo.shapes.tiling import extent
from indexing.devices.gpus import Gpu, gpu
from indexing.drawing.drawing import Backend, as_drawing
from indexing.drawing.figures import (
    HEAT_SHADES,
    CellGrid,
    DrawnCell,
    Figure,
    Palette,
    class_shade,
)
from indexing.drawing.style import Theme
from indexing.memory.layouts.cute import CuteLayout
from indexing.memory.layouts.linear import LinearLayout
from indexing.memory.layouts.swizzle import Swizzle

MAX_SIDE: Final = 64
"""Number of rows and of columns of a layout; others are left out."""
MAX_POSITIONS: Final = 1024
"""Number of positions of a strip of memory."""
MAX_SLICES: Final = 4
MAX_PATH: Final = 128
"""Number of elements that arrows connect."""

Valued = Callable[[tuple[int, ...]], tuple[int | str, int, str]]
"""Value, shade and label of the element with an index."""


@checked
def plot_layout(shape: Shape | str, backend: Backend = "svg", theme: Theme = "auto") -> Any:
    """Return a picture of the layout of an array: positions of elements, and memory in order.

    Numbers of elements are positions in memory.  Shades are tiles, or the order in memory.  The
    strip shows memory from position 0; positions of padding are hatched.

    Args:
        shape: the shape with its layout, or its text, such as ``f32[4,6]{1,0:T(2,4)}``.
        backend, theme: as in `Answer.plot`.
    Returns:
        A `Drawing`.
    Raises:
        HloError: the text is not a shape.
        ImportError: matplotlib is not installed.
        ValueError: the shape is not an array of known sizes.

    >>> plot_layout("f32[4,6]{0,1}")
    <drawing of 'layout f32[4,6]{0,1}'>
    """
    parsed = parse_shape(shape) if isinstance(shape, str) else shape
    if not isinstance(parsed, Shape) or any(size < 0 for size in parsed.dims):
        raise ValueError(f"expected the shape of an array of known sizes, got {parsed}")
    layout = parsed.layout_or_default
    size = extent(parsed.dims, layout)
    tile = prod(layout.tiles[0]) if layout.tiles else 0
    shade = _tile_shade(tile) if tile > 0 else _order_shade(size)

    def value_and_shade(index: tuple[int, ...]) -> tuple[int | str, int, str]:
        position = linear_index(index, parsed.dims, layout)
        assert isinstance(position, int)
        return position, shade(position), str(position)

    palette: Palette = "class" if layout.tiles else "heat"
    notes = ["numbers: positions in memory"]
    if tile > 0:
        notes.append(f"colours: tiles of {tile} positions, one after another")
    grids = list(
        index_grids("elements", "elements", parsed.dims, value_and_shade, notes, None, palette)
    )
    if len(grids) == 1 and 1 < prod(parsed.dims) <= MAX_PATH:
        grids = [_with_path(grids[0])]
    figure = Figure(f"layout {parsed}", (*grids, _memory(parsed, size, shade)))
    return as_drawing(figure, backend, theme)


def _tile_shade(tile: int) -> Callable[[int], int]:
    return lambda position: class_shade(position // tile)


def _order_shade(size: int) -> Callable[[int], int]:
    return lambda position: min(position * HEAT_SHADES // max(size, 1), HEAT_SHADES - 1) + 1


def _memory(shape: Shape, size: int, shade: Callable[[int], int]) -> CellGrid:
    """The strip of memory: the element at each position."""
    layout = shape.layout_or_default
    shown = min(size, MAX_POSITIONS)
    columns = max(min(_line_length(shape), shown), 1)
    cells = []
    padding = False
    for position in range(shown):
        index = multi_index(position, shape.dims, layout)
        place = divmod(position, columns)
        if index is None:
            padding = True
            cells.append(DrawnCell(*place, str(position), "padding", 0, "", "", True))
        else:
            text = ",".join(map(str, index))
            cells.append(DrawnCell(*place, str(position), text, shade(position), text))
    notes = ["one cell for each position, in order; the text is the index of its element"]
    notes += ["hatched: padding"] * padding
    if shown < size:
        notes.append(f"cut to the first {shown:,} of {size:,} positions")
    return CellGrid(
        "memory",
        "memory",
        -(-shown // columns),
        columns,
        tuple(cells),
        "class" if layout.tiles else "heat",
        row_labels=tuple([str(k) for k in range(0, shown, columns)]),
        column_labels=tuple([f"+{k}" for k in range(columns)]),
        notes=tuple(notes),
    )


def _line_length(shape: Shape) -> int:
    """The number of positions in a line of the strip: a tile, or the minor dimension."""
    layout = shape.layout_or_default
    tile = prod(layout.tiles[0]) if layout.tiles else 0
    if 0 < tile <= MAX_SIDE:
        return tile
    sizes = layout.padded_dimensions or shape.dims
    minor = sizes[layout.minor_to_major[0]] if layout.minor_to_major else 1
    return minor if 1 < minor <= MAX_SIDE and not tile else MAX_SIDE


def _with_path(grid: CellGrid) -> CellGrid:
    """The grid with arrows through its cells in the order of their values."""
    ordered = sorted(grid.cells, key=lambda cell: int(cell.value))
    path = tuple([(cell.row, cell.column) for cell in ordered])
    return replace(grid, path=path, notes=(*grid.notes, "arrows: the order in memory"))


# ---------------------------------------------------------------- CuTe, swizzles, Triton


def plot_cute(
    layout: CuteLayout, device: str | Gpu | None, element_bits: int, backend: Backend, theme: Theme
) -> Any:
    """Return a picture of a layout of CuTe; see `CuteLayout.plot`."""
    model = None if device is None else gpu(device)
    if element_bits < 1:
        raise ValueError(f"`element_bits` is at least 1, got {element_bits}")
    cosize = layout.cosize
    lowest = min(0, int(layout.offsets().min())) if layout.size <= 1 << 20 else 0
    order = _order_shade(cosize)

    def value_and_shade(index: tuple[int, ...]) -> tuple[int | str, int, str]:
        offset = layout(*index)
        if model is None:
            return offset, min(max(order(offset - lowest), 1), HEAT_SHADES), str(offset)
        if offset < 0:
            return "before the first bank", 0, ""
        bank = offset * element_bits // 8 // model.bank_bytes % model.banks
        return bank, class_shade(bank), str(bank)

    sizes = [mode.size for mode in layout.modes]
    note = "numbers: offsets"
    if model is not None:
        note = (
            f"numbers: banks of {model.name}, {model.banks} banks of {model.bank_bytes} bytes, for "
            f"elements of {element_bits} bits"
        )
    plane = (0, 1) if len(sizes) > 1 else None
    palette: Palette = "heat" if model is None else "class"
    grids = index_grids("coordinates", "layout", sizes, value_and_shade, (note,), plane, palette)
    return as_drawing(Figure(f"layout {layout}", tuple(grids)), backend, theme)


def plot_swizzle(swizzle: Swizzle, columns: int | None, backend: Backend, theme: Theme) -> Any:
    """Return a picture of a swizzle; see `Swizzle.plot`."""
    bits = len(swizzle.columns)
    _, base, shift = swizzle.parameters or (0, 0, 0)
    if columns is None:
        columns = 1 << min(base + shift if shift > 0 else (bits + 1) // 2, 6)
    if columns < 1:
        raise ValueError(f"`columns` is at least 1, got {columns}")
    rows = max(-(-(1 << bits) // columns), 1)
    unit = 1 << base

    def value_and_shade(index: tuple[int, ...]) -> tuple[int | str, int, str]:
        image = swizzle(index[0] * columns + index[1])
        return image, class_shade(image // unit), str(image)

    notes = ["numbers: the new address of each address, in row-major order"]
    if unit > 1:
        notes.append(f"colours: {unit} adjacent addresses move together")
    grids = index_grids(
        "addresses", "swizzle", (rows, columns), value_and_shade, notes, (0, 1), "class"
    )
    return as_drawing(Figure(f"swizzle {swizzle}", tuple(grids)), backend, theme)


def plot_linear(layout: LinearLayout, backend: Backend, theme: Theme) -> Any:
    """Return a picture of a layout of Triton; see `LinearLayout.plot`."""
    counts = [(name, 1 << len(images)) for name, images in layout.inputs]
    if prod(count for _, count in counts) > 1 << 16:
        raise ValueError("the layout has more than 65,536 inputs, too many to draw")
    owners = _inputs_by_element(layout, counts)
    shown = [k for k, (_, count) in enumerate(counts) if count > 1]
    by = _shaded_input([name for name, _ in counts], shown)

    def value_and_shade(index: tuple[int, ...]) -> tuple[int | str, int, str]:
        own = owners.get(index)
        if own is None:
            return "no input", 0, ""
        texts = [" ".join(f"{counts[k][0]}={each[k]}" for k in range(len(counts))) for each in own]
        label = ":".join(str(own[0][k]) for k in shown) + ("+" if len(own) > 1 else "")
        return "; ".join(texts), class_shade(own[0][by]) if counts else 1, label

    notes = [f"texts: {':'.join(counts[k][0] for k in shown)}"]
    if counts:
        notes.append(f"colours: {counts[by][0]}")
    if any(len(own) > 1 for own in owners.values()):
        notes.append("+: others hold the element, too")
    sizes = [size for _, size in layout.outputs]
    names = " x ".join(name for name, _ in layout.outputs)
    grids = index_grids(names, "layout", sizes, value_and_shade, notes, None, "class")
    return as_drawing(Figure("linear layout", tuple(grids)), backend, theme)


def _inputs_by_element(
    layout: LinearLayout, counts: Sequence[tuple[str, int]]
) -> dict[tuple[int, ...], list[tuple[int, ...]]]:
    """Return the inputs that have each element."""
    owners: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for values in product(*[range(count) for _, count in counts]):
        named = dict(zip([name for name, _ in counts], values, strict=True))
        owners.setdefault(tuple(layout(**named).values()), []).append(values)
    return owners


def _shaded_input(names: Sequence[str], shown: Sequence[int]) -> int:
    """The input dimension that shades show: warps if there are several, else lanes."""
    for name in ("warp", "lane"):
        if name in names and names.index(name) in shown:
            return names.index(name)
    return shown[-1] if shown else 0


# ---------------------------------------------------------------- grids


def index_grids(
    title: str,
    name: str,
    dims: Sequence[int],
    valued: Valued,
    notes: Sequence[str],
    plane: tuple[int, int] | None = None,
    palette: Palette = "heat",
) -> Iterator[CellGrid]:
    """Yield a grid for each of the first slices of an array; those of rank 1 have one line.

    Args:
        valued: value, shade and label of the element with an index.
    """
    rank = len(dims)
    rows, columns = plane or (rank - 2, rank - 1)  # below 0: the grid has one line
    others = [k for k in range(rank) if k not in (rows, columns)]
    slices = list(islice(product(*[range(dims[k]) for k in others]), MAX_SLICES))
    shown = {k: min(dims[k], MAX_SIDE) if k >= 0 else 1 for k in (rows, columns)}
    lines = (*notes, *_cut_notes(dims, shown, others, len(slices)))
    for number, at in enumerate(slices):
        fixed = dict(zip(others, at, strict=True))
        cells = []
        for row, column in product(range(shown[rows]), range(shown[columns])):
            place = {**fixed, rows: row, columns: column}
            index = tuple([place[k] for k in range(rank)])
            value, shade, label = valued(index)
            cells.append(DrawnCell(row, column, ",".join(map(str, index)), value, shade, label))
        slice_text = ", ".join(str(fixed.get(k, ":")) for k in range(rank))
        yield CellGrid(
            f"{title}  [{slice_text}]" if others else title,
            name,
            shown[rows],
            shown[columns],
            tuple(cells),
            palette,
            row_labels=_index_labels(rows, shown),
            column_labels=_index_labels(columns, shown),
            axes=(_axis_name(rows), _axis_name(columns)),
            notes=lines if number == len(slices) - 1 else (),
        )


def _cut_notes(
    dims: Sequence[int], shown: Mapping[int, int], others: Sequence[int], slices: int
) -> Iterator[str]:
    """Yield what is left out."""
    for k, count in shown.items():
        if k >= 0 and count < dims[k]:
            yield f"cut to the first {count} of {dims[k]:,} indices of d{k}"
    total = prod(dims[k] for k in others)
    if total > slices:
        yield f"{slices} of {total:,} slices"


def _index_labels(dim: int, shown: Mapping[int, int]) -> tuple[str, ...]:
    return tuple(map(str, range(shown[dim]))) if dim >= 0 else ()


def _axis_name(dim: int) -> str:
    return f"d{dim}" if dim >= 0 else ""

"""Arrays in the summary of a module: records of arrays and of memory spaces, and their rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hlo.shapes.shape import AnyShape
from indexing.maps.answers import Path
from indexing.memory.spaces import DEFAULT_SPACE, ArraySize
from indexing.views.map_tables import shape_text
from indexing.views.records import shape_record
from indexing.views.tables import Table, align_columns, fit_columns, omitted_lines


@dataclass(frozen=True, slots=True)
class ArrayRecord:
    """An array of a module: a parameter, a result, or the result of an instruction.

    Attributes:
        computation, instruction, opcode: the instruction that holds the array.
        argument: the ``op_name`` of a parameter, which JAX sets to the name of the argument.
        path: the leaf of a tuple, ``()`` for an array.
        shape: the shape with its layout in the program.
        size: the size in elements and bytes; None if a dimension is unbounded.
        space, memory: the number and the name of its memory space.
    """

    computation: str
    instruction: str
    opcode: str
    argument: str
    path: Path
    shape: AnyShape
    size: ArraySize | None
    space: int
    memory: str

    @property
    def bytes(self) -> int | None:
        """The bytes of the elements; None if a dimension is unbounded."""
        return self.size and self.size.dense

    @property
    def stored_bytes(self) -> int | None:
        """The bytes in memory, with padding; None if a dimension is unbounded."""
        return self.size and self.size.stored

    @property
    def padding(self) -> int | None:
        """The bytes in memory that hold no element; None if a dimension is unbounded."""
        return self.size and self.size.padding

    @property
    def is_plain(self) -> bool:
        """True for an array in the default memory without padding."""
        return not self.padding and self.space == DEFAULT_SPACE

    def to_json(self) -> dict[str, Any]:
        """Return the array as a value for JSON."""
        return {
            "computation": self.computation,
            "instruction": self.instruction,
            "opcode": self.opcode,
            "argument": self.argument or None,
            "path": list(self.path),
            "shape": shape_record(self.shape),
            "layout": _layout(self.shape),
            "elements": self.size and self.size.elements,
            "bytes": self.bytes,
            "stored_bytes": self.stored_bytes,
            "padding": self.padding,
            "space": self.space,
            "memory": self.memory,
        }


@dataclass(frozen=True, slots=True)
class SpaceRecord:
    """The arrays of one memory space, and the sums of their sizes.

    Attributes:
        space, memory: the number and the name of the memory space.
        arrays: the number of arrays, whether or not they are alive together.
        elements, bytes, stored_bytes: the elements, their bytes, and the bytes in memory.
        is_complete: False if arrays of unbounded size are missing in the sums.
    """

    space: int
    memory: str
    arrays: int
    elements: int
    bytes: int
    stored_bytes: int
    is_complete: bool

    @property
    def padding(self) -> int:
        """The bytes in memory that hold no element."""
        return self.stored_bytes - self.bytes

    def to_json(self) -> dict[str, Any]:
        """Return the sums as a value for JSON."""
        return {
            "space": self.space,
            "memory": self.memory,
            "arrays": self.arrays,
            "elements": self.elements,
            "bytes": self.bytes,
            "stored_bytes": self.stored_bytes,
            "padding": self.padding,
            "complete": self.is_complete,
        }


# ---------------------------------------------------------------- lines


def space_table(spaces: Sequence[SpaceRecord]) -> Iterator[str]:
    """Yield a row for each memory space."""
    yield "arrays by memory, in bytes:"
    rows = [
        (s.memory, s.arrays, s.elements, s.bytes, s.stored_bytes, s.padding or None) for s in spaces
    ]
    columns = ("memory", "arrays", "elements", "bytes", "stored", "padding")
    notes = [f"{s.memory}: without arrays of unbounded size" for s in spaces if not s.is_complete]
    table = Table("", columns, rows, notes, right=range(1, len(columns)))
    yield from (f"  {line}" for line in table.lines())


@dataclass(frozen=True, slots=True)
class Narrow:
    """Cells of rows for a terminal on which all cells do not fit.

    Attributes:
        cells: the cells of each row.
        omitted: the names of the cells that are omitted.
        head: the headings of the number and of the cells, if any.
    """

    cells: Sequence[list[str]]
    omitted: Sequence[str]
    head: Sequence[str] = ()


def array_rows(
    arrays: Sequence[ArrayRecord],
    cells: Sequence[list[str]],
    max_rows: int,
    width: int | None = None,
    narrow: Narrow | None = None,
) -> Iterator[str]:
    """Yield a row of cells for each array, after its bytes.

    If some array has padding, or is not in the default memory, the rows also have the bytes in
    memory, those of padding, and the name of the memory.

    Args:
        width: the number of columns of a terminal.
        narrow: the cells to print on a terminal where `cells` do not fit.
    """
    if all(array.is_plain for array in arrays):
        numbers = [_bytes(array.bytes) for array in arrays]
        yield from indented_rows(cells, numbers, max_rows, width, narrow)
        return
    rows = [
        [_bytes(a.bytes), _bytes(a.stored_bytes), _bytes(a.padding) if a.padding else "", a.memory]
        for a in arrays
    ]
    head = ["bytes", "stored", "padding" if any(a.padding for a in arrays) else "", "memory"]

    def own_rows(own: Sequence[list[str]]) -> list[list[str]]:
        body = [row + each for row, each in zip(rows[:max_rows], own, strict=False)]
        return [head + [""] * (len(own[0]) if own else 0), *body]

    others = None if narrow is None else (own_rows(narrow.cells), narrow.omitted)
    yield from _first_that_fits(own_rows(cells), others, range(3), width, len(rows) - max_rows)


def indented_rows(
    cells: Sequence[list[str]],
    numbers: Sequence[str],
    max_rows: int,
    width: int | None = None,
    narrow: Narrow | None = None,
) -> Iterator[str]:
    """Yield indented rows with a right-aligned number first."""

    def own_rows(own: Sequence[list[str]]) -> list[list[str]]:
        return [[number, *row] for number, row in zip(numbers, own, strict=True)][:max_rows]

    others = None
    if narrow is not None and narrow.cells:
        others = ([[*narrow.head]] if narrow.head else []) + own_rows(narrow.cells), narrow.omitted
    right = range(2) if narrow is not None and narrow.head else [0]
    yield from _first_that_fits(own_rows(cells), others, right, width, len(cells) - max_rows)


def _first_that_fits(
    rows: Sequence[list[str]],
    narrow: tuple[Sequence[list[str]], Sequence[str]] | None,
    right: Collection[int],
    width: int | None,
    hidden: int,
) -> Iterator[str]:
    """Yield the indented lines of `rows`, or those of `narrow` if they are too wide."""
    room = None if width is None else width - 2
    omitted: Sequence[str] = ()
    if narrow is not None and room is not None:
        if max(map(len, align_columns(rows, right, 60)), default=0) > room:
            rows, omitted = narrow
    yield from (f"  {line}" for line in fit_columns(rows, right, 60, room))
    if hidden > 0:
        yield f"  … {hidden:,} more"
    yield from [f"  {line}" for line in omitted_lines(omitted)]


def total_text(arrays: Sequence[ArrayRecord]) -> str:
    """Return the sums of the bytes of arrays, and of those in memory if some have padding."""
    sizes = [array.bytes for array in arrays]
    known = sum(size for size in sizes if size is not None)
    unbounded = ", and unbounded arrays" if None in sizes else ""
    padding = sum(array.padding or 0 for array in arrays)
    stored = f", {known + padding:,} stored" if padding else ""
    return f"{known:,} bytes{stored}{unbounded}"


def _bytes(count: int | None) -> str:
    return "unbounded" if count is None else f"{count:,}"


def path_suffix(path: Path) -> str:
    """Return the suffix of a name for the leaf of a tuple."""
    return " {" + ",".join(map(str, path)) + "}" if path else ""


def _layout(shape: AnyShape) -> str | None:
    """Return the layout of an array as text; None if it has none."""
    return str(shape).removeprefix(shape_text(shape)) or None

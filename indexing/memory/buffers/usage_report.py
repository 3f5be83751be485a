"""XLA's report of memory usage, ``MODULE.*_after_optimizations-memory-usage-report.txt``.

For each memory space, it has the bytes of all allocations, and the largest arrays in each.  Sizes
of arrays are rounded: ``1.2KiB``.

Source: XLA ``xla/service/buffer_assignment.cc``, ``BufferAssignment::MemoryUsageReport``.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Final

from hlo.arguments import checked
from hlo.modules.module import Module
from hlo.shapes.shape import AnyShape, Shape, TupleShape, parse_shape
from hlo.text.source import HloError, Source, Span
from indexing.memory.buffers.assignment import OTHER_TABLES, TPU_TABLES
from indexing.memory.buffers.xla_dump import XlaDump
from indexing.memory.spaces import DEFAULT_SPACE, is_for_tpu, space_of

_SPACE: Final = re.compile(r"Memory Space: (\S+) \(color=(\d+)\)$")
_TOTAL: Final = re.compile(r"Total bytes: (\d+) ")
_OTHER: Final = re.compile(r"\s*cumulative_size;|\s*-+$|\s*The rest \d+ values are less than ")
_ROW: Final = re.compile(
    r"\s*\S+\(\s*\S+%\);\s*(?P<size>\S+);\s*\d+;\s*(?P<values>\d+); (?P<shapes>.*)$"
)
_TIMES: Final = re.compile(r"(\d+)×")


@dataclass(frozen=True, slots=True)
class UsageRow:
    """Arrays that share memory, at different times.

    Attributes:
        size: the bytes of the largest, rounded, as text.
        values: their number.
        shapes: their different shapes, without layouts; of a tuple, its table of pointers.
        span: its line in the text; None if there is none.
    """

    size: str
    values: int
    shapes: tuple[AnyShape, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SpaceUsage:
    """The memory that XLA allocates in one memory space.

    Attributes:
        space: its number, which XLA calls color.
        name: its name in the report.
        bytes: the bytes of all allocations.
        rows: what they hold, but for the smallest arrays.
    """

    space: int
    name: str
    bytes: int
    rows: tuple[UsageRow, ...]


@dataclass(frozen=True, slots=True)
class UsageReport(XlaDump):
    """A report of the memory that XLA allocates for a compiled module.

    >>> report = UsageReport.parse('''Memory Space: vmem (color=1)
    ... Total bytes: 4096 (4.0KiB)
    ...   cumulative_size;       size;       offset; used_by_n_values; shapes_list
    ...   ------------------------------------------------------------
    ...      4.0KiB(100%);     4.0KiB;            0;                2; f32[8,128], s32[]
    ... ''')
    >>> report.bytes(1), report.spaces[0].rows[0].values
    (4096, 2)
    >>> [row.size for row in report.rows]
    ['4.0KiB']
    >>> import hlo
    >>> module = hlo.parse("ENTRY e { ROOT p = f32[8,128]{1,0:S(1)} parameter(0) }")
    >>> list(report.mismatches(module)), report.of_another_module(module).label
    ([], '`module_e` has no array s32[] in vmem')
    """

    noun: ClassVar[str] = "report of memory usage"
    ending: ClassVar[str] = "memory-usage-report"
    spaces: tuple[SpaceUsage, ...]

    @classmethod
    @checked
    def parse(cls, text: str, filename: str = "<string>") -> UsageReport:
        """Read the text of a report.

        Raises:
            HloError: the text is not a report of memory usage.
        """
        return cls(tuple(_spaces(Source(text, filename))))

    @checked
    def bytes(self, space: int) -> int:
        """Return the bytes of all allocations of a memory space, with those of threads."""
        return sum(each.bytes for each in self.spaces if each.space == space)

    @property
    def rows(self) -> tuple[UsageRow, ...]:
        """The rows of all memory spaces."""
        return tuple([row for each in self.spaces for row in each.rows])

    @checked
    def of_another_module(self, module: Module) -> HloError | None:
        """Return an error if a module has no array of a shape that the report has.

        The report names no arrays: a module with arrays of the same shapes may be another one.
        """
        sizes = _sizes(module)
        for each in self.spaces:
            for row in each.rows:
                for shape in row.shapes:
                    if row.span is not None and _key(shape, each.space) not in sizes:
                        label = f"`{module.name}` has no array {shape} in {each.name}"
                        return self._mismatch(module, row.span, label)
        return None

    @checked
    def mismatches(self, module: Module) -> Iterator[str]:
        """Yield the rows whose size is that of none of the module's arrays with these shapes."""
        sizes = _sizes(module)
        for each in self.spaces:
            for row in each.rows:
                known = {s for shape in row.shapes for s in sizes.get(_key(shape, each.space), ())}
                if row.size not in map(size_text, known):
                    here = ", ".join(map(size_text, sorted(known))) or "no such array"
                    shapes = ", ".join(map(str, row.shapes))
                    yield f"{row.size} for {shapes} in {each.name}: {here} in {module.name}"


def size_text(size: int) -> str:
    """Return a number of bytes as XLA rounds it.

    Source: TSL ``tsl/platform/numbers.cc``, ``HumanReadableNumBytes``.

    >>> [size_text(size) for size in (512, 1260, 2 << 20)]
    ['512B', '1.2KiB', '2.00MiB']
    """
    if size < 1024:
        return f"{size}B"
    unit = 0
    while size >= 1 << 20:
        size, unit = size // 1024, unit + 1
    return f"{size / 1024:.{2 if unit else 1}f}{'KMGTPE'[unit]}iB"


def _sizes(module: Module) -> dict[Hashable, set[int]]:
    """Return the bytes of the arrays, and of the tables of pointers, by shape without layout."""
    sizes: dict[Hashable, set[int]] = {}
    tables = TPU_TABLES if is_for_tpu(module) else OTHER_TABLES

    def add(shape: AnyShape) -> None:
        if isinstance(shape, TupleShape):
            count = len(shape.elements)
            known = sizes.setdefault(_key(shape, DEFAULT_SPACE), set())
            known.update(table.bytes(count) for table in tables)
            for element in shape.elements:
                add(element)
        elif isinstance(shape, Shape):
            sizes.setdefault(_key(shape, space_of(shape)), set()).add(shape.physical_bytes)

    for shape in dict.fromkeys([instruction.shape for instruction in module.instructions]):
        add(shape)
    return sizes


def _key(shape: AnyShape, space: int) -> Hashable:
    """Return what decides on the size of an array in a module, but for its layout."""
    if isinstance(shape, TupleShape):
        return len(shape.elements)
    return (shape.element_type, shape.dims, space) if isinstance(shape, Shape) else None


# ---------------------------------------------------------------- reading


def _spaces(source: Source) -> Iterator[SpaceUsage]:
    """Yield the memory spaces of a text."""
    head: re.Match[str] | None = None
    total, rows, position = 0, list[UsageRow](), 0
    for line in source.text.split("\n"):
        span = source.span(position, position + max(len(line), 1))
        position += len(line) + 1
        line = line.rstrip("\r")
        if opened := _SPACE.match(line):
            if head is not None:
                yield SpaceUsage(int(head[2]), head[1], total, tuple(rows))
            head, total, rows = opened, 0, []
        elif head is None:
            label = "expected `Memory Space: NAME (color=N)`, as XLA dumps it"
            raise HloError("this is no report of memory usage", span, label=label)
        elif size := _TOTAL.match(line):
            total = int(size[1])
        elif row := _ROW.match(line):
            rows.append(UsageRow(row["size"], int(row["values"]), _shapes(row, span), span))
        elif line.strip() and not _OTHER.match(line):
            label = "expected the total of a memory space, or arrays with their size"
            raise HloError("this line is not part of a report of memory usage", span, label=label)
    if head is not None:
        yield SpaceUsage(int(head[2]), head[1], total, tuple(rows))


def _shapes(row: re.Match[str], span: Span) -> tuple[AnyShape, ...]:
    """Return the shapes of a row; `2×f32[8]` is one of them."""
    texts, depth, start = [], 0, 0
    text = row["shapes"]
    for place, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 0 and text.startswith(", ", place):
            texts.append(text[start:place])
            start = place + 2
    try:
        return tuple([parse_shape(_TIMES.sub("", each, 1)) for each in [*texts, text[start:]]])
    except HloError as error:
        raise HloError(error.message, span, error.code, label=error.label) from None

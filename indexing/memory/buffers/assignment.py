"""XLA's buffer assignment, as it dumps it: ``MODULE.*_after_optimizations-buffer-assignment.txt``.

Source: XLA ``xla/service/buffer_assignment.cc``, ``BufferAllocation::ToString``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, NamedTuple

from hlo.arguments import checked
from hlo.modules.module import Module
from hlo.shapes.shape import AnyShape, Shape, TupleShape, leaves, parse_shape
from hlo.text.source import HloError, Source, Span
from indexing.maps.arrays import ArrayRef, Path, array_at, array_name
from indexing.memory.buffers.xla_dump import XlaDump
from indexing.memory.spaces import is_for_tpu

TITLE: Final = "BufferAssignment:"
_ALLOCATION: Final = re.compile(r"allocation (\d+): size (\d+)((?:, .*)?):$")
_VALUE: Final = re.compile(
    r" value: <\d+ (?P<name>[^ {]+)(?:\{(?P<path>[\d,]*)\})?(?: \(phi\))? @\d+> "
    r"\(size=(?P<size>\d+),offset=(?P<offset>\d+)\): (?P<shape>.*)$"
)
_PARAMETER: Final = re.compile(r"parameter (\d+), shape \|[^|]*\| at ShapeIndex \{([\d, ]*)\}")
_SPACE: Final = re.compile(r", color (\d+)")


@dataclass(frozen=True, slots=True)
class AssignedValue:
    """The place of an array, or of the table of pointers of a tuple.

    Attributes:
        name: the name of the instruction that writes it.
        path: the leaf of the instruction's value.
        size, offset: its bytes, and those before it in the allocation.
        shape: the shape of the leaf; a tuple's for a table of pointers.
        span: where the name is in the text; None if there is none.
    """

    name: str
    path: Path
    size: int
    offset: int
    shape: AnyShape
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Allocation:
    """Memory that XLA allocates as one piece.

    Attributes:
        number: its number.
        size: its bytes.
        space: the memory space, which XLA calls color.
        parameter: the number of the parameter of ENTRY, and the leaf that it holds; or None.
        is_output, is_constant, is_thread_local, is_temporary: what it is for.
        values: what it holds, at different times.
    """

    number: int
    size: int
    space: int
    parameter: tuple[int, Path] | None
    is_output: bool
    is_constant: bool
    is_thread_local: bool
    is_temporary: bool
    values: tuple[AssignedValue, ...]


@dataclass(frozen=True, slots=True)
class BufferAssignment(XlaDump):
    """The allocations of a compiled module.

    >>> assignment = BufferAssignment.parse('''BufferAssignment:
    ... allocation 0: size 512, parameter 0, shape |f32[]| at ShapeIndex {}:
    ...  value: <3 p.1 @0> (size=512,offset=0): f32[]{:T(128)}
    ... ''')
    >>> assignment.allocations[0].parameter, assignment.bytes(0)
    ((0, ()), 512)
    >>> assignment.spaces, assignment.thread_bytes(0), [each.name for each in assignment.values]
    ([0], 0, ['p.1'])
    >>> import hlo
    >>> module = hlo.parse("ENTRY e { ROOT p.1 = f32[] parameter(0) }")
    >>> assignment.of_another_module(module) is None, *assignment.mismatches(module)
    (True, 'p.1 has 4 bytes here, 512 as assigned')
    """

    noun: ClassVar[str] = "buffer assignment"
    ending: ClassVar[str] = "buffer-assignment"
    allocations: tuple[Allocation, ...]
    title: Span | None = field(default=None, compare=False, repr=False)

    @classmethod
    @checked
    def parse(cls, text: str, filename: str = "<string>") -> BufferAssignment:
        """Read the text of a buffer assignment.

        Raises:
            HloError: the text is not a buffer assignment.
        """
        source = Source(text, filename)
        return cls(tuple(_allocations(source)), source.span(0, len(TITLE)))

    @property
    def spaces(self) -> list[int]:
        """The numbers of the memory spaces."""
        return sorted({each.space for each in self.allocations})

    @checked
    def bytes(self, space: int) -> int:
        """Return the bytes of all allocations of a memory space, but those of threads.

        The latter hold what the computations of reductions and the like compute.
        """
        return sum(a.size for a in self.allocations if a.space == space and not a.is_thread_local)

    @checked
    def thread_bytes(self, space: int) -> int:
        """Return the bytes of a memory space for what threads hold: scalars of reductions."""
        return sum(a.size for a in self.allocations if a.space == space and a.is_thread_local)

    @property
    def values(self) -> tuple[AssignedValue, ...]:
        """The arrays and tables of pointers of all allocations, but those of threads."""
        kept = [each for each in self.allocations if not each.is_thread_local]
        return tuple([value for each in kept for value in each.values])

    @checked
    def of_another_module(self, module: Module) -> HloError | None:
        """Return an error if an array is not in a module, or a parameter not in the assignment.

        The text of a module may omit the computations of asynchronous instructions: an array of
        such a computation is a leaf of the start, which has no place of its own.
        """
        named = {each.name: each for each in module.instructions}
        wrapped = _unassigned_shapes(module, self.values)
        for value in self.values:
            holder = named.get(value.name)
            shape = None if holder is None else _shape_at(holder.shape, value.path)
            is_known = _is_like(shape, value.shape) or (holder is None and value.shape in wrapped)
            if value.span is not None and not is_known:
                here = "no such array" if shape is None else str(shape)
                label = f"`{module.name}` has {here}, the assignment {value.shape}"
                return self._mismatch(module, value.span, label)
        given = {allocation.parameter for allocation in self.allocations}
        for number, parameter in enumerate(module.entry.parameters):
            for path, shape in leaves(parameter.shape):
                if self.title and isinstance(shape, Shape) and (number, path) not in given:
                    name = array_name(ArrayRef(parameter, path))
                    label = f"nothing is allocated for parameter {number} `{name}`"
                    return self._mismatch(module, self.title, label)
        return None

    @checked
    def mismatches(self, module: Module) -> Iterator[str]:
        """Yield the arrays whose sizes differ from those in a module, or that it does not have.

        The tables of pointers of tuples are compared, too.
        """
        named = {each.name: each for each in module.instructions}
        tables = _fitting_tables(self.values, module)
        for value in self.values:
            instruction = named.get(value.name)
            shape = None if instruction is None else _shape_at(instruction.shape, value.path)
            if instruction is None or shape is None or type(shape) is not type(value.shape):
                yield f"{value.name} is no array of {module.name}"
                continue
            size = _bytes(shape, tables)
            if size is not None and size != value.size:
                name = array_name(ArrayRef(instruction, value.path))
                yield f"{name} has {size:,} bytes here, {value.size:,} as assigned"


class PointerTable(NamedTuple):
    """The table of pointers of a tuple: the bytes of a pointer, and the alignment of a table.

    >>> PointerTable(4, 512).bytes(129), PointerTable(8, 1).bytes(3)
    (1024, 24)
    """

    pointer: int
    alignment: int

    def bytes(self, elements: int) -> int:
        """Return the bytes of the table of a tuple with this number of elements."""
        return -(-self.pointer * elements // self.alignment) * self.alignment


TPU_TABLES: Final = (PointerTable(4, 512), PointerTable(4, 32))
"""Tables of TPUs: of v4 and v5e, and of v5p and v6e.  Source: what libtpu 0.0.42 assigns to tuples
of 1 to 257 elements."""
OTHER_TABLES: Final = (PointerTable(8, 1),)
"""Tables of CPUs and GPUs.  Source: XLA ``ShapeUtil::ByteSizeOfTupleIndexTable``."""


def _fitting_tables(values: Sequence[AssignedValue], module: Module) -> PointerTable:
    """Return the tables that fit the most tuples: a module does not name its kind of TPU."""
    tuples = [(v.shape, v.size) for v in values if isinstance(v.shape, TupleShape)]

    def fitting(tables: PointerTable) -> int:
        return sum(tables.bytes(len(shape.elements)) == size for shape, size in tuples)

    return max(TPU_TABLES if is_for_tpu(module) else OTHER_TABLES, key=fitting)


def _shape_at(shape: AnyShape, path: Path) -> AnyShape | None:
    """Return the shape at a path, which may be a tuple; None if there is none."""
    for number in path:
        if not isinstance(shape, TupleShape) or number >= len(shape.elements):
            return None
        shape = shape.elements[number]
    return array_at(shape, ()) or shape


def _unassigned_shapes(module: Module, values: Sequence[AssignedValue]) -> set[AnyShape]:
    """Return the shapes of leaves of tuples that have no place in an assignment."""
    assigned = {(value.name, value.path) for value in values}
    return {
        leaf
        for each in module.instructions
        if isinstance(each.shape, TupleShape)
        for path, leaf in leaves(each.shape)
        if (each.name, path) not in assigned
    }


def _is_like(shape: AnyShape | None, assigned: AnyShape) -> bool:
    """Return True for an array of the assigned shape; the text of a module may omit layouts."""
    if not isinstance(shape, Shape) or not isinstance(assigned, Shape):
        return type(shape) is type(assigned)
    has_layout = shape.layout is not None
    return shape == (assigned if has_layout else replace(assigned, layout=None))


def _bytes(shape: AnyShape, tables: PointerTable) -> int | None:
    """Return the bytes of an array or of a table of pointers; None for tokens and the like."""
    if isinstance(shape, TupleShape):
        return tables.bytes(len(shape.elements))
    return shape.physical_bytes if isinstance(shape, Shape) else None


def _allocations(source: Source) -> Iterator[Allocation]:
    """Yield the allocations of a text."""
    head: re.Match[str] | None = None
    values: list[AssignedValue] = []
    position, lines = 0, source.text.split("\n")
    if not lines[0].startswith(TITLE):
        span = source.span(0, max(len(lines[0]), 1))
        label = f"expected `{TITLE}`, as XLA dumps it"
        raise HloError("this is no buffer assignment", span, label=label)
    for line in lines:
        span = source.span(position, position + max(len(line), 1))
        position += len(line) + 1
        line = line.rstrip("\r")
        if line.startswith(TITLE):
            continue
        if not line.strip():
            break  # a summary follows
        if (value := _VALUE.match(line)) and head is not None:
            values.append(_value(value, span.start, source))
        elif opened := _ALLOCATION.match(line):
            if head is not None:
                yield _allocation(head, values)
            head, values = opened, []
        else:
            label = "expected an allocation, or a value with its size and offset"
            raise HloError("this line is not part of a buffer assignment", span, label=label)
    if head is not None:
        yield _allocation(head, values)


def _value(match: re.Match[str], start: int, source: Source) -> AssignedValue:
    try:
        shape = parse_shape(match["shape"])
    except HloError as error:
        at = start + match.start("shape")
        span = source.span(at + error.span.start, at + error.span.end)
        raise HloError(error.message, span, error.code, label=error.label) from None
    return AssignedValue(
        match["name"],
        _path(match["path"]),
        int(match["size"]),
        int(match["offset"]),
        shape,
        source.span(start + match.start("name"), start + match.end("name")),
    )


def _allocation(head: re.Match[str], values: list[AssignedValue]) -> Allocation:
    flags = head[3]
    given, space = _PARAMETER.search(flags), _SPACE.search(flags)
    return Allocation(
        int(head[1]),
        int(head[2]),
        int(space[1]) if space else 0,
        (int(given[1]), _path(given[2])) if given else None,
        "maybe-live-out" in flags,
        ", constant" in flags,
        "thread-local" in flags,
        "preallocated-temp" in flags,
        tuple(values),
    )


def _path(text: str | None) -> Path:
    return tuple([int(number) for number in (text or "").split(",") if number.strip()])

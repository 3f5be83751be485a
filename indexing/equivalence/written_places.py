"""Places in memory that a loop reads while it writes others.

An array is written from a byte on, and another is read from a byte on, possibly with elements of
another size.  A cell is the place of an element that is written: a read of bytes in a cell that
another element writes is a violation.

>>> from hlo import parse_shape
>>> from indexing import IndexingMap
>>> result, operand = parse_shape("f32[4]"), parse_shape("f32[6]")
>>> reads = IndexingMap.over((4,), lambda d: [d[0] + 2])
>>> first_violation([reads], Written(result, operand)).element
(2,)
>>> first_violation([reads], Written(result, operand, offset=8)) is None
True
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import gcd

from hlo.shapes.shape import Shape
from hlo.shapes.tiling import extent, index_at
from indexing.equivalence.verdicts import ElementIndex, Undecided
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.layouts import physical_map
from simplifier import exact
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact import unions
from simplifier.linear import Expr, as_expr
from simplifier.unknown import Unknown


@dataclass(frozen=True, slots=True)
class Written:
    """An array that is written, and one that is read, in one piece of memory.

    Attributes:
        result: the shape of the array that is written.
        operand: the shape of the array that is read.
        offset: the first byte of the result, counted from that of the operand.
    """

    result: Shape
    operand: Shape
    offset: int = 0

    @property
    def unit(self) -> int:
        """The bits of which elements of both, and what is between their first bits, are multiples.

        >>> from hlo import parse_shape
        >>> Written(parse_shape("f32[4]"), parse_shape("bf16[8]"), offset=4).unit
        16
        """
        return gcd(self.result.element_bits, self.operand.element_bits, 8 * self.offset)

    @property
    def is_same_place(self) -> bool:
        """True if both arrays take the same bytes."""
        return not self.offset and self.result.physical_bytes == self.operand.physical_bytes

    def writer(self, cell: int) -> ElementIndex | None:
        """Return the element that is written to a cell; None for padding."""
        return index_at(cell, self.result.dims, self.result.layout_or_default)

    def element(self, place: int) -> ElementIndex | None:
        """Return the element of the operand at a place, in elements; None for padding."""
        return index_at(place, self.operand.dims, self.operand.layout_or_default)


@dataclass(frozen=True, slots=True)
class OverwrittenElement:
    """A point that reads an element in a cell that another point writes.

    Attributes:
        point: the index of the element that is computed.
        element: the element that is read.
        writer: the element that is written to its place; None for padding.
    """

    point: ElementIndex
    element: ElementIndex
    writer: ElementIndex | None


def first_violation(
    maps: Iterable[IndexingMap], written: Written, in_loop: bool = True
) -> OverwrittenElement | Undecided | None:
    """Return a point that reads an element in another cell than its own; None without any.

    If the reads depend on a value, there must be such a point for each value.

    Args:
        maps: from the elements that are computed to those of the operand that they read.
        in_loop: each point writes to its own cell, from which it may read; otherwise a read of any
            cell is a violation.
    """
    undecided: Undecided | None = None
    by_value: dict[tuple[object, int, int], list[_CellReads]] = {}
    for m in maps:
        reads = _CellReads(m, written, in_loop)
        violation = reads.violation
        if violation is None:
            continue
        if isinstance(violation, Unknown):
            undecided = Undecided(str(violation))
        elif m.grade == "may":
            undecided = Undecided(f"which elements are read is over-approximated: {m}")
        elif m.runtime:
            undecided = Undecided(f"which elements are read depends on values: {m}")
            if reads.value is not None:
                by_value.setdefault(reads.value, []).append(reads)
        else:
            return violation
    for (_, first, last), every in by_value.items():
        relations = [each for reads in every for each in reads.values()]
        if unions.uncovered_point(relations, (Variable("value", first, last),)) is None:
            assert isinstance(every[0].violation, OverwrittenElement)
            return every[0].violation
    return undecided


class _CellReads:
    """The reads of a map, in a loop those of other cells than that of the point."""

    def __init__(self, m: IndexingMap, written: Written, in_loop: bool) -> None:
        here, there = physical_map(written.result), physical_map(written.operand)
        placed = m.then(there)
        self.map, self.written = m, written
        self.dims = (*placed.dims, *[rt.variable for rt in placed.runtime])
        bits = written.unit
        read, wrote = written.operand.element_bits // bits, written.result.element_bits // bits
        last = extent(written.operand.dims, written.operand.layout_or_default) - 1
        self.cells = extent(written.result.dims, written.result.layout_or_default)
        self.place, piece = Variable("place", 0, last), Variable("piece", 0, read - 1)
        self.hidden = (*[v for v in placed.variables if v not in self.dims], piece)
        unit = self.place * read + piece - 8 * written.offset // bits
        self.cell = unit // wrote
        self.constraints = (
            *placed.constraints,
            Constraint(placed.results[0] - self.place, 0, 0),
            Constraint(unit, 0, self.cells * wrote - 1),
        )
        self.own: Expr = as_expr(-1)  # no cell
        if in_loop:
            point = dict(zip(here.dims, [d.as_expr() for d in placed.dims], strict=True))
            (self.own,), _ = here.substituted(point)

    @cached_property
    def violation(self) -> OverwrittenElement | Unknown | None:
        """A point with an element that it reads in a cell."""
        inputs = (*self.dims, self.place)
        reads = exact.Relation(inputs, self.hidden, (self.cell,), self.constraints)
        point = unions.only_first([reads], [exact.Relation(inputs, (), (self.own,), ())])
        if point is None or isinstance(point, Unknown):
            return point
        element = self.written.element(point[len(self.dims)])
        assert element is not None  # a map leads to elements, not to padding
        return OverwrittenElement(
            tuple(point[: len(self.map.dims)]), element, self.written.writer(point[-1])
        )

    @property
    def value(self) -> tuple[object, int, int] | None:
        """The scalar on which the reads depend, with its bounds; None for other dependencies."""
        if len(self.map.runtime) != 1:
            return None
        (source,) = self.map.runtime
        if source.index or source.clamp is None:
            return None  # each point may have a value of its own
        return source.array, *source.clamp

    def values(self) -> Iterator[exact.Relation]:
        """Yield relations whose results are the values with which there is a violation."""
        (value,) = self.map.runtime
        inputs = (*self.dims, self.place, *self.hidden)
        for low, high in ((1, self.cells), (-self.cells, -1)):
            other = Constraint(self.cell - self.own, low, high)
            results = (value.variable.as_expr(),)
            yield exact.Relation((), inputs, results, (*self.constraints, other))

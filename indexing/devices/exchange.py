"""Data movement of a collective: the source device and the source index of each element.

A device has a position in its group.  Position p (the source) sends an element to position q (the
target).  If the result is split along a dimension, position p sends part p of the result.  If the
operand is split, position q receives part q of the operand:

| op | result | operand | from | to |
|---|---|---|---|---|
| all-reduce           | whole | whole | every position | every position |
| all-gather           | split | whole | every position | every position |
| reduce-scatter       | whole | split | every position | every position |
| all-to-all           | split | split | every position | every position |
| all-to-all of tuples | whole | whole | the result's number | the operand's number |
| collective-broadcast | whole | whole | position 0     | every position |

`Exchange.maps` uses these facts in both directions: from the result, and, for the inverse exchange,
from the operand.

Source: XLA ``docs/operation_semantics.md``, "AllReduce", "AllGather", "ReduceScatter", "AllToAll"
and "CollectiveBroadcast".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple

from hlo.shapes.shape import Shape
from indexing.devices.devices import Devices
from indexing.devices.groups import DeviceGroup
from indexing.devices.strided_groups import Link, links
from indexing.maps.indexing_map import Grade, IndexingMap, dims
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Affine, as_expr


@dataclass(frozen=True, slots=True)
class Exchange:
    """Movement of elements of one operand into one result, within a group.

    Attributes:
        dimension: the dimension that is split; None if none is.
        splits_result, splits_operand: the result has one part for each source, the operand one
            part for each target.
        source, target: the only position that sends, and that receives; None for all positions.
        any_element: any element on any device of the group may be needed.
        group_size: the required number of devices of a group; None if any number is valid.
        grade: "may" if some participants do not need what they receive.
    """

    dimension: int | None = None
    splits_result: bool = False
    splits_operand: bool = False
    source: int | None = None
    target: int | None = None
    any_element: bool = False
    group_size: int | None = None
    grade: Grade = "exact"

    @property
    def inverse(self) -> Exchange:
        """The exchange in the opposite direction: sources and targets swapped."""
        return replace(
            self,
            splits_result=self.splits_operand,
            splits_operand=self.splits_result,
            source=self.target,
            target=self.source,
        )

    def mismatch(self, result: Shape, operand: Shape, participants: Participants) -> str:
        """Reason why the shapes do not fit the sizes of the groups; empty if they do."""
        widths = dict.fromkeys(len(row) for row, _ in participants.pairs)
        for width in widths:
            if self.group_size not in (None, width):
                return f"{self.group_size} operands for groups of {width} devices"
        if self.dimension is None:
            return ""
        if self.dimension >= min(result.rank, operand.rank):
            return f"the operand has no dimension {self.dimension}"
        sizes = [shape.dims[self.dimension] for shape in (result, operand)]
        for width in widths:
            if self.splits_result and self.splits_operand:
                fits = sizes[0] % width == 0
            else:
                whole, part = sizes if self.splits_result else reversed(sizes)
                fits = whole == part * width
            if not fits:
                return (
                    f"dimension {self.dimension} has {sizes[1]} elements in the operand and "
                    f"{sizes[0]} in the result, which does not fit groups of {width} devices"
                )
        return ""

    def maps(
        self, start: Shape, end: Shape, participants: Participants, devices: Devices
    ) -> tuple[IndexingMap, ...]:
        """Maps from the result's elements (`start`) to the operand's (`end`), disjoint.

        >>> participants = Participants.of([(0, 1), (2, 3)])
        >>> gather = Exchange(dimension=0, splits_result=True)
        >>> whole, part = Shape("f32", (6,)), Shape("f32", (3,))
        >>> (gather_map,) = gather.maps(whole, part, participants, Devices(num_partitions=4))
        >>> print(gather_map.simplify())
        (device, d0) -> ((device floordiv 2) * 2 + d0 floordiv 3, d0 mod 3),
        domain: device in [0, 3], d0 in [0, 5]
        """
        start_ordered = self.splits_operand or self.target is not None
        end_ordered = self.splits_result or self.source is not None
        pieces = [
            self._map(link, dims(start), end, devices.variable)
            for link in _links(participants, start_ordered, end_ordered)
        ]
        return tuple([piece for piece in pieces if not piece.is_known_empty])

    def _map(
        self, link: Link, d: tuple[Variable, ...], end: Shape, device: Variable
    ) -> IndexingMap:
        row, position, constraints = link.start.locate(device)
        index: list[Affine] = list(d)
        free: list[Variable] = []
        other: Affine
        if self.target is not None:
            constraints = (*constraints, Constraint(position, self.target, self.target))
        if self.splits_result:
            assert self.dimension is not None
            cut = d[self.dimension]
            size = (cut.upper + 1) // link.width
            other, index[self.dimension] = cut // size, cut % size
        elif self.source is not None:
            other = self.source
        else:
            other = Variable("s0", link.end.first, link.end.first + link.end.width - 1)
            free.append(other)
        if self.splits_operand:
            assert self.dimension is not None
            size = end.dims[self.dimension] // link.width
            index[self.dimension] = index[self.dimension] + position * size
        if self.any_element:
            anything = [
                Variable(f"s{k}", 0, size - 1) for k, size in enumerate(end.dims, len(free))
            ]
            free += anything
            index = list(anything)
        bounds = link.end.first, link.end.first + link.end.width - 1
        every = (*constraints, Constraint(as_expr(other), *bounds))
        return IndexingMap.of(
            (device, *d),
            [link.end.device(row, other), *index],
            ranges=free,
            constraints=[c for c in every if not c.is_true],
            grade="may" if self.any_element else self.grade,
        )


class Participants(NamedTuple):
    """The devices that participate: targets and sources of each group, in order of position."""

    pairs: tuple[tuple[DeviceGroup, DeviceGroup], ...]

    @classmethod
    def of(cls, groups: Sequence[DeviceGroup]) -> Participants:
        """Return participants that all send and receive."""
        return cls(tuple([(group, group) for group in groups]))

    @property
    def inverse(self) -> Participants:
        """The participants with targets and sources swapped."""
        return Participants(tuple([(source, target) for target, source in self.pairs]))


@lru_cache(maxsize=1 << 8)
def _links(participants: Participants, start_ordered: bool, end_ordered: bool) -> tuple[Link, ...]:
    """The smallest set of links.  Positions on a side that is not ordered may be permuted."""
    candidates = [tuple(links(participants.pairs))]
    if not (start_ordered and end_ordered):
        sorted_rows = [
            (_row(start, start_ordered), _row(end, end_ordered))
            for start, end in participants.pairs
        ]
        candidates.insert(0, tuple(links(sorted_rows)))
    return min(candidates, key=len)


def _row(row: DeviceGroup, ordered: bool) -> DeviceGroup:
    return row if ordered else tuple(sorted(row))


ANY_ELEMENT: Final = Exchange(any_element=True)
"""Any element on any device may be needed, independent of the groups."""

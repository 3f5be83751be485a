"""What a collective moves: from which device, and from which part of its operand.

In a group of n devices, an element goes from place p (the source) to place q (the target).  Where
the result is cut along a dimension, its part p comes from place p; where the operand is cut, its
part q goes to place q:

| op | result | operand | from | to |
|---|---|---|---|---|
| all-reduce           | whole | whole | every place | every place |
| all-gather           | cut   | whole | every place | every place |
| reduce-scatter       | whole | cut   | every place | every place |
| all-to-all           | cut   | cut   | every place | every place |
| all-to-all of tuples | whole | whole | the result's number | the operand's number |
| collective-broadcast | whole | whole | place 0     | every place |

The same four facts read backward (`Exchange.maps` from the result) and forward (from the operand).
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
    """How elements of one operand come into one result, within a group.

    Attributes:
        dimension: the dimension that is cut; None where none is.
        splits_result, splits_operand: it is cut into a part for each source, for each target.
        source, target: the only place that sends, that receives; None for all.
        any_element: all that is known is the group: any element may be needed.
        group_size: how many devices a group has to have; None where that is not said.
        grade: "may" where not all who take part need what they are sent.
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
        """The exchange that takes the elements back: source and target change places."""
        return replace(
            self,
            splits_result=self.splits_operand,
            splits_operand=self.splits_result,
            source=self.target,
            target=self.source,
        )

    def mismatch(self, result: Shape, operand: Shape, rows: Participants) -> str:
        """Why groups of these sizes cannot do it; empty if they can."""
        widths = dict.fromkeys(len(row) for row, _ in rows.pairs)
        for width in widths:
            if self.group_size not in (None, width):
                return f"there are {self.group_size} operands for groups of {width} devices"
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
        self, start: Shape, end: Shape, rows: Participants, devices: Devices
    ) -> tuple[IndexingMap, ...]:
        """From the result's elements (`start`) to the operand's (`end`), in disjoint pieces.

        >>> rows = Participants.of([(0, 1), (2, 3)])
        >>> gather = Exchange(dimension=0, splits_result=True)
        >>> whole, part = Shape("f32", (6,)), Shape("f32", (3,))
        >>> (found,) = gather.maps(whole, part, rows, Devices(num_partitions=4))
        >>> print(found.simplify())
        (device, d0) -> ((device floordiv 2) * 2 + d0 floordiv 3, d0 mod 3),
        domain: device in [0, 3], d0 in [0, 5]
        """
        needs_place = self.splits_operand or self.target is not None
        finds_place = self.splits_result or self.source is not None
        found = _links(rows, needs_place, finds_place)
        made = [self._map(link, dims(start), end, devices.variable) for link in found]
        return tuple([each for each in made if not each.is_known_empty])

    def _map(
        self, link: Link, d: tuple[Variable, ...], end: Shape, device: Variable
    ) -> IndexingMap:
        row, place, constraints = link.start.position(device)
        index: list[Affine] = list(d)
        free: list[Variable] = []
        other: Affine
        if self.target is not None:
            constraints = (*constraints, Constraint(place, self.target, self.target))
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
            index[self.dimension] = index[self.dimension] + place * size
        if self.any_element:
            wanted = [Variable(f"s{k}", 0, size - 1) for k, size in enumerate(end.dims, len(free))]
            free += wanted
            index = list(wanted)
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
    """The devices that take part: for each group its targets and its sources, in order of place."""

    pairs: tuple[tuple[DeviceGroup, DeviceGroup], ...]

    @classmethod
    def of(cls, groups: Sequence[DeviceGroup]) -> Participants:
        """Groups whose devices all send and receive."""
        return cls(tuple([(group, group) for group in groups]))

    @property
    def inverse(self) -> Participants:
        """Targets for sources and sources for targets."""
        return Participants(tuple([(source, target) for target, source in self.pairs]))


@lru_cache(maxsize=1 << 8)
def _links(rows: Participants, start_ordered: bool, end_ordered: bool) -> tuple[Link, ...]:
    """The fewest formulas; the order within a group counts only where it is said to."""
    tried = [tuple(links(rows.pairs))]
    if not (start_ordered and end_ordered):
        either = [(_row(start, start_ordered), _row(end, end_ordered)) for start, end in rows.pairs]
        tried.insert(0, tuple(links(either)))
    return min(tried, key=len)


def _row(row: DeviceGroup, ordered: bool) -> DeviceGroup:
    return row if ordered else tuple(sorted(row))


ANY_ELEMENT: Final = Exchange(any_element=True)
"""Any element of any device may be needed, whatever the groups are."""

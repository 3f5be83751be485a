"""Halos: the elements of neighbouring shards that a device needs.

Shard p of a result needs the elements ``start_p … start_p + length − 1`` of an operand, which are
in a few shards. Each collective-permute sends a slab, the part of a shard that some device needs
of the shard at one distance. Elements outside of the array become a given value.

>>> for slab in Halo((-1, 3), length=6, size=8, local=4).slabs:  # windows of 3 elements, 2 shards
...     print(slab)
Slab(sources=(None, 0), low=3, high=4)
Slab(sources=(0, 1), low=0, high=4)
Slab(sources=(1, None), low=0, high=1)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hlo.shapes.shape import Shape
from indexing.sharding.partition.masks import compare
from indexing.sharding.partition.moves import Axes, array_bytes
from indexing.sharding.partition.reshard import permute_values
from indexing.sharding.partition.writer import LocalBody, LocalValue


class Slab(NamedTuple):
    """The part of shards that one collective-permute sends.

    Attributes:
        sources: for each shard of the result, the shard that it needs the part of, or None.
        low, high: the first element of the part, and the one after the last.
    """

    sources: tuple[int | None, ...]
    low: int
    high: int

    @property
    def is_local(self) -> bool:
        """True if devices need the part only of their own shards."""
        return all(source in (None, shard) for shard, source in enumerate(self.sources))

    def joins(self, other: Slab) -> bool:
        """Return True if one collective-permute can send both."""
        if (self.low, self.high) != (other.low, other.high):
            return False
        pairs = list(zip(self.sources, other.sources, strict=True))
        sent = [source for pair in pairs for source in pair if source is not None]
        return all(None in pair for pair in pairs) and len(set(sent)) == len(sent)

    def join_slab(self, other: Slab) -> Slab:
        """Return the slab that sends both."""
        pairs = zip(self.sources, other.sources, strict=True)
        sources = tuple(second if first is None else first for first, second in pairs)
        return self._replace(sources=sources)


class Halo(NamedTuple):
    """The elements of one dimension of an operand that shards of the result need.

    Attributes:
        starts: the first element, for each shard.
        length: the number of elements.
        size: the size of the dimension; elements outside of it are padding of the op.
        local: the size of a shard of the operand.
    """

    starts: tuple[int, ...]
    length: int
    size: int
    local: int

    @property
    def slabs(self) -> list[Slab]:
        """The slabs that shards need, in the order of their distance where they have one."""
        by_distance: dict[int, list[tuple[int, int, int]]] = {}
        for shard, start in enumerate(self.starts):
            first, last = max(start, 0), min(start + self.length, self.size) - 1
            inside = range(first // self.local, last // self.local + 1) if first <= last else ()
            for source in inside:
                low = max(first - source * self.local, 0)
                high = min(last - source * self.local, self.local - 1) + 1
                by_distance.setdefault(source - shard, []).append((shard, low, high))
        slabs: list[Slab] = []
        for distance, parts in sorted(by_distance.items()):
            needing = {shard for shard, _, _ in parts}
            sources = tuple(shard + distance if shard in needing else None
                            for shard in range(len(self.starts)))  # fmt: skip
            slab = Slab(sources, min(low for _, low, _ in parts), max(high for *_, high in parts))
            other = next((each for each in slabs if each.joins(slab)), None)
            if other is None:
                slabs.append(slab)
            else:
                slabs[slabs.index(other)] = other.join_slab(slab)
        return slabs

    @property
    def is_cheaper_than_gather(self) -> bool:
        """True if devices send fewer elements than to gather the whole dimension."""
        sent = sum(slab.high - slab.low for slab in self.slabs if not slab.is_local)
        return sent < (len(self.starts) - 1) * self.local

    @property
    def has_padding(self) -> bool:
        """True if shards need elements outside of the array."""
        return min(self.starts) < 0 or max(self.starts) + self.length > self.size

    def positions(self, slab: Slab) -> list[int | None]:
        """Return for each shard the position of a slab among the elements that it needs."""
        return [
            None if source is None else source * self.local + slab.low - start
            for source, start in zip(slab.sources, self.starts, strict=True)
        ]


def exchange_halo(
    body: LocalBody, value: LocalValue, dim: int, halo: Halo, axes: Axes, fill: LocalValue | None
) -> LocalValue:
    """Return the elements that a shard of the result needs, along one dimension.

    Args:
        axes: the axes that split the dimension.
        fill: the value of elements outside of the array; None for any value.
    """
    parts = [(slab, _receive_slab(body, value, dim, slab, axes)) for slab in halo.slabs]
    joined = _adjacent(body, dim, halo, parts) or _place_slabs(
        body, value.array, dim, halo, axes, parts
    )
    if fill is None or not halo.has_padding:
        return joined
    dims = joined.array.dims
    starts = body.by_number(axes, halo.starts)
    places = body.scalar_op("add", body.iota(dims, dim), body.broadcast(starts, dims))
    low = compare(body, places, "GE", body.broadcast(body.index(0), dims))
    high = compare(body, places, "LT", body.broadcast(body.index(halo.size), dims))
    inside = body.scalar_op("and", low, high)
    return body.add("select", joined.shape, (inside, joined, body.broadcast(fill, dims)))


def _receive_slab(
    body: LocalBody, value: LocalValue, dim: int, slab: Slab, axes: Axes
) -> LocalValue:
    """Return the slab of the shards that devices need."""
    part = body.cut(value, dim, slab.low, slab.high)
    if slab.is_local:
        return part
    pairs = [
        (group[source], group[shard])
        for group in body.mesh.groups(axes)
        for shard, source in enumerate(slab.sources)
        if source is not None
    ]
    sent = array_bytes(part.array.element_type, part.array.dims)
    return permute_values(body, part, tuple(sorted(pairs)), sent, axes)


def _adjacent(
    body: LocalBody, dim: int, halo: Halo, parts: Sequence[tuple[Slab, LocalValue]]
) -> LocalValue | None:
    """Return the slabs side by side, if their positions are the same on all devices."""
    end: int | None = None
    first = 0
    for slab, _ in parts:
        positions = set(halo.positions(slab)) - {None}
        if len(positions) > 1 or (end is not None and positions != {end}):
            return None
        (position,) = positions
        assert position is not None
        first = position if end is None else first
        end = position + slab.high - slab.low
    if end is None:
        return None
    values = [part for _, part in parts]
    shape = values[0].array
    dims = tuple(end - first if k == dim else n for k, n in enumerate(shape.dims))
    joined = values[0]
    if len(values) > 1:
        made = Shape(shape.element_type, dims)
        joined = body.add("concatenate", made, values, f"dimensions={{{dim}}}")
    joined = body.pad(joined, dim, max(first, 0), max(halo.length - end, 0))
    start = max(-first, 0)
    return body.cut(joined, dim, start, start + halo.length)


def _place_slabs(
    body: LocalBody,
    shape: Shape,
    dim: int,
    halo: Halo,
    axes: Axes,
    parts: Sequence[tuple[Slab, LocalValue]],
) -> LocalValue:
    """Return the slabs at positions that depend on the device, between two margins."""
    margin = max((slab.high - slab.low for slab, _ in parts), default=0)
    total = halo.length + 2 * margin
    dims = tuple(total if k == dim else n for k, n in enumerate(shape.dims))
    joined = body.broadcast(body.zero(shape.element_type), dims)
    for slab, part in parts:
        last = total - (slab.high - slab.low)
        positions = [
            0 if p is None else min(max(p + margin, 0), last) for p in halo.positions(slab)
        ]
        start = body.by_number(axes, positions)
        starts = [start if k == dim else body.index(0) for k in range(len(dims))]
        joined = body.add("dynamic-update-slice", joined.shape, (joined, part, *starts))
    return body.cut(joined, dim, margin, margin + halo.length)

"""Moves between shardings of one array, and the moves that send the fewest bytes.

`cheapest_moves` is a shortest path: the nodes are shardings, the edges are single collectives and
local slices, the length is the bytes that a device sends, then the number of collectives.

>>> mesh, x, y = Mesh.of({"x": 2, "y": 2}), Axis("x"), Axis("y")
>>> rows, columns = Sharding(mesh, ((x,), ())), Sharding(mesh, ((), (x,)))
>>> for move in cheapest_moves(Shape("f32", (8, 6)), rows, columns):
...     print(move.kind, move.bytes_sent, move.target)
all-to-all 48 [_, x]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from heapq import heappop, heappush
from itertools import count, permutations
from math import prod
from typing import Final, Literal, NamedTuple, TypeAlias

from hlo.ops.op import OPS
from hlo.shapes.shape import ELEMENT_TYPES, Shape
from hlo.shardings.mesh import Axis
from hlo.shardings.mesh import Mesh as Mesh
from hlo.shardings.sharding import Sharding
from indexing.ops.collective_bases import Collective

MoveKind: TypeAlias = Literal[
    "slice", "all-gather", "all-to-all", "collective-permute", "all-reduce", "reduce-scatter"
]
Axes: TypeAlias = tuple[Axis, ...]

MAX_PLACEMENTS: Final = 4096
"""Limit on the shardings that the search visits; beyond it, the array is gathered whole."""

_MAX_REORDERED: Final = 4
"""Limit on the axes of one dimension of which all orders are tried."""


@dataclass(frozen=True, slots=True)
class ShardingMove:
    """One collective, or one local slice, that changes a sharding.

    Attributes:
        kind: the opcode of the collective; "slice" sends nothing.
        axes: the axes along which devices exchange values, major to minor; () of a permutation.
        source, target: the shardings before and after.
        dim: the dimension that the axes leave (all-gather, all-to-all) or split (slice,
            reduce-scatter).
        split_dim: of an all-to-all, the dimension that the axes split.
        reduction: of an all-reduce and a reduce-scatter, the reduction.
        bytes_sent: bytes that each device sends (`bytes_sent`).
    """

    kind: MoveKind
    axes: Axes
    source: Sharding
    target: Sharding
    dim: int = 0
    split_dim: int = 0
    reduction: str = ""
    bytes_sent: int = 0


def bytes_sent(kind: str, devices: int, size: int) -> int:
    """Return the bytes that each device of a group sends in a collective, rounded up.

    Args:
        kind: the opcode.
        devices: the number of devices of each group.
        size: bytes of the operand on one device, padding included.

    >>> bytes_sent("all-reduce", 4, 100), bytes_sent("all-gather", 4, 100)
    (150, 300)
    """
    share = share_sent(kind, devices)
    return -(-share.numerator * size // share.denominator)


@lru_cache(maxsize=1 << 8)
def share_sent(kind: str, devices: int) -> Fraction:
    """Return the bytes that each device of a group sends, as a multiple of those of the operand.

    >>> str(share_sent("all-reduce", 4))
    '3/2'
    """
    op = OPS[kind]
    assert issubclass(op, Collective)
    share = op.share_sent(devices)
    assert share is not None
    return share


def array_bytes(element_type: str, dims: tuple[int, ...]) -> int:
    """Return the bytes of an array without padding between elements, rounded up."""
    return -(-prod(dims) * ELEMENT_TYPES[element_type].bits // 8)


@lru_cache(maxsize=1 << 11)
def without_unit_axes(sharding: Sharding) -> Sharding:
    """Return a sharding without axes of size 1, which split nothing."""
    mesh = sharding.mesh
    dims = tuple(tuple(a for a in axes if mesh.size_of(a) > 1) for axes in sharding.dims)
    partial = tuple((a, kind) for a, kind in sharding.partial if mesh.size_of(a) > 1)
    return Sharding(mesh, dims, tuple(sorted(partial, key=str)))


def same_axes(one: Sharding, other: Sharding) -> bool:
    """Return True if two shardings have the same axes; those of size 1 do not count."""
    return one == other or without_unit_axes(one) == without_unit_axes(other)


@lru_cache(maxsize=1 << 11)
def cheapest_moves(shape: Shape, source: Sharding, target: Sharding) -> tuple[ShardingMove, ...]:
    """Return the moves from a sharding of an array to another one that send the fewest bytes.

    Among equal ones, the moves with the fewest collectives.

    Args:
        shape: the global shape.
    Raises:
        ValueError: the target is partial along axes along which the source is not.
    """
    source, target = without_unit_axes(source), without_unit_axes(target)
    if not set(target.partial) <= set(source.partial):
        raise ValueError(f"cannot make {source} partial as {target}")
    start, end = _Placement(source.dims, source.partial), _Placement(target.dims, target.partial)
    search = _MoveSearch(shape, target.mesh, end)
    order = count()
    queue: list[tuple[int, int, int, int, _Placement, _Path]] = []
    heappush(queue, (0, 0, 0, next(order), start, None))
    visited: set[_Placement] = set()
    while queue and len(visited) < MAX_PLACEMENTS:
        sent, collectives, slices, _, placement, path = heappop(queue)
        if placement == end:
            return tuple(search.as_moves(start, path))
        if placement in visited:
            continue
        visited.add(placement)
        for edge in search.edges(placement):
            if edge.target not in visited:
                is_local = edge.kind == "slice"
                cost = sent + edge.bytes_sent, collectives + (not is_local), slices + is_local
                heappush(queue, (*cost, next(order), edge.target, (edge, path)))
    return tuple(search.as_moves(start, search.through_whole_array(start)))


class _Placement(NamedTuple):
    """The axes of a `Sharding`."""

    dims: tuple[Axes, ...]
    partial: tuple[tuple[Axis, str], ...]

    def with_dim(self, dim: int, axes: Axes) -> _Placement:
        return _Placement((*self.dims[:dim], axes, *self.dims[dim + 1 :]), self.partial)

    def split(self, dim: int, axes: Axes) -> _Placement:
        return self.with_dim(dim, (*self.dims[dim], *axes))

    def combine_partial(self, axes: Axes) -> _Placement:
        """Return the placement with partial results along `axes` combined."""
        return _Placement(self.dims, tuple(p for p in self.partial if p[0] not in axes))


class _Edge(NamedTuple):
    """A `ShardingMove` without its source."""

    kind: MoveKind
    axes: Axes
    target: _Placement
    dim: int
    split_dim: int
    reduction: str
    bytes_sent: int


_Path: TypeAlias = "tuple[_Edge, _Path] | None"
"""The last edge of a path, and the path before it."""


class _MoveSearch:
    """The moves between shardings of one array on the way to a target."""

    def __init__(self, shape: Shape, mesh: Mesh, target: _Placement) -> None:
        self.shape = shape
        self.dims = shape.dims
        self.mesh = mesh
        self.target = target
        self.wanted = [axis for axes in target.dims for axis in axes]
        self.sizes: dict[Axis, int] = {}

    def as_moves(self, source: _Placement, path: _Path) -> list[ShardingMove]:
        """Return the moves of a path."""
        edges = []
        while path is not None:
            edge, path = path
            edges.append(edge)
        moves, before = [], Sharding(self.mesh, *source)
        for edge in reversed(edges):
            after = Sharding(self.mesh, *edge.target)
            rest = edge.dim, edge.split_dim, edge.reduction, edge.bytes_sent
            moves.append(ShardingMove(edge.kind, edge.axes, before, after, *rest))
            before = after
        return moves

    def through_whole_array(self, source: _Placement) -> _Path:
        """Return the path that gathers the whole array and slices it."""
        path: _Path = None
        while reductions := [e for e in self._reductions(source) if e.kind == "all-reduce"]:
            path, source = (reductions[0], path), reductions[0].target
        for dim, axes in enumerate(source.dims):
            if axes:
                edge = self._gather(source, dim, len(axes))
                path, source = (edge, path), edge.target
        for dim, axes in enumerate(self.target.dims):
            if axes:
                edge = self._edge("slice", axes, source, source.split(dim, axes), dim=dim)
                path, source = (edge, path), edge.target
        return path

    def edges(self, placement: _Placement) -> Iterator[_Edge]:
        """Yield the moves from a sharding."""
        yield from self._reductions(placement)
        yield from self._slices(placement)
        for dim, axes in enumerate(placement.dims):
            for length in range(1, len(axes) + 1):
                if self._nests(dim, axes[:-length], axes[-length:]):
                    yield self._gather(placement, dim, length)
                    yield from self._exchanges(placement, dim, length)
        for permuted in dict.fromkeys(self._permuted_placements(placement)):
            if permuted != placement:
                yield self._edge("collective-permute", (), placement, permuted)

    # ------------------------------------------------------------ single moves

    def _reductions(self, placement: _Placement) -> Iterator[_Edge]:
        pending = [entry for entry in placement.partial if entry not in self.target.partial]
        for reduction in dict.fromkeys(kind for _, kind in pending):
            axes = tuple(axis for axis, kind in pending if kind == reduction)
            for chosen in dict.fromkeys([axes, tuple(a for a in axes if a not in self.wanted)]):
                if chosen:
                    combined = placement.combine_partial(chosen)
                    yield self._edge("all-reduce", chosen, placement, combined, reduction=reduction)
            for dim, outer in enumerate(placement.dims):
                for added in self._next_axes(placement, dim):
                    if set(added) <= set(axes) and self._nests(dim, outer, added):
                        target = placement.combine_partial(added).split(dim, added)
                        yield self._edge("reduce-scatter", added, placement, target,
                                         dim=dim, reduction=reduction)  # fmt: skip

    def _slices(self, placement: _Placement) -> Iterator[_Edge]:
        used = {axis for axes in placement.dims for axis in axes}
        used |= {axis for axis, _ in placement.partial}
        single = [(axis,) for axis in self.wanted if axis not in used]
        for dim, outer in enumerate(placement.dims):
            for added in dict.fromkeys([*self._next_axes(placement, dim), *single]):
                if not used & set(added) and self._nests(dim, outer, added):
                    target = placement.split(dim, added)
                    yield self._edge("slice", added, placement, target, dim=dim)

    def _gather(self, placement: _Placement, dim: int, length: int) -> _Edge:
        """Return the all-gather along the last axes of a dimension."""
        axes = placement.dims[dim]
        target = placement.with_dim(dim, axes[:-length])
        return self._edge("all-gather", axes[-length:], placement, target, dim=dim)

    def _exchanges(self, placement: _Placement, dim: int, length: int) -> Iterator[_Edge]:
        """Yield the moves of the last axes of a dimension to other dimensions."""
        axes = placement.dims[dim]
        moved = axes[-length:]
        for other, outer in enumerate(placement.dims):
            if other != dim and self._nests(other, outer, moved):
                target = placement.with_dim(dim, axes[:-length]).split(other, moved)
                yield self._edge("all-to-all", moved, placement, target, dim=dim, split_dim=other)

    def _permuted_placements(self, placement: _Placement) -> Iterator[_Placement]:
        """Yield shardings with the same shards on other devices."""
        counts = [self._count(axes) for axes in placement.dims]
        wanted = [self._count(axes) for axes in self.target.dims]
        partial = {axis for axis, _ in placement.partial}
        if counts == wanted and not partial & set(self.wanted):
            yield _Placement(self.target.dims, placement.partial)
        for dim, axes in enumerate(placement.dims):
            if 1 < len(axes) <= _MAX_REORDERED:
                for order in permutations(axes):
                    yield placement.with_dim(dim, order)
            others = {a for k, b in enumerate(placement.dims) if k != dim for a in b} | partial
            if counts[dim] == wanted[dim] and not others & set(self.target.dims[dim]):
                yield placement.with_dim(dim, self.target.dims[dim])

    # ------------------------------------------------------------ helpers

    def _next_axes(self, placement: _Placement, dim: int) -> Iterator[Axes]:
        """Yield the axes that the target adds to those of a dimension, and their prefixes."""
        axes, wanted = placement.dims[dim], self.target.dims[dim]
        if wanted[: len(axes)] == axes:
            for end in range(len(axes) + 1, len(wanted) + 1):
                yield wanted[len(axes) : end]

    def _count(self, axes: Axes) -> int:
        """Return the number of devices along axes."""
        for axis in axes:
            if axis not in self.sizes:
                self.sizes[axis] = self.mesh.size_of(axis)
        return prod([self.sizes[axis] for axis in axes])

    def _nests(self, dim: int, outer: Axes, inner: Axes) -> bool:
        """Return True if each shard along `outer` consists of its shards along `inner`."""
        if not outer:
            return True
        size, many, parts = self.dims[dim], self._count(outer), self._count(inner)
        return -(-size // many) == -(-size // (many * parts)) * parts

    def _edge(
        self,
        kind: MoveKind,
        axes: Axes,
        source: _Placement,
        target: _Placement,
        *,
        dim: int = 0,
        split_dim: int = 0,
        reduction: str = "",
    ) -> _Edge:
        if kind == "slice":
            return _Edge(kind, axes, target, dim, split_dim, reduction, 0)
        devices = self._count(axes)
        dims = [-(-n // self._count(by)) for n, by in zip(self.dims, source.dims, strict=True)]
        split = {"reduce-scatter": dim, "all-to-all": split_dim}.get(kind)
        if split is not None:  # the operand is padded to shards of the target
            dims[split] = -(-self.dims[split] // self._count(target.dims[split])) * devices
        sent = bytes_sent(kind, devices, array_bytes(self.shape.element_type, tuple(dims)))
        return _Edge(kind, axes, target, dim, split_dim, reduction, sent)

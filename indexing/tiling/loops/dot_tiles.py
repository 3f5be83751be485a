"""The tiles of dots, and the most indices of a step along each dimension of an array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from hlo.shapes.shape import Shape
from indexing.maps.arrays import ArrayRef
from indexing.ops.convolution import Convolution
from indexing.ops.dot import Dot
from indexing.tiling.loops.axes import Axes, StepAxis
from indexing.tiling.loops.loop_model import LoopModel
from indexing.tiling.loops.nests import NestKey, used_map
from indexing.tiling.loops.set_tables import PlacedRead, place_read
from indexing.tiling.search.limits import padded_size
from simplifier.atoms import Variable
from simplifier.unknown import Unknown


@dataclass(frozen=True, slots=True)
class DotTile:
    """The tile of a dot: sizes with those of the whole dimensions.

    Attributes:
        name: the instruction.
        bits: bits of an element of the left operand.
        rows, columns, contracted: the size of the tile, and of the array.
        largest: the most indices of the tile of an operand along one dimension.
    """

    name: str
    bits: int
    rows: tuple[int, int]
    columns: tuple[int, int]
    contracted: tuple[int, int]
    largest: int


def read_extents(
    model: LoopModel, axes: Axes, above: int = 0
) -> Iterator[tuple[ArrayRef, tuple[int, ...], tuple[int, ...]]]:
    """Yield the most indices of a step along each dimension of an array, for each of its reads.

    The last sizes are those of a single tile and step, which no rule can ask to exceed.

    Args:
        above: leave out reads that have at most so many padded elements by their steps alone.
    """
    for array, reads in model.distinct_reads:
        for read in reads:
            if above and prod(map(padded_size, most_indices(read, axes))) <= above:
                continue
            sets = model.table(array).union([read], axes)
            whole = model.table(array).union([read], model.whole_axes)
            if not isinstance(sets, Unknown) and not isinstance(whole, Unknown):
                yield array, sets.extents, whole.extents


def has_dots(model: LoopModel) -> bool:
    """Return True if a block computes a dot."""
    return any(isinstance(key.array.instruction.op, Dot) for key in _computed_nests(model))


def has_products(model: LoopModel) -> bool:
    """Return True if a block computes a dot or a convolution, whose operands are staged."""
    return any(
        isinstance(key.array.instruction.op, Dot | Convolution) for key in _computed_nests(model)
    )


def most_indices(read: PlacedRead, axes: Axes) -> tuple[int, ...]:
    """Return a bound of the indices of a step along each dimension, by the steps alone.

    A sum has at most one index more than the distance from its least to its largest value.
    """
    widths = dict(zip(read.read.dims, [axes[k].step for k in read.numbers], strict=True))
    bounds = []
    for result in read.read.results:
        width = 0
        for atom, factor in result.parts.items():
            if not isinstance(atom, Variable):
                low, high = result.bounds
                width = high - low
                break
            width += abs(factor) * (widths.get(atom, atom.size) - 1)
        bounds.append(width + 1)
    return tuple(bounds)


def dot_tiles(model: LoopModel, axes: Axes, above: int = 0) -> Iterator[DotTile]:
    """Yield the tiles of all dots.

    Args:
        above: leave out those that have at most so many indices along each dimension by the steps
            alone.
    """
    for dot in _dots(model):
        contracted = _contracted_axes(model, dot.key, axes)
        steps = [axis.step for axis in contracted]
        if above:
            bounds = most_indices(place_read(used_map(dot.key.map), {}), axes)
            if max([*bounds, *steps], default=1) <= above:
                continue
        sets = model.sets(dot.key.array, dot.key.map, axes)
        if isinstance(sets, Unknown):
            continue
        batch = len(dot.op.lhs_batch_dims)
        rows = dot.left.rank - len(dot.op.lhs_contracting_dims)
        extents, dims = sets.extents, dot.shape.dims
        yield DotTile(
            dot.key.array.instruction.name,
            dot.left.element_bits,
            (prod(extents[batch:rows]), prod(dims[batch:rows])),
            (prod(extents[rows:]), prod(dims[rows:])),
            (prod(steps), prod([axis.size for axis in contracted])),
            max([*extents[batch:], *steps], default=1),
        )


class _ComputedDot(NamedTuple):
    """A dot that a block computes: its tile, and the shapes of its value and left operand."""

    key: NestKey
    op: Dot
    shape: Shape
    left: Shape


def _dots(model: LoopModel) -> Iterator[_ComputedDot]:
    """Yield the dots that a block computes, each once."""
    for key in dict.fromkeys(_computed_nests(model)):
        instruction = key.array.instruction
        op, shape, left = instruction.op, key.array.array_shape, instruction.operands[0].shape
        if isinstance(op, Dot) and shape is not None and isinstance(left, Shape):
            yield _ComputedDot(key, op, shape, left)


def _computed_nests(model: LoopModel) -> Iterator[NestKey]:
    """Yield the instructions with loops that a block computes."""
    for nest in model.nests:
        yield from nest.computed


def _contracted_axes(model: LoopModel, key: NestKey, axes: Axes) -> list[StepAxis]:
    """Return the axes of the loops of a dot."""
    return [axes[model.rank + k] for k, loop in enumerate(model.loops) if loop.array == key.array]


def contiguous_bytes(
    shape: Shape, extents: Sequence[int], uncut: Sequence[int] | None = None
) -> int | None:
    """Return the bytes of adjacent elements of a tile; None if it has whole rows.

    Args:
        uncut: what all tiles have of each dimension; by default, the sizes of the array.

    >>> contiguous_bytes(Shape("bf16", (64, 64)), (16, 16))
    32
    >>> contiguous_bytes(Shape("bf16", (64, 64)), (16, 64))
    """
    for dim in shape.layout_or_default.minor_to_major:
        if shape.dims[dim] > 1:
            if extents[dim] >= (shape.dims if uncut is None else uncut)[dim]:
                return None
            return extents[dim] * shape.element_bits // 8
    return None

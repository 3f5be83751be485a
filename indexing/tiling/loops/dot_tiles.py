"""The tiles of dots, and the most indices of a step along each dimension of an array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from hlo.shapes.shape import Shape
from indexing.maps.arrays import ArrayRef
from indexing.ops.convolution import Convolution
from indexing.ops.dot import Dot
from indexing.tiling.loops.axes import Axes
from indexing.tiling.loops.loop_model import LoopModel
from indexing.tiling.loops.nests import used_map
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
    keys = [key for nest in model.nests for key in nest.computed]
    return any(isinstance(key.array.instruction.op, Dot) for key in keys)


def has_products(model: LoopModel) -> bool:
    """Return True if a block computes a dot or a convolution, whose operands are staged."""
    keys = [key for nest in model.nests for key in nest.computed]
    return any(isinstance(key.array.instruction.op, Dot | Convolution) for key in keys)


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
    for key in dict.fromkeys([key for nest in model.nests for key in nest.computed]):
        instruction = key.array.instruction
        op, shape, left = instruction.op, key.array.array_shape, instruction.operands[0].shape
        if not isinstance(op, Dot) or shape is None or not isinstance(left, Shape):
            continue
        steps = [
            (axes[model.rank + k].step, axes[model.rank + k].size)
            for k, loop in enumerate(model.loops)
            if loop.array == key.array
        ]
        if above:
            bounds = most_indices(place_read(used_map(key.map), {}), axes)
            if max([*bounds, *[step for step, _ in steps]], default=1) <= above:
                continue
        sets = model.sets(key.array, key.map, axes)
        if isinstance(sets, Unknown):
            continue
        batch = len(op.lhs_batch_dims)
        rows = left.rank - len(op.lhs_contracting_dims)
        extents = sets.extents
        yield DotTile(
            instruction.name,
            left.element_bits,
            (prod(extents[batch:rows]), prod(shape.dims[batch:rows])),
            (prod(extents[rows:]), prod(shape.dims[rows:])),
            (prod([step for step, _ in steps]), prod([size for _, size in steps])),
            max([*extents[batch:], *[step for step, _ in steps]], default=1),
        )


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

"""Blocks of arrays in a grid: block sizes, block indices, and the axes of a block's elements.

A kernel of Pallas reads an array in blocks: block ``i`` has the elements from ``i * size``.  The
index of the block follows from the box of the tile (`indexing.tiling.computations.tile_boxes`):
its offset divided by its size.  A box that starts elsewhere, as that of a window with a halo, is no
block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from indexing.codegen.text import tuple_text
from indexing.codegen.tile_programs.program import NotEmitted, TileProgram
from indexing.codegen.tile_programs.tile_values import TileLoad, axes_of_exprs
from indexing.maps.indexing_map import IndexingMap
from indexing.tiling.computations.tile_boxes import concrete_box
from indexing.tiling.sizes.tile_sizes import dimension_of
from simplifier.atoms import Variable
from simplifier.linear import Expr, from_atom
from simplifier.unknown import Unknown


@dataclass(frozen=True, slots=True)
class BlockPart:
    """A part of a dimension of a block: a digit of the index along an axis.

    Attributes:
        axis: the axis.
        digit: the number of the digit, the most significant first.
        size: the number of values.
    """

    axis: int
    digit: int
    size: int


@dataclass(frozen=True, slots=True)
class ArrayBlock:
    """The blocks in which an array is read.

    Attributes:
        sizes: the size of a block in each dimension; None for one element, without a dimension.
        indices: the index of the block in each dimension, by ``tid_k``.
        parts: the parts of the dimensions of a block, in order.
    """

    sizes: tuple[int | None, ...]
    indices: tuple[Expr, ...]
    parts: tuple[BlockPart, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions that a block has."""
        return tuple([size for size in self.sizes if size is not None])

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of the dimensions of a block, in its order."""
        return tuple(dict.fromkeys([part.axis for part in self.parts]))

    def rearranged(self, name: str, order: Sequence[int]) -> str:
        """Return the text of a block with one dimension for each axis, in an order of the axes."""
        split = tuple([part.size for part in self.parts])
        text = name if split == self.shape else f"{name}.reshape({tuple_text(split)})"
        keys = [(order.index(part.axis), part.digit) for part in self.parts]
        places = sorted(range(len(keys)), key=lambda k: keys[k])
        if places != sorted(places):
            text = f"{text}.transpose({tuple_text(places)})"
        axes = sorted(self.axes, key=order.index)
        if len(axes) < len(keys):
            sizes = [prod([p.size for p in self.parts if p.axis == axis]) for axis in axes]
            text = f"{text}.reshape({tuple_text(sizes)})"
        return text


def array_block(program: TileProgram, load: TileLoad) -> ArrayBlock:
    """Return the blocks in which a load reads its array.

    Raises:
        NotEmitted: the elements of a step are no block of the array.
    """
    name, shape = load.array.instruction.name, load.array.array_shape
    assert shape is not None
    variables = [v for expr in load.index for v in expr.variables()]
    dims = sorted(set(variables), key=dimension_of)
    steps = [program.extent(k) for k in program.axes]
    sizes = [program.axis(k).size for k in program.axes]
    box = concrete_box(IndexingMap.of(dims, load.index), steps, sizes)
    if isinstance(box, Unknown):
        raise NotEmitted(f"the elements of `{name}` in a step are not a box: {box.reason}")
    block: list[int | None] = []
    indices: list[Expr] = []
    for k, side in enumerate(box.sides):
        if not side.size.is_constant or not side.stride.is_constant:
            raise NotEmitted(f"the box of `{name}` has no fixed size in dimension {k}")
        size = side.size.constant
        if size > 1 and side.stride.constant not in (0, 1):
            raise NotEmitted(
                f"`{name}` is read with stride {side.stride} in dimension {k}: "
                "the index map is not a block index"
            )
        low, high = load.index[k].bounds
        if low < 0 or high >= shape.dims[k]:
            raise NotEmitted(f"`{name}` is read outside of its elements, where a guard hides it")
        indices.append(_block_index(side.offset, size, name, k))
        block.append(size if size > 1 else None)
    return ArrayBlock(tuple(block), tuple(indices), _parts(program, load, block))


def _block_index(offset: Expr, size: int, name: str, dimension: int) -> Expr:
    """Return the index of a block from its first element."""
    index = offset // size
    rest = offset - index * size
    if rest.bounds != (0, 0):
        raise NotEmitted(
            f"blocks of {size} elements of `{name}` start at {offset} in dimension {dimension}: "
            "the index map is not a block index (the blocks overlap, as those with a halo, or "
            "are shifted)"
        )
    return index


def _parts(program: TileProgram, load: TileLoad, block: list[int | None]) -> tuple[BlockPart, ...]:
    """Return the parts of the dimensions of a block."""
    places = _places(program, load, block)
    parts: list[BlockPart] = []
    for k, size in enumerate(block):
        if size is not None:
            own = [axis for axis, dims in places.items() if k in dims]
            is_sum = all(isinstance(atom, Variable) for atom in load.index[k].parts)
            if len(own) == 1 and (len(places[own[0]]) > 1 or not is_sum):
                parts.append(_digit(program, load, own[0], places[own[0]], block, k))
            else:
                parts += _mix_parts(program, load.index[k], own, size, load)
    if len({(part.axis, part.digit) for part in parts}) < len(parts):
        raise _no_product(load)
    return tuple(parts)


def _no_product(load: TileLoad) -> NotEmitted:
    name = load.array.instruction.name
    return NotEmitted(f"a block of `{name}` is not a product of tiles and steps")


def _places(program: TileProgram, load: TileLoad, block: list[int | None]) -> dict[int, list[int]]:
    """Return the dimensions of a block along which each axis runs."""
    places: dict[int, list[int]] = {}
    for k, expr in enumerate(load.index):
        for axis in axes_of_exprs([expr]):
            if program.extent(axis) > 1 and block[k] is not None:
                places.setdefault(axis, []).append(k)
    return places


def _digit(
    program: TileProgram,
    load: TileLoad,
    axis: int,
    dims: list[int],
    block: list[int | None],
    k: int,
) -> BlockPart:
    """Return the part of dimension `k`, one of `dims`, as a digit of the index along an axis."""
    if not _are_digits(program, load, axis, dims, block):
        raise NotEmitted(
            f"a tile of `{load.array.instruction.name}` is not a block: its elements are those of "
            f"{load.index[k]} in dimension {k}"
        )
    return BlockPart(axis, dims.index(k), block[k] or 1)


def _mix_parts(
    program: TileProgram, expr: Expr, axes: list[int], size: int, load: TileLoad
) -> list[BlockPart]:
    """Return the parts of ``a * 12 + b * 4 + c``, where ``b`` has 3 values and ``c`` 4.

    Raises:
        NotEmitted: the sum has not this form, or not `size` values.
    """
    terms: list[tuple[int, int]] = []
    for atom, factor in expr.parts.items():
        if isinstance(atom, Variable):
            if dimension_of(atom) in axes:
                terms.append((factor, dimension_of(atom)))
        elif any(dimension_of(v) in axes for v in from_atom(atom).variables()):
            raise _no_product(load)
    terms.sort(reverse=True)
    weight = 1
    for factor, axis in reversed(terms):
        if factor != weight:
            raise _no_product(load)
        weight *= program.extent(axis)
    if not terms or weight != size:
        raise _no_product(load)
    return [BlockPart(axis, 0, program.extent(axis)) for _, axis in terms]


def _are_digits(
    program: TileProgram, load: TileLoad, axis: int, dims: list[int], block: list[int | None]
) -> bool:
    """Return True if the indices in `dims` of each tile are the digits of the index in a tile."""
    own = program.axis(axis)
    numbers = np.arange(own.size)
    code = np.zeros(own.size, np.int64)
    for k in dims:
        variables = load.index[k].variables()
        if [dimension_of(v) for v in variables] != [axis]:
            return False
        size = block[k] or 1
        code = code * size + np.asarray(load.index[k].value({variables[0]: numbers})) % size
    return bool(np.all(code == numbers % program.extent(axis)))

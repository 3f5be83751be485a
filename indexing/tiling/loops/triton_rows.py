"""Shared memory of a kernel of Triton without dots: layout conversions and reductions.

XLA loads and stores tiles without their dimensions of 1, each thread up to 128 bits at once.
Values keep the layout of the loads that they come from.  Three things change it:

* a reduction whose dimensions of 1 cannot be dropped has the default layout, one element a thread;
* a row or a column is converted to a slice of the layout of the tile along which it is broadcast;
* a tile is converted to the layout of the store, which may have fewer elements a thread.

Each conversion and reduction has a buffer while it runs, and the largest one counts.  Where a
layout does not follow from these rules, the answer is unknown.

Source: XLA ``xla/backends/gpu/codegen/triton/transforms/triton_xla_squeeze_dims_pass.cc``; Triton
``lib/Dialect/TritonGPU/Transforms/Coalesce.cpp`` and ``RemoveLayoutConversions.cpp``; dumps of both
compilers, which `benchmarks.compiled_tilings` compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple, TypeAlias

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.ops.bitcast import Bitcast
from indexing.ops.broadcast import Broadcast
from indexing.ops.elementwise import ElementwiseOp
from indexing.ops.iota import Constant, Iota
from indexing.ops.reduce import Reduce
from indexing.ops.reshape import Reshape
from indexing.ops.transpose import Transpose
from indexing.tiling.computations.tile_graph import TileNode
from indexing.tiling.loops.loop_model import LoopModel
from indexing.tiling.loops.triton_layouts import (
    BitLayout,
    blocked_layout,
    squeeze,
    squeezed_for_reduction,
    vector_of,
)
from indexing.tiling.loops.triton_scratch import conversion_bytes, reduction_bytes
from simplifier.unknown import Unknown


class _BroadcastValue(NamedTuple):
    """A value that is broadcast: its layout, bits, and the dimensions of the tile that it has."""

    layout: BitLayout
    bits: int
    kept: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Broadcasts:
    """A tile computed from broadcast values, whose layout its user decides."""

    values: tuple[_BroadcastValue, ...]


_Layout: TypeAlias = BitLayout | _Broadcasts | None
"""A layout, or None for a value that each thread computes."""


class _NoLayout(Exception):
    """A layout that does not follow from the rules."""


class _InstructionTiles(NamedTuple):
    """The tiles of the instructions of a kernel.

    Attributes:
        order: the instructions, operands before users, each with True if it is an input.
        sizes: the padded sizes of the tile of each instruction.
        operands: what each instruction is computed from.
    """

    order: list[tuple[Instruction, bool]]
    sizes: dict[Instruction, tuple[int, ...]]
    operands: dict[Instruction, list[Instruction]]


@dataclass
class _KernelLayouts:
    """The layouts of one kernel.

    Attributes:
        warps: the number of warps of a block.
        capability: that of the GPU.
        root: the instruction whose value is stored.
        tiles: the tiles of all instructions.
        vectors: elements of a thread, by the sizes of loads and stores.
        layouts: the layout of the value of each instruction.
        largest: the most bytes of one buffer.
    """

    warps: int
    capability: int
    root: Instruction
    tiles: _InstructionTiles
    vectors: dict[tuple[int, ...], int] = field(default_factory=dict)
    layouts: dict[Instruction, _Layout] = field(default_factory=dict)
    largest: int = 0

    def tile(self, instruction: Instruction) -> tuple[int, ...]:
        """Return the padded sizes of the tile of an instruction."""
        return self.tiles.sizes[instruction]

    def convert(self, src: BitLayout, dst: BitLayout, bits: int) -> None:
        """Count a conversion."""
        own = conversion_bytes(src.reshaped(dst.shape), dst, bits, self.capability)
        self.largest = max(self.largest, own)

    def memory(self, shape: Shape, tile: Sequence[int]) -> int:
        """Return the elements that a thread moves at once of a tile in memory."""
        sizes = squeeze(tile)
        if list(shape.layout_or_default.minor_to_major) != list(range(shape.rank))[::-1]:
            raise _NoLayout(f"{shape} is not in row-major order")
        if tile and tile[-1] == 1 and prod(tile) > 1 and shape.dims[-1] > 1:
            raise _NoLayout(f"tiles of {shape} have no adjacent elements")
        run = sizes[-1]
        if prod(shape.dims[:-1]) > 1:  # rows begin at multiples of their length
            run = min(run, shape.dims[-1] & -shape.dims[-1])
        return vector_of(sizes, max(8, shape.element_bits), self.warps, run)

    def choose_vectors(self) -> None:
        """Choose the elements that a thread loads and stores at once, for each size of a tile."""
        for instruction, is_input in self.tiles.order:
            tile = self.tile(instruction)
            if (is_input or instruction is self.root) and prod(tile) > 1:
                assert isinstance(instruction.shape, Shape)
                sizes, vector = squeeze(tile), self.memory(instruction.shape, tile)
                self.vectors[sizes] = max(vector, self.vectors.get(sizes, 1))

    def loaded(self, sizes: tuple[int, ...], limit: int | None = None) -> BitLayout:
        """Return the layout of a load; of a store, with at most so many elements at once."""
        vector = self.vectors[sizes]
        return blocked_layout(sizes, vector if limit is None else min(vector, limit), self.warps)

    def meet(self, operands: Iterable[tuple[_Layout, int]], name: str) -> _Layout:
        """Return the layout of a function of tiles; convert those that are broadcast."""
        values: list[_BroadcastValue] = []
        own: BitLayout | None = None
        for layout, _ in operands:
            if isinstance(layout, _Broadcasts):
                values += layout.values
            elif layout is not None:
                if own is not None and conversion_bytes(layout, own, 32, self.capability):
                    raise _NoLayout(f"the operands of `{name}` have different layouts")
                own = layout if own is None else own
        if own is None:
            return _Broadcasts(tuple(dict.fromkeys(values))) if values else None
        for value in values:
            self.spread(value, own)
        return own

    def spread(self, value: _BroadcastValue, tile: BitLayout) -> None:
        """Convert a value to the slice of a tile along which it is broadcast."""
        needed = tile
        for dim in reversed(range(len(tile.shape))):
            if dim not in value.kept:
                needed = needed.without(dim)
        if value.kept:
            self.convert(value.layout, needed, value.bits)

    # ------------------------------------------------------------ instructions

    def compute(self) -> None:
        """Load the inputs and compute the other instructions, operands before users."""
        for instruction, is_input in self.tiles.order:
            sizes = squeeze(self.tile(instruction))
            if is_input:
                self.layouts[instruction] = None if prod(sizes) == 1 else self.loaded(sizes)
            else:
                self.layouts[instruction] = self.visit(instruction)

    def store(self) -> None:
        """Convert the result to the layout of the store."""
        layout, shape = self.layouts[self.root], self.root.shape
        assert isinstance(shape, Shape)
        sizes, bits = squeeze(self.tile(self.root)), shape.element_bits
        if prod(sizes) == 1 or layout is None:
            return
        store = self.loaded(sizes, max(1, 128 // max(8, bits)))
        if isinstance(layout, _Broadcasts):
            for value in layout.values:
                self.spread(value, store)
        else:
            self.convert(layout, store, bits)

    def visit(self, instruction: Instruction) -> _Layout:
        """Return the layout of the value of an instruction."""
        op, shape = instruction.op, instruction.shape
        assert isinstance(shape, Shape)
        operands = [
            (self.layouts[each], each.shape.element_bits)
            for each in self.tiles.operands[instruction]
            if isinstance(each.shape, Shape)
        ]
        if isinstance(op, Constant | Iota) or all(layout is None for layout, _ in operands):
            return None
        if isinstance(op, Broadcast):
            return self.broadcast(instruction, op)
        if isinstance(op, Reduce):
            return self.reduce(instruction, op)
        if isinstance(op, Reshape | Bitcast | Transpose):
            return self.moved(instruction)
        tiles = {self.tile(each) for each in self.tiles.operands[instruction]}
        if isinstance(op, ElementwiseOp) and tiles <= {self.tile(instruction)}:
            return self.meet(operands, instruction.name)
        raise _NoLayout(f"`{instruction.name}` has no rule of layouts")

    def broadcast(self, instruction: Instruction, op: Broadcast) -> _Layout:
        (operand,) = self.tiles.operands[instruction]
        layout = self.layouts[operand]
        if not isinstance(layout, BitLayout):
            raise _NoLayout(f"`{instruction.name}` broadcasts a broadcast value")
        tile = self.tile(instruction)
        numbers = [k for k, size in enumerate(tile) if size != 1]
        kept = [op.dimensions[k] for k, size in enumerate(self.tile(operand)) if size != 1]
        if kept != sorted(kept):
            raise _NoLayout(f"`{instruction.name}` permutes dimensions")
        if len(kept) == len(numbers):
            return layout
        assert isinstance(operand.shape, Shape)
        bits = operand.shape.element_bits
        return _Broadcasts(
            (_BroadcastValue(layout, bits, tuple([numbers.index(d) for d in kept])),)
        )

    def reduce(self, instruction: Instruction, op: Reduce) -> _Layout:
        operand = self.tiles.operands[instruction][0]
        layout = self.layouts[operand]
        if len(instruction.operands) != 2 or len(op.dimensions) != 1:
            raise _NoLayout(f"`{instruction.name}` reduces several arrays or dimensions")
        if not isinstance(layout, BitLayout):
            raise _NoLayout(f"`{instruction.name}` reduces a broadcast value")
        assert isinstance(operand.shape, Shape)
        bits, tile = operand.shape.element_bits, self.tile(operand)
        sizes, dim = squeezed_for_reduction(tile, op.dimensions[0])
        plain = [k for k, n in enumerate(tile) if n != 1 or k == op.dimensions[0]]
        if len(plain) < len(sizes) and prod(tile) > tile[op.dimensions[0]]:
            is_stored, is_broadcast = self.uses(instruction)
            if is_stored and is_broadcast:
                raise _NoLayout(f"`{instruction.name}` is stored and broadcast")
            if is_stored:
                sizes, dim = tuple([tile[k] for k in plain]), plain.index(op.dimensions[0])
        if sizes != layout.shape:
            default = blocked_layout(sizes, 1, self.warps)
            self.convert(layout, default.reshaped(layout.shape), bits)
            layout = default
        self.largest = max(self.largest, reduction_bytes(layout, dim, bits))
        result = layout.without(dim)
        return result.reshaped(squeeze(result.shape))

    def uses(self, instruction: Instruction) -> tuple[bool, bool]:
        """Return if functions of the elements of an array are stored, and if any is broadcast."""
        known = {instruction}
        is_broadcast = False
        for each, operands in self.tiles.operands.items():  # operands before users
            if known.intersection(operands):
                if isinstance(each.op, Broadcast):
                    is_broadcast = True
                else:
                    known.add(each)
        return self.root in known, is_broadcast

    def moved(self, instruction: Instruction) -> _Layout:
        """Return the layout of a reshaped tile: that of its elements, row by row."""
        (operand,) = self.tiles.operands[instruction]
        layout = self.layouts[operand]
        before, after = squeeze(self.tile(operand)), squeeze(self.tile(instruction))
        if isinstance(instruction.op, Transpose):
            order = [d for d in instruction.op.dimensions if self.tile(operand)[d] != 1]
            if order != sorted(order):
                raise _NoLayout(f"`{instruction.name}` permutes dimensions")
        if before == after:
            return layout
        if not isinstance(layout, BitLayout) or prod(before) != prod(after):
            raise _NoLayout(f"`{instruction.name}` reshapes a padded or broadcast tile")
        return layout.reshaped(after)


def row_scratch_bytes(
    model: LoopModel,
    tile: Callable[[TileNode], tuple[int, ...] | None],
    warps: int,
    capability: int,
) -> int | Unknown:
    """Return the bytes of the largest buffer of a kernel without dots.

    Args:
        model: the nests of the fusion.
        tile: the padded sizes of a tile; None if unknown.
        warps: the number of warps of a block.
        capability: that of the GPU, such as 90.
    """
    tiles = _instruction_tiles(model, tile)
    if isinstance(tiles, Unknown):
        return tiles
    root = model.array.instruction
    layouts = _KernelLayouts(warps, capability, root, tiles)
    try:
        layouts.choose_vectors()
        layouts.compute()
        layouts.store()
    except _NoLayout as error:
        return Unknown(f"shared memory: {error}", root)
    return layouts.largest


def _instruction_tiles(
    model: LoopModel, tile: Callable[[TileNode], tuple[int, ...] | None]
) -> _InstructionTiles | Unknown:
    """Return the tiles of the instructions of a fusion, if each has tiles of one size."""
    tiles = _InstructionTiles([], {}, {})
    for node in model.graph.nodes():
        instruction = node.array.instruction
        sizes = tile(node)
        if sizes is None or not isinstance(instruction.shape, Shape):
            return Unknown(f"`{instruction.name}` has no tile of one size", instruction)
        if tiles.sizes.setdefault(instruction, sizes) != sizes:
            return Unknown(f"`{instruction.name}` has tiles of several sizes", instruction)
        if not tiles.order or tiles.order[-1][0] is not instruction:
            tiles.order.append((instruction, model.graph.is_input(node.array)))
            known = [each.array.instruction for _, each in sorted(node.operands, key=_number)]
            tiles.operands[instruction] = list(dict.fromkeys(known))
    return tiles


def _number(operand: tuple[int, TileNode]) -> int:
    return operand[0]

"""Bitcast: the same bytes under another shape and layout.

An element of the result has a position in memory by the result's layout. The element of the operand
at the same position, by the operand's layout, is the one that it shows. In row-major order of the
dimensions from major to minor, that is a reshape (`indexing.ops.reshape`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from hlo.modules.checks import layout_fault
from hlo.ops.op import HOLDS, Fault, Shape, constraint, declared, op
from hlo.ops.unify import Dim, PartialShape, Unranked, array, dims_of, is_partial, same_dims
from hlo.shapes.memory import from_physical, to_physical
from hlo.shapes.shape import ELEMENT_TYPES, dtype
from indexing.maps.answers import Unknown
from indexing.maps.indexing_map import IndexingMap, dims, ranges
from indexing.maps.layouts import logical_map, physical_map
from indexing.ops.base import Array, UnaryOp, placed
from indexing.ops.element import CopyRule, ElementRule, OpaqueRule
from indexing.ops.elementwise import UnaryElementwise, dims_text
from indexing.ops.functions import joined, part_of, reinterpreted
from indexing.ops.reshape import elements, reindexed
from simplifier.linear import Affine


@op(
    "bitcast",
    samples=[
        "f32[3,2] bitcast(f32[2,3]{0,1} p)",
        "f32[6,4]{0,1} bitcast(f32[2,3,4]{0,2,1} p)",
        "f32[3,2,2,5]{2,1,3,0} bitcast(f32[3,5,2,2] p)",
        "s32[6]{0} bitcast(f32[2,3]{1,0} p)",
        "f32[1,1] bitcast(f32[] p)",
        "u8[3,2,4]{0,1,2} bitcast(u16[3,4]{0,1} p)",
        "s32[3]{0} bitcast(s8[4,3]{0,1} p)",
        "f32[0,3] bitcast(f32[3,0]{0,1} p)",
        "f32[4,6]{1,0} bitcast(f32[4,6]{1,0:T(2,3)} p)",
        "f32[6,4]{1,0:T(2,2)(2,1)} bitcast(f32[4,6]{0,1:T(3,2)} p)",
        "f32[24]{0} bitcast(f32[3,5]{1,0:T(2,2)} p)",
        "f32[3]{0:T(4)} bitcast(f32[2]{0:L(4)} p)",
    ],
)
class Bitcast(UnaryOp):
    """The same bytes read with another shape and layout.

    Where the sizes of the elements differ, one side has a further most minor dimension of their
    ratio.

    Source: XLA ``docs/operation_semantics.md``, "Bitcast"; ``docs/shapes.md`` for minor-to-major.
    """

    kernel_takes_shapes: ClassVar[bool] = True
    shape: Shape = declared()

    @constraint("C1", "the operand and the result take the same number of bits")
    def keeps_bits(self, operand: Shape) -> Fault:
        if is_partial(operand) or is_partial(self.shape):
            return HOLDS
        if _is_tiled(operand) or _is_tiled(self.shape):
            return HOLDS  # padding counts too, and is not known here
        if _ratio(self.shape, operand) is not None:
            return HOLDS
        ours = f"{elements(self.shape.dims)} of {_bits(self.shape)} bits"
        return Fault(f"{elements(operand.dims)} of {_bits(operand)} bits become {ours}")

    def infer_shape(self, operand: Shape) -> Shape:
        return self.shape

    def output_to_input(self, out: Shape, operand: Shape) -> IndexingMap | Unknown:
        return _same_bytes(out, operand)

    def input_to_output(self, out: Shape, operand: Shape) -> IndexingMap | Unknown:
        return _same_bytes(operand, out)

    def element(self, out: Shape, *operands: Shape) -> ElementRule:
        return same_bits(out, operands[0], _is_tiled(out) or _is_tiled(operands[0]))

    def kernel(self, operand: Array, operands: tuple[Shape, ...]) -> Array:
        if _is_tiled(self.shape) or _is_tiled(operands[0]):
            buffer = to_physical(operand, operands[0].layout_or_default)
            room = np.zeros(self.shape.physical_size, dtype=buffer.dtype)
            count = min(len(buffer), len(room))
            room[:count] = buffer[:count]
            laid = from_physical(room, self.shape.layout_or_default, self.shape.dims)
            return laid if laid.dtype == object else laid.view(dtype(self.shape.element_type))
        laid = np.ascontiguousarray(operand.transpose(_major_to_minor(operands[0])))
        order = _major_to_minor(self.shape)
        sizes = [self.shape.dims[k] for k in order]
        if laid.dtype != object:
            laid = laid.reshape(-1).view(dtype(self.shape.element_type))
        return laid.reshape(sizes).transpose(np.argsort(order))


@op(
    "bitcast-convert",
    samples=[
        "u8[3,5,4] bitcast-convert(f32[3,5] p)",
        "u32[3] bitcast-convert(u8[3,4] p)",
        "s16[2,3] bitcast-convert(u16[2,3] p)",
        "f32[] bitcast-convert(u16[2] p)",
        "u8[0,2] bitcast-convert(u16[0] p)",
    ],
)
class BitcastConvert(UnaryElementwise):
    """``out[i]`` has the bits of operand[i]; other widths add or drop a minor dimension."""

    shape: Shape = declared()

    def infer_unranked(self, *operands: PartialShape) -> PartialShape:
        return Unranked(self.shape.element_type)

    @property
    def _bits(self) -> int:
        return ELEMENT_TYPES[self.shape.element_type].bits

    @constraint("C3", "an operand of narrower elements has them in its last dimension")
    def has_parts(self, operand: Shape) -> Fault:
        parts = self._bits // ELEMENT_TYPES[operand.element_type].bits
        if parts <= 1 or same_dims(operand.dims[-1:], (parts,)):
            return HOLDS
        return Fault(f"the last dimension of {dims_text(operand)} is not {parts}", 0)

    def infer_shape(self, operand: Shape) -> Shape:
        bits = ELEMENT_TYPES[operand.element_type].bits
        sizes: Sequence[Dim | int] = dims_of(operand)
        if bits > self._bits:
            sizes = [*sizes, bits // self._bits]
        elif bits < self._bits:
            sizes = sizes[:-1]
        return array(self.shape.element_type, sizes)

    def output_to_input(self, out: Shape, operand: Shape) -> IndexingMap:
        i = dims(out)
        s = ranges(*operand.dims[out.rank :])  # a further minor dimension
        return IndexingMap.of(i, [*i[: operand.rank], *s], ranges=s)

    def element(self, out: Shape, *operands: Shape) -> ElementRule:
        return same_bits(out, operands[0], is_tiled=False)

    def kernel(self, operand: Array) -> Array:
        kind = dtype(self.shape.element_type)
        if kind.itemsize == operand.itemsize:
            return operand.view(kind)
        flat = np.ascontiguousarray(operand).reshape(-1)
        return flat.view(kind).reshape(self.shape.dims)


def same_bits(out: Shape, operand: Shape, is_tiled: bool) -> ElementRule:
    """An element with the bits of an element of the operand, of several, or of a part of one."""
    ours, theirs = (ELEMENT_TYPES[s.element_type] for s in (out, operand))
    kind, is_view = dtype(ours.name), not is_tiled
    if ours.name == theirs.name:
        return CopyRule(has_padding=is_tiled, is_view=is_view)
    if ours.bits == theirs.bits:
        function = reinterpreted(kind, ours.name)
        return CopyRule(function=function, has_padding=is_tiled, is_view=is_view)
    if min(ours.bits, theirs.bits) < 8 or is_tiled:
        return OpaqueRule(
            f"elements of {ours.bits} bits are made of elements of {theirs.bits} bits"
        )
    if ours.bits > theirs.bits:
        return CopyRule(function=joined(kind, ours.name), joins=True, is_view=True)
    parts = theirs.bits // ours.bits
    return CopyRule(function=part_of(kind, ours.name), parts=parts, is_view=True)


def _same_bytes(source: Shape, target: Shape) -> IndexingMap | Unknown:
    """The map from the elements of one shape to those of another that share a byte with them."""
    if _is_tiled(source) or _is_tiled(target):
        return _same_tiles(source, target)
    ratio = _ratio(source, target)
    if ratio is None:
        return Unknown(f"{target} and {source} do not take the same number of bits")
    many, one = ratio
    i, s = dims(source), ranges(*[many][: many > 1])
    outer, inner = _major_to_minor(source), _major_to_minor(target)
    found = reindexed(
        [*[i[k] for k in outer], *s],
        [*[source.dims[k] for k in outer], *[v.upper + 1 for v in s]],
        [*[target.dims[k] for k in inner], one],
    )
    return IndexingMap.of(i, placed(target.rank, zip(inner, found, strict=False)), ranges=s)


def _same_tiles(source: Shape, target: Shape) -> IndexingMap | Unknown:
    """The same for tiled layouts, where both have the same tiles over the same minor dimensions.

    Tiles only move elements along the minor dimensions that they cover; dimensions that are more
    major are in row-major order outside of them. Source: XLA ``docs/tiled_layout.md``.
    """
    covered = max(map(len, source.layout_or_default.tiles), default=0)
    outer, outs = _padded(source, covered)
    inner, ins = _padded(target, covered)
    i, split = dims(source), [len(outs) - covered, len(ins) - covered]
    if (
        not _has_same_tiling(source, target)
        or outs[split[0] :] != ins[split[1] :]
        or math.prod(outs) != math.prod(ins)
    ):
        return _same_place(source, target)
    index: list[Affine] = [0 if k is None else i[k] for k in outer]
    major = reindexed(index[: split[0]], outs[: split[0]], ins[: split[1]])
    found = zip(inner, [*major, *index[split[0] :]], strict=True)
    return IndexingMap.of(i, placed(target.rank, [(k, at) for k, at in found if k is not None]))


def _same_place(source: Shape, target: Shape) -> IndexingMap | Unknown:
    """The same for any tiles: through the places in memory, of which padding is no element."""
    wrong = layout_fault(source) or layout_fault(target)
    if wrong or _is_sparse(source) or _is_sparse(target) or _bits(source) != _bits(target):
        return Unknown(f"a bitcast between tiled layouts: {target} and {source}")
    return physical_map(source).then(logical_map(target)).simplify()


def _padded(shape: Shape, rank: int) -> tuple[list[int | None], list[int]]:
    """Dimensions and sizes from major to minor; further ones of size 1 in front up to `rank`."""
    extra = max(0, rank - shape.rank)
    order = _major_to_minor(shape)
    return [*[None] * extra, *order], [*[1] * extra, *[shape.dims[k] for k in order]]


def _major_to_minor(shape: Shape) -> tuple[int, ...]:
    return shape.layout_or_default.minor_to_major[::-1]


def _is_tiled(shape: Shape) -> bool:
    """The elements do not lie one after another in the order of the dimensions."""
    layout = shape.layout_or_default
    is_padded = layout.tail_padding != 1 or bool(layout.padded_dimensions)
    return bool(layout.tiles) or is_padded or _is_sparse(shape)


def _is_sparse(shape: Shape) -> bool:
    layout = shape.layout_or_default
    return bool(layout.dim_level_types or layout.physical_shape)


def _has_same_tiling(one: Shape, other: Shape) -> bool:
    ours, theirs = one.layout_or_default, other.layout_or_default
    plain = not (_is_sparse(one) or _is_sparse(other))
    plain = plain and not (ours.padded_dimensions or theirs.padded_dimensions)
    return plain and ours.tiles == theirs.tiles and _bits(one) == _bits(other)


def _bits(shape: Shape) -> int:
    """Bits that an element takes in memory: whole bytes, unless the layout packs elements."""
    packed = shape.layout.element_bits if shape.layout else 0
    return packed or max(8, ELEMENT_TYPES[shape.element_type].bits)


def _packed_bits(shape: Shape) -> int:
    return ELEMENT_TYPES[shape.element_type].bits


def _ratio(source: Shape, target: Shape) -> tuple[int, int] | None:
    """How many elements of `target` one of `source` is, and the other way round; one of them is 1.

    None if the two do not take the same number of bits. Text without layouts may mean packed
    elements.
    """
    for bits in (_bits, _packed_bits):
        ours, theirs = bits(source), bits(target)
        same = math.prod(source.dims) * ours == math.prod(target.dims) * theirs
        if same and (ours % theirs == 0 or theirs % ours == 0):
            return max(1, ours // theirs), max(1, theirs // ours)
    return None

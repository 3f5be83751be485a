"""Bitcast: the same bytes under another shape and layout.

The result's layout gives each element of the result a position in memory. The element reads the
operand element that has the same position in the operand's layout. With the dimensions of both
sides ordered from major to minor, a bitcast is a row-major reshape (`indexing.ops.reshape`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from hlo.modules.checks import layout_fault
from hlo.ops.op import HOLDS, Fault, Shape, constraint, declared, op
from hlo.ops.protocols import InstructionLike
from hlo.ops.unify import Dim, PartialShape, Unranked, array, dims_of, is_partial, may_be_same_dims
from hlo.shapes.memory import from_physical, to_physical
from hlo.shapes.shape import ELEMENT_TYPES, dtype, layouts_text
from indexing.maps.answers import Unknown
from indexing.maps.indexing_map import IndexingMap, dims, ranges
from indexing.maps.layouts import logical_map, physical_map
from indexing.ops.base import Array, Path, UnaryOp
from indexing.ops.bits import repack_bits
from indexing.ops.element import CopyRule, ElementRule, OpaqueRule
from indexing.ops.elementwise import UnaryElementwise
from indexing.ops.functions import joining_function, part_of, reinterpretation
from indexing.ops.positions import list_by_position
from indexing.ops.reshape import element_count_text, reindex
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

    If the element widths differ, the side with the narrower elements has an additional minor-most
    dimension, whose size is the ratio of the widths.

    Source: XLA ``docs/operation_semantics.md``, "Bitcast"; ``docs/shapes.md`` for minor-to-major.
    """

    is_view: ClassVar[bool] = True
    counts_reads: ClassVar[bool] = True
    kernel_takes_shapes: ClassVar[bool] = True
    shape: Shape = declared()

    @constraint("C1", "the operand and the result must have the same number of bits")
    def keeps_bits(self, operand: Shape) -> Fault:
        if is_partial(operand) or is_partial(self.shape):
            return HOLDS
        if is_tiled(operand) or is_tiled(self.shape):
            return HOLDS  # the size of a tiled buffer includes padding
        if _widths(self.shape, operand) is not None:
            return HOLDS
        ours = f"{element_count_text(self.shape.dims)} of {self.shape.element_bits} bits out"
        given = f"{element_count_text(operand.dims)} of {operand.element_bits} bits in"
        return Fault(f"{given}, {ours}")

    def infer_shape(self, operand: Shape) -> Shape:
        return self.shape

    def shared_leaf(self, path: Path) -> tuple[int, Path] | None:
        return 0, ()

    def value_attributes(self, instruction: InstructionLike) -> dict[str, Hashable]:
        """Add the layouts, by which elements correspond."""
        (operand,) = instruction.operands
        layouts = f"{layouts_text(operand.shape)} -> {layouts_text(instruction.shape)}"
        return UnaryOp.value_attributes(self, instruction) | {"layouts": layouts}

    def output_to_input(self, out: Shape, operand: Shape) -> IndexingMap | Unknown:
        return _same_bytes(out, operand)

    def input_to_output(self, out: Shape, operand: Shape) -> IndexingMap | Unknown:
        return _same_bytes(operand, out)

    def element(self, out: Shape, *operands: Shape) -> ElementRule:
        (operand,) = operands
        if is_tiled(out) or is_tiled(operand):
            widths = operand.element_bits, out.element_bits
            rule = same_bits(out, operand, widths, is_tiled=True)
            if isinstance(rule, CopyRule) and _is_total(_same_bytes(out, operand), out):
                return replace(rule, has_padding=False)
            return rule
        return same_bits(out, operand, _widths(operand, out), is_tiled=False)

    def kernel(self, operand: Array, operands: tuple[Shape, ...]) -> Array:
        kind, (source,) = dtype(self.shape.element_type), operands
        tiled = is_tiled(self.shape) or is_tiled(source)
        if tiled and not tiles_cancel(source, self.shape):
            stored = to_physical(operand, source.layout_or_default)
            if stored.dtype != object:
                stored = repack_bits(stored, kind, (source.element_bits, self.shape.element_bits))
            buffer = np.zeros(self.shape.physical_size, dtype=stored.dtype)
            count = min(len(stored), len(buffer))
            buffer[:count] = stored[:count]
            return from_physical(buffer, self.shape.layout_or_default, self.shape.dims)
        stored = operand.transpose(_major_to_minor(source)).reshape(-1)
        order = _major_to_minor(self.shape)
        sizes = [self.shape.dims[k] for k in order]
        if stored.dtype != object:
            widths = _widths(source, self.shape)
            assert widths is not None, "C1 holds"
            stored = repack_bits(stored, kind, widths)
        return stored.reshape(sizes).transpose(np.argsort(order))


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
    """``out[i]`` has the bits of operand[i]; a change of width adds or drops a minor dimension.

    Source: XLA ``docs/operation_semantics.md``, "BitcastConvertType".
    """

    kernel_takes_shapes: ClassVar[bool] = True
    shape: Shape = declared()

    def infer_unranked(self, *operands: PartialShape) -> PartialShape:
        return Unranked(self.shape.element_type)

    @property
    def _bits(self) -> int:
        return ELEMENT_TYPES[self.shape.element_type].bits

    @constraint("C3", "the last dimension of a narrower operand must be the ratio of the widths")
    def has_parts(self, operand: Shape) -> Fault:
        bits = ELEMENT_TYPES[operand.element_type].bits
        parts = self._bits // bits
        if parts <= 1 or may_be_same_dims(operand.dims[-1:], (parts,)):
            return HOLDS
        ratio = f"expected {self._bits} / {bits} = {parts}"
        last = f"the last dimension is {operand.dims[-1]}" if operand.dims else "the rank is 0"
        return Fault(f"{last}, {ratio}", 0)

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
        s = ranges(*operand.dims[out.rank :])  # the minor dimension of a narrower operand
        return IndexingMap.of(i, [*i[: operand.rank], *s], ranges=s)

    def element(self, out: Shape, *operands: Shape) -> ElementRule:
        widths = ELEMENT_TYPES[operands[0].element_type].bits, self._bits
        return same_bits(out, operands[0], widths, is_tiled=False)

    def kernel(self, operand: Array, operands: tuple[Shape, ...]) -> Array:
        kind = dtype(self.shape.element_type)
        widths = ELEMENT_TYPES[operands[0].element_type].bits, self._bits
        if widths[0] >= widths[1]:
            parts = repack_bits(operand[..., None], kind, widths)
            return parts if widths[0] > widths[1] else parts[..., 0]
        return repack_bits(operand, kind, widths)[..., 0]


def same_bits(
    out: Shape, operand: Shape, widths: tuple[int, int] | None, is_tiled: bool
) -> ElementRule:
    """The rule for elements that have the bits of one operand element, of several, or of a part.

    Args:
        widths: the bits of one element in memory, of the operand and of `out`; None if the shapes
            differ in number of bits.
        is_tiled: one of the layouts has tiles or padding.
    """
    kind, name, is_view = dtype(out.element_type), out.element_type, not is_tiled
    if widths is None:
        return OpaqueRule(_differ_in_bits(out, operand))
    theirs, ours = widths
    if ours == theirs:
        is_same = name == operand.element_type
        function = None if is_same else reinterpretation(kind, name, widths)
        return CopyRule(function=function, has_padding=is_tiled, is_view=is_view)
    if is_tiled:
        return OpaqueRule(f"elements of {ours} bits are made of elements of {theirs} bits")
    if ours > theirs:
        return CopyRule(
            function=joining_function(kind, name, widths), joins_parts=True, is_view=True
        )
    return CopyRule(function=part_of(kind, name, widths), parts=theirs // ours, is_view=True)


def _is_total(indexing_map: IndexingMap | Unknown, out: Shape) -> bool:
    """Return True for a map that gives each element of `out` one element."""
    if isinstance(indexing_map, Unknown) or indexing_map.constraints or indexing_map.ranges:
        return False
    return [v.bounds for v in indexing_map.dims] == [(0, size - 1) for size in out.dims]


def _differ_in_bits(one: Shape, other: Shape) -> str:
    return f"bitcast of {one} and {other}, which differ in number of bits"


def _same_bytes(source: Shape, target: Shape) -> IndexingMap | Unknown:
    """The map from elements of `source` to the elements of `target` in the same bytes."""
    if is_tiled(source) or is_tiled(target):
        return _same_tiles(source, target)
    widths = _widths(source, target)
    if widths is None:
        return Unknown(_differ_in_bits(target, source))
    per_source, per_target = max(1, widths[0] // widths[1]), max(1, widths[1] // widths[0])
    i, s = dims(source), ranges(*[per_source][: per_source > 1])
    outer, inner = _major_to_minor(source), _major_to_minor(target)
    index = reindex(
        [*[i[k] for k in outer], *s],
        [*[source.dims[k] for k in outer], *[v.upper + 1 for v in s]],
        [*[target.dims[k] for k in inner], per_target],
    )
    return IndexingMap.of(
        i, list_by_position(target.rank, zip(inner, index, strict=False)), ranges=s
    )


def _same_tiles(source: Shape, target: Shape) -> IndexingMap | Unknown:
    """The map of `_same_bytes` for tiled layouts.

    If both layouts have the same tiles over the same minor dimensions, the tiles cancel: tiles
    permute elements only along the minor dimensions that they cover, and the more major dimensions
    are in row-major order. Other tiles need `_same_position`.

    Source: XLA ``docs/tiled_layout.md``.
    """
    if not tiles_cancel(source, target):
        return _same_position(source, target)
    covered = _covered_rank(source)
    outer, outs = _padded_dims(source, covered)
    inner, ins = _padded_dims(target, covered)
    i, split = dims(source), [len(outs) - covered, len(ins) - covered]
    index: list[Affine] = [0 if k is None else i[k] for k in outer]
    major = reindex(index[: split[0]], outs[: split[0]], ins[: split[1]])
    pairs = zip(inner, [*major, *index[split[0] :]], strict=True)
    return IndexingMap.of(
        i, list_by_position(target.rank, [(k, at) for k, at in pairs if k is not None])
    )


def tiles_cancel(source: Shape, target: Shape) -> bool:
    """Return True if both layouts have the same tiles over minor dimensions of the same sizes.

    Then the bitcast relates the same elements as one without tiles.
    """
    if not _has_same_tiling(source, target):
        return False
    covered = _covered_rank(source)
    outs, ins = [_padded_dims(shape, covered)[1] for shape in (source, target)]
    same = outs[len(outs) - covered :] == ins[len(ins) - covered :]
    return same and math.prod(outs) == math.prod(ins)


def _covered_rank(shape: Shape) -> int:
    return max(map(len, shape.layout_or_default.tiles), default=0)


def _same_position(source: Shape, target: Shape) -> IndexingMap | Unknown:
    """The map of `_same_bytes` for any tiles, through positions in memory; padding is skipped."""
    invalid = layout_fault(source) or layout_fault(target)
    if (
        invalid
        or _is_sparse(source)
        or _is_sparse(target)
        or source.element_bits != target.element_bits
    ):
        return Unknown(f"no map for a bitcast between these tiled layouts: {target} and {source}")
    return physical_map(source).then(logical_map(target)).simplify()


def _padded_dims(shape: Shape, rank: int) -> tuple[list[int | None], list[int]]:
    """Dimensions and sizes from major to minor, with leading dimensions of size 1 up to `rank`.

    An added dimension is None.
    """
    extra = max(0, rank - shape.rank)
    order = _major_to_minor(shape)
    return [*[None] * extra, *order], [*[1] * extra, *[shape.dims[k] for k in order]]


def _major_to_minor(shape: Shape) -> tuple[int, ...]:
    return shape.layout_or_default.minor_to_major[::-1]


def is_tiled(shape: Shape) -> bool:
    """Return True if the buffer is not the dense sequence of elements in dimension order."""
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
    return plain and ours.tiles == theirs.tiles and one.element_bits == other.element_bits


def _bits_in_memory(shape: Shape) -> int:
    return shape.element_bits


def _packed_bits(shape: Shape) -> int:
    return ELEMENT_TYPES[shape.element_type].bits


def _widths(source: Shape, target: Shape) -> tuple[int, int] | None:
    """Bits of one element of each shape in memory, where one is a multiple of the other.

    None if the shapes differ in number of bits. Both whole bytes and packed elements are tried,
    because HLO without layouts may mean either.
    """
    for bits in (_bits_in_memory, _packed_bits):
        ours, theirs = bits(source), bits(target)
        same = math.prod(source.dims) * ours == math.prod(target.dims) * theirs
        if same and (ours % theirs == 0 or theirs % ours == 0):
            return ours, theirs
    return None

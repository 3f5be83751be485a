"""Reshape and bitcast: the same elements in the same order, under other indices.

Two shapes with the same number of elements in row-major order fall apart into the smallest groups
of neighbouring dimensions with equal products; only inside a group are indices recombined:

>>> for group in groups((4, 8, 1, 12), (32, 3, 4)):
...     print(group)
Group(outs=(0,), ins=(0, 1))
Group(outs=(1, 2), ins=(3,))
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hlo.attributes import integer
from hlo.op import HOLDS, Fault, Shape, attribute, constraint, declared, op
from hlo.shape import ELEMENT_TYPES, dtype
from indexing.access import Unknown
from indexing.map import IndexingMap, dims, ranges
from indexing.op import Array, UnaryOp, placed
from simplifier.linear import Affine, Expr, constant


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring dimensions on both sides that hold the same indices, in row-major order."""

    outs: tuple[int, ...]
    ins: tuple[int, ...]


def groups(ins: Sequence[int], outs: Sequence[int]) -> Iterator[Group]:
    """The smallest groups of dimensions; those of size 1 are in none. The sizes hold no 0."""
    left = [(k, n) for k, n in enumerate(ins) if n != 1]
    right = [(k, n) for k, n in enumerate(outs) if n != 1]
    i = j = 0
    while i < len(left) and j < len(right):
        start = i, j
        a, b = left[i][1], right[j][1]
        i, j = i + 1, j + 1
        while a != b:
            if a < b:
                a, i = a * left[i][1], i + 1
            else:
                b, j = b * right[j][1], j + 1
        yield Group(
            outs=tuple([k for k, _ in right[start[1] : j]]),
            ins=tuple([k for k, _ in left[start[0] : i]]),
        )


def reindexed(index: Sequence[Affine], outs: Sequence[int], ins: Sequence[int]) -> list[Affine]:
    """The index into shape `ins` of the element at `index` of shape `outs`, both row-major.

    >>> d = dims((2, 6))
    >>> print(*reindexed(d, (2, 6), (3, 1, 4)), sep=", ")
    d0 + (d0 * 2 + d1) floordiv 4, 0, (d0 * 2 + d1) mod 4
    """
    found: list[Affine] = [0] * len(ins)
    for group in groups(ins, outs):
        position: Expr = constant(0)
        for k in group.outs:
            position = position * outs[k] + index[k]
        for k in reversed(group.ins):
            found[k] = position % ins[k] if k != group.ins[0] else position
            position = position // ins[k]
    return found


def _example(sizes: tuple[int, ...]) -> str:
    return f"{math.prod(sizes)} elements"


@op(
    "reshape",
    samples=[
        "f32[3,1,4] reshape(f32[2,6] p)",
        "f32[2,4,4] reshape(f32[4,8] p)",
        "f32[6,2,2] reshape(f32[2,3,4] p)",
        "f32[15,2] reshape(f32[5,6] p)",
        "f32[1,1] reshape(f32[] p)",
        "f32[] reshape(f32[1,1,1] p)",
        "f32[3,0] reshape(f32[0,7] p)",
        "f32[2,3,1,5] reshape(f32[1,2,15] p)",
        "f32[2,6,3]{0,1,2} reshape(f32[6,2,3]{1,0,2} p)",
    ],
)
class Reshape(UnaryOp):
    """``out[i] = operand[j]`` where i and j have the same position in row-major order."""

    shape: Shape = declared()
    inferred_dimension: int | None = attribute(integer, default=None)

    @constraint("C1", "the operand and the result have the same number of elements")
    def keeps_elements(self, operand: Shape) -> Fault:
        if math.prod(operand.dims) == math.prod(self.shape.dims):
            return HOLDS
        label = f"{_example(operand.dims)} become {_example(self.shape.dims)}"
        return Fault(label, help="let the product of the sizes stay the same")

    def infer_shape(self, operand: Shape) -> Shape:
        return self.shape.with_element_type(operand.element_type)

    def output_to_input(self, out: Shape, operand: Shape) -> IndexingMap:
        return IndexingMap.over(out, lambda i: reindexed(i, out.dims, operand.dims))

    def input_to_output(self, out: Shape, operand: Shape) -> IndexingMap:
        return IndexingMap.over(operand, lambda j: reindexed(j, operand.dims, out.dims))

    def kernel(self, operand: Array) -> Array:
        return operand.reshape(self.shape.dims)


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
    ],
)
class Bitcast(UnaryOp):
    """The same bytes read with another shape and layout.

    An element of the result has a position in memory by the result's layout; the element of the
    operand at the same position, by the operand's layout, is the one that it shows. Where the sizes
    of the elements differ, one side has a further most minor dimension of their ratio.

    Source: XLA ``docs/operation_semantics.md``, "Bitcast"; ``docs/shapes.md`` for minor-to-major.
    """

    shape: Shape = declared()

    @constraint("C1", "the operand and the result take the same number of bits")
    def keeps_bits(self, operand: Shape) -> Fault:
        if _is_tiled(operand) or _is_tiled(self.shape):
            return HOLDS  # padding counts too, and is not known here
        if _ratio(self.shape, operand) is not None:
            return HOLDS
        ours = f"{_example(self.shape.dims)} of {_bits(self.shape)} bits"
        return Fault(f"{_example(operand.dims)} of {_bits(operand)} bits become {ours}")

    def infer_shape(self, operand: Shape) -> Shape:
        return self.shape

    def output_to_input(self, out: Shape, operand: Shape) -> IndexingMap | Unknown:
        return _same_bytes(out, operand)

    def input_to_output(self, out: Shape, operand: Shape) -> IndexingMap | Unknown:
        return _same_bytes(operand, out)

    def kernel(self, operand: Array, operands: tuple[Shape, ...]) -> Array:
        laid = np.ascontiguousarray(operand.transpose(_major_to_minor(operands[0])))
        order = _major_to_minor(self.shape)
        sizes = [self.shape.dims[k] for k in order]
        if laid.dtype != object:
            laid = laid.reshape(-1).view(dtype(self.shape.element_type))
        return laid.reshape(sizes).transpose(np.argsort(order))


def _major_to_minor(shape: Shape) -> tuple[int, ...]:
    return shape.layout_or_default.minor_to_major[::-1]


def _is_tiled(shape: Shape) -> bool:
    """The elements do not lie one after another in the order of the dimensions."""
    layout = shape.layout_or_default
    return bool(layout.tiles or layout.dim_level_types or layout.physical_shape)


def _same_tiling(one: Shape, other: Shape) -> bool:
    ours, theirs = one.layout_or_default, other.layout_or_default
    same = ours.minor_to_major == theirs.minor_to_major and ours.tiles == theirs.tiles
    return same and one.dims == other.dims and _bits(one) == _bits(other)


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


def _same_bytes(source: Shape, target: Shape) -> IndexingMap | Unknown:
    """The map from the elements of one shape to those of another that share a byte with them."""
    if _is_tiled(source) or _is_tiled(target):
        if _same_tiling(source, target):
            return IndexingMap.identity(source)
        return Unknown(f"a bitcast between tiled layouts: {target} and {source}")
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

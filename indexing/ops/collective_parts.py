"""Whole arrays, and the parts of them that the devices of a group have."""

from __future__ import annotations

from hlo.ops.op import HOLDS, Fault
from hlo.ops.unify import may_be, may_divide
from hlo.shapes.shape import AnyShape, Shape, leaves
from indexing.maps.indexing_map import Grade, IndexingMap, dims, ranges
from simplifier.linear import Affine


def whole_to_part(start: Shape, end: Shape, along: int, grade: Grade = "exact") -> IndexingMap:
    """From an index of the whole array to the index in one part along dimension `along`.

    >>> print(whole_to_part(Shape("f32", (6,)), Shape("f32", (2,)), 0))
    (d0) -> (d0 mod 2), domain: d0 in [0, 5]
    """
    d = dims(start)
    return IndexingMap.of(d, with_index(d, along, d[along] % end.dims[along]), grade=grade)


def part_to_whole(start: Shape, end: Shape, along: int, grade: Grade = "exact") -> IndexingMap:
    """From an index of one part to this index in every part of the whole array along `along`.

    >>> print(part_to_whole(Shape("f32", (2,)), Shape("f32", (6,)), 0))
    (d0)[s0] -> (d0 + s0 * 2), domain: d0 in [0, 1], s0 in [0, 2]
    """
    d, size = dims(start), start.dims[along]
    s = ranges(end.dims[along] // size)
    return IndexingMap.of(d, with_index(d, along, d[along] + s[0] * size), ranges=s, grade=grade)


def with_index(index: tuple[Affine, ...], along: int, value: Affine) -> list[Affine]:
    """Return `index` with `value` along one dimension."""
    return [value if k == along else i for k, i in enumerate(index)]


def part_count(shape: AnyShape, operands: tuple[Shape, ...], along: int, gathers: bool) -> int:
    """The number of parts of the first result or operand that has elements; 0 if all are empty.

    The arguments are as in `parts_fault`, which finds no fault.
    """
    for (_, out), operand in zip(leaves(shape), operands, strict=True):
        assert isinstance(out, Shape)
        whole, part = (out, operand) if gathers else (operand, out)
        if whole.dims[along] > 0 and part.dims[along] > 0:
            return whole.dims[along] // part.dims[along]
    return 0


def parts_fault(
    shape: AnyShape, operands: tuple[Shape, ...], dimensions: tuple[int, ...], gathers: bool
) -> Fault:
    """The fault of results that are not a whole number of parts along the only dimension.

    Args:
        gathers: operands are parts of results; otherwise results are parts of operands.
    """
    if len(dimensions) != 1:
        return Fault(f"expected one dimension, got {len(dimensions)}", "dimensions")
    results = [leaf for _, leaf in leaves(shape)]
    if len(results) != len(operands):
        return Fault(f"number of results: expected {len(operands)}, got {len(results)}")
    along = dimensions[0]
    for number, (out, operand) in enumerate(zip(results, operands, strict=True)):
        if not isinstance(out, Shape) or not 0 <= along < operand.rank or out.rank != operand.rank:
            label = f"operand {number} is {operand.with_layout(None)}, its result is {out}"
            if operand.rank and along >= operand.rank:
                label = f"dimension {along} is not in [0, {operand.rank - 1}]"
            return Fault(label, "dimensions")
        whole, part = (out, operand) if gathers else (operand, out)
        pairs = list(zip(part.dims, whole.dims, strict=True))
        others = all(may_be(*pair) for k, pair in enumerate(pairs) if k != along)
        if not others or not may_divide(*pairs[along]):
            result = f"its result is {out.with_layout(None)}"
            label = f"operand {number} is {operand.with_layout(None)}, {result}"
            return Fault(label, number)
    return HOLDS

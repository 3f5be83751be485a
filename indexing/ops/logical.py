"""Programs without layouts: the same values from logical shapes alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import NamedTuple

from hlo.shapes.shape import ELEMENT_TYPES, AnyShape, Shape, TupleShape


class LogicalOp(NamedTuple):
    """One op of a chain that replaces a bitcast.

    Attributes:
        role: what the op does: "physical", "parts", "bits", "laid"; empty for the last one.
        shape: the shape of its result.
        opcode: the opcode.
        attributes: the text of its attributes, after the operands.
    """

    role: str
    shape: Shape
    opcode: str
    attributes: str = ""


def without_layouts(shape: AnyShape) -> AnyShape:
    """Return a shape without its layouts.

    >>> from hlo.shapes.shape import parse_shape
    >>> print(without_layouts(parse_shape("(f32[2,3]{0,1}, token[])")))
    (f32[2,3], token[])
    """
    match shape:
        case TupleShape(elements):
            return TupleShape(tuple([without_layouts(element) for element in elements]))
        case Shape():
            return shape.with_layout(None)
        case _:
            return shape


def logical_bitcast(source: Shape, target: Shape) -> list[LogicalOp]:
    """Return ops on logical shapes with the value of a bitcast.

    The chain is a transpose to the order in memory, a reshape, and a transpose back.

    >>> from hlo.shapes.shape import parse_shape
    >>> for op in logical_bitcast(parse_shape("f32[2,3]{0,1}"), parse_shape("f32[6]")):
    ...     print(op.shape, op.opcode, op.attributes)
    f32[3,2] transpose dimensions={1,0}
    f32[6] reshape
    """
    ops: list[LogicalOp] = []

    def add(role: str, kind: str, sizes: Sequence[int], opcode: str, attributes: str = "") -> None:
        ops.append(LogicalOp(role, Shape(kind, tuple(sizes)), opcode, attributes))

    order, back = (s.layout_or_default.minor_to_major[::-1] for s in (source, target))
    sizes, result = [source.dims[k] for k in order], [target.dims[k] for k in back]
    kinds = source.element_type, target.element_type
    if list(order) != sorted(order):
        add("physical", kinds[0], sizes, "transpose", f"dimensions={{{_number_list(order)}}}")
    if kinds[0] != kinds[1]:
        bits, other = (ELEMENT_TYPES[kind].bits for kind in kinds)
        if other > bits:
            add("parts", kinds[0], [prod(result), other // bits], "reshape")
            sizes = [prod(result)]
        elif other < bits:
            sizes = [*sizes, bits // other]
        add("bits", kinds[1], sizes, "bitcast-convert")
    is_last = list(back) == sorted(back)
    add("" if is_last else "laid", kinds[1], result, "reshape")
    if not is_last:
        inverse = _number_list(back.index(k) for k in range(target.rank))
        add("", kinds[1], target.dims, "transpose", f"dimensions={{{inverse}}}")
    return ops


def _number_list(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))

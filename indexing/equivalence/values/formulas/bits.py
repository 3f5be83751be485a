"""Bitcast-convert between types of different widths: shifted parts, least significant bits first.

``narrow[.., j] = (wide[..] >> j * w) mod 2^w``, and ``wide[..]`` is the union of the bits of
``narrow[.., j] << j * w`` over j.

Source: XLA ``xla/hlo/transforms/expanders/bitcast_dtypes_expander.cc``, and
``docs/operation_semantics.md``, "BitcastConvertType".
"""

from __future__ import annotations

from typing import Final

from hlo.shapes.shape import ELEMENT_TYPES, Shape
from indexing.equivalence.values.folds.fold_ranges import Fold
from indexing.equivalence.values.folds.folds import fold_formula
from indexing.equivalence.values.formulas.applications import Bodies, Frame, element_at
from indexing.equivalence.values.formulas.element_algebra import own_index
from indexing.equivalence.values.formulas.numbering import NumberedArray
from indexing.equivalence.values.terms.terms import Formula
from simplifier.atoms import Variable

_WIDTHS: Final = (8, 16, 32, 64)


def reinterpret(bodies: Bodies, array: NumberedArray, frame: Frame) -> Formula | None:
    """Return an element of a bitcast-convert to a type of another width; None for other ops."""
    instruction, shape = array.instruction, array.shape
    assert instruction is not None
    assert shape is not None
    if instruction.opcode != "bitcast-convert":
        return None
    ((operand,),) = [list(tree.values()) for tree in array.operands]
    assert operand.shape is not None
    bits, wide = _bits(shape), _bits(operand.shape)
    if bits == wide or not {bits, wide} <= set(_WIDTHS):
        return None
    if bits < wide:
        value = _low_bits(bodies, operand, frame, shape, bits)
    else:
        value = _join_parts(bodies, operand, frame, shape, wide)
    return _cast_bits(bodies, value, shape.element_type)


def _bits(shape: Shape) -> int:
    """Return the number of bits of the elements; 0 for types without integers of that width."""
    kind = ELEMENT_TYPES[shape.element_type]
    return 0 if kind.kind in ("pred", "complex") else kind.bits


def _cast_bits(bodies: Bodies, term: Formula, element_type: str) -> Formula:
    """Return a value with the same bits in a type of the same width."""
    if term.type == element_type:
        return term
    return bodies.algebra.apply("bitcast-convert", (), element_type, [term])


def _low_bits(
    bodies: Bodies, operand: NumberedArray, frame: Frame, shape: Shape, bits: int
) -> Formula:
    """Return the unsigned number in one part of a wide element."""
    assert operand.shape is not None
    algebra, kind = bodies.algebra, f"u{_bits(operand.shape)}"
    *index, part = own_index(shape)
    wide = _cast_bits(bodies, element_at(bodies, operand, frame, index), kind)
    shift = algebra.table.index(part * bits, kind)
    moved = algebra.apply("shift-right-logical", (), kind, [wide, shift])
    mask = algebra.table.constant((1 << bits) - 1, kind)
    low = algebra.apply("and", (), kind, [moved, mask])
    return algebra.apply("convert", (), f"u{bits}", [low])


def _join_parts(
    bodies: Bodies, operand: NumberedArray, frame: Frame, shape: Shape, bits: int
) -> Formula:
    """Return the unsigned number whose parts are narrow elements."""
    algebra, kind = bodies.algebra, f"u{_bits(shape)}"
    part = Variable("s0", 0, _bits(shape) // bits - 1)
    index = [*own_index(shape), part.as_expr()]
    narrow = _cast_bits(bodies, element_at(bodies, operand, frame, index), f"u{bits}")
    value = algebra.apply("convert", (), kind, [narrow])
    shift = algebra.table.index(part.as_expr() * bits, kind)
    moved = algebra.apply("shift-left", (), kind, [value, shift])
    zero = algebra.table.constant(0, kind)
    return fold_formula(algebra, Fold("or", (), 0, kind, (zero,), (moved,), (part,)))

"""Custom calls by which XLA:TPU splits types of 64 bits into two parts, and combines them.

XLA:TPU computes on 32 bits.  An integer of 64 bits has a lower and a higher word.  A complex
number has its real part first.  A number of type f64 is a sum of two of type f32: the first is the
number rounded to f32, the second is what the rounding leaves.

Source: modules of XLA:TPU (libtpu 0.0.42), where ``real`` and ``imag`` of c64, conversions of u64
to u32 and those between f32 and f64 each become one of these calls.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from hlo.modules.module import Instruction
from hlo.ops.op import custom_call
from hlo.shapes.shape import ELEMENT_TYPES, AnyShape, Shape, dtype
from indexing.maps.indexing_map import IndexingMap
from indexing.ops import numerics
from indexing.ops.base import Array, Entries
from indexing.ops.element import NO_WORK, Work
from indexing.ops.targets.definition import DefinedArray, Definition
from indexing.ops.targets.known_values import KnownValues

HALVES: Final = {"u64": "u32", "s64": "u32", "c64": "f32", "f64": "f32"}
"""The element type of both parts, by the type of 64 bits."""
_WORD: Final = 32


class HalvesCall(KnownValues):
    """A call between elements of 64 bits and their parts at the same index.

    Class attributes:
        parts: the number of operands.
    """

    __slots__ = ()
    accumulates: ClassVar[bool] = False
    parts: ClassVar[int] = 1

    @abstractmethod
    def wide_type(self, *operands: Shape) -> str:
        """The type of 64 bits."""

    @abstractmethod
    def narrow_type(self, *operands: Shape) -> str:
        """The type of the parts."""

    def why_not(self, *operands: Shape) -> str:
        if len(operands) != self.parts:
            return f"it has {len(operands)} operands, expected {self.parts}"
        if any(operand.dims != self.value.dims for operand in operands):
            return "the operands and the result differ in size"
        if len({operand.element_type for operand in operands}) > 1:
            return "the parts differ in type"
        wide, narrow = self.wide_type(*operands), self.narrow_type(*operands)
        return "" if HALVES.get(wide) == narrow else f"{narrow} is not a half of {wide}"

    def value_maps(self, out: Shape, *operands: Shape, exact: bool, output_id: int) -> Entries:
        return (IndexingMap.identity(out.dims),) * self.parts

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work:
        return NO_WORK

    def definition(self, instruction: Instruction) -> Definition:
        definition = Definition([operand.shape for operand in instruction.operands])
        definition.values = [self.define(definition, *definition.parameters)]
        return definition

    @abstractmethod
    def define(self, definition: Definition, *operands: DefinedArray) -> DefinedArray:
        """Return the value by ops of HLO."""


class Split(HalvesCall):
    """One part of each element of 64 bits."""

    __slots__ = ()

    def wide_type(self, *operands: Shape) -> str:
        return operands[0].element_type

    def narrow_type(self, *operands: Shape) -> str:
        return self.value.element_type


@custom_call(
    "X64SplitLow",
    samples=[
        f'{narrow}[2,3] custom-call({wide}[2,3] p), custom_call_target="X64SplitLow"'
        for wide, narrow in HALVES.items()
    ],
)
class X64SplitLow(Split):
    """The lower word, the real part, or the number rounded to f32."""

    def values(self, arrays: Sequence[Array], operands: Sequence[Shape]) -> tuple[Array, ...]:
        (array,) = arrays
        with np.errstate(over="ignore"):
            return (array.real.astype(dtype(self.value.element_type)),)

    def define(self, definition: Definition, *operands: DefinedArray) -> DefinedArray:
        (wide,) = operands
        if wide.shape.element_type == "c64":
            return definition.line(wide.shape.with_element_type("f32"), f"real({wide.name})")
        return definition.convert(wide, self.value.element_type)


@custom_call(
    "X64SplitHigh",
    samples=[
        f'{narrow}[2,3] custom-call({wide}[2,3] p), custom_call_target="X64SplitHigh"'
        for wide, narrow in HALVES.items()
        if wide in ("s64", "c64")  # of the others, the part of small numbers is 0
    ],
)
class X64SplitHigh(Split):
    """The higher word, the imaginary part, or what rounding to f32 leaves."""

    def values(self, arrays: Sequence[Array], operands: Sequence[Shape]) -> tuple[Array, ...]:
        (array,), (operand,) = arrays, operands
        kind = dtype(self.value.element_type)
        with np.errstate(over="ignore", invalid="ignore"):
            match ELEMENT_TYPES[operand.element_type].kind:
                case "complex":
                    return (array.imag.astype(kind),)
                case "floating":
                    return ((array - array.astype(kind)).astype(kind),)
                case _:
                    return ((array.view(np.uint64) >> np.uint64(_WORD)).astype(kind),)

    def define(self, definition: Definition, *operands: DefinedArray) -> DefinedArray:
        (wide,) = operands
        match wide.shape.element_type:
            case "c64":
                return definition.line(wide.shape.with_element_type("f32"), f"imag({wide.name})")
            case "f64":
                rounded = definition.convert(definition.convert(wide, "f32"), "f64")
                return definition.convert(definition.apply("subtract", wide, rounded), "f32")
            case _:
                by = definition.number(_WORD, wide)
                return definition.convert(
                    definition.apply("shift-right-logical", wide, by), self.value.element_type
                )


@custom_call(
    "X64Combine",
    samples=[
        f'{wide}[2,3] custom-call({part}[2,3] p, {part}[2,3] q), custom_call_target="X64Combine"'
        for wide, part in HALVES.items()
    ],
)
class X64Combine(HalvesCall):
    """The elements of 64 bits that consist of two parts, the first as `X64SplitLow` returns it."""

    parts: ClassVar[int] = 2

    def wide_type(self, *operands: Shape) -> str:
        return self.value.element_type

    def narrow_type(self, *operands: Shape) -> str:
        return operands[0].element_type

    def values(self, arrays: Sequence[Array], operands: Sequence[Shape]) -> tuple[Array, ...]:
        low, high = arrays
        kind = dtype(self.value.element_type)
        with np.errstate(invalid="ignore"):
            match ELEMENT_TYPES[self.value.element_type].kind:
                case "complex":
                    return (numerics.complex_number(low, high),)
                case "floating":
                    return (low.astype(kind) + high.astype(kind),)
                case _:
                    words = high.astype(np.uint64) << np.uint64(_WORD) | low.astype(np.uint64)
                    return (words.view(kind),)

    def define(self, definition: Definition, *operands: DefinedArray) -> DefinedArray:
        low, high = operands
        kind = self.value.element_type
        if kind == "c64":
            shape = low.shape.with_element_type(kind)
            return definition.line(shape, f"complex({low.name}, {high.name})")
        low, high = [definition.convert(part, kind) for part in operands]
        if kind == "f64":
            return definition.apply("add", low, high)
        moved = definition.apply("shift-left", high, definition.number(_WORD, high))
        return definition.apply("or", moved, low)

"""What an element of an op's result is: given, counted, computed, copied, folded, or opaque.

The *index* part, which elements are read and when, is the op's maps. The element adds the scalar
part: which operands hold the data, and the function of the elements that the maps lead to. Loop
nests, folded runtime variables, pointwise execution and memory estimates are made from both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from hlo.ops.op import Op
from hlo.shapes.shape import AnyShape, leaves

if TYPE_CHECKING:
    import numpy as np

    from hlo.modules.module import Instruction
    from indexing.ops.functions import ScalarFunction


@dataclass(frozen=True, slots=True)
class Constant:
    """A number of the program's text."""


@dataclass(frozen=True, slots=True)
class Iota:
    """The index along a dimension."""

    dimension: int


@dataclass(frozen=True, slots=True)
class Elementwise:
    """``function(operand elements)``.

    Attributes:
        function: the function; None if it is a computation.
        applied: the first computation that the instruction calls is the function.
        reads_nothing: the result does not depend on the operand's values.
    """

    function: ScalarFunction | None = None
    applied: bool = False
    reads_nothing: bool = False


@dataclass(frozen=True, slots=True)
class Copy:
    """The element of an operand that the maps lead to, then `function` of it.

    Attributes:
        operands: those that hold the data; at each index one map of one of them applies.
        function: takes the element; with `parts`, also the number of the part; with `joins`, the
            elements along the range variable, in order.
        has_padding: an element that no map leads from is 0: the value of padding is undefined.
        parts: how many elements of the result have the bits of one element of the operand.
        joins: one element of the result has the bits of several elements of the operand.
        is_view: the result needs no memory of its own.
    """

    operands: tuple[int, ...] = (0,)
    function: ScalarFunction | None = None
    has_padding: bool = False
    parts: int = 1
    joins: bool = False
    is_view: bool = False


@dataclass(frozen=True, slots=True)
class Reduction:
    """A fold over the range variables of the maps.

    Attributes:
        inits: operands that hold the initial values; () for zero.
        values: operands that are folded; if `is_product`, they are multiplied first.
        applied: the first computation that the instruction calls folds; else the fold is a sum.
        is_windowed: an element of an operand may be folded into several results.
        is_placed: a runtime variable decides to which result a value contributes.
        wide: the type in which products are summed.
    """

    inits: tuple[int, ...]
    values: tuple[int, ...]
    applied: bool = False
    is_product: bool = False
    is_windowed: bool = False
    is_placed: bool = False
    wide: np.dtype[Any] | None = None


@dataclass(frozen=True, slots=True)
class Opaque:
    """No per-element rule, and the reason."""

    reason: str


Element: TypeAlias = Constant | Iota | Elementwise | Copy | Reduction | Opaque
NOT_A_FOLD: Final = Opaque("an element of its result is not a fold of elements that it reads")
NO_RULE: Final = "no per-element rule is declared for this op"


class ElementOp(Op):
    """An op that says what an element of its result is.

    It has to know what to do with dimensions of unknown size, or say ``takes_partial = False``.

    Class attributes:
        rule: the element, where it is the same for all attributes and shapes.
        has_effect: it does more than its value shows, and runs even if no result is needed.
    """

    __slots__ = ()
    takes_partial: ClassVar[bool] = True
    rule: ClassVar[Element] = Opaque(NO_RULE)
    has_effect: ClassVar[bool] = False

    def element(self, out: Any, *operands: Any) -> Element:
        """An element of `out`, one array of the result, for operands of these shapes."""
        return self.rule


def element_of(instruction: Instruction, output_id: int = 0) -> Element:
    """The element of one array of an instruction's result, by its number.

    >>> import hlo, indexing.ops
    >>> root = hlo.parse("ENTRY e { p = f32[2] parameter(0) ROOT r = f32[2] copy(p) }").entry.root
    >>> element_of(root).is_view
    True
    """
    op = instruction.op
    if not isinstance(op, ElementOp):
        return Opaque("the opcode is not registered" if op is None else NO_RULE)
    arrays: list[AnyShape] = [shape for _, shape in leaves(instruction.shape)]
    out = arrays[output_id] if arrays else instruction.shape
    return op.element(out, *[operand.shape for operand in instruction.operands])

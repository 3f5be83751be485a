"""Combiners: the commutative and associative functions of two elements, with neutral elements.

Folds apply them in any order; of floating-point numbers up to rounding, as HLO accepts.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from hlo.ops.op import OPS
from hlo.shapes.shape import dtype
from indexing.ops.elementwise import BinaryElementwise
from indexing.ops.functions import neutral


class Combiner(NamedTuple):
    """A commutative and associative function.

    Attributes:
        opcode: the opcode of the scalar instruction.
        reduction: its name in shardings and signatures.
        function: the NumPy function.
        is_idempotent: True if x combined with x is x.
    """

    opcode: str
    reduction: str
    function: np.ufunc
    is_idempotent: bool = False

    def neutral(self, element_type: str) -> np.generic | None:
        """Return the neutral element in an element type; None if the type has none.

        >>> COMBINERS["maximum"].neutral("f32"), COMBINERS["and"].neutral("u8")
        (np.float32(-inf), np.uint8(255))
        >>> COMBINERS["maximum"].neutral("f8e4m3fn")  # a type without infinities
        -448
        >>> print(COMBINERS["maximum"].neutral("c64"), COMBINERS["add"].neutral("f8e8m0fnu"))
        None None
        """
        kind = dtype(element_type)
        if kind.kind == "c" and self.function in (np.maximum, np.minimum):
            return None
        value: np.generic = neutral(self.function, kind)
        return value if value == value else None


COMBINERS: Final = {
    combiner.opcode: combiner
    for combiner in (
        Combiner("add", "sum", np.add),
        Combiner("multiply", "prod", np.multiply),
        Combiner("maximum", "max", np.maximum, is_idempotent=True),
        Combiner("minimum", "min", np.minimum, is_idempotent=True),
        Combiner("and", "and", np.bitwise_and, is_idempotent=True),
        Combiner("or", "or", np.bitwise_or, is_idempotent=True),
        Combiner("xor", "xor", np.bitwise_xor),
    )
}
"""The combiners, by opcode."""

COMMUTATIVE: Final = frozenset(
    opcode for opcode, op in OPS.items() if issubclass(op, BinaryElementwise) and op.commutes
)
"""The opcodes of commutative functions of two elements."""

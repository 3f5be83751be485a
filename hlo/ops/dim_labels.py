"""``dim_labels``: which dimension of a convolution's operands and result is which.

>>> labels = dim_labels.parse("b01f_01io->bf01")
>>> labels.rank, labels.order("lhs"), labels.order("out")
(4, (0, 3, 1, 2), (0, 1, 2, 3))
>>> print(labels)
b01f_01io->bf01

Source: XLA ``xla/hlo/parser/hlo_parser.cc``, ``ParseConvolutionDimensionNumbers``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from hlo.ops.attributes import Cursor, Kind

_LABELS: Final = re.compile(r"([0-9bf?]+)_([0-9io?]+)->([0-9bf?]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class DimLabels:
    """A letter for each dimension, in order.

    Attributes:
        lhs: of the input: ``b`` for batch, ``f`` for feature, a digit for each spatial dimension,
            ``?`` for a dimension that has no part in the convolution.
        rhs: of the kernel: ``i`` for input feature, ``o`` for output feature, digits.
        out: of the result, in the letters of `lhs`.
    """

    lhs: str
    rhs: str
    out: str

    @property
    def rank(self) -> int:
        """How many dimensions each of the three arrays has."""
        return len(self.lhs)

    def order(self, of: Literal["lhs", "rhs", "out"]) -> tuple[int, ...]:
        """The dimensions of one of the arrays: b and f (of the kernel: i and o), then spatial ones.

        Spatial dimensions are in the order of the window.
        """
        text: str = getattr(self, of)
        letters = "io" if of == "rhs" else "bf"
        digits = sorted(filter(str.isdigit, text))
        return tuple([text.index(letter) for letter in (*letters, *digits)])

    def __str__(self) -> str:
        return f"{self.lhs}_{self.rhs}->{self.out}"


def _read(cursor: Cursor) -> DimLabels:
    found = cursor.need(_LABELS, "labels such as b01f_01io->b01f")
    count = sum(map(str.isdigit, found[1]))
    digits = "".join(map(str, range(min(count, 10))))
    for number, letters in ((1, "bf"), (2, "io"), (3, "bf")):
        if sorted(found[number].replace("?", "")) != sorted(letters + digits):
            wanted = ", ".join(letters + digits)
            span = cursor.source.span(*found.span(number))
            raise cursor.fault(f"expected each of {wanted}, once", span)
        if len(found[number]) != len(found[1]):
            label = f"{len(found[number])} labels, but the first array has {len(found[1])}"
            raise cursor.fault(label, cursor.source.span(*found.span(number)))
    return DimLabels(found[1], found[2], found[3])


dim_labels: Final = Kind("labels of dimensions", "b01f_01io->b01f", _read, str)

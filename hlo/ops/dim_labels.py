"""``dim_labels``: the roles of the dimensions of a convolution's operands and result.

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

from hlo.ops.attributes import Kind
from hlo.text.cursor import Cursor

_LABELS: Final = re.compile(r"([0-9bf?]+)_([0-9io?]+)->([0-9bf?]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class DimLabels:
    """One letter for each dimension, in order.

    Attributes:
        lhs: labels of the input: ``b`` for batch, ``f`` for feature, a digit for a spatial
            dimension, ``?`` for a dimension that is not convolved.
        rhs: labels of the kernel: ``i`` for input feature, ``o`` for output feature, digits.
        out: labels of the result, as `lhs`.
    """

    lhs: str
    rhs: str
    out: str

    @property
    def rank(self) -> int:
        """Number of dimensions of each of the three arrays."""
        return len(self.lhs)

    def order(self, of: Literal["lhs", "rhs", "out"]) -> tuple[int, ...]:
        """Return the dimensions of one array in the order b, f (of the kernel: i, o), 0, 1, ..

        Spatial dimensions are in the order of the window.
        """
        text: str = getattr(self, of)
        letters = "io" if of == "rhs" else "bf"
        digits = sorted(filter(str.isdigit, text))
        return tuple([text.index(letter) for letter in (*letters, *digits)])

    def __str__(self) -> str:
        return f"{self.lhs}_{self.rhs}->{self.out}"


def _read_labels(cursor: Cursor) -> DimLabels:
    labels = cursor.need(_LABELS, "input_kernel->result, such as b01f_01io->b01f")
    count = sum(map(str.isdigit, labels[1]))
    digits = "".join(map(str, range(min(count, 10))))
    for number, letters in ((1, "bf"), (2, "io"), (3, "bf")):
        if sorted(labels[number].replace("?", "")) != sorted(letters + digits):
            wanted = ", ".join(letters + digits)
            span = cursor.source.span(*labels.span(number))
            raise cursor.fault(f"expected each of {wanted} exactly once", span)
        if len(labels[number]) != len(labels[1]):
            label = f"{len(labels[number])} labels, but the first array has {len(labels[1])}"
            raise cursor.fault(label, cursor.source.span(*labels.span(number)))
    return DimLabels(labels[1], labels[2], labels[3])


dim_labels: Final = Kind(
    "labels of dimensions", "b01f_01io->b01f", _read_labels, str, form="of the form b01f_01io->b01f"
)

"""`ArrayRef`: one array of a program, the value of an instruction or a leaf of a tuple."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from hlo.modules.module import Instruction
from hlo.shapes.shape import AnyShape, Shape, TupleShape

Path: TypeAlias = tuple[int, ...]
"""Where an array is in a tuple: ``(1, 0)`` is b in ``(a, (b, c))``; ``()`` is no tuple."""


class ArrayRef(NamedTuple):
    """One array of a program.

    Attributes:
        instruction: what computes it.
        path: which leaf of the instruction's value.
        calls: the calls and fusions through which the computation of `instruction` is reached,
            outermost first: one computation may be called several times.

    >>> import hlo
    >>> text = "ENTRY e { p = (f32[2], s32[3]) parameter(0)  ROOT r = (f32[2], s32[3]) copy(p) }"
    >>> str(ArrayRef(hlo.parse(text).entry.root, (1,)).shape)
    's32[3]'
    """

    instruction: Instruction
    path: Path = ()
    calls: tuple[Instruction, ...] = ()

    @property
    def shape(self) -> AnyShape:
        """Its shape."""
        return leaf_at(self.instruction.shape, self.path)

    @property
    def array_shape(self) -> Shape | None:
        """Its shape if it is an array, else `None` (a token, a tuple)."""
        shape = self.shape
        return shape if isinstance(shape, Shape) else None


class ArrayName(NamedTuple):
    """An array where there is no module: in the answer of an op, or in a map read from a file.

    Attributes:
        instruction: its name; in the answer of an op the number of the operand.
        path, calls: as in `ArrayRef`.
    """

    instruction: str | int
    path: Path = ()
    calls: tuple[str, ...] = ()


def leaf_at(shape: AnyShape, path: Path) -> AnyShape:
    """The part of `shape` at `path`."""
    for number in path:
        assert isinstance(shape, TupleShape)
        shape = shape.elements[number]
    return shape

"""`ArrayRef`: one array of a program, which is the value of an instruction or a leaf of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from hlo.modules.module import Instruction
from hlo.shapes.shape import AnyShape, BufferShape, Shape, TupleShape, leaves

Path: TypeAlias = tuple[int, ...]
"""Position of an array in a tuple: ``(1, 0)`` is b in ``(a, (b, c))``; ``()`` is no tuple."""


class ArrayRef(NamedTuple):
    """One array of a program.

    Attributes:
        instruction: the instruction that computes the array.
        path: the leaf of the instruction's value.
        calls: the call stack of the computation of `instruction`, outermost first: one computation
            may be called several times.

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
        """The shape of the array."""
        return leaf_at(self.instruction.shape, self.path)

    @property
    def array_shape(self) -> Shape | None:
        """The shape if it is an array shape; `None` for tokens and tuples."""
        return array_at(self.instruction.shape, self.path)

    @property
    def loops(self) -> int:
        """The number of loops on the call stack: the array has a value in each iteration."""
        return sum(call.opcode == "while" for call in self.calls)


class ArrayName(NamedTuple):
    """An array without a module: in the maps of an op, or in a map read from a file.

    Attributes:
        instruction: the name of the instruction; in the maps of an op, the operand index.
        path, calls, loops: as in `ArrayRef`.
    """

    instruction: str | int
    path: Path = ()
    calls: tuple[str, ...] = ()
    loops: int = 0


def leaf_at(shape: AnyShape, path: Path) -> AnyShape:
    """The part of `shape` at `path`; for a buffer, the array that it contains.

    >>> from hlo.shapes.shape import parse_shape
    >>> print(leaf_at(parse_shape("(b(f32[2]), s32[])"), (0,)))
    f32[2]
    """
    for number in path:
        assert isinstance(shape, TupleShape)
        shape = shape.elements[number]
    return shape.element if isinstance(shape, BufferShape) else shape


def array_at(shape: AnyShape, path: Path) -> Shape | None:
    """The array at `path` of `shape`; `None` for tokens and tuples."""
    if path or not isinstance(shape, Shape):
        shape = leaf_at(shape, path)
    return shape if isinstance(shape, Shape) else None


def array_name(array: ArrayRef) -> str:
    """Return the name of an array: that of its instruction, and the leaf of a tuple.

    >>> import hlo
    >>> array_name(ArrayRef(hlo.parse("ENTRY e { ROOT p = (s8[]) parameter(0) }").entry.root, (0,)))
    'p{0}'
    """
    return leaf_name(array.instruction.name, array.path)


def leaf_name(name: str, path: Path) -> str:
    """Return the name of a leaf of an instruction, as XLA prints it.

    >>> leaf_name("p", ()), leaf_name("p", (1, 0))
    ('p', 'p{1,0}')
    """
    return name + (f"{{{','.join(map(str, path))}}}" if path else "")


def array_leaves(shape: AnyShape) -> Iterator[tuple[int, Path, Shape]]:
    """Yield the output number, path and shape of each leaf that is an array.

    Outputs number all leaves of a result; tokens are leaves, but no arrays.

    >>> from hlo.shapes.shape import parse_shape
    >>> [(n, path, str(leaf)) for n, path, leaf in array_leaves(parse_shape("(token[], (f32[2]))"))]
    [(1, (1, 0), 'f32[2]')]
    """
    for number, (path, leaf) in enumerate(leaves(shape)):
        if isinstance(leaf, Shape):
            yield number, path, leaf

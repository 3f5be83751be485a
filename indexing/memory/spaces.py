"""Memory spaces: the numbers ``S(..)`` of layouts, and what they are on a device.

Source: XLA ``docs/shapes.md``, "Memory Space Identifiers"; the names are facts of the devices.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from hlo.modules.module import Module
from hlo.shapes.shape import AnyShape, Shape, leaves
from indexing.devices import gpus, tpus

DEFAULT_SPACE: Final = 0


def is_for_tpu(module: Module) -> bool:
    """Return True if layouts have tiles, which XLA gives to arrays on TPUs only.

    >>> import hlo
    >>> is_for_tpu(hlo.parse("ENTRY e { ROOT p = f32[9]{0:T(128)} parameter(0) }"))
    True
    """

    def has_tiles() -> bool:
        return any(
            isinstance(shape, Shape) and shape.layout is not None and bool(shape.layout.tiles)
            for instruction in module.entry.instructions
            for _, shape in leaves(instruction.shape)
        )

    is_tiled: bool = module.memoised(is_for_tpu, has_tiles)
    return is_tiled


class ArraySize(NamedTuple):
    """The size of an array in memory.

    Attributes:
        elements: the number of elements.
        dense: the bytes of the elements.
        stored: the bytes in memory, with the padding of the layout.
    """

    elements: int
    dense: int
    stored: int

    @property
    def padding(self) -> int:
        """The bytes in memory that hold no element."""
        return self.stored - self.dense


def size_of(shape: AnyShape) -> ArraySize | None:
    """Return the size of an array: None if a dimension is unbounded, nothing for a token.

    >>> from hlo.shapes.shape import parse_shape
    >>> size_of(parse_shape("f32[64,10]{1,0:T(8,128)}"))
    ArraySize(elements=640, dense=2560, stored=32768)
    """
    if not isinstance(shape, Shape):
        return ArraySize(0, 0, 0)
    try:
        return ArraySize(shape.size, shape.bytes, shape.physical_bytes)
    except ValueError:
        return None


def space_of(shape: Shape) -> int:
    """Return the number of the memory space of an array.

    >>> from hlo.shapes.shape import parse_shape
    >>> space_of(parse_shape("f32[9]{0:T(128)S(1)}"))
    1
    """
    return shape.layout.memory_space if shape.layout else 0


def space_name(number: int, module: Module) -> str:
    """Return the name of a memory space on the device that a module is compiled for.

    A module without tiles is taken as one for a GPU: CPUs have only the default space.

    >>> import hlo
    >>> dense, tiled = "f32[9]{0}", "f32[9]{0:T(128)}"
    >>> for shape in dense, tiled:
    ...     module = hlo.parse(f"ENTRY e {{ ROOT p = {shape} parameter(0) }}")
    ...     print([space_name(number, module) for number in (0, 1, 5, 6)])
    ['device memory', 'collective memory', 'host', 'S(6)']
    ['HBM', 'VMEM', 'host', 'S(6)']
    """
    names = tpus.MEMORY_SPACES if is_for_tpu(module) else gpus.MEMORY_SPACES
    return names.get(number, f"S({number})")

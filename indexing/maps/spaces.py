"""Variables that index tensors: dimensions, range variables, and the sizes that bound them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import TypeAlias

from hlo.arguments import checked_on_failure
from hlo.shapes.shape import Shape
from simplifier.atoms import Variable
from simplifier.linear import Affine

Extents: TypeAlias = Sequence[int] | Shape
"""The sizes of a tensor, in elements, or its shape."""


@checked_on_failure
def dims(extents: Extents) -> tuple[Variable, ...]:
    """Return dimensions ``d0, d1, …`` of a tensor, each in ``[0, size - 1]``.

    Args:
        extents: the shape of the tensor, or its sizes.
    Raises:
        TypeError: a size is not an integer.
    Source: XLA ``docs/indexing.md``, "Indexing map" (dimension variables).

    >>> dims((2, 5))
    (Variable('d0', 0, 1), Variable('d1', 0, 4))
    """
    return _numbered("d", [index(size) for size in sizes_of(extents)])  # type: ignore[arg-type]


@checked_on_failure
def ranges(*sizes: int) -> tuple[Variable, ...]:
    """Return range variables ``s0, s1, …``, each in ``[0, size - 1]``.

    Source: XLA ``docs/indexing.md``, "Indexing map" (range variables).

    >>> ranges(3, 7)
    (Variable('s0', 0, 2), Variable('s1', 0, 6))
    """
    return _numbered("s", [index(size) for size in sizes])


def _numbered(prefix: str, sizes: Iterable[int]) -> tuple[Variable, ...]:
    return tuple([Variable(f"{prefix}{k}", 0, size - 1) for k, size in enumerate(sizes)])


def sizes_of(extents: Extents | Sequence[Affine]) -> tuple[Affine, ...]:
    """The sizes of a shape, or the sizes themselves."""
    return extents.dims if isinstance(extents, Shape) else tuple(extents)

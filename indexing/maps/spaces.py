"""Variables that index tensors: dimensions, range variables, and the sizes that bound them.

A range variable named ``i0, i1, …`` is an *iteration variable*: its values are the iterations of a
loop.  The name is the only difference from the other range variables, ``s0, s1, …``, so texts keep
the kind.  Where an iteration variable and another range variable become one, the result is another
range variable: its values are no iterations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
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
    return _numbered_variables("d", [index(size) for size in sizes_of(extents)])  # type: ignore[arg-type]


@checked_on_failure
def ranges(*sizes: int) -> tuple[Variable, ...]:
    """Return range variables ``s0, s1, …``, each in ``[0, size - 1]``.

    Source: XLA ``docs/indexing.md``, "Indexing map" (range variables).

    >>> ranges(3, 7)
    (Variable('s0', 0, 2), Variable('s1', 0, 6))
    """
    return _numbered_variables("s", [index(size) for size in sizes])


@checked_on_failure
def iterations(*sizes: int) -> tuple[Variable, ...]:
    """Return iteration variables ``i0, i1, …``, each in ``[0, size - 1]``.

    >>> iterations(16)
    (Variable('i0', 0, 15),)
    """
    return _numbered_variables("i", [index(size) for size in sizes])


def is_iteration(variable: Variable) -> bool:
    """Return True if a range variable is an iteration variable: ``i`` and a number.

    >>> [is_iteration(Variable(name, 0, 3)) for name in ("i0", "i12", "i", "i0_", "s0")]
    [True, True, False, False, False]
    """
    return variable.name[:1] == "i" and variable.name[1:].isdecimal()


def range_prefix(variable: Variable) -> str:
    """Return the first letter of the name of a range variable of this kind, before the number."""
    return "i" if is_iteration(variable) else "s"


def range_names(variables: Iterable[Variable]) -> list[str]:
    """Return names of range variables by their position, numbered separately for each kind.

    >>> range_names([Variable(name, 0, 3) for name in ("s4", "i7", "x", "i2")])
    ['s0', 'i0', 's1', 'i1']
    """
    numbers = {"s": count(), "i": count()}
    prefixes = [range_prefix(v) for v in variables]
    return [f"{prefix}{next(numbers[prefix])}" for prefix in prefixes]


def by_kind(variables: Iterable[Variable]) -> tuple[list[Variable], list[Variable]]:
    """Return the range variables that are no iteration variables, and those that are."""
    plain: list[Variable] = []
    of_loops: list[Variable] = []
    for v in variables:
        (of_loops if is_iteration(v) else plain).append(v)
    return plain, of_loops


def _numbered_variables(prefix: str, sizes: Iterable[int]) -> tuple[Variable, ...]:
    return tuple([Variable(f"{prefix}{k}", 0, size - 1) for k, size in enumerate(sizes)])


def sizes_of(extents: Extents | Sequence[Affine]) -> tuple[Affine, ...]:
    """The sizes of a shape, or the sizes themselves."""
    return extents.dims if isinstance(extents, Shape) else tuple(extents)

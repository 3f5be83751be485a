"""The values of scalars that the program determines."""

from __future__ import annotations

from hlo.shapes.shape import Shape
from indexing.dataflow.constants import element_at, is_integral
from indexing.dataflow.runtime import source_element
from indexing.dataflow.values import value_maps
from indexing.maps.arrays import ArrayRef


def scalar_value(array: ArrayRef) -> int | None:
    """Return the value of an integer or boolean scalar if the program determines it, else None.

    A value that is computed from constants only is determined, also through calls.

    >>> import hlo, indexing
    >>> root = hlo.parse("ENTRY e { c = s32[] constant(5) ROOT n = s32[] negate(c) }").entry.root
    >>> scalar_value(ArrayRef(root))
    -5
    """
    if not isinstance(array.shape, Shape) or array.shape.rank or not is_integral(array):
        return None
    source, index = source_element(array, ())
    if not all(i.is_constant for i in index):
        return None
    at = [i.constant for i in index]
    for piece in element_at(source, index) or value_maps(source) or ():
        value = piece.evaluate(at)
        if value is not None:
            return value[0]
    return None

"""Types of elements, and the numbers that change no total."""

from __future__ import annotations

from typing import Any

import numpy as np

from indexing.codegen.functions import scalar_text
from indexing.codegen.nest import Apply, Choose, Element, Place, Read, Scalar
from indexing.ops.numerics import is_integer, limits


def element_dtype(element: Element) -> np.dtype[Any]:
    """The type of an element, as far as totals need it."""
    match element:
        case Read():
            return element.buffer.dtype
        case Scalar():
            return element.value.dtype
        case Place() | Apply():
            return element.dtype
        case Choose():
            return element_dtype(element.otherwise)


def neutral_text(ufunc: Any, dtype: np.dtype[Any]) -> str:
    """The number that changes no total."""
    if ufunc in (np.add, np.bitwise_or, np.bitwise_xor):
        value: Any = 0
    elif ufunc is np.multiply:
        value = 1
    elif ufunc is np.bitwise_and:
        value = True if dtype.kind == "b" else limits(dtype)[1] if dtype.kind == "u" else -1
    else:
        is_max = ufunc is np.maximum
        if dtype.kind == "b":
            value = not is_max
        elif dtype.kind in "iu" or is_integer(np.empty(0, dtype)):
            value = limits(dtype)[not is_max]
        else:
            value = -np.inf if is_max else np.inf
    return scalar_text(np.asarray(value).astype(dtype))

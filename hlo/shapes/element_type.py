"""Element types of HLO: names, widths and NumPy types.

Source: XLA ``xla/xla_data.proto``, ``PrimitiveType``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy


@dataclass(frozen=True, slots=True)
class ElementType:
    """An element type.

    Attributes:
        name: HLO's name, such as ``bf16``.
        bits: number of bits of one element.
        kind: ``integral`` (signed), ``unsigned``, ``floating``, ``complex`` or ``pred``.
        dtype_name: name of the type in NumPy, or in package ml_dtypes if NumPy has none.
    """

    name: str
    bits: int
    kind: str
    dtype_name: str


_FLOATS = {
    "f16": (16, "float16"),
    "f32": (32, "float32"),
    "f64": (64, "float64"),
    "bf16": (16, "bfloat16"),
    "f8e5m2": (8, "float8_e5m2"),
    "f8e5m2fnuz": (8, "float8_e5m2fnuz"),
    "f8e4m3": (8, "float8_e4m3"),
    "f8e4m3fn": (8, "float8_e4m3fn"),
    "f8e4m3fnuz": (8, "float8_e4m3fnuz"),
    "f8e4m3b11fnuz": (8, "float8_e4m3b11fnuz"),
    "f8e3m4": (8, "float8_e3m4"),
    "f8e8m0fnu": (8, "float8_e8m0fnu"),
    "f6e2m3fn": (6, "float6_e2m3fn"),
    "f6e3m2fn": (6, "float6_e3m2fn"),
    "f4e2m1fn": (4, "float4_e2m1fn"),
}
_WIDTHS = (1, 2, 4, 8, 16, 32, 64)

ELEMENT_TYPES: dict[str, ElementType] = {
    element_type.name: element_type
    for element_type in [
        ElementType("pred", 8, "pred", "bool"),
        *(ElementType(f"s{bits}", bits, "integral", f"int{bits}") for bits in _WIDTHS),
        *(ElementType(f"u{bits}", bits, "unsigned", f"uint{bits}") for bits in _WIDTHS),
        *(ElementType(name, bits, "floating", dtype) for name, (bits, dtype) in _FLOATS.items()),
        ElementType("c64", 64, "complex", "complex64"),
        ElementType("c128", 128, "complex", "complex128"),
    ]
}

NAMES_OF_DTYPES: dict[str, str] = {e.dtype_name: name for name, e in ELEMENT_TYPES.items()}
"""The names of element types, by those of NumPy and ml_dtypes."""


def range_of(element_type: str) -> tuple[int, int] | None:
    """Bounds of the values of an integer type or ``pred``; None for other types.

    >>> range_of("s8"), range_of("u4"), range_of("pred"), range_of("f32")
    ((-128, 127), (0, 15), (0, 1), None)
    """
    element = ELEMENT_TYPES[element_type]
    match element.kind:
        case "pred":
            return 0, 1
        case "integral":
            return -(1 << element.bits - 1), (1 << element.bits - 1) - 1
        case "unsigned":
            return 0, (1 << element.bits) - 1
    return None


def dtype(element_type: str) -> numpy.dtype[Any]:
    """Return the NumPy type of an element type, from package ml_dtypes if NumPy has none.

    Raises:
        TypeError: the type requires ml_dtypes, which is not installed or lacks it.

    >>> dtype("s16")
    dtype('int16')
    """
    import numpy

    name = ELEMENT_TYPES[element_type].dtype_name
    if hasattr(numpy, name):
        return numpy.dtype(name)
    try:
        import ml_dtypes

        extension: numpy.dtype[Any] = numpy.dtype(getattr(ml_dtypes, name))
        return extension
    except (ImportError, AttributeError):
        raise TypeError(f"{element_type} requires type {name} of package ml_dtypes") from None

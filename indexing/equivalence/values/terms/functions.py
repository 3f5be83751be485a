"""Elementwise functions by opcode: their values on constants, in the arithmetic of the type.

>>> import numpy as np
>>> function = function_of("add", (), "u8")
>>> int(evaluate(function, [np.uint8(200), np.uint8(100)], "u8"))
44
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np

import indexing.ops as ops
from hlo.ops.op import OPS
from hlo.shapes.element_type import range_of
from hlo.shapes.shape import ELEMENT_TYPES, Shape, dtype
from indexing.ops.element import ElementOp, ElementwiseRule
from indexing.ops.functions import ScalarFunction, cast
from simplifier.interval import contains

assert ops  # registers the ops

Attributes: TypeAlias = tuple[tuple[str, Hashable], ...]

ROUNDED: Final = frozenset(
    [
        *("exponential", "exponential-minus-one", "log", "log-plus-one", "logistic", "tanh", "tan"),
        *("sine", "cosine", "atan2", "power", "cbrt", "erf", "rsqrt", "sinh", "cosh", "acos"),
        *("asin", "atan", "acosh", "asinh", "atanh"),
    ]
)
"""Functions whose last bits depend on the implementation: they are not evaluated."""


@lru_cache(maxsize=1 << 11)
def function_of(opcode: str, attributes: Attributes, element_type: str) -> ScalarFunction | None:
    """Return the function of an elementwise op with a result of this type, if it has one."""
    op_class = OPS.get(opcode)
    if op_class is None or not issubclass(op_class, ElementOp):
        return None
    fields: dict[str, Any] = dict(attributes)
    if opcode in ("convert", "bitcast-convert"):
        fields["shape"] = Shape(element_type, ())
    op = op_class(**fields)
    scalars = [Shape(element_type, ())] * op_class.min_operands
    if opcode == "bitcast-convert":
        return None  # the rule depends on the operand's width
    rule = op.element(Shape(element_type, ()), *scalars)
    return rule.function if isinstance(rule, ElementwiseRule) else None


def evaluate(function: ScalarFunction, values: Sequence[Any], element_type: str) -> Any:
    """Return the value of a function of constants, rounded to the element type."""
    kind = dtype(element_type)
    with np.errstate(all="ignore"):
        result = np.asarray(function.call(*[np.asarray(value) for value in values]))
        if result.dtype != kind:
            result = np.asarray(cast(kind, element_type).call(result))
    return result


def is_float(element_type: str) -> bool:
    """Return True for a floating-point type."""
    return ELEMENT_TYPES[element_type].kind == "floating"


def is_integral(element_type: str) -> bool:
    """Return True for a signed or unsigned integer type."""
    return ELEMENT_TYPES[element_type].kind in ("integral", "unsigned")


def bits_of(element_type: str) -> int:
    """Return the number of bits of a type."""
    return ELEMENT_TYPES[element_type].bits


def keeps_values(source: str, target: str) -> bool:
    """Return True if a conversion changes no value of the source type."""
    if source == "pred" or source == target:
        return ELEMENT_TYPES[target].kind != "complex"
    if is_integral(source) and is_integral(target):
        ours, theirs = range_of(source), range_of(target)
        return ours is not None and theirs is not None and contains(theirs, ours)
    if target not in MANTISSA:
        return False
    if is_integral(source):
        return ELEMENT_TYPES[source].bits <= MANTISSA[target] and MANTISSA[target] > 11
    if source not in MANTISSA:
        return False
    is_wide = _EXPONENT[source] <= _EXPONENT[target]
    return is_wide and MANTISSA[source] <= MANTISSA[target]


MANTISSA: Final = {"bf16": 8, "f16": 11, "f32": 24, "f64": 53}
_EXPONENT: Final = {"bf16": 8, "f16": 5, "f32": 8, "f64": 11}


def same_rounding(source: str, middle: str, target: str) -> bool:
    """Return True if both ways convert a value of `source` alike: by value, or modulo 2^bits."""
    if is_float(middle) and not is_float(source) and not is_float(target):
        return keeps_values(source, target)
    return ELEMENT_TYPES[target].kind != "complex"

"""Laws of scalar functions on partial values: ``f(x_0 + x_1) = f(x_0) + f(x_1)``.

A law gives, for the reduction that shall combine the values of a function, the states of its
arguments: partial values with some reduction, or equal values on every device.  Floating-point
numbers count as real numbers: the results of a law are equal up to rounding, and where no value is
infinite.  A law for integers holds for all values, also where the sum overflows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from hlo.shapes.element_type import ElementType
from indexing.ops import numerics
from indexing.ops.functions import ScalarFunction

Arguments: TypeAlias = tuple[str, ...]
"""For each argument of a function, the reduction of its partial values; empty for equal values."""

_OPPOSITE: Final = {"max": "min", "min": "max"}

# fmt: off
_LAWS: Final[dict[tuple[Callable[..., Any], str], tuple[Arguments, ...]]] = {
    # function                 result   arguments
    (np.add,                   "sum"):  (("sum", "sum"),),
    (np.subtract,              "sum"):  (("sum", "sum"),),
    (np.negative,              "sum"):  (("sum",),),
    (np.multiply,              "sum"):  (("sum", ""), ("", "sum")),
    (np.real,                  "sum"):  (("sum",),),
    (np.imag,                  "sum"):  (("sum",),),
    (numerics.complex_number,  "sum"):  (("sum", "sum"),),
    (numerics.shift_left,      "sum"):  (("sum", ""),),
    (np.multiply,              "prod"): (("prod", "prod"),),
    (np.maximum,               "max"):  (("max", "max"),),
    (np.minimum,               "max"):  (("max", ""), ("", "max")),
    (np.minimum,               "min"):  (("min", "min"),),
    (np.maximum,               "min"):  (("min", ""), ("", "min")),
    (np.bitwise_and,           "and"):  (("and", "and"),),
    (np.bitwise_or,            "and"):  (("and", ""), ("", "and")),
    (np.bitwise_or,            "or"):   (("or", "or"),),
    (np.bitwise_and,           "or"):   (("or", ""), ("", "or")),
    (np.invert,                "and"):  (("or",),),
    (np.invert,                "or"):   (("and",),),
}
# fmt: on
_FLOAT_LAWS: Final[dict[tuple[Callable[..., Any], str], tuple[Arguments, ...]]] = {
    (numerics.divide, "sum"): (("sum", ""),),
    (numerics.divide, "prod"): (("prod", "prod"),),
    (np.abs, "prod"): (("prod",),),
    (numerics.sign, "prod"): (("prod",),),
    (np.exp, "prod"): (("sum",),),
    (np.add, "max"): (("max", ""), ("", "max")),
    (np.add, "min"): (("min", ""), ("", "min")),
    (np.subtract, "max"): (("max", ""), ("", "min")),
    (np.subtract, "min"): (("min", ""), ("", "max")),
    (np.negative, "max"): (("min",),),
    (np.negative, "min"): (("max",),),
    # undefined below some value: NaN is the minimum of values of which one is undefined, too
    (np.sqrt, "min"): (("min",),),
    (np.log, "min"): (("min",),),
    (np.log1p, "min"): (("min",),),
}
"""Laws of floating-point functions that do not hold for integers, which wrap around."""

_INCREASING: Final = frozenset(
    [
        *(np.exp, np.expm1, np.tanh, np.sinh, np.arcsinh, np.arctan, np.floor, np.ceil, np.rint),
        *(numerics.logistic, numerics.cbrt, numerics.erf, numerics.round_away, numerics.sign),
    ]
)
"""Functions that increase on all real numbers."""

_CLAMP: Final[dict[str, tuple[Arguments, ...]]] = {
    "max": (("max", "max", ""), ("", "", "max")),
    "min": (("", "min", "min"), ("min", "", "min")),
}
"""Laws of ``min(max(x, low), high)`` with the arguments low, x, high."""

_OF_PRED: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    np.maximum: np.bitwise_or,
    np.minimum: np.bitwise_and,
}

_SHIFTS: Final = frozenset([numerics.shift_left, numerics.shift_logical, numerics.shift_arithmetic])


def laws(
    function: ScalarFunction, reduction: str, types: Sequence[ElementType], result: ElementType
) -> Iterator[Arguments]:
    """Yield the states of a function's arguments that make its values partial values.

    Args:
        reduction: the function that combines the values.
        types: the element types of the arguments.
        result: the element type of the values.

    >>> from hlo.shapes.shape import ELEMENT_TYPES
    >>> real = ELEMENT_TYPES["f32"]
    >>> list(laws(ScalarFunction.of(np.multiply), "sum", [real, real], real))
    [('sum', ''), ('', 'sum')]
    >>> list(laws(ScalarFunction.of(np.sin), "sum", [real], real))
    []
    """
    call = function.call
    if result.kind == "pred":
        call = _OF_PRED.get(call, call)
    key = call, reduction
    if not has_reduction(result, reduction):
        return
    if call is np.where:
        yield "", reduction, reduction
    elif call is np.real and types[0].kind == "floating":
        yield (reduction,)
    elif function.name == "clamp":
        yield from _CLAMP.get(reduction, ())
    elif function.name.startswith("to_"):
        yield from conversion_laws(reduction, types[0], result)
    elif call in _SHIFTS and reduction in ("and", "or"):
        yield reduction, ""
    elif call in _INCREASING and reduction in _OPPOSITE and types[0].kind == "floating":
        yield (reduction,)
    else:
        yield from _LAWS.get(key, ())
        if all(t.kind in ("floating", "complex") for t in types):
            yield from _FLOAT_LAWS.get(key, ())


def scaling_laws(
    function: ScalarFunction,
    reduction: str,
    factors: Sequence[Any],
    types: Sequence[ElementType],
) -> Iterator[Arguments]:
    """Yield the laws for the maximum or minimum of products with a constant.

    Args:
        factors: the values of the arguments that are constants; None for others.

    >>> from hlo.shapes.shape import ELEMENT_TYPES
    >>> product, real = ScalarFunction.of(np.multiply), ELEMENT_TYPES["f32"]
    >>> list(scaling_laws(product, "max", [None, -2.0], [real, real]))
    [('min', '')]
    """
    if reduction not in _OPPOSITE or any(t.kind != "floating" for t in types):
        return
    places = {np.multiply: (0, 1), numerics.divide: (1,)}.get(function.call, ())
    for k in places:
        factor = factors[k]
        if factor is not None and np.isfinite(float(factor)) and factor != 0:
            other = reduction if factor > 0 else _OPPOSITE[reduction]
            yield ("", other) if k == 0 else (other, "")


def has_reduction(element_type: ElementType, reduction: str) -> bool:
    """Return True if values of a type can be combined by a reduction.

    >>> from hlo.shapes.shape import ELEMENT_TYPES
    >>> [has_reduction(ELEMENT_TYPES[t], "max") for t in ("f32", "c64", "pred")]
    [True, False, False]
    """
    match element_type.kind:
        case "pred":
            return reduction in ("and", "or")
        case "complex":
            return reduction in ("sum", "prod")
        case "floating":
            return reduction not in ("and", "or")
        case _:
            return True


def conversion_laws(
    reduction: str, source: ElementType, result: ElementType
) -> Iterator[Arguments]:
    """Yield the state of a value whose conversion to another type is partial values.

    >>> from hlo.shapes.shape import ELEMENT_TYPES
    >>> list(conversion_laws("sum", ELEMENT_TYPES["s8"], ELEMENT_TYPES["s32"]))
    []
    """
    kinds, narrows = (source.kind, result.kind), result.bits <= source.bits
    if source.kind == "pred":
        of_pred = {"and": "and", "or": "or", "max": "or", "min": "and"}
        if reduction in of_pred:
            yield (of_pred[reduction],)
        return
    are_floats = set(kinds) <= {"floating", "complex"}
    are_integers = set(kinds) <= {"integral", "unsigned"}
    match reduction:
        case "sum" | "prod":
            is_law = (are_floats and kinds != ("complex", "floating")) or (are_integers and narrows)
        case "max" | "min":
            is_law = kinds == ("floating", "floating") or (
                kinds[0] in ("integral", "unsigned")
                and (kinds[1] == "floating" or _keeps_values(source, result))
            )
        case _:
            is_law = are_integers
    if is_law:
        yield (reduction,)


def _keeps_values(source: ElementType, result: ElementType) -> bool:
    """Return True if every integer of the source type is one of the result type."""
    if source.kind == result.kind:
        return result.bits >= source.bits
    return source.kind == "unsigned" and result.bits > source.bits

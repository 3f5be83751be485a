"""Functions of scalars in the words of Triton."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from indexing.codegen.tile_programs.body_text import operator_text, type_text
from indexing.codegen.tile_programs.program import NotEmitted
from indexing.ops.functions import ScalarFunction

ALL_NAN: Final = "propagate_nan=tl.PropagateNan.ALL"

TEMPLATES: Final = {
    "np.absolute": "tl.abs({})",
    "np.maximum": "tl.maximum({}, {}, " + ALL_NAN + ")",
    "np.minimum": "tl.minimum({}, {}, " + ALL_NAN + ")",
    "np.where": "tl.where({}, {}, {})",
    "np.isfinite": 'tl.abs({}) < float("inf")',
    "clamp": "tl.minimum(tl.maximum({1}, {0}, " + ALL_NAN + "), {2}, " + ALL_NAN + ")",
}
"""The functions of all types, by the name of `ScalarFunction`."""

WIDE: Final = {
    "np.exp": "tl.exp({})",
    "np.log": "tl.log({})",
    "np.sqrt": "tl.sqrt({})",
    "np.sin": "tl.sin({})",
    "np.cos": "tl.cos({})",
    "np.floor": "tl.floor({})",
    "np.ceil": "tl.ceil({})",
    "np.tanh": "libdevice.tanh({})",
    "np.expm1": "libdevice.expm1({})",
    "np.log1p": "libdevice.log1p({})",
    "numerics.erf": "tl.erf({})",
    "numerics.logistic": "tl.sigmoid({})",
    "numerics.rsqrt": "tl.rsqrt({})",
    "numerics.power": "libdevice.pow({}, {})",
    "numerics.divide": "{} / {}",
}
"""The functions that Triton has for f32 and f64 alone: narrow floats are converted to f32."""

COMBINERS: Final[dict[np.ufunc, str]] = {
    np.add: "a + b",
    np.multiply: "a * b",
    np.maximum: TEMPLATES["np.maximum"].format("a", "b"),
    np.minimum: TEMPLATES["np.minimum"].format("a", "b"),
    np.bitwise_and: "a & b",
    np.bitwise_or: "a | b",
    np.bitwise_xor: "a ^ b",
}
"""The functions that combine two elements."""


def triton_call(function: ScalarFunction, arguments: Sequence[str], kind: str) -> str:
    """Return the application of a function.

    >>> triton_call(ScalarFunction.of(np.exp), ["x"], "f32")
    'tl.exp(x)'
    """
    operator = operator_text(function, arguments)
    if operator is not None:
        return operator
    name = function.name
    if name in TEMPLATES:
        return TEMPLATES[name].format(*arguments)
    if name in WIDE and kind in ("f32", "f64"):
        return WIDE[name].format(*arguments)
    if name == "to_pred":
        return f"{arguments[0]} != 0"
    if name.startswith("to_"):
        return f"{arguments[0]}.to({triton_type(name.removeprefix('to_'))})"
    raise NotEmitted(f"the function {name} of {kind} has no text in Triton")


def triton_type(kind: str) -> str:
    """Return an element type in the words of Triton.

    >>> triton_type("bf16"), triton_type("pred"), triton_type("u8")
    ('tl.bfloat16', 'tl.int1', 'tl.uint8')
    """
    return type_text(kind, "tl", "int1")

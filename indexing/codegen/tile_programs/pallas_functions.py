"""Functions of scalars in the words of JAX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from hlo.shapes.shape import ELEMENT_TYPES
from indexing.codegen.tile_programs.body_text import operator_text, type_text
from indexing.codegen.tile_programs.program import NotEmitted
from indexing.ops.functions import ScalarFunction

TEMPLATES: Final = {
    "numerics.cbrt": "jnp.cbrt({})",
    "numerics.erf": "jax.lax.erf({})",
    "numerics.logistic": "jax.nn.sigmoid({})",
    "numerics.rsqrt": "jax.lax.rsqrt({})",
    "numerics.sign": "jnp.sign({})",
    "numerics.population": "jax.lax.population_count({})",
    "numerics.leading_zeros": "jax.lax.clz({})",
    "numerics.round_away": "jax.lax.round({}, jax.lax.RoundingMethod.AWAY_FROM_ZERO)",
    "numerics.angle": "jnp.arctan2({}, {})",
    "numerics.power": "jnp.power({}, {})",
    "numerics.remainder": "jax.lax.rem(*jnp.broadcast_arrays({}, {}))",
    "numerics.shift_left": "jax.lax.shift_left(*jnp.broadcast_arrays({}, {}))",
    "numerics.shift_logical": "jax.lax.shift_right_logical(*jnp.broadcast_arrays({}, {}))",
    "numerics.shift_arithmetic": "jax.lax.shift_right_arithmetic(*jnp.broadcast_arrays({}, {}))",
    "clamp": "jnp.clip({1}, {0}, {2})",
}
"""The functions of `indexing.ops.numerics`, by the name of `ScalarFunction`."""

SAME: Final = frozenset(
    [
        *("absolute", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "ceil", "cos"),
        *("cosh", "exp", "expm1", "floor", "isfinite", "log", "log1p", "maximum", "minimum"),
        *("rint", "sin", "sinh", "sqrt", "tan", "tanh", "where"),
    ]
)
"""The functions that JAX has under the name of NumPy."""

FOLDS: Final[dict[np.ufunc, str]] = {
    np.add: "jnp.sum",
    np.multiply: "jnp.prod",
    np.maximum: "jnp.max",
    np.minimum: "jnp.min",
    np.bitwise_and: "jnp.bitwise_and.reduce",
    np.bitwise_or: "jnp.bitwise_or.reduce",
    np.bitwise_xor: "jnp.bitwise_xor.reduce",
}
"""The functions that combine elements along dimensions."""


def jax_call(function: ScalarFunction, arguments: Sequence[str], kind: str) -> str:
    """Return the application of a function.

    >>> jax_call(ScalarFunction.of(np.exp), ["x"], "f32")
    'jnp.exp(x)'
    """
    operator = operator_text(function, arguments)
    if operator is not None:
        return operator
    name = function.name
    if name == "numerics.divide":
        if ELEMENT_TYPES[kind].kind == "floating":
            return " / ".join(arguments)
        return f"jax.lax.div(*jnp.broadcast_arrays({', '.join(arguments)}))"
    if name in TEMPLATES:
        return TEMPLATES[name].format(*arguments)
    if name.removeprefix("np.") in SAME and name.startswith("np."):
        return f"jnp.{name.removeprefix('np.')}({', '.join(arguments)})"
    if name.startswith("to_"):
        return f"{arguments[0]}.astype({jax_type(name.removeprefix('to_'))})"
    raise NotEmitted(f"the function {name} has no text in JAX")


def jax_type(kind: str) -> str:
    """Return an element type in the words of JAX.

    >>> jax_type("bf16"), jax_type("pred")
    ('jnp.bfloat16', 'jnp.bool_')
    """
    return type_text(kind, "jnp", "bool_")

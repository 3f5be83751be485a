"""Functions that libraries apply to each element of a product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from indexing.ops.base import Array
from indexing.ops.targets.definition import DefinedArray, Definition


class Activation(NamedTuple):
    """A function of an element and of the slope for negative numbers.

    Attributes:
        kernel: computes it.
        define: the same by ops of HLO.
        is_exact: False if libraries compute an approximation of their own.
    """

    kernel: Callable[[Array, float], Any]
    define: Callable[[Definition, DefinedArray, float], DefinedArray]
    is_exact: bool = True


def _relu(definition: Definition, x: DefinedArray, slope: float) -> DefinedArray:
    return definition.apply("maximum", x, definition.number(0, x))


def _relu6(definition: Definition, x: DefinedArray, slope: float) -> DefinedArray:
    return definition.apply("clamp", definition.number(0, x), x, definition.number(6, x))


def _elu(definition: Definition, x: DefinedArray, slope: float) -> DefinedArray:
    return definition.select_positive(x, definition.apply("exponential-minus-one", x))


def _leaky_relu(definition: Definition, x: DefinedArray, slope: float) -> DefinedArray:
    scaled = definition.apply("multiply", definition.number(slope, x), x)
    return definition.select_positive(x, scaled)


def _gelu_values(x: Array, slope: float) -> Array:
    kind = x.dtype.type
    inner = kind(np.sqrt(2 / np.pi)) * (x + kind(0.044715) * x * x * x)
    return np.asarray(kind(0.5) * x * (1 + np.tanh(inner)))


def _gelu(definition: Definition, x: DefinedArray, slope: float) -> DefinedArray:
    apply = definition.apply
    factor, cubic, half, one = [
        definition.number(number, x) for number in (np.sqrt(2 / np.pi), 0.044715, 0.5, 1)
    ]
    cube = apply("multiply", x, apply("multiply", x, x))
    inner = apply("multiply", factor, apply("add", x, apply("multiply", cubic, cube)))
    return apply("multiply", x, apply("multiply", half, apply("add", one, apply("tanh", inner))))


NONE: Final = Activation(lambda x, slope: x, lambda definition, x, slope: x)
RELU: Final = Activation(lambda x, slope: np.maximum(x, x.dtype.type(0)), _relu)
RELU6: Final = Activation(lambda x, slope: np.clip(x, 0, 6), _relu6)
ELU: Final = Activation(lambda x, slope: np.where(x > 0, x, np.expm1(x)), _elu)
LEAKY_RELU: Final = Activation(
    lambda x, slope: np.where(x > 0, x, x.dtype.type(slope) * x), _leaky_relu
)
GELU: Final = Activation(_gelu_values, _gelu, is_exact=False)
"""The Gaussian error linear unit, by the approximation with tanh that XLA recognises."""

CUDNN_ACTIVATIONS: Final = {
    "kNone": NONE,
    "kRelu": RELU,
    "kRelu6": RELU6,
    "kElu": ELU,
    "kLeakyRelu": LEAKY_RELU,
}
"""Source: XLA ``xla/stream_executor/dnn.proto``, `ActivationMode`."""

"""`Definition`: the values of a call of a library, as a computation of ops of HLO.

`Activation` is a function that libraries apply to each element of a product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from hlo.shapes.shape import AnyShape, Shape
from indexing.ops.base import Array


class DefinedArray(NamedTuple):
    """An instruction of a definition.

    Attributes:
        name: its name.
        shape: the shape of its result.
    """

    name: str
    shape: Shape


class Definition:
    """The values of a call, whose operands are the parameters of a computation of HLO.

    Args:
        operands: the shapes of the operands.

    >>> definition = Definition([Shape("f32", (2,))])
    >>> (x,) = definition.parameters
    >>> definition.values = [definition.apply("add", x, definition.number(1, x))]
    >>> print(definition)
    ENTRY definition {
      v0 = f32[2] parameter(0)
      v1 = f32[] constant(1)
      v2 = f32[2] broadcast(v1), dimensions={}
      v3 = f32[2] add(v0, v2)
      ROOT values = (f32[2]) tuple(v3)
    }

    Attributes:
        parameters: the operands.
        values: the values of the call.
        is_exact: False if the library rounds at other steps than these ops do.
    """

    def __init__(self, operands: Iterable[AnyShape]) -> None:
        self._lines: list[str] = []
        self.values: list[DefinedArray] = []
        self.is_exact = True
        self.parameters = [
            self.line(shape.with_layout(None), f"parameter({k})")
            for k, shape in enumerate(operands)
            if isinstance(shape, Shape)
        ]

    def line(self, shape: Shape, call: str) -> DefinedArray:
        """Add an instruction, which is everything after the shape of its text."""
        name = f"v{len(self._lines)}"
        self._lines.append(f"{name} = {shape} {call}")
        return DefinedArray(name, shape)

    def apply(self, opcode: str, *operands: DefinedArray) -> DefinedArray:
        """Add an elementwise op whose result has the shape of its last operand."""
        return self.line(operands[-1].shape, f"{opcode}({', '.join([x.name for x in operands])})")

    def convert(self, operand: DefinedArray, element_type: str) -> DefinedArray:
        """Return the operand in an element type."""
        if operand.shape.element_type == element_type:
            return operand
        return self.line(operand.shape.with_element_type(element_type), f"convert({operand.name})")

    def transpose(self, operand: DefinedArray, order: Sequence[int]) -> DefinedArray:
        """Return the operand with its dimensions in another order."""
        if list(order) == sorted(order):
            return operand
        dims = [operand.shape.dims[k] for k in order]
        numbers = ",".join(map(str, order))
        return self.line(
            operand.shape.with_dims(dims), f"transpose({operand.name}), dimensions={{{numbers}}}"
        )

    def broadcast(
        self, operand: DefinedArray, dims: Sequence[int], places: Iterable[int] = ()
    ) -> DefinedArray:
        """Return copies of the operand in an array of sizes `dims`.

        Args:
            places: for each dimension of the operand, that of the array; they increase.
        """
        numbers = ",".join(map(str, places))
        return self.line(
            operand.shape.with_dims(dims), f"broadcast({operand.name}), dimensions={{{numbers}}}"
        )

    def number(self, value: float, like: DefinedArray) -> DefinedArray:
        """Return a number in each element of an array with the shape of a line."""
        scalar = self.line(like.shape.with_dims(()), f"constant({value})")
        return self.broadcast(scalar, like.shape.dims)

    def scale(self, x: DefinedArray, factor: float) -> DefinedArray:
        """Return the elements multiplied by a number."""
        return x if factor == 1 else self.apply("multiply", self.number(factor, x), x)

    def select_positive(self, x: DefinedArray, otherwise: DefinedArray) -> DefinedArray:
        """Return the elements of `x` that are greater than 0, else those of another array."""
        zero = self.number(0, x)
        is_positive = self.line(
            x.shape.with_element_type("pred"), f"compare({x.name}, {zero.name}), direction=GT"
        )
        return self.apply("select", is_positive, x, otherwise)

    def __str__(self) -> str:
        shapes = ", ".join([str(each.shape) for each in self.values])
        names = ", ".join([each.name for each in self.values])
        lines = [*self._lines, f"ROOT values = ({shapes}) tuple({names})"]
        body = "\n".join([f"  {line}" for line in lines])
        return f"ENTRY definition {{\n{body}\n}}"


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

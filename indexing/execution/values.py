"""Values during execution, and the inputs of a program.

An HLO array is a NumPy array, a tuple is a Python tuple, a token is `TOKEN_VALUE`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import (
    ELEMENT_TYPES,
    AnyShape,
    BufferShape,
    Shape,
    TupleShape,
    dtype,
    leaves,
    unbounded_leaf,
)
from hlo.text.source import HloError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
Value: TypeAlias = Any
"""An array, a token, or a tuple of values."""


class TokenValue:
    """The value of a ``token[]``: tokens only order instructions."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "TOKEN_VALUE"


TOKEN_VALUE: Final = TokenValue()


class ExecutionError(HloError):
    """A program cannot be executed, or not on these inputs.

    Raised by `run`, `evaluate` and the command; `span` is the instruction or parameter at fault.

    >>> import hlo
    >>> from indexing.execution import run
    >>> module = hlo.parse("ENTRY e { p = f32[2] parameter(0)  ROOT n = f32[2] negate(p) }")
    >>> try:
    ...     run(module, [])
    ... except ExecutionError as error:
    ...     print(error.message)
    expected 1 input, got 0
    """


def failure(instruction: Instruction, message: str, label: str = "", help: str = "") -> HloError:  # noqa: A002 - the word of `HloError`
    """Return the error for an instruction that cannot be executed."""
    return ExecutionError(message, instruction.span, "execution", label, help=help)


# ---------------------------------------------------------------- arrays of a value


def flattened(value: Value) -> tuple[Array, ...]:
    """Return the arrays of a value in order: tuples are flattened, tokens are omitted.

    >>> flattened((np.int32(1), (TOKEN_VALUE, np.int32(2))))
    (array(1, dtype=int32), array(2, dtype=int32))
    """
    if isinstance(value, tuple):
        return tuple([array for element in value for array in flattened(element)])
    return () if isinstance(value, TokenValue) else (np.asarray(value),)


def assemble(shape: AnyShape, arrays: Iterator[Array]) -> Value:
    """Build a value of this shape from the next arrays; the inverse of `flattened`."""
    match shape:
        case TupleShape(elements):
            return tuple([assemble(element, arrays) for element in elements])
        case Shape():
            return next(arrays)
        case BufferShape(array):
            return next(arrays) if isinstance(array, Shape) else TOKEN_VALUE
        case _:
            return TOKEN_VALUE


def checked_value(instruction: Instruction, shape: AnyShape, value: Any) -> Value:
    """Return a value that the caller supplied, after a check against the instruction's shape.

    Raises:
        ExecutionError: the number of arrays, a type or a shape differs from `shape`.
    """
    expected = [leaf for _, leaf in leaves(shape) if isinstance(leaf, Shape)]
    arrays = flattened(value)
    is_valid = len(arrays) == len(expected) and all(
        (array.shape, array.dtype) == (leaf.dims, dtype(leaf.element_type))
        for array, leaf in zip(arrays, expected, strict=True)
    )
    if is_valid:
        return assemble(shape, iter(arrays))
    actual = ", ".join(map(numpy_type, arrays)) or "no array"
    message = f"{instruction.opcode} `{instruction.name}`: expected {shape}, got {actual}"
    raise failure(instruction, message, f"expected {shape}")


MAX_RANK: Final = 64
"""Maximum number of dimensions of a NumPy array."""

MAX_PRODUCT: Final = (1 << 59) - 1
"""Maximum product of the dimensions of a NumPy array, except zeros, for elements of 16 bytes."""


def check_representable(instruction: Instruction) -> None:
    """Check that NumPy arrays can have an instruction's shape.

    Raises:
        ExecutionError: the size of a dimension is ``?``, or there are too many dimensions, or an
            array without elements has dimensions whose product NumPy cannot count.
    """
    if leaf := unbounded_leaf(instruction.shape):
        message = f"{instruction.name} is {_plain(leaf)}: execution needs bounded sizes"
        raise failure(instruction, message, "unbounded")
    arrays = [leaf for _, leaf in leaves(instruction.shape) if isinstance(leaf, Shape)]
    if (rank := max([array.rank for array in arrays], default=0)) > MAX_RANK:
        message = (
            f"`{instruction.name}` has {rank} dimensions; NumPy arrays have at most {MAX_RANK}"
        )
        raise failure(instruction, message, f"{rank} dimensions")
    for array in arrays:
        if not array.size and prod([size for size in array.dims if size]) > MAX_PRODUCT:
            message = f"`{instruction.name}` is {_plain(array)}, which no NumPy array can have"
            raise failure(instruction, message, f"the sizes above 0 multiply to over {MAX_PRODUCT}")


def numpy_type(array: Array) -> str:
    """Return the NumPy type of an array and its shape.

    >>> numpy_type(np.zeros((2, 3), np.int8))
    'int8[2,3]'
    """
    return f"{array.dtype.name}[{','.join(map(str, array.shape))}]"


def bytes_of(shape: AnyShape) -> int:
    """Return the number of bytes of NumPy arrays for a value of this shape."""
    arrays = [leaf for _, leaf in leaves(shape) if isinstance(leaf, Shape)]
    return sum(leaf.size * dtype(leaf.element_type).itemsize for leaf in arrays)


# ---------------------------------------------------------------- inputs


@dataclass(frozen=True, slots=True)
class ParameterLeaf:
    """One input array of a computation: a parameter, or a leaf of a tuple parameter.

    Attributes:
        parameter: the parameter instruction.
        path: tuple indices from the parameter to the leaf; () for an array.
        shape: the shape of the leaf.
    """

    parameter: Instruction
    path: tuple[int, ...]
    shape: Shape

    @property
    def name(self) -> str:
        """The name of the parameter, followed by the path, such as ``state.0.1``."""
        return ".".join([self.parameter.name, *map(str, self.path)])


def parameter_leaves(computation: Computation) -> list[ParameterLeaf]:
    """Return the input arrays of `computation` in order: parameters, with tuples flattened.

    >>> import hlo
    >>> text = "ENTRY e { p = (f32[2], (s32[])) parameter(0) ROOT r = f32[2] copy(p) }"
    >>> [(leaf.name, str(leaf.shape)) for leaf in parameter_leaves(hlo.parse(text).entry)]
    [('p.0', 'f32[2]'), ('p.1.0', 's32[]')]
    """
    return [
        ParameterLeaf(parameter, path, leaf)
        for parameter in computation.parameters
        for path, leaf in leaves(parameter.shape)
        if isinstance(leaf, Shape)
    ]


def random_array(shape: Shape, random: np.random.Generator) -> Array:
    """Return a random array of this shape; see `inputs.random_inputs` for the distribution."""
    kind, element = dtype(shape.element_type), ELEMENT_TYPES[shape.element_type]
    if element.kind == "pred":
        return np.asarray(random.integers(0, 2, shape.dims)).astype(kind)
    if element.kind in ("integral", "unsigned"):
        high = {1: 1 if element.kind == "integral" else 2, 2: 2}.get(element.bits, 4)
        return np.asarray(random.integers(0, high, shape.dims)).astype(kind)
    values = np.asarray(random.standard_normal(shape.dims))
    if element.kind == "complex":
        values = np.asarray(values + 1j * random.standard_normal(shape.dims))
    with np.errstate(all="ignore"):
        return np.asarray(values.astype(kind))


def checked_inputs(computation: Computation, inputs: Sequence[Any]) -> list[Value]:
    """Return the values of the parameters, built from one array per leaf.

    Raises:
        ExecutionError: the number of arrays, a type or a shape does not match the parameters.
    """
    expected = parameter_leaves(computation)
    if len(inputs) != len(expected):
        listed = ", ".join(f"{leaf.name} {_plain(leaf.shape)}" for leaf in expected) or "no array"
        noun = "input" if len(expected) == 1 else "inputs"
        message = f"expected {len(expected)} {noun}, got {len(inputs)}"
        raise ExecutionError(message, computation.span, "inputs", help=f"pass {listed}")
    arrays = [_check_leaf(leaf, array) for leaf, array in zip(expected, inputs, strict=True)]
    rest = iter(arrays)
    return [assemble(parameter.shape, rest) for parameter in computation.parameters]


def _check_leaf(leaf: ParameterLeaf, value: Any) -> Array:
    array, kind = np.asarray(value), dtype(leaf.shape.element_type)
    if array.dtype.kind == "V" and array.dtype != kind and array.dtype.itemsize == kind.itemsize:
        array = array.view(kind)  # .npz files store types that NumPy lacks as raw bits
    if array.dtype == np.float32 and kind.isbuiltin != 1:
        array = _narrow_array(array, kind)  # `archive.write` stores such types as float32
    if array.dtype == kind and fits(array, leaf.shape):
        return array
    span, expected = leaf.parameter.span, f"{_plain(leaf.shape)} ({kind.name})"
    message = f"input {leaf.name}: expected {expected}, got {numpy_type(array)}"
    if array.dtype.kind == "O":
        message = f"input {leaf.name}: has dtype object, expected {kind.name}"
    raise ExecutionError(message, span, "inputs", f"expected {_plain(leaf.shape)}")


def _narrow_array(array: Array, kind: np.dtype[Any]) -> Array:
    """Convert to a narrower type if that preserves all values; otherwise return `array`."""
    with np.errstate(all="ignore"):
        narrow = array.astype(kind)
        is_exact = np.array_equal(narrow.astype(np.float32), array, equal_nan=True)
    return narrow if is_exact else array


def fits(array: Array, shape: Shape) -> bool:
    """Return True if the sizes match; dynamic dimensions are upper bounds."""
    if not shape.is_dynamic:
        return array.shape == shape.dims
    sizes = zip(array.shape, shape.dims, shape.dynamic, strict=False)
    return array.ndim == shape.rank and all(n == m or (d and n < m) for n, m, d in sizes)


def _plain(shape: Shape) -> str:
    return str(shape.with_layout(None))

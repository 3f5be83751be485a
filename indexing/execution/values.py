"""Values of programs: arrays, tuples of values, tokens; and the inputs that a program is given.

An array of HLO is a NumPy array, a tuple is a tuple, a token is `TOKEN_VALUE`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import ELEMENT_TYPES, AnyShape, BufferShape, Shape, TupleShape, dtype, leaves
from hlo.text.source import HloError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
Value: TypeAlias = Any
"""An array, a token, or a tuple of values."""


class TokenValue:
    """What tokens are: nothing but the order of what they stand between."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "TOKEN_VALUE"


TOKEN_VALUE: Final = TokenValue()


class ExecutionError(HloError):
    """A program cannot be run, or not with these inputs."""


def failure(instruction: Instruction, message: str, label: str = "", help: str = "") -> HloError:  # noqa: A002 - the word of `HloError`
    """The error of an instruction that cannot be run."""
    return ExecutionError(message, instruction.span, "execution", label, help=help)


# ---------------------------------------------------------------- arrays of a value


def flattened(value: Value) -> tuple[Array, ...]:
    """The arrays of a value in order, tuples taken apart and tokens left out.

    >>> flattened((np.int32(1), (TOKEN_VALUE, np.int32(2))))
    (array(1, dtype=int32), array(2, dtype=int32))
    """
    if isinstance(value, tuple):
        return tuple([array for element in value for array in flattened(element)])
    return () if isinstance(value, TokenValue) else (np.asarray(value),)


def assembled(shape: AnyShape, arrays: Iterator[Array]) -> Value:
    """The value of this shape whose arrays come next; the reverse of `flattened`."""
    match shape:
        case TupleShape(elements):
            return tuple([assembled(element, arrays) for element in elements])
        case Shape():
            return next(arrays)
        case BufferShape(array):
            return next(arrays) if isinstance(array, Shape) else TOKEN_VALUE
        case _:
            return TOKEN_VALUE


def fitted(instruction: Instruction, shape: AnyShape, given: Any) -> Value:
    """A value from outside as one of this shape.

    Raises:
        ExecutionError: an array in it has another type or shape.
    """
    wanted = [leaf for _, leaf in leaves(shape) if isinstance(leaf, Shape)]
    arrays = flattened(given)
    fits = len(arrays) == len(wanted) and all(
        (array.shape, array.dtype) == (leaf.dims, dtype(leaf.element_type))
        for array, leaf in zip(arrays, wanted, strict=True)
    )
    if fits:
        return assembled(shape, iter(arrays))
    found = ", ".join(f"{array.dtype.name}{list(array.shape)}" for array in arrays)
    message = f"{instruction.opcode} `{instruction.name}` wants {shape}, but gets {found}"
    raise failure(instruction, message, f"wants {shape}")


def bytes_of(shape: AnyShape) -> int:
    """Bytes that NumPy needs for the arrays of a value of this shape."""
    arrays = [leaf for _, leaf in leaves(shape) if isinstance(leaf, Shape)]
    return sum(leaf.size * dtype(leaf.element_type).itemsize for leaf in arrays)


# ---------------------------------------------------------------- inputs


@dataclass(frozen=True, slots=True)
class ParameterLeaf:
    """One array that a computation is given: a parameter, or an array in a tuple that is one."""

    parameter: Instruction
    path: tuple[int, ...]
    shape: Shape

    @property
    def name(self) -> str:
        """The parameter's name and then the path, such as ``state.0.1``."""
        return ".".join([self.parameter.name, *map(str, self.path)])


def parameter_leaves(computation: Computation) -> list[ParameterLeaf]:
    """The arrays that `computation` is given, in order.

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


def random_inputs(computation: Computation, seed: int) -> list[Array]:
    """One array for each of `parameter_leaves`, the same ones for the same seed.

    Floating and complex numbers are normally distributed, integers small and not negative.

    >>> import hlo
    >>> text = "ENTRY e { p = s8[4] parameter(0) ROOT r = s8[4] negate(p) }"
    >>> [array.dtype for array in random_inputs(hlo.parse(text).entry, seed=1)]
    [dtype('int8')]
    """
    random = np.random.default_rng(seed)
    return [random_array(leaf.shape, random) for leaf in parameter_leaves(computation)]


def random_array(shape: Shape, random: np.random.Generator) -> Array:
    """An array of the shape: as `random_inputs` says."""
    kind, element = dtype(shape.element_type), ELEMENT_TYPES[shape.element_type]
    if element.kind == "pred":
        return np.asarray(random.integers(0, 2, shape.dims)).astype(kind)
    if element.kind in ("integral", "unsigned"):
        high = {1: 1 if element.kind == "integral" else 2, 2: 2}.get(element.bits, 4)
        return np.asarray(random.integers(0, high, shape.dims)).astype(kind)
    values = np.asarray(random.standard_normal(shape.dims))
    if element.kind == "complex":
        values = values + 1j * random.standard_normal(shape.dims)
    with np.errstate(all="ignore"):
        return values.astype(kind)


def checked_inputs(computation: Computation, inputs: Sequence[Any]) -> list[Value]:
    """The values of the parameters that consist of these arrays.

    Raises:
        ExecutionError: there are too few or too many, or one has another type or shape.
    """
    wanted = parameter_leaves(computation)
    if len(inputs) != len(wanted):
        listed = ", ".join(f"{leaf.name} {_plain(leaf.shape)}" for leaf in wanted) or "nothing"
        message = f"{len(wanted)} inputs are needed, but {len(inputs)} are given"
        raise ExecutionError(message, computation.span, "inputs", help=f"give {listed}")
    arrays = [_checked(leaf, given) for leaf, given in zip(wanted, inputs, strict=True)]
    rest = iter(arrays)
    return [assembled(parameter.shape, rest) for parameter in computation.parameters]


def _checked(leaf: ParameterLeaf, given: Any) -> Array:
    array, kind = np.asarray(given), dtype(leaf.shape.element_type)
    if array.dtype.kind == "V" and array.dtype != kind and array.dtype.itemsize == kind.itemsize:
        array = array.view(kind)  # .npz files keep the bits of types that NumPy lacks
    if array.dtype == np.float32 and kind.isbuiltin != 1:
        array = _exactly(array, kind)  # .npz files also keep their values as float32
    if array.dtype == kind and fits(array, leaf.shape):
        return array
    span, wanted = leaf.parameter.span, f"{_plain(leaf.shape)}, an array of {kind.name}"
    found = f"{array.dtype.name}[{','.join(map(str, array.shape))}]"
    message = f"the input for {leaf.name} is {found}, but the parameter is {wanted}"
    raise ExecutionError(message, span, "inputs", f"wants {_plain(leaf.shape)}")


def _exactly(array: Array, kind: np.dtype[Any]) -> Array:
    """The same values in a narrower type; the array itself if one of them does not fit."""
    with np.errstate(all="ignore"):
        found = array.astype(kind)
        is_same = np.array_equal(found.astype(np.float32), array, equal_nan=True)
    return found if is_same else array


def fits(array: Array, shape: Shape) -> bool:
    """The array has the sizes of the shape; fewer elements where that is dynamic."""
    if not shape.is_dynamic:
        return array.shape == shape.dims
    sizes = zip(array.shape, shape.dims, shape.dynamic, strict=False)
    return array.ndim == shape.rank and all(n == m or (d and n < m) for n, m, d in sizes)


def _plain(shape: Shape) -> str:
    return str(shape.with_layout(None))

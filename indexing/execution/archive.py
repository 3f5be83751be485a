"""Inputs and results in .npz files: ``in0``, ``in1``, .. and ``out0``, ``out1``, ..

Types that NumPy lacks are stored as float32, which represents all their values.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hlo.modules.module import Computation
from hlo.shapes.shape import ELEMENT_TYPES, dtype
from indexing.execution.output_file import replaced
from indexing.execution.values import (
    Array,
    ExecutionError,
    ParameterLeaf,
    parameter_leaves,
    random_inputs,
)

_RESULT = re.compile(r"(device\d+\.)?out\d+")


@dataclass(frozen=True, slots=True)
class RunInputs:
    """The contents of an input file.

    Attributes:
        inputs: one array per parameter leaf; for several devices, one such list per device.
        constants: values of elided constants, by instruction name.
    """

    inputs: Sequence[Any]
    constants: Mapping[str, Array] = field(default_factory=dict)


def read(path: str | None, computation: Computation, devices: int, seed: int) -> RunInputs:
    """Read the inputs of a computation from an .npz file, or draw random ones without a file.

    Raises:
        OSError: the file cannot be read.
        ExecutionError: the file is not an .npz file, an input is missing or given twice, or a name
            is unknown.
    """
    if path is None:
        if devices == 1:
            return RunInputs(random_inputs(computation, seed))
        return RunInputs([random_inputs(computation, seed + k) for k in range(devices)])
    arrays = _loaded(path, computation)
    values = {name: arrays[name] for name in arrays.keys() & _elided_constants(computation)}
    others = [name for name in arrays if name not in values and not _RESULT.fullmatch(name)]
    rest = {name: arrays[name] for name in others}
    chosen = _chosen(path, rest, computation, devices)
    used = {name for names in chosen for name in names}
    if unknown := sorted(rest.keys() - used):
        raise _unused(path, unknown, chosen, computation)
    inputs = [[rest[name] for name in names] for names in chosen]
    return RunInputs(inputs[0] if devices == 1 else inputs, values)


def _chosen(
    path: str, arrays: Mapping[str, Array], computation: Computation, devices: int
) -> list[list[str]]:
    """Return the names of each device's inputs in the file.

    Raises:
        ExecutionError: an input is missing.
    """
    leaves = parameter_leaves(computation)
    chosen = [[_given_name(arrays, n, leaf, k, devices) for n, leaf in enumerate(leaves)]
              for k in range(devices)]  # fmt: skip
    missing = {
        _missing_name(arrays, n, leaf, k, devices): leaf
        for k, names in enumerate(chosen)
        for n, (name, leaf) in enumerate(zip(names, leaves, strict=True))
        if name is None
    }
    if missing:
        raise _missing(path, missing, computation)
    return [[name for name in names if name is not None] for names in chosen]


def _elided_constants(computation: Computation) -> set[str]:
    """The names of the module's elided constants."""
    instructions = computation.module.instructions
    return {i.name for i in instructions if i.literal is not None and "..." in i.literal.text}


def _loaded(path: str, computation: Computation) -> dict[str, Array]:
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ValueError("a single array without a name")
        with file:
            return {name: _array(path, file, name, computation) for name in file.files}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        message = f"{path}: not an .npz file of arrays"
        help = "write it with numpy.savez(path, in0=.., in1=..)"  # noqa: A001 - as in `HloError`
        raise ExecutionError(message, computation.span, "inputs", help=help) from error


def _array(path: str, file: Any, name: str, computation: Computation) -> Array:
    """Read one array.

    Raises:
        ExecutionError: the array has Python objects, which are not loaded.
    """
    try:
        return np.asarray(file[name])
    except ValueError as error:
        if "Object arrays" not in str(error):
            raise
        own_name = re.sub(r"^device\d+\.", "", name)
        leaves = enumerate(parameter_leaves(computation))
        named = [leaf for n, leaf in leaves if own_name in _names(n, leaf, 0, 1)]
        kinds = [dtype(leaf.shape.element_type).name for leaf in named]
        message = f"{path}: {name} has dtype object, expected {(*kinds, 'numbers')[0]}"
        raise ExecutionError(message, computation.span, "inputs") from error


def _names(number: int, leaf: ParameterLeaf, device: int, devices: int) -> list[str]:
    """Return the accepted names of an input of a device, the preferred ones first."""
    shared = [f"in{number}", leaf.name, str(number), f"arr_{number}"]
    return [*[f"device{device}.{name}" for name in shared], *shared] if devices > 1 else shared


def _given_name(
    arrays: Mapping[str, Array], number: int, leaf: ParameterLeaf, device: int, devices: int
) -> str | None:
    """Return the name under which the file has an input, or None if it is missing."""
    names = _names(number, leaf, device, devices)
    return next((name for name in names if name in arrays), None)


def _missing_name(
    arrays: Mapping[str, Array], number: int, leaf: ParameterLeaf, device: int, devices: int
) -> str:
    """Return the name to add: that of the device if other devices have inputs of their own."""
    own = any(_given_name(arrays, number, leaf, k, devices) for k in range(devices))
    return f"device{device}.in{number}" if own else f"in{number}"


def _missing(
    path: str, missing: Mapping[str, ParameterLeaf], computation: Computation
) -> ExecutionError:
    """Return the error for missing inputs; the leaf of each is given by name."""
    leaves = list(missing.values())
    names = ", ".join([*list(missing)[:4], *(["..."] if len(missing) > 4 else [])])
    message = f"{path}: missing {names}"
    if len(missing) == 1:
        message += f": the input {leaves[0].name}, {leaves[0].shape.with_layout(None)}"
    span = leaves[0].parameter.span
    return ExecutionError(message, span, "inputs", "no input", help=_listed(computation))


def _unused(
    path: str,
    unused: Sequence[str],
    chosen: Sequence[Sequence[str]],
    computation: Computation,
) -> ExecutionError:
    """Return the error for arrays that are no inputs, or second values of an input."""
    for number, leaf in enumerate(parameter_leaves(computation)):
        for device, names in enumerate(chosen):
            for name in _names(number, leaf, device, len(chosen)):
                if name in unused:
                    both = f"{names[number]} and {name}"
                    message = f"{path}: the input {leaf.name} is given twice, as {both}"
                    return ExecutionError(message, leaf.parameter.span, "inputs", "given twice")
    message = f"{path}: not an input of this program: {', '.join(unused)}"
    return ExecutionError(message, computation.span, "inputs", help=_listed(computation))


def _listed(computation: Computation) -> str:
    leaves = enumerate(parameter_leaves(computation))
    listed = [f"in{n}: {leaf.shape.with_layout(None)} ({leaf.name})" for n, leaf in leaves]
    return f"the inputs are {', '.join(listed)}" if listed else "the program has no inputs"


def named(results: Sequence[Sequence[Array]]) -> dict[str, Array]:
    """Return the results of each device by name; the names of a single device have no prefix.

    >>> named([[np.int8(1)], [np.int8(2)]])
    {'device0.out0': np.int8(1), 'device1.out0': np.int8(2)}
    """
    prefixes = [f"device{k}." for k in range(len(results))] if len(results) > 1 else [""]
    return {
        f"{prefix}out{number}": array
        for prefix, arrays in zip(prefixes, results, strict=True)
        for number, array in enumerate(arrays)
    }


def write(path: str, arrays: Mapping[str, Array]) -> None:
    """Write all arrays into one .npz file, as `replaced` does.

    Raises:
        OSError: the file cannot be written.
    """
    stored: dict[str, Any] = {
        name: array if array.dtype.isbuiltin == 1 else array.astype(np.float32)
        for name, array in arrays.items()
    }
    with replaced(path) as file:
        np.savez(file, **stored)


def type_text(array: Array) -> str:
    """Return the shape of an array in HLO syntax.

    >>> type_text(np.zeros((2, 3), np.int8))
    's8[2,3]'
    """
    names = {element.dtype_name: name for name, element in ELEMENT_TYPES.items()}
    return f"{names[array.dtype.name]}[{','.join(map(str, array.shape))}]"

"""Inputs and results in .npz files: ``in0``, ``in1``, .. and ``out0``, ``out1``, ..

Types that NumPy lacks are stored as float32, which represents all their values.
"""

from __future__ import annotations

import os
import re
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hlo.modules.module import Computation
from hlo.shapes.shape import ELEMENT_TYPES
from indexing.execution.values import Array, ExecutionError, parameter_leaves, random_inputs

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
        ExecutionError: the file is not an .npz file, an input is missing, or a name is unknown.
    """
    if path is None:
        if devices == 1:
            return RunInputs(random_inputs(computation, seed))
        return RunInputs([random_inputs(computation, seed + k) for k in range(devices)])
    arrays = _loaded(path, computation)
    values = {name: arrays[name] for name in arrays.keys() & _elided_constants(computation)}
    others = [name for name in arrays if name not in values and not _RESULT.fullmatch(name)]
    rest = {name: arrays[name] for name in others}
    per_device = [_of_device(rest, k, devices, computation, path) for k in range(devices)]
    used = {name for names, _ in per_device for name in names}
    if unknown := sorted(rest.keys() - used):
        message = f"{path}: not an input of this program: {', '.join(unknown)}"
        raise ExecutionError(message, computation.span, "inputs", help=_listed(computation))
    inputs = [arrays for _, arrays in per_device]
    return RunInputs(inputs[0] if devices == 1 else inputs, values)


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
            return {name: file[name] for name in file.files}
    except OSError as error:
        message = f"{path}: cannot read: {error.strerror or error}"
        raise ExecutionError(message, computation.span, "inputs") from error
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        message = f"{path}: not an .npz file of arrays"
        help = "write it with numpy.savez(path, in0=.., in1=..)"  # noqa: A001 - as in `HloError`
        raise ExecutionError(message, computation.span, "inputs", help=help) from error


def _of_device(
    arrays: Mapping[str, Array], device: int, devices: int, computation: Computation, path: str
) -> tuple[list[str], list[Array]]:
    """Return the names and the arrays of the inputs of one device."""
    names, inputs = [], []
    for number, leaf in enumerate(parameter_leaves(computation)):
        accepted = [f"in{number}", leaf.name, str(number), f"arr_{number}"]
        if devices > 1:
            accepted = [*[f"device{device}.{name}" for name in accepted], *accepted]
        present = [name for name in accepted if name in arrays]
        if not present:
            shape = leaf.shape.with_layout(None)
            message = f"{path}: missing in{number}: the input {leaf.name}, {shape}"
            span = leaf.parameter.span
            raise ExecutionError(message, span, "inputs", "no input", help=_listed(computation))
        names.append(present[0])
        inputs.append(arrays[present[0]])
    return names, inputs


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
    """Write all arrays into one .npz file, atomically."""
    stored: dict[str, Any] = {
        name: array if array.dtype.isbuiltin == 1 else array.astype(np.float32)
        for name, array in arrays.items()
    }
    target = Path(path)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **stored)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def type_text(array: Array) -> str:
    """Return the shape of an array in HLO syntax.

    >>> type_text(np.zeros((2, 3), np.int8))
    's8[2,3]'
    """
    names = {element.dtype_name: name for name, element in ELEMENT_TYPES.items()}
    return f"{names[array.dtype.name]}[{','.join(map(str, array.shape))}]"

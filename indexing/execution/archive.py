"""Inputs and results in .npz files: ``in0``, ``in1``, .. and ``out0``, ``out1``, ..

Types that NumPy lacks are kept as float32, which has all their values.
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
    """What a file gives: the inputs of the device, or of each device; and values of constants."""

    inputs: Sequence[Any]
    constants: Mapping[str, Array] = field(default_factory=dict)


def read(path: str | None, computation: Computation, devices: int, seed: int) -> RunInputs:
    """The inputs in a file; random ones where there is no file.

    Raises:
        ExecutionError: the file is none, or what it holds is not what the computation takes.
    """
    if path is None:
        if devices == 1:
            return RunInputs(random_inputs(computation, seed))
        return RunInputs([random_inputs(computation, seed + k) for k in range(devices)])
    arrays = _loaded(path, computation)
    values = {name: arrays[name] for name in arrays.keys() & _constants(computation)}
    others = [name for name in arrays if name not in values and not _RESULT.fullmatch(name)]
    rest = {name: arrays[name] for name in others}
    found = [_of_device(rest, k, devices, computation, path) for k in range(devices)]
    known = {name for names, _ in found for name in names}
    if unknown := sorted(rest.keys() - known):
        message = f"{path} has {', '.join(unknown)}, which is no input of this program"
        raise ExecutionError(message, computation.span, "inputs", help=_wanted(computation))
    return RunInputs(found[0][1] if devices == 1 else [inputs for _, inputs in found], values)


def _constants(computation: Computation) -> set[str]:
    """The names of the module's constants."""
    return {i.name for i in computation.module.instructions if i.opcode == "constant"}


def _loaded(path: str, computation: Computation) -> dict[str, Array]:
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ValueError("it holds one array, not several by name")
        with file:
            return {name: file[name] for name in file.files}
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}"
        raise ExecutionError(message, computation.span, "inputs") from error
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        message = f"{path} is no .npz file of arrays"
        help = "write it with numpy.savez(path, in0=.., in1=..)"  # noqa: A001 - as in `HloError`
        raise ExecutionError(message, computation.span, "inputs", help=help) from error


def _of_device(
    arrays: Mapping[str, Array], device: int, devices: int, computation: Computation, path: str
) -> tuple[list[str], list[Array]]:
    """The names and the arrays that are the inputs of a device."""
    names, inputs = [], []
    for number, leaf in enumerate(parameter_leaves(computation)):
        spelled = [f"in{number}", leaf.name, str(number), f"arr_{number}"]
        if devices > 1:
            spelled = [*[f"device{device}.{name}" for name in spelled], *spelled]
        chosen = [name for name in spelled if name in arrays]
        if not chosen:
            shape = leaf.shape.with_layout(None)
            message = f"{path} has no in{number}, the input for {leaf.name}, which is {shape}"
            span = leaf.parameter.span
            raise ExecutionError(message, span, "inputs", "no input", help=_wanted(computation))
        names.append(chosen[0])
        inputs.append(arrays[chosen[0]])
    return names, inputs


def _wanted(computation: Computation) -> str:
    leaves = enumerate(parameter_leaves(computation))
    listed = [f"in{n}: {leaf.shape.with_layout(None)} ({leaf.name})" for n, leaf in leaves]
    return f"the inputs are {', '.join(listed)}" if listed else "there are no inputs"


def named(results: Sequence[Sequence[Array]]) -> dict[str, Array]:
    """The results of each device by their names; a single device is not named.

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
    """Writes all arrays into one file, which is there with all of them or not at all."""
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
    """Type and sizes as in HLO text.

    >>> type_text(np.zeros((2, 3), np.int8))
    's8[2,3]'
    """
    names = {element.dtype_name: name for name, element in ELEMENT_TYPES.items()}
    return f"{names[array.dtype.name]}[{','.join(map(str, array.shape))}]"

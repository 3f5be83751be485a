"""Inputs and results in .npz files: ``in0``, ``in1``, .. and ``out0``, ``out1``, ..

Types that NumPy lacks are stored as float32, which represents all their values.
"""

from __future__ import annotations

import errno
import lzma
import math
import os
import re
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hlo.formats.reading import MAX_BYTES, size_text, special_file
from hlo.modules.module import Computation
from hlo.shapes.element_type import NAMES_OF_DTYPES, dtype
from indexing.execution.inputs import random_inputs
from indexing.execution.output_file import replace_file
from indexing.execution.values import (
    Array,
    ExecutionError,
    ParameterLeaf,
    parameter_leaves,
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


def read(
    path: str | None,
    computation: Computation,
    devices: int,
    seed: int,
    max_bytes: int = MAX_BYTES,
) -> RunInputs:
    """Read the inputs of a computation from an .npz file, or draw random ones without a file.

    Args:
        path: the .npz file, or None.
        computation: the computation, which determines the names and types of its inputs.
        devices: the number of devices.
        seed: the seed of random inputs.
        max_bytes: limit on the size of all arrays in the file.
    Raises:
        OSError: the file cannot be read.
        ExecutionError: the file is not an .npz file or exceeds the limit, an input is missing or
            given twice, or a name is unknown.
    """
    if path is None:
        if devices == 1:
            return RunInputs(random_inputs(computation, seed))
        return RunInputs([random_inputs(computation, seed + k) for k in range(devices)])
    arrays = _load_arrays(path, computation, max_bytes)
    values = {name: arrays[name] for name in arrays.keys() & _elided_constants(computation)}
    others = [name for name in arrays if name not in values and not _RESULT.fullmatch(name)]
    rest = {name: arrays[name] for name in others}
    chosen = _choose_names(path, rest, computation, devices)
    used = {name for names in chosen for name in names}
    if unknown := sorted(rest.keys() - used):
        raise _unused_error(path, unknown, chosen, computation)
    inputs = [[rest[name] for name in names] for names in chosen]
    return RunInputs(inputs[0] if devices == 1 else inputs, values)


def _choose_names(
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


def _load_arrays(path: str, computation: Computation, max_bytes: int) -> dict[str, Array]:
    """Read all arrays of an .npz file whose headers are consistent with its contents."""
    if kind := special_file(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, f"{kind}, expected an .npz file")
    try:
        with zipfile.ZipFile(path) as file:
            size = sum(member.file_size for member in file.infolist())
            if size > max_bytes:
                raise _too_large(path, computation, size_text(max_bytes))
            return {
                member.filename.removesuffix(".npy"): _array(path, file, member, computation)
                for member in file.infolist()
            }
    except _INVALID as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        message = f"{path}: not an .npz file of arrays: {reason}"
        help = "write it with numpy.savez(path, in0=.., in1=..)"  # noqa: A001 - as in `HloError`
        raise ExecutionError(message, computation.span, "inputs", help=help) from error


# what `zipfile`, its decompressors and `numpy` raise for a corrupt, encrypted or other file
_INVALID = (
    *(ValueError, EOFError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(NotImplementedError, RuntimeError),
)
# what evaluating the header as a Python literal raises, the first two for deep nesting
_NOT_A_HEADER = (
    *(MemoryError, RecursionError, SyntaxError, tokenize.TokenError),
    *(TypeError, KeyError, IndexError),
)


def _too_large(path: str, computation: Computation, limit: str) -> ExecutionError:
    message = f"{path}: the arrays exceed the limit of {limit}"
    hint = "raise the limit: --max-input-size"
    return ExecutionError(message, computation.span, "size", help=hint)


def _array(
    path: str, file: zipfile.ZipFile, member: zipfile.ZipInfo, computation: Computation
) -> Array:
    """Read one array, if its header claims as many bytes as the file holds.

    Raises:
        ExecutionError: the array has Python objects, which are not loaded.
        ValueError: the header is inconsistent with the contents.
    """
    name = member.filename.removesuffix(".npy")
    if member.file_size > member.compress_size * _MAX_RATIO.get(member.compress_type, 1):
        raise ValueError(f"{name}: {member.file_size} bytes cannot be as small as claimed")
    with file.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        read_header = _HEADERS.get(version)
        if read_header is None:
            raise ValueError(f"{name}: .npy version {version} is not supported")
        try:
            dims, _, element_type = read_header(stream)
        except _NOT_A_HEADER:
            raise ValueError(f"{name}: the header is not a description of an array") from None
        if element_type.hasobject:
            raise _has_objects(path, name, computation)
        claimed = math.prod(dims) * element_type.itemsize
        held = member.file_size - stream.tell()
        if claimed != held or min(dims, default=0) < 0:
            raise ValueError(f"{name}: the header claims {claimed} bytes, the file holds {held}")
    with file.open(member) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


_MAX_RATIO = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: 1032}  # zlib's technical details
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def _has_objects(path: str, name: str, computation: Computation) -> ExecutionError:
    """Return the error for an array of Python objects, with the type that is expected."""
    own_name = re.sub(r"^device\d+\.", "", name)
    leaves = enumerate(parameter_leaves(computation))
    named = [leaf for n, leaf in leaves if own_name in _names(n, leaf, 0, 1)]
    kinds = [dtype(leaf.shape.element_type).name for leaf in named]
    message = f"{path}: {name} has dtype object, expected {(*kinds, 'numbers')[0]}"
    return ExecutionError(message, computation.span, "inputs")


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
    return ExecutionError(message, span, "inputs", "no input", help=_input_list(computation))


def _unused_error(
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
    return ExecutionError(message, computation.span, "inputs", help=_input_list(computation))


def _input_list(computation: Computation) -> str:
    leaves = enumerate(parameter_leaves(computation))
    listed = [f"in{n}: {leaf.shape.with_layout(None)} ({leaf.name})" for n, leaf in leaves]
    return f"the inputs are {', '.join(listed)}" if listed else "the program has no inputs"


def name_results(results: Sequence[Sequence[Array]], word: str = "out") -> dict[str, Array]:
    """Return the results of each device by name; the names of a single device have no prefix.

    >>> name_results([[np.int8(1)], [np.int8(2)]])
    {'device0.out0': np.int8(1), 'device1.out0': np.int8(2)}
    """
    prefixes = [f"device{k}." for k in range(len(results))] if len(results) > 1 else [""]
    return {
        f"{prefix}{word}{number}": array
        for prefix, arrays in zip(prefixes, results, strict=True)
        for number, array in enumerate(arrays)
    }


def write(path: str, arrays: Mapping[str, Array]) -> None:
    """Write all arrays into one .npz file, as `replace_file` does.

    Raises:
        OSError: the file cannot be written.
    """
    stored: dict[str, Any] = {
        name: array if array.dtype.isbuiltin == 1 else array.astype(np.float32)
        for name, array in arrays.items()
    }
    with replace_file(path) as file:
        np.savez(file, **stored)


def type_text(array: Array) -> str:
    """Return the shape of an array in HLO syntax.

    >>> type_text(np.zeros((2, 3), np.int8))
    's8[2,3]'
    """
    return f"{element_type_name(array)}[{','.join(map(str, array.shape))}]"


def element_type_name(array: Array) -> str:
    """Return the element type of an array in HLO syntax."""
    return NAMES_OF_DTYPES[array.dtype.name]

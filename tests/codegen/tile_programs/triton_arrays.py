"""NumPy arrays as arguments of Triton's interpreter, which expects those of PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS = {
    "bool": "i1",
    "bfloat16": "bf16",
    "float16": "fp16",
    "float32": "fp32",
    "float64": "fp64",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
}


class TritonArray:
    """The members of a tensor that Triton's interpreter uses."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = np.ascontiguousarray(array)

    @property
    def dtype(self) -> str:
        return self.array.dtype.name

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def untyped_storage(self) -> TritonArray:
        return self

    def cpu(self) -> TritonArray:
        return self

    def new_empty(self, size: int, device: str) -> TritonArray:
        return TritonArray(np.empty(size, self.array.dtype))

    def set_(self, storage: TritonArray, *_: object) -> None:
        self.array = storage.array

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return self.array.shape

    def stride(self) -> tuple[int, ...]:
        return self.array.strides

    def copy_(self, other: TritonArray) -> None:
        self.array[...] = other.array


@dataclass(frozen=True)
class TritonRun:
    """A file, the function to call in it, its arguments, and an array for its result."""

    text: str
    name: str
    arguments: Sequence[NDArray[Any]]
    out: NDArray[Any]

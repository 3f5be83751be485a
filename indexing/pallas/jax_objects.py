"""The parts of JAX's objects that a call of Pallas has, read by the names of their attributes.

Names have changed between versions of JAX: each function reads all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from hlo.shapes.element_type import ELEMENT_TYPES, NAMES_OF_DTYPES
from indexing.pallas.calls import BlockDimension, MemorySpace, ScratchBuffer
from simplifier.unknown import Unknown

_SPACES: Final[Mapping[str, MemorySpace]] = {
    "": "vmem",
    "none": "vmem",
    "default": "vmem",
    "vmem": "vmem",
    "smem": "smem",
    "index": "smem",
}


def array_of(block: Any) -> Any:
    """Return the abstract value of the whole array."""
    array = getattr(block, "array_aval", None)
    return block.array_shape_dtype if array is None else array


def argument_names(jaxpr: Any) -> list[str]:
    """Return the names of the arguments of an index map or of a kernel."""
    info = getattr(getattr(jaxpr, "jaxpr", jaxpr), "debug_info", None)
    return [str(name) for name in getattr(info, "arg_names", None) or ()]


def source_of(jaxpr: Any) -> str:
    """Return the function and the line of an index map."""
    info = getattr(getattr(jaxpr, "jaxpr", jaxpr), "debug_info", None)
    return str(getattr(info, "func_src_info", None) or "")


def block_of(shape: Sequence[Any]) -> tuple[BlockDimension, ...] | Unknown:
    """Return the dimensions of a block; `Unknown` for kinds without a fixed place."""
    dimensions: list[BlockDimension] = []
    for each in shape:
        kind = type(each).__name__
        size = each if isinstance(each, int) else getattr(each, "block_size", 1)
        if not isinstance(size, int):
            return Unknown(f"the block has the symbolic size {size}")
        if each is None or kind == "Squeezed" or kind == "Mapped":
            dimensions.append(BlockDimension("squeezed", 1))
        elif isinstance(each, int) or kind == "Blocked":
            dimensions.append(BlockDimension("blocked", size))
        elif kind == "Element":
            dimensions.append(BlockDimension("element", size, tuple(each.padding)))
        else:
            return Unknown(f"a block dimension of kind {kind} has no fixed place")
    return tuple(dimensions)


def space_of(aval: Any) -> MemorySpace:
    """Return where a block or a buffer lives."""
    return _SPACES.get(str(getattr(aval, "memory_space", "") or "").lower(), "none")


def element_type_of(dtype: Any) -> tuple[str, int]:
    """Return HLO's name of a type, or that of JAX, and its bits."""
    name = str(dtype)
    hlo_name = NAMES_OF_DTYPES.get(name)
    if hlo_name is not None:
        return hlo_name, ELEMENT_TYPES[hlo_name].bits
    return name, 8 * int(getattr(dtype, "itemsize", 4))


def scratch_of(aval: Any) -> ScratchBuffer:
    """Return a scratch buffer."""
    inner = getattr(aval, "inner_aval", aval)
    if not hasattr(inner, "dtype") or not hasattr(inner, "shape"):
        return ScratchBuffer((), type(inner).__name__, 0, "none")
    return ScratchBuffer(tuple(inner.shape), *element_type_of(inner.dtype), space_of(aval))


def semantics_of(
    parameters: Any, mapping: Any
) -> tuple[Literal["tpu", "gpu"], list[Literal["parallel", "arbitrary"]]]:
    """Return the target of a call, and the semantics of all dimensions of its grid."""
    module = type(parameters).__module__
    is_gpu = "triton" in module or "mosaic_gpu" in module
    own: Sequence[Any] | None = getattr(parameters, "dimension_semantics", None)
    if isinstance(parameters, dict):  # of earlier versions
        own = parameters.get("mosaic", {}).get("dimension_semantics")
        is_gpu = "triton" in parameters
    count, vmapped = len(mapping.grid), set(mapping.vmapped_dims)
    default = "parallel" if is_gpu else "arbitrary"
    words = iter(own if own is not None else ())
    semantics: list[Literal["parallel", "arbitrary"]] = []
    for k in range(count):
        word = "parallel" if k in vmapped else str(getattr(n := next(words, default), "value", n))
        semantics.append("parallel" if "parallel" in word else "arbitrary")
    return ("gpu" if is_gpu else "tpu"), semantics

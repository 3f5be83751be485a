"""VMEM of a call: blocks times buffers, and scratch, with the padding of tiles.

The bytes are an upper bound: Mosaic shrinks the tiles of arrays with few rows.

Source: JAX ``docs/pallas/tpu/details.rst``, "Array Layouts"; Mosaic's tiling of the last two
dimensions.
"""

from __future__ import annotations

from math import prod
from typing import Final

from indexing.devices.tpus import LANES, SUBLANES, padded_bytes
from indexing.pallas.calls import BlockSpecification, KernelCall
from simplifier.linear import Expr, as_expr
from simplifier.unknown import Unknown

_PLACES: Final = ("second to last", "last")


def buffer_count(call: KernelCall, spec: BlockSpecification) -> int:
    """Return the number of buffers of an operand."""
    if not call.grid or spec.is_whole:
        return 1
    return spec.buffer_count or 2


def vmem_bytes(call: KernelCall) -> int | Unknown:
    """Return the bytes of VMEM that a call needs at most."""
    if call.target == "gpu":
        return Unknown("a GPU has no VMEM")
    total = 0
    for spec in call.operands:
        if spec.space != "vmem":
            continue
        if isinstance(spec.block, Unknown):
            return spec.block
        sizes = [each.size for each in spec.block]
        total += buffer_count(call, spec) * padded_bytes(sizes, spec.element_type, spec.bits)
    for scratch in call.scratch:
        if scratch.space == "vmem" and scratch.bits:
            total += padded_bytes(scratch.sizes, scratch.element_type, scratch.bits)
    return total


def least_vmem_bytes(call: KernelCall) -> int:
    """Return bytes of VMEM that a call needs at least: those of one buffer, without padding."""
    blocks = [
        (prod([each.size for each in spec.block]), spec.bits)
        for spec in call.operands
        if spec.space == "vmem" and not isinstance(spec.block, Unknown)
    ]
    scratch = [(prod(s.sizes), s.bits) for s in call.scratch if s.space == "vmem"]
    return sum([count * bits // 8 for count, bits in (*blocks, *scratch)])


def refused_block(call: KernelCall, spec: BlockSpecification) -> str:
    """Return why Mosaic refuses a block, or "".

    The last two sizes must be multiples of 8 and 128, or those of the array; a block of rank 1
    must be the array, a multiple of 1,024, or a power of 2 of at least 128 words.

    Source: JAX ``jax/_src/pallas/mosaic/lowering.py``, ``_check_block_mappings``.
    """
    block = spec.block
    if (
        call.target != "tpu"
        or isinstance(block, Unknown)
        or (spec.space == "smem" and spec.is_whole)
    ):
        return ""
    if not block:
        return "the block has rank 0: expected a dimension at least"
    if spec.space == "none":
        is_semaphore = not spec.is_whole and "sem" in spec.element_type
        if spec.is_whole or is_semaphore:
            return ""
        return (
            "a block outside of VMEM and SMEM must be the array, with an index map that returns 0"
        )
    last = [(b.size, size) for b, size in zip(block, spec.sizes, strict=True)]
    if len(last) == 1:
        return _refused_row(*last[0], spec)
    for (size, whole), tile, name in zip(last[-2:], (SUBLANES, LANES), _PLACES, strict=True):
        if size % tile and as_expr(size) != whole:
            return (
                f"block size {size} of the {name} dimension is neither a multiple of {tile} nor "
                f"the size {whole} of the array"
            )
    return ""


def _refused_row(size: int, whole: Expr, spec: BlockSpecification) -> str:
    bits = 32 if spec.element_type == "pred" else spec.bits
    least = LANES * max(1, 32 // bits)
    if as_expr(size) == whole or size % (SUBLANES * LANES) == 0:
        return ""
    if size >= least and size & (size - 1) == 0:
        return ""
    return (
        f"block size {size} of the only dimension is neither the size {whole} of the array, a "
        f"multiple of {SUBLANES * LANES}, nor a power of 2 of at least {least}"
    )

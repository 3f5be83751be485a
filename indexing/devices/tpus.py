"""Peak rates and memories of TPUs, and the tiles of arrays there.

>>> TPUS["v5e"].flops
197000000000000

Source: "Cloud TPU documentation" of Google, the tables of key specifications of the pages "TPU v4",
"TPU v5e", "TPU v5p" and "TPU v6e"; for tiles of arrays, JAX ``docs/pallas/tpu/details.rst``,
"Array Layouts".
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final, NamedTuple


class Tpu(NamedTuple):
    """The peak rates and the memory of one chip.

    Attributes:
        memory_bandwidth: bytes of HBM per second.
        flops: bfloat16 operations of the matrix units per second; a fused multiply-add is two.
        hbm_gib: HBM in GiB.
    """

    memory_bandwidth: int
    flops: int
    hbm_gib: int


TPUS: Final = {
    "v4": Tpu(1_200 * 10**9, 275 * 10**12, 32),
    "v5e": Tpu(819 * 10**9, 197 * 10**12, 16),
    "v5p": Tpu(2_765 * 10**9, 459 * 10**12, 95),
    "v6e": Tpu(1_640 * 10**9, 918 * 10**12, 32),
}
"""The generations whose rates are published, by the names of targets."""

MEMORY_SPACES: Final = {
    0: "HBM",
    1: "VMEM",
    2: "semaphores",
    4: "SMEM",
    5: "host",
    8: "SparseCore semaphores",
}
"""The numbers ``S(..)`` of layouts.

Source: JAX ``jax/_src/tpu_custom_call.py``, ``MemorySpace.color``.  The meaning of 6 is not
published: XLA:TPU's reports of memory usage call it ``color_6``.  They call 2 ``smem`` and 4
``host``, but an array that Pallas places in SMEM has ``S(4)``.
"""

LANES: Final = 128
SUBLANES: Final = 8

VMEM_MIB: Final = {
    **dict.fromkeys(("v2", "v3", "v4"), 16),
    **dict.fromkeys(("v5e", "v6e"), 128),
    **dict.fromkeys(("v5p", "v7", "v7x"), 64),
}
"""VMEM of one core in MiB, by TPU."""


def vmem_capacity(chip: str) -> int:
    """Return the bytes of VMEM of one core.

    Raises:
        ValueError: the chip is not known.

    >>> vmem_capacity("v5e")
    134217728
    """
    name = chip.lower().removeprefix("tpu:").removeprefix("tpu").strip()
    if name not in VMEM_MIB:
        raise ValueError(f"unknown TPU {chip!r}: expected one of {', '.join(VMEM_MIB)}")
    return VMEM_MIB[name] << 20


def tile_rows(bits: int) -> int:
    """Return the rows of a tile of elements of some bits: narrow ones are packed.

    >>> tile_rows(32), tile_rows(16), tile_rows(8)
    (8, 16, 32)
    """
    return SUBLANES * 32 // bits if bits < 32 else SUBLANES


def padded_bytes(sizes: Sequence[int], element_type: str, bits: int) -> int:
    """Return the bytes of an array in VMEM, with the last two dimensions padded to tiles.

    >>> padded_bytes((8, 1), "f32", 32), padded_bytes((3, 200), "bf16", 16)
    (4096, 8192)
    """
    if element_type == "pred":  # stored as int32
        bits = 32
    rows = tile_rows(bits)
    *outer, second, last = (1, 1, *sizes)
    tiled = (-(-second // rows) * rows) * (-(-last // LANES) * LANES)
    return prod(outer) * tiled * bits // 8

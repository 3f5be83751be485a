"""Warps of a block: how many threads share its tiles.

Source: XLA ``xla/service/gpu/model/gpu_indexing_performance_model.cc``, ``GetNumWarps``, for blocks
without dots; NVIDIA "PTX ISA", ``wgmma.mma_async``: a warp group has four warps and 64 rows.
"""

from __future__ import annotations

from typing import Final

from indexing.devices.gpus import PROCESSORS, Gpu, gpu

WARP_GROUP: Final = 4
"""Warps that execute one ``wgmma`` instruction together."""
GROUP_ROWS: Final = 64
"""Rows of the accumulators of one ``wgmma`` instruction."""
MAX_THREAD_REGISTERS: Final = 255
"""Most 32-bit registers of a thread."""
OTHER_REGISTERS: Final = 16
"""Registers of a thread that hold no accumulators."""
MAX_WARPS: Final = 8
"""Most warps of a block that are chosen: beyond, blocks wait for each other's barriers."""
_LIVE_ELEMENTS: Final = ((256, 1), (1024, 2), (4096, 4))


def uses_warp_groups(device: str | Gpu, rows: int, warps: int) -> bool:
    """Return True if a dot of so many rows is computed by ``wgmma``, whose operands are shared.

    >>> [uses_warp_groups(*each) for each in (("H100", 64, 4), ("H100", 64, 2), ("A100", 64, 4))]
    [True, False, False]
    """
    capability = PROCESSORS[gpu(device).name].capability
    has_groups = not capability.startswith("gfx") and int(capability.partition(".")[0]) >= 9
    return has_groups and rows >= GROUP_ROWS and warps % WARP_GROUP == 0


def warps_of_rows(elements: int) -> int:
    """Return the number of warps of a block without dots.

    Args:
        elements: padded elements of its largest tile.

    >>> [warps_of_rows(n) for n in (256, 512, 4096, 16384)]
    [1, 2, 4, 8]
    """
    return next((warps for most, warps in _LIVE_ELEMENTS if elements <= most), MAX_WARPS)


def warps_of_dots(rows: int, accumulators: int, device: str | Gpu) -> int:
    """Return the number of warps of a block with dots.

    Each thread holds at most half of its registers as accumulators, for operands and addresses
    need the others; blocks with enough rows for warp groups have whole groups.

    Args:
        rows: rows of the tile of the dot.
        accumulators: elements of accumulators of a block.

    >>> warps_of_dots(128, 128 * 256, "H100"), warps_of_dots(16, 128, "H100")
    (8, 1)
    """
    per_warp = gpu(device).threads_per_warp * (MAX_THREAD_REGISTERS + 1) // 2
    least = WARP_GROUP if uses_warp_groups(device, rows, WARP_GROUP) else 1
    warps = least
    while warps * per_warp < accumulators and warps < 2 * MAX_WARPS:
        warps *= 2
    return warps
